// Combines what the splits of a row have left, always in the same order. A warp has a row of O: a query of a head.
CUTE_DEVICE
void
combine(Params const& params)
{
  auto const all = make_shape(params.hq, params.sq, params.b);
  using Combined = Shape<Int<[[ combined[0] ]]>,Int<[[ combined[1] ]]>>;
  auto const thr_load = LoadParts{}.get_slice(threadIdx.x);
  Tensor tOcO = thr_load.partition_S(make_identity_tensor(Combined{}))(_,_0{},_);                // (CPY,CPY_N) -> (row,element)
  int const number = blockIdx.x * size<0>(Combined{}) + get<0>(tOcO(_0{},_0{}));
  if (number >= size(all)) {
    return;
  }
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
  Tensor values = make_tensor<float>(shape(tOcO));                                               // (CPY,CPY_N)
  Tensor part   = make_fragment_like(values);                                                    // (CPY,CPY_N)
  clear(values);
  auto const first_element = [&](int n) { return int(get<1>(tOcO(_0{},n))); };
  auto const vector = [&](auto* row, int n) {
    return make_tensor(make_gmem_ptr(row + first_element(n)), make_layout(size<0>(values)));     // (CPY)
  };
  for (int split = 0; split < params.splits; ++split) {
    int const work = first + split * apart;
    float const* const own = parts.sum(work, at);
    if (own[1] != 0) {
      float const factor = exp2_approximate(__fsub_rn(own[0], base));
      sum = __fmaf_rn(factor, own[1], sum);
      CUTE_UNROLL
      for (int n = 0; n < size<1>(values); ++n) {
        if (first_element(n) < Value{}) {
          copy_all(LoadParts{}, vector(parts.row(work, at), n), part(_,n));
          CUTE_UNROLL
          for (int v = 0; v < size<0>(values); ++v) {
            values(v,n) = __fmaf_rn(factor, part(v,n), values(v,n));
          }
        }
      }
    }
  }
  auto const ptr_O = static_cast<Element*>(params.o)
                   + (batch * params.o_batch + query * params.o_row + head * params.o_head);
  float const reciprocal = __frcp_rn(sum);
  Tensor rounded_values = make_tensor<Element>(shape(tOcO));                                     // (CPY,CPY_N)
  CUTE_UNROLL
  for (int n = 0; n < size<1>(values); ++n) {
    CUTE_UNROLL
    for (int v = 0; v < size<0>(values); ++v) {
{%- if c.narrow %}
      float const of_values = scale_of(params.scalev, head / group_of(params));
      rounded_values(v,n) = Element(sum == 0 ? 0.0f : __fmul_rn(__fmul_rn(values(v,n), reciprocal), of_values));
{%- else %}
      rounded_values(v,n) = Element(sum == 0 ? 0.0f : __fmul_rn(values(v,n), reciprocal));
{%- endif %}
    }
    if (first_element(n) < Value{}) {
      copy_all(StoreO{}, rounded_values(_,n), vector(ptr_O, n));
    }
  }
{%- if c.lse %}
  if (first_element(0) == 0) {
    constexpr float ln2 = 0.693147180559945f;
    auto const at_lse = batch * params.lse_batch + query * params.lse_row + head * params.lse_head;
    static_cast<float*>(params.lse)[at_lse] = sum == 0 ? -INFINITY : __fmaf_rn(most, ln2, logf(sum));
  }
{%- endif %}
}
