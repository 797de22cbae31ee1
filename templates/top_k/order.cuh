// Unsigned integers in the order of elements: NaN above all, -0 as 0. None is 0.
CUTE_DEVICE
uint32_t
order_of(Element x)
{
  float const number = __fadd_rn([[ loaded ]], 0.0f);
  uint32_t const bits = __float_as_uint(number);
  return number != number ? 0xffffffffu : bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
}

// The same with the column below it: no two of a row are equal, and the lower column is the larger.
CUTE_DEVICE uint64_t candidate(uint32_t order, int column) { return uint64_t(order) << 32 | ~uint32_t(column); }
CUTE_DEVICE int column_of(uint64_t candidate) { return int(~uint32_t(candidate)); }
