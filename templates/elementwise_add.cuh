[[ banner ]]
//
// C = A + B, elementwise, on row-major matrices A (M,N):(lda,1), B (M,N):(ldb,1), C (M,N):(ldc,1).
// Launch: [[ plan.threads() ]] threads, ceil_div(M,[[ tile_m ]]) * ceil_div(N,[[ tile_n ]]) blocks along x, no dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}
using Element   = [[ element ]];
using Vector    = [[ vector_type ]];  // one load or store of a thread
using ThrLayout = [[ thr_layout ]];  // (ThrM,ThrN) -> tid
using ValLayout = [[ val_layout ]];  // (ValM,ValN) -> vid
using TilerMN   = [[ tiler ]];  // (TileM,TileN)

// (tid,vid) -> (TileM,TileN), as make_layout_tv gives it
using TVLayout  = [[ tv_layout ]];
// (tid,VEC,UNROLL,STEP) -> (TileM,TileN): the same map, its values as vectors, UNROLL of them in flight, STEP times
using TVFrag    = [[ tv_frag ]];

//
// Preconditions: every number that the plan computed
//

static_assert(sizeof(Element) == [[ element_bytes ]] && sizeof(Vector) == [[ vector_bytes ]], "types");
static_assert(size(ThrLayout{}) == [[ plan.threads() ]] && cosize(ThrLayout{}) == [[ plan.threads() ]], "threads, numbered once each");
static_assert(size(ValLayout{}) == [[ values ]] && cosize(ValLayout{}) == [[ values ]], "values of a thread, numbered once each");
static_assert(size(TilerMN{}) == [[ tile_size ]] && size(TVLayout{}) == [[ tile_size ]] && cosize(TVLayout{}) == [[ tile_size ]], "the tile is covered");
static_assert(is_same_v<decltype(coalesce(right_inverse(raked_product(ThrLayout{}, ValLayout{})))),
                        decltype(coalesce(TVLayout{}))>, "CuTe derives the same thread-value layout");
static_assert(is_same_v<decltype(coalesce(TVFrag{})), decltype(coalesce(TVLayout{}))>, "splitting the values changes nothing");
static_assert(size<1>(TVFrag{}) * sizeof(Element) == sizeof(Vector), "VEC elements make one vector");

CUTE_DEVICE
void
kernel([[ plan.name() ]]_params const& params)
{
  assert_ieee();

  //
  // Tensors
  //

  auto shape_MN = make_shape(params.m, params.n);                                                  // (M,N)
  Tensor mA = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.a)), shape_MN,
                          make_stride(params.lda, _1{}));                                          // (M,N)
  Tensor mB = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.b)), shape_MN,
                          make_stride(params.ldb, _1{}));                                          // (M,N)
  Tensor mC = make_tensor(make_gmem_ptr(static_cast<Element*>(params.c)), shape_MN,
                          make_stride(params.ldc, _1{}));                                          // (M,N)
  Tensor mI = make_identity_tensor(shape_MN);                                                      // (M,N) -> (m,n)

  //
  // Partition: the CTA's tile, then the thread's values
  //

  auto rest_MN = ceil_div(shape_MN, TilerMN{});                                                    // (RestM,RestN)
  auto cta_crd = [[ cta_crd ]];
  Tensor gA = zipped_divide(mA, TilerMN{})(make_coord(_,_), cta_crd);                              // (TileM,TileN)
  Tensor gB = zipped_divide(mB, TilerMN{})(make_coord(_,_), cta_crd);                              // (TileM,TileN)
  Tensor gC = zipped_divide(mC, TilerMN{})(make_coord(_,_), cta_crd);                              // (TileM,TileN)
  Tensor gI = zipped_divide(mI, TilerMN{})(make_coord(_,_), cta_crd);                              // (TileM,TileN) -> (m,n)

  Tensor tAgA = composition(gA, TVFrag{})(threadIdx.x, _, _, _);                                   // (VEC,UNROLL,STEP)
  Tensor tBgB = composition(gB, TVFrag{})(threadIdx.x, _, _, _);                                   // (VEC,UNROLL,STEP)
  Tensor tCgC = composition(gC, TVFrag{})(threadIdx.x, _, _, _);                                   // (VEC,UNROLL,STEP)
  Tensor tCcC = composition(gI, TVFrag{})(threadIdx.x, _, _, _);                                   // (VEC,UNROLL,STEP) -> (m,n)

  //
  // Main loop
  //

  constexpr int VEC = size<1>(TVFrag{});
  bool const aligned = is_byte_aligned<sizeof(Vector)>(params.a) && params.lda % VEC == 0
                    && is_byte_aligned<sizeof(Vector)>(params.b) && params.ldb % VEC == 0
                    && is_byte_aligned<sizeof(Vector)>(params.c) && params.ldc % VEC == 0;

  if (aligned && params.n % VEC == 0) {
    // Every vector lies wholly inside the matrix or wholly outside: one predicate for each.
    Copy_Atom<UniversalCopy<Vector>, Element> copy_vector;
    CUTE_NO_UNROLL
    for (int step = 0; step < size<2>(tCgC); ++step) {
      Tensor tCpC = make_tensor<bool>(make_shape(size<1>(tCcC)));                                  // (UNROLL)
      CUTE_UNROLL
      for (int i = 0; i < size(tCpC); ++i) {
        tCpC(i) = elem_less(tCcC(0,i,step), shape_MN);
      }
      Tensor rA = make_fragment_like<Element>(tAgA(_,_,step).layout());                            // (VEC,UNROLL)
      Tensor rB = make_fragment_like<Element>(tBgB(_,_,step).layout());                            // (VEC,UNROLL)
      Tensor rC = make_fragment_like<Element>(tCgC(_,_,step).layout());                            // (VEC,UNROLL)
      clear(rA);
      clear(rB);
      copy_if(copy_vector, tCpC, tAgA(_,_,step), rA);
      copy_if(copy_vector, tCpC, tBgB(_,_,step), rB);
      transform(rA, rB, rC, plus{});
      // A value with a name is stored whole; by copy_if, nvcc 13.0 stores uint128_t as its two halves.
      Tensor rC_v   = recast<Vector const>(rC);                                                   // (1,UNROLL)
      Tensor tCgC_v = recast<Vector>(tCgC(_,_,step));                                             // (1,UNROLL)
      CUTE_UNROLL
      for (int i = 0; i < size(tCpC); ++i) {
        if (Vector const value = rC_v(0,i); tCpC(i)) {
          tCgC_v(0,i) = value;
        }
      }
    }
  } else {
    // A vector can straddle the last column or start unaligned: one predicate for each element.
    Tensor tAgA_v = group_modes<1,3>(tAgA);                                                        // (VEC,(UNROLL,STEP))
    Tensor tBgB_v = group_modes<1,3>(tBgB);                                                        // (VEC,(UNROLL,STEP))
    Tensor tCgC_v = group_modes<1,3>(tCgC);                                                        // (VEC,(UNROLL,STEP))
    Tensor tCcC_v = group_modes<1,3>(tCcC);                                                        // (VEC,(UNROLL,STEP)) -> (m,n)
    CUTE_NO_UNROLL
    for (int v = 0; v < size<1>(tCgC_v); ++v) {
      Tensor tCpC = make_tensor<bool>(make_shape(size<0>(tCcC_v)));                                // (VEC)
      CUTE_UNROLL
      for (int i = 0; i < size(tCpC); ++i) {
        tCpC(i) = elem_less(tCcC_v(i,v), shape_MN);
      }
      Tensor rA = make_tensor<Element>(shape<0>(tAgA_v));                                          // (VEC)
      Tensor rB = make_tensor<Element>(shape<0>(tBgB_v));                                          // (VEC)
      Tensor rC = make_tensor<Element>(shape<0>(tCgC_v));                                          // (VEC)
      clear(rA);
      clear(rB);
      copy_if(tCpC, tAgA_v(_,v), rA);
      copy_if(tCpC, tBgB_v(_,v), rB);
      transform(rA, rB, rC, plus{});
      copy_if(tCpC, rC, tCgC_v(_,v));
    }
  }
}

}  // namespace [[ plan.name() ]]
}  // namespace cutemplate
