[[ c.banner ]]
//
// D = A @ B by TMA and WGMMA: A is (M,K) and B is (N,K), both K-major; D is (M,N), N-major.
// Launch: [[ c.threads ]] threads, ceil_div(M,[[ c.tile[0] ]]) * ceil_div(N,[[ c.tile[1] ]]) blocks, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/types.cuh" %}
// What CuTe copies by a tensor map that the launch gives: the box and its coordinates follow from the tile, from its layout in
// shared memory, and from which stride is 1.
template <class Smem, class Tile>
using Tma = decltype(make_tma_copy(SM90_TMA_LOAD{},
                                   make_tensor(make_gmem_ptr(static_cast<Element const*>(nullptr)),
                                               make_layout(make_shape(0, 0), make_stride(int64_t(0), _1{}))),
                                   Smem{}(_,_,_0{}), Tile{}, _1{}));
using TmaA = Tma<SmemA, TileA>;
using TmaB = Tma<SmemB, TileB>;

{% include "gemm/pipeline.cuh" %}

struct SharedStorage {
{% for t in c.tensors %}  alignas([[ t.align.0 ]]) Element [[ t.name|lower ]][cosize_v<Smem[[ t.name ]]>];
{% endfor %}  Barriers barriers;
};
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "gemm/producer.cuh" %}

{% include "gemm/consumer.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
  Tensor mA = TmaA{}.get_tma_tensor(make_shape(params.m, params.k));                           // (M,K) -> (k,m)
  Tensor mB = TmaB{}.get_tma_tensor(make_shape(params.n, params.k));                           // (N,K) -> (k,n)
  Tensor mD = make_tensor(make_gmem_ptr(static_cast<ElementD*>(params.d)),
                          make_shape(params.m, params.n), make_stride(params.ldd, _1{}));      // (M,N)

{% include "gemm/tensors.cuh" %}

  if (threadIdx.x == 0) {
    CUTE_UNROLL
    for (int stage = 0; stage < size<2>(SmemA{}); ++stage) {
      shared.barriers.full[stage].init(1);
      shared.barriers.empty[stage].init([[ consumer_warps ]]);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();  // the barriers are there for all

  if (threadIdx.x >= size(Mma{})) {
    if (elect_one_sync() && k_tiles > 0) {
      produce(params, gA, gB, sA, sB, shared.barriers);
    }
    return;
  }

  Mma const mma;
  auto const thr_mma = mma.get_slice(threadIdx.x);
  Tensor tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));                              // (MMA,MMA_M,MMA_K,STAGES)
  Tensor tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));                              // (MMA,MMA_N,MMA_K,STAGES)
  Tensor tCgD = thr_mma.partition_C(gD);                                                       // (MMA,MMA_M,MMA_N)
  Tensor tCcD = thr_mma.partition_C(cD);                                                       // (MMA,MMA_M,MMA_N) -> (m,n)
  Tensor tCrC = partition_fragment_C(mma, TileD{});                                            // (MMA,MMA_M,MMA_N)
  clear(tCrC);
  consume(k_tiles, mma, tCrA, tCrB, tCrC, shared.barriers);

{% include "gemm/epilogue.cuh" %}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
