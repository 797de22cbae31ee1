[[ c.banner ]]
//
// Elementwise, one thread per element: tensors (M,N)[[ c.modes_m ]].
// Launch: [[ c.plan.threads() ]] threads, ceil_div(M*N,[[ c.plan.threads() ]]) blocks along x.
{% include "elementwise_apply/head.cuh" %}
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "elementwise_apply/tensors.cuh" %}
  //
  // One element per thread: neighbouring threads take neighbouring columns
  //

  int const thread_idx = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread_idx >= size(shape_MN)) {
    return;
  }
  auto [n, m] = idx2crd(thread_idx, make_shape(get<1>(shape_MN), size<0>(shape_MN)));

{% for t in c.inputs() %}  auto const r[[ t.name ]] = m[[ t.name ]](m, n);
{% endfor %}
  Op const op{[[ c.scalars ]]};
  auto const y = op([[ c.arguments("r", "") ]]);
{% for t in c.outputs() %}  m[[ t.name ]](m, n) = [[ c.result(t, "y") ]];
{% endfor -%}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
