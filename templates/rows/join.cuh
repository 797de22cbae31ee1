// Which thread has which part of which column
{% for alias in aliases %}using [[ alias.name ]] = [[ alias.ty ]];  // [[ alias.comment ]]
{% endfor %}{% for assertion in assertions %}static_assert([[ assertion.condition ]], "[[ assertion.what ]]");
{% endfor %}
// Every warp takes every 32nd part of 32 columns, one for each lane; then it joins the warps' results of one column.
// For columns past the end it gives what nothing gives.
template <class Op, class Parts>
CUTE_DEVICE
Number
joined([[ plan.name() ]]_params const& params, int output, Parts& sParts)
{
  Tensor mPart = parts_of(params)(_, _, output);  // (PARTS,N)
  auto const warp = int(threadIdx.x) / 32;
  auto const lane = int(threadIdx.x) % 32;
  int const n = int(blockIdx.x) * size<0>(sParts) + lane;
  auto state = Op::nothing();
  if (n < params.n) {
#pragma unroll 8  // loads of so many are on their way at once
    for (int part = warp; part < params.parts; part += size<1>(sParts)) {
      state = Op::of(state, mPart(part, n));
    }
  }
  sParts(lane, warp) = state;
  __syncthreads();
  return Op::result(of_lanes<Op, 32>(sParts(warp, lane)));
}

// Launch: [[ threads ]] threads, (ceil_div(N,32), [[ outputs.len() ]]) blocks.
CUTE_DEVICE
void
[[ join ]]([[ plan.name() ]]_params const& params)
{
  __shared__ Number smemParts[cosize_v<SmemParts>];
  Tensor sParts = make_tensor(make_smem_ptr(smemParts), SmemParts{});  // (COLUMNS,WARPS)
  int const n = int(blockIdx.x) * 32 + int(threadIdx.x) / 32;
  bool const writes = threadIdx.x % 32 == 0 && n < params.n;
{% for o in outputs %}  if (blockIdx.y == [[ loop.index0 ]]) {
    auto const ptr_[[ o.of.name ]] = make_gmem_ptr(static_cast<Element[[ o.of.name ]]*>(params.[[ o.of.param ]]));
    Tensor m[[ o.of.name ]] = make_tensor(ptr_[[ o.of.name ]], [[ o.of.shape ]], [[ o.of.strides ]]);  // (N)
    Number const result = joined<[[ o.op ]]>(params, [[ loop.index0 ]], sParts);
    if (writes) {
      m[[ o.of.name ]](n) = [[ o.stored ]];
    }
  }
{% endfor %}}
