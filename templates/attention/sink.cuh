  // Adds the weight of a score of base 2 that has no value. One of four lanes adds it.
  template <class Output>
  CUTE_DEVICE
  void
  sink(float score, Output&& output)
  {
    CUTE_UNROLL
    for (int row = 0; row < Rows; ++row) {
      float const before = most[row];
      most[row] = fmaxf(before, score);
      float const base   = most[row] == -INFINITY ? 0 : most[row];
      float const weight = threadIdx.x % 4 == 0 ? exp2_approximate(__fsub_rn(score, base)) : 0;
      factor[row] = exp2_approximate(__fsub_rn(before, base));
      sum[row]    = __fmaf_rn(sum[row], factor[row], weight);
    }
    rescale(output);
  }
