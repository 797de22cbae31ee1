//! A kernel, loaded where it is first needed.

use std::sync::OnceLock;
#[cfg(feature = "cuda")]
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{Error, Result};
use cutemplate::artifact::Artifact;
use cutemplate::exec;
#[cfg(feature = "cuda")]
use cutemplate::launch::{Gpu, Kernel, cudarc::driver::CudaStream};
use cutemplate::recipe::Recipe;
#[cfg(feature = "cuda")]
use cutemplate::view::DeviceMemory;
use cutemplate::view::{Args, HostMemory};

/// A kernel of recipe `R` on the executor, and on each GPU that it was launched on.
pub(crate) struct Loaded<R> {
    artifact: &'static Artifact<'static>,
    on_cpu: OnceLock<exec::Kernel<R>>,
    #[cfg(feature = "cuda")]
    on_gpus: Mutex<Vec<(Gpu, Arc<Kernel<R>>)>>,
}

impl<R: Recipe> Loaded<R> {
    pub(crate) const fn new(artifact: &'static Artifact<'static>) -> Self {
        Self {
            artifact,
            on_cpu: OnceLock::new(),
            #[cfg(feature = "cuda")]
            on_gpus: Mutex::new(Vec::new()),
        }
    }

    /// Runs it and waits for it.
    pub(crate) fn run(&self, args: impl Args<R, HostMemory>) -> Result<()> {
        let kernel = match self.on_cpu.get() {
            Some(kernel) => kernel,
            None => {
                let kernel = exec::Kernel::load(self.artifact).map_err(Error::wrap)?;
                self.on_cpu.get_or_init(|| kernel)
            }
        };
        kernel.launch(args).map_err(Error::wrap)
    }

    /// Puts it into candle's stream, in whose order all of candle's work is.
    #[cfg(feature = "cuda")]
    pub(crate) fn launch(&self, stream: &Arc<CudaStream>, args: impl Args<R, DeviceMemory>) -> Result<()> {
        let kernel = self.on(stream)?;
        kernel.launch(stream, args).map_err(Error::wrap)
    }

    #[cfg(feature = "cuda")]
    fn on(&self, stream: &Arc<CudaStream>) -> Result<Arc<Kernel<R>>> {
        let mut all = self.on_gpus.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kernel)) = all.iter().find(|(gpu, _)| gpu.context() == stream.context()) {
            return Ok(kernel.clone());
        }
        let gpu = Gpu::with_context(stream.context().clone()).map_err(Error::wrap)?;
        let kernel = Arc::new(Kernel::load(&gpu, self.artifact).map_err(Error::wrap)?);
        all.push((gpu, kernel.clone()));
        Ok(kernel)
    }
}
