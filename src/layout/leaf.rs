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

/// What a leaf's value means, packed into six bytes so that a leaf is sixteen.
///
/// Byte 0 is the kind: 0 an integer, 1 to 5 the length of a basis path in the bytes that follow, `0xfe` a symbolic
/// extent whose number is in bytes 1 to 4, `0xff` the underscore.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Tag([u8; 6]);

impl Tag {
    pub(crate) const INT: Tag = Tag([0; 6]);
    pub(crate) const ANY: Tag = Tag([ANY, 0, 0, 0, 0, 0]);

    /// The tag of a basis element, or `None` where the path is longer or an index larger than a tag can hold.
    pub(crate) fn basis(path: &[u8]) -> Option<Tag> {
        if path.len() > MAX_BASIS {
            return None;
        }
        let mut bytes = [0; 6];
        bytes[0] = path.len() as u8;
        bytes[1..=path.len()].copy_from_slice(path);
        Some(Tag(bytes))
    }

    pub(crate) fn symbol(symbol: Symbol) -> Tag {
        let id = symbol.id().to_le_bytes();
        Tag([SYMBOL, id[0], id[1], id[2], id[3], 0])
    }

    #[inline]
    pub(crate) fn is_int(self) -> bool {
        self.0[0] == 0
    }

    #[inline]
    pub(crate) fn is_any(self) -> bool {
        self.0[0] == ANY
    }

    pub(crate) fn is_basis(self) -> bool {
        (1..=MAX_BASIS as u8).contains(&self.0[0])
    }

    pub(crate) fn as_symbol(self) -> Option<Symbol> {
        (self.0[0] == SYMBOL).then(|| Symbol::from_id(u32::from_le_bytes([self.0[1], self.0[2], self.0[3], self.0[4]])))
    }

    /// The basis path, outermost index first; empty for everything that is not a basis element.
    pub(crate) fn path(&self) -> &[u8] {
        if self.is_basis() { &self.0[1..=usize::from(self.0[0])] } else { &[] }
    }
}

/// A leaf with its parentheses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Leaf {
    pub(crate) value: i64,
    pub(crate) open: u8,
    pub(crate) close: u8,
    pub(crate) tag: Tag,
}

impl Leaf {
    #[inline]
    pub(crate) const fn int(value: i64) -> Leaf {
        Leaf { value, open: 0, close: 0, tag: Tag::INT }
    }

    /// The same value without parentheses.
    #[inline]
    pub(crate) fn bare(self) -> Leaf {
        Leaf { open: 0, close: 0, ..self }
    }

    /// The same value with the parentheses of another leaf.
    #[inline]
    pub(crate) fn nested_like(self, other: Leaf) -> Leaf {
        Leaf { open: other.open, close: other.close, ..self }
    }

    #[inline]
    pub(crate) fn is_int(self) -> bool {
        self.tag.is_int()
    }

    #[inline]
    pub(crate) fn is_one(self) -> bool {
        self.value == 1 && self.tag.is_int()
    }

    #[inline]
    pub(crate) fn is_zero(self) -> bool {
        self.value == 0 && self.tag.is_int()
    }

    /// The value times an integer; a basis element or a symbolic extent scales.
    #[inline]
    pub(crate) fn scaled(self, factor: i64) -> Option<Leaf> {
        Some(Leaf { value: self.value.checked_mul(factor)?, ..self })
    }

    /// Value and kind are the same; parentheses are not compared.
    #[inline]
    pub(crate) fn same(self, other: Leaf) -> bool {
        self.value == other.value && self.tag == other.tag
    }

    pub(crate) fn elem(self) -> Elem {
        if self.tag.is_int() {
            Elem::Int(self.value)
        } else if self.tag.is_any() {
            Elem::Any
        } else if let Some(symbol) = self.tag.as_symbol() {
            Elem::Symbolic { factor: self.value, symbol }
        } else {
            Elem::Basis { scale: self.value, path: BasisPath(self.tag) }
        }
    }
}

/// What stands at a leaf of an [`IntTuple`](super::IntTuple).
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BasisPath(Tag);

impl BasisPath {
    /// The indices, outermost first.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.0.path()
    }
}
