//! Operands and copies, several times, so that a run leaves nothing in the L2 cache for the next one.

use std::sync::Arc;

use cutemplate::launch::cudarc::driver::{CudaSlice, CudaStream, DevicePtr as _, DevicePtrMut as _, result};
use cutemplate::launch::{DeviceTensor, DriverError, LaunchError, Loaded};
use cutemplate::plan::{EntryLaunch, Operand};
use cutemplate::view::{Access, AnyView, DeviceMemory, ViewRef};

use super::BenchError;

/// The operands, several times.
pub(super) struct Buffers {
    sets: Vec<Vec<DeviceTensor>>,
    /// The views of each set, for launches that the bench itself orders.
    pub(super) raw: Vec<Vec<ViewRef>>,
    pub(super) scalars: Vec<f64>,
}

impl Buffers {
    /// Those of a launch, and copies of them.
    pub(super) fn new(kernel: &Loaded, first: Vec<DeviceTensor>, sets: u64) -> Result<Self, BenchError> {
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
    pub(super) fn kernel_grid(&self, kernel: &Loaded) -> Result<Option<EntryLaunch>, LaunchError> {
        let binding = kernel.abi().bind_with(&self.raw[0], &self.scalars)?;
        let named = binding.launches().iter().find(|launch| launch.entry == kernel.abi().kernel());
        Ok(named.or(binding.launches().last()).copied())
    }

    /// A launch that waits for nothing but its stream.
    pub(super) fn launch_raw(&self, stream: &Arc<CudaStream>, kernel: &Loaded, n: usize) -> Result<(), LaunchError> {
        let set = &self.raw[n % self.raw.len()];
        // SAFETY: the stream is of the kernel's context. The views are of `self.sets`, which nothing but the stream's own work uses before
        // it has been waited for.
        unsafe { kernel.launch_raw(stream.cu_stream().cast(), set, &self.scalars) }
    }

    pub(super) fn launch(&mut self, stream: &Arc<CudaStream>, kernel: &Loaded, n: usize) -> Result<(), LaunchError> {
        let set = n % self.sets.len();
        kernel.launch_with(stream, &mut views(kernel, &mut self.sets[set]), &self.scalars)
    }
}

pub(super) fn views<'a>(kernel: &Loaded, set: &'a mut [DeviceTensor]) -> Vec<AnyView<'a, DeviceMemory>> {
    let view = |(m, o): (&'a mut DeviceTensor, &Operand)| match o.access {
        Access::Read => m.any(),
        Access::Write | Access::ReadWrite => m.any_mut(),
    };
    set.iter_mut().zip(kernel.abi().operands()).map(view).collect()
}

/// Copies within the device, of so many bytes each, several in turn.
pub(super) struct Copies<'a> {
    stream: &'a Arc<CudaStream>,
    /// Source and destination of each.
    addresses: Vec<(u64, u64)>,
    bytes: usize,
    // The memory at those addresses.
    _memory: Vec<(CudaSlice<u8>, CudaSlice<u8>)>,
}

impl<'a> Copies<'a> {
    pub(super) fn new(stream: &'a Arc<CudaStream>, bytes: u64, sets: u64) -> Result<Self, DriverError> {
        let bytes = bytes as usize;
        let zeros = || stream.alloc_zeros::<u8>(bytes).map_err(DriverError::of("cuMemAllocAsync"));
        let mut memory = (0..sets).map(|_| Ok((zeros()?, zeros()?))).collect::<Result<Vec<_>, DriverError>>()?;
        let address =
            |(from, to): &mut (CudaSlice<u8>, CudaSlice<u8>)| (from.device_ptr(stream).0, to.device_ptr_mut(stream).0);
        Ok(Self { stream, addresses: memory.iter_mut().map(address).collect(), bytes, _memory: memory })
    }

    /// Bytes that one copy reads and writes.
    pub(super) fn moved(&self) -> u64 {
        2 * self.bytes as u64
    }

    /// Puts the n-th copy into the stream.
    pub(super) fn launch(&self, n: usize) -> Result<(), LaunchError> {
        let (source, target) = self.addresses[n % self.addresses.len()];
        // SAFETY: both are allocations of this many bytes, which are freed in the order of the stream.
        unsafe { result::memcpy_dtod_async(target, source, self.bytes, self.stream.cu_stream()) }
            .map_err(|e| DriverError::of("cuMemcpyDtoDAsync")(e).into())
    }
}
