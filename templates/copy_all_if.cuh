{% include "copy_all.cuh" %}

template <class Pred, class Src, class Dst>
CUTE_DEVICE
void
copy_all_if(Pred const& pred, Src const& src, Dst&& dst)
{
  CUTE_STATIC_ASSERT_V(size(src) == size(dst), "a copy has as many elements on both sides");
  copy_if(pred, src, dst);
}
