//! [`ComposedLayout`] `A o offset o B`: functions that do not compose into one layout, applied one after the other.

use std::fmt;
use std::str::FromStr;

use super::coord::crd2idx_int;
use super::core::Layout;
use super::error::{Class, LayoutError, abs, add};
use super::int_tuple::{Coord, IntTuple};
use super::reader::Reader;
use super::swizzle::Swizzle;

/// The most coordinates that are looked at to find the largest value of a composed layout, or to check a law.
pub const MOST_SCANNED: i64 = 1 << 16;

/// A function from indices to indices: a layout or a swizzle.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "layouts are kept off the heap")]
pub enum Map {
    /// A layout.
    Layout(Layout),
    /// A swizzle.
    Swizzle(Swizzle),
}

impl Map {
    /// The value at an index.
    ///
    /// # Errors
    /// As for [`Layout::at`].
    pub fn at(&self, index: i64) -> Result<i64, LayoutError> {
        match self {
            Map::Layout(layout) => layout.at(index),
            Map::Swizzle(swizzle) => Ok(swizzle.apply(index)),
        }
    }
}

/// CuTe's ComposedLayout: the value at a coordinate is `outer(offset + inner(coord))`.
///
/// The common one is a swizzled layout, a [`Swizzle`] after a [`Layout`]. The domain, and so the shape, is the inner
/// layout's, and most operations act on it alone.
///
/// ```
/// use cutemplate::layout::ComposedLayout;
/// let layout: ComposedLayout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
/// assert_eq!(layout.at(1)?, 9);
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComposedLayout {
    outer: Map,
    offset: i64,
    inner: Map,
}

impl ComposedLayout {
    /// The function `outer(offset + inner(coord))`; nothing is composed (CuTe's `make_composed_layout`).
    #[must_use]
    pub fn new(outer: Map, offset: i64, inner: Map) -> ComposedLayout {
        ComposedLayout { outer, offset, inner }
    }

    /// A swizzled layout.
    #[must_use]
    pub fn swizzled(swizzle: Swizzle, layout: Layout) -> ComposedLayout {
        ComposedLayout::new(Map::Swizzle(swizzle), 0, Map::Layout(layout))
    }

    /// The function that is applied last.
    #[must_use]
    pub fn outer(&self) -> &Map {
        &self.outer
    }

    /// What is added before the outer function.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The function that is applied first.
    #[must_use]
    pub fn inner(&self) -> &Map {
        &self.inner
    }

    /// The swizzle, where that is the outer function.
    #[must_use]
    pub fn swizzle(&self) -> Option<Swizzle> {
        match self.outer {
            Map::Swizzle(swizzle) => Some(swizzle),
            Map::Layout(_) => None,
        }
    }

    /// The layout that gives the domain.
    ///
    /// # Errors
    /// The inner function is a swizzle, which has no shape.
    pub fn domain(&self) -> Result<&Layout, LayoutError> {
        match &self.inner {
            Map::Layout(layout) => Ok(layout),
            Map::Swizzle(_) => Err(LayoutError::new("ComposedLayout", Class::Argument)
                .operand("layout", self)
                .found("a swizzle as the inner function")
                .required("a layout as the inner function")
                .because("a swizzle has no shape, so there is no domain")),
        }
    }

    /// The value at the `index`-th coordinate.
    ///
    /// # Errors
    /// A number does not fit in 64 bits.
    pub fn at(&self, index: i64) -> Result<i64, LayoutError> {
        self.outer.at(add(self.offset, self.inner.at(index)?)?)
    }

    /// The value at a coordinate.
    ///
    /// # Errors
    /// The coordinate does not fit the domain's shape, or a number does not fit in 64 bits.
    pub fn crd2idx(&self, coord: &Coord) -> Result<i64, LayoutError> {
        let inner = match &self.inner {
            Map::Layout(layout) => crd2idx_int(coord, layout)?,
            Map::Swizzle(swizzle) => match coord.as_int() {
                Some(index) => swizzle.apply(index),
                None => self.domain().and_then(|layout| crd2idx_int(coord, layout))?,
            },
        };
        self.outer.at(add(self.offset, inner)?)
    }

    /// What a buffer must hold: one more than the largest value. CuTe's `cosize` is the inner layout's and can be too
    /// small, since a swizzle may move the last index up and the offset is left out.
    ///
    /// Exact for up to [`MOST_SCANNED`] coordinates; above, rounded up to the block that the swizzle permutes.
    ///
    /// *Law.* `layout(i) < cosize(layout)` for every `i` below the size, and no smaller number holds up to the bound.
    ///
    /// *Source.* `cute/layout_composed.hpp`, `cosize`, which leaves out the swizzle and the offset.
    ///
    /// # Errors
    /// A number does not fit in 64 bits.
    ///
    /// ```
    /// use cutemplate::layout::ComposedLayout;
    /// // The values are 0 to 7 and 9; CuTe says 9, and index 9 is past the end of 9 elements.
    /// assert_eq!("Sw<1,0,3> o 0 o 9:1".parse::<ComposedLayout>()?.cosize()?, 10);
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        let inner = self.domain()?;
        inner.require_ints("cosize")?;
        if inner.size() <= MOST_SCANNED {
            let mut largest = 0;
            for i in 0..inner.size() {
                largest = largest.max(self.at(i)?);
            }
            return add(largest, 1);
        }
        let reach = add(abs(self.offset)?, inner.cosize()?)?;
        match &self.outer {
            Map::Layout(outer) => add(abs(outer.at(reach - 1)?)?, 1),
            Map::Swizzle(swizzle) => {
                let block = swizzle.block();
                let blocks = reach / block + i64::from(reach % block != 0);
                super::error::mul(blocks, block)
            }
        }
    }

    /// The same outer function and offset over another inner layout; plain where they do nothing.
    pub(crate) fn over(&self, inner: Layout) -> AnyLayout {
        AnyLayout::compose(self.outer.clone(), self.offset, inner)
    }

    pub(crate) fn read_rest(reader: &mut Reader<'_>, outer: Map) -> Result<ComposedLayout, LayoutError> {
        let offset = reader.number()?;
        if !reader.eat_word("o") {
            return Err(reader.fail("` o ` and the inner layout"));
        }
        let inner =
            if Swizzle::begins(reader) { Map::Swizzle(Swizzle::read(reader)?) } else { Map::Layout(reader.layout()?) };
        Ok(ComposedLayout { outer, offset, inner })
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Map::Layout(layout) => layout.fmt(f),
            Map::Swizzle(swizzle) => swizzle.fmt(f),
        }
    }
}

impl fmt::Display for ComposedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.outer, self.offset, self.inner)
    }
}

impl FromStr for ComposedLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<ComposedLayout, LayoutError> {
        match text.parse::<AnyLayout>()? {
            AnyLayout::Composed(layout) => Ok(layout),
            _ => Err(LayoutError::new("parse", Class::Parse)
                .operand("text", &text)
                .found("a function of one part")
                .required("a composed layout, `A o offset o B`")),
        }
    }
}

/// Anything that maps indices: a layout, a composed layout, or a bare swizzle.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "layouts are kept off the heap")]
pub enum AnyLayout {
    /// A layout.
    Plain(Layout),
    /// A composed layout.
    Composed(ComposedLayout),
    /// A swizzle, which has no shape.
    Swizzle(Swizzle),
}

impl AnyLayout {
    /// `outer(offset + inner(coord))`, plain where the outer function and the offset do nothing.
    #[must_use]
    pub fn compose(outer: Map, offset: i64, inner: Layout) -> AnyLayout {
        match outer {
            Map::Swizzle(swizzle) if swizzle.bits() == 0 && offset == 0 => AnyLayout::Plain(inner),
            outer => AnyLayout::Composed(ComposedLayout::new(outer, offset, Map::Layout(inner))),
        }
    }

    /// The value at the `index`-th coordinate.
    ///
    /// # Errors
    /// A number does not fit in 64 bits, or a stride is not an integer.
    pub fn at(&self, index: i64) -> Result<i64, LayoutError> {
        match self {
            AnyLayout::Plain(layout) => layout.at(index),
            AnyLayout::Composed(layout) => layout.at(index),
            AnyLayout::Swizzle(swizzle) => Ok(swizzle.apply(index)),
        }
    }

    /// The layout that gives the domain.
    ///
    /// # Errors
    /// A swizzle has no shape.
    pub fn domain(&self) -> Result<&Layout, LayoutError> {
        match self {
            AnyLayout::Plain(layout) => Ok(layout),
            AnyLayout::Composed(layout) => layout.domain(),
            AnyLayout::Swizzle(swizzle) => Err(no_shape(*swizzle)),
        }
    }

    /// The layout, where it is a plain one.
    ///
    /// # Errors
    /// It is composed or a swizzle.
    pub fn plain(&self, op: &'static str) -> Result<&Layout, LayoutError> {
        match self {
            AnyLayout::Plain(layout) => Ok(layout),
            other => Err(LayoutError::new(op, Class::Argument)
                .operand("layout", other)
                .found(format!("the composed layout {other}"))
                .required("a plain layout")
                .because("the operation is not defined on composed layouts")),
        }
    }

    /// Applies an operation to the layout that gives the domain, and keeps the rest (what CuTe does for most operations).
    pub(crate) fn map_domain(
        &self,
        apply: impl FnOnce(&Layout) -> Result<Layout, LayoutError>,
    ) -> Result<AnyLayout, LayoutError> {
        match self {
            AnyLayout::Plain(layout) => Ok(AnyLayout::Plain(apply(layout)?)),
            AnyLayout::Composed(composed) => Ok(composed.over(apply(composed.domain()?)?)),
            AnyLayout::Swizzle(swizzle) => Err(no_shape(*swizzle)),
        }
    }
}

fn no_shape(swizzle: Swizzle) -> LayoutError {
    LayoutError::new("layout", Class::Argument)
        .found(swizzle.to_string())
        .required("a layout")
        .because("a swizzle has no shape")
}

impl fmt::Display for AnyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyLayout::Plain(layout) => layout.fmt(f),
            AnyLayout::Composed(layout) => layout.fmt(f),
            AnyLayout::Swizzle(swizzle) => swizzle.fmt(f),
        }
    }
}

impl FromStr for AnyLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<AnyLayout, LayoutError> {
        Reader::whole(text, AnyLayout::read)
    }
}

impl AnyLayout {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<AnyLayout, LayoutError> {
        if Swizzle::begins(reader) {
            let swizzle = Swizzle::read(reader)?;
            if !reader.eat_word("o") {
                return Ok(AnyLayout::Swizzle(swizzle));
            }
            return ComposedLayout::read_rest(reader, Map::Swizzle(swizzle)).map(AnyLayout::Composed);
        }
        let start = reader.position();
        let shape = reader.int_tuple()?;
        AnyLayout::read_from_shape(reader, shape, start)
    }

    /// The rest of a layout behind its shape, which was read from `start` on.
    pub(crate) fn read_from_shape(
        reader: &mut Reader<'_>,
        shape: IntTuple,
        start: usize,
    ) -> Result<AnyLayout, LayoutError> {
        let layout = reader.layout_of(shape, start)?;
        if !reader.eat_word("o") {
            return Ok(AnyLayout::Plain(layout));
        }
        ComposedLayout::read_rest(reader, Map::Layout(layout)).map(AnyLayout::Composed)
    }
}
