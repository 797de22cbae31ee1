{% include "larger.cuh" %}
{% match pair %}
{% when Some with (pair) %}
// The largest of a thread's elements, two at a time.
template <class Values>
CUTE_DEVICE
float
largest_of(Values const& rX)
{
  Tensor rPairs = recast<uint32_t const>(rX);  // (CPY/2,CPY_M,CHUNKS)
  uint32_t most = rPairs(0);
  CUTE_UNROLL
  for (int i = 1; i < size(rPairs); ++i) {
    asm("max.NaN.[[ pair ]] %0, %0, %1;" : "+r"(most) : "r"(rPairs(i)));
  }
  Element const first = Element::bitcast(uint16_t(most));
  Element const second = Element::bitcast(uint16_t(most >> 16));
  return larger(number_of(first), number_of(second));
}
{% when None %}
// The largest of a thread's elements.
template <class Values>
CUTE_DEVICE
float
largest_of(Values const& rX)
{
  float most = number_of(rX(0));
  CUTE_UNROLL
  for (int i = 1; i < size(rX); ++i) {
    most = larger(most, number_of(rX(i)));
  }
  return most;
}
{% endmatch %}
