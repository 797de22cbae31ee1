[[ banner ]]
//
// Sums along rows: [[ y.name ]](m) = the sum over n of the function, applied to the inputs' elements at (m,n).
// Launch: [[ plan.threads() ]] threads, ceil_div(M,[[ d.rows() ]]) blocks along x, no dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}

{% for o in plan.operands() %}using Element[[ o.name ]] = [[ o.dtype.cxx() ]];
{% endfor %}using ThrShape = Shape<_[[ d.group() ]],_[[ d.rows() ]]>;  // (threads of a row, rows of the CTA)

//
// Preconditions: every number that the plan computed
//

{% for o in plan.operands() %}static_assert(sizeof(Element[[ o.name ]]) == [[ o.dtype.bytes().0 ]], "type of [[ o.name ]]");
{% endfor %}static_assert(size(ThrShape{}) == [[ plan.threads() ]], "every thread adds");
static_assert(size<0>(ThrShape{}) == [[ warps ]] * 32, "whole warps add up a row");

[[ helpers ]]// [[ d.recipe.function ]], computed in float, every operation rounded by itself
[[ functor ]]
CUTE_DEVICE
void
kernel([[ plan.name() ]]_params const& params)
{
  assert_ieee();

  //
  // Tensors
  //

  auto shape_MN = make_shape(params.m, params.n);  // (M,N)
{% for t in inputs %}{% let x = t.name %}  auto const ptr_[[ x ]] = static_cast<Element[[ x ]] const*>(params.[[ t.param ]]);
  auto const stride_[[ x ]] = make_stride(params.ld[[ t.param ]], [[ t.stride_n ]]);
  Tensor m[[ x ]] = make_tensor(make_gmem_ptr(ptr_[[ x ]]), shape_MN, stride_[[ x ]]);  // (M,N)
{% endfor %}  Tensor m[[ y.name ]] = make_tensor(make_gmem_ptr(static_cast<Element[[ y.name ]]*>(params.[[ y.param ]])),
                          make_shape(params.m),
                          make_stride(params.inc[[ y.param ]]));  // (M)

  //
  // Each thread adds every size<0>(ThrShape)-th element of its row
  //

  auto const thr_crd = idx2crd(int(threadIdx.x), ThrShape{});  // (thread of the row, row of the CTA)
  int const m = int(blockIdx.x) * size<1>(ThrShape{}) + get<1>(thr_crd);
  if (m >= params.m) {
    return;  // the whole warp, or the whole CTA if it has one row
  }
  Op const op{[[ scalars ]]};
  float sum = 0;
  for (int n = get<0>(thr_crd); n < params.n; n += size<0>(ThrShape{})) {
    sum = __fadd_rn(sum, op([[ self.arguments("m", "(m, n)") ]]));
  }

{% if warps > 1 %}{% include "sum/reduce_block.cuh" %}{% else %}{% include "sum/reduce_warp.cuh" %}{% endif %}
  if (get<0>(thr_crd) == 0) {
    m[[ y.name ]](m) = [[ self.result("sum") ]];
  }
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
