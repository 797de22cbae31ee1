//! Typed views of tensors in device or host memory: the arguments of a launch, and the subject of its checks.

mod any;
mod layout;

use core::fmt;
use core::marker::PhantomData;

use crate::dtype::{DType, Element};
use crate::fence::{Fence, FenceMut};
use crate::units::Elements;

pub(crate) use any::AnyFence;
pub use any::{AnyMemory, AnyView};
pub use layout::{MAX_RANK, ViewLayout};

mod sealed {
    pub trait Sealed {}
}

/// A memory space that kernels read and write.
pub trait Space: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Its name in messages.
    const NAME: &'static str;
}

/// Memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory;

/// Memory of this process, for the CPU executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory;

impl sealed::Sealed for DeviceMemory {}
impl sealed::Sealed for HostMemory {}
impl Space for DeviceMemory {
    const NAME: &'static str = "device";
}
impl Space for HostMemory {
    const NAME: &'static str = "host";
}

/// Whether a kernel reads or writes a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The kernel only reads it.
    Read,
    /// The kernel writes every element of it and reads none.
    Write,
    /// The kernel reads elements of it and writes elements of it, such as one that is changed in place. Its view is that of a
    /// tensor that is written.
    ReadWrite,
}

impl Access {
    /// Whether the kernel writes it.
    pub fn writes(self) -> bool {
        self != Access::Read
    }

    /// Whether the kernel reads it.
    pub fn reads(self) -> bool {
        self != Access::Write
    }
}

/// A tensor in memory without its Rust type, as the launch checks see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewRef {
    /// Element type.
    pub dtype: DType,
    /// Address of the first element.
    pub ptr: u64,
    /// Elements of memory from `ptr` on.
    pub available: Elements,
    /// Shape and strides.
    pub layout: ViewLayout,
    /// Whether the kernel may write through it.
    pub access: Access,
}

impl ViewRef {
    /// Elements from the first to one past the last: [`ViewLayout::span`].
    pub fn span(&self) -> Option<u64> {
        self.layout.span()
    }

    /// One past the last byte of the view, or `None` on overflow.
    pub fn end(&self) -> Option<u64> {
        self.ptr.checked_add(self.span()?.checked_mul(self.dtype.bytes().0)?)
    }
}

impl fmt::Display for ViewRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at {:#x}", self.dtype, self.layout, self.ptr)
    }
}

/// A tensor that a kernel reads.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T: Element, S: Space> {
    raw: ViewRef,
    fence: Option<&'a dyn Fence>,
    marker: PhantomData<(&'a [T], S)>,
}

/// A tensor that a kernel writes.
#[derive(Debug)]
pub struct ViewMut<'a, T: Element, S: Space> {
    raw: ViewRef,
    fence: Option<&'a mut dyn FenceMut>,
    marker: PhantomData<(&'a mut [T], S)>,
}

impl<'a, T: Element, S: Space> View<'a, T, S> {
    /// A view of `available` elements at `ptr`, seen as `layout`.
    ///
    /// Shape and stride are checked at launch.
    ///
    /// # Safety
    /// `available` elements at `ptr` are memory of space `S`. Those of them that `layout` reaches must be readable for
    /// the lifetime of the view, and nobody writes them; between them may lie somebody else's. Device memory must be
    /// ready for the stream that the kernel is launched on, and freed after it ran. `ptr` need not be aligned: the
    /// launch refuses it if it is not.
    pub unsafe fn from_raw_parts(ptr: u64, available: Elements, layout: ViewLayout) -> Self {
        let raw = ViewRef { dtype: T::DTYPE, ptr, available, layout, access: Access::Read };
        Self { raw, fence: None, marker: PhantomData }
    }

    /// The same, ordered by the launch.
    #[cfg(feature = "cuda")]
    pub(crate) fn fenced(self, fence: &'a dyn Fence) -> Self {
        Self { fence: Some(fence), ..self }
    }

    /// The view without its types.
    pub fn raw(&self) -> ViewRef {
        self.raw
    }

    /// The same, for a kernel on a `Device`, which looks at launch where it lies.
    #[cfg(all(feature = "cuda", feature = "ptx"))]
    pub(crate) fn anywhere(self) -> View<'a, T, AnyMemory> {
        View { raw: self.raw, fence: self.fence, marker: PhantomData }
    }

    fn seen(self, layout: impl FnOnce(ViewLayout) -> ViewLayout) -> Self {
        Self { raw: ViewRef { layout: layout(self.raw.layout), ..self.raw }, ..self }
    }

    /// One row for all of `rows`: a vector of N becomes the matrix `(rows,N):(0,1)`.
    ///
    /// ```
    /// use cutemplate::view::View;
    ///
    /// let bias = View::host_vector(&[1.0_f32, 2.0, 3.0]);
    /// assert_eq!(bias.row(128).raw().layout.to_string(), "(128,3):(0,1)");
    /// assert_eq!(bias.column(128).raw().layout.to_string(), "(3,128):(1,0)");
    /// ```
    #[must_use]
    pub fn row(self, rows: i64) -> Self {
        self.seen(|layout| layout.row(rows))
    }

    /// One column for all of `columns`: a vector of M becomes the matrix `(M,columns):(1,0)`.
    #[must_use]
    pub fn column(self, columns: i64) -> Self {
        self.seen(|layout| layout.column(columns))
    }

    /// Its first two modes exchanged: `(M,N):(ld,1)` becomes `(N,M):(1,ld)`, over the same memory.
    #[must_use]
    pub fn transposed(self) -> Self {
        self.seen(ViewLayout::transposed)
    }

    /// The view with its element type as a value, for a launch.
    pub fn erase(self) -> AnyView<'a, S> {
        AnyView::of(self.raw, self.fence.map(AnyFence::Read))
    }
}

impl<'a, T: Element, S: Space> ViewMut<'a, T, S> {
    /// A view of `available` elements at `ptr`, seen as `layout`, that a kernel may write.
    ///
    /// Shape and stride are checked at launch.
    ///
    /// # Safety
    /// `available` elements at `ptr` are memory of space `S`. Those of them that `layout` reaches must be writable for
    /// the lifetime of the view, and nobody else reads or writes them; between them may lie somebody else's. Device
    /// memory must be ready for the stream that the kernel is launched on, and freed after it ran. `ptr` need not be
    /// aligned: the launch refuses it if it is not.
    pub unsafe fn from_raw_parts(ptr: u64, available: Elements, layout: ViewLayout) -> Self {
        let raw = ViewRef { dtype: T::DTYPE, ptr, available, layout, access: Access::Write };
        Self { raw, fence: None, marker: PhantomData }
    }

    /// The same, ordered by the launch.
    #[cfg(feature = "cuda")]
    pub(crate) fn fenced(self, fence: &'a mut dyn FenceMut) -> Self {
        Self { fence: Some(fence), ..self }
    }

    /// The view without its types.
    pub fn raw(&self) -> ViewRef {
        self.raw
    }

    /// The same, for a kernel on a `Device`, which looks at launch where it lies.
    #[cfg(all(feature = "cuda", feature = "ptx"))]
    pub(crate) fn anywhere(self) -> ViewMut<'a, T, AnyMemory> {
        ViewMut { raw: self.raw, fence: self.fence, marker: PhantomData }
    }

    /// Its first two modes exchanged, as [`View::transposed`].
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { raw: ViewRef { layout: self.raw.layout.transposed(), ..self.raw }, ..self }
    }

    /// As [`ViewMut::erase`], for as long as the memory is borrowed.
    pub fn into_any(self) -> AnyView<'a, S> {
        AnyView::of(self.raw, self.fence.map(AnyFence::Write))
    }

    /// The view with its element type as a value, for a launch. The borrow is exclusive, so that no two launches can
    /// write through one view at the same time.
    pub fn erase(&mut self) -> AnyView<'_, S> {
        let fence = self.fence.as_mut().map(|fence| AnyFence::Write(&mut **fence));
        AnyView::of(self.raw, fence)
    }
}

impl<'a, T: Element> View<'a, T, HostMemory> {
    /// A host slice seen as a row-major matrix `(rows,cols):(ld,1)`; shape and stride are checked at launch.
    pub fn host(data: &'a [T], shape: [i64; 2], ld: i64) -> Self {
        Self::host_strided(data, ViewLayout::matrix(shape, ld))
    }

    /// A host slice seen as a vector `n:1`. [`View::row`] and [`View::column`] make a matrix of it.
    pub fn host_vector(data: &'a [T]) -> Self {
        Self::host_strided(data, ViewLayout::vector(data.len() as i64))
    }

    /// A host slice seen as any layout, which is checked at launch.
    ///
    /// ```
    /// use cutemplate::view::{View, ViewLayout};
    ///
    /// let a = [1.0_f32; 12];
    /// // Every second column of (3,4):(4,1).
    /// let view = View::host_strided(&a, ViewLayout::strided(&[3, 2], &[4, 2]).unwrap());
    /// assert_eq!(view.raw().layout.span(), Some(11));
    /// ```
    pub fn host_strided(data: &'a [T], layout: ViewLayout) -> Self {
        // SAFETY: the slice is borrowed for the lifetime of the view.
        unsafe { Self::from_raw_parts(data.as_ptr() as u64, Elements(data.len() as u64), layout) }
    }
}

impl<'a, T: Element> ViewMut<'a, T, HostMemory> {
    /// A host slice seen as a row-major matrix `(rows,cols):(ld,1)`; shape and stride are checked at launch.
    pub fn host(data: &'a mut [T], shape: [i64; 2], ld: i64) -> Self {
        Self::host_strided(data, ViewLayout::matrix(shape, ld))
    }

    /// A host slice seen as a vector `n:1`.
    pub fn host_vector(data: &'a mut [T]) -> Self {
        let layout = ViewLayout::vector(data.len() as i64);
        Self::host_strided(data, layout)
    }

    /// A host slice seen as any layout, which is checked at launch.
    pub fn host_strided(data: &'a mut [T], layout: ViewLayout) -> Self {
        // SAFETY: the slice is borrowed mutably for the lifetime of the view.
        unsafe { Self::from_raw_parts(data.as_mut_ptr() as u64, Elements(data.len() as u64), layout) }
    }
}

/// The arguments of one launch of a kernel of recipe `R`, in memory space `S`.
pub trait Args<R, S: Space> {
    /// The views, in the order of the recipe's operands.
    fn views(&mut self) -> Vec<AnyView<'_, S>>;

    /// The values of the recipe's run-time scalars, in order.
    fn scalars(&self) -> Vec<f64> {
        Vec::new()
    }
}

/// The arguments of a launch, in the order of the operands, as the `args` of a kernel's module makes them.
#[derive(Debug)]
pub struct Arguments<'a, R, S: Space> {
    views: Vec<AnyView<'a, S>>,
    scalars: Vec<f64>,
    recipe: PhantomData<fn() -> R>,
}

impl<R, S: Space> Default for Arguments<'_, R, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, R, S: Space> Arguments<'a, R, S> {
    /// No arguments yet.
    pub fn new() -> Self {
        Self { views: Vec::new(), scalars: Vec::new(), recipe: PhantomData }
    }

    /// These views and scalars.
    #[cfg(all(feature = "cuda", feature = "ptx"))]
    pub(crate) fn of(views: Vec<AnyView<'a, S>>, scalars: Vec<f64>) -> Self {
        Self { views, scalars, recipe: PhantomData }
    }

    /// The next operand, which is read.
    #[must_use]
    pub fn read<T: Element>(mut self, view: View<'a, T, S>) -> Self {
        self.views.push(view.erase());
        self
    }

    /// The next operand, which is written.
    #[must_use]
    pub fn write<T: Element>(mut self, view: ViewMut<'a, T, S>) -> Self {
        self.views.push(view.into_any());
        self
    }

    /// The next run-time scalar.
    #[must_use]
    pub fn scalar(mut self, value: f64) -> Self {
        self.scalars.push(value);
        self
    }
}

impl<R, S: Space> Args<R, S> for Arguments<'_, R, S> {
    fn views(&mut self) -> Vec<AnyView<'_, S>> {
        self.views.iter_mut().map(AnyView::reborrow).collect()
    }

    fn scalars(&self) -> Vec<f64> {
        self.scalars.clone()
    }
}
