// Reads the elements of a vector that lie inside: at once by a `Vector` where all do, one by one without such a type.
template <class Vector, class Pred, class Src, class Dst>
CUTE_DEVICE
void
read_vector(bool whole, Pred const& inside, Src const& src, Dst&& dst)
{
  if constexpr (is_void_v<Vector>) {
    copy_all_if(inside, src, dst);
  } else if (whole) {
    copy_all(Copy_Atom<UniversalCopy<Vector>, typename Src::value_type>{}, src, dst);
  } else {
    copy_all_if(inside, src, dst);
  }
}
