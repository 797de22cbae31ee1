// Stores accumulators element by element, so that D may lie anywhere.
template <class TCrC, class TCcD, class Bounds, class TCgD>
CUTE_DEVICE
void
store_elements(TCrC const& tCrC, TCcD const& tCcD, Bounds const& bounds, TCgD&& tCgD)
{
  CUTE_UNROLL
  for (int i = 0; i < size(tCrC); ++i) {
    if (elem_less(tCcD(i), bounds)) {
      tCgD(i) = static_cast<ElementD>(tCrC(i));
    }
  }
}
