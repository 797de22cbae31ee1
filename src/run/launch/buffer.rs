//! Tensors in device memory, with their guards.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

use crate::dtype::{DType, Element};
use crate::launch::error::DriverError;
use crate::launch::view::{Fence, Window, window, window_mut};
use crate::units::{Bytes, Elements};
use crate::verify::{Tensor, TensorLayout, with_scalar};
use crate::view::{Access, AnyView, DeviceMemory, View, ViewMut};

/// A [`Tensor`] in device memory: elements, gaps and redzones, byte for byte. A kernel's writes to any of them are seen
/// after [`DeviceTensor::download`].
#[derive(Debug)]
pub struct DeviceTensor {
    dtype: DType,
    layout: TensorLayout,
    start: Bytes,
    len: Elements,
    bytes: CudaSlice<u8>,
}

impl DeviceTensor {
    /// Copies a tensor to the device of the stream.
    ///
    /// # Errors
    /// Where the driver refuses, as for want of memory.
    pub fn upload(stream: &Arc<CudaStream>, tensor: &Tensor) -> Result<Self, DriverError> {
        let bytes = stream.clone_htod(tensor.storage()).map_err(DriverError::of("copy to the device"))?;
        let len = tensor.raw(Access::Read).available;
        Ok(Self { dtype: tensor.dtype(), layout: tensor.layout(), start: tensor.start(), len, bytes })
    }

    /// Copies it within the device.
    ///
    /// # Errors
    /// Where the driver refuses, as for want of memory.
    pub fn try_clone(&self) -> Result<Self, DriverError> {
        let bytes = self.bytes.try_clone().map_err(DriverError::of("copy within the device"))?;
        Ok(Self { bytes, ..*self })
    }

    /// Waits for the stream and copies everything back over `tensor`, which must be the one that was uploaded or have its
    /// type and layout.
    ///
    /// # Errors
    /// Where the driver refuses, or a kernel before it failed.
    ///
    /// # Panics
    /// Where type or layout differ, which is a defect of the caller and not of any input.
    pub fn download(&self, stream: &Arc<CudaStream>, tensor: &mut Tensor) -> Result<(), DriverError> {
        assert_eq!((self.dtype, self.layout), (tensor.dtype(), tensor.layout()), "another tensor was uploaded");
        // Also where cudarc keeps no events: behind launches on other streams, and memory is freed behind the copy.
        let guard = self.bytes.read(stream);
        stream.memcpy_dtoh(&self.bytes, tensor.storage_mut()).map_err(DriverError::of("copy from the device"))?;
        drop(guard);
        stream.synchronize().map_err(DriverError::of("cuStreamSynchronize"))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape, stride and offset.
    pub fn layout(&self) -> TensorLayout {
        self.layout
    }

    fn window(&self) -> Window {
        Window { start: self.start, len: self.len, layout: self.layout.layout }
    }

    /// A view for a kernel that reads; `None` where `T` is not the element type.
    pub fn view<T: Element>(&self) -> Option<View<'_, T, DeviceMemory>> {
        // SAFETY: the window is where `Tensor` has the elements, and the allocation is a copy of all its storage.
        (T::DTYPE == self.dtype).then(|| unsafe { window(&self.bytes, self.window()) })
    }

    /// A view for a kernel that writes; `None` where `T` is not the element type.
    pub fn view_mut<T: Element>(&mut self) -> Option<ViewMut<'_, T, DeviceMemory>> {
        let window = self.window();
        // SAFETY: as in `view`.
        (T::DTYPE == self.dtype).then(|| unsafe { window_mut(&mut self.bytes, window) })
    }

    /// A view for a kernel that reads, with the element type as a value.
    pub fn any(&self) -> AnyView<'_, DeviceMemory> {
        // SAFETY: as in `view`.
        with_scalar!(self.dtype, T => unsafe { window::<T, u8, _>(&self.bytes, self.window()) }.erase())
    }

    /// A view for a kernel that writes, with the element type as a value.
    pub fn any_mut(&mut self) -> AnyView<'_, DeviceMemory> {
        let (window, bytes) = (self.window(), &mut self.bytes);
        // SAFETY: as in `view`.
        with_scalar!(self.dtype, T => unsafe { window_mut::<T, u8, _>(bytes, window) }.into_any())
    }
}
