// Packs a tile of an operand of any alignment into the workspace. Rows run along its contiguous mode and are padded with zeros to a
// whole tile.
template <class Extents, class Strides>
CUTE_DEVICE
void
pack_tile(void const* from, Extents const& extents, Strides const& strides, Element* to, int64_t ld, int cta)
{
  auto const [rows, columns, matrices] = extents;
  Tensor mS = make_tensor(make_gmem_ptr(static_cast<Element const*>(from)), extents, strides);  // (ROWS,COLUMNS,L)
  Tensor mP = make_tensor(make_gmem_ptr(to), make_shape(rows, int(ld), matrices), make_stride(ld, _1{}, rows * ld));  // (ROWS,LD,L)
  auto const tiles = make_shape(int(ld) / size<1>(TilePack{}), ceil_div(rows, size<0>(TilePack{})), matrices);
  auto const [column, row, l] = idx2crd(cta, tiles);
  auto const crd = make_coord(row, column);
  auto const residue = make_coord(rows - row * size<0>(TilePack{}), columns - column * size<1>(TilePack{}));
  auto const thr_pack = Pack{}.get_slice(threadIdx.x);
  Tensor tS = thr_pack.partition_S(local_tile(mS(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tP = thr_pack.partition_D(local_tile(mP(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tC = thr_pack.partition_S(make_identity_tensor(TilePack{}));                          // (CPY,..) -> (row,column)
  Tensor tR = make_tensor<Element>(shape(tC));                                                 // (CPY,CPY_ROWS,CPY_COLUMNS)
  if (size<0>(TilePack{}) <= get<0>(residue) && size<1>(TilePack{}) <= get<1>(residue)) {
    CUTE_UNROLL
    for (int i = 0; i < size(tR); ++i) {
      tR(i) = tS(i);
    }
    CUTE_UNROLL
    for (int i = 0; i < size(tR); ++i) {
      tP(i) = tR(i);
    }
    return;
  }
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    tR(i) = elem_less(tC(i), residue) ? tS(i) : Element(0);
  }
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    if (get<0>(tC(i)) < get<0>(residue)) {
      tP(i) = tR(i);
    }
  }
}
