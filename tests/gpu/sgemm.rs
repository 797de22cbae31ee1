//! Contract: on a GPU, an `sgemm` recipe of any rung, tile, epilogue and storage is refused with a reason, or its kernel is right
//! for every problem, layout, address and input, and touches nothing else; so are the rungs at the sizes that are measured.
//!
//! Where there is no GPU the tests say that they did not run. `support/gpu.rs` tells how to carry them to one, compiled here or
//! there. `CUTEMPLATE_SGEMM_RECIPES` and `CUTEMPLATE_SGEMM_FIRST` set which recipes are drawn, and have to be the same here and
//! there.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;

use crate::kernels::sgemm::{asked, edges};
use crate::kernels::{Random, Tally};
use crate::projection::Projection;
use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::DType;
use cutemplate::launch::{AnyKernel, DeviceTensor, Gpu};
use cutemplate::plan::Plan;
use cutemplate::recipe::sgemm::{SgemmArgs, Variant};
use cutemplate::recipe::{Recipe, Sgemm};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Fill, Tensor, TensorLayout, Verdict};
use cutemplate::view::{Args, DeviceMemory};

fn targets() -> Targets {
    Targets::new([Arch::Sm90a]).expect("not empty")
}

fn recipe(settings: &str) -> Sgemm {
    Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

#[test]
#[ignore = "needs a GPU"]
fn every_rung_is_right_at_its_edges() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let kernels = tally.plan("rung", (0..).zip(Sgemm::CATALOGUE.iter().map(|settings| recipe(settings))), &targets());
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| edges(kernel, 60));
    tally.finish("the catalogue");
}

#[test]
#[ignore = "needs a GPU"]
fn random_recipes_are_refused_or_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let kernels = tally.plan("sgemm", asked(60), &targets());
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| kernel.problems(6, 2_000_000).collect());
    tally.finish("random recipes");
}

/// M, N and K: those that are measured, and primes.
const SIZES: &[[u64; 3]] = &[
    [512; 3],
    [1024; 3],
    [2048; 3],
    [4096; 3],
    [8192; 3],
    [4096, 4096, 64],
    [64, 8192, 4096],
    [8192, 64, 4096],
    [1000; 3],
    [4095, 4097, 4093],
    [1009, 1013, 1019],
    [127, 8191, 31],
    [1, 4099, 2053],
    [4099, 1, 2053],
    [2, 3, 65_537],
];

/// `2 * A @ B - C`.
const SCALARS: [i64; 2] = [2, -1];

/// The rungs, and the top one with parts of K.
fn rungs() -> Vec<Plan> {
    let plan = |recipe: Sgemm, name: String| recipe.plan_as(&name, &targets()).expect("a right recipe");
    let rung = |variant: &Variant| plan(Sgemm::rung(*variant), format!("sgemm_large_{variant}"));
    let split = plan(Sgemm { split_k: 8, ..Sgemm::default() }, "sgemm_large_split".into());
    Variant::ALL.iter().map(rung).chain([split]).collect()
}

/// Row-major; D has room behind its rows where vectors stay aligned.
fn matrix(rows: u64, cols: u64, padded: bool) -> Tensor {
    let ld = if padded && cols.is_multiple_of(4) { cols + 4 } else { cols };
    Tensor::new(DType::F32, TensorLayout::padded(rows, cols, ld)).expect("memory")
}

/// The matrices of one problem, on both sides.
struct Problem {
    /// A, B, C.
    tensors: [Tensor; 3],
    uploads: Vec<DeviceTensor>,
}

impl Problem {
    fn new(gpu: &Gpu, [m, n, k]: [u64; 3], fill: Fill) -> Problem {
        let mut tensors = [[m, k], [k, n], [m, n]].map(|[rows, cols]| matrix(rows, cols, false));
        std::thread::scope(|scope| {
            for (tensor, seed) in tensors.iter_mut().zip(1..) {
                scope.spawn(move || tensor.fill(fill, seed));
            }
        });
        let uploads = tensors.iter().map(|t| DeviceTensor::upload(&gpu.stream(), t).expect("device memory")).collect();
        Problem { tensors, uploads }
    }

    /// D as a kernel leaves it.
    fn run(&self, gpu: &Gpu, kernel: &AnyKernel) -> Tensor {
        let [a, _, c] = &self.tensors;
        let mut d = matrix(a.rows(), c.cols(), true);
        d.fill_unwritten();
        let stream = gpu.stream();
        let mut on = DeviceTensor::upload(&stream, &d).expect("device memory");
        let [a, b, c] = [0, 1, 2].map(|i| self.uploads[i].view::<f32>().expect("f32"));
        let mut args = SgemmArgs::new(a, b, on.view_mut().expect("f32")).c(c).scalars(SCALARS.map(|s| s as f64));
        let scalars = Args::<Sgemm, DeviceMemory>::scalars(&args);
        kernel.launch_with(&stream, &mut Args::<Sgemm, DeviceMemory>::views(&mut args), &scalars).expect("launches");
        stream.synchronize().expect("ran");
        drop(args);
        on.download(&stream, &mut d).expect("ran");
        d
    }

    /// What is said of some rows, each sum computed here.
    fn judge(&self, plan: &Plan, d: &Tensor, rows: &[u64]) -> Verdict {
        let [a, b, c] = &self.tensors;
        let part = |t: &Tensor| {
            let mut part = matrix(rows.len() as u64, t.cols(), false);
            for (to, from) in (0..).zip(rows) {
                let from = t.row::<f32>(*from).expect("a row");
                part.row_mut::<f32>(to).expect("a row").copy_from_slice(from);
            }
            part
        };
        let (a, c, d) = (part(a), part(c), part(d));
        verify::check(plan, &[&a, b, &c], &SCALARS.map(|s| s as f64), &[&d]).expect("the plan's inputs").remove(0)
    }
}

fn some_rows(rows: u64, seed: u64) -> Vec<u64> {
    let random = &mut Random::new(71, seed);
    let any = (0..6).map(|_| random.below(rows as usize) as u64);
    let mut all: Vec<u64> = [0, rows - 1].into_iter().chain(any).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
#[ignore = "needs a GPU"]
fn every_rung_is_right_at_the_sizes_that_are_measured() {
    let gpu = gpu::find();
    let kernels: Vec<AnyKernel> = rungs().into_iter().filter_map(|plan| gpu::load(gpu.as_ref(), plan)).collect();
    let Some(gpu) = gpu else { return };
    let mut failures = Vec::new();
    for (seed, size) in (0..).zip(SIZES) {
        let integers = Problem::new(&gpu, *size, Fill::Integers);
        let projection = Projection::new(integers.tensors.each_ref(), SCALARS, seed);
        for kernel in &kernels {
            let d = integers.run(&gpu, kernel);
            let wrong = projection.wrong_rows(&d);
            let guards = d.guards();
            if !wrong.is_empty() || !guards.hold() {
                let verdict = integers.judge(kernel.plan(), &d, &wrong[..wrong.len().min(4)]);
                failures.push(format!("{} {size:?}: {} rows wrong, {verdict}", kernel.plan().name(), wrong.len()));
            }
        }
        drop(integers);
        let real = Problem::new(&gpu, *size, Fill::Normal);
        let rows = some_rows(size[0], seed);
        let judged = kernels.iter().map(|kernel| (kernel.plan(), real.run(&gpu, kernel)));
        for (plan, d) in judged {
            let verdict = real.judge(plan, &d, &rows);
            if !verdict.is_right() || !d.guards().hold() {
                failures.push(format!("{} {size:?}, rows {rows:?}: {verdict}", plan.name()));
            }
        }
        eprintln!("{size:?}: {} kernels", kernels.len());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The check of large products finds every kind of wrong element.
#[test]
fn a_projection_sees_each_wrong_element() {
    let mut tensors = [[9, 70], [70, 131], [9, 131]].map(|[rows, cols]| matrix(rows, cols, false));
    tensors.iter_mut().zip(1..).for_each(|(t, seed)| t.fill(Fill::Integers, seed));
    let projection = Projection::new(tensors.each_ref(), SCALARS, 3);
    let [a, b, c] = &tensors;
    let mut d = matrix(9, 131, true);
    for m in 0..9 {
        for n in 0..131 {
            let at = |t: &Tensor, m, n: u64| t.row::<f32>(m).expect("a row")[n as usize];
            let sum: f32 = (0..70).map(|k| at(a, m, k) * at(b, k, n)).sum();
            d.row_mut::<f32>(m).expect("a row")[n as usize] = 2.0 * sum - at(c, m, n);
        }
    }
    assert_eq!(projection.wrong_rows(&d), Vec::<u64>::new());
    for (row, col) in [(0, 0), (4, 77), (8, 130)] {
        let right = d.row::<f32>(row).expect("a row")[col];
        for wrong in [right + 1.0, right.next_up(), -right - 1.0, f32::NAN, f32::INFINITY, 1e30, -0.0] {
            d.row_mut::<f32>(row).expect("a row")[col] = wrong;
            assert_eq!(projection.wrong_rows(&d), [row], "({row},{col}) = {wrong:?} instead of {right:?}");
        }
        d.row_mut::<f32>(row).expect("a row")[col] = right;
    }
    // Two that are exchanged.
    d.row_mut::<f32>(2).expect("a row").swap(5, 6);
    assert_eq!(projection.wrong_rows(&d), [2]);
}
