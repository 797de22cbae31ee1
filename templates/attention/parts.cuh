// What works leave in the workspace: of each row the largest score in base 2, the sum of weights, and the weighted sum of values,
// both relative to it. Where the sum of weights is 0 there are no values.
struct Parts
{
  using Queries = decltype(size<0>(TileO{}));
  using Values  = decltype(size<1>(TileO{}));

  float* values;
  float* sums;

  CUTE_DEVICE
  Parts(Params const& params)
  {
    values = static_cast<float*>(params.workspace);
    sums   = values + int64_t(size(works(params))) * size(TileO{});
  }

  CUTE_DEVICE
  float*
  row(int work, int row) const
  {
    return values + (int64_t(work) * Queries{} + row) * Values{};
  }

  CUTE_DEVICE
  float*
  sum(int work, int row) const
  {
    return sums + (int64_t(work) * Queries{} + row) * 2;
  }
};

template <class TOrO, class Rows>
CUTE_DEVICE
void
give(Params const& params, Work const& work, TOrO& tOrO, Rows const& softmax)
{
  Parts const parts(params);
  Tensor rows_o = by_rows(tOrO);                                                               // (ROWS,COLUMNS)
  Tensor cO = make_identity_tensor(TileO{});                                                   // (BM,DV) -> (row,element)
  Tensor rows_c = by_rows(Output{}.get_slice(threadIdx.x).partition_C(cO));                      // (ROWS,COLUMNS) -> (row,element)
  CUTE_UNROLL
  for (int row = 0; row < size<0>(rows_o); ++row) {
    float const sum = softmax.whole(row);
    int const at = get<0>(rows_c(row,_0{}));
    if (work.first + at < work.rows()) {
      if (get<1>(rows_c(row,_0{})) == 0) {
        float* const own = parts.sum(work.number, at);
        own[0] = softmax.most[row];
        own[1] = sum;
      }
      float* const own = parts.row(work.number, at);
      CUTE_UNROLL
      for (int n = 0; n < size<1>(rows_o); ++n) {
        if (sum != 0) {
          own[get<1>(rows_c(row,n))] = rows_o(row,n);
        }
      }
    }
  }
}
