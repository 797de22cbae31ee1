[[ banner ]]
//
// D = epilogue(A @ B[[ op.inputs_doc ]]): A is (M,K), D is (M,N). B is (N,K), weights of 4 bits: (q - z) * s, with a scale s for
// [[ d.recipe.group ]] of K. They become [[ element ]] in registers.
// Launch: [[ plan.threads() ]] threads, blocks with equal shares of all tiles of D, [[ d.smem.0 ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ plan.name() ]] {

using namespace cute;

using Params  = [[ plan.name() ]]_params;
using Element = [[ element ]];
constexpr int slices = [[ d.recipe.slices ]];  // parts of this CTA's share of K, each with warps and stages of its own

{% include "ieee.cuh" %}

[[ op.helpers ]]// Epilogue of a = sum over k of A(m,k) * B(n,k)[[ op.inputs_doc ]]: [[ d.recipe.epilogue ]]
[[ op.functor ]]

{% for a in aliases -%}
using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor %}
//
// Preconditions: every number that the plan computed
//

{% for a in assertions -%}
static_assert([[ a.condition ]], "[[ a.what ]]");
{% endfor %}
struct Stages {
  alignas(128) Element a[cosize_v<SmemA>];
  alignas(16) int32_t w[cosize_v<SmemW>];
{%- for t in of_groups %}
  alignas(16) [[ t.element ]] [[ t.array ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
};

union SharedStorage {
  Stages of_slice[slices];
  alignas(16) float sums[cosize_v<SmemSums>];  // after all slices have read their stages
};
static_assert(sizeof(SharedStorage) == [[ d.smem.0 ]], "bytes of dynamic shared memory");
static_assert(size(Mma{}) * slices == [[ plan.threads() ]], "threads of all slices");

{% include "partition.cuh" %}

{% include "copy_all.cuh" %}

{% include "gemm/copy_inside.cuh" %}

CUTE_DEVICE int tiles_m(Params const& params) { return ceil_div(params.m, size<0>(TileD{})); }
CUTE_DEVICE int tiles_n(Params const& params) { return ceil_div(params.n, size<1>(TileD{})); }

// Without K there is a unit of none, whose sums are 0.
CUTE_DEVICE int units_of_tile(Params const& params) { return cute::max(ceil_div(params.k, slices * size<1>(TileA{})), 1); }

// PDL: lets the next kernel begin, and waits for all writes of the kernels before this one.
CUTE_DEVICE
void
wait_for_others()
{
{%- if d.overlaps %}
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
{%- endif %}
}

{% include "w4a16/weights.cuh" %}

{% include "w4a16/mainloop.cuh" %}

{% include "w4a16/finish.cuh" %}

// Each CTA computes `k_share` units, one tile of D after the other. A unit is a k-tile of each slice.
CUTE_DEVICE
void
kernel(Params const& params)
{
  assert_ieee();
  wait_for_others();
  extern __shared__ __align__(128) unsigned char smem[];
  auto& shared = *reinterpret_cast<SharedStorage*>(smem);
  int const slice = threadIdx.x / size(Mma{});
  int const units = units_of_tile(params);
  int const k_tiles = ceil_div(params.k, size<1>(TileA{}));
  int const end = cute::min((int(blockIdx.x) + 1) * params.k_share, tiles_m(params) * tiles_n(params) * units);
  CUTE_NO_UNROLL
  for (int unit = blockIdx.x * params.k_share; unit < end; ) {
    int const tile = unit / units;
    int const first = unit % units;
    int const count = cute::min(units - first, end - unit);
    auto const crd_D = make_coord(tile % tiles_m(params), tile / tiles_m(params));
    int const of_slice = cute::min(first * slices + slice * count, k_tiles);
    decltype(partition_fragment_C(Mma{}, TileD{})) tCrC;                                       // (MMA,MMA_M,MMA_N)
    multiply(params, crd_D, of_slice, cute::min(of_slice + count, k_tiles), slice, shared.of_slice[slice], tCrC);
    finish(params, crd_D, slice, tCrC, shared.sums, count < units ? int(blockIdx.x) + tile : -1);
    __syncthreads();  // all have read the sums, which lie where stages do
    unit += count;
  }
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
