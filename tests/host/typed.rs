//! Contract: what CUDA C++ defines, the executor does: barriers, shared memory, warps, atomics, indices; and a kernel
//! that does nothing wrong is told nothing, in every mode.

#![cfg(feature = "host")]

use crate::host_common::{Shape, Tensor, Text, Texts, line};
use cutemplate::exec::cxx::Mode;

static TEXTS: Texts = Texts::new(|| {
    let all = [block_sum(), transpose(), indices(), votes(), warps(), handover(), histogram(), prints(), vectors()];
    all.map(|text| (text, Mode::ALL)).into()
});

fn in_every_mode(check: impl Fn(Mode)) {
    Mode::ALL.iter().for_each(|mode| check(*mode));
}

fn block_sum() -> Text {
    TEXTS.text(
        "block_sum",
        "struct Params { float const *a; float *c; int n; };
         extern \"C\" __global__ void __launch_bounds__(128) block_sum(__grid_constant__ Params const p) {
           __shared__ float partial[128];
           int const i = blockIdx.x * blockDim.x + threadIdx.x;
           partial[threadIdx.x] = i < p.n ? __ldg(p.a + i) : 0.0f;
           __syncthreads();
           for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
             if (threadIdx.x < half) { partial[threadIdx.x] += partial[threadIdx.x + half]; }
             __syncthreads();
           }
           if (threadIdx.x == 0) { p.c[blockIdx.x] = partial[0]; }
         }",
    )
}

#[test]
fn a_tree_of_barriers_sums_a_block() {
    in_every_mode(|mode| {
        for n in [1_usize, 127, 128, 129, 1000] {
            let blocks = n.div_ceil(128);
            let mut mats = [Tensor::read("A", 1, n, |_, j| (j % 13) as f32), Tensor::write("C", 1, blocks)];
            block_sum().run_clean(mode, &Shape { ints: &[n as i32], ..line(blocks as u32, 128) }, &mut mats);
            for block in 0..blocks {
                let want: usize = (block * 128..n.min(block * 128 + 128)).map(|j| j % 13).sum();
                assert_eq!(mats[1].at(0, block), want as f32, "{mode}, n = {n}, block {block}");
            }
        }
    });
}

fn transpose() -> Text {
    TEXTS.text(
        "transpose",
        "struct Params { float const *a; float *c; int m, n, lda, ldc; };
         namespace tiles {
         template <int T> __device__ void transpose(Params const &p) {
           extern __shared__ float tile[];
           int const row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
           if (row < p.m && col < p.n) { tile[threadIdx.y * (T + 1) + threadIdx.x] = p.a[row * p.lda + col]; }
           __syncthreads();
           int const out = blockIdx.x * T + threadIdx.y, from = blockIdx.y * T + threadIdx.x;
           if (out < p.n && from < p.m) { p.c[out * p.ldc + from] = tile[threadIdx.x * (T + 1) + threadIdx.y]; }
         }
         }
         extern \"C\" __global__ void transpose(Params const p) { tiles::transpose<16>(p); }",
    )
}

#[test]
fn a_tile_in_dynamic_shared_memory_transposes_padded_matrices() {
    in_every_mode(|mode| {
        let (m, n) = (37, 50);
        let a = Tensor::read("A", m, n, |i, j| (i * 100 + j) as f32).padded(53, 3, 5, f32::NAN);
        let c = Tensor::write("C", n, m).padded(41, 1, 2, -1.0);
        let mut mats = [a, c];
        let shape = Shape { entry: 0, grid: [4, 3, 1], block: [16, 16, 1], smem: 16 * 17 * 4, ints: &[37, 50, 53, 41] };
        transpose().run_clean(mode, &shape, &mut mats);
        for i in 0..m {
            for j in 0..n {
                assert_eq!(mats[1].at(j, i), (i * 100 + j) as f32, "{mode}");
            }
        }
        let gaps = (0..n - 1).flat_map(|i| (m..41).map(move |j| (i, j)));
        for (i, j) in gaps {
            assert_eq!(mats[1].at(i, j), -1.0, "{mode}: the gap at ({i},{j}) is untouched");
        }
    });
}

fn indices() -> Text {
    TEXTS.text(
        "indices",
        "struct Params { float *c; };
         extern \"C\" __global__ void indices(Params const p) {
           unsigned const block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
           unsigned const thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
           unsigned const threads = blockDim.x * blockDim.y * blockDim.z;
           p.c[block * threads + thread] = float(block * 1000 + thread) + (warpSize == 32 ? 0.0f : 0.5f);
         }",
    )
}

#[test]
fn every_thread_of_a_three_dimensional_grid_has_its_own_index() {
    in_every_mode(|mode| {
        let mut mats = [Tensor::write("C", 30, 24)];
        indices().run_clean(
            mode,
            &Shape { entry: 0, grid: [2, 3, 5], block: [4, 3, 2], smem: 0, ints: &[] },
            &mut mats,
        );
        for block in 0..30 {
            for thread in 0..24 {
                assert_eq!(mats[0].at(block, thread), (block * 1000 + thread) as f32, "{mode}");
            }
        }
    });
}

fn votes() -> Text {
    TEXTS.text(
        "votes",
        "struct Params { float *c; };
         extern \"C\" __global__ void votes(Params const p) {
           int const t = threadIdx.x;
           int sum = __syncthreads_count(t % 3 == 0);
           sum = 2 * sum + __syncthreads_and(t < 70);
           sum = 2 * sum + __syncthreads_and(t < 69);
           sum = 2 * sum + __syncthreads_or(t == 5);
           p.c[t] = 2 * sum + __syncthreads_or(t == 70);
         }",
    )
}

#[test]
fn barriers_with_predicates_agree_in_all_threads() {
    in_every_mode(|mode| {
        let mut mats = [Tensor::write("C", 1, 70)];
        votes().run_clean(mode, &line(1, 70), &mut mats);
        // 24 multiples of 3 below 70, then true, false, true, false.
        assert!((0..70).all(|t| mats[0].at(0, t) == (24 * 16 + 0b1010) as f32), "{mode}: {:?}", mats[0].data);
    });
}

/// One row of C for each intrinsic, one column for each thread; the second warp is half a warp.
fn warps() -> Text {
    TEXTS.text(
        "warps",
        "struct Params { float *c; };
         extern \"C\" __global__ void warps(Params const p) {
           unsigned const t = threadIdx.x, lane = t % 32, all = t < 32 ? 0xffffffffu : 0xffffu;
           int row = 0;
           auto put = [&](float value) { p.c[48 * row++ + t] = value; };
           put(__shfl_sync(all, float(t), 3));
           put(__shfl_sync(all, float(t), lane + 1, 8));
           put(__shfl_up_sync(all, int(t), 2, 16));
           put(__shfl_down_sync(all, (long long)t, 3, 16));
           put(__shfl_xor_sync(all, double(t), 5));
           put(__popc(__ballot_sync(all, lane % 3 == 0)));
           put(__all_sync(all, lane < 16) + 2 * __any_sync(all, lane == 20));
           put(__popc(__match_any_sync(all, lane / 5)));
           put(__reduce_add_sync(all, t));
           put(__reduce_min_sync(all, int(lane) - 7));
           put(__reduce_max_sync(all, int(lane) - 7));
           // Halves of a warp apart from each other, in the order that the executor does not choose.
           if (lane >= 16) { put(__shfl_xor_sync(0xffff0000u, t, 1)); } else { put(__shfl_xor_sync(0xffffu, t, 2)); }
           put(__popc(__activemask()));
           __syncwarp(all);  // no lane has returned before the last has asked
         }",
    )
}

#[test]
fn warps_shuffle_and_vote_as_the_programming_guide_defines() {
    in_every_mode(|mode| {
        let mut mats = [Tensor::write("C", 13, 48)];
        warps().run_clean(mode, &line(1, 48), &mut mats);
        for t in 0..48_usize {
            let (lane, base) = (t % 32, t / 32 * 32);
            let live = if t < 32 { 32 } else { 16 };
            let want = [
                base + 3,
                base + lane / 8 * 8 + (lane + 1) % 8,
                if lane % 16 < 2 { t } else { t - 2 },
                if lane % 16 > 12 { t } else { t + 3 },
                base + (lane ^ 5),
                if t < 32 { 11 } else { 6 },
                if t < 32 { 2 } else { 1 },
                (0..live).filter(|l| l / 5 == lane / 5).count(),
                (base..base + live).sum(),
            ];
            for (row, want) in want.iter().enumerate() {
                assert_eq!(mats[0].at(row, t), *want as f32, "{mode}: row {row}, thread {t}");
            }
            assert_eq!((mats[0].at(9, t), mats[0].at(10, t)), (-7.0, (live - 8) as f32), "{mode}");
            assert_eq!(mats[0].at(11, t), (base + (lane ^ if lane >= 16 { 1 } else { 2 })) as f32, "{mode}");
            assert_eq!(mats[0].at(12, t), live as f32, "{mode}");
        }
    });
}

fn handover() -> Text {
    TEXTS.text(
        "handover",
        "struct Params { float *c; };
         extern \"C\" __global__ void handover(Params const p) {
           __shared__ float slot[64];
           unsigned const t = threadIdx.x;
           for (int turn = 0; turn < 3; ++turn) {
             slot[t] = float(t + turn);
             __syncwarp();
             float const next = slot[t / 32 * 32 + (t + 1) % 32];
             __syncwarp();
             p.c[64 * turn + t] = next;
           }
         }",
    )
}

#[test]
fn lanes_hand_over_shared_memory_by_syncwarp() {
    in_every_mode(|mode| {
        let mut mats = [Tensor::write("C", 3, 64)];
        handover().run_clean(mode, &line(1, 64), &mut mats);
        for t in 0..64 {
            assert_eq!(mats[0].at(2, t), (t / 32 * 32 + (t + 1) % 32 + 2) as f32, "{mode}");
        }
    });
}

fn histogram() -> Text {
    TEXTS.text(
        "histogram",
        "struct Params { float *c; };
         extern \"C\" __global__ void histogram(Params const p) {
           __shared__ int bins[8];
           __shared__ unsigned ring;
           __shared__ unsigned long long wide;
           unsigned const t = threadIdx.x;
           if (t < 8) { bins[t] = 0; }
           if (t == 8) { ring = 0; wide = 0; }
           __syncthreads();
           atomicAdd(&bins[t % 8], 1);
           atomicInc(&ring, 9u);
           atomicMax(&wide, (unsigned long long)t << 33);
           __syncthreads();
           if (t < 8) { atomicAdd(&p.c[t], float(bins[t])); }
           if (t == 9) { atomicAdd(&p.c[8], float(ring)); atomicAdd(&p.c[9], float(wide >> 33)); }
           // A maximum of floats by compare and swap, as one writes it where there is no instruction.
           int *maximum = reinterpret_cast<int *>(p.c + 10), seen = 0, expected;
           do {
             expected = seen;
             float const larger = fmaxf(__int_as_float(expected), float(t * blockIdx.x));
             seen = atomicCAS(maximum, expected, __float_as_int(larger));
           } while (seen != expected);
         }",
    )
}

#[test]
fn atomics_lose_nothing_across_threads_and_blocks() {
    in_every_mode(|mode| {
        let mut mats = [Tensor::write("C", 1, 12)];
        mats[0].data.fill(0.0);
        histogram().run_clean(mode, &line(20, 100), &mut mats);
        let want = [260, 260, 260, 260, 240, 240, 240, 240, 0, 20 * 99, 99 * 19, 0].map(|x| x as f32);
        assert_eq!(mats[0].data, want, "{mode}");
    });
}

fn prints() -> Text {
    TEXTS.text(
        "prints",
        "struct Params { float *c; };
         extern \"C\" __global__ void prints(Params const p) {
           float const sum = rsqrtf(4.0f) + __expf(0.0f) + min(3, 4) + max(2.0f, 1.0f);
           p.c[threadIdx.x] = sum + __clz(1) + __ffs(8) + __brev(1u);
           if (threadIdx.x == 1) { printf(\"thread %u says hello\\n\", threadIdx.x); }
         }",
    )
}

#[test]
fn kernels_without_barriers_may_print_and_use_host_math() {
    in_every_mode(|mode| {
        let mut mats = [Tensor::write("C", 1, 2)];
        let report = prints().run(mode, &line(1, 2), &mut mats);
        assert!(report.is_clean() && report.finished_blocks == 1, "{report}");
        assert_eq!(report.printed, "thread 1 says hello\n");
        assert_eq!(mats[0].data, [0.5 + 1.0 + 3.0 + 2.0 + 31.0 + 4.0 + 2_147_483_648.0; 2]);
    });
}

/// CuTe finds the widest vectors by itself; the dynamic part lies behind static variables that are not aligned.
fn vectors() -> Text {
    TEXTS.text(
        "vectors",
        "#include <cute/tensor.hpp>
         struct Params { float const *a; float *c; };
         extern \"C\" __global__ void __launch_bounds__(32, 2) vectors(__grid_constant__ Params const p) {
           using namespace cute;
           extern __shared__ __align__(128) unsigned char bytes[];
           __shared__ char odd[3];
           if (threadIdx.x < 3) { odd[threadIdx.x] = 1; }
           float *tile = reinterpret_cast<float *>(bytes);
           using Tile = Layout<Shape<_32, _4>, Stride<_4, _1>>;
           Tensor gA = make_tensor(make_gmem_ptr(p.a), Tile{});      // (32,4)
           Tensor sA = make_tensor(make_smem_ptr(tile), Tile{});     // (32,4)
           Tensor rA = make_tensor<float>(Layout<_4>{});             // (4)
           copy(AutoVectorizingCopy{}, gA(threadIdx.x, _), sA(threadIdx.x, _));
           __syncthreads();
           copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, sA(31 - threadIdx.x, _), rA);
           float4 const v = __ldg(reinterpret_cast<float4 const *>(p.a) + threadIdx.x);
           float4 sum;
           sum.x = __fmaf_rn(rA(0), 2.0f, v.x);
           sum.y = __fadd_rn(__fmul_rn(rA(1), 2.0f), v.y);
           sum.z = float(__dadd_rn(__dmul_rn(rA(2), 2.0), v.z));
           sum.w = __fsub_rn(v.w, -2.0f * rA(3)) + float(odd[threadIdx.x % 3] - 1) + (reinterpret_cast<uint64_t>(bytes) % 128 == 0 ? 0.0f : 0.5f);
           reinterpret_cast<float4 *>(p.c)[threadIdx.x] = sum;
         }",
    )
}

#[test]
fn vectors_go_through_aligned_dynamic_shared_memory_and_rounded_arithmetic() {
    in_every_mode(|mode| {
        // Begin at a multiple of 16.
        let aligned = |t: Tensor| {
            let t = t.padded(4, 0, 4, f32::NAN);
            let before = t.data.as_ptr().align_offset(16);
            Tensor { before, ..t }
        };
        let mut a = aligned(Tensor::read("A", 32, 4, |_, _| 0.0));
        (0..128).for_each(|i| a.data[a.before + i] = i as f32);
        let mut mats = [a, aligned(Tensor::write("C", 32, 4))];
        vectors().run_clean(mode, &Shape { smem: 512, ..line(1, 32) }, &mut mats);
        for (i, j) in (0..32).flat_map(|i| (0..4).map(move |j| (i, j))) {
            assert_eq!(mats[1].at(i, j), (2 * (4 * (31 - i) + j) + 4 * i + j) as f32, "{mode}");
        }
    });
}
