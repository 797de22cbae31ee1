// Copies all of a tensor into all of another. CuTe's own copies 32 elements into 16 without an error.
template <class CopyAtom, class Src, class Dst>
CUTE_DEVICE
void
copy_all(CopyAtom const& atom, Src const& src, Dst&& dst)
{
  CUTE_STATIC_ASSERT_V(size(src) == size(dst), "a copy has as many elements on both sides");
  copy(atom, src, dst);
}

template <class Src, class Dst>
CUTE_DEVICE
void
copy_all(Src const& src, Dst&& dst)
{
  CUTE_STATIC_ASSERT_V(size(src) == size(dst), "a copy has as many elements on both sides");
  copy(src, dst);
}
