// Unsigned integers in the order of numbers. The addition makes 0 of -0 and 0x7fffffff of every NaN, which is above all numbers.
CUTE_DEVICE
uint32_t
order_of(float x)
{
  uint32_t const bits = __float_as_uint(__fadd_rn(x, 0.0f));
  return bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
}

CUTE_DEVICE
float
number_of(uint32_t order)
{
  return __uint_as_float(order ^ (order >> 31 != 0 ? 0x80000000u : 0xffffffffu));
}

constexpr uint32_t Infinity = 0xff800000u;  // the order of the largest number

CUTE_DEVICE float number_of(Element x) { return [[ loaded ]]; }

// An order with its column below it: no two of a row are equal, and the lower column is the larger.
CUTE_DEVICE uint64_t candidate(uint32_t order, int column) { return uint64_t(order) << 32 | ~uint32_t(column); }
CUTE_DEVICE uint32_t order_of(uint64_t candidate) { return uint32_t(candidate >> 32); }
CUTE_DEVICE int column_of(uint64_t candidate) { return int(~uint32_t(candidate)); }
