// Copies a tile of a factor that lies anywhere into the workspace: rows along its contiguous mode, which end with zeros up to a whole
// tile.
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
  auto const thr_pack = Pack{}.get_slice(threadIdx.x);
  Tensor tS = thr_pack.partition_S(local_tile(mS(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tP = thr_pack.partition_D(local_tile(mP(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tC = thr_pack.partition_S(local_tile(make_identity_tensor(make_shape(rows, columns)), TilePack{}, crd));  // (CPY,CPY_ROWS,CPY_COLUMNS) -> (row,column)
  Tensor tR = make_fragment_like(tP);                                                          // (CPY,CPY_ROWS,CPY_COLUMNS)
  if ((row + 1) * size<0>(TilePack{}) <= rows && (column + 1) * size<1>(TilePack{}) <= columns) {
    copy(Pack{}, tS, tR);
    copy(Pack{}, tR, tP);
    return;
  }
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    tR(i) = elem_less(tC(i), make_shape(rows, columns)) ? tS(i) : Element(0);
  }
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    if (get<0>(tC(i)) < rows) {
      tP(i) = tR(i);
    }
  }
}

// Packs A and B, or one of them, for the entry that multiplies.
CUTE_DEVICE
void
pack([[ c.plan.name() ]]_params const& params)
{
  int const cta = blockIdx.x;
  auto const workspace = static_cast<Element*>(params.workspace);
{% for t in c.factors() %}{% let p = t.is.param %}  {% if loop.first %}if (cta < params.packs_[[ p ]]) {% else %}} else {% endif %}{
    pack_tile(params.[[ p ]], [[ c.rows(t) ]],
              workspace + params.packed_[[ p ]], params.from_[[ c.strides(t)[0] ]], {% if loop.first %}cta{% else %}cta - params.packs_a{% endif %});
{% endfor %}  }
}
