[[ c.banner ]]
//
// D = A @ B by mma.sync: A is (M,K) and B is (N,K), both K-major; D is (M,N), N-major.
// Launch: [[ c.threads ]] threads, ceil_div(M,[[ c.tile[0] ]]) * ceil_div(N,[[ c.tile[1] ]]) blocks, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/types.cuh" %}
struct SharedStorage {
{% for t in c.tensors %}  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{% endfor %}};
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "gemm/copy_inside.cuh" %}

{% include "gemm/epilogue.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
  Tensor mA = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.a)),
                          make_shape(params.m, params.k), make_stride(params.lda, _1{}));      // (M,K)
  Tensor mB = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.b)),
                          make_shape(params.n, params.k), make_stride(params.ldb, _1{}));      // (N,K)
  Tensor mD = make_tensor(make_gmem_ptr(static_cast<ElementD*>(params.d)),
                          make_shape(params.m, params.n), make_stride(params.ldd, _1{}));      // (M,N)

{% include "gemm/tensors.cuh" %}
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), TileA{}, make_coord(get<0>(crd_D), _));  // (BM,BK,k) -> (m,k)
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), TileB{}, make_coord(get<1>(crd_D), _));  // (BN,BK,k) -> (n,k)

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
  Tensor tCgD = thr_mma.partition_C(gD);                                                       // (MMA,MMA_M,MMA_N)
  Tensor tCcD = thr_mma.partition_C(cD);                                                       // (MMA,MMA_M,MMA_N) -> (m,n)
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

  store_elements(tCrC, tCcD, shape(mD), tCgD);
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
