[[ c.banner ]]
//
// D = epilogue(A @ B{% if c.reads().len() > 0 %}, ..{% endif %}) by mma.sync: [[ c.majors() ]].
// Launch: [[ c.threads ]] threads, one CTA per tile or as many CTAs as are resident, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "gemm/types.cuh" %}
using Cluster = [[ c.cluster_type() ]];  // CTAs along (M,N) that take neighbouring tiles
constexpr int ctas = size(Cluster{});  // per cluster

{% include "gemm/scheduler.cuh" %}

struct Stages {
{% for t in c.tensors %}{% if !t.lent %}  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{% endif %}{% endfor %}};

union SharedStorage {
  Stages stages;
  // The epilogue reuses the stages after the last k-tile was read.
{% for t in c.tensors %}{% if t.lent %}  alignas([[ t.align.0 ]]) [[ t.ty ]] [[ t.param ]][cosize_v<Smem[[ t.name ]]>];
{% endif %}{% endfor %}};
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "copy_all.cuh" %}

{% include "gemm/copy_inside.cuh" %}

{% include "gemm/store_part.cuh" %}

{% include "gemm/pack.cuh" %}
{% if c.rounds() %}
// Rounds the f32 elements of a fragment to tf32.
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
// The parameters with each operand as the mainloop reads it: packed, or in place. Rows begin and end at multiples of 16 bytes.
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

{% include "gemm/mainloop_cp_async.cuh" %}

{% include "gemm/epilogue.cuh" %}

{% if c.streams_k() %}{% include "gemm/stream_k.cuh" %}

{% endif %}// This CTA's tile number `turn`.
CUTE_DEVICE
Scheduler
tile_of([[ c.plan.name() ]]_params const& params, int turn)
{
  Scheduler tiles(params{% if c.streams_k() %}, anew(blockIdx.x){% endif %});
  tiles.advance(anew(turn));
  return tiles;
}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
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
    decltype(partition_fragment_C(Mma{}, TileD{})) tCrC;                                       // (MMA,MMA_M,MMA_N)
{% if c.streams_k() %}    int const first = tiles.first_k_tile();
    multiply(copied(params), tiles.crd(), first, first + tiles.k_tiles(), shared.stages, tCrC);
    Scheduler const again = tile_of(params, turn);
    if (again.is_shared()) {
      give_sums(params, again, tCrC);
    } else {
      store_tile(params, again.crd(), tCrC, shared);
    }
{% else %}    multiply(copied(params), tiles.crd(), 0, ceil_div(params.k, size<1>(TileA{})), shared.stages, tCrC);
    store_tile(params, tile_of(params, turn).crd(), tCrC, shared);
{% endif %}  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate
