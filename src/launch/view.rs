//! Views of device memory that order a launch against other work.
//!
//! cudarc keeps two events with each allocation: its last read and its last write. A launch on a stream first makes the
//! stream wait for them (a read waits for the last write, a write for both), and records the event once the kernel is in
//! the stream. cudarc does the second half with a guard that records when it is dropped, and leaves it to the caller to
//! keep the guard until the launch is made; a view carries a reference to its memory instead, so that the launch takes the
//! guard and drops it, and there is nothing to keep and nothing to forget.
//!
//! Memory that is dropped after a launch is freed in stream order, after the recorded events.

use core::fmt;

use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop,
};

use crate::dtype::Element;
use crate::units::{Bytes, Elements};
use crate::view::{Device, View, ViewLayout, ViewMut};

pub(super) mod sealed {
    use super::*;

    pub trait Sealed {}
    impl<T> Sealed for CudaSlice<T> {}
    impl<T> Sealed for CudaView<'_, T> {}
    impl<T> Sealed for CudaViewMut<'_, T> {}
}

/// Orders later work on some memory after a launch, when it is dropped.
#[derive(Debug)]
#[must_use]
pub enum Guard<'s> {
    /// An event of cudarc's, recorded in the stream of the launch.
    Event(SyncOnDrop<'s>),
    /// The stream of the memory waits for that of the launch.
    Join {
        /// That of the memory.
        memory: &'s CudaStream,
        /// That of the launch.
        launch: &'s CudaStream,
    },
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // An event records itself.
        if let Guard::Join { memory, launch } = self {
            launch.context().record_err(memory.join(launch));
        }
    }
}

/// Memory that a stream waits for before a kernel reads it.
pub trait Fence: sealed::Sealed + fmt::Debug + Send + Sync {
    /// The context of the memory.
    fn context(&self) -> &CudaContext;
    /// Makes `stream` wait for the last write. Later writes wait for the stream as it is when the guard is dropped.
    fn read<'s>(&'s self, stream: &'s CudaStream) -> Guard<'s>;
}

/// Memory that a stream waits for before a kernel writes it.
pub trait FenceMut: Fence {
    /// Makes `stream` wait for the last read and the last write. Later work waits for the stream as it is when the
    /// guard is dropped.
    fn write<'s>(&'s mut self, stream: &'s CudaStream) -> Guard<'s>;
}

/// Whether cudarc would leave a launch unordered against other work on the memory: it keeps no events before a context
/// has made a second stream, and does not count those that were borrowed. Who turned its events off orders by other
/// means.
fn is_unordered(memory: &CudaStream, launch: &CudaStream) -> bool {
    let both = |holds: fn(&CudaContext) -> bool| holds(memory.context()) && holds(launch.context());
    memory.cu_stream() != launch.cu_stream()
        && both(CudaContext::is_event_tracking)
        && !both(CudaContext::is_managing_stream_synchronization)
}

/// Orders by streams alone: `launch` waits for that of the memory, and is waited for by it.
pub(super) fn join<'s>(memory: &'s CudaStream, launch: &'s CudaStream) -> Guard<'s> {
    launch.context().record_err(launch.join(memory));
    Guard::Join { memory, launch }
}

macro_rules! fences {
    ($($memory:ty),+) => {$(
        impl<T: fmt::Debug + Send + Sync> Fence for $memory {
            fn context(&self) -> &CudaContext {
                DeviceSlice::<T>::stream(self).context()
            }

            fn read<'s>(&'s self, stream: &'s CudaStream) -> Guard<'s> {
                if is_unordered(DeviceSlice::<T>::stream(self), stream) {
                    return join(DeviceSlice::<T>::stream(self), stream);
                }
                Guard::Event(self.device_ptr(stream).1)
            }
        }
    )+};
}

macro_rules! fences_mut {
    ($($memory:ty),+) => {$(
        impl<T: fmt::Debug + Send + Sync> FenceMut for $memory {
            fn write<'s>(&'s mut self, stream: &'s CudaStream) -> Guard<'s> {
                if is_unordered(DeviceSlice::<T>::stream(self), stream) {
                    return join(DeviceSlice::<T>::stream(self), stream);
                }
                Guard::Event(self.device_ptr_mut(stream).1)
            }
        }
    )+};
}

fences!(CudaSlice<T>, CudaView<'_, T>, CudaViewMut<'_, T>);
fences_mut!(CudaSlice<T>, CudaViewMut<'_, T>);

/// Device memory of cudarc that can be read: `CudaSlice<T>`, `CudaView<T>`, `CudaViewMut<T>`.
pub trait Memory<T>: Fence + DevicePtr<T> {}
impl<T, M: Fence + DevicePtr<T>> Memory<T> for M {}

/// Device memory of cudarc that can be written: `CudaSlice<T>`, `CudaViewMut<T>`.
pub trait MemoryMut<T>: FenceMut + DevicePtrMut<T> + DevicePtr<T> {}
impl<T, M: FenceMut + DevicePtrMut<T> + DevicePtr<T>> MemoryMut<T> for M {}

/// Where a tensor lies in an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Bytes from the start of the allocation to the first element.
    pub(crate) start: Bytes,
    /// Elements from there on.
    pub(crate) len: Elements,
    /// Shape and strides.
    pub(crate) layout: ViewLayout,
}

/// The address of device memory, without using it: the memory's own stream takes the wait that cudarc couples with
/// asking, and the guard is not dropped, since nothing was read.
fn address<T>(memory: &impl DevicePtr<T>) -> u64 {
    let (address, guard) = memory.device_ptr(memory.stream());
    core::mem::forget(guard);
    address
}

/// A window of an allocation, for a kernel that reads.
///
/// # Safety
/// `start` and `len` must lie within `data`.
pub(crate) unsafe fn window<'a, T: Element, U, M: Memory<U>>(data: &'a M, window: Window) -> View<'a, T, Device> {
    let address = address::<U>(data) + window.start.0;
    // SAFETY: the memory is borrowed for 'a, and the fence keeps other streams from writing it meanwhile.
    unsafe { View::from_raw_parts(address, window.len, window.layout) }.fenced(data)
}

/// A window of an allocation, for a kernel that writes.
///
/// # Safety
/// `start` and `len` must lie within `data`.
pub(crate) unsafe fn window_mut<'a, T: Element, U, M: MemoryMut<U>>(
    data: &'a mut M,
    window: Window,
) -> ViewMut<'a, T, Device> {
    let address = address::<U>(data) + window.start.0;
    // SAFETY: the memory is borrowed exclusively for 'a, and the fence keeps other streams away meanwhile.
    unsafe { ViewMut::from_raw_parts(address, window.len, window.layout) }.fenced(data)
}

impl<'a, T: Element> View<'a, T, Device> {
    /// Device memory seen as a row-major matrix `(rows,cols):(ld,1)`; shape and stride are checked at launch, which also
    /// waits for the last write of the memory on any stream.
    pub fn device(data: &'a impl Memory<T>, shape: [i64; 2], ld: i64) -> Self {
        Self::device_strided(data, ViewLayout::matrix(shape, ld))
    }

    /// The same for any layout.
    pub fn device_strided(data: &'a impl Memory<T>, layout: ViewLayout) -> Self {
        let whole = Window { start: Bytes(0), len: Elements(data.len() as u64), layout };
        // SAFETY: the window is all of it.
        unsafe { window(data, whole) }
    }
}

impl<'a, T: Element> ViewMut<'a, T, Device> {
    /// Device memory seen as a row-major matrix `(rows,cols):(ld,1)`, for a kernel that writes it; shape and stride are
    /// checked at launch, which also waits for the last read and the last write of the memory on any stream.
    pub fn device(data: &'a mut impl MemoryMut<T>, shape: [i64; 2], ld: i64) -> Self {
        Self::device_strided(data, ViewLayout::matrix(shape, ld))
    }

    /// The same for any layout.
    pub fn device_strided(data: &'a mut impl MemoryMut<T>, layout: ViewLayout) -> Self {
        let whole = Window { start: Bytes(0), len: Elements(data.len() as u64), layout };
        // SAFETY: the window is all of it.
        unsafe { window_mut(data, whole) }
    }
}
