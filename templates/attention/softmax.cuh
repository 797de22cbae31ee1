// 2^x with a relative error of 2^-22 at most; results below 2^-126 are 0.
CUTE_DEVICE
float
exp2_approximate(float x)
{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The accumulators of a thread as (rows,columns).
template <class TCrC>
CUTE_DEVICE
auto
by_rows(TCrC&& tCrC)
{
  auto const layout = tCrC.layout();                                                           // ((COLUMN,ROW,..),MMA_M,MMA_N)
  auto const own = append<3>(get<0>(layout));                                                  // (COLUMN,ROW,BLOCK)
  return make_tensor(tCrC.data(), make_layout(make_layout(get<1>(own), get<1>(layout)),
                                              make_layout(get<0>(own), get<2>(own), get<2>(layout))));  // ((ROW,..),(COLUMN,..))
}

// The four lanes that share a row combine what they have of it.
template <class Op>
CUTE_DEVICE
float
of_lanes(float x, Op const& op)
{
  x = op(x, __shfl_xor_sync(0xffffffff, x, 1));
  return op(x, __shfl_xor_sync(0xffffffff, x, 2));
}

// Online softmax of a thread's rows. Scores are scaled to base 2, and relative to the largest so far. Every lane has the maximum of
// its rows, and the sum of its own columns.
template <int Rows>
struct Softmax
{
  float most[Rows];
  float sum[Rows];
  float factor[Rows];  // by which what was relative to the maximum before becomes relative to the new one

  CUTE_DEVICE
  Softmax()
  {
    CUTE_UNROLL
    for (int row = 0; row < Rows; ++row) {
      most[row] = -INFINITY;
      sum[row]  = 0;
    }
  }

  // Scores become weights.
  template <class Scores>
  CUTE_DEVICE
  void
  step(Scores&& scores, float scale)
  {
    CUTE_UNROLL
    for (int row = 0; row < Rows; ++row) {
      float largest = scores(row,_0{});
      CUTE_UNROLL
      for (int n = 1; n < size<1>(scores); ++n) {
        largest = fmaxf(largest, scores(row,n));
      }
      largest = of_lanes(largest, [](float x, float y) { return fmaxf(x, y); });
      float const before = most[row];
      most[row] = fmaxf(before, __fmul_rn(largest, scale));
      // As long as a row has no key, its weights are 0, and not NaN.
      float const base = most[row] == -INFINITY ? 0 : most[row];
      factor[row] = exp2_approximate(__fsub_rn(before, base));
      float added = 0;
      CUTE_UNROLL
      for (int n = 0; n < size<1>(scores); ++n) {
        scores(row,n) = exp2_approximate(__fmaf_rn(scores(row,n), scale, -base));
        added = __fadd_rn(added, scores(row,n));
      }
      sum[row] = __fmaf_rn(sum[row], factor[row], added);
    }
  }

  // The weighted sum so far becomes relative to the new maximum.
  template <class Output>
  CUTE_DEVICE
  void
  rescale(Output&& output) const
  {
    CUTE_UNROLL
    for (int row = 0; row < Rows; ++row) {
      CUTE_UNROLL
      for (int n = 0; n < size<1>(output); ++n) {
        output(row,n) = __fmul_rn(output(row,n), factor[row]);
      }
    }
  }

{% if c.recipe.sinks -%}
{% include "attention/sink.cuh" %}

{% endif -%}
  // The sum of a whole row.
  CUTE_DEVICE
  float
  whole(int row) const
  {
    return of_lanes(sum[row], [](float x, float y) { return __fadd_rn(x, y); });
  }
};
