//! Contract: a CuTe SGEMM with shared-memory tiles and barriers, as one writes it for a GPU, runs unchanged and is
//! exact, in every mode; without its second barrier it is a race.

#![cfg(feature = "host")]

use crate::host_common::{Shape, Tensor, Text, element};
use crate::together::CUTE;
use cutemplate::exec::cxx::Mode;
use cutemplate::exec::{FindingKind, Target};

/// C = alpha * A * B + beta * C by tiles (64,64,8) with a thread tile of (8,8), the outer products in registers.
const SGEMM: &str = r#"
#include <cute/tensor.hpp>

struct Params { float const* A; float const* B; float* C; int M, N, K; float alpha, beta; };

extern "C" __global__ void __launch_bounds__(64) sgemm(__grid_constant__ Params const params) {
  using namespace cute;
  int const M = params.M, N = params.N, K = params.K;
  Tensor mA = make_tensor(make_gmem_ptr(params.A), make_layout(make_shape(M, K), LayoutRight{}));  // (M,K)
  Tensor mB = make_tensor(make_gmem_ptr(params.B), make_layout(make_shape(K, N), LayoutRight{}));  // (K,N)
  Tensor mC = make_tensor(make_gmem_ptr(params.C), make_layout(make_shape(M, N), LayoutRight{}));  // (M,N)

  using BM = Int<64>; using BN = Int<64>; using BK = Int<8>; using TM = Int<8>; using TN = Int<8>;
  Tensor gA = local_tile(mA, make_shape(BM{}, BK{}), make_coord(blockIdx.y, _));           // (BM,BK,k)
  Tensor gB = local_tile(mB, make_shape(BK{}, BN{}), make_coord(_, blockIdx.x));           // (BK,BN,k)
  Tensor gC = local_tile(mC, make_shape(BM{}, BN{}), make_coord(blockIdx.y, blockIdx.x));  // (BM,BN)

  auto sA_layout = make_layout(make_shape(BM{}, BK{}), LayoutRight{});
  auto sB_layout = make_layout(make_shape(BK{}, BN{}), LayoutRight{});
  alignas(16) __shared__ float smem_A[cosize_v<decltype(sA_layout)>];
  alignas(16) __shared__ float smem_B[cosize_v<decltype(sB_layout)>];
  Tensor sA = make_tensor(make_smem_ptr(smem_A), sA_layout);  // (BM,BK)
  Tensor sB = make_tensor(make_smem_ptr(smem_B), sB_layout);  // (BK,BN)

  auto tA = make_layout(make_shape(Int<8>{}, Int<8>{}), LayoutRight{});
  auto tB = make_layout(make_shape(Int<1>{}, Int<64>{}), LayoutRight{});
  Tensor tAgA = local_partition(gA, tA, threadIdx.x);  // (8,1,k)
  Tensor tAsA = local_partition(sA, tA, threadIdx.x);  // (8,1)
  Tensor tBgB = local_partition(gB, tB, threadIdx.x);  // (8,1,k)
  Tensor tBsB = local_partition(sB, tB, threadIdx.x);  // (8,1)

  auto m = threadIdx.x / (BN{} / TN{});
  auto n = threadIdx.x % (BN{} / TN{});
  Tensor tCsA = local_tile(sA, make_shape(TM{}, Int<1>{}), make_coord(m, _));  // (TM,1,BK)
  Tensor tCsB = local_tile(sB, make_shape(Int<1>{}, TN{}), make_coord(_, n));  // (1,TN,BK)
  Tensor tCgC = local_tile(gC, make_shape(TM{}, TN{}), make_coord(m, n));      // (TM,TN)
  Tensor rC = make_tensor<float>(make_shape(TM{}, TN{}));                      // (TM,TN)
  Tensor rA = make_tensor<float>(make_shape(TM{}));                            // (TM)
  Tensor rB = make_tensor<float>(make_shape(TN{}));                            // (TN)
  clear(rC);

  for (int tile = 0; tile < size<2>(gA); ++tile) {
    copy(tAgA(_, _, tile), tAsA);
    copy(tBgB(_, _, tile), tBsB);
    __syncthreads();
    CUTE_UNROLL
    for (int k = 0; k < BK{}; ++k) {
      copy(tCsA(_, 0, k), rA);
      copy(tCsB(0, _, k), rB);
      CUTE_UNROLL
      for (int i = 0; i < TM{}; ++i) {
        CUTE_UNROLL
        for (int j = 0; j < TN{}; ++j) {
          rC(i, j) += rA(i) * rB(j);
        }
      }
    }
    __syncthreads();  // the next tile overwrites what was read
  }

  CUTE_UNROLL
  for (int i = 0; i < TM{}; ++i) {
    CUTE_UNROLL
    for (int j = 0; j < TN{}; ++j) {
      tCgC(i, j) = params.alpha * rC(i, j) + params.beta * tCgC(i, j);
    }
  }
}
"#;

pub(crate) fn texts() -> Vec<(Text, &'static [Mode])> {
    vec![(sgemm(), Mode::ALL), (no_second_barrier(), &[Mode::Races])]
}

fn sgemm() -> Text {
    CUTE.text("sgemm", SGEMM)
}

fn no_second_barrier() -> Text {
    sgemm().with("    __syncthreads();  // the next tile overwrites what was read\n", "")
}

/// Small integers: every order of summation is exact.
fn a(i: usize, k: usize) -> f32 {
    ((i * 7 + k * 3) % 11) as f32 - 5.0
}

fn b(k: usize, j: usize) -> f32 {
    ((k * 5 + j * 13) % 9) as f32 - 4.0
}

fn c(i: usize, j: usize) -> f32 {
    ((i + 2 * j) % 7) as f32
}

fn matrices(m: usize, n: usize, k: usize) -> [Tensor; 3] {
    let mut out = Tensor::write("C", m, n);
    for i in 0..m * n {
        out.data[i] = c(i / n, i % n);
    }
    [Tensor::read("A", m, k, a), Tensor::read("B", k, n, b), out]
}

fn shape(m: usize, n: usize, ints: &[i32]) -> Shape<'_> {
    Shape { entry: 0, grid: [(n / 64) as u32, (m / 64) as u32, 1], block: [64, 1, 1], smem: 0, ints }
}

fn check(mode: Mode, m: usize, n: usize, k: usize) {
    let ints = [m as i32, n as i32, k as i32, 2.0_f32.to_bits().cast_signed(), 3.0_f32.to_bits().cast_signed()];
    let mut mats = matrices(m, n, k);
    sgemm().run_clean(mode, &shape(m, n, &ints), &mut mats);
    for i in 0..m {
        for j in 0..n {
            let sum: f64 = (0..k).map(|l| f64::from(a(i, l)) * f64::from(b(l, j))).sum();
            let want = (2.0 * sum + 3.0 * f64::from(c(i, j))) as f32;
            assert_eq!(mats[2].at(i, j).to_bits(), want.to_bits(), "C({i},{j})");
        }
    }
}

#[test]
fn plain_is_exact_to_the_bit() {
    check(Mode::Plain, 128, 192, 72);
}

#[test]
fn bounds_is_exact_and_finds_nothing() {
    check(Mode::Bounds, 64, 128, 24);
}

#[test]
fn races_is_exact_and_finds_nothing() {
    check(Mode::Races, 128, 64, 24);
}

#[test]
fn without_the_second_barrier_it_is_a_race_on_shared_memory() {
    let ints = [64, 64, 24, 1.0_f32.to_bits().cast_signed(), 0];
    let report = no_second_barrier().run(Mode::Races, &shape(64, 64, &ints), &mut matrices(64, 64, 24));
    assert!(!report.is_clean());
    for finding in &report.findings {
        assert_eq!(finding.kind, FindingKind::Race, "{finding}");
        assert!(matches!(&finding.target, Some(Target::Shared { name, .. }) if name == "smem_A" || name == "smem_B"));
        let earlier = finding.other.as_ref().expect("a race has two sides");
        assert!(finding.write || earlier.write, "{finding}");
        assert_ne!(finding.who, Some(earlier.who), "{finding}");
        assert!(finding.line().is_some_and(|l| l.file == "sgemm.cu"), "{finding}");
    }
}

#[test]
fn a_block_too_many_writes_behind_the_matrix() {
    let ints = [64, 64, 8, 1.0_f32.to_bits().cast_signed(), 0];
    let mut mats = matrices(64, 64, 8);
    let shape = Shape { entry: 0, grid: [1, 2, 1], ..shape(64, 64, &ints) };
    let report = sgemm().run(Mode::Bounds, &shape, &mut mats);
    let of = |name| report.findings.iter().find(|f| element(f).0 == name).unwrap_or_else(|| panic!("{name}: {report}"));
    let read = of("A");
    assert_eq!((read.kind, read.write, element(read)), (FindingKind::OutOfBounds, false, ("A", (64, 0))));
    let actor = read.who.expect("known");
    assert_eq!((actor.block, actor.thread), ([0, 1, 0], Some([0, 0, 0])));
    assert_eq!(element(of("C")), ("C", (64, 0)));
}
