// D = op(all partial sums added in the order of K, C, ..).
// Launch: [[ c.reduce_threads() ]] threads, ceil_div(M*N,[[ c.reduce_threads() ]]) x 1 x [[ c.batches_doc() ]] blocks.
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
  int const l = int(blockIdx.z);

{% let tensors = c.epilogue() %}{% include "sgemm/tensors.cuh" %}
{% for t in c.sums %}{% include "tensor.cuh" %}(_,_,_,l);  // (M,N,SPLIT)
{% endfor %}  Tensor tWmW = mW(m, n, _);  // (SPLIT)
  float sum = 0.0f;
  CUTE_UNROLL
  for (int s = 0; s < size(tWmW); ++s) {
    sum += tWmW(s);
  }

  Op const op{[[ c.op.scalars ]]};
  mD(m, n) = op(sum[[ c.arguments("m", "(m, n)") ]]);
}
