//! One way to launch kernels: on the GPU where there is one, else on the PTX executor.
//!
//! ```
//! use cutemplate::device::Device;
//! use cutemplate::view::ViewLayout;
//! # use cutemplate::{artifact::Artifact, device::DeviceError, recipe::Sum, view::Arguments};
//! # fn rows(sums: &Artifact<'_>) -> Result<Vec<f32>, DeviceError> {
//!
//! let device = Device::auto();
//! let kernel = device.load::<Sum>(sums)?; // `row_sums::load(&device)?`, where a build script left the module `row_sums`
//! let a = device.put(&[1.0_f32, 2.0, 3.0, 4.0])?;
//! let mut y = device.zeros::<f32>(2)?;
//! let args = Arguments::new().read(a.view(ViewLayout::matrix([2, 2], 2))).write(y.vector_mut()).scalar(1.0);
//! kernel.launch(args)?;
//! y.to_vec()
//! # }
//! ```

mod buffer;
mod error;

use core::fmt;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use crate::artifact::{Artifact, Kind, Loads, Vouched};
use crate::exec;
use crate::launch::{self, Gpu, NoGpu};
use crate::view::{AnyMemory, Args, Arguments};

pub use buffer::{Buffer, Number};
pub use error::DeviceError;

/// What kernels run on: a GPU, or the PTX executor.
#[derive(Clone, Debug)]
pub struct Device(Place);

#[derive(Clone, Debug)]
enum Place {
    Gpu(Gpu, Arc<CudaStream>),
    Executor(exec::Options),
}

impl Device {
    /// The first GPU, or the executor where there is none.
    ///
    /// ```
    /// use cutemplate::device::Device;
    ///
    /// println!("on {}", Device::auto());
    /// ```
    pub fn auto() -> Self {
        Gpu::find().map_or_else(|_| Self::executor(exec::Options::default()), Self::gpu)
    }

    /// The first GPU.
    ///
    /// # Errors
    /// There is none, and why.
    pub fn find_gpu() -> Result<Self, NoGpu> {
        Gpu::find().map(Self::gpu)
    }

    /// This GPU. Launches and copies go into one new stream.
    pub fn gpu(gpu: Gpu) -> Self {
        let stream = gpu.stream();
        Self(Place::Gpu(gpu, stream))
    }

    /// The executor with these options.
    pub fn executor(options: exec::Options) -> Self {
        Self(Place::Executor(options))
    }

    /// Whether it is a GPU.
    pub fn is_gpu(&self) -> bool {
        matches!(self.0, Place::Gpu(..))
    }

    /// Loads a kernel. The module of a kernel has a shorter form: `load(&device)`.
    ///
    /// # Errors
    /// As [`launch::Kernel::load`] and [`exec::Kernel::load`].
    pub fn load<R: Kind>(&self, artifact: &Artifact<'_>) -> Result<Kernel<R>, DeviceError> {
        Ok(Kernel(match &self.0 {
            Place::Gpu(gpu, stream) => On::Gpu(Box::new(launch::Kernel::load(gpu, artifact)?), stream.clone()),
            Place::Executor(options) => On::Executor(Box::new(exec::Kernel::load_with(artifact, *options)?)),
        }))
    }

    /// Memory with these elements.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn put<T: Number>(&self, elements: &[T]) -> Result<Buffer<T>, DeviceError> {
        match &self.0 {
            Place::Gpu(_, stream) => Buffer::on_gpu(stream, elements),
            Place::Executor(_) => Ok(Buffer::on_host(elements.to_vec())),
        }
    }

    /// Memory of as many elements, all 0.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn zeros<T: Number>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        match &self.0 {
            Place::Gpu(_, stream) => Buffer::zeros_on_gpu(stream, len),
            Place::Executor(_) => Ok(Buffer::on_host(vec![T::default(); len])),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Gpu(gpu, _) => write!(f, "{gpu}"),
            Place::Executor(_) => f.write_str("the PTX executor"),
        }
    }
}

impl Loads for Device {
    type Kernel<R: Kind> = Kernel<R>;
    type Error = DeviceError;

    fn load<R: Kind>(&self, artifact: &Artifact<'_>) -> Result<Kernel<R>, DeviceError> {
        Device::load(self, artifact)
    }
}

/// A kernel of recipe `R` on a [`Device`].
#[derive(Debug)]
pub struct Kernel<R>(On<R>);

#[derive(Debug)]
enum On<R> {
    Gpu(Box<launch::Kernel<R>>, Arc<CudaStream>),
    Executor(Box<exec::Kernel<R>>),
}

impl<R: Vouched> Kernel<R> {
    /// Launches the kernel on views of this device's buffers. On a GPU it returns at once: a later launch or
    /// [`Buffer::to_vec`] waits for it.
    ///
    /// # Errors
    /// A view does not fit the kernel, or lies on the other kind of device; the driver refuses; or the executor found a fault.
    pub fn launch(&self, mut args: impl Args<R, AnyMemory>) -> Result<(), DeviceError> {
        let scalars = args.scalars();
        let views = args.views();
        match &self.0 {
            On::Gpu(kernel, stream) => {
                let views = AnyMemory::of_device(views).map_err(DeviceError::elsewhere)?;
                Ok(kernel.launch(stream, Arguments::of(views, scalars))?)
            }
            On::Executor(kernel) => {
                let views = AnyMemory::of_host(views).map_err(DeviceError::elsewhere)?;
                Ok(kernel.launch(Arguments::of(views, scalars))?)
            }
        }
    }
}

#[cfg(test)]
mod tests;
