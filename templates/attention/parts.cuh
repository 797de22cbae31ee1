// What works leave in the workspace: of each row of O and each split the largest score in base 2, the sum of weights, and the
// weighted sum of values, both relative to it.
struct Parts
{
  using Values = decltype(size<1>(TileO{}));

  int64_t rows;  // of O
  float* values;
  float* sums;

  CUTE_DEVICE
  Parts(Params const& params) : rows(size(outputs(params)))
  {
    values = static_cast<float*>(params.workspace);
    sums   = values + params.splits * rows * Values{};
  }

  CUTE_DEVICE
  float*
  row(int split, int output) const
  {
    return values + (split * rows + output) * Values{};
  }

  CUTE_DEVICE
  float*
  sum(int split, int output) const
  {
    return sums + (split * rows + output) * 2;
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
      int const output = work.output(params, at);
      if (get<1>(rows_c(row,_0{})) == 0) {
        float* const own = parts.sum(work.split, output);
        own[0] = softmax.most[row];
        own[1] = sum;
      }
      float* const own = parts.row(work.split, output);
      CUTE_UNROLL
      for (int n = 0; n < size<1>(rows_o); ++n) {
        // Weights of 0 have summed up no values, though some may be infinite.
        own[get<1>(rows_c(row,n))] = sum == 0 ? 0 : rows_o(row,n);
      }
    }
  }
}
