[[ c.banner ]]
//
// D = epilogue(A @ B{% if c.reads().len() > 0 %}, ..{% endif %}) by TMA and WGMMA: [[ c.majors() ]].
// Launch: [[ c.threads ]] threads, clusters of [[ cluster[0] ]] x [[ cluster[1] ]]{% if c.splits() > 1 %} x [[ c.splits() ]]{% endif %}, as many of them as are resident, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

{% if let Some(name) = wants %}#ifndef [[ name ]]
#ifdef CUTE_HOST_DEVICE
#error "define [[ name ]] before CuTe's headers: without it they lack the WGMMA of this BN"
#endif
#define [[ name ]]
#endif
{% endif %}#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/tma.cuh" %}

{% include "gemm/types.cuh" %}
using Cluster = [[ c.cluster_type() ]];  // CTAs along (M,N)
{% if c.splits() > 1 %}constexpr int splits = [[ c.splits() ]];  // split-K: CTAs of a cluster that share a tile, each with its k-tiles
{% endif %}constexpr int ctas   = size(Cluster{}){% if c.splits() > 1 %} * splits{% endif %};  // per cluster
constexpr int teams     = [[ teams ]];{% if teams > 1 %}  // ping-pong: each team of warpgroups computes its own tile{% else %}  // all warpgroups compute each tile together{% endif %}
constexpr int consumers = teams * size(Mma{});  // threads

{% include "gemm/scheduler.cuh" %}

{% include "gemm/pipeline.cuh" %}

struct SharedStorage {
{% for t in c.tensors %}  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{% endfor %}  Barriers barriers;
};
static_assert(size(Mma{}) / 32 * sharers == [[ arrivals.empty ]], "arrivals at an empty barrier");
{% if c.splits() > 1 %}static_assert(size(Mma{}) / 32 * (splits - 1) == [[ arrivals.parts ]], "arrivals at a barrier of partial sums");
{% endif %}static_assert(sizeof(Element) * (size(TileA{}) + size(TileB{})) == [[ arrivals.bytes.0 ]], "bytes of a stage");
{% if keeps %}static_assert(offsetof(SharedStorage, a) == sizeof(ElementD) * cosize_v<SmemD> &&
              sizeof(ElementD) * cosize_v<SmemDA> <= offsetof(SharedStorage, b), "D's last tile extends into A's stages");
{% endif %}static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "copy_all.cuh" %}

{% if c.cuts() %}{% include "gemm/outside.cuh" %}

{% endif %}{% include "gemm/producer.cuh" %}

{% include "gemm/pack.cuh" %}

{% include "gemm/parts.cuh" %}

{% if !c.reads().is_empty() %}{% include "gemm/read.cuh" %}
{% endif %}{% if ahead > 0 %}{% include "gemm/ahead.cuh" %}

{% endif %}{% include "gemm/round.cuh" %}

{% include "gemm/store.cuh" %}

{% if keeps %}{% include "gemm/keep.cuh" %}

{% endif %}{% if c.splits() > 1 %}{% include "gemm/add_up.cuh" %}

{% endif %}{% if c.streams_k() %}{% include "gemm/stream_k.cuh" %}

{% endif %}{% include "gemm/consumer.cuh" %}

template <bool TmaStore>
CUTE_DEVICE
void
product([[ c.plan.name() ]]_params const& params)
{
  assert_ieee();
  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});                                   // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.b), SmemB{});                                   // (BN,BK,STAGES)
  Tensor sD = make_tensor(make_smem_ptr(shared.d), SmemD{});                                   // (PART_M,PART_N,{% if teams > 1 %}TEAMS*{% endif %}BUFFERS)
  Scheduler const tiles(params{% if c.streams_k() %}, blockIdx.x{% endif %});

  cudaTriggerProgrammaticLaunchCompletion();  // PDL: the kernel after this one may begin where there is room
  if (threadIdx.x == 0) {
    if (params.k > 0) {
      prefetch_tma_descriptor(&params.map_a);
      prefetch_tma_descriptor(&params.map_b);
    }
    CUTE_UNROLL
    for (int stage = 0; stage < size<2>(SmemA{}); ++stage) {
      shared.barriers.full[stage].init([[ arrivals.full ]]);
      shared.barriers.empty[stage].init([[ arrivals.empty ]]);  // warps that read it
    }
{% if teams > 1 %}    CUTE_UNROLL
    for (int team = 0; team < teams; ++team) {
      shared.barriers.turn[team].init([[ arrivals.turn ]]);  // warps of a team
    }
{% endif %}{% if c.splits() > 1 %}    shared.barriers.sent.init([[ arrivals.parts ]]);  // warps of the tile's other CTAs
    shared.barriers.received.init([[ arrivals.parts ]]);
{% endif %}    cutlass::arch::fence_barrier_init();
  }
{% if c.cuts() %}  clear_outside(params, sA, sB);
{% endif %}  // All threads see the initialised barriers.
  if constexpr (ctas > 1) {
    cluster_arrive_relaxed();
    cluster_wait();
  } else {
    __syncthreads();
  }

  int const warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (warp >= consumers / 32) {
{% if let Some(registers) = produce_registers %}    cutlass::arch::warpgroup_reg_dealloc<[[ registers ]]>();
{% endif %}    if (warp == consumers / 32 && elect_one_sync()) {
      produce(params, tiles, sA, sB, shared.barriers);
    }
  } else {
{% if let Some(registers) = consume_registers %}    cutlass::arch::warpgroup_reg_alloc<[[ registers ]]>();
{% endif %}{% if teams > 1 %}    int const team = warp / (size(Mma{}) / 32);
    Tensor own = local_tile(sD, append(PartD{}, Int<size<2>(SmemD{}) / teams>{}), make_coord(_0{}, _0{}, team));  // (PART_M,PART_N,BUFFERS)
    consume<TmaStore>(params, tiles, sA, sB, own, shared.barriers, team);
{% else %}    consume<TmaStore>(params, tiles, sA, sB, sD, shared.barriers{% if c.splits() > 1 %}, shared.parts{% endif %});
{% endif %}  }
}

// Stores D by TMA: its rows begin and end at multiples of 16 bytes, and K is not 0.
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
  product<true>(params);
}

// Stores D element by element: any alignment, and K may be 0.
CUTE_DEVICE
void
direct([[ c.plan.name() ]]_params const& params)
{
  product<false>(params);
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
