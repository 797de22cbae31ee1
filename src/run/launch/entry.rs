//! The entries of a loaded module.

use core::ffi::c_void;
use std::ffi::CString;

use cudarc::driver::{result, sys};

use crate::launch::error::{DriverError, LoadError};
use crate::plan::{Abi, Entry, EntryLaunch};

use sys::CUfunction_attribute as Attribute;

/// The resources of a compiled kernel's entry, as the driver reports them for the loaded code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Resources {
    /// Registers of one thread.
    pub registers: u32,
    /// Bytes of local memory of one thread: spills and arrays that are indexed at run time.
    pub local_bytes: u32,
    /// Bytes of static shared memory of one block.
    pub shared_bytes: u32,
    /// Threads in a block, at most.
    pub max_threads: u32,
    /// The architecture of the code that was chosen: 80 for SASS of `sm_80`.
    pub binary_version: u32,
}

/// An entry that has been compared with its ABI. Its module must be loaded for as long as it is used.
#[derive(Debug)]
pub(crate) struct LoadedEntry {
    function: sys::CUfunction,
    pub(crate) resources: Resources,
    /// The offset in the parameter struct of each parameter of the function.
    offsets: Vec<usize>,
}

impl LoadedEntry {
    /// Shared memory of a block that every kernel may have without asking for more (CUDA C++ Programming Guide, "Shared
    /// Memory").
    const DEFAULT_SHARED: u64 = 48 << 10;

    /// Finds an entry, compares it with the ABI, and allows it the dynamic shared memory that its launches ask for.
    ///
    /// # Safety
    /// `module` is loaded, and its context current.
    pub(crate) unsafe fn load(module: sys::CUmodule, abi: &Abi, entry: &Entry) -> Result<Self, LoadError> {
        let driver = |error: DriverError| LoadError::Driver { kernel: entry.name.clone(), error };
        // A name with a NUL is not in any module.
        let name = CString::new(entry.name.as_str()).unwrap_or_default();
        // SAFETY: as for this function.
        let function = unsafe { result::module::get_function(module, name) };
        let function = function.map_err(DriverError::of("cuModuleGetFunction")).map_err(driver)?;
        // SAFETY: as for this function.
        let resources = unsafe { resources(function) }.map_err(driver)?;
        // One struct, or the parameters one by one. That there is none behind the last is compared where it is compiled: here the question
        // would be an error of the driver, which tools such as compute-sanitizer report.
        let one = [[0, abi.params().size()]];
        let params = if entry.params.is_empty() { &one[..] } else { &entry.params };
        for (index, required) in params.iter().enumerate() {
            // SAFETY: as for this function.
            let found = unsafe { param_size(function, index) }.map_err(driver)?;
            let [offset, size] = required;
            let lies_inside = offset.checked_add(*size).is_some_and(|end| end <= abi.params().size());
            if found != Some(*size) || !lies_inside {
                return Err(LoadError::Params { kernel: entry.name.clone(), found, required: required[1] });
            }
        }
        let offsets = params.iter().map(|[offset, _]| *offset).collect();
        if resources.max_threads < entry.threads {
            return Err(LoadError::Threads {
                kernel: entry.name.clone(),
                found: resources.max_threads,
                registers: resources.registers,
                required: entry.threads,
            });
        }
        let dynamic = entry.dynamic_smem.0;
        if u64::from(resources.shared_bytes).saturating_add(dynamic) > Self::DEFAULT_SHARED {
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = i32::try_from(dynamic).unwrap_or(i32::MAX);
            // SAFETY: as for this function.
            unsafe { result::function::set_function_attribute(function, attribute, bytes) }
                .map_err(DriverError::of("cuFuncSetAttribute"))
                .map_err(driver)?;
        }
        Ok(Self { function, resources, offsets })
    }

    /// The blocks that a multiprocessor holds at once.
    ///
    /// # Safety
    /// The entry's module is loaded and its context current.
    pub(crate) unsafe fn blocks_per_sm(&self, entry: &Entry) -> Result<u32, DriverError> {
        let (threads, dynamic) = (entry.threads as i32, entry.dynamic_smem.0 as usize);
        // SAFETY: as for this function.
        let blocks = unsafe { result::occupancy::max_active_block_per_multiprocessor(self.function, threads, dynamic) };
        blocks.map(|n| n.max(0) as u32).map_err(DriverError::of("cuOccupancyMaxActiveBlocksPerMultiprocessor"))
    }

    /// Puts a grid of the entry into the stream.
    ///
    /// # Safety
    /// The entry's module is loaded and its context current; `params` is the plan's struct, and the memory that it points
    /// to is there until the grid has run, and ordered against other work on it.
    pub(crate) unsafe fn enqueue(
        &self,
        stream: sys::CUstream,
        launch: &EntryLaunch,
        params: &[u8],
    ) -> Result<(), DriverError> {
        let at = |offset: &usize| params.get(*offset..).map_or(core::ptr::null(), <[u8]>::as_ptr);
        let mut params: Vec<*mut c_void> = self.offsets.iter().map(|o| at(o).cast_mut().cast()).collect();
        if launch.overlaps {
            // SAFETY: as below.
            return unsafe { self.enqueue_overlapping(stream, launch, &mut params) };
        }
        let [grid, block] = [launch.grid, launch.block].map(|[x, y, z]| (x, y, z));
        // SAFETY: the entry takes parameters of exactly the sizes that lie at these offsets of the struct (checked at load), which the
        // driver copies before it returns; the rest is for this function's caller.
        unsafe { result::launch_kernel(self.function, grid, block, launch.dynamic_smem, stream, &mut params) }
            .map_err(DriverError::of("cuLaunchKernel"))
    }

    /// The same for a grid that may begin while the kernel before it in the stream ends.
    ///
    /// # Safety
    /// As for [`LoadedEntry::enqueue`]; `params` are the addresses of the entry's parameters.
    unsafe fn enqueue_overlapping(
        &self,
        stream: sys::CUstream,
        launch: &EntryLaunch,
        params: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        let mut serialization = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let ([x, y, z], [tx, ty, tz]) = (launch.grid, launch.block);
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: tx,
            blockDimY: ty,
            blockDimZ: tz,
            sharedMemBytes: launch.dynamic_smem,
            hStream: stream,
            attrs: &raw mut serialization,
            numAttrs: 1,
        };
        // SAFETY: the attribute and the parameters live for the call. The entry waits for the kernel before it ahead of
        // its first access to memory, so the order of the stream also orders this grid. The caller guarantees the rest.
        unsafe { sys::cuLaunchKernelEx(&raw const config, self.function, params.as_mut_ptr(), core::ptr::null_mut()) }
            .result()
            .map_err(DriverError::of("cuLaunchKernelEx"))
    }
}

/// # Safety
/// The function's module is loaded.
unsafe fn resources(function: sys::CUfunction) -> Result<Resources, DriverError> {
    // SAFETY: as for this function.
    let get = |what| unsafe { result::function::get_function_attribute(function, what) };
    let get = |what| get(what).map(|n| n.max(0) as u32).map_err(DriverError::of("cuFuncGetAttribute"));
    Ok(Resources {
        registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        local_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        shared_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        max_threads: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        binary_version: get(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
    })
}

/// The size of a parameter, in bytes, if there is one. The driver's offsets count from the constant bank's own start: the first parameter
/// of 128 bytes' alignment has another one than 0.
///
/// # Safety
/// The function's module is loaded.
unsafe fn param_size(function: sys::CUfunction, index: usize) -> Result<Option<usize>, DriverError> {
    let (mut offset, mut size) = (0, 0);
    // SAFETY: as for this function; both results are written to locals.
    match unsafe { sys::cuFuncGetParamInfo(function, index, &mut offset, &mut size) }.result() {
        Ok(()) => Ok(Some(size)),
        // The driver's error for an unknown parameter.
        Err(result::DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)) => Ok(None),
        Err(e) => Err(DriverError::of("cuFuncGetParamInfo")(e)),
    }
}
