//! Views without element types, and views of memory that lies wherever a `device::Device` is.

use core::marker::PhantomData;

use super::{Access, Space, ViewRef, sealed};
use crate::dtype::DType;
use crate::fence::{Fence, FenceMut};
use crate::units::Elements;

/// Memory of whichever a `device::Device` is: a GPU, or this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyMemory;

impl sealed::Sealed for AnyMemory {}
impl Space for AnyMemory {
    const NAME: &'static str = "host or device";
}

#[cfg(all(feature = "cuda", feature = "ptx"))]
mod moved {
    use super::super::{DeviceMemory, HostMemory};
    use super::*;

    /// Of a launch on the wrong kind of memory: the argument, what it lies in, and what was required.
    pub(crate) type Elsewhere = (usize, &'static str, &'static str);

    impl AnyMemory {
        /// The views of one launch on a GPU, where all lie in its memory.
        pub(crate) fn of_device(
            views: Vec<AnyView<'_, AnyMemory>>,
        ) -> Result<Vec<AnyView<'_, DeviceMemory>>, Elsewhere> {
            moved(views, true, HostMemory::NAME, DeviceMemory::NAME)
        }

        /// The views of one launch on the executor, where all lie in this process.
        pub(crate) fn of_host(views: Vec<AnyView<'_, AnyMemory>>) -> Result<Vec<AnyView<'_, HostMemory>>, Elsewhere> {
            moved(views, false, DeviceMemory::NAME, HostMemory::NAME)
        }
    }

    /// The same views, where all lie on a device, or none. Each that does has a fence, or is a second view of one that has.
    fn moved<'a, S: Space>(
        views: Vec<AnyView<'a, AnyMemory>>,
        on_device: bool,
        found: &'static str,
        required: &'static str,
    ) -> Result<Vec<AnyView<'a, S>>, Elsewhere> {
        let is_fenced = |view: &&AnyView<'_, AnyMemory>| view.fence.is_some() && view.is_owner();
        let fenced: Vec<Memory> = views.iter().filter(is_fenced).map(|view| view.memory).collect();
        let there = |AnyView { raw, fence, memory, .. }| AnyView { raw, fence, memory, marker: PhantomData };
        match views.iter().position(|view| fenced.contains(&view.memory) != on_device) {
            Some(argument) => Err((argument, found, required)),
            None => Ok(views.into_iter().map(there).collect()),
        }
    }
}

/// What orders a launch against other work on the memory of a view.
#[derive(Debug)]
pub(crate) enum AnyFence<'a> {
    Read(&'a dyn Fence),
    Write(&'a mut dyn FenceMut),
    /// The borrow and the fence are those of another argument of the same launch, of the same memory.
    Shared,
}

/// All memory that a view was made of. While it is borrowed exclusively, no other view has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    ptr: u64,
    available: Elements,
    dtype: DType,
}

/// A [`View`](super::View) or [`ViewMut`](super::ViewMut) with its element type as a value. It can only be made from one of them, so a
/// launch may trust that its memory is borrowed.
#[derive(Debug)]
pub struct AnyView<'a, S: Space> {
    raw: ViewRef,
    fence: Option<AnyFence<'a>>,
    memory: Memory,
    marker: PhantomData<(&'a mut (), S)>,
}

impl<'a, S: Space> AnyView<'a, S> {
    pub(super) fn of(raw: ViewRef, fence: Option<AnyFence<'a>>) -> Self {
        let ViewRef { dtype, ptr, available, .. } = raw;
        AnyView { raw, fence, memory: Memory { ptr, available, dtype }, marker: PhantomData }
    }

    /// The view without its lifetime.
    pub fn raw(&self) -> ViewRef {
        self.raw
    }

    /// The same view for a shorter time.
    pub(crate) fn reborrow(&mut self) -> AnyView<'_, S> {
        let fence = self.fence.as_mut().map(|fence| match fence {
            AnyFence::Read(fence) => AnyFence::Read(*fence),
            AnyFence::Write(fence) => AnyFence::Write(&mut **fence),
            AnyFence::Shared => AnyFence::Shared,
        });
        AnyView { raw: self.raw, fence, memory: self.memory, marker: PhantomData }
    }

    /// A second view of the memory of this one, which stays an argument of the same launch.
    pub(crate) fn alias<'b>(&self, access: Access) -> AnyView<'b, S> {
        self.shared(ViewRef { access, ..self.raw })
    }

    /// A view of the same memory, without the borrow and the fence.
    fn shared<'b>(&self, raw: ViewRef) -> AnyView<'b, S> {
        AnyView { raw, fence: Some(AnyFence::Shared), memory: self.memory, marker: PhantomData }
    }

    /// The same memory as several tensors, each a layout from an element on.
    pub(crate) fn parts(self, parts: &[(u64, super::ViewLayout)]) -> Vec<Self> {
        let ViewRef { dtype, ptr, available, .. } = self.raw;
        let part = |(start, layout): &(u64, super::ViewLayout)| {
            let start = (*start).min(available.0);
            let ptr = ptr + start * dtype.bytes().0;
            ViewRef { ptr, available: Elements(available.0 - start), layout: *layout, ..self.raw }
        };
        let mut raws = parts.iter().map(part);
        let Some(first) = raws.next() else { return Vec::new() };
        let others = raws.map(|raw| self.shared(raw)).collect::<Vec<_>>();
        [AnyView { raw: first, ..self }].into_iter().chain(others).collect()
    }

    /// Whether it has the borrow and the fence itself.
    #[cfg(any(feature = "cuda", feature = "ptx"))]
    fn is_owner(&self) -> bool {
        !matches!(self.fence, Some(AnyFence::Shared))
    }

    /// The first of the arguments of a launch that shares the borrow of a view which is not among them.
    #[cfg(any(feature = "cuda", feature = "ptx"))]
    pub(crate) fn alone(views: &[Self]) -> Option<usize> {
        let has_owner = |view: &Self| views.iter().any(|owner| owner.is_owner() && owner.memory == view.memory);
        views.iter().position(|view| !view.is_owner() && !has_owner(view))
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn fence(&mut self) -> Option<&mut AnyFence<'a>> {
        self.fence.as_mut()
    }
}
