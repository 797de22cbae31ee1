// Two numbers, rounded to the type of the weights; the first lies below the second.
CUTE_DEVICE
uint32_t
pair(float low, float high)
{
  uint32_t both;
  asm("cvt.rn.[[ c.pair ]].f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// Accumulators in the type of the weights, in the same order.
template <class TCrC>
CUTE_DEVICE
auto
rounded(TCrC const& tCrC)
{
  Tensor rounded = make_fragment_like<Element>(tCrC);                                          // (MMA,MMA_M,MMA_N)
  Tensor pairs = recast<uint32_t>(rounded);                                                    // (MMA/2,MMA_M,MMA_N)
  static_assert(size(TCrC{}) == 2 * size(decltype(pairs){}), "pairs are whole");
  CUTE_UNROLL
  for (int i = 0; i < size(pairs); ++i) {
    pairs(i) = pair(tCrC(2 * i), tCrC(2 * i + 1));
  }
  return rounded;
}

// Accumulators as the fragment of A that they are: two atoms along N have the columns of one along K.
template <class TCrC>
CUTE_DEVICE
auto
as_factor(TCrC const& tCrC)
{
  auto const layout = logical_divide(tCrC.layout(), Shape<Underscore,Underscore,_2>{});          // (MMA,MMA_M,(2,MMA_K))
  return make_tensor(tCrC.data(), make_layout(make_layout(get<0>(layout), get<2,0>(layout)),
                                              get<1>(layout), get<2,1>(layout)));               // ((MMA,2),MMA_M,MMA_K)
}
