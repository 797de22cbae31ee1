//! Tensors in the memory of a GPU.

use core::fmt;
use std::sync::Arc;

use ::dlpark::ffi::{DLDevice, DLDeviceType, DLManagedTensorVersioned};
use ::dlpark::versioned::Dlpack;
use ::dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut, DeviceSlice};

use super::{Described, Lent};
use crate::dtype::{DType, Element};
use crate::interop::Refused;
use crate::launch::{DriverError, InStream};
use crate::units::Elements;
use crate::verify::with_scalar;
use crate::view::{AnyView, DeviceMemory, View, ViewLayout, ViewMut};

/// A tensor in the memory of a GPU that somebody lent. Dropping it waits for the launches that use it, and gives it
/// back.
pub struct DeviceImport<M: ManagedTensorBase = DLManagedTensorVersioned> {
    of: Described,
    order: InStream,
    /// There until it is dropped.
    managed: Option<Managed<M>>,
}

impl<M: ManagedTensorBase> DeviceImport<M> {
    /// Takes a tensor that is ready for work in `stream`: the one that its producer was told of, as
    /// `__dlpack__(stream=..)` does, or the producer's own. Launches in other streams wait for that one, and it for
    /// them.
    ///
    /// # Safety
    /// The tensor's description of its memory must be true, as DLPack requires. Until this is dropped, its elements
    /// must exist, in memory that the stream's context can read and write. Only work in `stream`, and launches through
    /// this, may write them. While they are written through [`DeviceImport::view_mut`], nothing else may use them.
    ///
    /// # Errors
    /// It lies elsewhere, has an element type that kernels have not, more modes than a view, or strides that run
    /// backwards. It is given back then.
    pub unsafe fn new(managed: Managed<M>, stream: &Arc<CudaStream>) -> Result<Self, Refused> {
        let of = Described::of(&managed)?;
        of.lies_on(&[(DLDeviceType::CUDA, "a CUDA device"), (DLDeviceType::CUDAMANAGED, "managed memory of CUDA")])?;
        let required = stream.context().ordinal();
        if of.device.device_type == DLDeviceType::CUDA && usize::try_from(of.device.device_id) != Ok(required) {
            return Err(Refused {
                what: "the tensor lies on another GPU",
                found: format!("CUDA device {}", of.device.device_id),
                required: format!("CUDA device {required}, that of the stream"),
                because: "a kernel is launched in one context",
                help: "copy the tensor there first, or pass a stream of its device",
            });
        }
        Ok(Self { of, order: InStream(stream.clone()), managed: Some(managed) })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.of.dtype
    }

    /// Shape and strides.
    pub fn layout(&self) -> ViewLayout {
        self.of.layout
    }

    /// A view for a kernel that reads.
    ///
    /// # Errors
    /// `T` is not the element type.
    pub fn view<T: Element>(&self) -> Result<View<'_, T, DeviceMemory>, Refused> {
        self.of.holds::<T>()?;
        // SAFETY: the caller of the unsafe constructor has promised it for this value's lifetime, and the fence orders
        // launches.
        let view = unsafe { View::from_raw_parts(self.of.ptr, self.of.available(), self.of.layout) };
        Ok(view.fenced(&self.order))
    }

    /// A view for a kernel that writes.
    ///
    /// # Errors
    /// `T` is not the element type, or the tensor may not be written.
    pub fn view_mut<T: Element>(&mut self) -> Result<ViewMut<'_, T, DeviceMemory>, Refused> {
        self.of.holds::<T>()?;
        self.of.may_be_written()?;
        // SAFETY: as above, and the borrow is exclusive.
        let view = unsafe { ViewMut::from_raw_parts(self.of.ptr, self.of.available(), self.of.layout) };
        Ok(view.fenced(&mut self.order))
    }

    /// A view for a kernel that reads, with the element type as a value.
    pub fn any(&self) -> AnyView<'_, DeviceMemory> {
        // SAFETY: as in `view`.
        with_scalar!(self.of.dtype, T => unsafe {
            View::<T, DeviceMemory>::from_raw_parts(self.of.ptr, self.of.available(), self.of.layout)
        }.fenced(&self.order).erase())
    }

    /// Waits for the launches that use the tensor, and gives it back.
    ///
    /// # Errors
    /// One of them failed, or the driver refuses; it is given back all the same.
    pub fn give_back(mut self) -> Result<(), DriverError> {
        let waited = self.order.0.synchronize().map_err(DriverError::of("cuStreamSynchronize"));
        drop(self.managed.take());
        waited
    }
}

impl<M: ManagedTensorBase> Drop for DeviceImport<M> {
    fn drop(&mut self) {
        if self.managed.is_some() {
            let stream = &self.order.0;
            stream.context().record_err(stream.synchronize());
        }
    }
}

impl<M: ManagedTensorBase> fmt::Debug for DeviceImport<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceImport {} {}", self.of.dtype, self.of.layout)
    }
}

/// Device memory that is freed once the consumer's stream has finished its work.
struct Ordered<T> {
    memory: CudaSlice<T>,
    consumer: Arc<CudaStream>,
}

impl<T> Drop for Ordered<T> {
    fn drop(&mut self) {
        // The memory is freed in the order of its own stream.
        let own = DeviceSlice::stream(&self.memory);
        if own.cu_stream() != self.consumer.cu_stream() {
            own.context().record_err(own.join(&self.consumer));
        }
    }
}

/// Lends device memory, as a tensor that is ready for work in `consumer`. It is freed when it was given back, behind
/// the work that the stream has by then. Where some elements are shared by coordinates, it is for reading only.
///
/// # Errors
/// The layout reaches past the memory.
pub fn export_device<T: Element>(
    mut memory: CudaSlice<T>,
    layout: ViewLayout,
    consumer: &Arc<CudaStream>,
) -> Result<Dlpack, Refused> {
    // The consumer may write: it waits for reads, too, where cudarc keeps events of other streams.
    let ptr = memory.device_ptr_mut(consumer).0;
    let own = DeviceSlice::stream(&memory);
    if own.cu_stream() != consumer.cu_stream() {
        consumer.context().record_err(consumer.join(own));
    }
    let lent = Lent {
        ptr: core::ptr::without_provenance_mut(ptr as usize),
        len: Elements(memory.len() as u64),
        dtype: T::DTYPE,
        device: DLDevice::cuda(i32::try_from(own.context().ordinal()).unwrap_or(i32::MAX)),
        flags: DlpackFlags::empty(),
    };
    // SAFETY: the memory goes with the tensor, and later work on it is the consumer's.
    unsafe { lent.finish(Box::new(Ordered { memory, consumer: consumer.clone() }), layout) }
}
