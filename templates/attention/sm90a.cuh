[[ c.banner ]]
//
// O = softmax(scale * Q @ K^T) @ V of each head, by TMA and WGMMA. K and V pass in steps; scores stay in registers.
// Launch: [[ c.threads ]] threads, as many CTAs as are resident, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>
{%- for header in c.headers %}
#include <[[ header ]]>
{%- endfor %}
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/tma.cuh" %}

{% include "attention/types.cuh" %}

constexpr int consumers = size(Scores{});  // threads

// Whether warpgroups share out their registers. A single one that multiplies has those of the launch.
constexpr bool shares_registers = [[ registers[0] ]] > 0;

{% include "attention/barriers.cuh" %}

struct SharedStorage {
{%- for t in c.living(Lives::Kernel) %}
  alignas([[ t.align.0 ]]) Element [[ t.name.to_lowercase() ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
  union {
{%- for t in c.living(Lives::Mainloop) %}
    alignas([[ t.align.0 ]]) Element [[ t.name.to_lowercase() ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
{%- for t in c.living(Lives::Epilogue) %}
    alignas([[ t.align.0 ]]) Element [[ t.name.to_lowercase() ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
  };
  Barriers barriers;
};
constexpr bool lends = [[ c.living(Lives::Epilogue).count() > 0 ]];  // whether O lies in the memory of Q, which is then loaded late
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "attention/mask.cuh" %}

{% include "attention/work.cuh" %}
{%- if c.recipe.paged %}

{% include "attention/keys_of.cuh" %}

{% include "attention/boxes.cuh" %}
{%- endif %}

{% include "attention/work_of.cuh" %}

{% include "attention/steps.cuh" %}

{% include "attention/works.cuh" %}

{% include "attention/tma_rows.cuh" %}
{% include "attention/producer.cuh" %}

{% include "attention/scores.cuh" %}

{% include "attention/turns.cuh" %}

{% include "attention/clear_tail.cuh" %}

{% include "attention/out.cuh" %}
{% include "attention/epilogue_wgmma.cuh" %}

{% include "attention/mainloop_wgmma.cuh" %}

CUTE_DEVICE
void
kernel(Params const& params)
{
  assert_ieee();
  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  if (threadIdx.x == 0) {
    shared.barriers.init();
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();  // all threads see the initialised barriers
  int const warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (warp >= consumers / 32) {
    if constexpr (shares_registers) {
      cutlass::arch::warpgroup_reg_dealloc<[[ registers[0] ]]>();
    }
    if (warp == consumers / 32) {
      produce(params, shared);
    }
  } else {
    if constexpr (shares_registers) {
      cutlass::arch::warpgroup_reg_alloc<[[ registers[1] ]]>();
    }
    consume(params, shared);
  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
