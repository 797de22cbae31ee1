//! A module in the driver, with the data to launch its entries.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use crate::arch::{Arch, Targets};
use crate::diagnostic::{BindError, Defect};
use crate::fatbin;
use crate::launch::entry::{LoadedEntry, Resources};
use crate::launch::error::{DriverError, LaunchError, LoadError};
use crate::launch::gpu::Gpu;
use crate::launch::tensor_map;
use crate::launch::view::Guard;
use crate::launch::workspace::Pool;
use crate::plan::{Abi, Binding, WORKSPACE, Workspace};
use crate::view::{AnyFence, AnyView, DeviceMemory, ViewRef};

/// A module in the driver, unloaded when dropped.
#[derive(Debug)]
struct Module {
    context: Arc<CudaContext>,
    handle: sys::CUmodule,
}

// SAFETY: a CUmodule is a handle that every thread may use, with its context current (CUDA Driver API, "Module
// Management"); each use here makes it current first.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// # Safety
    /// The fatbin is whole by its own header, and its machine code may run.
    unsafe fn load(context: &Arc<CudaContext>, fatbin: &[u8]) -> Result<Self, result::DriverError> {
        context.bind_to_thread()?;
        let image = aligned(fatbin);
        // SAFETY: as for this function; the driver copies what it needs of it.
        let handle = unsafe { result::module::load_data(image.as_ptr().cast()) }?;
        Ok(Self { context: context.clone(), handle })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: the handle came from cuModuleLoadData and is unloaded once. The driver keeps running kernels alive.
        self.context.record_err(unsafe { result::module::unload(self.handle) });
    }
}

/// A copy at an address that is a multiple of 8, as nvcc places the fatbins that it embeds.
pub(super) fn aligned(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}

/// A kernel on a GPU, whatever its recipe: its entries, their parameters and their limits were compared with its ABI
/// when it was loaded.
#[derive(Debug)]
pub struct Loaded {
    abi: Abi,
    // Ahead of the module, which they are part of.
    entries: Vec<LoadedEntry>,
    /// Where there are launches with a workspace.
    workspaces: Option<Pool>,
    module: Module,
}

// SAFETY: as for `Module`; the entries live as long as their module.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Loads any bytes as the fatbin of a kernel.
    ///
    /// # Safety
    /// They are what nvcc made of the text of a plan with this ABI.
    pub(super) unsafe fn load(gpu: &Gpu, abi: Abi, fatbin: &[u8]) -> Result<Self, LoadError> {
        let kernel = || abi.name().to_owned();
        let none = |help: String| no_code(gpu, abi.name(), core::slice::from_ref(&abi), help);
        fatbin::check(fatbin).map_err(|error| LoadError::Fatbin { kernel: kernel(), error })?;
        if !abi.targets().run_on(gpu.capability()) {
            return Err(none(fitting(gpu.capability())));
        }
        // SAFETY: it is whole, as was checked above; what it does is for this function's caller.
        let module = unsafe { Module::load(gpu.context(), fatbin) }.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => {
                none("the fatbin lacks code that its ABI promises; build it again".into())
            }
            sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                let sass = Arch::ALL.iter().any(|arch| arch.sass_runs_on(gpu.capability()));
                let or = if sass { format!(", or {} for SASS", fitting(gpu.capability())) } else { String::new() };
                none(format!("the driver is too old for the PTX: update it{or}"))
            }
            _ => LoadError::Driver { kernel: kernel(), error: DriverError::of("cuModuleLoadData")(e) },
        })?;
        // SAFETY: the module was loaded just now, with its context current.
        let load = |entry| unsafe { LoadedEntry::load(module.handle, &abi, entry) };
        let entries = abi.entries().iter().map(load).collect::<Result<_, _>>()?;
        let workspaces = abi.params().field(WORKSPACE).map(|_| Pool::new(gpu.context())).transpose();
        let workspaces = workspaces.map_err(|error| LoadError::Driver { kernel: kernel(), error })?;
        Ok(Self { abi, entries, workspaces, module })
    }

    /// The ABI that launches are checked by.
    pub fn abi(&self) -> &Abi {
        &self.abi
    }

    /// The resources of the loaded code: for each of [`Abi::entries`], in order.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = Resources> {
        self.entries.iter().map(|entry| entry.resources)
    }

    /// The blocks that a multiprocessor of this GPU holds at once, as the driver tells for the loaded code: for each of
    /// [`Abi::entries`], in order.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn blocks_per_sm(&self) -> Result<Vec<u32>, DriverError> {
        self.module.context.bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        let pairs = self.entries.iter().zip(self.abi.entries());
        // SAFETY: the module is loaded, and its context current.
        pairs.map(|(loaded, entry)| unsafe { loaded.blocks_per_sm(entry) }).collect()
    }

    /// Checks the views against the ABI and puts the kernel into the stream, after earlier work on the memory of the
    /// views and before later work on it, on whatever stream. It runs asynchronously. Where there is nothing to
    /// compute, nothing is launched.
    ///
    /// # Errors
    /// Where a view does not fit the kernel, lies in another context, or the driver refuses. Nothing was launched
    /// then, unless the driver fails after the launch, which is then waited for, or at a later entry than the first.
    /// An error of a kernel while it runs is reported by a later call of the driver, such as a synchronisation.
    pub fn launch(&self, stream: &Arc<CudaStream>, views: &mut [AnyView<'_, DeviceMemory>]) -> Result<(), LaunchError> {
        self.launch_with(stream, views, &[])
    }

    /// The same for a kernel with run-time scalars.
    ///
    /// # Errors
    /// As [`Loaded::launch`]; another number of scalars than the kernel has.
    /// A stream that is captured into a graph, which may be launched when the memory is gone: see [`Loaded::launch_unvouched`].
    pub fn launch_with(
        &self,
        stream: &Arc<CudaStream>,
        views: &mut [AnyView<'_, DeviceMemory>],
        scalars: &[f64],
    ) -> Result<(), LaunchError> {
        if !self.abi.is_vouched() {
            return Err(LaunchError::Unvouched { kernel: self.abi.name().to_owned() });
        }
        stream.context().bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        let status = stream.capture_status().map_err(DriverError::of("cuStreamIsCapturing"))?;
        if status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            return Err(LaunchError::Captured { kernel: self.abi.name().to_owned() });
        }
        // SAFETY: our own kernels are proved, and for another somebody vouches. The launch runs once, now.
        unsafe { self.launch_unvouched(stream, views, scalars) }
    }

    /// The same for a kernel that nobody vouches for: [CUDA C++ of one's own](crate::cuda).
    ///
    /// # Safety
    /// On views that its declaration accepts, the kernel writes only elements of tensors that it is declared to write, reads only
    /// elements of its tensors, and its threads do not race. It ends. It touches no other memory of the context. Where the stream is
    /// captured, each launch of the graph has the memory of the views to itself, as this launch would.
    ///
    /// # Errors
    /// As [`Loaded::launch`].
    pub unsafe fn launch_unvouched(
        &self,
        stream: &Arc<CudaStream>,
        views: &mut [AnyView<'_, DeviceMemory>],
        scalars: &[f64],
    ) -> Result<(), LaunchError> {
        let raw: Vec<ViewRef> = views.iter().map(AnyView::raw).collect();
        let binding = self.abi.bind_with(&raw, scalars)?;
        let context = &self.module.context;
        if context != stream.context() {
            return Err(LaunchError::Context { stream: stream.context().ordinal(), kernel: context.ordinal() });
        }
        context.bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        if binding.launches().is_empty() {
            return Ok(());
        }
        let guards = fence(stream, views, &binding)?;
        // The context keeps errors, and the stream may have a context object of its own.
        let kept = || context.check_err().and(stream.context().check_err());
        kept().map_err(DriverError::of("cuStreamWaitEvent"))?;
        let launched = self.enqueue(stream.cu_stream(), &binding);
        // Records the events, whose failures are kept by the context.
        drop(guards);
        launched?;
        kept().map_err(|error| {
            // Without its events nobody would wait for the kernel, so this waits for it.
            match stream.synchronize() {
                Ok(()) => DriverError::of("cuEventRecord")(error).into(),
                Err(worse) => DriverError::of("cuStreamSynchronize")(worse).into(),
            }
        })
    }

    /// Puts the kernel into a stream of anyone's, by addresses that anyone allocated. The views are checked against the
    /// ABI as always, and nothing is ordered but by the stream itself. Where the launch is to be typed,
    /// [`Gpu::borrow_stream`] and [`View::from_raw_parts`](crate::view::View::from_raw_parts) do the same for
    /// [`Kernel`](super::Kernel).
    ///
    /// # Safety
    /// `stream` is a `CUstream` of the context that the kernel was loaded into. What each view says of its memory is
    /// true until the kernel has run: it is there, of this context, and no other work touches what is written, or
    /// writes what is read.
    ///
    /// # Errors
    /// As [`Loaded::launch`].
    ///
    /// # Examples
    /// ```no_run
    /// use core::ffi::c_void;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::launch::{LaunchError, Loaded};
    /// use cutemplate::units::Elements;
    /// use cutemplate::view::{Access, ViewLayout, ViewRef};
    ///
    /// /// # Safety
    /// /// The stream is of the kernel's context, and the addresses are of matrices of 1023 x 511 that only it uses.
    /// unsafe fn add(kernel: &Loaded, stream: *mut c_void, [a, b, c]: [u64; 3]) -> Result<(), LaunchError> {
    ///     let view = |ptr, access| {
    ///         let layout = ViewLayout::matrix([1023, 511], 511);
    ///         ViewRef { dtype: DType::F32, ptr, available: Elements(1023 * 511), layout, access }
    ///     };
    ///     let views = [view(a, Access::Read), view(b, Access::Read), view(c, Access::Write)];
    ///     unsafe { kernel.launch_raw(stream, &views, &[]) }
    /// }
    /// ```
    pub unsafe fn launch_raw(
        &self,
        stream: *mut core::ffi::c_void,
        views: &[ViewRef],
        scalars: &[f64],
    ) -> Result<(), LaunchError> {
        let binding = self.abi.bind_with(views, scalars)?;
        self.module.context.bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        self.enqueue(stream.cast(), &binding)
    }

    fn enqueue(&self, stream: sys::CUstream, binding: &Binding) -> Result<(), LaunchError> {
        let run = |params: &[u8]| {
            binding.launches().iter().try_for_each(|launch| {
                // SAFETY: `self` holds the module, whose context is current; every address in the parameters belongs
                // to a view whose extent, alignment and overlap `bind` has checked and whose memory is borrowed, or
                // to the workspace, which is freed behind the last grid; `launch` orders the grids against other work
                // on that memory.
                unsafe { self.entries[launch.entry].enqueue(stream, launch, params) }
            })
        };
        let launched = match (binding.workspace(), &self.workspaces) {
            (Some(Workspace { bytes, param_offset }), Some(pool)) => pool.lend(stream, bytes, |address| {
                let mut params = tensor_map::with_maps(binding, address)?.into_owned();
                params[param_offset..param_offset + size_of::<u64>()].copy_from_slice(&address.to_ne_bytes());
                run(&params)
            }),
            (None, _) => run(&tensor_map::with_maps(binding, 0)?),
            (Some(_), None) => {
                let what = "a launch has a workspace and the kernel no pool for it";
                return Err(BindError::from(Defect::new(what, self.abi.recipe())).into());
            }
        };
        Ok(launched?)
    }
}

/// Makes the stream wait for earlier work on the memory of the views. The guards let later work wait for the stream.
fn fence<'s>(
    stream: &'s CudaStream,
    views: &'s mut [AnyView<'_, DeviceMemory>],
    binding: &Binding,
) -> Result<Vec<Guard<'s>>, LaunchError> {
    let mut guards = Vec::new();
    if let Some(alone) = AnyView::alone(views) {
        return Err(LaunchError::Alone { tensor: binding.tensors().get(alone).map_or("", |tensor| tensor.name) });
    }
    for (view, tensor) in views.iter_mut().zip(binding.tensors()) {
        let local = |memory: &CudaContext| match memory == &**stream.context() {
            true => Ok(()),
            false => Err(LaunchError::Memory { tensor: tensor.name, device: stream.context().ordinal() }),
        };
        match view.fence() {
            Some(AnyFence::Read(memory)) => {
                local(memory.context())?;
                guards.push(memory.read(stream));
            }
            Some(AnyFence::Write(memory)) => {
                local(memory.context())?;
                guards.push(memory.write(stream));
            }
            Some(AnyFence::Shared) | None => {}
        }
    }
    Ok(guards)
}

/// None of these texts runs on the GPU.
pub(super) fn no_code(gpu: &Gpu, kernel: &str, abis: &[Abi], help: String) -> LoadError {
    let targets = Targets::new(abis.iter().flat_map(|abi| abi.targets().archs()).copied());
    LoadError::NoCode {
        kernel: kernel.to_owned(),
        targets: targets.unwrap_or_default(),
        gpu: gpu.name().to_owned(),
        capability: gpu.capability(),
        help,
    }
}

/// What to build for a device: the architecture whose SASS it runs, or the newest one whose PTX it compiles.
pub(super) fn fitting(capability: (u32, u32)) -> String {
    let newest = |runs: &dyn Fn(&Arch) -> bool| Arch::ALL.iter().copied().rev().find(runs);
    let by_ptx = |a: &Arch| Targets::new([*a]).is_some_and(|t| t.run_on(capability));
    match newest(&|a| a.sass_runs_on(capability)).or_else(|| newest(&by_ptx)) {
        Some(arch) => format!("add {arch} to the architectures of the build"),
        None => format!("there is none: the oldest GPUs that kernels are built for are {}", Arch::ALL[0]),
    }
}
