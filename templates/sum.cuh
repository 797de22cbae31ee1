[[ banner ]]
//
// Sums along rows: Y(m) = the sum over n of the function, applied to the inputs' elements at (m,n).
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
{% endfor %}static_assert(size(ThrShape{}) == [[ plan.threads() ]] && size<0>(ThrShape{}) == [[ d.group() / 32 ]] * 32, "whole warps add up a row");

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
{% for o in plan.operands() %}{% if !loop.last %}  Tensor m[[ o.name ]] = make_tensor(make_gmem_ptr(static_cast<Element[[ o.name ]] const*>(params.[[ o.param ]])), shape_MN,
                          make_stride(params.ld[[ o.param ]], {% match o.strides[1] %}{% when ModeStride::Unit %}_1{}{% when ModeStride::Broadcast %}_0{}{% when ModeStride::Dynamic %}params.inc[[ o.param ]]{% endmatch %}));  // (M,N)
{% endif %}{% endfor %}  Tensor mY = make_tensor(make_gmem_ptr(static_cast<ElementY*>(params.y)), make_shape(params.m),
                          make_stride(params.incy));  // (M)

  //
  // Each thread adds every size<0>(ThrShape)-th element of its row
  //

  auto const thr_crd = idx2crd(int(threadIdx.x), ThrShape{});  // (thread of the row, row of the CTA)
  int const m = int(blockIdx.x) * size<1>(ThrShape{}) + get<1>(thr_crd);
  if (m >= params.m) {
    return;  // the whole warp, or the whole CTA if it has one row
  }
  Op const op{ {%- for s in plan.scalars() %}{% if !loop.first %}, {% endif %}params.[[ s ]]{% endfor -%} };
  float sum = 0;
  for (int n = get<0>(thr_crd); n < params.n; n += size<0>(ThrShape{})) {
    sum = __fadd_rn(sum, op({% for load in loads %}{% if !loop.first %}, {% endif %}[[ load ]]{% endfor %}));
  }

  //
  // Reduce: lanes in pairs{% if d.group() > 32 %}, then warps in order{% endif %}
  //

  CUTE_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffff, sum, lanes));
  }
{% if d.group() > 32 %}  __shared__ float smem[size<0>(ThrShape{}) / 32];
  Tensor sSum = make_tensor(make_smem_ptr(smem), Shape<_[[ d.group() / 32 ]]>{});  // (WARPS)
  if (threadIdx.x % 32 == 0) {
    sSum(threadIdx.x / 32) = sum;
  }
  __syncthreads();
  sum = sSum(0);
  CUTE_UNROLL
  for (int warp = 1; warp < size(sSum); ++warp) {
    sum = __fadd_rn(sum, sSum(warp));
  }
{% endif %}  if (get<0>(thr_crd) == 0) {
    mY(m) = [[ store ]];
  }
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
