//! Loading a compiled kernel and launching it.

use core::ffi::c_void;
use core::marker::PhantomData;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::{CudaContext, CudaStream, SyncOnDrop, result, sys};

use crate::arch::{Arch, Targets};
use crate::artifact::Artifact;
use crate::launch::error::{DriverError, LaunchError, LoadError};
use crate::launch::fatbin;
use crate::launch::gpu::Gpu;
use crate::plan::{Binding, Plan};
use crate::recipe::Recipe;
use crate::view::{AnyFence, AnyView, Args, Device, ViewRef};

use sys::CUfunction_attribute as Attribute;

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
    fn load(context: &Arc<CudaContext>, fatbin: &[u8]) -> Result<Self, result::DriverError> {
        context.bind_to_thread()?;
        let image = fatbin::aligned(fatbin);
        // SAFETY: the image is a whole fatbin by its own header; the driver copies what it needs of it.
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

/// What a compiled kernel uses, as the driver tells for the loaded code.
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

/// A kernel on a GPU, whatever its recipe.
///
/// The fatbin is trusted to be what nvcc made of the plan's text, as a linked library is; its entry, its parameters and
/// its limits are compared with the plan when it is loaded.
#[derive(Debug)]
pub struct AnyKernel {
    plan: Plan,
    module: Module,
    function: sys::CUfunction,
    resources: Resources,
    /// Dynamic shared memory that the driver has been told to allow.
    dynamic_smem: AtomicU32,
}

// SAFETY: as for `Module`; the function lives as long as its module.
unsafe impl Send for AnyKernel {}
// SAFETY: as above.
unsafe impl Sync for AnyKernel {}

impl AnyKernel {
    /// Dynamic shared memory that every kernel may use without being asked (CUDA C++ Programming Guide, "Shared Memory").
    const DEFAULT_DYNAMIC_SMEM: u32 = 48 << 10;

    /// Loads the fatbin of a plan.
    ///
    /// # Errors
    /// Where the fatbin is missing, damaged, without code for this GPU, or not of this plan.
    pub fn load(gpu: &Gpu, plan: Plan, fatbin: &[u8]) -> Result<Self, LoadError> {
        let kernel = || plan.name().to_owned();
        fatbin::check(fatbin).map_err(|error| LoadError::Fatbin { kernel: kernel(), error })?;
        if !plan.targets().run_on(gpu.capability()) {
            return Err(no_code(gpu, &plan, fitting(gpu.capability())));
        }
        let module = Module::load(gpu.context(), fatbin).map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => {
                no_code(gpu, &plan, "the fatbin lacks code that its plan promises; build it again".into())
            }
            sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                let sass = fitting(gpu.capability());
                no_code(gpu, &plan, format!("the driver is too old for the PTX: update it, or {sass} for SASS"))
            }
            _ => LoadError::Driver { kernel: kernel(), error: DriverError::of("cuModuleLoadData")(e) },
        })?;
        let driver = |error: DriverError| LoadError::Driver { kernel: kernel(), error };
        let function = entry(&module, plan.name()).map_err(driver)?;
        let resources = resources(function).map_err(driver)?;
        check_params(function, &plan).map_err(driver)??;
        if resources.max_threads < plan.threads() {
            return Err(LoadError::Threads {
                kernel: kernel(),
                found: resources.max_threads,
                registers: resources.registers,
                required: plan.threads(),
            });
        }
        Ok(Self { plan, module, function, resources, dynamic_smem: AtomicU32::new(Self::DEFAULT_DYNAMIC_SMEM) })
    }

    /// The plan that launches are checked against.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the loaded code uses.
    pub fn resources(&self) -> Resources {
        self.resources
    }

    /// The blocks that a multiprocessor of this GPU holds at once, as the driver tells for the loaded code.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn blocks_per_sm(&self) -> Result<u32, DriverError> {
        let context = &self.module.context;
        context.bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        // What the code does not have by itself is asked for at launch.
        let dynamic = self.plan.smem().0.saturating_sub(u64::from(self.resources.shared_bytes));
        self.allow_dynamic_smem(dynamic as u32)?;
        let threads = self.plan.threads() as i32;
        // SAFETY: the function is alive with its module.
        let blocks =
            unsafe { result::occupancy::max_active_block_per_multiprocessor(self.function, threads, dynamic as usize) };
        blocks.map(|n| n.max(0) as u32).map_err(DriverError::of("cuOccupancyMaxActiveBlocksPerMultiprocessor"))
    }

    /// Checks the views against the plan and puts the kernel into the stream, after earlier work on the memory of the views
    /// and before later work on it, on whatever stream. It runs asynchronously.
    ///
    /// # Errors
    /// Where a view does not fit the plan, lies in another context, or the driver refuses. Nothing was launched then, unless
    /// the driver fails after the launch, which is then waited for. An error of a kernel while it runs is reported by a
    /// later call of the driver, such as a synchronisation.
    pub fn launch(&self, stream: &Arc<CudaStream>, views: &mut [AnyView<'_, Device>]) -> Result<(), LaunchError> {
        self.launch_with(stream, views, &[])
    }

    /// The same for a kernel with run-time scalars.
    ///
    /// # Errors
    /// As [`AnyKernel::launch`]; another number of scalars than the kernel has.
    pub fn launch_with(
        &self,
        stream: &Arc<CudaStream>,
        views: &mut [AnyView<'_, Device>],
        scalars: &[f64],
    ) -> Result<(), LaunchError> {
        let raw: Vec<ViewRef> = views.iter().map(AnyView::raw).collect();
        let binding = self.plan.bind_with(&raw, scalars)?;
        let context = &self.module.context;
        if context != stream.context() {
            return Err(LaunchError::Context { stream: stream.context().ordinal(), kernel: context.ordinal() });
        }
        context.bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        self.allow_dynamic_smem(binding.dynamic_smem())?;
        let guards = fence(stream, views, &binding)?;
        // A wait that failed is kept by the context.
        context.check_err().map_err(DriverError::of("cuStreamWaitEvent"))?;
        let launched = self.enqueue(stream, &binding);
        // Records the events, whose failures are kept by the context.
        drop(guards);
        launched.map_err(DriverError::of("cuLaunchKernel"))?;
        context.check_err().map_err(|error| {
            // Without its events nobody would wait for the kernel, so it is waited for here.
            match stream.synchronize() {
                Ok(()) => DriverError::of("cuEventRecord")(error).into(),
                Err(worse) => DriverError::of("cuStreamSynchronize")(worse).into(),
            }
        })
    }

    fn enqueue(&self, stream: &CudaStream, binding: &Binding) -> Result<(), result::DriverError> {
        let mut params = [binding.params().as_ptr().cast_mut().cast::<c_void>()];
        let ([gx, gy, gz], [bx, by, bz]) = (binding.grid(), binding.block());
        let (grid, block, smem) = ((gx, gy, gz), (bx, by, bz), binding.dynamic_smem());
        // SAFETY: the entry takes one struct of exactly the size of `params` (checked at load), which the driver copies
        // before it returns. Every address in it belongs to a view whose extent, alignment and overlap `bind` has checked
        // and whose memory is borrowed; `launch` orders the kernel against other work on that memory.
        unsafe { result::launch_kernel(self.function, grid, block, smem, stream.cu_stream(), &mut params) }
    }

    fn allow_dynamic_smem(&self, bytes: u32) -> Result<(), DriverError> {
        if bytes <= self.dynamic_smem.load(Ordering::Acquire) {
            return Ok(());
        }
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is alive with its module.
        unsafe { result::function::set_function_attribute(self.function, attribute, bytes as i32) }
            .map_err(DriverError::of("cuFuncSetAttribute"))?;
        self.dynamic_smem.fetch_max(bytes, Ordering::AcqRel);
        Ok(())
    }
}

/// Makes the stream wait for earlier work on the memory of the views. The guards let later work wait for the stream.
fn fence<'s>(
    stream: &'s CudaStream,
    views: &'s mut [AnyView<'_, Device>],
    binding: &Binding,
) -> Result<Vec<SyncOnDrop<'s>>, LaunchError> {
    let mut guards = Vec::new();
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
            None => {}
        }
    }
    Ok(guards)
}

fn no_code(gpu: &Gpu, plan: &Plan, help: String) -> LoadError {
    LoadError::NoCode {
        kernel: plan.name().to_owned(),
        targets: plan.targets().clone(),
        gpu: gpu.name().to_owned(),
        capability: gpu.capability(),
        help,
    }
}

/// What to build for a device: the architecture whose SASS it runs, or the newest one whose PTX it compiles.
fn fitting(capability: (u32, u32)) -> String {
    let newest = |runs: &dyn Fn(&Arch) -> bool| Arch::ALL.iter().copied().rev().find(runs);
    let by_ptx = |a: &Arch| Targets::new([*a]).is_some_and(|t| t.run_on(capability));
    match newest(&|a| a.sass_runs_on(capability)).or_else(|| newest(&by_ptx)) {
        Some(arch) => format!("add {arch} to the architectures of the build"),
        None => format!("there is none: the oldest GPUs that kernels are built for are {}", Arch::Sm80),
    }
}

fn entry(module: &Module, name: &str) -> Result<sys::CUfunction, DriverError> {
    // A name with a NUL is not in any module.
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: the module is loaded.
    unsafe { result::module::get_function(module.handle, name) }.map_err(DriverError::of("cuModuleGetFunction"))
}

fn resources(function: sys::CUfunction) -> Result<Resources, DriverError> {
    // SAFETY: the function's module is loaded.
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

/// Compares the entry's parameters with the plan's struct.
fn check_params(function: sys::CUfunction, plan: &Plan) -> Result<Result<(), LoadError>, DriverError> {
    let (mut offset, mut size) = (0, 0);
    // SAFETY: the function's module is loaded, and both results are written to locals.
    let answer = unsafe { sys::cuFuncGetParamInfo(function, 0, &mut offset, &mut size) }.result();
    let found = match answer {
        Ok(()) => Some(size),
        // How the driver says that there is no such parameter.
        Err(result::DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)) => None,
        Err(e) => return Err(DriverError::of("cuFuncGetParamInfo")(e)),
    };
    let required = plan.params().size();
    if found == Some(required) {
        return Ok(Ok(()));
    }
    Ok(Err(LoadError::Params { kernel: plan.name().to_owned(), found, required }))
}

/// A kernel of recipe `R` on a GPU.
#[derive(Debug)]
pub struct Kernel<R> {
    any: AnyKernel,
    recipe: PhantomData<fn() -> R>,
}

impl<R: Recipe> Kernel<R> {
    /// Plans the artifact's recipe again, compares it with what was compiled, and loads the fatbin.
    ///
    /// # Errors
    /// Where the artifact is of another recipe or version, or its fatbin cannot be loaded on this GPU.
    pub fn load(gpu: &Gpu, artifact: &Artifact) -> Result<Self, LoadError> {
        let (plan, _) = artifact.open::<R>()?;
        Ok(Self { any: AnyKernel::load(gpu, plan, &artifact.fatbin)?, recipe: PhantomData })
    }

    /// Checks the views against the plan and puts the kernel into the stream. It runs asynchronously.
    ///
    /// # Errors
    /// As [`AnyKernel::launch`].
    pub fn launch(&self, stream: &Arc<CudaStream>, mut args: impl Args<R, Device>) -> Result<(), LaunchError> {
        let scalars = args.scalars();
        self.any.launch_with(stream, &mut args.views(), &scalars)
    }

    /// The kernel without its type.
    pub fn any(&self) -> &AnyKernel {
        &self.any
    }
}
