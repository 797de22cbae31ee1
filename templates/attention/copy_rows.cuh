// Copies rows that lie anywhere to shared memory, in vectors of 16 bytes: row i begins at `row(i)`. Vectors outside of the bounds
// become zeros. Coordinates are (row,element), or the other way round.
template <int Along, class TiledCopy, class Row, class Crd, class Bounds, class Dst>
CUTE_DEVICE
void
copy_rows(TiledCopy const& tiled_copy, Row const& row, Crd const& crd, Bounds const& bounds, Dst&& dst)
{
  if (threadIdx.x < size(tiled_copy)) {
    CUTE_UNROLL
    for (int k = 0; k < size<2>(dst); ++k) {
      CUTE_UNROLL
      for (int x = 0; x < size<1>(dst); ++x) {
        auto const at = crd(_0{},x,k);
        bool const inside = elem_less(at, bounds);
        auto const ptr = row(inside ? int(get<Along>(at)) : 0) + (inside ? int(get<1 - Along>(at)) : 0);
        Tensor src = make_tensor(make_gmem_ptr(ptr), make_layout(shape(dst(_,x,k))));          // (CPY)
        copy_all(tiled_copy.with(inside), src, dst(_,x,k));
      }
    }
  }
}
