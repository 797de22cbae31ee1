[[ c.banner ]]
//
// D = epilogue(A @ B{% for t in c.reads() %}, [[ t.is.name ]]{% endfor %}) by TMA and WGMMA: [[ c.majors() ]].
// Launch: [[ c.threads ]] threads, [[ c.smem_bytes ]] bytes of dynamic shared memory, as many clusters as are resident.
// A cluster has [[ cluster[0] ]] x [[ cluster[1] ]] x [[ cluster[2] ]] CTAs along M, N and K.
#pragma once

#include <cute/tensor.hpp>
{%- for header in headers %}
#include <[[ header ]]>
{%- endfor %}
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/tma.cuh" %}

{% include "gemm/types.cuh" %}

using Cluster = [[ c.cluster_type() ]];  // CTAs along (M,N)
constexpr int splits    = [[ c.splits() ]];  // split-K: CTAs of a cluster that share a tile, each with its k-tiles
constexpr int ctas      = size(Cluster{}) * splits;  // per cluster
constexpr int teams     = [[ teams ]];  // ping-pong: teams of warpgroups, each with a tile of its own
constexpr int consumers = teams * size(Mma{});  // threads

{% include "gemm/scheduler.cuh" %}

{% include "gemm/parts.cuh" %}

{% include "gemm/pipeline.cuh" %}

{% match sharing %}
{%- when Sharing::PingPong -%}
{% include "gemm/pingpong.cuh" %}
{%- when Sharing::SplitK -%}
{% include "gemm/split_k.cuh" %}
{%- when Sharing::OfK -%}
{% include "gemm/cooperative_k.cuh" %}
{%- when Sharing::Cooperative -%}
{% include "gemm/cooperative.cuh" %}
{%- endmatch %}

struct SharedStorage {
{%- for t in c.tensors %}
  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
  Barriers barriers;
};
static_assert(size(Mma{}) / 32 * sharers == [[ arrivals.empty ]], "arrivals at an empty barrier");
static_assert(size(Mma{}) / 32 * (splits - 1) == [[ arrivals.parts ]], "arrivals at a barrier of partial sums");
static_assert(sizeof(Element) * (size(TileA{}) + size(TileB{})) == [[ arrivals.bytes.0 ]], "bytes of a stage");
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "copy_all.cuh" %}
{% include "gemm/sections.cuh" %}
template <bool TmaStore>
CUTE_DEVICE
void
product(Params const& params)
{
  assert_ieee();
  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  Tensor sA = make_tensor(make_smem_ptr(shared.a), SmemA{});                                   // (BM,BK,STAGES)
  Tensor sB = make_tensor(make_smem_ptr(shared.b), SmemB{});                                   // (BN,BK,STAGES)
  Tensor sD = make_tensor(make_smem_ptr(shared.d), SmemD{});                                   // (PART_M,PART_N,TEAMS*BUFFERS)
  Scheduler const tiles(params, blockIdx.x);

  cudaTriggerProgrammaticLaunchCompletion();  // PDL: the kernel after this one may begin where there is room
  if (threadIdx.x == 0) {
    if (params.k > 0) {
      prefetch_tma_descriptor(&params.map_a);
      prefetch_tma_descriptor(&params.map_b);
    }
    shared.barriers.init();
    cutlass::arch::fence_barrier_init();
  }
{%- if c.cuts() %}
  clear_outside(params, sA, sB);
{%- endif %}
  // All threads see the initialised barriers.
  if constexpr (ctas > 1) {
    cluster_arrive_relaxed();
    cluster_wait();
  } else {
    __syncthreads();
  }

  int const warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (warp >= consumers / 32) {
{%- if let Some(registers) = r.producer %}
    cutlass::arch::warpgroup_reg_dealloc<[[ registers ]]>();
{%- endif %}
{%- match c.grouped() %}
{%- when true %}
    if (warp == consumers / 32) {
{%- when false %}
    if (warp == consumers / 32 && elect_one_sync()) {
{%- endmatch %}
      produce(params, tiles, sA, sB, shared.barriers);
    }
{%- for s in c.scales() %}
    if (warp == consumers / 32 + [[ loop.index ]]) {
      Tensor sS = make_tensor(make_smem_ptr(shared.[[ s.param ]]), Smem[[ s.name ]]{});  // (GRANULES,1,STAGES)
      produce_scales<[[ s.mode ]], [[ s.granule ]]>(Copy[[ s.name ]]{}, tiles, all_[[ s.param ]](params), sS, shared.barriers);
    }
{%- endfor %}
  } else {
{%- if let Some(registers) = r.consumer %}
    cutlass::arch::warpgroup_reg_alloc<[[ registers ]]>();
{%- endif %}
    Team const team(tiles, shared, warp);
    consume<TmaStore>(params, tiles, sA, sB, team.own(sD), shared.barriers, team);
  }
}

{% match c.scatters() %}
{%- when true -%}
// Stores each row of D where an index says.
CUTE_DEVICE
void
kernel(Params const& params)
{
  product<false>(params);
}
{%- when false -%}
// Stores D by TMA: its rows begin and end at multiples of 16 bytes, and K is not 0.
CUTE_DEVICE
void
kernel(Params const& params)
{
  product<true>(params);
}

// Stores D element by element: any alignment, and K may be 0.
CUTE_DEVICE
void
direct(Params const& params)
{
  product<false>(params);
}
{%- endmatch %}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
