//! [`Tiler`]: a layout, a shape, or one tiler for each mode.

use std::fmt;
use std::str::FromStr;

use super::core::Layout;
use super::error::LayoutError;
use super::int_tuple::IntTuple;
use super::reader::Reader;

/// The most levels of brackets in a tiler.
const MAX_LEVELS: usize = 32;

/// CuTe's Tiler: a layout (applied to the whole layout), a shape (by mode; an integer `n` stands for `n:1`), or a tuple of
/// tilers (by mode). `_` leaves a mode alone.
///
/// Text: `4:2`, `(1,8)`, `[3:1,8:2]`, `[4:2,_]`.
///
/// ```
/// use cute_layout::layout::Tiler;
/// let tiler: Tiler = "[3:1,(2,4):(1,2),_]".parse()?;
/// assert_eq!(tiler.to_string(), "[3:1,(2,4):(1,2),_]");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tiler {
    /// One layout, for the whole layout that is tiled.
    Layout(Layout),
    /// A shape, by mode; `_` keeps a mode.
    Shape(IntTuple),
    /// One tiler for each mode.
    Tuple(Vec<Tiler>),
}

/// How a tiler is applied.
pub(crate) enum TilerModes<'a> {
    Keep,
    Terminal(&'a Layout),
    /// An integer `n` for a mode. Composition takes it for `n:1`, division and product for `make_layout(n)`; the two
    /// differ for `n = 1`, whose stride is 0 in CuTe's `make_layout`.
    Extent(&'a IntTuple),
    /// This many entries; see [`Tiler::entries`].
    ByMode(usize),
}

impl Tiler {
    /// One step of taking the tiler apart.
    pub(crate) fn modes(&self) -> TilerModes<'_> {
        match self {
            Tiler::Layout(layout) => TilerModes::Terminal(layout),
            Tiler::Tuple(entries) => TilerModes::ByMode(entries.len()),
            Tiler::Shape(shape) if !shape.is_leaf() => TilerModes::ByMode(shape.rank()),
            Tiler::Shape(shape) if shape.has_underscore() => TilerModes::Keep,
            Tiler::Shape(extent) => TilerModes::Extent(extent),
        }
    }

    /// The entries of a tiler that is applied by mode: one for each mode, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Tiler> {
        let (entries, shape) = match self {
            Tiler::Layout(_) => (Default::default(), None),
            Tiler::Tuple(entries) => (entries.as_slice(), None),
            Tiler::Shape(shape) => (Default::default(), Some(shape)),
        };
        entries.iter().cloned().chain(shape.into_iter().flat_map(IntTuple::modes).map(Tiler::Shape))
    }

    pub(crate) fn read(reader: &mut Reader<'_>, level: usize) -> Result<Tiler, LayoutError> {
        if level > MAX_LEVELS {
            return Err(reader.fail(format!("at most {MAX_LEVELS} levels of brackets")));
        }
        let close = if reader.eat(b'[') {
            b']'
        } else if reader.eat(b'<') {
            b'>'
        } else {
            let start = reader.position();
            let shape = reader.int_tuple()?;
            return if reader.peek() == Some(b':') {
                reader.layout_of(shape, start).map(Tiler::Layout)
            } else {
                Ok(Tiler::Shape(shape))
            };
        };
        let mut entries = Vec::new();
        loop {
            entries.push(Tiler::read(reader, level + 1)?);
            if entries.len() > super::leaf::MAX_LEAVES {
                return Err(reader.fail("fewer entries"));
            }
            if reader.eat(close) {
                return Ok(Tiler::Tuple(entries));
            }
            reader.expect(b',')?;
        }
    }
}

impl FromStr for Tiler {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Tiler, LayoutError> {
        Reader::whole(text, |reader| Tiler::read(reader, 0))
    }
}

impl fmt::Display for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiler::Layout(layout) => layout.fmt(f),
            Tiler::Shape(shape) => fmt::Display::fmt(shape, f),
            Tiler::Tuple(entries) => {
                f.write_str("[")?;
                for (i, entry) in entries.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    fmt::Display::fmt(entry, f)?;
                }
                f.write_str("]")
            }
        }
    }
}

impl From<Layout> for Tiler {
    fn from(layout: Layout) -> Tiler {
        Tiler::Layout(layout)
    }
}

impl From<IntTuple> for Tiler {
    fn from(shape: IntTuple) -> Tiler {
        Tiler::Shape(shape)
    }
}
