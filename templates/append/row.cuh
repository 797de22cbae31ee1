// A new row: a head of the i-th new key, or query, of a sequence.
struct Row
{
  int batch;
  int i;
  int head;
  int position;  // in the sequence, whose last key is the last new one
};

CUTE_DEVICE
Row
row_of(Params const& params, int number, int heads)
{
  auto const [head, i, batch] = idx2crd(number, make_shape(heads, params.sq, params.b));
  int const keys = cute::max(0, static_cast<int const*>(params.lengths)[batch]);
  return {batch, i, head, keys - params.sq + i};
}

// A row of a tensor (B,SQ,H,D).
CUTE_DEVICE
Element const*
row_in(void const* tensor, int64_t batch, int64_t i, int64_t head, Row const& row)
{
  return static_cast<Element const*>(tensor) + (row.batch * batch + row.i * i + row.head * head);
}
