// Writes each element of a part that is inside, in pairs of neighbours where they are aligned and both inside.
template <class Src, class Dst, class Crd, class Inside>
CUTE_DEVICE
void
write_part(bool in_pairs, Src const& src, Dst&& dst, Crd const& crd, Inside const& inside)
{
  using Pair = uint_bit_t<2 * sizeof_bits_v<typename Src::value_type>>;
  static_assert(size(Src{}.layout()) % 2 == 0, "whole pairs");
  Tensor src_pairs = recast<Pair const>(src);                                                  // (CPY/2)
  Tensor dst_pairs = recast<Pair>(dst);                                                        // (CPY/2)
  CUTE_UNROLL
  for (int pair = 0; pair < size(src_pairs); ++pair) {
    if (in_pairs && inside(crd(2 * pair + 1))) {
      dst_pairs(pair) = src_pairs(pair);
      continue;
    }
    CUTE_UNROLL
    for (int i = 2 * pair; i < 2 * pair + 2; ++i) {
      if (inside(crd(i))) {
        dst(i) = src(i);
      }
    }
  }
}
