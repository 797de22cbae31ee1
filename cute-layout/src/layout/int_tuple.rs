//! [`IntTuple`]: an integer, or a tuple of IntTuples. Shapes, strides, coordinates and profiles are all of this type.

use smallvec::SmallVec;

use super::error::{Class, LayoutError};
use super::leaf::{Elem, Leaf, MAX_DEPTH, MAX_LEAVES, Tag};
use super::symbol::{Symbol, Term};

pub(crate) type Leaves = SmallVec<[Leaf; 8]>;

/// A hierarchical tuple of 64-bit integers, as CuTe's `IntTuple`: `8`, `(4,8)`, `((2,2),8)`.
///
/// A leaf may also be a scaled basis element (`1@0@1`, in strides), the underscore `_` (in coordinates and tilers), or
/// a symbolic extent ([`Symbol`]). The rank-1 tuple `(4)` is not the integer `4`. There is no empty tuple. Up to eight
/// leaves are stored without allocation.
///
/// ```
/// use cute_layout::layout::IntTuple;
/// let shape: IntTuple = "((2,2),8)".parse()?;
/// assert_eq!((shape.rank(), shape.depth(), shape.size()?), (2, 2, 32));
/// assert_eq!(shape.mode(0).map(|mode| mode.to_string()).as_deref(), Some("(2,2)"));
/// assert_eq!(shape, IntTuple::from(((2, 2), 8)));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IntTuple {
    leaves: Leaves,
}

/// A shape: positive integers (or symbolic extents) at the leaves.
pub type Shape = IntTuple;
/// A stride: integers or scaled basis elements at the leaves.
pub type Stride = IntTuple;
/// A coordinate: integers at the leaves, or `_` for a whole mode.
pub type Coord = IntTuple;

impl IntTuple {
    /// A single integer.
    #[must_use]
    pub fn int(value: i64) -> IntTuple {
        IntTuple::leaf(Leaf::int(value))
    }

    /// The underscore.
    #[must_use]
    pub fn any() -> IntTuple {
        IntTuple::leaf(Leaf::tagged(0, Tag::ANY))
    }

    /// A scaled basis element, `scale * E<path..>`, the outermost index first: `basis(2, &[1, 0])` prints `2@0@1`.
    ///
    /// # Errors
    /// The path has more than five indices.
    pub fn basis(scale: i64, path: &[u8]) -> Result<IntTuple, LayoutError> {
        match Tag::basis(path) {
            Some(tag) => Ok(IntTuple::leaf(Leaf::tagged(scale, tag))),
            None => Err(LayoutError::new("basis", Class::Limit)
                .found(format!("{} indices", path.len()))
                .required("at most 5")),
        }
    }

    /// A symbolic extent times a known factor.
    #[must_use]
    pub fn symbolic(factor: i64, symbol: Symbol) -> IntTuple {
        let leaf = Leaf::tagged(factor, Tag::symbol(symbol));
        // The one form of the number, but where it does not fit.
        IntTuple::leaf(Term::of(leaf).and_then(|term| term.leaf().ok()).unwrap_or(leaf))
    }

    /// A tuple of the given modes; one mode makes a rank-1 tuple.
    ///
    /// # Errors
    /// There is no mode, or the result is nested deeper than [`MAX_DEPTH`] or has more than [`MAX_LEAVES`] leaves.
    ///
    /// ```
    /// use cute_layout::layout::IntTuple;
    /// let pair = IntTuple::tuple([IntTuple::int(4), IntTuple::from((2, 2))])?;
    /// assert_eq!(pair.to_string(), "(4,(2,2))");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn tuple<I>(modes: I) -> Result<IntTuple, LayoutError>
    where
        I: IntoIterator<Item = IntTuple>,
    {
        let mut leaves = Leaves::new();
        for mode in modes {
            leaves.extend_from_slice(&mode.leaves);
        }
        IntTuple::wrapped(leaves)
    }

    /// One pair of parentheses around a sequence of leaves that are balanced.
    pub(crate) fn wrapped(leaves: Leaves) -> Result<IntTuple, LayoutError> {
        let mut tuple = IntTuple { leaves };
        tuple.wrap();
        tuple.check_limits()?;
        Ok(tuple)
    }

    /// One more pair of parentheses around all leaves; [`IntTuple::check_limits`] says whether that is one too many.
    pub(crate) fn wrap(&mut self) {
        if let Some(first) = self.leaves.first_mut() {
            first.open_more(1);
        }
        if let Some(last) = self.leaves.last_mut() {
            last.close_more(1);
        }
    }

    /// Refuses no leaves, too many, and too deep a nesting.
    pub(crate) fn check_limits(&self) -> Result<(), LayoutError> {
        if self.leaves.is_empty() {
            return Err(LayoutError::new("tuple", Class::Argument)
                .found("an empty tuple")
                .required("at least one mode")
                .because("an empty tuple has no coordinate"));
        }
        let bounds = [(self.leaves.len(), MAX_LEAVES, "leaves"), (self.depth(), MAX_DEPTH, "levels of nesting")];
        if let Some((have, most, what)) = bounds.into_iter().find(|(have, most, _)| have > most) {
            return Err(LayoutError::new("tuple", Class::Limit)
                .found(format!("{have} {what}"))
                .required(format!("at most {most}")));
        }
        Ok(())
    }

    pub(crate) fn leaf(leaf: Leaf) -> IntTuple {
        let mut leaves = Leaves::new();
        leaves.push(leaf.bare());
        IntTuple { leaves }
    }

    /// Leaves that are already balanced and within bounds.
    pub(crate) fn from_leaves(leaves: Leaves) -> IntTuple {
        IntTuple { leaves }
    }

    pub(crate) fn raw(&self) -> &[Leaf] {
        &self.leaves
    }

    pub(crate) fn raw_mut(&mut self) -> &mut [Leaf] {
        &mut self.leaves
    }

    pub(crate) fn leaves_mut(&mut self) -> &mut Leaves {
        &mut self.leaves
    }

    /// Whether this is a leaf and not a tuple.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        matches!(self.leaves.as_slice(), [only] if only.open() == 0)
    }

    /// The integer, where this is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self.leaves.as_slice() {
            [only] if only.open() == 0 && only.is_int() => Some(only.value),
            _ => None,
        }
    }

    /// The number of leaves.
    #[must_use]
    pub fn leaf_count(&self) -> usize {
        self.leaves.len()
    }

    /// The leaves, left to right.
    pub fn leaves(&self) -> impl Iterator<Item = Elem> {
        self.leaves.iter().map(|leaf| leaf.elem())
    }

    /// The integers at the leaves, left to right; `None` where a leaf is not an integer.
    #[must_use]
    pub fn ints(&self) -> Option<SmallVec<[i64; 8]>> {
        self.leaves.iter().map(|leaf| leaf.is_int().then_some(leaf.value)).collect()
    }

    /// The number of modes; 1 for a leaf.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.modes().count()
    }

    /// The depth of nesting: 0 for a leaf, 1 for a tuple of leaves.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut depth = 0usize;
        let mut deepest = 0;
        for leaf in &self.leaves {
            depth += usize::from(leaf.open());
            deepest = deepest.max(depth);
            depth = depth.saturating_sub(usize::from(leaf.close()));
        }
        deepest
    }

    /// The modes, left to right; a leaf is its own only mode.
    #[must_use]
    pub fn modes(&self) -> Modes<'_> {
        Modes { all: &self.leaves, next: 0, wrapped: !self.is_leaf() }
    }

    /// One mode, or `None` past the rank.
    #[must_use]
    pub fn mode(&self, index: usize) -> Option<IntTuple> {
        self.modes().nth(index)
    }

    /// The IntTuple at a path of mode indices: `at_path(&[1, 0])` is mode 0 of mode 1.
    #[must_use]
    pub fn at_path(&self, path: &[u8]) -> Option<IntTuple> {
        path.iter().try_fold(self.clone(), |here, index| here.mode(usize::from(*index)))
    }

    /// The mode indices that lead to a leaf.
    pub(crate) fn path_of(&self, leaf: usize) -> Vec<usize> {
        let mut path: Vec<usize> = Vec::new();
        for (i, here) in self.leaves.iter().enumerate().take(leaf + 1) {
            path.extend(std::iter::repeat_n(0, usize::from(here.open())));
            if i < leaf {
                path.truncate(path.len().saturating_sub(usize::from(here.close())));
                path.last_mut().into_iter().for_each(|last| *last += 1);
            }
        }
        path
    }

    /// The mode indices that lead to a leaf, as `[1][0]`.
    pub(crate) fn leaf_path(&self, leaf: usize) -> String {
        self.path_of(leaf).iter().map(|index| format!("[{index}]")).collect()
    }

    /// The product of all leaves, where they are integers (CuTe's `size`).
    ///
    /// *Law.* The product of all leaves.
    ///
    /// *Source.* `cute/int_tuple.hpp`, `product` and `size`.
    ///
    /// # Errors
    /// A leaf is not an integer, or the product does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::layout::IntTuple;
    /// assert_eq!(IntTuple::from(((2, 3), 4)).size()?, 24);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn size(&self) -> Result<i64, LayoutError> {
        match self.ints() {
            Some(_) => Ok(self.product_leaf()?.value),
            None => Err(not_integer("size", self)),
        }
    }

    /// The product of all leaves where they may be symbolic: a leaf (CuTe's `product`).
    ///
    /// *Law.* With numbers in the place of the names it is [`IntTuple::size`].
    ///
    /// *Source.* `cute/int_tuple.hpp`, `product`.
    ///
    /// # Errors
    /// A leaf is a basis element or `_`, or a number does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::layout::IntTuple;
    /// assert_eq!("(4,(M,2))".parse::<IntTuple>()?.product()?.to_string(), "8*M");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn product(&self) -> Result<IntTuple, LayoutError> {
        self.product_leaf().map(IntTuple::leaf)
    }

    pub(crate) fn product_leaf(&self) -> Result<Leaf, LayoutError> {
        if self.leaves.iter().any(|leaf| leaf.tag().is_any() || leaf.tag().is_basis()) {
            return Err(not_integer("size", self));
        }
        super::number::product(self.leaves.iter().copied()).map_err(|e| e.within("size", &[("shape", self)]))
    }

    /// Whether two tuples have the same profile (CuTe's `congruent`).
    #[must_use]
    pub fn congruent(&self, other: &IntTuple) -> bool {
        self.leaves.len() == other.leaves.len() && self.leaves.iter().zip(&other.leaves).all(|(a, b)| a.same_nest(*b))
    }

    /// The same leaves in a tuple of depth one; a leaf stays a leaf (CuTe's `flatten`).
    ///
    /// *Law.* The same leaves in the same order, at depth 1 at most.
    ///
    /// *Source.* `cute/algorithm/tuple_algorithms.hpp`, `flatten`.
    ///
    /// ```
    /// use cute_layout::layout::IntTuple;
    /// assert_eq!(IntTuple::from(((2, 3), 4)).flatten().to_string(), "(2,3,4)");
    /// ```
    #[must_use]
    pub fn flatten(&self) -> IntTuple {
        if self.is_leaf() {
            return self.clone();
        }
        let mut flat = IntTuple { leaves: self.leaves.iter().map(|leaf| leaf.bare()).collect() };
        flat.wrap();
        flat
    }

    /// Whether a leaf is `_`.
    #[must_use]
    pub fn has_underscore(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.tag().is_any())
    }

    /// Whether every leaf is `_`.
    #[must_use]
    pub fn all_underscore(&self) -> bool {
        self.leaves.iter().all(|leaf| leaf.tag().is_any())
    }

    /// A tuple of the same profile with one value at every leaf (CuTe's `repeat_like`).
    pub(crate) fn repeat_like(&self, value: Leaf) -> IntTuple {
        IntTuple { leaves: self.leaves.iter().map(|leaf| value.nested_like(*leaf)).collect() }
    }
}

pub(crate) fn not_integer(op: &'static str, tuple: &IntTuple) -> LayoutError {
    LayoutError::on(op, Class::Argument, &[("tuple", tuple)])
        .found(format!("{tuple}"))
        .required("an integer at every leaf")
}

/// The modes of an [`IntTuple`], left to right.
#[derive(Clone)]
pub struct Modes<'a> {
    all: &'a [Leaf],
    next: usize,
    wrapped: bool,
}

impl Iterator for Modes<'_> {
    type Item = IntTuple;

    fn next(&mut self) -> Option<IntTuple> {
        let mut leaves = Leaves::new();
        let mut depth = 0i32;
        while let Some(&(mut leaf)) = self.all.get(self.next) {
            if self.wrapped && self.next == 0 {
                leaf.set_open(leaf.open() - 1);
            }
            self.next += 1;
            if self.wrapped && self.next == self.all.len() {
                leaf.set_close(leaf.close() - 1);
            }
            depth += i32::from(leaf.open()) - i32::from(leaf.close());
            leaves.push(leaf);
            if depth <= 0 {
                break;
            }
        }
        (!leaves.is_empty()).then_some(IntTuple { leaves })
    }
}

impl From<i64> for IntTuple {
    fn from(value: i64) -> IntTuple {
        IntTuple::int(value)
    }
}

macro_rules! from_rust_tuple {
    ($($name:ident),+) => {
        impl<$($name: Into<IntTuple>),+> From<($($name,)+)> for IntTuple {
            #[allow(non_snake_case)]
            fn from(($($name,)+): ($($name,)+)) -> IntTuple {
                let mut leaves = Leaves::new();
                $(leaves.extend_from_slice(&$name.into().leaves);)+
                let mut tuple = IntTuple { leaves };
                tuple.wrap();
                tuple
            }
        }
    };
}

from_rust_tuple!(A);
from_rust_tuple!(A, B);
from_rust_tuple!(A, B, C);
from_rust_tuple!(A, B, C, D);
from_rust_tuple!(A, B, C, D, E);
