[[ c.banner ]]
//
// D = epilogue(A @ B{% if c.reads().len() > 0 %}, ..{% endif %}) by mma.sync: [[ c.majors() ]].
// Launch: [[ c.threads ]] threads, ceil_div(M,[[ c.tile[0] ]]) * ceil_div(N,[[ c.tile[1] ]]){% if c.batched() %} * L{% endif %} blocks, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/types.cuh" %}
struct Stages {
{% for t in c.tensors %}{% if !t.lent %}  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{% endif %}{% endfor %}};

union SharedStorage {
  Stages stages;
  // Once the last k-tile was read.
{% for t in c.tensors %}{% if t.lent %}  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{% endif %}{% endfor %}};
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "gemm/copy_inside.cuh" %}

{% include "gemm/store_part.cuh" %}

{% include "gemm/pack.cuh" %}
{% if c.rounds() %}
// Rounds f32, which ldmatrix brought, to tf32.
template <class Fragment>
CUTE_DEVICE
void
round(Fragment&& fragment)
{
  CUTE_UNROLL
  for (int i = 0; i < size(fragment); ++i) {
    fragment(i) = tfloat32_t(__uint_as_float(fragment(i).raw()));
  }
}
{% endif %}
// The parameters with factors as they are copied: where they lie, or packed. Rows begin and end at multiples of 16 bytes.
CUTE_DEVICE
[[ c.plan.name() ]]_params
copied([[ c.plan.name() ]]_params params)
{
  auto const workspace = static_cast<Element const*>(params.workspace);
{% for t in c.factors() %}  if (params.packs_[[ t.is.param ]] > 0) {
    params.[[ t.is.param ]] = workspace + params.packed_[[ t.is.param ]];
  }
{% for stride in c.strides(t) %}  params.[[ stride ]] = params.from_[[ stride ]];
{% endfor %}{% endfor %}  return params;
}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& given)
{
  assert_ieee();
  auto const params = copied(given);

{% include "gemm/tensors.cuh" %}
  //
  // Partition: what this thread copies, and what it computes
  //

  CopyA const copy_a;
  auto const thr_copy_a = copy_a.get_slice(threadIdx.x);
  Tensor tAgA = thr_copy_a.partition_S(gA);                                                    // (CPY,CPY_M,CPY_K,k)
  Tensor tAcA = thr_copy_a.partition_S(cA);                                                    // (CPY,CPY_M,CPY_K,k) -> (m,k)
  Tensor tAsA = thr_copy_a.partition_D(sA);                                                    // (CPY,CPY_M,CPY_K,STAGES)
  CopyB const copy_b;
  auto const thr_copy_b = copy_b.get_slice(threadIdx.x);
  Tensor tBgB = thr_copy_b.partition_S(gB);                                                    // (CPY,CPY_N,CPY_K,k)
  Tensor tBcB = thr_copy_b.partition_S(cB);                                                    // (CPY,CPY_N,CPY_K,k) -> (n,k)
  Tensor tBsB = thr_copy_b.partition_D(sB);                                                    // (CPY,CPY_N,CPY_K,STAGES)

  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x);
  Tensor tCrA = thr_mma.partition_fragment_A(sA(_,_,_0{}));                                    // (MMA,MMA_M,MMA_K)
  Tensor tCrB = thr_mma.partition_fragment_B(sB(_,_,_0{}));                                    // (MMA,MMA_N,MMA_K)
  Tensor tCrC = partition_fragment_C(mma, TileD{});                                            // (MMA,MMA_M,MMA_N)
  clear(tCrC);

  LdsmA const ldsm_a;
  auto const thr_ldsm_a = ldsm_a.get_slice(threadIdx.x);
  Tensor tXsA = thr_ldsm_a.partition_S(sA);                                                    // (CPY,MMA_M,MMA_K,STAGES)
  Tensor tXrA = thr_ldsm_a.retile_D(tCrA);                                                     // (CPY,MMA_M,MMA_K)
  LdsmB const ldsm_b;
  auto const thr_ldsm_b = ldsm_b.get_slice(threadIdx.x);
  Tensor tXsB = thr_ldsm_b.partition_S(sB);                                                    // (CPY,MMA_N,MMA_K,STAGES)
  Tensor tXrB = thr_ldsm_b.retile_D(tCrB);                                                     // (CPY,MMA_N,MMA_K)

{% include "gemm/mainloop_cp_async.cuh" %}

{% include "gemm/epilogue.cuh" %}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
