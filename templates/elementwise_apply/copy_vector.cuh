{% include "copy_all_if.cuh" %}

// Copies a vector at once by a `Vector`, element by element without such a type.
template <class Vector, class Src, class Dst>
CUTE_DEVICE
void
copy_vector(Src const& src, Dst&& dst)
{
  if constexpr (is_void_v<Vector>) {
    copy_all(src, dst);
  } else {
    copy_all(Copy_Atom<UniversalCopy<Vector>, typename Src::value_type>{}, src, dst);
  }
}
