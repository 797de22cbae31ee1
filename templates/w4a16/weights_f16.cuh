using Pair = __half2;  // two weights, neighbours along K

// 1024, whose last four bits are 0, so that a weight there is what the number is more. Four bits higher it counts 16 times.
constexpr uint32_t base = 0x64006400;

// 1024 + z, and -(64 + z).
struct Zero {
  Pair low;
  Pair high;
};

CUTE_DEVICE
Zero
zero_of(uint32_t numbers)
{
  return {pair_of<Pair>(numbers), __hsub2(pair_of<Pair>(0x63806380), pair_of<Pair>(numbers))};  // 960 less 1024 + z
}

// q - z, exactly, of two of the four weights in each half of a word: the lowest, or those behind.
CUTE_DEVICE
Pair
difference(uint32_t word, int b, Zero const& zero)
{
  if (b == 0) {
    return __hsub2(pair_of<Pair>(with_base<0x000f000f>(word, base)), zero.low);
  }
  return __hfma2(pair_of<Pair>(with_base<0x00f000f0>(word, base)), pair_of<Pair>(0x2c002c00), zero.high);  // by 1 / 16
}
