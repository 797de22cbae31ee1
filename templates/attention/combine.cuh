// What is known of a row: the largest score in base 2, the sum of weights, and a thread's elements of the weighted sum of values,
// both relative to it.
template <class Values>
struct State
{
  float most;
  float sum;
  Values values;

  // Adds what is known of other keys.
  template <class Other>
  CUTE_DEVICE
  void
  add(float most_of_other, float sum_of_other, Other const& other)
  {
    float const before = most;
    most = fmaxf(before, most_of_other);
    float const base   = most == -INFINITY ? 0 : most;
    float const own    = exp2_approximate(__fsub_rn(before, base));
    float const factor = exp2_approximate(__fsub_rn(most_of_other, base));
    sum = __fmaf_rn(factor, sum_of_other, __fmul_rn(own, sum));
    CUTE_UNROLL
    for (int i = 0; i < size(values); ++i) {
      values(i) = __fmaf_rn(factor, other(i), __fmul_rn(own, values(i)));
    }
  }
};

// Combines what the splits of a row of O have left, always in the same order: each warp every [[ warps ]]th of them, then the first
// warp what all warps have.
CUTE_DEVICE
void
combine(Params const& params)
{
  constexpr int warps = [[ warps ]];
  using Combined = Shape<_1,Int<[[ columns ]]>>;
  constexpr int values = size(Combined{});
  __shared__ float shared[warps][values + 8];  // elements, the largest score, the sum of weights; in all a multiple of 128 bytes
  int const lane = threadIdx.x % 32;
  int const warp = threadIdx.x / 32;
  Tensor tOcO = LoadParts{}.get_slice(lane).partition_S(make_identity_tensor(Combined{}))(_,_0{},_);  // (CPY,CPY_N) -> (0,element)
  auto const first_element = [&](int n) { return int(get<1>(tOcO(_0{},n))); };
  auto const vector = [&](auto* row, int n) {
    return make_tensor(make_gmem_ptr(row + first_element(n)), make_layout(size<0>(tOcO)));       // (CPY)
  };
  int const output = blockIdx.x;
  auto const crd   = idx2crd(output, outputs(params));
  int const head   = get<0>(crd);
  Parts const parts(params);
  Tensor part = make_tensor<float>(shape(tOcO));                                                 // (CPY,CPY_N)
  clear(part);
  float const sink = warp == 0 ? [[ sink ]] : -INFINITY;
  State<decltype(part)> state{sink, sink == -INFINITY ? 0.0f : exp2_approximate(__fsub_rn(sink, sink)), part};
#pragma unroll 4  // loads of several splits are on their way at once
  for (int split = warp; split < params.splits; split += warps) {
    float const* const own = parts.sum(split, output);
    CUTE_UNROLL
    for (int n = 0; n < size<1>(part); ++n) {
      if (first_element(n) < Value{}) {
        copy_all(LoadParts{}, vector(parts.row(split, output), n), part(_,n));
      }
    }
    state.add(own[0], own[1], part);
  }
  CUTE_UNROLL
  for (int i = 0; i < size(part); ++i) {
    shared[warp][get<1>(tOcO(i))] = state.values(i);
  }
  shared[warp][values]     = state.most;
  shared[warp][values + 1] = state.sum;
  __syncthreads();
  if (warp > 0) {
    return;
  }
  CUTE_UNROLL
  for (int other = 1; other < warps; ++other) {
    CUTE_UNROLL
    for (int i = 0; i < size(part); ++i) {
      part(i) = shared[other][get<1>(tOcO(i))];
    }
    state.add(shared[other][values], shared[other][values + 1], part);
  }
  auto const at_o = [[ c.row_of("o") ]];
  auto const ptr_O = static_cast<Element*>(params.o) + at_o;
{%- if c.recipe.is_narrow() %}
  float const of_values = scale_of(params.scalev, head / group_of(params));
{%- endif %}
  float const reciprocal = __frcp_rn(state.sum);
  Tensor rounded_values = make_tensor<Element>(shape(tOcO));                                     // (CPY,CPY_N)
  CUTE_UNROLL
  for (int n = 0; n < size<1>(part); ++n) {
    CUTE_UNROLL
    for (int v = 0; v < size<0>(part); ++v) {
      float const value = __fmul_rn(state.values(v,n), reciprocal);
      rounded_values(v,n) = Element(state.sum == 0 ? 0.0f : [[ c.of_values("value") ]]);
    }
    if (first_element(n) < Value{}) {
      copy_all(StoreO{}, rounded_values(_,n), vector(ptr_O, n));
    }
  }
{%- if c.recipe.lse %}
  if (lane == 0) {
    constexpr float ln2 = 0.693147180559945f;
    auto const at_lse = [[ c.row_of("lse") ]];
    static_cast<float*>(params.lse)[at_lse] = state.sum == 0 ? -INFINITY : __fmaf_rn(state.most, ln2, logf(state.sum));
  }
{%- endif %}
}
