// Copies the first `inside` elements of a vector, and zeros for the others, which lie outside of the matrix.
template <class Copy, class Src, class Dst>
CUTE_DEVICE
void
copy_residue(Copy const& tiled_copy, bool is_vector, int inside, Src const& src, Dst&& dst)
{
  CUTE_STATIC_ASSERT_V(size(src) == size(dst), "a copy has as many elements on both sides");
  if (is_vector && inside >= size(dst)) {
    copy(tiled_copy, src, dst);
  } else {
    CUTE_UNROLL
    for (int i = 0; i < size(dst); ++i) {
      SM80_CP_ASYNC_CACHEALWAYS_ZFILL<float>::copy(src(i), dst(i), i < inside);
    }
  }
}
