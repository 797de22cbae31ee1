// Copies vectors of 16 bytes to shared memory asynchronously. Vectors outside of the matrix become zeros. A vector never crosses
// the end of a row: rows are multiples of a vector, or packed and padded with zeros.
template <class TiledCopy, class Src, class Crd, class Bounds, class Dst>
CUTE_DEVICE
void
copy_inside(TiledCopy const& tiled_copy, Src const& src, Crd const& crd, Bounds const& bounds, Dst&& dst)
{
  CUTE_UNROLL
  for (int k = 0; k < size<2>(dst); ++k) {
    CUTE_UNROLL
    for (int x = 0; x < size<1>(dst); ++x) {
      copy_all(tiled_copy.with(elem_less(crd(_0{},x,k), bounds)), src(_,x,k), dst(_,x,k));
    }
  }
}
