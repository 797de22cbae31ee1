// Transposes a tile of an operand of any alignment into the workspace. The source is contiguous along its rows. The result's rows
// run along the other mode and are padded with zeros to a whole tile.
template <class Extents, class Strides>
CUTE_DEVICE
void
turn_tile(void const* from, Extents const& extents, Strides const& strides, Element* to, int64_t ld, int cta)
{
  auto const [rows, columns, matrices] = extents;
  Tensor mS = make_tensor(make_gmem_ptr(static_cast<Element const*>(from)), extents, strides);  // (ROWS,COLUMNS,L)
  Tensor mP = make_tensor(make_gmem_ptr(to), make_shape(rows, int(ld), matrices), make_stride(ld, _1{}, rows * ld));  // (ROWS,LD,L)
  auto const tiles = make_shape(ceil_div(rows, size<0>(TilePack{})), int(ld) / size<1>(TilePack{}), matrices);
  auto const [row, column, l] = idx2crd(cta, tiles);
  auto const crd = make_coord(row, column);
  auto const residue = make_coord(rows - row * size<0>(TilePack{}), columns - column * size<1>(TilePack{}));
  Tensor cS = make_identity_tensor(TilePack{});                                                // (ROWS,COLUMNS) -> (row,column)
  __shared__ uint_bit_t<sizeof_bits_v<Element>> smem[cosize_v<SmemT>];                         // 8-bit floats have a constructor
  Tensor sT = make_tensor(make_smem_ptr<Element>(smem), SmemT{});                              // (ROWS,COLUMNS)

  auto const thr_turn = Turn{}.get_slice(threadIdx.x);
  Tensor tS = thr_turn.partition_S(local_tile(mS(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tC = thr_turn.partition_S(cS);                                                        // (CPY,..) -> (row,column)
  Tensor tT = partition_D(Turn{}, threadIdx.x, sT);                                            // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tR = make_tensor<Element>(shape(tT));                                                 // (CPY,CPY_ROWS,CPY_COLUMNS)
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    tR(i) = elem_less(tC(i), residue) ? tS(i) : Element(0);
  }
  copy_all(Turn{}, tR, tT);
  __syncthreads();

  auto const thr_turned = Turned{}.get_slice(threadIdx.x);
  Tensor tTurned = partition_S(Turned{}, threadIdx.x, sT);                                     // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tP = thr_turned.partition_D(local_tile(mP(_,_,l), TilePack{}, crd));                  // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tPc = thr_turned.partition_D(cS);                                                     // (CPY,..) -> (row,column)
  CUTE_UNROLL
  for (int i = 0; i < size(tP); ++i) {
    if (get<0>(tPc(i)) < get<0>(residue)) {
      tP(i) = tTurned(i);
    }
  }
}
