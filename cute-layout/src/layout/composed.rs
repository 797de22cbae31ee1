//! [`ComposedLayout`] `A o offset o B`: functions that do not compose into one layout, applied one after the other.

use std::fmt;
use std::str::FromStr;

use super::composition::composition;
use super::coord::crd2idx_int;
use super::core::Layout;
use super::error::{Class, LayoutError, abs, add, mul};
use super::int_tuple::Coord;
use super::reader::Reader;
use super::swizzle::Swizzle;

/// The most coordinates that are looked at to find the largest value of a composed layout, or to check a law.
pub const MOST_SCANNED: i64 = 1 << 16;

/// The most functions of a [`ComposedLayout`] that are composed or read.
pub const MOST_FUNCTIONS: usize = 16;

/// CuTe's ComposedLayout: the value at a coordinate is `outer(offset + inner(coord))`. Either function may be composed
/// itself:
/// `A o m o B o n o C` is `A(m + B(n + C(coord)))`.
///
/// The common one is a swizzled layout, a [`Swizzle`] after a [`Layout`]. The domain, and so the shape, is the inner
/// layout's, and most operations act on it alone.
///
/// ```
/// use cute_layout::layout::ComposedLayout;
/// let layout: ComposedLayout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
/// assert_eq!(layout.at(1)?, 9);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComposedLayout {
    outer: Box<AnyLayout>,
    offset: i64,
    inner: Box<AnyLayout>,
}

impl ComposedLayout {
    /// The function `outer(offset + inner(coord))`; nothing is composed (CuTe's `make_composed_layout`).
    #[must_use]
    pub fn new(outer: AnyLayout, offset: i64, inner: AnyLayout) -> ComposedLayout {
        ComposedLayout { outer: Box::new(outer), offset, inner: Box::new(inner) }
    }

    /// A swizzled layout.
    #[must_use]
    pub fn swizzled(swizzle: Swizzle, layout: Layout) -> ComposedLayout {
        ComposedLayout::new(AnyLayout::Swizzle(swizzle), 0, AnyLayout::Plain(layout))
    }

    /// The function that is applied last.
    #[must_use]
    pub fn outer(&self) -> &AnyLayout {
        &self.outer
    }

    /// The offset that is added before the outer function.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The function that is applied first.
    #[must_use]
    pub fn inner(&self) -> &AnyLayout {
        &self.inner
    }

    /// The swizzle, where that is the outer function, and the inner one a layout.
    #[must_use]
    pub fn swizzle(&self) -> Option<Swizzle> {
        match (&*self.outer, &*self.inner) {
            (AnyLayout::Swizzle(swizzle), AnyLayout::Plain(_)) => Some(*swizzle),
            _ => None,
        }
    }

    /// Whether it is of more than two functions.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(*self.inner, AnyLayout::Composed(_)) || matches!(*self.outer, AnyLayout::Composed(_))
    }

    /// A layout after a layout as one layout, where that is one.
    pub(crate) fn as_one(&self) -> Option<Layout> {
        match (&*self.outer, &*self.inner) {
            (AnyLayout::Plain(outer), AnyLayout::Plain(inner)) if self.offset == 0 => composition(outer, inner).ok(),
            _ => None,
        }
    }

    /// The layout that gives the domain.
    ///
    /// # Errors
    /// The inner function is a swizzle, which has no shape.
    pub fn domain(&self) -> Result<&Layout, LayoutError> {
        self.inner
            .domain()
            .map_err(|e| e.within("ComposedLayout", &[("layout", self)]).required("a layout as the inner function"))
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
        let inner = match (&*self.inner, coord.as_int()) {
            (inner, Some(index)) => inner.at(index)?,
            (AnyLayout::Composed(inner), None) => inner.crd2idx(coord)?,
            (inner, None) => crd2idx_int(coord, inner.domain()?)?,
        };
        self.outer.at(add(self.offset, inner)?)
    }

    /// The size that a buffer must have: one more than the largest value. CuTe's `cosize` is the inner layout's and can
    /// be too small, since a swizzle may move the last index up and the offset is left out.
    ///
    /// Exact for up to [`MOST_SCANNED`] coordinates. Above, it is rounded up to the block that the swizzle permutes, or
    /// to the largest value of the outer layout up to the inner one's largest index.
    ///
    /// *Law.* `layout(i) < cosize(layout)` for every `i` below the size, and no smaller number holds up to the bound.
    ///
    /// *Source.* `cute/layout_composed.hpp`, `cosize`, which leaves out the swizzle and the offset.
    ///
    /// # Errors
    /// A number does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::layout::ComposedLayout;
    /// // The values are 0 to 7 and 9; CuTe says 9, and index 9 is past the end of 9 elements.
    /// assert_eq!("Sw<1,0,3> o 0 o 9:1".parse::<ComposedLayout>()?.cosize()?, 10);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
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
        let inside = match &*self.inner {
            AnyLayout::Composed(inner) => inner.cosize()?,
            _ => inner.cosize()?,
        };
        let reach = add(abs(self.offset)?, inside)?;
        match *self.outer {
            AnyLayout::Swizzle(swizzle) => {
                let block = swizzle.block();
                mul(reach / block + i64::from(reach % block != 0), block)
            }
            _ => add(self.largest_up_to(reach - 1)?, 1),
        }
    }

    /// The largest value of the outer layout at the indices up to `last`.
    fn largest_up_to(&self, last: i64) -> Result<i64, LayoutError> {
        let AnyLayout::Plain(outer) = &*self.outer else {
            return Err(LayoutError::on("cosize", Class::Limit, &[("layout", self)])
                .found("three functions, one after the other")
                .required(format!("two, or at most {MOST_SCANNED} coordinates")));
        };
        outer.require_ints("cosize")?;
        // Digits of `last`; the last mode has no bound. With any digits below, the most that the lower modes add.
        let (mut rest, mut below) = (last, 0);
        let mut digits = Vec::new();
        for (i, (extent, stride)) in outer.pairs().enumerate() {
            let digit = if i + 1 == outer.pairs().len() { rest } else { rest % extent.value };
            digits.push((digit, stride.value, below));
            rest /= extent.value;
            below = add(below, mul(extent.value - 1, stride.value)?.max(0))?;
        }
        // An index below `last` has its upper digits, then a smaller one, then any.
        let (mut largest, mut above) = (0, 0);
        for (digit, stride, below) in digits.into_iter().rev() {
            if digit > 0 {
                largest = largest.max(add(add(above, mul(digit - 1, stride)?.max(0))?, below)?);
            }
            above = add(above, mul(digit, stride)?)?;
        }
        Ok(largest.max(above))
    }

    /// The same functions and offsets over another layout that gives the domain; plain where they do nothing.
    pub(crate) fn over(&self, domain: Layout) -> AnyLayout {
        match &*self.inner {
            AnyLayout::Composed(inner) => AnyLayout::Composed(ComposedLayout {
                outer: self.outer.clone(),
                offset: self.offset,
                inner: Box::new(inner.over(domain)),
            }),
            _ => AnyLayout::compose((*self.outer).clone(), self.offset, domain),
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
            _ => Err(LayoutError::on("parse", Class::Parse, &[("text", &text)])
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
    pub fn compose(outer: AnyLayout, offset: i64, inner: Layout) -> AnyLayout {
        match outer {
            AnyLayout::Swizzle(swizzle) if swizzle.bits() == 0 && offset == 0 => AnyLayout::Plain(inner),
            outer => AnyLayout::Composed(ComposedLayout::new(outer, offset, AnyLayout::Plain(inner))),
        }
    }

    /// `self(offset + inner(coord))`: the same function however its parts are grouped, so the outer function of each
    /// pair is a layout or a swizzle.
    pub(crate) fn after(self, offset: i64, inner: AnyLayout) -> Result<AnyLayout, LayoutError> {
        let (outer, inner) = match (self, inner) {
            (AnyLayout::Composed(outer), inner) => {
                let inside = outer.inner.after(offset, inner)?;
                return outer.outer.after(outer.offset, inside);
            }
            (outer, AnyLayout::Plain(inner)) => return Ok(AnyLayout::compose(outer, offset, inner)),
            (AnyLayout::Swizzle(swizzle), inner) if swizzle.bits() == 0 && offset == 0 => return Ok(inner),
            both => both,
        };
        let functions = 1 + inner.functions();
        if functions > MOST_FUNCTIONS {
            return Err(LayoutError::new("composition", Class::Limit)
                .found(format!("{functions} functions that do not compose into one"))
                .required(format!("at most {MOST_FUNCTIONS}")));
        }
        Ok(AnyLayout::Composed(ComposedLayout::new(outer, offset, inner)))
    }

    fn functions(&self) -> usize {
        match self {
            AnyLayout::Composed(composed) => composed.outer.functions() + composed.inner.functions(),
            _ => 1,
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
            other => Err(LayoutError::on(op, Class::Argument, &[("layout", other)])
                .found(format!("the composed layout {other}"))
                .required("a plain layout")
                .because("the operation is not defined on composed layouts")),
        }
    }

    /// Applies an operation to the layout that gives the domain, and keeps the rest, as CuTe does for most operations.
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
        AnyLayout::read_part(reader)?.read_rest(reader)
    }

    fn read_part(reader: &mut Reader<'_>) -> Result<AnyLayout, LayoutError> {
        if Swizzle::begins(reader) {
            return Swizzle::read(reader).map(AnyLayout::Swizzle);
        }
        reader.layout().map(AnyLayout::Plain)
    }

    /// Reads the rest after the first part: nothing, or offsets and inner parts.
    pub(crate) fn read_rest(self, reader: &mut Reader<'_>) -> Result<AnyLayout, LayoutError> {
        let mut parts = vec![(0, self)];
        while reader.eat_word("o") {
            let offset = reader.number()?;
            if !reader.eat_word("o") {
                return Err(reader.fail("` o ` and the inner layout"));
            }
            parts.push((offset, AnyLayout::read_part(reader)?));
            if parts.len() > MOST_FUNCTIONS {
                return Err(reader.fail(format!("at most {MOST_FUNCTIONS} functions")));
            }
        }
        let together =
            |(offset, inner), (before, outer)| (before, AnyLayout::Composed(ComposedLayout::new(outer, offset, inner)));
        let whole = parts.into_iter().rev().reduce(together);
        whole.map(|(_, layout)| layout).ok_or_else(|| reader.fail("a layout"))
    }
}
