//! Kernels of matrix products against cuBLAS, in the same run, on the same buffers.

use core::cell::{Cell, RefCell};
use core::fmt;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::cublas::Cublas;
use super::trial::Trial;
use super::{BenchError, Buffers, How, L2State, rotation};
use crate::launch::error::{DriverError, LaunchError};
use crate::launch::gpu::Gpu;
use crate::launch::graph::Replay;
use crate::launch::kernel::AnyKernel;
use crate::launch::timing::{Protocol, Samples, Subject, interleave};
use crate::plan::{Computes, Plan};
use crate::units::Bytes;
use crate::verify::{Fill, TensorLayout};

/// One kernel's figures.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ProductRow {
    /// The kernel's entry.
    pub kernel: String,
    /// Its settings, one `key=value` a line.
    pub settings: String,
    /// Median time of one launch, in seconds.
    pub seconds: f64,
    /// First and third quartile of it.
    pub quartiles: [f64; 2],
    /// `2*M*N*K*L / seconds`, in 10^12 a second.
    pub tflop_per_s: f64,
    /// cuBLAS's time divided by the kernel's.
    pub ratio: f64,
    /// Registers of a thread.
    pub registers: u32,
}

/// A kernel that was not timed, because its result is wrong.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rejected {
    /// The kernel's entry.
    pub kernel: String,
    /// Its settings, one `key=value` a line.
    pub settings: String,
    /// What is wrong, with the first elements.
    pub why: String,
}

/// What was measured, in one run on one device.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ProductReport {
    /// The device.
    pub device: String,
    /// M, N, K, L.
    pub problem: [i64; 4],
    /// Shape and strides of each operand.
    pub operands: Vec<String>,
    /// What the inputs hold.
    pub inputs: String,
    /// Median time of cuBLAS's D = A @ B on the same types, with sums of f32 and without tf32, in seconds.
    pub cublas_seconds: f64,
    /// Its rate, in 10^12 operations a second.
    pub cublas_tflop_per_s: f64,
    /// cuBLAS timed a second time in the same rotation, its median divided by the first: smaller differences from 1 than this
    /// one's say nothing.
    pub twice_the_same: f64,
    /// The run-time scalars of the kernels: `alpha = 1, beta = 0`.
    pub scalars: String,
    /// The kernels whose result is right, in the order in which they were given.
    pub kernels: Vec<ProductRow>,
    /// The others.
    pub wrong: Vec<Rejected>,
    /// Timings of each.
    pub timings: usize,
    /// Whether launches were replayed from a CUDA graph; else the host makes each.
    pub graph: bool,
    /// Where the operands were.
    pub l2: L2State,
}

impl fmt::Display for ProductReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |s: f64| s * 1e6;
        let [m, n, k, l] = self.problem;
        let batches = if l == 1 { String::new() } else { format!(" x {l}") };
        let scalars = if self.scalars.is_empty() { String::new() } else { format!(", {}", self.scalars) };
        writeln!(f, "{m} x {n} x {k}{batches}, {} inputs{scalars}, on {}", self.inputs, self.device)?;
        let (rate, seconds) = (self.cublas_tflop_per_s, us(self.cublas_seconds));
        writeln!(f, "  cuBLAS  {rate:6.2} TFLOP/s {seconds:10.2} us  twice: {:.4}", self.twice_the_same)?;
        for row in &self.kernels {
            let [q1, q3] = row.quartiles.map(us);
            writeln!(
                f,
                "  ratio {:.4} {:6.2} TFLOP/s {:10.2} us (quartiles {q1:.2}, {q3:.2})  {} registers  {}",
                row.ratio,
                row.tflop_per_s,
                us(row.seconds),
                row.registers,
                row.kernel
            )?;
        }
        for Rejected { kernel, why, .. } in &self.wrong {
            writeln!(f, "  WRONG, not timed: {kernel}: {}", why.replace('\n', "\n  "))?;
        }
        let right = self.kernels.len();
        if right > 0 {
            writeln!(f, "  {right} right: every element of D is that of cuBLAS, but for the order of summation")?;
        }
        let by = if self.graph { "replayed from a graph" } else { "launched one by one" };
        let state = match self.l2 {
            L2State::Cold => "not in L2",
            L2State::Warm => "in L2 as far as they fit",
        };
        write!(f, "  {} timings of each in turn, {by}, operands {state}", self.timings)
    }
}

/// M, N, K and L, from the layouts of A, B, .., D.
fn problem(layouts: &[TensorLayout]) -> Option<[i64; 4]> {
    let (a, d) = (layouts.first()?.layout, layouts.last()?.layout);
    let extent = |shape: &[i64], mode: usize| shape.get(mode).copied().unwrap_or(1);
    Some([extent(d.shape(), 0), extent(d.shape(), 1), extent(a.shape(), 1), extent(d.shape(), 2)])
}

/// Launches in one graph: about 2 ms of work, at most 20.
fn launches(flop: f64, plan: &Plan) -> u32 {
    let rate = match plan.computes() {
        Some(Computes::Product(product)) if product.is_on_tensor_cores() => 500e12,
        _ => 50e12,
    };
    ((0.002 * rate / flop.max(1.0)) as u32).clamp(1, 20)
}

/// Checks kernels on the same operands, A, B, .., D in the given layouts, by [`check_against`](crate::verify::check_against) cuBLAS's
/// product, and times those that are right in turn with cuBLAS's D = A @ B.
///
/// # Errors
/// Where cuBLAS is missing or has no finite product, memory is short, or a kernel refuses the operands.
pub fn products(
    gpu: &Gpu,
    kernels: &[&AnyKernel],
    layouts: &[TensorLayout],
    scalars: &[f64],
    (fill, seed): (Fill, u64),
    how: How,
    protocol: &Protocol,
) -> Result<ProductReport, BenchError> {
    let (Some(first), Some(problem)) = (kernels.first(), problem(layouts)) else { return Err(BenchError::Nothing) };
    // The default stream cannot be recorded.
    let stream = gpu.context().new_stream().map_err(DriverError::of("cuStreamCreate"))?;
    let operands = layouts.iter().zip(first.plan().operands());
    let spans = operands.map(|(l, o)| l.layout.span().unwrap_or(u64::MAX).saturating_mul(o.dtype.bytes().0));
    let bytes = spans.fold(0, u64::saturating_add);
    let (sets, l2) = rotation(bytes, gpu.l2(), how.warm);
    let required = Bytes(bytes.saturating_mul(sets));
    let (free, _) = gpu.context().mem_get_info().map_err(DriverError::of("cuMemGetInfo"))?;
    if required.0 > free as u64 {
        return Err(BenchError::Memory { found: Bytes(free as u64), required });
    }
    let cublas = Cublas::new(&stream)?;
    let (kernels, wrong) = judged(&stream, &cublas, kernels, layouts, scalars, (fill, seed))?;
    let mut buffers = Buffers::new(&stream, first, layouts, (fill, seed), sets)?;
    buffers.scalars = scalars.to_vec();
    stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
    let next = Cell::new(0);
    let turn = || {
        let n = next.get();
        next.set(n + 1);
        n
    };
    // What a closure that may only fail as a launch does cannot say.
    let failed: RefCell<Option<BenchError>> = RefCell::new(None);
    let baseline = |_: usize| -> Result<(), LaunchError> {
        let raw = &buffers.raw[turn() % buffers.raw.len()];
        let (a, b, d) = (&raw[0], &raw[1], &raw[raw.len() - 1]);
        if let Err(e) = cublas.product(a, b, d) {
            failed.borrow_mut().get_or_insert(e);
        }
        Ok(())
    };
    let flop = 2.0 * problem.iter().map(|e| *e as f64).product::<f64>();
    let per_graph = if how.graph { launches(flop, first.plan()) } else { 1 };
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    let mut record = |name, launch: &mut dyn FnMut(usize) -> Result<(), LaunchError>| -> Result<(), LaunchError> {
        // The first launch loads code and workspaces, which cannot be recorded.
        launch(0)?;
        stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
        let graph = Replay::record(&stream, per_graph, launch)?;
        subjects.push(Subject::new(name, move |_| graph.replay()));
        Ok(())
    };
    if how.graph {
        record("cuBLAS", &mut { baseline })?;
        for kernel in &kernels {
            record("kernel", &mut |_| buffers.launch_raw(&stream, kernel, turn()))?;
        }
        record("cuBLAS again", &mut { baseline })?;
    } else {
        subjects.push(Subject::new("cuBLAS", baseline));
        for kernel in &kernels {
            let (buffers, stream, turn) = (&buffers, &stream, &turn);
            subjects.push(Subject::new("kernel", move |_| buffers.launch_raw(stream, kernel, turn())));
        }
        subjects.push(Subject::new("cuBLAS again", baseline));
    }
    let samples = interleave(&stream, protocol, &mut subjects)?;
    drop(subjects);
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    let samples: Vec<Samples> = samples.into_iter().map(|s| s.of_each(per_graph)).collect();
    let [base, rows @ .., again] = &samples[..] else { unreachable!("cuBLAS stands at both ends") };
    let rate = |s: &Samples| flop / s.median() / 1e12;
    Ok(ProductReport {
        device: gpu.name().to_owned(),
        problem,
        operands: layouts.iter().map(ToString::to_string).collect(),
        inputs: fill.to_string(),
        cublas_seconds: base.median(),
        cublas_tflop_per_s: rate(base),
        twice_the_same: again.median() / base.median(),
        scalars: named(first.plan().scalars(), scalars),
        kernels: kernels.iter().zip(rows).map(|(kernel, s)| row(kernel, s, base, flop)).collect(),
        wrong,
        timings: base.len(),
        graph: how.graph,
        l2,
    })
}

/// The kernels whose result is right, and the others.
fn judged<'k>(
    stream: &Arc<CudaStream>,
    cublas: &Cublas,
    kernels: &[&'k AnyKernel],
    layouts: &[TensorLayout],
    scalars: &[f64],
    inputs: (Fill, u64),
) -> Result<(Vec<&'k AnyKernel>, Vec<Rejected>), BenchError> {
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    let Some(first) = kernels.first() else { return Ok((right, wrong)) };
    let mut trial = Trial::new(stream, cublas, first.plan(), layouts, inputs)?;
    for kernel in kernels {
        let name = || kernel.plan().name().to_owned();
        let verdict = trial.judge(stream, kernel, scalars);
        let verdict = verdict.map_err(|e| BenchError::Kernel { kernel: name(), error: Box::new(e) })?;
        if verdict.is_right() {
            right.push(*kernel);
        } else {
            let (kernel, settings) = (name(), kernel.plan().settings().to_string());
            wrong.push(Rejected { kernel, settings, why: verdict.to_string() });
        }
    }
    Ok((right, wrong))
}

fn row(kernel: &AnyKernel, s: &Samples, base: &Samples, flop: f64) -> ProductRow {
    ProductRow {
        kernel: kernel.plan().name().to_owned(),
        settings: kernel.plan().settings().to_string(),
        seconds: s.median(),
        quartiles: [s.quantile(0.25), s.quantile(0.75)],
        tflop_per_s: flop / s.median() / 1e12,
        ratio: base.median() / s.median(),
        registers: kernel.resources().nth(kernel.plan().kernel()).map_or(0, |r| r.registers),
    }
}

/// `alpha = 1, beta = 0`.
fn named(names: &[String], values: &[f64]) -> String {
    let all: Vec<String> = names.iter().zip(values).map(|(name, value)| format!("{name} = {value}")).collect();
    all.join(", ")
}
