//! Memory of a device, whichever it is.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits, result};

use super::DeviceError;
use crate::dtype::{E4m3, E5m2, Element};
use crate::launch::DriverError;
use crate::view::{AnyMemory, View, ViewLayout, ViewMut};

/// An element that GPUs and the executor hold.
pub trait Number: Element + DeviceRepr + ValidAsZeroBits + Default + Copy + core::fmt::Debug {}

impl<T: Element + DeviceRepr + ValidAsZeroBits + Default + Copy + core::fmt::Debug> Number for T {}

macro_rules! bytes {
    ($($ty:ty),*) => {$(
        // SAFETY: a transparent u8 has no padding.
        unsafe impl DeviceRepr for $ty {}
        // SAFETY: any bits are a value of it.
        unsafe impl ValidAsZeroBits for $ty {}
    )*};
}

bytes!(E4m3, E5m2);

/// Memory of a [`Device`](super::Device).
#[derive(Debug)]
pub struct Buffer<T: Number> {
    len: usize,
    memory: Held<T>,
}

#[derive(Debug)]
enum Held<T: Number> {
    /// At least one element, since a driver allocates no less.
    Gpu(CudaSlice<T>),
    Host(Vec<T>),
}

fn refused(call: &'static str) -> impl FnOnce(result::DriverError) -> DeviceError {
    move |error| DriverError::of(call)(error).into()
}

impl<T: Number> Buffer<T> {
    pub(super) fn on_host(elements: Vec<T>) -> Self {
        Self { len: elements.len(), memory: Held::Host(elements) }
    }

    pub(super) fn on_gpu(stream: &Arc<CudaStream>, elements: &[T]) -> Result<Self, DeviceError> {
        if elements.is_empty() {
            return Self::zeros_on_gpu(stream, 0);
        }
        let memory = stream.clone_htod(elements).map_err(refused("cuMemcpyHtoDAsync"))?;
        Ok(Self { len: elements.len(), memory: Held::Gpu(memory) })
    }

    pub(super) fn zeros_on_gpu(stream: &Arc<CudaStream>, len: usize) -> Result<Self, DeviceError> {
        let memory = stream.alloc_zeros(len.max(1)).map_err(refused("cuMemAllocAsync"))?;
        Ok(Self { len, memory: Held::Gpu(memory) })
    }

    /// Its number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its elements, copied. On a GPU this waits for the launches that write them.
    ///
    /// # Errors
    /// The driver refuses, or a kernel ended the context.
    pub fn to_vec(&self) -> Result<Vec<T>, DeviceError> {
        match &self.memory {
            Held::Host(elements) => Ok(elements.clone()),
            Held::Gpu(memory) => {
                let mut all = memory.stream().clone_dtoh(memory).map_err(refused("cuMemcpyDtoHAsync"))?;
                all.truncate(self.len);
                Ok(all)
            }
        }
    }

    /// Its elements, seen as a layout, which is checked at launch.
    pub fn view(&self, layout: ViewLayout) -> View<'_, T, AnyMemory> {
        match &self.memory {
            Held::Host(elements) => View::host_strided(elements, layout).anywhere(),
            Held::Gpu(memory) => View::device_strided(memory, layout).anywhere(),
        }
    }

    /// Its elements from `start` on, seen as a layout. Past its end there are none, and the launch refuses the view.
    pub fn view_at(&self, start: usize, layout: ViewLayout) -> View<'_, T, AnyMemory> {
        let start = start.min(self.len);
        match &self.memory {
            Held::Host(elements) => View::host_strided(&elements[start..], layout).anywhere(),
            Held::Gpu(memory) => View::device_from(memory, start, layout).anywhere(),
        }
    }

    /// Its elements, seen as a layout that a kernel writes.
    pub fn view_mut(&mut self, layout: ViewLayout) -> ViewMut<'_, T, AnyMemory> {
        match &mut self.memory {
            Held::Host(elements) => ViewMut::host_strided(elements, layout).anywhere(),
            Held::Gpu(memory) => ViewMut::device_strided(memory, layout).anywhere(),
        }
    }

    /// All elements, one after the other: `n:1`.
    pub fn vector(&self) -> View<'_, T, AnyMemory> {
        self.view(ViewLayout::vector(self.len as i64))
    }

    /// The same, for a kernel that writes them.
    pub fn vector_mut(&mut self) -> ViewMut<'_, T, AnyMemory> {
        self.view_mut(ViewLayout::vector(self.len as i64))
    }
}
