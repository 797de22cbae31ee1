//! Kernels with asynchronous copies, as one writes them for a GPU.

use crate::host_common::Text;
use crate::together::CUTE;

/// C = A * B by tiles (32,32,8), 64 threads with (4,4) each; three stages in dynamic shared memory, rows of A padded.
const PIPELINED: &str = r#"
#include <cute/tensor.hpp>

struct Params { float const* A; float const* B; float* C; int M, N, K; };

using namespace cute;

template <class CopyB>
__device__ void gemm(Params const& params, CopyB copyB) {
  using BM = Int<32>; using BN = Int<32>; using BK = Int<8>; using TM = Int<4>; using TN = Int<4>;
  constexpr int Stages = 3;
  int const M = params.M, N = params.N, K = params.K;
  Tensor mA = make_tensor(make_gmem_ptr(params.A), make_shape(M, K), make_stride(K, _1{}));  // (M,K)
  Tensor mB = make_tensor(make_gmem_ptr(params.B), make_shape(N, K), make_stride(_1{}, N));  // (N,K)
  Tensor mC = make_tensor(make_gmem_ptr(params.C), make_shape(M, N), make_stride(N, _1{}));  // (M,N)
  Tensor gA = local_tile(mA, make_shape(BM{}, BK{}), make_coord(blockIdx.y, _));             // (BM,BK,k)
  Tensor gB = local_tile(mB, make_shape(BN{}, BK{}), make_coord(blockIdx.x, _));             // (BN,BK,k)
  Tensor gC = local_tile(mC, make_shape(BM{}, BN{}), make_coord(blockIdx.y, blockIdx.x));    // (BM,BN)
  Tensor cA = local_tile(make_identity_tensor(shape(mA)), make_shape(BM{}, BK{}), make_coord(blockIdx.y, _));
  Tensor cB = local_tile(make_identity_tensor(shape(mB)), make_shape(BN{}, BK{}), make_coord(blockIdx.x, _));

  using LayoutA = Layout<Shape<BM, BK, Int<Stages>>, Stride<_12, _1, Int<384>>>;
  using LayoutB = Layout<Shape<BN, BK, Int<Stages>>, Stride<_1, _32, Int<256>>>;
  extern __shared__ __align__(16) float smem[];
  Tensor sA = make_tensor(make_smem_ptr(smem), LayoutA{});                      // (BM,BK,Stages)
  Tensor sB = make_tensor(make_smem_ptr(smem + cosize_v<LayoutA>), LayoutB{});  // (BN,BK,Stages)

  using Atom = Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, float>;
  auto copyA = make_tiled_copy(Atom{}, Layout<Shape<_32, _2>, Stride<_2, _1>>{}, Layout<Shape<_1, _4>>{});
  auto thrA = copyA.get_slice(threadIdx.x);
  auto thrB = copyB.get_slice(threadIdx.x);
  Tensor tAgA = thrA.partition_S(gA);  // (CPY,1,1,k)
  Tensor tAcA = thrA.partition_S(cA);  // (CPY,1,1,k)
  Tensor tAsA = thrA.partition_D(sA);  // (CPY,1,1,Stages)
  Tensor tBgB = thrB.partition_S(gB);  // (CPY,CPY_N,CPY_K,k)
  Tensor tBcB = thrB.partition_S(cB);  // (CPY,CPY_N,CPY_K,k)
  Tensor tBsB = thrB.partition_D(sB);  // (CPY,CPY_N,CPY_K,Stages)

  auto fetch = [&](int tile, int stage) {
    bool const in_A = elem_less(tAcA(0, 0, 0, tile), shape(mA));
    copy(copyA.with(in_A), tAgA(_, _, _, tile), tAsA(_, _, _, stage));  // A
    Tensor tBpB = make_tensor<bool>(make_shape(_1{}, size<1>(tBsB), size<2>(tBsB)));  // (1,CPY_N,CPY_K)
    for (int j = 0; j < size<1>(tBpB); ++j) {
      for (int k = 0; k < size<2>(tBpB); ++k) {
        tBpB(0, j, k) = elem_less(tBcB(0, j, k, tile), shape(mB));
      }
    }
    Tensor to = tBsB(_, _, _, stage);
    copy_if(copyB, tBpB, tBgB(_, _, _, tile), to);  // B
  };

  auto m = threadIdx.x / 8;
  auto n = threadIdx.x % 8;
  Tensor tCsA = local_tile(sA, make_shape(TM{}, BK{}, Int<Stages>{}), make_coord(m, 0, 0));  // (TM,BK,Stages)
  Tensor tCsB = local_tile(sB, make_shape(TN{}, BK{}, Int<Stages>{}), make_coord(n, 0, 0));  // (TN,BK,Stages)
  Tensor tCgC = local_tile(gC, make_shape(TM{}, TN{}), make_coord(m, n));                    // (TM,TN)
  Tensor rC = make_tensor<float>(make_shape(TM{}, TN{}));                                    // (TM,TN)
  clear(rC);

  int const tiles = size<2>(gA);
  for (int stage = 0; stage < Stages - 1; ++stage) {
    if (stage < tiles) { fetch(stage, stage); }
    cp_async_fence();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    cp_async_wait<Stages - 2>();
    __syncthreads();  // every thread's part of this tile is there, and nobody reads the tile before it any more
    int const next = tile + Stages - 1;
    if (next < tiles) { fetch(next, next % Stages); }
    cp_async_fence();  // the group of the next tile
    for (int k = 0; k < BK{}; ++k) {
      for (int i = 0; i < TM{}; ++i) {
        for (int j = 0; j < TN{}; ++j) {
          rC(i, j) += tCsA(i, k, tile % Stages) * tCsB(j, k, tile % Stages);
        }
      }
    }
  }
  for (int i = 0; i < TM{}; ++i) {
    for (int j = 0; j < TN{}; ++j) {
      if (blockIdx.y * BM{} + m * TM{} + i < M && blockIdx.x * BN{} + n * TN{} + j < N) { tCgC(i, j) = rC(i, j); }
    }
  }
}

extern "C" __global__ void __launch_bounds__(64) pipelined(__grid_constant__ Params const params) {
  using Atom = Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, float>;
  gemm(params, make_tiled_copy(Atom{}, Layout<Shape<_8, _8>>{}, Layout<Shape<_4, _1>>{}));
}
"#;

/// The same with other operations for B: those that do not fill with zeros leave what was there.
const OTHERS: &str = r#"
#define OTHER(NAME, OP, THREADS, VALUES)                                               \
  extern "C" __global__ void NAME(__grid_constant__ Params const params) {             \
    gemm(params, make_tiled_copy(Copy_Atom<OP, float>{}, Layout<THREADS>{}, Layout<VALUES>{})); \
  }
using T32x2 = Shape<_32, _2>; using T16x4 = Shape<_16, _4>; using T8x8 = Shape<_8, _8>;
using V1 = Shape<_1, _1>; using V2 = Shape<_2, _1>; using V4 = Shape<_4, _1>;
OTHER(others_a, SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, T8x8, V4)
OTHER(others_b, SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, T8x8, V4)
OTHER(others_c, SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint64_t>, T16x4, V2)
OTHER(others_d, SM80_CP_ASYNC_CACHEALWAYS<float>, T32x2, V1)
"#;

pub(super) fn pipelined() -> Text {
    CUTE.text("pipelined", PIPELINED)
}

pub(super) const OTHER_COPIES: [&str; 4] = ["others_a", "others_b", "others_c", "others_d"];

pub(super) fn other_copies() -> Text {
    let mut kernel = OTHER_COPIES.iter().fold(pipelined(), |kernel, entry| kernel.and(entry));
    kernel.text.push_str(OTHERS);
    kernel
}

/// Thread t copies A(0,t) to slot t and gives slot t.
pub(super) fn single(body: &str) -> Text {
    CUTE.text(
        "single",
        &format!(
            "#include <cute/arch/copy_sm80.hpp>
             struct Params {{ float const *a; float *c; float *d; }};
             extern \"C\" __global__ void single(Params const p) {{
               using namespace cute;
               __shared__ float slot[64];
               int const t = threadIdx.x;
               {body}
             }}"
        ),
    )
}
