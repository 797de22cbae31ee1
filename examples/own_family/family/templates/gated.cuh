[[ banner ]]
//
// H = silu(Gate) * Up, in groups of 128 columns: S = max |H| / 448, or 1 where that is 0; Q = H / S.
// Launch: [[ plan.threads() ]] threads, (ceil_div(M,[[ rows ]]),N/128) blocks, no dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ plan.name() ]] {

using namespace cute;

[[ assert_ieee ]]
[[ copy_all ]]
using ElementIn = [[ element ]];
using Tile      = Shape<_[[ rows ]],_128>;  // rows of a CTA, columns of a group
{% for alias in aliases %}using [[ alias.name ]] = [[ alias.ty ]];  // [[ alias.comment ]]
{% endfor %}
//
// Preconditions: every number that the plan computed
//

{% for assertion in assertions %}static_assert([[ assertion.condition ]], "[[ assertion.what ]]");
{% endfor %}static_assert(size<1>(Tile{}) == 32 * [[ vector ]], "a warp has a group, and a lane [[ vector ]] neighbours");

[[ helpers ]]
// x / (1 + e^-x) * up, every operation rounded by itself.
CUTE_DEVICE float gated(float x, float up) {
  return __fmul_rn(__fdiv_rn(x, __fadd_rn(1.0f, expf(-x))), up);
}

CUTE_DEVICE
void
kernel([[ plan.name() ]]_params const& params)
{
  assert_ieee();
  auto const shape = make_shape(params.m, params.n);
  Tensor mGate = make_tensor(make_gmem_ptr(static_cast<ElementIn const*>(params.gate)), shape,
                             make_stride(params.gate_stride0, _1{}));
  Tensor mUp   = make_tensor(make_gmem_ptr(static_cast<ElementIn const*>(params.up)), shape,
                             make_stride(params.up_stride0, _1{}));
  Tensor mQ    = make_tensor(make_gmem_ptr(static_cast<float_e4m3_t*>(params.q)), shape,
                             make_stride(params.q_stride0, _1{}));
  Tensor mS    = make_tensor(make_gmem_ptr(static_cast<float*>(params.s)), make_shape(params.m, params.n / 128),
                             make_stride(params.s_stride0, _1{}));

  auto const crd = make_coord(blockIdx.x, blockIdx.y);
  Tensor gGate = local_tile(mGate, Tile{}, crd);                                               // (ROWS,128)
  Tensor gUp   = local_tile(mUp, Tile{}, crd);                                                 // (ROWS,128)
  Tensor gQ    = local_tile(mQ, Tile{}, crd);                                                  // (ROWS,128)
  Tensor cQ    = local_tile(make_identity_tensor(shape), Tile{}, crd);                         // (ROWS,128)

  Tensor tGate = LoadGate{}.get_slice(threadIdx.x).partition_S(gGate);                         // (CPY,CPY_M,CPY_N)
  Tensor tUp   = LoadUp{}.get_slice(threadIdx.x).partition_S(gUp);                             // (CPY,CPY_M,CPY_N)
  Tensor tQ    = StoreQ{}.get_slice(threadIdx.x).partition_D(gQ);                              // (CPY,CPY_M,CPY_N)
  int const row = get<0>(StoreQ{}.get_slice(threadIdx.x).partition_D(cQ)(0));
  // The lanes of a warp have one row.
  if (row >= params.m) {
    return;
  }

  Tensor rGate = make_fragment_like(tGate);                                                    // (CPY,CPY_M,CPY_N)
  Tensor rUp   = make_fragment_like(tUp);                                                      // (CPY,CPY_M,CPY_N)
  Tensor rQ    = make_fragment_like(tQ);                                                       // (CPY,CPY_M,CPY_N)
  Tensor rH    = make_fragment_like<float>(rGate);                                             // (CPY,CPY_M,CPY_N)
  copy_all(LoadGate{}, tGate, rGate);
  copy_all(LoadUp{}, tUp, rUp);
  float largest = 0.0f;
  CUTE_UNROLL
  for (int i = 0; i < size(rH); ++i) {
    rH(i) = gated([[ load_gate ]], [[ load_up ]]);
    largest = fmaxf(largest, fabsf(rH(i)));
  }
  CUTE_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lanes));
  }
  float const scale = largest > 0.0f ? __fdiv_rn(largest, 448.0f) : 1.0f;
  CUTE_UNROLL
  for (int i = 0; i < size(rQ); ++i) {
    float const scaled = __fdiv_rn(rH(i), scale);
    rQ(i) = [[ store_q ]];
  }
  copy_all(StoreQ{}, rQ, tQ);
  if (threadIdx.x % 32 == 0) {
    mS(row, blockIdx.y) = scale;
  }
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
