//! Contract: asynchronous copies arrive when PTX says that they have, and not before: a CuTe SGEMM with a pipeline of three
//! stages runs unchanged and is exact, in every mode; a wait that is too weak, a group that is never committed, a barrier
//! that is missing, an address that is misaligned or outside, each is found.

#![cfg(feature = "host")]

use crate::host_common;

use cutemplate::exec::cxx::Mode;
use cutemplate::exec::{Finding, FindingKind, Report, Target};
use host_common::{Shape, Tensor, Text, actor, element, line, line_number, text};

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

const M: usize = 50;
const N: usize = 44;

fn pipelined() -> Text {
    text("pipelined", PIPELINED)
}

/// Small integers: every order of summation is exact.
fn a(i: usize, k: usize) -> f32 {
    ((i * 7 + k * 3) % 11) as f32 - 5.0
}

fn b(k: usize, j: usize) -> f32 {
    ((k * 5 + j * 13) % 9) as f32 - 4.0
}

fn run(kernel: &Text, mode: Mode, k: usize, offset: usize) -> (bool, Report) {
    run_entry(kernel, 0, mode, k, offset)
}

/// Runs an entry for a K, with A so many elements behind its allocation; whether every element of C is right, and what was
/// found.
fn run_entry(kernel: &Text, entry: usize, mode: Mode, k: usize, offset: usize) -> (bool, Report) {
    let ints = [M as i32, N as i32, k as i32];
    let smem = 4 * 3 * (384 + 256);
    let shape = Shape { entry, grid: [2, 2, 1], block: [64, 1, 1], smem, ints: &ints };
    let a_matrix = Tensor::read("A", M, k, a).padded(k, offset, 0, f32::NAN);
    let mut mats = [a_matrix, Tensor::read("B", k, N, b), Tensor::write("C", M, N)];
    let report = kernel.run(mode, &shape, &mut mats);
    let want = |i, j| (0..k).map(|l| f64::from(a(i, l)) * f64::from(b(l, j))).sum::<f64>() as f32;
    let right = (0..M * N).all(|e| mats[2].at(e / N, e % N).to_bits() == want(e / N, e % N).to_bits());
    (right, report)
}

fn of(report: &Report, kind: FindingKind) -> &Finding {
    report.findings.iter().find(|f| f.kind == kind).unwrap_or_else(|| panic!("no {kind:?}: {report}"))
}

#[test]
fn a_pipeline_of_three_stages_is_exact_and_nothing_is_found() {
    for mode in Mode::ALL {
        // No more tiles than are in flight, more, and a last one that is not full.
        for k in [4, 8, 16, 24, 68] {
            let (right, report) = run(&pipelined(), *mode, k, 0);
            assert!(report.is_clean(), "{mode}, K = {k}: {report}\n{}", report.printed);
            assert!(right, "{mode}, K = {k}");
        }
    }
}

#[test]
fn every_width_and_kind_of_copy_is_exact() {
    let entries = ["others_a", "others_b", "others_c", "others_d"];
    let mut kernel = entries.iter().fold(pipelined(), |kernel, entry| kernel.and(entry));
    kernel.text.push_str(OTHERS);
    for entry in 1..=entries.len() {
        // Whole tiles along K: columns past the edge of B are never looked at.
        let (right, report) = run_entry(&kernel, entry, Mode::Bounds, 40, 0);
        assert!(report.is_clean(), "{entry}: {report}\n{}", report.printed);
        assert!(right, "{entry}");
    }
}

/// The kernel with a defect that shows as a race, or a read of what nobody wrote, on dynamic shared memory.
fn is_found(broken: &Text) {
    let (_, report) = run(broken, Mode::Races, 68, 0);
    assert!(!report.is_clean());
    for finding in &report.findings {
        assert!(matches!(finding.kind, FindingKind::Race | FindingKind::Uninitialized), "{finding}");
        assert!(matches!(finding.target, Some(Target::DynamicShared { .. })), "{finding}");
    }
    let race = of(&report, FindingKind::Race);
    let earlier = race.other.as_ref().expect("a race has two sides");
    assert!(race.write || earlier.write, "{race}");
    assert_eq!(race.line().map(|l| l.file.as_str()), Some("pipelined.cu"), "{race}");
}

#[test]
fn a_wait_that_is_too_weak_is_found() {
    let broken = pipelined().with("cp_async_wait<Stages - 2>();", "cp_async_wait<Stages - 1>();");
    is_found(&broken);
    for mode in [Mode::Plain, Mode::Races] {
        assert!(!run(&broken, mode, 68, 0).0, "{mode}: a right result by chance");
    }
}

#[test]
fn a_group_that_is_not_committed_is_found() {
    is_found(&pipelined().with("cp_async_fence();  // the group of the next tile", ""));
}

#[test]
fn a_missing_barrier_after_the_wait_is_found() {
    let whole =
        "__syncthreads();  // every thread's part of this tile is there, and nobody reads the tile before it any more";
    is_found(&pipelined().with(whole, ""));
}

#[test]
fn a_tile_that_is_overwritten_while_it_is_read_is_found() {
    // The tile goes where the one of this turn is.
    let broken = pipelined().with("fetch(next, next % Stages);", "fetch(next, tile % Stages);");
    let (_, report) = run(&broken, Mode::Races, 68, 0);
    let race = of(&report, FindingKind::Race);
    assert!(race.other.is_some() && matches!(race.target, Some(Target::DynamicShared { .. })), "{report}");
}

#[test]
fn a_misaligned_source_is_found_in_every_mode() {
    for mode in Mode::ALL {
        let (_, report) = run(&pipelined(), *mode, 8, 1);
        let is_copy = |f: &&Finding| f.detail.contains("by cp.async");
        let finding = report.findings.iter().find(is_copy).unwrap_or_else(|| panic!("{mode}: {report}"));
        assert_eq!((finding.kind, element(finding)), (FindingKind::Misaligned, ("A", (0, 0))), "{mode}: {finding}");
        // In plain mode blocks run side by side, and any of them may be seen first.
        let thread = finding.who.and_then(|actor| actor.thread);
        assert_eq!((finding.bytes, thread), (16, Some([0, 0, 0])), "{mode}: {finding}");
        assert!(*mode == Mode::Plain || finding.who == actor(0, 0), "{mode}: {finding}");
    }
}

#[test]
fn a_source_outside_of_its_matrix_is_found_at_the_copy() {
    // With 8 rows of B, what lies behind a row is the next one, so that only behind the last row is outside.
    let unchecked = [
        ("copyA.with(in_A)", "copyA.with(true)", ("A", (50, 0)), "// A\n"),
        ("copy_if(copyB, tBpB, tBgB", "copy(copyB, tBgB", ("B", (8, 0)), "// B\n"),
    ];
    for (from, to, outside, comment) in unchecked {
        let broken = pipelined().with(from, to);
        let (_, report) = run(&broken, Mode::Bounds, 8, 0);
        let finding = of(&report, FindingKind::OutOfBounds);
        assert_eq!((element(finding), finding.write), (outside, false), "{report}");
        assert_eq!(line_number(finding), Some(broken.line_of(comment)), "{report}");
    }
}

/// Thread t copies A(0,t) to slot t and gives slot t.
fn single(body: &str) -> Text {
    text(
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

fn run_single(kernel: &Text, mode: Mode) -> (Vec<f32>, Report) {
    let mut mats = [Tensor::read("A", 1, 64, a), Tensor::write("C", 1, 64), Tensor::write("D", 1, 64)];
    mats[2].data = (0..64).map(|i| i as f32).collect();
    let report = kernel.run(mode, &line(1, 64), &mut mats);
    (mats[1].data.clone(), report)
}

#[test]
fn words_are_copied_at_the_wait_and_not_before() {
    let kernel = single(
        "slot[t] = -1.0f;
         SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[t], slot[t]);
         cp_async_wait<0>();
         p.c[t] = slot[t];",
    );
    for mode in Mode::ALL {
        let (c, report) = run_single(&kernel, *mode);
        assert!(report.is_clean(), "{mode}: {report}");
        assert_eq!(c, (0..64).map(|t| a(0, t)).collect::<Vec<_>>(), "{mode}");
    }
    // Before the wait the same thread sees what was there, and mode races says so.
    let early = single(
        "slot[t] = -1.0f;
         SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[t], slot[t]);  // the copy
         p.c[t] = slot[t];  // too early
         cp_async_wait<0>();",
    );
    let (c, report) = run_single(&early, Mode::Plain);
    assert!(report.is_clean() && c == [-1.0; 64], "{c:?}");
    let (_, report) = run_single(&early, Mode::Races);
    let race = of(&report, FindingKind::Race);
    assert_eq!((race.write, line_number(race)), (true, Some(early.line_of("// the copy"))), "{report}");
    let earlier = race.other.as_ref().expect("two sides");
    assert_eq!((Some(earlier.who), earlier.write), (race.who, false), "{report}");
    assert_eq!(earlier.line().map(|l| l.line), Some(early.line_of("// too early")));
}

#[test]
fn what_is_not_read_is_zero() {
    let kernel = single(
        "slot[t] = -1.0f;
         SM80_CP_ASYNC_CACHEALWAYS_ZFILL<float>::copy(p.a[t < 40 ? t : 1000], slot[t], t < 40);
         cp_async_fence();
         cp_async_wait(Int<0>{});
         p.c[t] = slot[t];",
    );
    for mode in Mode::ALL {
        let (c, report) = run_single(&kernel, *mode);
        assert!(report.is_clean(), "{mode}: {report}");
        assert_eq!(c, (0..64).map(|t| if t < 40 { a(0, t) } else { 0.0 }).collect::<Vec<_>>(), "{mode}");
    }
}

#[test]
fn a_source_that_another_thread_writes_before_the_wait_is_a_race() {
    // A barrier on each side of the write orders nothing: the copy goes on until the wait.
    let kernel = single(
        "SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.d[t], slot[t]);
         __syncthreads();
         p.d[63 - t] = 1.0f;
         __syncthreads();
         cp_async_wait<0>();
         p.c[t] = slot[t];",
    );
    let (_, report) = run_single(&kernel, Mode::Races);
    let race = of(&report, FindingKind::Race);
    assert_eq!((race.write, element(race)), (false, ("D", (0, 0))), "{report}");
    assert_eq!(race.other.as_ref().map(|e| e.write), Some(true), "{report}");
    let (_, report) = run_single(
        &kernel.with(
            "__syncthreads();\n         p.d[63",
            "cp_async_wait<0>();\n         __syncthreads();\n         p.d[63",
        ),
        Mode::Races,
    );
    assert!(report.is_clean(), "{report}");
}

#[test]
fn another_lane_sees_the_copy_after_the_wait_and_syncwarp() {
    let kernel = single(
        "SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[t], slot[t]);
         cp_async_wait<0>();
         __syncwarp();  // of the warp
         p.c[t] = slot[t ^ 1];",
    );
    let (c, report) = run_single(&kernel, Mode::Races);
    assert!(report.is_clean() && c[5] == a(0, 4), "{report}");
    let (_, report) = run_single(&kernel.with("__syncwarp();  // of the warp", ""), Mode::Races);
    assert!(!report.is_clean());
    // A __syncwarp ahead of the wait is of no use.
    let ahead = kernel
        .with("__syncwarp();  // of the warp", "")
        .with("cp_async_wait<0>();", "__syncwarp(); cp_async_wait<0>();");
    let (_, report) = run_single(&ahead, Mode::Races);
    assert!(!report.is_clean());
}

#[test]
fn copies_that_nobody_waits_for_end_with_their_thread() {
    // Nothing is left over for the second block, and a copy into a slot that another thread has read is a race.
    let kernel = text(
        "leaves",
        "#include <cute/arch/copy_sm80.hpp>
         struct Params { float const *a; float *c; };
         extern \"C\" __global__ void leaves(Params const p) {
           __shared__ float slot[32];
           slot[threadIdx.x] = -1.0f;
           if (blockIdx.x == 0) { cute::SM80_CP_ASYNC_CACHEALWAYS<float>::copy(p.a[threadIdx.x], slot[threadIdx.x]); }
           if (blockIdx.x == 1) { cute::cp_async_wait<0>(); p.c[threadIdx.x] = slot[threadIdx.x]; }
         }",
    );
    for mode in Mode::ALL {
        let mut mats = [Tensor::read("A", 1, 32, a), Tensor::write("C", 1, 32)];
        kernel.run_clean(*mode, &line(2, 32), &mut mats);
        assert_eq!(mats[1].data, [-1.0; 32], "{mode}");
    }
}

#[test]
fn only_shared_memory_is_a_destination_and_only_other_memory_a_source() {
    for (copy, detail) in [
        ("copy(p.a[t], p.c[t]);", "the destination of cp.async does not lie in shared memory"),
        ("copy(slot[t ^ 1], slot[t]);", "the source of cp.async lies in shared memory"),
    ] {
        let kernel = single(&format!("slot[t] = 0.0f; SM80_CP_ASYNC_CACHEALWAYS<float>::{copy}"));
        for mode in Mode::ALL {
            let (_, report) = run_single(&kernel, *mode);
            let finding = of(&report, FindingKind::Undefined);
            assert_eq!((finding.detail.as_str(), finding.who), (detail, actor(0, 0)), "{mode}: {report}");
        }
    }
}

#[test]
fn the_compiler_refuses_what_no_instruction_copies() {
    use cutemplate::emit::SourceFile;
    use cutemplate::exec::cxx::{Program, Source};
    for (op, value) in [("CACHEALWAYS", "short"), ("CACHEGLOBAL", "float")] {
        let kernel = single(&format!("{value} v; SM80_CP_ASYNC_{op}<{value}>::copy(v, v);"));
        let files = [SourceFile { name: "single.cu".into(), text: kernel.text }];
        let error = Program::compile(Source::new("single", &files), Mode::Plain, &host_common::options());
        assert!(error.expect_err("refused").to_string().contains("which cp.async has"), "{op}");
    }
}
