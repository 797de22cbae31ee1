//! Views of device memory that order a launch against other work.
//!
//! cudarc keeps two events with each allocation: its last read and its last write. A launch on a stream first makes the
//! stream wait for them: a read waits for the last write, a write for both. Once the kernel is in the stream, the
//! launch records the event. cudarc records it when a guard is dropped, and the caller must keep that guard until the
//! launch is made. Here, a view carries a reference to its memory, so that the launch takes and drops the guard itself.
//!
//! Two things are done here that cudarc leaves out. An event holds one record, so the stream of a later read waits for the
//! earlier read before it records its own: the event then covers both. And the stream of the memory waits for each launch
//! on another stream, because cudarc frees memory in that stream, and stops waiting for events once the last other stream
//! was dropped.
//!
//! A copy out of the memory by cudarc itself does not wait for the earlier read. After a launch that reads on one stream
//! and such a copy on a second one, only the memory's own stream is ordered behind both.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice,
    DriverError, SyncOnDrop,
};

use crate::dtype::Element;
use crate::units::{Bytes, Elements};
use crate::view::{DeviceMemory, View, ViewLayout, ViewMut};

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
pub struct Guard<'s> {
    /// The stream of the memory.
    memory: Arc<CudaStream>,
    /// The stream of the launch.
    launch: &'s CudaStream,
    /// The action after the launch is in its stream.
    then: Then<'s>,
}

#[derive(Clone, Copy, Debug)]
enum Then<'s> {
    /// Nothing: the stream alone orders.
    Nothing,
    /// The event of the last read is recorded again, after the read that it stood for.
    Read(&'s CudaEvent),
    /// The event of the last write is recorded again. The launch has waited for the write that it stood for.
    Wrote(&'s CudaEvent),
    /// The memory's stream waits for the launch's.
    Join,
}

/// Held while an event is waited for and recorded again: of two threads that read the same memory, one would lose the
/// record of the other otherwise.
static RECORDING: Mutex<()> = Mutex::new(());

impl Guard<'_> {
    fn order(&self) -> Result<(), DriverError> {
        let Guard { ref memory, launch, then } = *self;
        let event = match then {
            Then::Nothing => return Ok(()),
            Then::Join => return memory.join(launch),
            Then::Read(event) | Then::Wrote(event) => event,
        };
        let _lock = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Then::Read(_) = then {
            launch.wait(event)?;
        }
        event.record(launch)?;
        match memory.cu_stream() == launch.cu_stream() {
            true => Ok(()),
            false => memory.wait(event),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.launch.context().record_err(self.order());
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

/// How a launch is ordered against other work on memory of cudarc's. Whoever turned its events off orders by other means.
fn guard<'s>(
    memory: Arc<CudaStream>,
    launch: &'s CudaStream,
    mut sync: SyncOnDrop<'s>,
    then: fn(&'s CudaEvent) -> Then<'s>,
) -> Guard<'s> {
    // The event is recorded by the guard, so cudarc's own must not.
    let event = match &mut sync {
        SyncOnDrop::Record(target) => target.take().map(|(event, _)| event),
        SyncOnDrop::Sync(_) => None,
    };
    let both = |holds: fn(&CudaContext) -> bool| holds(memory.context()) && holds(launch.context());
    let (tracks, waits) = (both(CudaContext::is_event_tracking), both(CudaContext::is_managing_stream_synchronization));
    let then = match (memory.cu_stream() == launch.cu_stream(), event) {
        _ if !tracks => Then::Nothing,
        (true, Some(event)) if waits => then(event),
        (true, _) => Then::Nothing,
        (false, Some(event)) if waits => then(event),
        // cudarc waits for no event before a context has made a second stream, and does not count those that were
        // borrowed.
        (false, event) => {
            launch.context().record_err(launch.join(&memory));
            event.map_or(Then::Join, then)
        }
    };
    Guard { memory, launch, then }
}

/// Orders by streams alone: `launch` waits for the memory's stream, which then waits for `launch`.
#[cfg(feature = "dlpack")]
pub(super) fn join<'s>(memory: &Arc<CudaStream>, launch: &'s CudaStream) -> Guard<'s> {
    launch.context().record_err(launch.join(memory));
    Guard { memory: memory.clone(), launch, then: Then::Join }
}

/// For memory whose own stream is the launch's.
#[cfg(feature = "dlpack")]
pub(super) fn in_order<'s>(memory: &Arc<CudaStream>, launch: &'s CudaStream) -> Guard<'s> {
    Guard { memory: memory.clone(), launch, then: Then::Nothing }
}

macro_rules! fences {
    ($($memory:ty),+) => {$(
        impl<T: fmt::Debug + Send + Sync> Fence for $memory {
            fn context(&self) -> &CudaContext {
                DeviceSlice::<T>::stream(self).context()
            }

            fn read<'s>(&'s self, stream: &'s CudaStream) -> Guard<'s> {
                guard(DeviceSlice::<T>::stream(self).clone(), stream, self.device_ptr(stream).1, Then::Read)
            }
        }
    )+};
}

macro_rules! fences_mut {
    ($($memory:ty),+) => {$(
        impl<T: fmt::Debug + Send + Sync> FenceMut for $memory {
            fn write<'s>(&'s mut self, stream: &'s CudaStream) -> Guard<'s> {
                guard(DeviceSlice::<T>::stream(self).clone(), stream, self.device_ptr_mut(stream).1, Then::Wrote)
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
pub(crate) unsafe fn window<'a, T: Element, U, M: Memory<U>>(data: &'a M, window: Window) -> View<'a, T, DeviceMemory> {
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
) -> ViewMut<'a, T, DeviceMemory> {
    let address = address::<U>(data) + window.start.0;
    // SAFETY: the memory is borrowed exclusively for 'a, and the fence keeps other streams away meanwhile.
    unsafe { ViewMut::from_raw_parts(address, window.len, window.layout) }.fenced(data)
}

impl<'a, T: Element> View<'a, T, DeviceMemory> {
    /// Device memory seen as a row-major matrix `(rows,cols):(ld,1)`; shape and stride are checked at launch, which also
    /// waits for the last write of the memory on any stream.
    pub fn device(data: &'a impl Memory<T>, shape: [i64; 2], ld: i64) -> Self {
        Self::device_strided(data, ViewLayout::matrix(shape, ld))
    }

    /// The same as a vector `n:1`. [`View::row`] and [`View::column`] make a matrix of it.
    pub fn device_vector(data: &'a impl Memory<T>) -> Self {
        Self::device_strided(data, ViewLayout::vector(data.len() as i64))
    }

    /// The same for any layout.
    pub fn device_strided(data: &'a impl Memory<T>, layout: ViewLayout) -> Self {
        let whole = Window { start: Bytes(0), len: Elements(data.len() as u64), layout };
        // SAFETY: the window is all of it.
        unsafe { window(data, whole) }
    }

    /// The elements from `start` on, which is at most their number.
    #[cfg(feature = "ptx")]
    pub(crate) fn device_from(data: &'a impl Memory<T>, start: usize, layout: ViewLayout) -> Self {
        let start = (start.min(data.len())) as u64;
        let (at, len) = (Bytes(start * T::DTYPE.bytes().0), Elements(data.len() as u64 - start));
        // SAFETY: the window begins within the memory and ends with it.
        unsafe { window(data, Window { start: at, len, layout }) }
    }
}

impl<'a, T: Element> ViewMut<'a, T, DeviceMemory> {
    /// Device memory seen as a row-major matrix `(rows,cols):(ld,1)`, for a kernel that writes it; shape and stride are
    /// checked at launch, which also waits for the last read and the last write of the memory on any stream.
    pub fn device(data: &'a mut impl MemoryMut<T>, shape: [i64; 2], ld: i64) -> Self {
        Self::device_strided(data, ViewLayout::matrix(shape, ld))
    }

    /// The same as a vector `n:1`.
    pub fn device_vector(data: &'a mut impl MemoryMut<T>) -> Self {
        let layout = ViewLayout::vector(data.len() as i64);
        Self::device_strided(data, layout)
    }

    /// The same for any layout.
    pub fn device_strided(data: &'a mut impl MemoryMut<T>, layout: ViewLayout) -> Self {
        let whole = Window { start: Bytes(0), len: Elements(data.len() as u64), layout };
        // SAFETY: the window is all of it.
        unsafe { window_mut(data, whole) }
    }
}
