//! Finding a GPU, or saying why there is none.

use core::ffi::c_void;
use core::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use crate::diagnostic::debug_as_display;
use crate::launch::error::DriverError;
use crate::launch::library;
use crate::units::Bytes;

use sys::CUdevice_attribute as Attribute;

/// The version of the driver interface that cudarc's bindings are made for, as `cuDriverGetVersion` counts: 13.0.
const DRIVER: i32 = 13_000;

/// There is no usable GPU, and why.
#[derive(Clone, PartialEq, Eq)]
pub struct NoGpu {
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub help: &'static str,
}

debug_as_display!(NoGpu);

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
        let count = initialised()?;
        if ordinal >= count {
            return Err(NoGpu {
                reason: match count {
                    0 => "the driver finds no device".into(),
                    _ => format!("found {count} devices, required number {ordinal}, counted from 0"),
                },
                help: "nvidia-smi lists what the driver sees; CUDA_VISIBLE_DEVICES can hide devices",
            });
        }
        Self::with_context(CudaContext::new(ordinal).map_err(|e| refused("cuDevicePrimaryCtxRetain", e))?)
    }

    /// The GPU of a context that a program has already: candle's, for one, whose memory and streams then go into a
    /// launch as they are.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use cutemplate::launch::cudarc::driver::CudaStream;
    /// use cutemplate::launch::{Gpu, NoGpu};
    ///
    /// fn gpu_of(stream: &Arc<CudaStream>) -> Result<Gpu, NoGpu> {
    ///     Gpu::with_context(stream.context().clone())
    /// }
    /// ```
    ///
    /// # Errors
    /// Where the driver is too old or refuses.
    pub fn with_context(context: Arc<CudaContext>) -> Result<Self, NoGpu> {
        let driver = driver_version()?;
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

    /// The GPU of a `CUcontext` that something else made: the CUDA runtime, another version of cudarc, C++. It stays
    /// theirs: it is never destroyed here, and of a primary one a reference is held. A call that needs the context
    /// makes it current on its thread, as cudarc does.
    ///
    /// # Safety
    /// `context` is a `CUcontext` of this process. One that is not the primary context of a device is not destroyed
    /// before the process ends: the GPU, its kernels and their memory may be dropped at any time, and use it then.
    ///
    /// # Errors
    /// Where the driver is absent or too old, or does not know the context.
    pub unsafe fn from_raw_context(context: *mut c_void) -> Result<Self, NoGpu> {
        let context: sys::CUcontext = context.cast();
        let count = initialised()?;
        if context.is_null() {
            return Err(NoGpu {
                reason: "found no context: the handle is null".into(),
                help: "make a context current first, as cudaFree(nullptr) does, and pass what cuCtxGetCurrent gives",
            });
        }
        let mut device = 0;
        // SAFETY: the context is one of this process; the result is written to a local.
        unsafe { sys::cuCtxGetDevice_v2(&mut device, context) }.result().map_err(|e| refused("cuCtxGetDevice", e))?;
        let is_it = |ordinal: &i32| result::device::get(*ordinal).is_ok_and(|d| d == device);
        let ordinal = (0..i32::try_from(count).unwrap_or(i32::MAX)).find(is_it).unwrap_or_default() as usize;
        let (mut flags, mut active) = (0, 0);
        // SAFETY: the device is the context's; the results are written to locals.
        unsafe { sys::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) }
            .result()
            .map_err(|e| refused("cuDevicePrimaryCtxGetState", e))?;
        // Asking for the primary context makes it, with all the memory that it takes, where it is not there.
        if active != 0 {
            let primary = CudaContext::new(ordinal).map_err(|e| refused("cuDevicePrimaryCtxRetain", e))?;
            if primary.cu_ctx() == context {
                return Self::with_context(primary);
            }
        }
        // Where it cannot be made current, cudarc would destroy it.
        // SAFETY: the context is there, by the contract of this function.
        unsafe { result::ctx::set_current(context) }.map_err(|e| refused("cuCtxSetCurrent", e))?;
        // SAFETY: it is there and of that device; cudarc would destroy it with the last reference, so one is never
        // dropped.
        let owned = unsafe { CudaContext::from_raw_context(ordinal, device, context) };
        let owned = owned.map_err(|e| refused("cuCtxSetCurrent", e))?;
        core::mem::forget(owned.clone());
        Self::with_context(owned)
    }

    /// A `CUstream` that something else made, for launches: they are ordered in it as all its other work is.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of this GPU's context, null for its default one, and is destroyed after the last use of
    /// what this returns.
    ///
    /// # Examples
    /// ```no_run
    /// use core::ffi::c_void;
    /// use std::sync::Arc;
    /// use cutemplate::launch::cudarc::driver::CudaStream;
    /// use cutemplate::launch::{Gpu, NoGpu};
    ///
    /// /// # Safety
    /// /// Both are PyTorch's, which keeps them until the process ends.
    /// unsafe fn of_pytorch(context: *mut c_void, stream: *mut c_void) -> Result<(Gpu, Arc<CudaStream>), NoGpu> {
    ///     let gpu = unsafe { Gpu::from_raw_context(context) }?;
    ///     let stream = unsafe { gpu.borrow_stream(stream) };
    ///     Ok((gpu, stream))
    /// }
    /// ```
    pub unsafe fn borrow_stream(&self, stream: *mut c_void) -> Arc<CudaStream> {
        // SAFETY: as for this function.
        unsafe { self.context.wrap_borrowed_stream(stream.cast()) }
    }

    /// The context that memory and kernels belong to: the device's primary one, shared with the CUDA runtime, where
    /// none was given.
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

    /// Where the device is on the PCI bus, as `0000:3b:00.0`.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn bus_address(&self) -> Result<String, DriverError> {
        let mut text = [0; 32];
        // SAFETY: the device is that of the context, and the text has room for as many characters as are said.
        let status =
            unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as i32, self.context.cu_device()) };
        status.result().map_err(DriverError::of("cuDeviceGetPCIBusId"))?;
        let text = text.map(|character| character as u8);
        Ok(core::ffi::CStr::from_bytes_until_nul(&text).map_or(String::new(), |t| t.to_string_lossy().into_owned()))
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
        CUDA_ERROR_INVALID_CONTEXT => "pass a CUcontext of this process, as cuCtxGetCurrent gives it",
        CUDA_ERROR_DEVICE_UNAVAILABLE => "another process holds the device exclusively",
        _ => "nvidia-smi shows whether the driver works",
    };
    NoGpu { reason: DriverError::of(call)(error).to_string(), help }
}

/// The number of devices, after the driver was found to be new enough.
fn initialised() -> Result<usize, NoGpu> {
    driver_version()?;
    result::init().map_err(|e| refused("cuInit", e))?;
    let count = result::device::get_count().map_err(|e| refused("cuDeviceGetCount", e))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Loads the driver library and asks for its version, before anything else is asked of it: cudarc panics where the
/// library or one of its functions is missing.
fn driver_version() -> Result<(u32, u32), NoGpu> {
    let Some(driver) = library::find(library::DRIVER) else {
        return Err(NoGpu {
            reason: "the CUDA driver library (libcuda.so, nvcuda.dll) was not found".into(),
            help: "install NVIDIA's driver, and look at what nvidia-smi says",
        });
    };
    type Version = unsafe extern "C" fn(*mut core::ffi::c_int) -> sys::CUresult;
    // SAFETY: the type is that of cuDriverGetVersion in cuda.h.
    let function = unsafe { driver.get::<Version>(b"cuDriverGetVersion\0") };
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
