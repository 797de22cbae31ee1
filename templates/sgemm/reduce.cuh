// D = op(all partial sums added in the order of K, C, ..).
// Launch: [[ c.plan.entries()[1].threads ]] threads, ceil_div(M*N,[[ c.plan.entries()[1].threads ]]) x 1 x {% if c.d.recipe.batched %}L{% else %}1{% endif %} blocks.
CUTE_DEVICE
void
reduce([[ c.plan.name() ]]_params const& params)
{
  auto shape_NM = make_shape(params.n, params.m);
  int const thread_idx = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread_idx >= size(shape_NM)) {
    return;
  }
  auto [n, m] = idx2crd(thread_idx, shape_NM);

{% if c.d.recipe.batched %}  int const l = int(blockIdx.z);
{% endif %}{% for t in c.sums.iter() %}{% include "tensor.cuh" %}{% if c.d.recipe.batched %}(_,_,_,l){% endif %};  // (M,N,SPLIT)
{% endfor %}{% for t in c.epilogue() %}{% include "tensor.cuh" %}{% if c.d.recipe.batched %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}  Tensor tWmW = mW(m, n, _);  // (SPLIT)
  float sum = 0.0f;
  CUTE_UNROLL
  for (int s = 0; s < size(tWmW); ++s) {
    sum += tWmW(s);
  }

  Op const op{[[ c.op.scalars ]]};
  mD(m, n) = op(sum[[ c.arguments("m", "(m, n)") ]]);
}
