//! Where tensors are and kernels run: a GPU, or the PTX executor.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use cutemplate::artifact::Artifact;
use cutemplate::dtype::Element;
use cutemplate::exec;
use cutemplate::launch::cudarc::driver::{CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};
use cutemplate::launch::{Gpu, Kernel};
use cutemplate::recipe::Recipe;
use cutemplate::view::{Args, Device, Host, Space, View, ViewLayout, ViewMut};

/// What goes wrong, for `main` to say.
pub(crate) type Failed = Box<dyn Error>;

/// An element that both machines know.
pub(crate) trait Number: Element + DeviceRepr + ValidAsZeroBits + Default + Copy + Debug {}

impl<T: Element + DeviceRepr + ValidAsZeroBits + Default + Copy + Debug> Number for T {}

/// Memory, and kernels that run on it.
pub(crate) trait Machine {
    type Space: Space;
    type Buffer<T: Number>;
    type Kernel<R: Recipe>;

    fn load<R: Recipe>(&self, artifact: &Artifact<'_>) -> Result<Self::Kernel<R>, Failed>;
    fn launch<R: Recipe>(&self, kernel: &Self::Kernel<R>, args: impl Args<R, Self::Space>) -> Result<(), Failed>;
    fn put<T: Number>(&self, elements: &[T]) -> Result<Self::Buffer<T>, Failed>;
    fn zeros<T: Number>(&self, len: usize) -> Result<Self::Buffer<T>, Failed>;
    fn get<T: Number>(&self, buffer: &Self::Buffer<T>) -> Result<Vec<T>, Failed>;
    fn view<T: Number>(buffer: &Self::Buffer<T>, layout: ViewLayout) -> View<'_, T, Self::Space>;
    fn view_mut<T: Number>(buffer: &mut Self::Buffer<T>, layout: ViewLayout) -> ViewMut<'_, T, Self::Space>;
}

/// The PTX executor.
pub(crate) struct Cpu;

impl Machine for Cpu {
    type Space = Host;
    type Buffer<T: Number> = Vec<T>;
    type Kernel<R: Recipe> = exec::Kernel<R>;

    fn load<R: Recipe>(&self, artifact: &Artifact<'_>) -> Result<exec::Kernel<R>, Failed> {
        Ok(exec::Kernel::load(artifact)?)
    }

    fn launch<R: Recipe>(&self, kernel: &exec::Kernel<R>, args: impl Args<R, Host>) -> Result<(), Failed> {
        Ok(kernel.launch(args)?)
    }

    fn put<T: Number>(&self, elements: &[T]) -> Result<Vec<T>, Failed> {
        Ok(elements.to_vec())
    }

    fn zeros<T: Number>(&self, len: usize) -> Result<Vec<T>, Failed> {
        Ok(vec![T::default(); len])
    }

    fn get<T: Number>(&self, buffer: &Vec<T>) -> Result<Vec<T>, Failed> {
        Ok(buffer.clone())
    }

    fn view<T: Number>(buffer: &Vec<T>, layout: ViewLayout) -> View<'_, T, Host> {
        View::host_strided(buffer, layout)
    }

    fn view_mut<T: Number>(buffer: &mut Vec<T>, layout: ViewLayout) -> ViewMut<'_, T, Host> {
        ViewMut::host_strided(buffer, layout)
    }
}

/// A stream of a GPU.
pub(crate) struct Cuda {
    gpu: Gpu,
    stream: Arc<CudaStream>,
}

impl Cuda {
    pub(crate) fn new(gpu: Gpu) -> Self {
        Self { stream: gpu.stream(), gpu }
    }
}

impl Machine for Cuda {
    type Space = Device;
    type Buffer<T: Number> = CudaSlice<T>;
    type Kernel<R: Recipe> = Kernel<R>;

    fn load<R: Recipe>(&self, artifact: &Artifact<'_>) -> Result<Kernel<R>, Failed> {
        Ok(Kernel::load(&self.gpu, artifact)?)
    }

    fn launch<R: Recipe>(&self, kernel: &Kernel<R>, args: impl Args<R, Device>) -> Result<(), Failed> {
        Ok(kernel.launch(&self.stream, args)?)
    }

    fn put<T: Number>(&self, elements: &[T]) -> Result<CudaSlice<T>, Failed> {
        Ok(self.stream.clone_htod(elements)?)
    }

    fn zeros<T: Number>(&self, len: usize) -> Result<CudaSlice<T>, Failed> {
        Ok(self.stream.alloc_zeros(len)?)
    }

    fn get<T: Number>(&self, buffer: &CudaSlice<T>) -> Result<Vec<T>, Failed> {
        Ok(self.stream.clone_dtoh(buffer)?)
    }

    fn view<T: Number>(buffer: &CudaSlice<T>, layout: ViewLayout) -> View<'_, T, Device> {
        View::device_strided(buffer, layout)
    }

    fn view_mut<T: Number>(buffer: &mut CudaSlice<T>, layout: ViewLayout) -> ViewMut<'_, T, Device> {
        ViewMut::device_strided(buffer, layout)
    }
}
