//! Tensors in shared memory.

use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, LayoutError, Swizzle, take};
use crate::units::Bytes;

/// A tensor in shared memory: `swizzle o layout`, a tile for each stage.
#[derive(Clone, Debug, PartialEq)]
pub struct SmemTensor {
    /// Its name in the text, without the `s`: `A` for `sA` and `SmemA`.
    pub name: &'static str,
    /// Its modes in the text's words: `(BM,BK,STAGES)`.
    pub modes: &'static str,
    /// Its element type.
    pub dtype: DType,
    /// What exchanges its elements, in elements.
    pub swizzle: Option<Swizzle>,
    /// (rows, columns, stages) to elements, before the swizzle.
    pub layout: Layout,
    /// What the address of its first element is a multiple of.
    pub align: Bytes,
    /// Who finds its elements: threads, which compute their addresses, or the asynchronous proxy, which reads the swizzle off the
    /// bits of an address and is told it with the type of the pointer.
    pub proxy: Proxy,
    /// While it is used.
    pub lives: Lives,
}

impl SmemTensor {
    /// One whose memory is its own, and whose elements threads find by its layout.
    pub fn plain([name, modes]: [&'static str; 2], dtype: DType, layout: Layout, align: Bytes) -> Self {
        Self { name, modes, dtype, swizzle: None, layout, align, proxy: Proxy::Generic, lives: Lives::Kernel }
    }
}

/// While a tensor in shared memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// All the time: its memory is its own.
    Kernel,
    /// While k-tiles are multiplied.
    Mainloop,
    /// Behind the last k-tile: it lies where tensors of the mainloop do.
    Epilogue,
}

/// Who accesses a tensor in shared memory (PTX ISA, "Proxies").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Threads, by ordinary loads and stores, `cp.async` and `ldmatrix`.
    Generic,
    /// TMA and WGMMA.
    Async,
}

/// Elements of the pieces that the contiguous mode can be cut into: a swizzle of 128, 64 or 32 bytes.
pub(crate) fn pieces(extent: i64, size: i64) -> impl Iterator<Item = i64> {
    [128, 64, 32].into_iter().map(move |span| span / size).filter(move |piece| extent % piece == 0)
}

/// The longest of them.
pub(crate) fn piece(extent: i64, size: i64) -> i64 {
    pieces(extent, size).next().unwrap_or(extent)
}

impl SmemTensor {
    /// A tile for each stage, (rows, columns, stages), in pieces as long as a swizzle spans, one behind the other; chunks of 16 bytes are
    /// exchanged within a piece's length, so that 8 pieces' chunks lie in 8 different groups of banks. It lives all the time.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::tiling::{Proxy, SmemTensor};
    ///
    /// let keys = SmemTensor::in_pieces(["K", "(BN,D,STAGES)"], DType::F16, [128, 96, 2], 1, Proxy::Async)?;
    /// assert_eq!(keys.layout.to_string(), "(128,(32,3),2):(32,(1,4096),12288)");
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// It does not fit in 64 bits, or its rows have no swizzle.
    pub fn in_pieces(
        [name, modes]: [&'static str; 2],
        dtype: DType,
        [rows, columns, stages]: [i64; 3],
        contiguous: usize,
        proxy: Proxy,
    ) -> Result<Self, LayoutError> {
        let size = dtype.bytes().0 as i64;
        let vector = 16 / size;
        let (along, across) = if contiguous == 1 { (columns, rows) } else { (rows, columns) };
        let span = piece(along, size);
        let swizzle = Swizzle::new(i64::from((span / vector).max(1).ilog2()), vector.ilog2().into(), 3)?;
        let pair = |pair: [i64; 2]| IntTuple::tuple(pair.map(IntTuple::int));
        let lines = match along {
            _ if along == span => Layout::mode_of(along, 1)?,
            _ => Layout::new(pair([span, along / span])?, pair([1, span * across])?)?,
        };
        let others = Layout::mode_of(across, span)?;
        let [first, second] = if contiguous == 1 { [others, lines] } else { [lines, others] };
        let layout = Layout::from_modes([first, second, Layout::mode_of(stages, rows * columns)?])?;
        let block = Bytes(swizzle.block() as u64 * dtype.bytes().0);
        let align = if proxy == Proxy::Async { block.max(Bytes(128)) } else { Bytes(128) };
        Ok(Self { name, modes, dtype, swizzle: Some(swizzle), layout, align, proxy, lives: Lives::Kernel })
    }

    /// Rows, columns and stages.
    pub fn extents(&self) -> [i64; 3] {
        [0, 1, 2].map(|mode| self.layout.mode(mode).map_or(1, |mode| mode.size()))
    }

    /// The element, counted from the first, at which a coordinate lies.
    ///
    /// # Errors
    /// The coordinate is not one of the layout.
    pub fn at(&self, [row, column, stage]: [i64; 3]) -> Result<i64, LayoutError> {
        let [rows, columns, _] = self.extents();
        self.at_index(row + rows * (column + columns * stage))
    }

    /// The same for the coordinate of that number, rows first.
    ///
    /// # Errors
    /// As [`SmemTensor::at`].
    pub fn at_index(&self, index: i64) -> Result<i64, LayoutError> {
        let offset = self.layout.at(index)?;
        Ok(self.swizzle.map_or(offset, |swizzle| swizzle.apply(offset)))
    }

    /// The mode whose neighbours are neighbours in memory: 0 for rows, 1 for columns.
    pub fn contiguous(&self) -> usize {
        usize::from(self.layout.mode(0).and_then(|rows| rows.at(1).ok()) != Some(1))
    }

    /// The memory of all stages.
    ///
    /// # Errors
    /// It does not fit in 64 bits.
    pub fn bytes(&self) -> Result<Bytes, LayoutError> {
        Ok(Bytes(self.layout.cosize()?.max(0) as u64 * self.dtype.bytes().0))
    }

    /// One stage: (rows, columns) to elements, before the swizzle.
    pub fn stage(&self) -> Layout {
        take(&self.layout, 0, 2).unwrap_or_else(|_| self.layout.clone())
    }

    /// The bytes of one stage's elements.
    pub fn stage_bytes(&self) -> Bytes {
        let [rows, columns, _] = self.extents();
        Bytes((rows * columns) as u64 * self.dtype.bytes().0)
    }
}
