[[ c.banner ]]
//
// D = epilogue(A @ B{% for t in c.reads() %}, [[ t.is.name ]]{% endfor %}) by mma.sync: [[ c.majors() ]].
// Launch: [[ c.threads ]] threads, one CTA per tile or as many as are resident, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/types.cuh" %}

using Cluster = [[ c.cluster_type() ]];  // CTAs along (M,N) that take neighbouring tiles
constexpr int splits = 1;
constexpr int ctas   = size(Cluster{});  // per cluster

{% include "gemm/scheduler.cuh" %}

struct Stages {
{%- for t in c.staged() %}
  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
};

union SharedStorage {
  Stages stages;
  // The epilogue reuses the stages after the last k-tile was read.
{%- for t in c.lent() %}
  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
};
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "copy_all.cuh" %}

{% include "gemm/copy_inside.cuh" %}

{% match c.scatters() %}
{%- when true -%}
{% include "gemm/scatter_part.cuh" %}
{%- when false -%}
{% include "gemm/store_part.cuh" %}
{%- endmatch %}

{% include "gemm/pack.cuh" %}

// Rounds a fragment of f32 to tf32. Fragments of 16 bits are multiplied as they are.
template <class Fragment>
CUTE_DEVICE
void
round(Fragment&& fragment)
{
  if constexpr ([[ c.rounds() ]]) {
    CUTE_UNROLL
    for (int i = 0; i < size(fragment); ++i) {
      fragment(i) = tfloat32_t(__uint_as_float(fragment(i).raw()));
    }
  }
}

// The parameters with each operand as the mainloop reads it: packed, or in place. Rows begin and end at multiples of 16 bytes.
CUTE_DEVICE
Params
copied(Params params)
{
  auto const workspace = static_cast<Element const*>(params.workspace);
{%- for t in c.factors() %}
  if (params.packs_[[ t.is.param ]] > 0) {
    params.[[ t.is.param ]] = workspace + params.packed_[[ t.is.param ]];
  }
{%- for stride in c.strides(t) %}
  params.[[ stride ]] = params.from_[[ stride ]];
{%- endfor %}
{%- endfor %}
  return params;
}

{% include "gemm/mainloop_cp_async.cuh" %}

{% include "gemm/epilogue.cuh" %}

{% if c.streams_k() -%}
{% include "gemm/stream_k.cuh" %}

{% include "gemm/turns_stream_k.cuh" %}
{%- else -%}
{% include "gemm/turns.cuh" %}
{%- endif %}

CUTE_DEVICE
void
kernel(Params const& params)
{
  assert_ieee();
  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  // The mainloop holds only `turn` in registers; the epilogue recomputes the tile's coordinates from it.
  CUTE_NO_UNROLL
  for (int turn = 0; ; ++turn) {
    Scheduler const tiles = tile_of(params, turn);
    if (!tiles.has_tile()) {
      return;
    }
    compute(params, tiles, turn, shared);
  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
