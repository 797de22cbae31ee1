//! Contract: the entries of a launch run one after the other on one workspace, which is full of NaN before; what reads or
//! writes past it, reads what nobody wrote, or runs in the wrong order, is found, and the entry is named.

#![cfg(feature = "host")]

use crate::host_common::{Tensor, Text, actor, only};
use crate::together::CUDA;
use cutemplate::exec::cxx::Mode;
use cutemplate::exec::{Buffer, FindingKind, Job, Report, Target};
use cutemplate::plan::{BoundTensor, EntryLaunch, Workspace};
use cutemplate::units::Bytes;

/// Parts that are summed, and columns.
const PARTS: usize = 3;
const COLS: usize = 40;

pub(crate) fn texts() -> Vec<(Text, &'static [Mode])> {
    vec![
        (split(), Mode::ALL),
        (unwritten_part(), Mode::ALL),
        (reads_past(), Mode::ALL),
        (writes_past(), Mode::ALL),
        (stops(), &[Mode::Plain]),
        (nothing(), Mode::ALL),
    ]
}

/// `split` doubles a row of A in each block and leaves it in the workspace, `(PARTS,COLS):(COLS,1)`; `split_reduce` adds the
/// rows of the workspace.
fn split() -> Text {
    CUDA.text(
        "split",
        "struct Params { float const *a; float *c; float *workspace; int parts, cols; };
         extern \"C\" __global__ void split(__grid_constant__ Params const p) {
           extern __shared__ float row[];
           for (int j = threadIdx.x; j < p.cols; j += blockDim.x) { row[j] = 2.0f * p.a[blockIdx.x * p.cols + j]; }
           __syncthreads();
           for (int j = threadIdx.x; j < p.cols; j += blockDim.x) {
             p.workspace[blockIdx.x * p.cols + j] = row[j];  // the part
           }
         }
         extern \"C\" __global__ void split_reduce(__grid_constant__ Params const p) {
           int const j = blockIdx.x * blockDim.x + threadIdx.x;
           if (j >= p.cols) { return; }
           float sum = 0.0f;
           for (int s = 0; s < p.parts; ++s) {
             sum += p.workspace[s * p.cols + j];  // every part
           }
           p.c[j] = sum;
         }",
    )
    .and("split_reduce")
}

fn a(i: usize, j: usize) -> f32 {
    (i * 100 + j) as f32
}

/// The row of C after a launch of these grids, and what was found.
fn launch(kernel: &Text, mode: Mode, launches: &[EntryLaunch]) -> (Vec<f32>, Report) {
    let mut tensors = [Tensor::read("A", PARTS, COLS, a), Tensor::write("C", 1, COLS)];
    let mut params = vec![0_u8; 24];
    params.extend([PARTS, COLS].iter().flat_map(|n| (*n as i32).to_ne_bytes()));
    let bound: Vec<BoundTensor> = (tensors.iter().enumerate())
        .map(|(i, t)| BoundTensor { name: t.name, view: t.view(), param_offset: 8 * i })
        .collect();
    let workspace = Some(Workspace { bytes: Bytes((4 * PARTS * COLS) as u64), param_offset: 16 });
    let job = Job { launches, params: &params, tensors: &bound, workspace, tensor_maps: &[] };
    let mut buffers: Vec<Buffer<'_>> = tensors.iter_mut().map(Tensor::buffer).collect();
    let report = kernel.compile(mode).run(&job, &mut buffers).expect("runs");
    (tensors[1].data.clone(), report)
}

fn grids() -> [EntryLaunch; 2] {
    let grid = |blocks| [blocks, 1, 1];
    [
        EntryLaunch {
            entry: 0,
            grid: grid(PARTS as u32),
            block: [32, 1, 1],
            dynamic_smem: 4 * COLS as u32,
            overlaps: false,
        },
        EntryLaunch { entry: 1, grid: grid(2), block: [32, 1, 1], dynamic_smem: 0, overlaps: false },
    ]
}

fn sums() -> Vec<f32> {
    (0..COLS).map(|j| (0..PARTS).map(|i| 2.0 * a(i, j)).sum()).collect()
}

const CHECKED: [Mode; 2] = [Mode::Bounds, Mode::Races];

#[test]
fn entries_run_in_order_on_one_workspace() {
    for mode in Mode::ALL {
        let (c, report) = launch(&split(), *mode, &grids());
        assert!(report.is_clean(), "{mode}: {report}\n{}", report.printed);
        assert_eq!((c, report.finished_blocks), (sums(), PARTS as u64 + 2), "{mode}");
    }
}

#[test]
fn no_grid_is_a_launch_that_does_nothing() {
    let (c, report) = launch(&split(), Mode::Plain, &[]);
    assert!(report.is_clean() && report.finished_blocks == 0, "{report}");
    assert!(c.iter().all(|x| x.is_nan()), "C is as it was");
}

#[test]
fn an_entry_that_runs_before_the_workspace_is_written_reads_nan() {
    let [first, second] = grids();
    for mode in Mode::ALL {
        let (c, report) = launch(&split(), *mode, &[second, first]);
        assert!(c.iter().all(|x| x.is_nan()), "{mode}: {c:?}");
        assert_eq!(report.is_clean(), *mode != Mode::Races, "{report}");
        if *mode == Mode::Races {
            let finding = only(&report);
            let want = Target::Workspace { offset: 0, size: (4 * PARTS * COLS) as u64 };
            assert_eq!((finding.kind, finding.target.as_ref()), (FindingKind::Uninitialized, Some(&want)), "{report}");
            assert_eq!(finding.entry.as_deref(), Some("split_reduce"));
            assert!(
                report.to_string().contains("thread (0,0,0) of block (0,0,0) of split_reduce reads 4 B"),
                "{report}"
            );
        }
    }
}

fn unwritten_part() -> Text {
    split().with("blockIdx.x * p.cols + j] = row[j];", "blockIdx.x / 2 * p.cols + j] = row[j];")
}

#[test]
fn a_part_that_nobody_writes_is_noticed() {
    for mode in Mode::ALL {
        let (c, report) = launch(&unwritten_part(), *mode, &grids());
        assert!(c.iter().all(|x| x.is_nan()), "{mode}: {c:?}");
        assert_eq!(report.is_clean(), *mode != Mode::Races, "{report}");
        let kinds: Vec<_> = report.findings.iter().map(|f| (f.kind, f.entry.as_deref())).collect();
        if *mode == Mode::Races {
            // Two blocks write one part, and the last part is never written.
            assert!(kinds.contains(&(FindingKind::Race, Some("split"))), "{report}");
            assert!(kinds.contains(&(FindingKind::Uninitialized, Some("split_reduce"))), "{report}");
        }
    }
}

fn reads_past() -> Text {
    split().with("s < p.parts;", "s <= p.parts;")
}

#[test]
fn a_read_past_the_workspace_is_found() {
    let broken = reads_past();
    let size = (4 * PARTS * COLS) as u64;
    for mode in CHECKED {
        let (_, report) = launch(&broken, mode, &grids());
        let finding = only(&report);
        let want = Target::Workspace { offset: size as i64, size };
        assert_eq!((finding.kind, finding.write), (FindingKind::OutOfBounds, false), "{report}");
        assert_eq!((finding.target.as_ref(), finding.who), (Some(&want), actor(0, 0)), "{report}");
        assert_eq!(finding.entry.as_deref(), Some("split_reduce"));
        assert_eq!(finding.line().map(|l| l.line), Some(broken.line_of("// every part")));
    }
    let (c, _) = launch(&broken, Mode::Plain, &grids());
    assert!(c.iter().all(|x| x.is_nan()), "what lies behind is NaN: {c:?}");
}

fn writes_past() -> Text {
    split().with("blockIdx.x * p.cols + j] = row[j];", "blockIdx.x * p.cols + j + 1] = row[j];")
}

#[test]
fn a_write_past_the_workspace_is_found_in_every_mode() {
    let size = (4 * PARTS * COLS) as u64;
    for mode in Mode::ALL {
        let (_, report) = launch(&writes_past(), *mode, &grids());
        let outside = report.findings.iter().find(|f| f.kind == FindingKind::OutOfBounds).expect("found");
        assert_eq!(outside.target, Some(Target::Workspace { offset: size as i64, size }), "{mode}: {report}");
        assert_eq!((outside.entry.as_deref(), outside.write), (Some("split"), true), "{mode}: {report}");
        assert_eq!(outside.who, if *mode == Mode::Plain { None } else { actor(PARTS as u32 - 1, 7) }, "{mode}");
    }
}

fn stops() -> Text {
    split().with("          extern __shared__ float row[];", "          extern __shared__ float row[]; __trap();")
}

#[test]
fn after_an_entry_that_stops_no_other_runs() {
    let (c, report) = launch(&stops(), Mode::Plain, &grids());
    assert!(report.findings.iter().all(|f| (f.kind, f.entry.as_deref()) == (FindingKind::Trap, Some("split"))));
    assert!(!report.is_clean() && report.finished_blocks == 0 && c.iter().all(|x| x.is_nan()), "{report}");
}

fn nothing() -> Text {
    CUDA.text(
        "nothing",
        "struct Params { float const *a; float *c; int k; };
         extern \"C\" __global__ void nothing(Params const p) {
           float sum = 0.0f;
           for (int k = 0; k < p.k; ++k) { sum += p.a[threadIdx.x * p.k + k]; }
           p.c[threadIdx.x] = sum;
         }",
    )
}

#[test]
fn a_tensor_without_elements_may_be_nowhere_and_may_not_be_touched() {
    for mode in Mode::ALL {
        for k in [0_i32, 1] {
            let mut c = Tensor::write("C", 1, 4);
            // `(4,0)`, past the end of its allocation.
            let mut none = Tensor { before: 1, rows: 4, cols: 0, ld: 0, ..Tensor::read("A", 1, 1, a) };
            let params = [[0_u8; 16].as_slice(), &k.to_ne_bytes(), &[0; 4]].concat();
            let tensors = [
                BoundTensor { name: "A", view: none.view(), param_offset: 0 },
                BoundTensor { name: "C", view: c.view(), param_offset: 8 },
            ];
            let launches = [EntryLaunch { entry: 0, grid: [1; 3], block: [4, 1, 1], dynamic_smem: 0, overlaps: false }];
            let job =
                Job { launches: &launches, params: &params, tensors: &tensors, workspace: None, tensor_maps: &[] };
            let report = nothing().compile(*mode).run(&job, &mut [none.buffer(), c.buffer()]).expect("runs");
            if k == 0 {
                assert!(report.is_clean() && c.data == [0.0; 4], "{mode}: {report}");
            } else if *mode != Mode::Plain {
                let finding = only(&report);
                assert_eq!(
                    (finding.kind, finding.write, finding.count),
                    (FindingKind::OutOfBounds, false, 4),
                    "{report}"
                );
                assert!(matches!(finding.target, Some(Target::Tensor { name: "A", .. })), "{report}");
            }
        }
    }
}
