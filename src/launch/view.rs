//! Views of device memory that know what to wait for and what to tell.
//!
//! cudarc keeps two events with each allocation: the last read and the last write of it. Making a view makes the stream
//! wait for them (a read waits for the last write, a write for both), and the launch records the event once the kernel is
//! in the stream. cudarc itself does this with a guard that records when it is dropped, which leaves it to the caller to
//! keep the guard until after the launch; a view carries the event along instead, so there is nothing to keep.
//!
//! Between the two, the view's borrow keeps others out: no one can write memory that is borrowed shared, nor touch memory
//! that is borrowed exclusively, so nothing can happen to it after the wait and before the launch. Memory that is dropped
//! after the launch is freed in stream order, after the recorded events.

use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceSlice, SyncOnDrop};

use crate::dtype::Element;
use crate::launch::error::{DriverError, LaunchError};
use crate::units::{Bytes, Elements};
use crate::view::{Device, View, ViewMut};

/// How a view's memory is ordered against other work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    /// The stream that waits for earlier work.
    stream: &'a CudaStream,
    /// Whether the memory belongs to the context of that stream.
    is_local: bool,
    /// What later work waits for.
    event: Option<&'a CudaEvent>,
}

impl<'a> Order<'a> {
    fn new(stream: &'a CudaStream, memory: &CudaContext, guard: SyncOnDrop<'a>) -> Self {
        let event = match &guard {
            SyncOnDrop::Record(Some((event, _))) => Some(*event),
            SyncOnDrop::Record(None) | SyncOnDrop::Sync(_) => None,
        };
        // Dropping it would record the event now, before the kernel is in the stream.
        core::mem::forget(guard);
        Self { stream, is_local: **stream.context() == *memory, event }
    }

    /// Whether a launch of `tensor` on `stream` comes after what the view waits for.
    pub(crate) fn check(&self, tensor: &'static str, stream: &CudaStream) -> Result<(), LaunchError> {
        if self.stream != stream {
            return Err(LaunchError::Stream { tensor });
        }
        if !self.is_local {
            return Err(LaunchError::Memory { tensor, device: stream.context().ordinal() });
        }
        Ok(())
    }

    /// Lets later work wait for what is in the stream now.
    pub(crate) fn record(&self) -> Result<(), DriverError> {
        match self.event {
            Some(event) if self.stream.context().is_managing_stream_synchronization() => {
                event.record(self.stream).map_err(DriverError::of("cuEventRecord"))
            }
            _ => Ok(()),
        }
    }
}

mod sealed {
    use super::*;

    pub trait Sealed {}
    impl<T> Sealed for &CudaSlice<T> {}
    impl<T> Sealed for &mut CudaSlice<T> {}
    impl<T> Sealed for CudaView<'_, T> {}
    impl<T> Sealed for CudaViewMut<'_, T> {}
}

/// Device memory that can be read for `'a`: `&CudaSlice<T>` and `CudaView<T>`.
pub trait Lend<'a, T>: sealed::Sealed {
    /// The memory as cudarc's view.
    fn lend(self) -> CudaView<'a, T>;
}

impl<'a, T> Lend<'a, T> for &'a CudaSlice<T> {
    fn lend(self) -> CudaView<'a, T> {
        self.as_view()
    }
}

impl<'a, T> Lend<'a, T> for CudaView<'a, T> {
    fn lend(self) -> CudaView<'a, T> {
        self
    }
}

/// Device memory that can be written for `'a`: `&mut CudaSlice<T>` and `CudaViewMut<T>`.
pub trait LendMut<'a, T>: sealed::Sealed {
    /// The memory as cudarc's view.
    fn lend_mut(self) -> CudaViewMut<'a, T>;
}

impl<'a, T> LendMut<'a, T> for &'a mut CudaSlice<T> {
    fn lend_mut(self) -> CudaViewMut<'a, T> {
        self.as_view_mut()
    }
}

impl<'a, T> LendMut<'a, T> for CudaViewMut<'a, T> {
    fn lend_mut(self) -> CudaViewMut<'a, T> {
        self
    }
}

/// Where a matrix lies in an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Bytes from the start of the allocation to element (0,0).
    pub(crate) start: Bytes,
    /// Elements from there on.
    pub(crate) len: Elements,
    /// Rows and columns.
    pub(crate) shape: [i64; 2],
    /// Elements from one row to the next.
    pub(crate) ld: i64,
}

/// A window of an allocation, for a kernel that reads.
///
/// # Safety
/// `start` and `len` must lie within `data`.
pub(crate) unsafe fn window<'a, T: Element, U>(
    data: CudaView<'a, U>,
    window: Window,
    stream: &'a CudaStream,
) -> View<'a, T, Device> {
    let memory = DeviceSlice::stream(&data).context().clone();
    let (ptr, guard) = data.view_ptr(stream);
    // SAFETY: the memory is borrowed for 'a, and the order keeps other streams from writing it meanwhile.
    unsafe { View::from_raw_parts(ptr + window.start.0, window.len, window.shape, window.ld) }
        .ordered(Order::new(stream, &memory, guard))
}

/// A window of an allocation, for a kernel that writes.
///
/// # Safety
/// `start` and `len` must lie within `data`.
pub(crate) unsafe fn window_mut<'a, T: Element, U>(
    data: CudaViewMut<'a, U>,
    window: Window,
    stream: &'a CudaStream,
) -> ViewMut<'a, T, Device> {
    let memory = DeviceSlice::stream(&data).context().clone();
    let (ptr, guard) = data.view_ptr_mut(stream);
    // SAFETY: the memory is borrowed exclusively for 'a, and the order keeps other streams away meanwhile.
    unsafe { ViewMut::from_raw_parts(ptr + window.start.0, window.len, window.shape, window.ld) }
        .ordered(Order::new(stream, &memory, guard))
}

impl<'a, T: Element> View<'a, T, Device> {
    /// Device memory seen as `(rows,cols):(ld,1)`, for a kernel that is launched on `stream`; shape and stride are checked
    /// at launch. `stream` waits for the last write of the memory on any stream.
    pub fn device(data: impl Lend<'a, T>, shape: [i64; 2], ld: i64, stream: &'a CudaStream) -> Self {
        let data = data.lend();
        let whole = Window { start: Bytes(0), len: Elements(data.len() as u64), shape, ld };
        // SAFETY: the window is all of it.
        unsafe { window(data, whole, stream) }
    }
}

impl<'a, T: Element> ViewMut<'a, T, Device> {
    /// Device memory seen as `(rows,cols):(ld,1)`, for a kernel that is launched on `stream` and writes it; shape and
    /// stride are checked at launch. `stream` waits for the last read and the last write of the memory on any stream.
    pub fn device(data: impl LendMut<'a, T>, shape: [i64; 2], ld: i64, stream: &'a CudaStream) -> Self {
        let data = data.lend_mut();
        let whole = Window { start: Bytes(0), len: Elements(data.len() as u64), shape, ld };
        // SAFETY: the window is all of it.
        unsafe { window_mut(data, whole, stream) }
    }
}
