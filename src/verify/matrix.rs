//! Matrices in host memory with everything around their elements under guard.

use core::fmt;

use crate::dtype::{DType, Element};
use crate::units::{Bytes, Elements};
use crate::verify::reference::{ShapeMismatch, same_shape};
use crate::verify::scalar::{Scalar, with_scalar};
use crate::view::{Access, Host, View, ViewMut, ViewRef};

/// Guard memory on each side of a matrix.
pub(crate) const REDZONE: Bytes = Bytes(4096);

/// Alignment of a matrix whose offset is 0, that of CUDA's allocators (CUDA C++ Programming Guide, "Device Memory
/// Accesses").
const ALIGN: usize = 256;

/// Where the elements of a row-major matrix lie: `(M,N):(ld,1)`, `offset` elements past an aligned address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    /// Rows, M.
    pub rows: u64,
    /// Columns, N.
    pub cols: u64,
    /// Elements from one row to the next.
    pub ld: u64,
    /// Elements between an address that is a multiple of 256 bytes and element (0,0).
    pub offset: Elements,
}

impl MatrixLayout {
    /// `(M,N):(N,1)`.
    pub fn contiguous(rows: u64, cols: u64) -> Self {
        Self::padded(rows, cols, cols)
    }

    /// `(M,N):(ld,1)`.
    pub fn padded(rows: u64, cols: u64, ld: u64) -> Self {
        Self { rows, cols, ld, offset: Elements(0) }
    }

    /// The same, `offset` elements further.
    pub fn at_offset(self, offset: Elements) -> Self {
        Self { offset, ..self }
    }

    /// Elements from the first to one past the last, `(M-1)*ld + N`; 0 for a matrix without elements, `None` on overflow.
    fn span(&self) -> Option<u64> {
        match self.rows.min(self.cols) {
            0 => Some(0),
            _ => (self.rows - 1).checked_mul(self.ld)?.checked_add(self.cols),
        }
    }
}

impl fmt::Display for MatrixLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{}):({},1)", self.rows, self.cols, self.ld)?;
        if self.offset.0 == 0 { Ok(()) } else { write!(f, " + {}", self.offset.0) }
    }
}

/// A matrix that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// Rows overlap.
    #[error("leading dimension {ld} is smaller than a row of {cols}; a contiguous matrix has {cols}")]
    LeadingDimension {
        /// What was asked for.
        ld: u64,
        /// The smallest that works.
        cols: u64,
    },
    /// Its bytes cannot be counted or had.
    #[error("a {dtype} matrix {layout} does not fit in memory")]
    TooLarge {
        /// The element type.
        dtype: DType,
        /// What was asked for.
        layout: MatrixLayout,
    },
}

#[repr(C, align(256))]
#[derive(Clone, Copy)]
struct Line([u8; ALIGN]);

/// A row-major matrix in host memory. Redzones of 4 KiB lie on both sides; they and the gaps between rows hold a pattern
/// that [`Matrix::guards`] checks.
#[derive(Clone)]
pub struct Matrix {
    dtype: DType,
    layout: MatrixLayout,
    /// Elements from the start of the storage to element (0,0).
    first: usize,
    span: usize,
    lines: Vec<Line>,
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix {} {}", self.dtype, self.layout)
    }
}

impl Matrix {
    /// A matrix whose elements are all the guard pattern, until it is filled.
    ///
    /// # Errors
    /// Where rows would overlap, or the matrix is larger than the address space or the free memory.
    pub fn new(dtype: DType, layout: MatrixLayout) -> Result<Self, MatrixError> {
        if layout.ld < layout.cols {
            return Err(MatrixError::LeadingDimension { ld: layout.ld, cols: layout.cols });
        }
        Self::allocate(dtype, layout).ok_or(MatrixError::TooLarge { dtype, layout })
    }

    fn allocate(dtype: DType, layout: MatrixLayout) -> Option<Self> {
        // Views count in i64.
        i64::try_from(layout.rows.max(layout.ld)).ok()?;
        let item = dtype.bytes().0;
        let span = layout.span()?;
        let first = (REDZONE.0 / item).checked_add(layout.offset.0)?;
        let bytes = first.checked_add(span)?.checked_mul(item)?.checked_add(REDZONE.0)?;
        let count = usize::try_from(bytes.div_ceil(ALIGN as u64)).ok()?;
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line([0; ALIGN]));
        let (first, span) = (usize::try_from(first).ok()?, usize::try_from(span).ok()?);
        let mut matrix = Self { dtype, layout, first, span, lines };
        with_scalar!(dtype, T => matrix.elements_mut::<T>()?.fill(T::of_bits(T::CANARY)));
        Some(matrix)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape, stride and offset.
    pub fn layout(&self) -> MatrixLayout {
        self.layout
    }

    /// Rows, M.
    pub fn rows(&self) -> u64 {
        self.layout.rows
    }

    /// Columns, N.
    pub fn cols(&self) -> u64 {
        self.layout.cols
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

    /// Bytes from the start of the storage to element (0,0).
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

    fn row_range(&self, row: u64) -> Option<core::ops::Range<usize>> {
        // Within `span`, which fits in usize.
        let start = (row < self.layout.rows).then(|| self.first + row as usize * self.layout.ld as usize)?;
        Some(start..start + self.layout.cols as usize)
    }

    /// Row `row` without its gap; `None` where `T` is not the element type or there is no such row.
    pub fn row<T: Element>(&self, row: u64) -> Option<&[T]> {
        let range = self.row_range(row)?;
        self.elements()?.get(range)
    }

    /// Row `row` without its gap, writable.
    pub fn row_mut<T: Element>(&mut self, row: u64) -> Option<&mut [T]> {
        let range = self.row_range(row)?;
        self.elements_mut()?.get_mut(range)
    }

    /// The bits of element (row,col), zero-extended.
    pub fn bits(&self, row: u64, col: u64) -> Option<u32> {
        let col = usize::try_from(col).ok()?;
        with_scalar!(self.dtype, T => self.row::<T>(row)?.get(col).map(|v| v.bits()))
    }

    /// Takes over the elements of a matrix of the same type and shape, whatever its leading dimension.
    ///
    /// # Errors
    /// Where type or shape differ.
    pub fn copy_elements_from(&mut self, other: &Matrix) -> Result<(), ShapeMismatch> {
        same_shape(self, other)?;
        with_scalar!(self.dtype, T => for i in 0..self.layout.rows {
            if let (Some(to), Some(from)) = (self.row_mut::<T>(i), other.row::<T>(i)) {
                to.copy_from_slice(from);
            }
        });
        Ok(())
    }

    /// Fills the elements with a marked NaN that [`compare`](crate::verify::compare) recognises as never written.
    pub fn fill_unwritten(&mut self) {
        with_scalar!(self.dtype, T => for row in 0..self.layout.rows {
            if let Some(row) = self.row_mut::<T>(row) {
                row.fill(T::of_bits(T::UNWRITTEN));
            }
        });
    }

    /// The matrix as a kernel's argument, without its types. The span is all that may be touched.
    pub fn raw(&self, access: Access) -> ViewRef {
        ViewRef {
            dtype: self.dtype,
            ptr: self.storage().as_ptr() as u64 + self.start().0,
            available: Elements(self.span as u64),
            rows: self.layout.rows as i64,
            cols: self.layout.cols as i64,
            ld: self.layout.ld as i64,
            access,
        }
    }

    /// A view for a kernel that reads; `None` where `T` is not the element type.
    pub fn view<T: Element>(&self) -> Option<View<'_, T, Host>> {
        let data = self.elements()?.get(self.first..self.first + self.span)?;
        Some(View::host(data, [self.layout.rows as i64, self.layout.cols as i64], self.layout.ld as i64))
    }

    /// A view for a kernel that writes; `None` where `T` is not the element type.
    pub fn view_mut<T: Element>(&mut self) -> Option<ViewMut<'_, T, Host>> {
        let (layout, first, span) = (self.layout, self.first, self.span);
        let data = self.elements_mut()?.get_mut(first..first + span)?;
        Some(ViewMut::host(data, [layout.rows as i64, layout.cols as i64], layout.ld as i64))
    }

    /// Checks the redzones and the gaps between rows.
    pub fn guards(&self) -> GuardReport {
        let mut report = GuardReport::default();
        with_scalar!(self.dtype, T => if let Some(all) = self.elements::<T>() {
            self.check_guards(all, &mut report);
        });
        report
    }

    fn check_guards<T: Scalar>(&self, all: &[T], report: &mut GuardReport) {
        let mut check = |range: core::ops::Range<usize>, place: &dyn Fn(usize) -> Place| {
            for at in range {
                let found = all[at].bits();
                if found != T::CANARY {
                    report.push(GuardViolation { place: place(at), found, dtype: self.dtype.name() });
                }
            }
        };
        let (first, end, ld) = (self.first, self.first + self.span, self.layout.ld as usize);
        check(0..first, &|at| Place::Before((first - at) as u64));
        for row in 0..self.layout.rows.saturating_sub(1) {
            let start = first + row as usize * ld;
            check(start + self.layout.cols as usize..start + ld, &|at| Place::Gap { row, col: (at - start) as u64 });
        }
        check(end..all.len(), &|at| Place::After((at - end) as u64 + 1));
    }
}

/// Where a guard lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// So many elements before element (0,0).
    Before(u64),
    /// Between the end of a row and the start of the next.
    Gap {
        /// The row.
        row: u64,
        /// The column that the element would have, not smaller than N.
        col: u64,
    },
    /// So many elements past the last one.
    After(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Before(n) => write!(f, "{n} before (0,0)"),
            Place::Gap { row, col } => write!(f, "({row},{col}), in the gap after row {row}"),
            Place::After(n) => write!(f, "{n} past the last element"),
        }
    }
}

/// A guard that no longer holds its pattern: something was written there.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GuardViolation {
    /// Where.
    pub place: Place,
    /// The bits found.
    pub found: u32,
    /// The element type.
    pub dtype: &'static str,
}

impl fmt::Display for GuardViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "written at {}: bits {:#x}", self.place, self.found)
    }
}

/// What the guards of a matrix say.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GuardReport {
    /// How many elements outside the matrix were written.
    pub violations: u64,
    /// The first of them, in address order.
    pub first: Vec<GuardViolation>,
}

impl GuardReport {
    /// How many violations are kept.
    const KEPT: usize = 8;

    fn push(&mut self, violation: GuardViolation) {
        self.violations += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(violation);
        }
    }

    /// Whether nothing was written outside the matrix.
    pub fn hold(&self) -> bool {
        self.violations == 0
    }
}
