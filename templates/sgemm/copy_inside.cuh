// Copies the elements whose coordinates lie inside `shape`; the others become zeros.
template <class Src, class Crd, class Bounds, class Dst>
CUTE_DEVICE
void
copy_inside(Src const& src, Crd const& crd, Bounds const& shape, Dst&& dst)
{
  CUTE_STATIC_ASSERT_V(size(src) == size(dst), "a copy has as many elements on both sides");
  CUTE_UNROLL
  for (int i = 0; i < size(dst); ++i) {
    dst(i) = elem_less(crd(i), shape) ? src(i) : 0.0f;
  }
}
