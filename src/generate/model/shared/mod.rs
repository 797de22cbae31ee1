//! Tensors in shared memory, as a kernel's threads use them: which accesses meet in a bank, and which layout would do better.

mod access;
mod conflict;
mod digits;
mod error;
mod report;
mod search;
mod sums;

pub use access::WarpAccess;
pub use conflict::Conflict;
#[cfg(feature = "draw")]
pub(crate) use conflict::lane_ranges;
pub(crate) use digits::apart;
pub use error::SharedError;
pub use report::{AccessReport, SharedAnalysis};
pub use search::Proposal;
pub(crate) use sums::{Source, Sums};

use crate::layout::{Layout, Swizzle};
use crate::units::{Bytes, Elements};

/// A tensor in shared memory, with the accesses of a block's threads.
///
/// ```
/// use cutemplate::model::{SharedOp, SharedTensor, WarpAccess};
/// use cutemplate::units::Bytes;
///
/// // 32 x 32 floats, row-major, written row by row and read column by column by one warp.
/// let index = |m: i64, n: i64| Some(m + 32 * n);
/// let tile = SharedTensor::new("sA", Bytes(4), "(32,32):(32,1)".parse()?)?
///     .with_access(WarpAccess::new("store of a row", SharedOp::Store, Bytes(4), 32, 32, |t, k| index(k, t)))
///     .with_access(WarpAccess::new("load of a column", SharedOp::Load, Bytes(4), 32, 32, |t, k| index(t, k)));
/// let found = tile.analyze()?;
/// assert_eq!((found.accesses[0].worst, found.accesses[1].worst), (1, 32));
///
/// // Of all swizzles, then of all paddings: the first is as small as the tile and free of conflicts.
/// let best = &tile.proposals(2)?[0];
/// assert_eq!((best.to_string(), best.extra), ("Sw<5,0,5>".to_owned(), 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedTensor {
    name: String,
    element: Bytes,
    layout: Layout,
    swizzle: Option<Swizzle>,
    /// From one stage to the next, where there are several.
    stage: Option<Elements>,
    /// The declared alignment of its address, if that is not its widest access.
    declared: Option<Bytes>,
    accesses: Vec<WarpAccess>,
}

impl SharedTensor {
    /// A tensor with elements of 1, 2, 4, 8 or 16 bytes and a layout of integers: `(BM,BK):(1,BM)`.
    ///
    /// # Errors
    /// Another size of an element; a layout with strides that are not integers, or with indices below 0.
    pub fn new(name: &str, element: Bytes, layout: Layout) -> Result<Self, SharedError> {
        if !element.0.is_power_of_two() || element.0 > 16 {
            return Err(error::element(name, element));
        }
        let least = layout.stride().ints().map(|strides| strides.into_iter().min().unwrap_or(0));
        if least.is_none_or(|stride| stride < 0) || layout.cosize().is_err() {
            return Err(error::layout(name, &layout));
        }
        Ok(Self {
            name: name.to_owned(),
            element,
            layout,
            swizzle: None,
            stage: None,
            declared: None,
            accesses: Vec::new(),
        })
    }

    /// The same tensor, its indices swizzled.
    ///
    /// # Errors
    /// The swizzle does not permute the elements of the tensor: its block does not divide their number.
    pub fn with_swizzle(mut self, swizzle: Swizzle) -> Result<Self, SharedError> {
        if self.elements().0 as i64 % swizzle.block() != 0 {
            return Err(error::swizzle(&self.name, swizzle, self.elements()));
        }
        self.swizzle = Some(swizzle).filter(|swizzle| swizzle.bits() > 0);
        Ok(self)
    }

    /// The same tensor, one of several stages that lie so far apart.
    #[must_use]
    pub fn with_stages(mut self, apart: Elements) -> Self {
        self.stage = Some(apart);
        self
    }

    /// The same tensor, its address declared to be a multiple of so much: of the widest access in the text, from which a compiler
    /// may make wider ones.
    #[must_use]
    pub fn with_alignment(mut self, declared: Bytes) -> Self {
        self.declared = Some(declared);
        self
    }

    /// The same tensor, with a further access.
    #[must_use]
    pub fn with_access(mut self, access: WarpAccess) -> Self {
        self.accesses.push(access);
        self
    }

    /// Its name in the emitted text: `sA`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its layout, before the swizzle.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The swizzle of its elements, if any.
    pub fn swizzle(&self) -> Option<Swizzle> {
        self.swizzle
    }

    /// Its accesses.
    pub fn accesses(&self) -> &[WarpAccess] {
        &self.accesses
    }

    /// The elements that it takes, gaps included.
    pub fn elements(&self) -> Elements {
        Elements(self.layout.cosize().map_or(0, |cosize| cosize.max(0) as u64))
    }

    /// The memory that it takes.
    pub fn memory(&self) -> Bytes {
        Bytes(self.elements().0 * self.element.0)
    }

    /// The alignment of its address: the declared one, or its widest access, and at least an element.
    /// [`SharedTensor::analyze`] checks that every access of every stage is aligned if the address is.
    ///
    /// ```
    /// use cutemplate::model::{SharedOp, SharedTensor, WarpAccess};
    /// use cutemplate::units::Bytes;
    /// let tile = SharedTensor::new("sA", Bytes(4), "(64,8):(1,68)".parse()?)?
    ///     .with_access(WarpAccess::new("store", SharedOp::Store, Bytes(4), 32, 16, |t, k| Some(t + 32 * k)))
    ///     .with_access(WarpAccess::new("load", SharedOp::Load, Bytes(16), 16, 8, |t, k| Some(4 * t + 64 * k)));
    /// assert_eq!(tile.alignment(), Bytes(16));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alignment(&self) -> Bytes {
        let widest = || self.accesses.iter().map(WarpAccess::bytes).max();
        self.declared.or_else(widest).map_or(self.element, |bytes| bytes.max(self.element))
    }

    /// The layout as CuTe prints it.
    pub fn layout_text(&self) -> String {
        match self.swizzle {
            Some(swizzle) => format!("{swizzle} o 0 o {}", self.layout),
            None => self.layout.to_string(),
        }
    }

    /// Elements of the widest access.
    fn vector(&self) -> i64 {
        let elements = |access: &WarpAccess| (access.bytes().0 / self.element.0).max(1) as i64;
        self.accesses.iter().map(elements).max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests;

/// The values of a layout, computed on request.
struct Offsets<'a> {
    layout: &'a Layout,
    /// All of them, where many are asked for, and they are as few as in shared memory; else none.
    all: Vec<i64>,
}

impl<'a> Offsets<'a> {
    /// A value by itself takes about as long as eight of all.
    fn of(layout: &'a Layout, asked: usize) -> Self {
        let size = layout.size();
        let table = size <= 1 << 18 && asked as i64 > size / 8;
        Self { layout, all: if table { layout.values().unwrap_or_default() } else { Vec::new() } }
    }

    fn at(&self, index: i64) -> Option<i64> {
        match usize::try_from(index).ok().and_then(|at| self.all.get(at)) {
            Some(offset) => Some(*offset),
            None => self.layout.at(index).ok(),
        }
    }
}
