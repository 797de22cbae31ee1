// Two numbers, rounded to the type of the weights; the first lies below the second.
CUTE_DEVICE
uint32_t
pair(float low, float high)
{
  uint32_t both;
  asm("cvt.rn.[[ c.pair ]].f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// Rounds accumulators to the type of the weights, in the same order.
template <class TCrC, class TCrE>
CUTE_DEVICE
void
round_all(TCrC const& tCrC, TCrE&& tCrE)
{
  Tensor pairs = recast<uint32_t>(tCrE);                                                       // (MMA/2,..)
  static_assert(size(TCrC{}) == 2 * size(decltype(pairs){}), "pairs are whole");
  CUTE_UNROLL
  for (int i = 0; i < size(pairs); ++i) {
    pairs(i) = pair(tCrC(2 * i), tCrC(2 * i + 1));
  }
}

template <class TCrC>
CUTE_DEVICE
auto
rounded(TCrC const& tCrC)
{
  Tensor rounded = make_fragment_like<Element>(tCrC);                                          // (MMA,MMA_M,MMA_N)
  round_all(tCrC, rounded);
  return rounded;
}
