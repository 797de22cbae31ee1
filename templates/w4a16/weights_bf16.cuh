using Pair = __nv_bfloat162;  // two weights, neighbours along K

// 128, whose last four bits are 0, so that a weight there is what the number is more.
constexpr uint32_t base = 0x43004300;

// 128 + z.
struct Zero {
  Pair low;
};

CUTE_DEVICE
Zero
zero_of(uint32_t numbers)
{
  return {pair_of<Pair>(numbers)};
}

// q - z, exactly, of two of the four weights in each half of a word: the lowest, or those behind.
CUTE_DEVICE
Pair
difference(uint32_t word, int b, Zero const& zero)
{
  return __hsub2(pair_of<Pair>(with_base<0x000f000f>(word >> 4 * b, base)), zero.low);
}
