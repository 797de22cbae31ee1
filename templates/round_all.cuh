// Two numbers, rounded to a type of 16 bits; the first lies below the second.
template <class Element>
CUTE_DEVICE
uint32_t
pair(float low, float high)
{
  uint32_t both;
  if constexpr (is_same_v<Element, half_t>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  } else {
    static_assert(is_same_v<Element, bfloat16_t>, "f16 or bf16");
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  }
  return both;
}

// Rounds numbers in the same order: two at once, or a single one.
template <class Src, class Dst>
CUTE_DEVICE
void
round_all(Src const& src, Dst&& dst)
{
  using Element = typename remove_cvref_t<Dst>::value_type;
  if constexpr (size(Src{}) == 1) {
    dst(_0{}) = Element(src(_0{}));
  } else {
    Tensor pairs = recast<uint32_t>(dst);                                                      // (PAIR,..)
    static_assert(size(Src{}) == 2 * size(decltype(pairs){}), "pairs are whole");
    CUTE_UNROLL
    for (int i = 0; i < size(pairs); ++i) {
      pairs(i) = pair<Element>(src(2 * i), src(2 * i + 1));
    }
  }
}
