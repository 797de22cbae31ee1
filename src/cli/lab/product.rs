//! Kernels of matrix products against NVIDIA's libraries, in the same run, on the same buffers.

use core::cell::Cell;
use std::sync::Arc;

use cutemplate::launch::cudarc::driver::{CudaStream, result};
use cutemplate::launch::{AnyKernel, DriverError, Gpu, LaunchError, Protocol, Samples, Subject};
use cutemplate::plan::{Abi, Plan, Product};
use cutemplate::units::Bytes;
use cutemplate::verify::{Fill, TensorLayout};
use cutemplate::view::{Access, ViewRef};

use super::baseline::{Baseline, Library, Timer};
use super::buffers::{Buffers, Copies};
use super::meter::{Meter, Reading};
use super::report::{BaselineRow, Ceilings, ProductReport, ProductRow, Rejected};
use super::sustained::{Looped, Sustained, sustain};
use super::trial::Trial;
use super::{BenchError, How, lt, rotation};

/// M, N, K and L, from the layouts of A, B, .., D.
fn problem(layouts: &[TensorLayout]) -> Option<[i64; 4]> {
    let (a, d) = (layouts.first()?.layout, layouts.last()?.layout);
    let extent = |shape: &[i64], mode: usize| shape.get(mode).copied().unwrap_or(1);
    Some([extent(d.shape(), 0), extent(d.shape(), 1), extent(a.shape(), 1), extent(d.shape(), 2)])
}

/// Launches in one graph: about 2 ms of work, at most 20.
fn launches(flop: f64, plan: &Plan) -> u32 {
    let rate = match plan.product() {
        Some(product) if product.is_on_tensor_cores() => 500e12,
        _ => 50e12,
    };
    ((0.002 * rate / flop.max(1.0)) as u32).clamp(1, 20)
}

/// Checks kernels on the same operands, A, B, .., D in the given layouts, by
/// [`check_against`](cutemplate::verify::check_against) a library's product. Times the right ones in turn with the library:
/// cuBLAS for f32. For 16-bit operands it is the fastest algorithm that cuBLASLt's heuristics propose, with the
/// kernels' epilogue if it has it.
///
/// # Errors
/// Where the library is missing or has no finite product, memory is short, or a kernel refuses the operands.
pub(crate) fn products(
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
    let layouts = &as_taken(first.plan(), layouts)[..];
    let size = size(first.plan(), layouts);
    let (sets, l2) = rotation(size.all, gpu.l2(), how.warm);
    let copied = if how.ceilings { size.all } else { 0 };
    let required = Bytes(size.all.saturating_add(copied).saturating_mul(sets));
    let (free, _) = gpu.context().mem_get_info().map_err(DriverError::of("cuMemGetInfo"))?;
    if required.0 > free as u64 {
        return Err(BenchError::Memory { found: Bytes(free as u64), required });
    }
    let library = Library::of(first.plan(), &stream)?;
    let mut trial = Trial::new(&stream, &library, first.plan(), layouts, (fill, seed))?;
    let (kernels, wrong) = judged(&stream, &mut trial, kernels, scalars)?;
    let mut buffers = Buffers::new(first, trial.into_operands(), sets)?;
    buffers.scalars = scalars.to_vec();
    let baseline = Baseline::new(&library, first.plan(), &buffers.raw, scalars)?;
    stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
    let next = Cell::new(0);
    let turn = || {
        let n = next.get();
        next.set(n + 1);
        n
    };
    let flop = first.plan().reference().and_then(|reference| reference.flop(&problem)).ok_or(BenchError::Nothing)?;
    let graph = how.graph.then(|| launches(flop, first.plan()));
    let timer = Timer { stream: &stream, graph, protocol };
    let chosen = baseline.choose(&timer, &turn)?;
    let memory = how.ceilings.then(|| Copies::new(&stream, size.distinct / 2, sets)).transpose()?;
    let memory = memory.map(|copies| Memory { stream: &stream, raw: &buffers.raw, written: size.written, copies });
    let product = |_: usize| baseline.launch(chosen.algorithm, turn());
    let mut subjects = vec![timer.subject("baseline", product)?];
    for kernel in &kernels {
        let (buffers, stream, turn) = (&buffers, &stream, &turn);
        subjects.push(timer.subject("kernel", move |_| buffers.launch_raw(stream, kernel, turn()))?);
    }
    subjects.push(timer.subject("baseline again", product)?);
    if let Some(memory) = &memory {
        subjects.push(timer.subject("memset", |n| memory.fill(n))?);
        subjects.push(timer.subject("copy", |n| memory.copies.launch(n))?);
    }
    let samples = timer.time(protocol, &mut subjects)?;
    let rows = kernels.len();
    let (sustained, no_meter) = looped(gpu, &timer, &mut subjects[..=rows], &samples, (flop, how.sustained_seconds))?;
    drop(subjects);
    baseline.check()?;
    let (base, again) = (&samples[0], &samples[1 + rows]);
    let mut kernels: Vec<ProductRow> =
        kernels.iter().zip(&samples[1..]).map(|(kernel, s)| row(kernel, s, base, flop)).collect();
    kernels.iter_mut().zip(sustained.iter().skip(1)).for_each(|(row, sustained)| row.sustained = Some(*sustained));
    Ok(ProductReport {
        device: gpu.name().to_owned(),
        problem,
        operands: layouts.iter().map(ToString::to_string).collect(),
        inputs: fill.to_string(),
        baseline: BaselineRow {
            library: baseline.name(),
            computes: baseline.computes.clone(),
            algorithm: chosen.algorithm,
            tried: chosen.tried,
            first_over_fastest: chosen.first_over_fastest,
            seconds: base.median(),
            tflop_per_s: flop / base.median() / 1e12,
            sustained: sustained.first().copied(),
        },
        twice_the_same: again.median() / base.median(),
        scalars: named(first.plan().scalars(), scalars),
        kernels,
        wrong,
        ceilings: memory.map(|memory| memory.ceilings(&samples[2 + rows..])),
        no_meter,
        timings: base.len(),
        graph: how.graph,
        l2,
    })
}

/// The layouts, those of scales as the library takes them.
fn as_taken(plan: &Plan, layouts: &[TensorLayout]) -> Vec<TensorLayout> {
    let (mut layouts, rows) = (layouts.to_vec(), plan.product().and_then(Product::block_scales));
    let first = plan.operands().iter().filter(|operand| operand.access == Access::Read).count().saturating_sub(2);
    for (of, (layout, rows)) in layouts.iter_mut().skip(first).zip(rows.into_iter().flatten()).enumerate() {
        *layout = lt::scales_layout(of, rows, layout.layout.shape()).map_or(*layout, TensorLayout::from);
    }
    layouts
}

/// Bytes of the operands.
struct Size {
    /// With the gaps between them.
    all: u64,
    /// Each element once.
    distinct: u64,
    /// From the first element of D to its last.
    written: u64,
}

fn size(abi: &Abi, layouts: &[TensorLayout]) -> Size {
    let operands = || layouts.iter().zip(abi.operands());
    let span = |(l, o): (&TensorLayout, &cutemplate::plan::Operand)| {
        l.layout.span().unwrap_or(u64::MAX).saturating_mul(o.dtype.bytes().0)
    };
    let distinct = |(l, o): (&TensorLayout, &cutemplate::plan::Operand)| {
        l.layout.distinct().size().unwrap_or(0).saturating_mul(o.dtype.bytes().0)
    };
    Size {
        all: operands().map(span).fold(0, u64::saturating_add),
        distinct: operands().map(distinct).fold(0, u64::saturating_add),
        written: operands().next_back().map_or(0, span),
    }
}

/// The baseline and the kernels, in this order, for seconds on end, if that is asked for; and why clock and energy are not known.
fn looped(
    gpu: &Gpu,
    timer: &Timer<'_>,
    subjects: &mut [Subject<'_>],
    samples: &[Samples],
    (flop, seconds): (f64, f64),
) -> Result<(Vec<Sustained>, Option<String>), BenchError> {
    if seconds <= 0.0 {
        return Ok((Vec::new(), None));
    }
    let (meter, why) = match Meter::of(gpu) {
        Ok(meter) => (Some(meter), None),
        Err(why) => (None, Some(why)),
    };
    let mut read = || meter.as_ref().map_or(Reading::default(), Meter::read);
    let launches = f64::from(timer.launches());
    let call = |(subject, samples): (_, &Samples)| Looped {
        subject,
        seconds: samples.median() * launches,
        flop: flop * launches,
    };
    let mut subjects: Vec<Looped<'_, '_>> = subjects.iter_mut().zip(samples).map(call).collect();
    Ok((sustain(timer.stream, seconds, &mut subjects, &mut read)?, why))
}

/// What memory can do, as subjects.
struct Memory<'a> {
    stream: &'a Arc<CudaStream>,
    raw: &'a [Vec<ViewRef>],
    /// Bytes of D.
    written: u64,
    copies: Copies<'a>,
}

impl Memory<'_> {
    fn fill(&self, n: usize) -> Result<(), LaunchError> {
        let Some(d) = self.raw[n % self.raw.len()].last() else { return Ok(()) };
        // SAFETY: D's view holds this many bytes, nothing reads them before a kernel writes them, and it lives as long as the buffers.
        unsafe { result::memset_d8_async(d.ptr, 0, self.written as usize, self.stream.cu_stream()) }
            .map_err(|e| DriverError::of("cuMemsetD8Async")(e).into())
    }

    fn ceilings(&self, samples: &[Samples]) -> Ceilings {
        let [fill, copy] = [0, 1].map(|i| samples.get(i).map_or(f64::NAN, Samples::median));
        Ceilings {
            fill_seconds: fill,
            fill_tb_per_s: self.written as f64 / fill / 1e12,
            copy_seconds: copy,
            copy_tb_per_s: self.copies.moved() as f64 / copy / 1e12,
        }
    }
}

/// The kernels whose result is right, and the others.
fn judged<'k>(
    stream: &Arc<CudaStream>,
    trial: &mut Trial,
    kernels: &[&'k AnyKernel],
    scalars: &[f64],
) -> Result<(Vec<&'k AnyKernel>, Vec<Rejected>), BenchError> {
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
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
        sustained: None,
    }
}

/// `alpha = 1, beta = 0`.
fn named(names: &[String], values: &[f64]) -> String {
    let all: Vec<String> = names.iter().zip(values).map(|(name, value)| format!("{name} = {value}")).collect();
    all.join(", ")
}
