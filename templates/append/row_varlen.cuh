// A new row: a head of the i-th of all new keys, or queries.
struct Row
{
  int batch;  // its sequence, -1 for none
  int i;
  int head;
  int position;  // in the sequence, whose last key is the last new one
};

{% include "attention/start_of.cuh" %}

// The number of the first start behind row i. A warp looks at 32 starts at a time: those that go back allow no bisection.
CUTE_DEVICE
int
first_behind(Params const& params, int i)
{
  for (int first = 0; first < params.starts; first += 32) {
    int const number = first + threadIdx.x % 32;
    bool const is_behind = number < params.starts && start_of(params.startsq, number, params.tq) > i;
    unsigned const found = __ballot_sync(0xffffffff, is_behind);
    if (found != 0) {
      return first + __ffs(found) - 1;
    }
  }
  return params.starts;
}

// Row i is of sequence b where start b + 1 is the first one behind it. So starts that go back count as the furthest so far.
// `behind` is the first start behind an earlier row.
CUTE_DEVICE
Row
row_of(Params const& params, int number, int heads, int behind)
{
  auto const [head, i] = idx2crd(number, make_shape(heads, params.tq));
  while (behind < params.starts && start_of(params.startsq, behind, params.tq) <= i) {
    ++behind;
  }
  if (behind == 0 || behind == params.starts) {
    return {-1, i, head, -1};
  }
  int const keys = cute::max(0, static_cast<int const*>(params.lengths)[behind - 1]);
  return {behind - 1, i, head, keys - start_of(params.startsq, behind, params.tq) + i};
}

// A row of a tensor (TQ,H,D).
CUTE_DEVICE
Element const*
row_in(void const* tensor, int64_t i, int64_t head, Row const& row)
{
  return static_cast<Element const*>(tensor) + (row.i * i + row.head * head);
}
{%- if *queries %}

// What is stored of a query: 0 where it belongs to no sequence.
struct OfSequence
{
  bool has_one;

  CUTE_DEVICE Element operator()(float x) const { return Element(has_one ? x : 0.0f); }
  CUTE_DEVICE Element operator()(Element x) const { return has_one ? x : Element(0); }
};
{%- endif %}
