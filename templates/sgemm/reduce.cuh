// D = op(the sum of all partial products, in order, C, ..).
// Launch: [[ reduce_threads ]] threads, ceil_div(M*N,[[ reduce_threads ]]) x 1 x [[ c.batches_doc_l ]] blocks.
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

{% for o in reduce_tensors %}  Tensor m[[ o.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ o.pointee ]]*>(params.[[ o.param ]])), [[ o.shape ]],
                          [[ o.strides ]])[[ o.slice ]];  // [[ o.modes ]]
{% endfor %}  Tensor tWmW = mW(m, n, _);  // (SPLIT)
  float sum = 0.0f;
  CUTE_UNROLL
  for (int s = 0; s < size(tWmW); ++s) {
    sum += tWmW(s);
  }

  Op const op{[[ c.scalars ]]};
  mD(m, n) = op(sum[[ c.arguments("m@(m, n)") ]]);
}
