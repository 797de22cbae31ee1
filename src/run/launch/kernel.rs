//! Loading a compiled kernel and launching it.

use core::marker::PhantomData;
use core::ops::Deref;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use crate::arch::Targets;
use crate::artifact::{Artifact, Code, Kind, Loads, Vouched};
use crate::digest::Digest;
use crate::fatbin;
use crate::launch::error::{LaunchError, LoadError};
use crate::launch::gpu::Gpu;
use crate::launch::loaded::{Loaded, fitting, no_code};
use crate::plan::{Abi, Plan};
use crate::view::{Args, DeviceMemory};

/// A kernel on a GPU with the plan that it was compiled for.
///
/// Its fatbin is what nvcc made of the plan's text, for which somebody vouches, as for a linked library.
#[derive(Debug)]
pub struct AnyKernel {
    plan: Plan,
    loaded: Loaded,
}

impl Deref for AnyKernel {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        &self.loaded
    }
}

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
    /// Bytes of unknown origin are refused:
    /// ```compile_fail,E0308
    /// use cutemplate::{launch::{AnyKernel, Gpu}, plan::Plan};
    /// fn run(gpu: &Gpu, plan: Plan, bytes: &[u8]) {
    ///     let _ = AnyKernel::load(gpu, plan, bytes);
    /// }
    /// ```
    pub fn load(gpu: &Gpu, plan: Plan, fatbin: fatbin::Vouched<'_>) -> Result<Self, LoadError> {
        if fatbin.abi() != plan.abi().digest() {
            return Err(LoadError::Foreign { kernel: plan.name().to_owned() });
        }
        // SAFETY: somebody vouches that nvcc made the fatbin of a text, and that is this plan's.
        unsafe { Self::load_unchecked(gpu, plan, fatbin.bytes()) }
    }

    /// Loads any bytes as the fatbin of a plan, such as a file that was compiled elsewhere.
    ///
    /// # Safety
    /// The bytes must be what nvcc made of the text that [`emit::render`](crate::emit::render) gives for the plan, with the flags of that
    /// [`Unit`](crate::emit::Unit). A launch checks its views against the plan, and then the GPU runs the bytes. Other machine
    /// code can read and write all memory that the context knows, also that of this process.
    ///
    /// # Errors
    /// Where the fatbin is damaged, without code for this GPU, or has other entries than the plan.
    pub unsafe fn load_unchecked(gpu: &Gpu, plan: Plan, fatbin: &[u8]) -> Result<Self, LoadError> {
        // SAFETY: as for this function.
        let loaded = unsafe { Loaded::load(gpu, plan.abi().clone(), fatbin) }?;
        Ok(Self { plan, loaded })
    }

    /// The plan that it was compiled for.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// A kernel of recipe `R` on a GPU.
#[derive(Debug)]
pub struct Kernel<R> {
    loaded: Loaded,
    recipe: PhantomData<fn() -> R>,
}

impl<R: Kind> Kernel<R> {
    /// Loads the fatbin, whose sha256 is compared with what the build wrote down: of the text that this GPU runs, where
    /// architectures have texts of their own. Nothing is planned.
    ///
    /// # Errors
    /// Where the artifact is of another family, of a version that launches otherwise, a stub, or changed since it was built; or its
    /// fatbin cannot be loaded on this GPU.
    pub fn load(gpu: &Gpu, artifact: &Artifact<'_>) -> Result<Self, LoadError> {
        let mut abis = artifact.open::<R>()?;
        let Some(index) = Targets::best(abis.iter().map(Abi::targets), gpu.capability()) else {
            return Err(no_code(gpu, artifact.name(), &abis, fitting(gpu.capability())));
        };
        let (abi, text) = (abis.swap_remove(index), &artifact.texts()[index]);
        let kernel = || abi.name().to_owned();
        let (bytes, required) = match text.code {
            Code::Fatbin { bytes, sha256, .. } => (bytes, sha256),
            Code::Stub { why } => return Err(LoadError::Stub { kernel: kernel(), why: why.to_owned() }),
        };
        fatbin::check(bytes).map_err(|error| LoadError::Fatbin { kernel: kernel(), error })?;
        let found = Digest::of(bytes);
        if required.parse() != Ok(found) {
            return Err(LoadError::Changed { kernel: kernel(), found, required: required.to_owned() });
        }
        // SAFETY: the author of the artifact vouches that nvcc made the fatbin with that sha256 for the ABI of that
        // digest.
        let loaded = unsafe { Loaded::load(gpu, abi, bytes) }?;
        Ok(Self { loaded, recipe: PhantomData })
    }

    /// Checks the views against the ABI and puts the kernel into the stream. It runs asynchronously.
    ///
    /// # Errors
    /// As [`Loaded::launch`].
    pub fn launch(&self, stream: &Arc<CudaStream>, mut args: impl Args<R, DeviceMemory>) -> Result<(), LaunchError>
    where
        R: Vouched,
    {
        let scalars = args.scalars();
        self.loaded.launch_with(stream, &mut args.views(), &scalars)
    }

    /// The same for a kernel that nobody vouches for: [CUDA C++ of one's own](crate::cuda).
    ///
    /// # Safety
    /// As for [`Loaded::launch_unvouched`].
    ///
    /// # Errors
    /// As [`Loaded::launch`].
    pub unsafe fn launch_unvouched(
        &self,
        stream: &Arc<CudaStream>,
        mut args: impl Args<R, DeviceMemory>,
    ) -> Result<(), LaunchError> {
        let scalars = args.scalars();
        // SAFETY: as for this function.
        unsafe { self.loaded.launch_unvouched(stream, &mut args.views(), &scalars) }
    }

    /// The kernel without its type.
    pub fn any(&self) -> &Loaded {
        &self.loaded
    }
}

impl Loads for Gpu {
    type Kernel<R: Kind> = Kernel<R>;
    type Error = LoadError;

    fn load<R: Kind>(&self, artifact: &Artifact<'_>) -> Result<Kernel<R>, LoadError> {
        Kernel::load(self, artifact)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
