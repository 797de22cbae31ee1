//! Finding a GPU, or saying why there is none.

use core::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use crate::launch::error::DriverError;
use crate::units::Bytes;

use sys::CUdevice_attribute as Attribute;

/// The version of the driver interface that cudarc's bindings are made for, as `cuDriverGetVersion` counts: 13.0.
const DRIVER: i32 = 13_000;

/// There is no GPU to use, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoGpu {
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub help: &'static str,
}

impl fmt::Display for NoGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no GPU: {}\n  help: {}", self.reason, self.help)
    }
}

impl core::error::Error for NoGpu {}

/// A GPU that kernels can be loaded on.
#[derive(Clone, Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    name: String,
    capability: (u32, u32),
    sms: u32,
    l2: Bytes,
    memory: Bytes,
    driver: (u32, u32),
}

impl Gpu {
    /// The first GPU.
    ///
    /// # Errors
    /// Where the driver library is absent, too old, or finds no GPU. Never a panic.
    pub fn find() -> Result<Self, NoGpu> {
        Self::with_ordinal(0)
    }

    /// The GPU of that number, counted as `CUDA_VISIBLE_DEVICES` leaves them.
    ///
    /// # Errors
    /// As [`Gpu::find`].
    pub fn with_ordinal(ordinal: usize) -> Result<Self, NoGpu> {
        let driver = driver_version()?;
        result::init().map_err(|e| refused("cuInit", e))?;
        let count = result::device::get_count().map_err(|e| refused("cuDeviceGetCount", e))?;
        if usize::try_from(count).is_ok_and(|count| ordinal >= count) {
            return Err(NoGpu {
                reason: match count {
                    0 => "the driver finds no device".into(),
                    _ => format!("found {count} devices, required number {ordinal}, counted from 0"),
                },
                help: "nvidia-smi lists what the driver sees; CUDA_VISIBLE_DEVICES can hide devices",
            });
        }
        let context = CudaContext::new(ordinal).map_err(|e| refused("cuDevicePrimaryCtxRetain", e))?;
        let number =
            |what| context.attribute(what).map(|n| n.max(0) as u32).map_err(|e| refused("cuDeviceGetAttribute", e));
        let major = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let sms = number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let l2 = Bytes(u64::from(number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?));
        let name = context.name().map_err(|e| refused("cuDeviceGetName", e))?;
        let memory = Bytes(context.total_mem().map_err(|e| refused("cuDeviceTotalMem", e))? as u64);
        Ok(Self { context, name, capability: (major, minor), sms, l2, memory, driver })
    }

    /// The context that memory and kernels belong to: the device's primary one, shared with the CUDA runtime.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The context's default stream.
    pub fn stream(&self) -> Arc<CudaStream> {
        self.context.default_stream()
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compute capability, (major, minor).
    pub fn capability(&self) -> (u32, u32) {
        self.capability
    }

    /// Streaming multiprocessors.
    pub fn sms(&self) -> u32 {
        self.sms
    }

    /// Size of the L2 cache.
    pub fn l2(&self) -> Bytes {
        self.l2
    }

    /// Size of the device memory.
    pub fn memory(&self) -> Bytes {
        self.memory
    }

    /// The CUDA version that the driver supports, (major, minor).
    pub fn driver(&self) -> (u32, u32) {
        self.driver
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((major, minor), (cuda, point)) = (self.capability, self.driver);
        write!(f, "{}, compute capability {major}.{minor}, {} SMs, driver for CUDA {cuda}.{point}", self.name, self.sms)
    }
}

fn refused(call: &'static str, error: result::DriverError) -> NoGpu {
    use sys::CUresult::*;
    let help = match error.0 {
        CUDA_ERROR_NO_DEVICE => "nvidia-smi lists what the driver sees; CUDA_VISIBLE_DEVICES can hide devices",
        CUDA_ERROR_STUB_LIBRARY => "the toolkit's stub of libcuda was found first: take it off LD_LIBRARY_PATH",
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "kernel module and library differ in version: reboot, or reload the module"
        }
        CUDA_ERROR_DEVICE_UNAVAILABLE => "another process holds the device exclusively",
        _ => "nvidia-smi shows whether the driver works",
    };
    NoGpu { reason: DriverError::of(call)(error).to_string(), help }
}

/// Loads the driver library and asks for its version, before anything else is asked of it: cudarc panics where the
/// library or one of its functions is missing.
fn driver_version() -> Result<(u32, u32), NoGpu> {
    // SAFETY: loading a library runs its initialisers; it is the system's CUDA driver or a stand-in that someone put there.
    if !unsafe { sys::is_culib_present() } {
        return Err(NoGpu {
            reason: "the CUDA driver library (libcuda.so, nvcuda.dll) was not found".into(),
            help: "install NVIDIA's driver; without a GPU, kernels run on the CPU executor",
        });
    }
    type Version = unsafe extern "C" fn(*mut core::ffi::c_int) -> sys::CUresult;
    // SAFETY: the library is present; the type is that of cuDriverGetVersion in cuda.h.
    let function = unsafe { sys::culib().get::<Version>(b"cuDriverGetVersion\0") };
    let mut version = 0;
    // SAFETY: the function writes one int; it may be called before cuInit (CUDA Driver API, "Version Management").
    let answer = function.map(|f| unsafe { f(&mut version) });
    match answer {
        Ok(sys::CUresult::CUDA_SUCCESS) if version >= DRIVER => {
            Ok(((version / 1000) as u32, (version % 1000 / 10) as u32))
        }
        Ok(sys::CUresult::CUDA_SUCCESS) => Err(NoGpu {
            reason: format!(
                "found a driver for CUDA {}.{}, required one for CUDA {}.{} or later",
                version / 1000,
                version % 1000 / 10,
                DRIVER / 1000,
                DRIVER % 1000 / 10
            ),
            help: "update NVIDIA's driver (580 or later)",
        }),
        _ => Err(NoGpu {
            reason: "the library that is called libcuda has no working cuDriverGetVersion".into(),
            help: "another libcuda was found first: take it off LD_LIBRARY_PATH",
        }),
    }
}
