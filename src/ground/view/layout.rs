//! Shape and strides of a tensor in memory.

use core::fmt;

/// The most modes that a tensor of a kernel has.
pub const MAX_RANK: usize = 5;

/// Shape and strides of a tensor in memory, `(M,N):(ld,1)` for a row-major matrix: rank 1 to 5, strides in elements, 0 for
/// a mode along which one element stands for all.
///
/// Extents and strides are signed and unchecked here, so that a bad one reaches the check that names it.
///
/// ```
/// use cutemplate::view::ViewLayout;
///
/// let transposed = ViewLayout::strided(&[128, 64], &[1, 128]).unwrap();
/// assert_eq!(transposed.to_string(), "(128,64):(1,128)");
/// assert_eq!(transposed.span(), Some(128 * 64));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewLayout {
    rank: u8,
    shape: [i64; MAX_RANK],
    stride: [i64; MAX_RANK],
}

impl ViewLayout {
    /// A row-major matrix `(rows,cols):(ld,1)`.
    pub const fn matrix([rows, cols]: [i64; 2], ld: i64) -> Self {
        Self { rank: 2, shape: [rows, cols, 1, 1, 1], stride: [ld, 1, 0, 0, 0] }
    }

    /// One extent and one stride for each mode; `None` where their numbers differ or are not 1 to 5.
    pub fn strided(shape: &[i64], stride: &[i64]) -> Option<Self> {
        if shape.len() != stride.len() || !(1..=MAX_RANK).contains(&shape.len()) {
            return None;
        }
        let mut layout = Self { rank: shape.len() as u8, shape: [1; MAX_RANK], stride: [0; MAX_RANK] };
        layout.shape[..shape.len()].copy_from_slice(shape);
        layout.stride[..stride.len()].copy_from_slice(stride);
        Some(layout)
    }

    /// `len` elements, one after the other: `len:1`.
    ///
    /// ```
    /// use cutemplate::view::ViewLayout;
    ///
    /// let vector = ViewLayout::vector(64);
    /// assert_eq!(vector.row(128).to_string(), "(128,64):(0,1)");
    /// assert_eq!(vector.column(128).to_string(), "(64,128):(1,0)");
    /// assert_eq!(vector.row(128).transposed(), vector.column(128));
    /// // One row of biases for all rows of all 8 matrices of a batch.
    /// assert_eq!(vector.row(128).column(8).to_string(), "(128,64,8):(0,1,0)");
    /// ```
    pub const fn vector(len: i64) -> Self {
        Self { rank: 1, shape: [len, 1, 1, 1, 1], stride: [1, 0, 0, 0, 0] }
    }

    /// The same for each of `rows`: a first mode of stride 0. Of rank 5 it stays as it is.
    #[must_use]
    pub fn row(self, rows: i64) -> Self {
        let (shape, stride) = (self.shape(), self.stride());
        Self::strided(&[&[rows], shape].concat(), &[&[0], stride].concat()).unwrap_or(self)
    }

    /// The same for each of `columns`: a last mode of stride 0. Of rank 5 it stays as it is.
    #[must_use]
    pub fn column(self, columns: i64) -> Self {
        let (shape, stride) = (self.shape(), self.stride());
        Self::strided(&[shape, &[columns]].concat(), &[stride, &[0]].concat()).unwrap_or(self)
    }

    /// The first two modes exchanged. Of rank 1 it stays as it is.
    #[must_use]
    pub fn transposed(mut self) -> Self {
        if self.rank > 1 {
            self.shape.swap(0, 1);
            self.stride.swap(0, 1);
        }
        self
    }

    /// Row-major and without gaps: the last mode is contiguous. `None` where the rank is not 1 to 5 or a stride overflows.
    pub fn row_major(shape: &[i64]) -> Option<Self> {
        let mut stride = vec![1_i64; shape.len()];
        for i in (1..shape.len()).rev() {
            stride[i - 1] = stride[i].checked_mul(shape[i])?;
        }
        Self::strided(shape, &stride)
    }

    /// The number of modes.
    pub fn rank(&self) -> usize {
        self.rank.into()
    }

    /// The extent of each mode.
    pub fn shape(&self) -> &[i64] {
        &self.shape[..self.rank()]
    }

    /// The stride of each mode, in elements.
    pub fn stride(&self) -> &[i64] {
        &self.stride[..self.rank()]
    }

    /// The number of coordinates; `None` where an extent is negative or the product overflows.
    pub fn size(&self) -> Option<u64> {
        let extents = || self.shape().iter().map(|&e| u64::try_from(e).ok());
        // An extent of 0 makes it 0, whatever the others would overflow to.
        if extents().all(|e| e.is_some()) && extents().any(|e| e == Some(0)) {
            return Some(0);
        }
        extents().try_fold(1_u64, |n, e| n.checked_mul(e?))
    }

    /// Elements from the first to one past the last, `1 + sum((extent-1)*stride)`; 0 without elements. `None` if that
    /// overflows, or an extent or a stride is negative.
    pub fn span(&self) -> Option<u64> {
        if self.size() == Some(0) {
            return Some(0);
        }
        let last = self.shape().iter().zip(self.stride()).try_fold(0_i64, |at, (&extent, &stride)| {
            (extent > 0 && stride >= 0).then_some(())?;
            at.checked_add((extent - 1).checked_mul(stride)?)
        })?;
        u64::try_from(last.checked_add(1)?).ok()
    }

    /// The same without broadcasts: modes of stride 0 have one coordinate.
    pub fn distinct(&self) -> Self {
        let mut layout = *self;
        for (extent, stride) in layout.shape.iter_mut().zip(&self.stride) {
            if *stride == 0 {
                *extent = (*extent).min(1);
            }
        }
        layout
    }

    /// The modes with more than one element, the largest stride first.
    pub fn by_stride(&self) -> Vec<usize> {
        let mut modes: Vec<usize> = (0..self.rank()).filter(|i| self.shape[*i] > 1 && self.stride[*i] != 0).collect();
        modes.sort_by_key(|i| (core::cmp::Reverse(self.stride[*i]), *i));
        modes
    }

    /// Whether no two coordinates share an element: with the modes in the order of their strides, each stride is larger
    /// than all offsets of the modes before it. Sufficient for every layout, and necessary where each stride is a multiple
    /// of the one before, as in slices of compact tensors.
    pub fn is_injective(&self) -> bool {
        let mut modes: Vec<(i64, i64)> =
            self.stride().iter().copied().zip(self.shape().iter().copied()).filter(|(_, e)| *e > 1).collect();
        modes.sort_unstable();
        let mut reach = 0_i64;
        modes.into_iter().all(|(stride, extent)| {
            let clear = stride > reach;
            reach = stride.checked_mul(extent - 1).and_then(|r| r.checked_add(reach)).unwrap_or(i64::MAX);
            clear
        })
    }
}

impl fmt::Display for ViewLayout {
    /// In CuTe notation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |modes: &[i64]| modes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        match (self.shape(), self.stride()) {
            ([extent], [stride]) => write!(f, "{extent}:{stride}"),
            (shape, stride) => write!(f, "({}):({})", list(shape), list(stride)),
        }
    }
}

impl fmt::Debug for ViewLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
