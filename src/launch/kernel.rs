//! Loading a compiled kernel and launching it.

use core::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, SyncOnDrop, result, sys};

use crate::arch::{Arch, Targets};
use crate::artifact::{Artifact, Code};
use crate::diagnostic::{BindError, Defect};
use crate::digest::Digest;
use crate::emit;
use crate::fatbin::{self, Vouched};
use crate::launch::entry::{LoadedEntry, Resources};
use crate::launch::error::{DriverError, LaunchError, LoadError};
use crate::launch::gpu::Gpu;
use crate::launch::tensor_map;
use crate::launch::workspace::Pool;
use crate::plan::{Binding, Plan, WORKSPACE, Workspace};
use crate::recipe::Recipe;
use crate::view::{AnyFence, AnyView, Args, Device, ViewRef};

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
fn aligned(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}

/// A kernel on a GPU, whatever its recipe.
///
/// Its fatbin is what nvcc made of the plan's text, for which somebody vouches, as for a linked library; its entries, their
/// parameters and their limits are compared with the plan when it is loaded.
#[derive(Debug)]
pub struct AnyKernel {
    plan: Plan,
    // Ahead of the module, which they are part of.
    entries: Vec<LoadedEntry>,
    /// Where the plan has launches with a workspace.
    workspaces: Option<Pool>,
    module: Module,
}

// SAFETY: as for `Module`; the entries live as long as their module.
unsafe impl Send for AnyKernel {}
// SAFETY: as above.
unsafe impl Sync for AnyKernel {}

impl AnyKernel {
    /// Loads a fatbin that was made of the plan's text.
    ///
    /// # Errors
    /// Where the fatbin is of another text, damaged, or without code for this GPU.
    ///
    /// # Examples
    /// ```no_run
    /// # #[cfg(feature = "build")]
    /// # fn load() -> Result<(), Box<dyn std::error::Error>> {
    /// use cutemplate::launch::{AnyKernel, Gpu};
    /// use cutemplate::recipe::{ElementwiseAdd, Recipe};
    /// use cutemplate::{arch::Targets, build::Compiler, emit};
    ///
    /// let plan = ElementwiseAdd::default().plan(&Targets::default())?;
    /// let compiler = Compiler::new(&cutlass_sys::Finder::from_env(), &mut ())?;
    /// let compiled = compiler.compile(&emit::render(&plan), plan.targets())?;
    /// let kernel = AnyKernel::load(&Gpu::find()?, plan, compiled.vouched())?;
    /// # Ok(())
    /// # }
    /// ```
    /// Bytes of which nobody knows where they come from are no fatbin that this takes:
    /// ```compile_fail,E0308
    /// use cutemplate::{launch::{AnyKernel, Gpu}, plan::Plan};
    /// fn run(gpu: &Gpu, plan: Plan, bytes: &[u8]) {
    ///     let _ = AnyKernel::load(gpu, plan, bytes);
    /// }
    /// ```
    pub fn load(gpu: &Gpu, plan: Plan, fatbin: Vouched<'_>) -> Result<Self, LoadError> {
        if fatbin.unit() != Digest::of_unit(&emit::render(&plan)) {
            return Err(LoadError::Foreign { kernel: plan.name().to_owned() });
        }
        // SAFETY: somebody vouches that nvcc made the fatbin of a text, and that is this plan's.
        unsafe { Self::load_unchecked(gpu, plan, fatbin.bytes()) }
    }

    /// Loads any bytes as the fatbin of a plan, such as a file that was compiled elsewhere.
    ///
    /// # Safety
    /// They are what nvcc made of the text that [`emit::render`] gives for the plan, with the flags of that
    /// [`Unit`](emit::Unit). A launch checks its views against the plan and then lets the GPU run whatever is in them: other
    /// machine code can read and write all memory that the context knows, that of this process included.
    ///
    /// # Errors
    /// Where the fatbin is damaged, without code for this GPU, or has other entries than the plan.
    pub unsafe fn load_unchecked(gpu: &Gpu, plan: Plan, fatbin: &[u8]) -> Result<Self, LoadError> {
        let kernel = || plan.name().to_owned();
        fatbin::check(fatbin).map_err(|error| LoadError::Fatbin { kernel: kernel(), error })?;
        if !plan.targets().run_on(gpu.capability()) {
            return Err(no_code(gpu, &plan, fitting(gpu.capability())));
        }
        // SAFETY: it is whole, as was checked above; what it does is for this function's caller.
        let module = unsafe { Module::load(gpu.context(), fatbin) }.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => {
                no_code(gpu, &plan, "the fatbin lacks code that its plan promises; build it again".into())
            }
            sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                let sass = fitting(gpu.capability());
                no_code(gpu, &plan, format!("the driver is too old for the PTX: update it, or {sass} for SASS"))
            }
            _ => LoadError::Driver { kernel: kernel(), error: DriverError::of("cuModuleLoadData")(e) },
        })?;
        // SAFETY: the module was loaded just now, with its context current.
        let load = |entry| unsafe { LoadedEntry::load(module.handle, &plan, entry) };
        let entries = plan.entries().iter().map(load).collect::<Result<_, _>>()?;
        let workspaces = plan.params().field(WORKSPACE).map(|_| Pool::new(gpu.context())).transpose();
        let workspaces = workspaces.map_err(|error| LoadError::Driver { kernel: kernel(), error })?;
        Ok(Self { plan, entries, workspaces, module })
    }

    /// The plan that launches are checked against.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the loaded code uses: for each of [`Plan::entries`], in order.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = Resources> {
        self.entries.iter().map(|entry| entry.resources)
    }

    /// The blocks that a multiprocessor of this GPU holds at once, as the driver tells for the loaded code: for each of
    /// [`Plan::entries`], in order.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn blocks_per_sm(&self) -> Result<Vec<u32>, DriverError> {
        self.module.context.bind_to_thread().map_err(DriverError::of("an earlier asynchronous call"))?;
        let pairs = self.entries.iter().zip(self.plan.entries());
        // SAFETY: the module is loaded, and its context current.
        pairs.map(|(loaded, entry)| unsafe { loaded.blocks_per_sm(entry) }).collect()
    }

    /// Checks the views against the plan and puts the kernel into the stream, after earlier work on the memory of the views
    /// and before later work on it, on whatever stream. It runs asynchronously. Where there is nothing to compute, nothing
    /// is launched.
    ///
    /// # Errors
    /// Where a view does not fit the plan, lies in another context, or the driver refuses. Nothing was launched then, unless
    /// the driver fails after the launch, which is then waited for, or at a later entry than the first. An error of a kernel
    /// while it runs is reported by a later call of the driver, such as a synchronisation.
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
        if binding.launches().is_empty() {
            return Ok(());
        }
        let guards = fence(stream, views, &binding)?;
        // A wait that failed is kept by the context.
        context.check_err().map_err(DriverError::of("cuStreamWaitEvent"))?;
        let launched = self.enqueue(stream, &binding);
        // Records the events, whose failures are kept by the context.
        drop(guards);
        launched?;
        context.check_err().map_err(|error| {
            // Without its events nobody would wait for the kernel, so it is waited for here.
            match stream.synchronize() {
                Ok(()) => DriverError::of("cuEventRecord")(error).into(),
                Err(worse) => DriverError::of("cuStreamSynchronize")(worse).into(),
            }
        })
    }

    fn enqueue(&self, stream: &CudaStream, binding: &Binding) -> Result<(), LaunchError> {
        let run = |params: &[u8]| {
            binding.launches().iter().try_for_each(|launch| {
                // SAFETY: `self` holds the module, whose context is current; every address in the parameters belongs to a
                // view whose extent, alignment and overlap `bind` has checked and whose memory is borrowed, or to the
                // workspace, which is freed behind the last grid; `launch` orders the grids against other work on that
                // memory.
                unsafe { self.entries[launch.entry].enqueue(stream, launch, params) }
            })
        };
        let launched = match (binding.workspace(), &self.workspaces) {
            (Some(Workspace { bytes, param_offset }), Some(pool)) => pool.lend(stream, bytes, |address| {
                let mut params = tensor_map::with_maps(binding)?.into_owned();
                params[param_offset..param_offset + size_of::<u64>()].copy_from_slice(&address.to_ne_bytes());
                run(&params)
            }),
            (None, _) => run(&tensor_map::with_maps(binding)?),
            (Some(_), None) => {
                let what = "a launch has a workspace and the kernel no pool for it";
                return Err(BindError::from(Defect::new(what, self.plan.recipe())).into());
            }
        };
        Ok(launched?)
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

/// A kernel of recipe `R` on a GPU.
#[derive(Debug)]
pub struct Kernel<R> {
    any: AnyKernel,
    recipe: PhantomData<fn() -> R>,
}

impl<R: Recipe> Kernel<R> {
    /// Plans the artifact's recipe again, compares it with what was compiled, and loads the fatbin, whose sha256 is compared with
    /// what the build wrote down: of the part that this GPU runs, where architectures have parts of their own.
    ///
    /// # Errors
    /// Where the artifact is of another recipe or version, a stub, or changed since it was built; or its fatbin cannot be loaded on
    /// this GPU.
    pub fn load(gpu: &Gpu, artifact: &Artifact) -> Result<Self, LoadError> {
        let (plan, units) = artifact.open::<R>()?;
        let part = plan.part_on(gpu.capability());
        let mut all = plan.parts().iter().zip(&units).zip(artifact.texts());
        let found = all.find(|((one, _), _)| part.is_some_and(|part| part.name() == one.name()));
        let ((part, unit), text) = found.ok_or_else(|| no_code(gpu, &plan, fitting(gpu.capability())))?;
        let kernel = || part.name().to_owned();
        let (bytes, required) = match text.code {
            Code::Fatbin { bytes, sha256, .. } => (bytes, sha256),
            Code::Stub { why } => return Err(LoadError::Stub { kernel: kernel(), why: why.to_owned() }),
        };
        fatbin::check(bytes).map_err(|error| LoadError::Fatbin { kernel: kernel(), error })?;
        let found = Digest::of(bytes);
        if required.parse() != Ok(found) {
            return Err(LoadError::Changed { kernel: kernel(), found, required: required.to_owned() });
        }
        // Who made the artifact vouches for the fatbin with that sha256.
        let fatbin = Vouched::new(bytes, Digest::of_unit(unit));
        Ok(Self { any: AnyKernel::load(gpu, part.clone(), fatbin)?, recipe: PhantomData })
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

#[cfg(all(test, target_os = "linux"))]
mod tests;
