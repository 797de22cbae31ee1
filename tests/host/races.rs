//! Contract: accesses that nothing orders are found, with kind, block, thread, tensor and coordinate, line, and the
//! other side; the same kernel without the defect is told nothing.

#![cfg(feature = "host")]

use crate::host_common::{Tensor, Text, actor, element, line, line_number, only};
use crate::together::CUDA;
use cutemplate::exec::cxx::Mode;
use cutemplate::exec::{FindingKind, Report, Target};

pub(crate) fn texts() -> Vec<(Text, &'static [Mode])> {
    let races = |text: Text| (text, &[Mode::Races][..]);
    let mut all = vec![(stale(), Mode::ALL)];
    all.extend([block_sum(), no_first_barrier(), no_second_barrier()].map(races));
    all.extend([lanes(), no_syncwarp(), neighbour(), counts()].map(races));
    all.extend([ROW_MAJOR, WRONG_ROWS, PER_BLOCK, PER_THREAD].map(|index| races(scatter(index))));
    all
}

fn block_sum() -> Text {
    CUDA.text(
        "block_sum",
        "struct Params { float const *a; float *c; };
         extern \"C\" __global__ void block_sum(Params const p) {
           __shared__ float partial[64];
           partial[threadIdx.x] = p.a[blockIdx.x * 64 + threadIdx.x];
           __syncthreads();  // all are written
           for (unsigned half = 32; half > 0; half /= 2) {
             if (threadIdx.x < half) {
               partial[threadIdx.x] += partial[threadIdx.x + half];
             }
             __syncthreads();  // all are added
           }
           if (threadIdx.x == 0) { p.c[blockIdx.x] = partial[0]; }
         }",
    )
}

fn no_first_barrier() -> Text {
    block_sum().with("__syncthreads();  // all are written", "")
}

fn no_second_barrier() -> Text {
    block_sum().with("__syncthreads();  // all are added", "")
}

fn sums(kernel: &Text) -> Report {
    let mut mats = [Tensor::read("A", 1, 128, |_, j| j as f32), Tensor::write("C", 1, 2)];
    kernel.run(Mode::Races, &line(2, 64), &mut mats)
}

#[test]
fn a_missing_barrier_after_the_copy_is_a_race() {
    assert!(sums(&block_sum()).is_clean());
    let broken = no_first_barrier();
    let report = sums(&broken);
    // Thread 0 runs first, and reads what thread 32 has not written yet.
    let [stale, race] = &report.findings[..] else { panic!("{report}") };
    let partial = Target::Shared { name: "partial".into(), offset: 128, size: 256 };
    assert_eq!(
        (stale.kind, stale.who, stale.target.as_ref()),
        (FindingKind::Uninitialized, actor(0, 0), Some(&partial))
    );
    assert_eq!((race.kind, race.who, race.target.as_ref()), (FindingKind::Race, actor(0, 32), Some(&partial)));
    assert_eq!((race.write, line_number(race)), (true, Some(broken.line_of("= p.a["))));
    let earlier = race.other.as_ref().expect("two sides");
    assert_eq!((Some(earlier.who), earlier.write), (actor(0, 0), false));
    assert_eq!(earlier.line().map(|l| l.line), Some(broken.line_of("partial[threadIdx.x] +=")));
}

#[test]
fn a_missing_barrier_in_the_loop_is_a_race() {
    let report = sums(&no_second_barrier());
    assert!(!report.is_clean());
    assert!(report.findings.iter().all(|f| f.kind == FindingKind::Race), "{report}");
}

fn lanes() -> Text {
    CUDA.text(
        "lanes",
        "struct Params { float *c; };
         extern \"C\" __global__ void lanes(Params const p) {
           __shared__ float slot[32];
           slot[threadIdx.x] = 1.0f;
           __syncwarp();
           p.c[threadIdx.x] = slot[threadIdx.x ^ 1];
         }",
    )
}

fn no_syncwarp() -> Text {
    lanes().with("__syncwarp();", "")
}

#[test]
fn a_missing_syncwarp_is_a_race_between_lanes() {
    let run = |kernel: &Text| kernel.run(Mode::Races, &line(1, 32), &mut [Tensor::write("C", 1, 32)]);
    assert!(run(&lanes()).is_clean());
    let report = run(&no_syncwarp());
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::Race), "{report}");
}

const ROW_MAJOR: &str = "threadIdx.x / 16 * 20 + threadIdx.x % 16";
const WRONG_ROWS: &str = "threadIdx.x / 16 * 20 + threadIdx.x % 15";
const PER_BLOCK: &str = "blockIdx.x * blockDim.x + threadIdx.x";
const PER_THREAD: &str = "threadIdx.x";

fn scatter(index: &str) -> Text {
    CUDA.text(
        "scatter",
        &format!(
            "struct Params {{ float *c; }};
             extern \"C\" __global__ void scatter(Params const p) {{
               p.c[{index}] = float(threadIdx.x);
             }}"
        ),
    )
}

#[test]
fn two_threads_of_a_block_on_one_element_are_a_race() {
    let matrix = || [Tensor::write("C", 4, 16).padded(20, 0, 0, 0.0)];
    assert!(scatter(ROW_MAJOR).run(Mode::Races, &line(1, 64), &mut matrix()).is_clean());
    let report = scatter(WRONG_ROWS).run(Mode::Races, &line(1, 64), &mut matrix());
    let finding = only(&report);
    assert_eq!((finding.kind, finding.who, finding.write), (FindingKind::Race, actor(0, 15), true), "{report}");
    assert_eq!((element(finding), finding.bytes, finding.count), (("C", (0, 0)), 4, 4), "once for each row");
    assert_eq!(finding.other.as_ref().map(|e| e.who), actor(0, 0));
    assert_eq!(line_number(finding), Some(3));
}

#[test]
fn two_blocks_on_one_element_are_a_race() {
    assert!(scatter(PER_BLOCK).run(Mode::Races, &line(3, 8), &mut [Tensor::write("C", 3, 8)]).is_clean());
    let report = scatter(PER_THREAD).run(Mode::Races, &line(3, 8), &mut [Tensor::write("C", 3, 8)]);
    let finding = only(&report);
    assert_eq!((finding.kind, finding.who, element(finding)), (FindingKind::Race, actor(1, 0), ("C", (0, 0))));
    assert_eq!(finding.other.as_ref().map(|e| e.who), actor(0, 0));
    assert_eq!(finding.count, 16, "every element of two blocks");
}

fn neighbour() -> Text {
    CUDA.text(
        "neighbour",
        "struct Params { float *c; };
         extern \"C\" __global__ void neighbour(Params const p) {
           unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
           float const next = p.c[(i + 1) % 8];
           __syncthreads();
           p.c[i] = next;
         }",
    )
}

#[test]
fn a_block_that_reads_what_another_writes_is_a_race() {
    let one_block = neighbour().run(Mode::Races, &line(1, 8), &mut [Tensor::write("C", 1, 8)]);
    assert!(one_block.is_clean(), "{one_block}");
    let report = neighbour().run(Mode::Races, &line(2, 4), &mut [Tensor::write("C", 1, 8)]);
    let kinds: Vec<_> = report.findings.iter().map(|f| (f.kind, f.write, element(f))).collect();
    // Block 1 writes C(0,4), which block 0 has read, and reads C(0,0), which block 0 has written.
    assert!(kinds.contains(&(FindingKind::Race, true, ("C", (0, 4)))), "{report}");
    assert!(kinds.contains(&(FindingKind::Race, false, ("C", (0, 0)))), "{report}");
}

fn counts() -> Text {
    CUDA.text(
        "counts",
        "struct Params { float *c; };
         extern \"C\" __global__ void counts(Params const p) {
           if (threadIdx.x == 0) { p.c[0] = 1.0f; } else { atomicAdd(p.c, 1.0f); }
         }",
    )
}

#[test]
fn an_atomic_and_a_plain_access_are_a_race() {
    let report = counts().run(Mode::Races, &line(1, 4), &mut [Tensor::write("C", 1, 1)]);
    assert_eq!((only(&report).kind, only(&report).who), (FindingKind::Race, actor(0, 1)));
}

fn stale() -> Text {
    CUDA.text(
        "stale",
        "struct Params { float *c; };
         extern \"C\" __global__ void stale(Params const p) {
           __shared__ float tile[32];
           if (threadIdx.x < 31) { tile[threadIdx.x] = 1.0f; }
           __syncthreads();
           p.c[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
         }",
    )
}

#[test]
fn shared_memory_that_nobody_wrote_is_noticed() {
    for mode in Mode::ALL {
        let mut mats = [Tensor::write("C", 2, 32)];
        let report = stale().run(*mode, &line(2, 32), &mut mats);
        assert!(mats[0].at(0, 31).is_nan() && mats[0].at(1, 31).is_nan(), "nothing is left over from the block before");
        assert_eq!(report.is_clean(), *mode != Mode::Races, "{report}");
        if let [finding] = &report.findings[..] {
            assert_eq!((finding.kind, finding.who), (FindingKind::Uninitialized, actor(0, 31)));
            let tile = Target::Shared { name: "tile".into(), offset: 124, size: 128 };
            assert_eq!(finding.target, Some(tile));
        }
    }
}

#[test]
fn the_same_run_gives_the_same_report() {
    let broken = no_first_barrier();
    assert_eq!(sums(&broken), sums(&broken));
}
