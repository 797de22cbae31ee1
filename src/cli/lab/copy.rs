//! The rate of a memory-bound kernel against a device-to-device copy of equally many bytes, in the same run.

use core::fmt;
use std::sync::Arc;

use cutemplate::launch::cudarc::driver::CudaStream;
use cutemplate::launch::{DeviceTensor, DriverError, Gpu, Loaded, Protocol, Samples, Subject, interleave};
use cutemplate::plan::EntryLaunch;
use cutemplate::units::Bytes;
use cutemplate::verify::{Fill, TensorLayout};

use super::amount::each_once;
use super::buffers::{Buffers, Copies};
use super::graph::{Empty, Replay};
use super::{BenchError, How, L2State, rotation, trial};

/// The measurements of one run on one device.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct BenchReport {
    /// The kernel's entry.
    pub(crate) kernel: String,
    /// Its recipe.
    pub(crate) recipe: String,
    /// The device.
    pub(crate) device: String,
    /// Shape and strides of each operand.
    pub(crate) operands: Vec<String>,
    /// The values of the inputs.
    pub(crate) inputs: String,
    /// Bytes that the kernel must read and write: as its family says, else each element of each operand once, broadcast ones too.
    pub(crate) bytes: u64,
    /// Median time of one launch, in seconds.
    pub(crate) seconds: f64,
    /// First and third quartile of it.
    pub(crate) quartiles: [f64; 2],
    /// `bytes / seconds`, in 10^12 bytes per second.
    pub(crate) tb_per_s: f64,
    /// Operations a second, in 10^12, where its family counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tflop_per_s: Option<f64>,
    /// Median time of a copy that reads `bytes / 2` and writes as much, in seconds.
    pub(crate) copy_seconds: f64,
    /// Its rate, bytes read and written, in 10^12 bytes per second.
    pub(crate) copy_tb_per_s: f64,
    /// The kernel's rate divided by the copy's.
    pub(crate) ratio: f64,
    /// The same kernel timed a second time in the same rotation, its median divided by the first: smaller differences
    /// from 1 than this one's say nothing.
    pub(crate) twice_the_same: f64,
    /// Timings of each.
    pub(crate) timings: usize,
    /// Launches of the kernel in one timing.
    pub(crate) batch: u32,
    /// Sets of buffers that the runs rotate through.
    pub(crate) sets: u64,
    /// Median time of a kernel that does nothing, with the same grid, in seconds.
    pub(crate) empty_seconds: f64,
    /// Whether launches were replayed from a CUDA graph; else the host makes each.
    pub(crate) graph: bool,
    /// Where the operands were.
    pub l2: L2State,
    /// Size of the device's L2 cache, in bytes.
    pub l2_bytes: u64,
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}, {} inputs, on {}", self.kernel, self.operands.join(" "), self.inputs, self.device)?;
        let us = |s: f64| s * 1e6;
        let [q1, q3] = self.quartiles;
        writeln!(
            f,
            "  kernel  {:.3} TB/s, {:.2} us (quartiles {:.2}, {:.2})",
            self.tb_per_s,
            us(self.seconds),
            us(q1),
            us(q3)
        )?;
        if let Some(rate) = self.tflop_per_s {
            writeln!(f, "          {rate:.3} TFLOP/s")?;
        }
        writeln!(f, "  copy    {:.3} TB/s, {:.2} us for as many bytes", self.copy_tb_per_s, us(self.copy_seconds))?;
        writeln!(f, "  ratio   {:.4} of the copy; the same kernel twice: {:.4}", self.ratio, self.twice_the_same)?;
        let by = if self.graph { "replayed from a graph" } else { "launched one by one" };
        writeln!(f, "  empty   {:.2} us for a kernel that does nothing, {by}", us(self.empty_seconds))?;
        let state = match self.l2 {
            L2State::Cold => "not in L2",
            L2State::Warm => "in L2 as far as they fit",
        };
        write!(f, "  {} timings of {} launches, {} sets of buffers, {state}", self.timings, self.batch, self.sets)
    }
}

/// Times a kernel on operands with the given layouts, in operand order, with a copy of equally many bytes between its
/// runs.
///
/// # Errors
/// Where memory is short or the kernel refuses the operands.
pub(crate) fn against_copy(
    gpu: &Gpu,
    kernel: &Loaded,
    layouts: &[TensorLayout],
    scalars: &[f64],
    (fill, seed): (Fill, u64),
    how: How,
    protocol: &Protocol,
) -> Result<BenchReport, BenchError> {
    let graph = how.graph;
    // The default stream cannot be recorded.
    let stream = match graph {
        false => gpu.stream(),
        true => gpu.context().new_stream().map_err(DriverError::of("cuStreamCreate"))?,
    };
    let operands = kernel.abi().operands();
    let held = || operands.iter().zip(layouts);
    let bytes = how.amount.bytes.unwrap_or_else(|| each_once(kernel.abi(), layouts));
    let (sets, l2) = rotation(bytes, gpu.l2(), how.warm);
    let spans = held().map(|(o, l)| l.layout.span().unwrap_or(0).saturating_mul(o.dtype.bytes().0));
    let required = Bytes(spans.fold(0, u64::saturating_add).saturating_mul(sets.saturating_mul(2)));
    let (free, _) = gpu.context().mem_get_info().map_err(DriverError::of("cuMemGetInfo"))?;
    if required.0 > free as u64 {
        return Err(BenchError::Memory { found: Bytes(free as u64), required });
    }
    let tensors = trial::operands(kernel.abi(), layouts, (fill, seed))?;
    let operands: Result<_, DriverError> = tensors.iter().map(|t| DeviceTensor::upload(&stream, t)).collect();
    let mut buffers = Buffers::new(kernel, operands?, sets)?;
    let copies = Copies::new(&stream, bytes / 2, sets)?;
    buffers.scalars = scalars.to_vec();
    let samples = time(&stream, kernel, &mut buffers, &copies, graph, protocol)?;
    let [first, copy, again, empty] = &samples[..] else { unreachable!("four subjects, four results") };
    let copied = 2 * (bytes / 2);
    let rate = |bytes: u64, s: &Samples| bytes as f64 / s.median() / 1e12;
    Ok(BenchReport {
        kernel: kernel.abi().name().to_owned(),
        recipe: kernel.abi().recipe().to_owned(),
        device: gpu.name().to_owned(),
        operands: layouts.iter().map(ToString::to_string).collect(),
        inputs: fill.to_string(),
        bytes,
        seconds: first.median(),
        quartiles: [first.quantile(0.25), first.quantile(0.75)],
        tb_per_s: rate(bytes, first),
        tflop_per_s: how.amount.flop.map(|flop| flop / first.median() / 1e12),
        copy_seconds: copy.median(),
        copy_tb_per_s: rate(copied, copy),
        ratio: rate(bytes, first) / rate(copied, copy),
        twice_the_same: again.median() / first.median(),
        timings: first.len(),
        batch: first.batch(),
        sets,
        empty_seconds: empty.median(),
        graph,
        l2,
        l2_bytes: gpu.l2().0,
    })
}

/// Launches in one graph.
const GRAPH: u32 = 64;

fn time(
    stream: &Arc<CudaStream>,
    kernel: &Loaded,
    buffers: &mut Buffers,
    copies: &Copies<'_>,
    graph: bool,
    protocol: &Protocol,
) -> Result<Vec<Samples>, BenchError> {
    let EntryLaunch { grid, block, .. } = buffers.kernel_grid(kernel)?.ok_or(BenchError::Nothing)?;
    let empty = Empty::new(stream, grid, block)?;
    stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))?;
    let buffers = core::cell::RefCell::new(buffers);
    // One counter for both rows of the kernel: consecutive runs use different buffers.
    let next = core::cell::Cell::new(0);
    let launch = |_: usize| {
        let n = next.get();
        next.set(n + 1);
        match graph {
            false => buffers.borrow_mut().launch(stream, kernel, n),
            true => buffers.borrow().launch_raw(stream, kernel, n),
        }
    };
    let copy = |n: usize| copies.launch(n);
    let nothing = |_: usize| empty.launch(stream);
    if !graph {
        let mut subjects = [
            Subject::new("kernel", launch),
            Subject::new("copy", copy),
            Subject::new("the same kernel", launch),
            Subject::new("empty", nothing),
        ];
        return Ok(interleave(stream, protocol, &mut subjects)?);
    }
    let graphs = [
        Replay::record(stream, GRAPH, launch)?,
        Replay::record(stream, GRAPH, copy)?,
        Replay::record(stream, GRAPH, launch)?,
        Replay::record(stream, GRAPH, nothing)?,
    ];
    let names = ["kernel", "copy", "the same kernel", "empty"];
    let mut subjects: Vec<Subject<'_>> =
        names.iter().zip(&graphs).map(|(name, graph)| Subject::new(name, |_| graph.replay())).collect();
    let samples = interleave(stream, protocol, &mut subjects)?;
    Ok(samples.into_iter().zip(&graphs).map(|(samples, graph)| samples.of_each(graph.launches)).collect())
}
