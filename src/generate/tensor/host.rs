//! Tensors in host memory with everything around their elements under guard.

use core::fmt;
use core::mem::MaybeUninit;

use super::guards::{GuardReport, check};
use super::parallel::{self, GRAIN};
use super::scalar::{Scalar, power_of_two, with_scalar};
use super::walk::{InMemory, Walk};
use crate::diagnostic::debug_as_display;
use crate::dtype::{DType, Element};
use crate::units::{Bytes, Elements};
use crate::view::{Access, HostMemory, View, ViewLayout, ViewMut, ViewRef};

/// Guard memory on each side of a tensor.
pub(crate) const REDZONE: Bytes = Bytes(4096);

/// Alignment of a tensor whose offset is 0, as CUDA's allocators give (CUDA C++ Programming Guide, "Device Memory
/// Accesses").
const ALIGN: usize = 256;

/// Where the elements of a tensor lie: shape and strides, `offset` elements past an aligned address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorLayout {
    /// Shape and strides.
    pub layout: ViewLayout,
    /// Elements between an address that is a multiple of 256 bytes and the first element.
    pub offset: Elements,
}

impl TensorLayout {
    /// A matrix `(M,N):(N,1)`.
    pub fn contiguous(rows: u64, cols: u64) -> Self {
        Self::padded(rows, cols, cols)
    }

    /// A matrix `(M,N):(ld,1)`. Extents beyond 2^63 - 1 become that, which [`Tensor::new`] refuses.
    pub fn padded(rows: u64, cols: u64, ld: u64) -> Self {
        let signed = |e: u64| i64::try_from(e).unwrap_or(i64::MAX);
        ViewLayout::matrix([rows, cols].map(signed), signed(ld)).into()
    }

    /// The same, `offset` elements further.
    pub fn at_offset(self, offset: Elements) -> Self {
        Self { offset, ..self }
    }

    /// Elements from the first to one past the last; 0 for a tensor without elements, `None` on overflow.
    fn span(&self) -> Option<u64> {
        self.layout.span()
    }
}

impl From<ViewLayout> for TensorLayout {
    /// At an aligned address.
    fn from(layout: ViewLayout) -> Self {
        Self { layout, offset: Elements(0) }
    }
}

impl fmt::Display for TensorLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout)?;
        if self.offset.0 == 0 { Ok(()) } else { write!(f, " + {}", self.offset.0) }
    }
}

/// Tensors of one operation have different shapes or types.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{left} and {right} are not tensors of one type and shape")]
pub struct ShapeMismatch {
    /// The first.
    pub left: String,
    /// The other.
    pub right: String,
}

debug_as_display!(ShapeMismatch);

fn same_shape(a: &Tensor, b: &Tensor) -> Result<(), ShapeMismatch> {
    if (a.dtype(), a.shape()) == (b.dtype(), b.shape()) {
        return Ok(());
    }
    Err(ShapeMismatch { left: format!("{a:?}"), right: format!("{b:?}") })
}

/// A tensor that cannot be.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// Coordinates share elements without being broadcast.
    #[error(
        "{layout} gives one element two coordinates; strides of 0 (broadcast) or larger than all offsets of the modes \
         inside work, such as {help}"
    )]
    Overlap {
        /// The requested layout.
        layout: ViewLayout,
        /// The same shape, row-major.
        help: String,
    },
    /// Its bytes cannot be counted or had.
    #[error("a tensor {layout} of {dtype} does not fit in memory")]
    TooLarge {
        /// The element type.
        dtype: DType,
        /// The requested layout.
        layout: TensorLayout,
    },
}

debug_as_display!(TensorError);

#[repr(C, align(256))]
#[derive(Clone, Copy)]
struct Line([u8; ALIGN]);

impl Line {
    fn of_canaries(dtype: DType) -> Self {
        let mut line = Self([0; ALIGN]);
        with_scalar!(dtype, T => {
            let canary = T::CANARY.to_le_bytes();
            for element in line.0.chunks_exact_mut(size_of::<T>()) {
                element.copy_from_slice(&canary[..size_of::<T>()]);
                if cfg!(target_endian = "big") {
                    element.reverse();
                }
            }
        });
        line
    }
}

/// As many lines, each of its place, on all cores: memory that is new is mapped where it is touched first, which takes longer than
/// writing it. `None` where there is not so much.
fn lines(count: usize, line: impl Fn(usize) -> Line + Sync) -> Option<Vec<Line>> {
    const LINES: u64 = 4096;
    let mut all = Vec::new();
    all.try_reserve_exact(count).ok()?;
    let room: &mut [MaybeUninit<Line>] = all.spare_capacity_mut().get_mut(..count)?;
    let cut = |part: u64| ((part + 1) * LINES) as usize;
    parallel::slices(room, (count as u64).div_ceil(LINES), cut, |_, first, room| {
        for (place, one) in (first..).zip(room) {
            one.write(line(place));
        }
    });
    // SAFETY: the parts are all of the first `count`, and each line of a part was written.
    unsafe { all.set_len(count) };
    Some(all)
}

/// A tensor in host memory. Redzones of 4 KiB lie on both sides; they and the gaps between its elements hold a pattern that
/// [`Tensor::guards`] checks.
pub struct Tensor {
    dtype: DType,
    layout: TensorLayout,
    /// Elements from the start of the storage to the first element.
    first: usize,
    span: usize,
    lines: Vec<Line>,
}

impl Clone for Tensor {
    fn clone(&self) -> Self {
        let lines = lines(self.lines.len(), |place| self.lines[place]).unwrap_or_else(|| self.lines.clone());
        Self { lines, ..*self }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor {} {}", self.dtype, self.layout)
    }
}

impl Tensor {
    /// A tensor whose elements are all the guard pattern, until it is filled.
    ///
    /// # Errors
    /// Where elements would overlap, or the tensor is larger than the address space or the free memory.
    pub fn new(dtype: DType, layout: impl Into<TensorLayout>) -> Result<Self, TensorError> {
        let layout = layout.into();
        if layout.span() != Some(0) && layout.span().is_some() && !layout.layout.distinct().is_injective() {
            let help = ViewLayout::row_major(layout.layout.shape()).map_or_else(String::new, |l| l.to_string());
            return Err(TensorError::Overlap { layout: layout.layout, help });
        }
        Self::allocate(dtype, layout).ok_or(TensorError::TooLarge { dtype, layout })
    }

    fn allocate(dtype: DType, layout: TensorLayout) -> Option<Self> {
        let item = dtype.bytes().0;
        let span = layout.span()?;
        let first = (REDZONE.0 / item).checked_add(layout.offset.0)?;
        let bytes = first.checked_add(span)?.checked_mul(item)?.checked_add(REDZONE.0)?;
        let count = usize::try_from(bytes.div_ceil(ALIGN as u64)).ok()?;
        let (first, span) = (usize::try_from(first).ok()?, usize::try_from(span).ok()?);
        let canary = Line::of_canaries(dtype);
        Some(Self { dtype, layout, first, span, lines: lines(count, |_| canary)? })
    }

    /// A tensor of these elements, in row-major order of the coordinates. `None` if their number differs from the
    /// shape's, or if they do not fit in memory a second time.
    ///
    /// ```
    /// use cutemplate::verify::Tensor;
    ///
    /// let tensor = Tensor::of(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).expect("four elements");
    /// assert_eq!((tensor.row(1), tensor.to_vec()), (Some(&[3.0_f32, 4.0][..]), Some(vec![1.0_f32, 2.0, 3.0, 4.0])));
    /// assert_eq!(tensor.to_vec::<f64>(), None);
    /// ```
    pub fn of<T: Element>(elements: &[T], shape: &[i64]) -> Option<Self> {
        let layout = ViewLayout::row_major(shape)?;
        (layout.size() == Some(elements.len() as u64)).then_some(())?;
        let mut tensor = Self::new(T::DTYPE, layout).ok()?;
        tensor.span_mut::<T>()?.copy_from_slice(elements);
        Some(tensor)
    }

    /// The elements in row-major order of their coordinates, whatever the strides; `None` where `T` is not the element type.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        let span = self.span::<T>()?;
        Some(self.offsets().map(|offset| span[offset]).collect())
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape, strides and offset.
    pub fn layout(&self) -> TensorLayout {
        self.layout
    }

    /// The extent of each mode.
    pub fn shape(&self) -> &[i64] {
        self.layout.layout.shape()
    }

    /// The number of coordinates.
    pub fn size(&self) -> u64 {
        self.layout.layout.size().unwrap_or(0)
    }

    /// Rows, M, of a matrix; of any tensor, the coordinates of all modes but the last.
    pub fn rows(&self) -> u64 {
        self.size().checked_div(self.cols()).unwrap_or(0)
    }

    /// Columns, N, of a matrix; of any tensor, the extent of the last mode.
    pub fn cols(&self) -> u64 {
        self.shape().last().map_or(0, |e| (*e).max(0) as u64)
    }

    /// All bytes: redzone, elements and gaps, redzone. The address is a multiple of 256.
    pub fn storage(&self) -> &[u8] {
        // SAFETY: `Line` is 256 bytes without padding, and any bytes may be read as u8.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * ALIGN) }
    }

    /// All bytes, writable: a copy of a device's memory goes here.
    pub fn storage_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `storage`; every bit pattern is a valid `Line`.
        unsafe { core::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * ALIGN) }
    }

    /// Bytes from the start of the storage to the first element.
    pub fn start(&self) -> Bytes {
        Bytes(self.first as u64 * self.dtype.bytes().0)
    }

    /// The storage as elements, `None` where `T` is not the element type.
    fn elements<T: Element>(&self) -> Option<&[T]> {
        let bytes = self.storage();
        // SAFETY: the storage is aligned to 256 and its size is a multiple of 256; `Element` allows every bit pattern.
        (T::DTYPE == self.dtype)
            .then(|| unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    fn elements_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let is_own = T::DTYPE == self.dtype;
        let bytes = self.storage_mut();
        // SAFETY: as in `elements`, and the borrow is exclusive.
        is_own.then(|| unsafe {
            core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>())
        })
    }

    /// Offsets of the elements from the first one, in row-major order of their coordinates.
    pub(crate) fn offsets(&self) -> Walk {
        Walk::new(&self.layout.layout)
    }

    /// The elements from the first to the last, gaps included; `None` where `T` is not the element type.
    pub(crate) fn span<T: Element>(&self) -> Option<&[T]> {
        self.elements()?.get(self.first..self.first + self.span)
    }

    /// The same, writable.
    pub(crate) fn span_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        let range = self.first..self.first + self.span;
        self.elements_mut()?.get_mut(range)
    }

    fn row_range(&self, row: u64) -> Option<core::ops::Range<usize>> {
        let (shape, stride) = (self.shape(), self.layout.layout.stride());
        // Contiguous, or of one element.
        (row < self.rows() && (stride.last() == Some(&1) || shape.last() == Some(&1))).then_some(())?;
        let mut rest = row as i64;
        let outer = shape.iter().zip(stride).rev().skip(1);
        let start = outer.fold(0, |at, (extent, stride)| {
            let c = rest % extent;
            rest /= extent;
            at + c * stride
        });
        // Within `span`, which fits in usize.
        let start = self.first + start as usize;
        Some(start..start + self.cols() as usize)
    }

    /// The elements of a row of a matrix, without its gap: of any tensor, the elements along the last mode at the
    /// row-major index `row` of the other modes. `None` if the last mode is not contiguous, `T` is not the element type
    /// or the row does not exist.
    pub fn row<T: Element>(&self, row: u64) -> Option<&[T]> {
        let range = self.row_range(row)?;
        self.elements()?.get(range)
    }

    /// The same, writable.
    pub fn row_mut<T: Element>(&mut self, row: u64) -> Option<&mut [T]> {
        let range = self.row_range(row)?;
        self.elements_mut()?.get_mut(range)
    }

    /// The bits of the element at a coordinate, zero-extended.
    pub fn bits_at(&self, coordinate: &[u64]) -> Option<u64> {
        let (shape, stride) = (self.shape(), self.layout.layout.stride());
        (coordinate.len() == shape.len()).then_some(())?;
        let mut at = 0_usize;
        for ((c, extent), stride) in coordinate.iter().zip(shape).zip(stride) {
            (*c < *extent as u64).then_some(())?;
            at += *c as usize * *stride as usize;
        }
        with_scalar!(self.dtype, T => self.span::<T>()?.get(at).map(|v| v.bits()))
    }

    /// The bits of element (row,col) of a matrix, zero-extended.
    pub fn bits(&self, row: u64, col: u64) -> Option<u64> {
        self.bits_at(&[row, col])
    }

    /// Takes over the elements of a tensor of the same type and shape, whatever its strides.
    ///
    /// # Errors
    /// Where type or shape differ.
    pub fn copy_elements_from(&mut self, other: &Tensor) -> Result<(), ShapeMismatch> {
        same_shape(self, other)?;
        let offsets = self.offsets().zip(other.offsets());
        with_scalar!(self.dtype, T => if let (Some(to), Some(from)) = (self.span_mut::<T>(), other.span::<T>()) {
            for (t, f) in offsets {
                to[t] = from[f];
            }
        });
        Ok(())
    }

    /// The same elements in f16, each the nearest, with the same strides.
    ///
    /// # Errors
    /// As [`Tensor::new`].
    ///
    /// ```
    /// use cutemplate::dtype::E4m3;
    /// use cutemplate::verify::Tensor;
    /// use half::f16;
    ///
    /// let narrow = Tensor::of(&[E4m3(0x38), E4m3(0x7e)], &[2]).expect("two elements");
    /// assert_eq!(narrow.to_f16()?.to_vec::<f16>(), Some(vec![f16::ONE, f16::from_f32(448.0)]));
    /// # Ok::<(), cutemplate::verify::TensorError>(())
    /// ```
    pub fn to_f16(&self) -> Result<Tensor, TensorError> {
        let mut wide = Tensor::new(DType::F16, self.layout())?;
        with_scalar!(self.dtype, T => if let (Some(to), Some(from)) = (wide.span_mut::<half::f16>(), self.span::<T>()) {
            for at in self.offsets() {
                to[at] = half::f16::nearest(from[at].value());
            }
        });
        Ok(wide)
    }

    /// The same elements in f32, with the same strides, each times the scale of its block, which has so many coordinates along each mode.
    ///
    /// # Errors
    /// As [`Tensor::new`].
    ///
    /// ```
    /// use cutemplate::dtype::E4m3;
    /// use cutemplate::verify::Tensor;
    ///
    /// // (2,3) of 1, and scales (2,2) for blocks of (1,2).
    /// let ones = Tensor::of(&[E4m3(0x38); 6], &[2, 3]).expect("six elements");
    /// let scales = Tensor::of(&[2.0_f32, 3.0, 4.0, 5.0], &[2, 2]).expect("four elements");
    /// assert_eq!(ones.scaled(&scales, &[1, 2])?.to_vec::<f32>(), Some(vec![2.0, 2.0, 3.0, 4.0, 4.0, 5.0]));
    /// # Ok::<(), cutemplate::verify::TensorError>(())
    /// ```
    pub fn scaled(&self, scales: &Tensor, block: &[i64]) -> Result<Tensor, TensorError> {
        let mut wide = Tensor::new(DType::F32, self.layout())?;
        let (shape, strides) = (self.shape(), scales.layout().layout);
        let mut crd = vec![0_i64; shape.len()];
        with_scalar!(self.dtype, T => if let (Some(to), Some(from)) = (wide.span_mut::<f32>(), self.span::<T>()) {
            for at in self.offsets() {
                let blocks = crd.iter().zip(block.iter().chain(core::iter::repeat(&1)));
                let scale: i64 = blocks.zip(strides.stride()).map(|((c, block), stride)| c / block * stride).sum();
                let scale = usize::try_from(scale).ok().and_then(|at| match scales.dtype() {
                    DType::U8 => Some(power_of_two(*scales.span::<u8>()?.get(at)?)),
                    _ => scales.span::<f32>()?.get(at).copied(),
                });
                to[at] = from[at].value() as f32 * scale.unwrap_or(f32::NAN);
                for mode in (0..crd.len()).rev() {
                    crd[mode] += 1;
                    if crd[mode] < shape[mode] {
                        break;
                    }
                    crd[mode] = 0;
                }
            }
        });
        Ok(wide)
    }

    /// Fills the elements with a mark: a NaN that [`check`](crate::verify::check) recognises as never written. Types
    /// without NaN payloads have no such mark: see [`fill_unwritten`](crate::verify::fill_unwritten).
    pub fn fill_unwritten(&mut self) {
        with_scalar!(self.dtype, T => self.set_each::<T>(|_| T::of_bits(T::UNWRITTEN)));
    }

    /// Sets each element to the value of the row-major index of its coordinate, on all cores. A broadcast element takes
    /// the value of its last coordinate. Nothing changes if `T` is not the element type.
    pub(crate) fn set_each<T: Element>(&mut self, value: impl Fn(u64) -> T + Sync) {
        let all = InMemory::new(&self.layout.layout);
        let from = |part: u64| all.clone().starting_at(part * GRAIN);
        let Some(span) = self.span_mut::<T>() else { return };
        let end = span.len();
        let cut = |part: u64| from(part + 1).next().map_or(end, |(offset, _)| offset);
        parallel::slices(span, all.left().div_ceil(GRAIN), cut, |part, first, elements| {
            for (offset, index) in from(part).take(GRAIN as usize) {
                elements[offset - first] = value(index);
            }
        });
    }

    /// The tensor as a kernel's argument, without its types. The span is all that may be touched.
    pub fn raw(&self, access: Access) -> ViewRef {
        ViewRef {
            dtype: self.dtype,
            ptr: self.storage().as_ptr() as u64 + self.start().0,
            available: Elements(self.span as u64),
            layout: self.layout.layout,
            access,
        }
    }

    /// A view for a kernel that reads; `None` where `T` is not the element type.
    pub fn view<T: Element>(&self) -> Option<View<'_, T, HostMemory>> {
        Some(View::host_strided(self.span()?, self.layout.layout))
    }

    /// A view for a kernel that writes; `None` where `T` is not the element type.
    pub fn view_mut<T: Element>(&mut self) -> Option<ViewMut<'_, T, HostMemory>> {
        let layout = self.layout.layout;
        Some(ViewMut::host_strided(self.span_mut()?, layout))
    }

    /// Checks the redzones and the gaps between elements.
    pub fn guards(&self) -> GuardReport {
        with_scalar!(self.dtype, T => match self.elements::<T>() {
            Some(all) => check(all, self.first..self.first + self.span, &InMemory::new(&self.layout.layout)),
            None => GuardReport::default(),
        })
    }
}
