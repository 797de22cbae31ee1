// Combines what the splits of a row have left, always in the same order. A warp has a row of O: a query of a head.
CUTE_DEVICE
void
combine(Params const& params)
{
  auto const all = make_shape(params.hq, params.sq, params.b);
  int const number = blockIdx.x * [[ rows ]] + threadIdx.x / 32;
  if (number >= size(all)) {
    return;
  }
  int const lane = threadIdx.x % 32;
  auto const [head, query, batch] = idx2crd(number, all);
  int const row = query * group_of(params) + head % group_of(params);
  int const at  = row % size<0>(TileQ{});
  auto const numbers = works(params);
  int const first = numbers(row / size<0>(TileQ{}), head / group_of(params), 0, batch);
  int const apart = stride<2>(numbers);
  Parts const parts(params);
  float const sink = [[ sink ]];
  float most = sink;
  for (int split = 0; split < params.splits; ++split) {
    most = fmaxf(most, parts.sum(first + split * apart, at)[0]);
  }
  float const base = most == -INFINITY ? 0 : most;
  float sum = exp2_approximate(__fsub_rn(sink, base));
  constexpr int columns = ceil_div(Value{}, _32{});
  float values[columns] = {};
  for (int split = 0; split < params.splits; ++split) {
    int const work = first + split * apart;
    float const* const own = parts.sum(work, at);
    if (own[1] != 0) {
      float const factor = exp2_approximate(__fsub_rn(own[0], base));
      sum = __fmaf_rn(factor, own[1], sum);
      CUTE_UNROLL
      for (int n = 0; n < columns; ++n) {
        int const column = lane + 32 * n;
        if (column < Value{}) {
          values[n] = __fmaf_rn(factor, parts.row(work, at)[column], values[n]);
        }
      }
    }
  }
  auto const ptr_O = static_cast<Element*>(params.o)
                   + (batch * params.o_batch + query * params.o_row + head * params.o_head);
  float const reciprocal = __frcp_rn(sum);
  CUTE_UNROLL
  for (int n = 0; n < columns; ++n) {
    int const column = lane + 32 * n;
    if (column < Value{}) {
      ptr_O[column] = Element(sum == 0 ? 0.0f : __fmul_rn(values[n], reciprocal));
    }
  }
{%- if c.lse %}
  if (lane == 0) {
    constexpr float ln2 = 0.693147180559945f;
    auto const at_lse = batch * params.lse_batch + query * params.lse_row + head * params.lse_head;
    static_cast<float*>(params.lse)[at_lse] = sum == 0 ? -INFINITY : __fmaf_rn(most, ln2, logf(sum));
  }
{%- endif %}
}
