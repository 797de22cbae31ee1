{% include "round_all.cuh" %}

// Accumulators, rounded to the type of the weights.
template <class TCrC>
CUTE_DEVICE
auto
rounded(TCrC const& tCrC)
{
  Tensor rounded = make_fragment_like<Element>(tCrC);                                          // (MMA,MMA_M,MMA_N)
  round_all(tCrC, rounded);
  return rounded;
}
