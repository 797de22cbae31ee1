//! The rate of a memory-bound kernel against a device-to-device copy of equally many bytes, in the same run.

mod baseline;
mod cublas;
mod epilogue;
mod fit;
mod lt;
mod matrix;
mod meter;
mod product;
mod random;
mod report;
mod sustained;
mod trial;

use core::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr as _, DevicePtrMut as _, result};

pub use fit::{Fit, Timed};
pub use product::products;
pub use random::{Ratios, Spread, random_problems};
pub use report::{BaselineRow, Ceilings, ProductReport, ProductRow, Rejected};
pub use sustained::Sustained;

use crate::launch::buffer::DeviceTensor;
use crate::launch::error::{DriverError, LaunchError};
use crate::launch::gpu::Gpu;
use crate::launch::graph::{Empty, Replay};
use crate::launch::loaded::Loaded;
use crate::launch::timing::{Protocol, Samples, Subject, interleave};
use crate::plan::{EntryLaunch, Operand};
use crate::units::Bytes;
use crate::verify::{Fill, ReferenceError, TensorError, TensorLayout};
use crate::view::{Access, AnyView, Device, ViewRef};

/// Buffers rotate through at least this many times the L2 cache, so that a run leaves nothing in it for the next one on
/// the same buffers.
const L2_ROTATION: u64 = 4;

/// Sets of buffers, at most; tiny problems stay in L2.
const MAX_SETS: u64 = 64;

impl core::fmt::Debug for BenchError {
    /// As `Display`: `fn main() -> Result<(), _>` shows a message and not a struct.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// The reason why there are no numbers.
#[derive(thiserror::Error)]
pub enum BenchError {
    /// The inputs cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A launch was refused.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A kernel could not be launched, or ended the device's context.
    #[error("kernel `{kernel}`: {error}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// What happened.
        #[source]
        error: Box<BenchError>,
    },
    /// The results cannot be checked.
    #[error(transparent)]
    Check(#[from] ReferenceError),
    /// The baseline is missing, or failed.
    #[error("cuBLAS: {0}")]
    Cublas(String),
    /// No time can be measured.
    #[error("found tensors without elements, required something to launch")]
    Nothing,
    /// The buffers do not fit.
    #[error("found {found} free on the device, required {required} for the operands and as much again for the copy")]
    Memory {
        /// Free device memory.
        found: Bytes,
        /// The benchmark's allocations.
        required: Bytes,
    },
}

impl From<DriverError> for BenchError {
    fn from(error: DriverError) -> Self {
        Self::Launch(error.into())
    }
}

/// How launches are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Replayed from a CUDA graph, so that the host's work is not timed; else launched one by one.
    pub graph: bool,
    /// On one set of buffers, which stay in the L2 cache where they fit; else on several in turn.
    pub warm: bool,
    /// For products: memory's own times beside the kernels'.
    pub ceilings: bool,
}

/// Where the operands are when a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum L2State {
    /// In device memory: the buffers of all sets are several times as large as the cache.
    Cold,
    /// At least in part in the cache.
    Warm,
}

/// The measurements of one run on one device.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BenchReport {
    /// The kernel's entry.
    pub kernel: String,
    /// Its recipe.
    pub recipe: String,
    /// The device.
    pub device: String,
    /// Shape and strides of each operand.
    pub operands: Vec<String>,
    /// The values of the inputs.
    pub inputs: String,
    /// Bytes that the kernel must read and write: each element of each operand once, broadcast ones too.
    pub bytes: u64,
    /// Median time of one launch, in seconds.
    pub seconds: f64,
    /// First and third quartile of it.
    pub quartiles: [f64; 2],
    /// `bytes / seconds`, in 10^12 bytes per second.
    pub tb_per_s: f64,
    /// Median time of a copy that reads `bytes / 2` and writes as much, in seconds.
    pub copy_seconds: f64,
    /// Its rate, bytes read and written, in 10^12 bytes per second.
    pub copy_tb_per_s: f64,
    /// The kernel's rate divided by the copy's.
    pub ratio: f64,
    /// The same kernel timed a second time in the same rotation, its median divided by the first: smaller differences
    /// from 1 than this one's say nothing.
    pub twice_the_same: f64,
    /// Timings of each.
    pub timings: usize,
    /// Launches of the kernel in one timing.
    pub batch: u32,
    /// Sets of buffers that the runs rotate through.
    pub sets: u64,
    /// Median time of a kernel that does nothing, with the same grid, in seconds.
    pub empty_seconds: f64,
    /// Whether launches were replayed from a CUDA graph; else the host makes each.
    pub graph: bool,
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

/// How many sets of `bytes` to rotate through, and what that means for a cache of `l2`.
fn rotation(bytes: u64, l2: Bytes, warm: bool) -> (u64, L2State) {
    if warm {
        return (1, if bytes < l2.0 { L2State::Warm } else { L2State::Cold });
    }
    let wanted = (L2_ROTATION * l2.0).div_ceil(bytes.max(1)).max(1);
    if wanted <= MAX_SETS { (wanted, L2State::Cold) } else { (MAX_SETS, L2State::Warm) }
}

/// Times a kernel on operands with the given layouts, in operand order, with a copy of equally many bytes between its
/// runs.
///
/// # Errors
/// Where memory is short or the kernel refuses the operands.
pub fn run(
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
    let distinct = |l: &TensorLayout| l.layout.distinct().size().unwrap_or(0);
    let bytes = held().map(|(o, l)| distinct(l).saturating_mul(o.dtype.bytes().0)).fold(0, u64::saturating_add);
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
    let mut copies = copies(&stream, bytes / 2, sets)?;
    buffers.scalars = scalars.to_vec();
    let samples = time(&stream, kernel, &mut buffers, &mut copies, graph, protocol)?;
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
    copies: &mut [(CudaSlice<u8>, CudaSlice<u8>)],
    graph: bool,
    protocol: &Protocol,
) -> Result<Vec<Samples>, BenchError> {
    let EntryLaunch { grid, block, .. } = buffers.kernel_grid(kernel)?.ok_or(BenchError::Nothing)?;
    let empty = Empty::new(stream, grid, block)?;
    let copies: Vec<(u64, u64, usize)> = copies
        .iter_mut()
        .map(|(from, to)| (from.device_ptr(stream).0, to.device_ptr_mut(stream).0, from.len()))
        .collect();
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
    let copy = |n: usize| {
        let (source, target, bytes) = copies[n % copies.len()];
        // SAFETY: both are allocations of this many bytes, and live until the stream has been waited for.
        unsafe { result::memcpy_dtod_async(target, source, bytes, stream.cu_stream()) }
            .map_err(|e| DriverError::of("cuMemcpyDtoDAsync")(e).into())
    };
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

/// The operands, several times.
struct Buffers {
    sets: Vec<Vec<DeviceTensor>>,
    /// The views of each set, for launches that the bench itself orders.
    raw: Vec<Vec<ViewRef>>,
    scalars: Vec<f64>,
}

impl Buffers {
    /// Those of a launch, and copies of them.
    fn new(kernel: &Loaded, first: Vec<DeviceTensor>, sets: u64) -> Result<Self, BenchError> {
        let mut all = vec![first];
        for _ in 1..sets {
            all.push(all[0].iter().map(DeviceTensor::try_clone).collect::<Result<_, _>>()?);
        }
        let raw = |set: &mut Vec<DeviceTensor>| views(kernel, set).iter().map(AnyView::raw).collect();
        let raw = all.iter_mut().map(raw).collect();
        Ok(Self { sets: all, raw, scalars: Vec::new() })
    }

    /// Grid and block of the entry that has the kernel's name, or else of the last of a launch, if there is anything to
    /// launch.
    fn kernel_grid(&self, kernel: &Loaded) -> Result<Option<EntryLaunch>, LaunchError> {
        let binding = kernel.abi().bind_with(&self.raw[0], &self.scalars)?;
        let named = binding.launches().iter().find(|launch| launch.entry == kernel.abi().kernel());
        Ok(named.or(binding.launches().last()).copied())
    }

    /// A launch that waits for nothing but its stream.
    fn launch_raw(&self, stream: &Arc<CudaStream>, kernel: &Loaded, n: usize) -> Result<(), LaunchError> {
        let set = &self.raw[n % self.raw.len()];
        let mut views: Vec<AnyView<'_, Device>> = set.iter().map(|raw| AnyView::alias(*raw, raw.access)).collect();
        kernel.launch_with(stream, &mut views, &self.scalars)
    }

    fn launch(&mut self, stream: &Arc<CudaStream>, kernel: &Loaded, n: usize) -> Result<(), LaunchError> {
        let set = n % self.sets.len();
        kernel.launch_with(stream, &mut views(kernel, &mut self.sets[set]), &self.scalars)
    }
}

fn views<'a>(kernel: &Loaded, set: &'a mut [DeviceTensor]) -> Vec<AnyView<'a, Device>> {
    let view = |(m, o): (&'a mut DeviceTensor, &Operand)| match o.access {
        Access::Read => m.any(),
        Access::Write => m.any_mut(),
    };
    set.iter_mut().zip(kernel.abi().operands()).map(view).collect()
}

/// Source and destination of a copy, several times.
type Copies = Vec<(CudaSlice<u8>, CudaSlice<u8>)>;

fn copies(stream: &Arc<CudaStream>, bytes: u64, sets: u64) -> Result<Copies, DriverError> {
    let zeros = || stream.alloc_zeros::<u8>(bytes as usize).map_err(DriverError::of("cuMemAllocAsync"));
    (0..sets).map(|_| Ok((zeros()?, zeros()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_rotate_past_the_cache_or_say_that_they_do_not() {
        let l2 = Bytes(60 << 20);
        assert_eq!(rotation(3 << 28, l2, false), (1, L2State::Cold));
        assert_eq!(rotation(3 << 28, l2, true), (1, L2State::Cold));
        assert_eq!(rotation(1 << 20, l2, true), (1, L2State::Warm));
        assert_eq!(rotation(60 << 20, l2, false), (4, L2State::Cold));
        assert_eq!(rotation(6, l2, false), (64, L2State::Warm));
    }
}
