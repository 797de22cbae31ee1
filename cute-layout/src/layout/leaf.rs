//! One leaf of a hierarchical tuple: a 64-bit value, what kind of value it is, and the parentheses around it.
//!
//! A tuple is stored as the sequence of its leaves; each leaf carries the number of parentheses that open before
//! it and close after it. `((2,4),8)` is `2` (opens 2), `4` (closes 1), `8` (closes 1). Sixteen bytes a leaf, no
//! pointers: tuples of up to eight leaves live on the stack, and most operations are one pass over a slice.

use super::symbol::Symbol;

/// The deepest nesting that a tuple may have. CuTe has no such bound; compilers do (template depth).
pub const MAX_DEPTH: usize = 64;

/// The largest number of leaves that a tuple may have.
pub const MAX_LEAVES: usize = 4096;

/// The deepest basis element: `1@0@1@0@1` has five indices.
pub const MAX_BASIS: usize = 5;

const ANY: u8 = 0xff;
const SYMBOL: u8 = 0xfe;

/// The kind of a leaf's value, in 48 bits, so that a leaf is sixteen bytes.
///
/// The low byte is the kind: 0 an integer, 1 to 5 the length of a basis path in the bytes above, `0xfe` a symbolic extent
/// whose number is in the four bytes above, `0xff` the underscore.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Tag(u64);

impl Tag {
    pub(crate) const ANY: Tag = Tag(ANY as u64);

    /// The tag of a basis element, or `None` where the path is longer than a tag can hold.
    pub(crate) fn basis(path: &[u8]) -> Option<Tag> {
        if path.len() > MAX_BASIS {
            return None;
        }
        let indices = path.iter().rev().fold(0u64, |bits, index| bits << 8 | u64::from(*index));
        Some(Tag(indices << 8 | path.len() as u64))
    }

    pub(crate) fn symbol(symbol: Symbol) -> Tag {
        Tag(u64::from(symbol.id()) << 8 | u64::from(SYMBOL))
    }

    fn kind(self) -> u8 {
        self.0 as u8
    }

    pub(crate) fn is_int(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn is_any(self) -> bool {
        self.kind() == ANY
    }

    pub(crate) fn is_basis(self) -> bool {
        (1..=MAX_BASIS as u8).contains(&self.kind())
    }

    pub(crate) fn as_symbol(self) -> Option<Symbol> {
        (self.kind() == SYMBOL).then(|| Symbol::from_id((self.0 >> 8) as u32))
    }

    /// The basis path, outermost index first; empty for everything that is not a basis element.
    pub(crate) fn path(self) -> BasisPath {
        let mut path = BasisPath { indices: [0; MAX_BASIS], len: 0 };
        if self.is_basis() {
            path.len = self.kind();
            path.indices.copy_from_slice(&self.0.to_le_bytes()[1..=MAX_BASIS]);
        }
        path
    }
}

/// A leaf with its parentheses: the value, and one word with the parentheses in the low two bytes and the tag above.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Leaf {
    pub(crate) value: i64,
    /// Parentheses and tag; equal where both are.
    pub(crate) meta: u64,
}

const NEST: u64 = 0xffff;

impl Leaf {
    pub(crate) const fn int(value: i64) -> Leaf {
        Leaf { value, meta: 0 }
    }

    pub(crate) fn tagged(value: i64, tag: Tag) -> Leaf {
        Leaf { value, meta: tag.0 << 16 }
    }

    /// The number of parentheses that open before the leaf.
    pub(crate) fn open(self) -> u8 {
        self.meta as u8
    }

    /// The number of parentheses that close after the leaf.
    pub(crate) fn close(self) -> u8 {
        (self.meta >> 8) as u8
    }

    pub(crate) fn tag(self) -> Tag {
        Tag(self.meta >> 16)
    }

    pub(crate) fn set_open(&mut self, open: u8) {
        self.meta = self.meta & !0xff | u64::from(open);
    }

    pub(crate) fn set_close(&mut self, close: u8) {
        self.meta = self.meta & !0xff00 | u64::from(close) << 8;
    }

    /// One more pair of parentheses opens here. Past 255 the number stays, which the bound on nesting excludes.
    pub(crate) fn open_more(&mut self, more: u8) {
        self.set_open(self.open().saturating_add(more));
    }

    /// More pairs of parentheses close here.
    pub(crate) fn close_more(&mut self, more: u8) {
        self.set_close(self.close().saturating_add(more));
    }

    /// The same value without parentheses.
    pub(crate) fn bare(self) -> Leaf {
        Leaf { meta: self.meta & !NEST, ..self }
    }

    /// The same value with the parentheses of another leaf.
    pub(crate) fn nested_like(self, other: Leaf) -> Leaf {
        Leaf { meta: self.meta & !NEST | other.meta & NEST, ..self }
    }

    /// Whether the parentheses are the same.
    pub(crate) fn same_nest(self, other: Leaf) -> bool {
        (self.meta ^ other.meta) & NEST == 0
    }

    pub(crate) fn is_int(self) -> bool {
        self.meta & !NEST == 0
    }

    pub(crate) fn is_one(self) -> bool {
        self.value == 1 && self.is_int()
    }

    pub(crate) fn is_zero(self) -> bool {
        self.value == 0 && self.is_int()
    }

    /// The value times an integer; a basis element or a symbolic extent scales.
    pub(crate) fn scaled(self, factor: i64) -> Option<Leaf> {
        super::number::times(self.bare(), Leaf::int(factor)).ok()
    }

    /// Value and kind are the same; parentheses are not compared.
    pub(crate) fn same(self, other: Leaf) -> bool {
        self.bare() == other.bare()
    }

    pub(crate) fn elem(self) -> Elem {
        let tag = self.tag();
        if self.is_int() {
            Elem::Int(self.value)
        } else if tag.is_any() {
            Elem::Any
        } else if let Some(symbol) = tag.as_symbol() {
            Elem::Symbolic { factor: self.value, symbol }
        } else {
            Elem::Basis { scale: self.value, path: tag.path() }
        }
    }
}

/// Gives the pieces from `first` on the parentheses of the leaf that they replace, and one more pair where there are
/// several.
pub(crate) fn nest_pieces(pieces: &mut [Leaf], like: Leaf) {
    let more = u8::from(pieces.len() > 1);
    if let Some(first) = pieces.first_mut() {
        first.set_open(like.open() + more);
    }
    if let Some(last) = pieces.last_mut() {
        last.set_close(like.close() + more);
    }
}

/// The element at a leaf of an [`IntTuple`](super::IntTuple).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elem {
    /// An integer.
    Int(i64),
    /// A scaled basis element of the coordinate space, CuTe's `ScaledBasis`: `2@0@1` is `2 * E<1,0>`.
    Basis {
        /// The coefficient.
        scale: i64,
        /// Where it points.
        path: BasisPath,
    },
    /// The underscore `_`: all of a mode, or a mode that a tiler leaves alone.
    Any,
    /// A symbolic extent: a known factor times a product of named run-time extents.
    Symbolic {
        /// The known factor.
        factor: i64,
        /// The product of names.
        symbol: Symbol,
    },
}

/// The path of a basis element, outermost index first: `E<1,0>` is `[1, 0]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BasisPath {
    indices: [u8; MAX_BASIS],
    len: u8,
}

impl BasisPath {
    /// The indices, outermost first.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.indices[..usize::from(self.len)]
    }
}
