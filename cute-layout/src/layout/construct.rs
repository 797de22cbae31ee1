//! Making layouts: compact in column-major, row-major or any order, like another layout, and the identity.

use super::coalesce::filter_zeros;
use super::core::{Layout, check_shape};
use super::error::{Class, LayoutError};
use super::int_tuple::{IntTuple, Leaves, Shape};
use super::leaf::{Leaf, Tag};
use super::number::{at_most, below, quotient, times, unknown};
use super::product::tiled_product;
use super::symbol::Term;
use super::tiler::Tiler;

/// The compact column-major layout of a shape: each stride is the product of the extents before it (CuTe's
/// `make_layout(shape)`). Modes of extent 1 get stride 0, as in CuTe.
///
/// *Law.* The value at index `i` is `i`, for every `i` below the size.
///
/// *Source.* `cute/layout.hpp`, `make_layout`.
///
/// # Errors
/// An extent is not positive, or the size does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::make_layout;
/// assert_eq!(make_layout(&(4, 8).into())?.to_string(), "(4,8):(1,4)");
/// assert_eq!(make_layout(&(1, 2).into())?.to_string(), "(1,2):(0,1)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_layout(shape: &Shape) -> Result<Layout, LayoutError> {
    check_shape(shape)?;
    let (stride, _) = compact_from(shape, Leaf::int(1))?;
    Ok(Layout::from_parts(shape.clone(), stride))
}

/// The compact row-major layout of a shape: the last mode has stride 1 (CuTe's `make_layout(shape, LayoutRight{})`).
///
/// *Law.* Compact: the values are `0 .. size`, each once; the last leaf has stride 1, each other the product of the
/// extents behind it.
///
/// *Source.* `cute/layout.hpp`, `make_layout` with `LayoutRight`.
///
/// # Errors
/// As for [`make_layout`].
///
/// ```
/// use cute_layout::layout::make_layout_right;
/// assert_eq!(make_layout_right(&(4, (2, 8)).into())?.to_string(), "(4,(2,8)):(16,(8,1))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_layout_right(shape: &Shape) -> Result<Layout, LayoutError> {
    check_shape(shape)?;
    let mut stride = shape.clone();
    compact(stride.raw_mut().iter_mut().rev(), Leaf::int(1))?;
    Ok(Layout::from_parts(shape.clone(), stride))
}

/// Column-major strides from a first stride on, and the stride after the last.
pub(crate) fn compact_from(shape: &IntTuple, start: Leaf) -> Result<(IntTuple, Leaf), LayoutError> {
    let mut stride = shape.clone();
    let end = compact(stride.raw_mut().iter_mut(), start)?;
    Ok((stride, end))
}

/// Turns extents into strides from a first one on, and gives the stride after the last.
fn compact<'a>(leaves: impl Iterator<Item = &'a mut Leaf>, start: Leaf) -> Result<Leaf, LayoutError> {
    let mut current = start;
    for leaf in leaves {
        let extent = *leaf;
        *leaf = if extent.is_one() { Leaf::int(0) } else { current }.nested_like(extent);
        current = times(current, extent)?;
    }
    Ok(current)
}

/// The compact layout whose strides grow in the order of `order`, an IntTuple weakly congruent with the shape (CuTe's
/// `make_ordered_layout`). Where two entries of the order are equal the left one comes first; CuTe gives both the same
/// stride there and the layout overlaps.
///
/// *Law.* The layout is compact: its image is `0 .. size`.
///
/// *Source.* `cute/layout.hpp`, `make_ordered_layout`.
///
/// # Errors
/// The order's profile does not fit the shape, an entry is not an integer, or an extent is not positive.
///
/// ```
/// use cute_layout::layout::make_ordered_layout;
/// let layout = make_ordered_layout(&(2, 2, 2, 2).into(), &(0, 2, 3, 1).into())?;
/// assert_eq!(layout.to_string(), "(2,2,2,2):(1,4,8,2)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_ordered_layout(shape: &Shape, order: &IntTuple) -> Result<Layout, LayoutError> {
    check_shape(shape)?;
    if order.raw().iter().any(|key| Term::of(*key).is_none()) {
        return Err(LayoutError::on("make_ordered_layout", Class::Argument, &[("shape", shape), ("order", order)])
            .found(order.to_string())
            .required("integers or symbols at every leaf of the order"));
    }
    let mut keys = Vec::with_capacity(shape.leaf_count());
    keys_of(shape, order, &mut keys)?;
    let turn = turns(&keys, shape.raw()).map_err(|e| e.of(&[("shape", shape), ("order", order)]))?;
    let mut stride = shape.clone();
    let mut current = Leaf::int(1);
    for i in turn {
        current = compact([&mut stride.raw_mut()[i]].into_iter(), current)?;
    }
    Ok(Layout::from_parts(shape.clone(), stride))
}

/// The places of the leaves in the order of their keys, ties from left to right.
fn turns(keys: &[Leaf], extents: &[Leaf]) -> Result<Vec<usize>, LayoutError> {
    let mut turn: Vec<usize> = (0..keys.len()).collect();
    for i in 1..turn.len() {
        let mut at = i;
        while at > 0 && !at_most(keys[turn[at - 1]], keys[turn[at]]) {
            let (before, after) = (turn[at - 1], turn[at]);
            // Where the keys may also be the same, the one behind must have extent 1 then: no stride depends on it.
            let alone = || quotient(keys[before], times(keys[after], extents[after]).ok()?);
            let later = below(keys[after], keys[before])
                || at_most(keys[after], keys[before]) && keys[after].value > 0 && alone().is_some();
            if !later {
                let found = format!("{} and {}", IntTuple::leaf(keys[before]), IntTuple::leaf(keys[after]));
                return Err(unknown("make_ordered_layout", found).required("keys of which one is never larger"));
            }
            turn.swap(at - 1, at);
            at -= 1;
        }
    }
    Ok(turn)
}

/// The entry of an order for each leaf of a shape.
fn keys_of(shape: &IntTuple, guide: &IntTuple, keys: &mut Vec<Leaf>) -> Result<(), LayoutError> {
    if guide.is_leaf() {
        keys.extend(std::iter::repeat_n(guide.raw()[0].bare(), shape.leaf_count()));
        return Ok(());
    }
    if shape.is_leaf() || shape.rank() != guide.rank() {
        return Err(LayoutError::new("make_ordered_layout", Class::MismatchedRanks)
            .of(&[("shape", shape), ("order", guide)])
            .found(format!("rank {} against rank {}", guide.rank(), shape.rank()))
            .required("an order whose profile the shape refines"));
    }
    shape.modes().zip(guide.modes()).try_for_each(|(s, g)| keys_of(&s, &g, keys))
}

/// The compact layout of the same shape whose strides have the same order; strides of 0 stay 0 (CuTe's
/// `make_layout_like`).
///
/// *Law.* Compact on its non-zero modes, in the order of the layout's strides.
///
/// *Source.* `cute/layout.hpp`, `make_layout_like`.
///
/// # Errors
/// A stride is not an integer.
///
/// ```
/// use cute_layout::layout::make_layout_like;
/// assert_eq!(make_layout_like(&"(2,2,2,2):(0,2,4,1)".parse()?)?.to_string(), "(2,2,2,2):(0,2,4,1)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_layout_like(layout: &Layout) -> Result<Layout, LayoutError> {
    let ordered = make_ordered_layout(filter_zeros(layout).shape(), layout.stride())
        .map_err(|e| e.within("make_layout_like", &[("layout", layout)]))?;
    Ok(Layout::from_parts(layout.shape().clone(), ordered.into_parts().1))
}

/// A layout for registers: mode 0 compact and column-major first, the other modes in the order of their strides (CuTe's
/// `make_fragment_like`).
///
/// *Law.* Compact on its non-zero modes; mode 0 counts up from 1, whatever its strides were.
///
/// *Source.* `cute/layout.hpp`, `make_fragment_like`.
///
/// # Errors
/// A stride past mode 0 is not an integer.
///
/// ```
/// use cute_layout::layout::make_fragment_like;
/// assert_eq!(make_fragment_like(&"(4,8):(8,1)".parse()?)?.to_string(), "(4,(8)):(1,(4))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_fragment_like(layout: &Layout) -> Result<Layout, LayoutError> {
    let mut modes = layout.modes();
    let (Some(first), true) = (modes.next(), layout.rank() > 1) else {
        return make_layout(layout.shape());
    };
    let rest: Vec<Layout> = modes.collect();
    let (stride, _) = compact_from(filter_zeros(&first).shape(), Leaf::int(1))?;
    let first = Layout::from_parts(first.shape().clone(), stride);
    let shape = IntTuple::tuple(rest.iter().map(|mode| mode.shape().clone()))?;
    let order = IntTuple::tuple(rest.iter().map(|mode| mode.stride().clone()))?;
    let rest =
        make_ordered_layout(&shape, &order).map_err(|e| e.within("make_fragment_like", &[("layout", layout)]))?;
    tiled_product(&first, &Tiler::Layout(rest))
}

/// The layout that maps a coordinate to itself: every stride is the basis element of its own leaf (CuTe's
/// `make_identity_layout`).
///
/// *Law.* The value at a coordinate is that coordinate.
///
/// *Source.* `cute/layout.hpp`, `make_identity_layout`; `cute/numeric/arithmetic_tuple.hpp`, `ScaledBasis`.
///
/// # Errors
/// An extent is not positive, or the shape is nested too deeply for basis elements.
///
/// ```
/// use cute_layout::layout::make_identity_layout;
/// assert_eq!(make_identity_layout(&(2, (3, 4)).into())?.to_string(), "(2,(3,4)):(1@0,(1@0@1,1@1@1))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_identity_layout(shape: &Shape) -> Result<Layout, LayoutError> {
    check_shape(shape)?;
    let mut leaves = Leaves::new();
    for (i, leaf) in shape.raw().iter().enumerate() {
        let path = shape.path_of(i);
        let indices: Option<Vec<u8>> = path.iter().map(|index| u8::try_from(*index).ok()).collect();
        let Some(tag) = indices.as_deref().and_then(Tag::basis) else {
            return Err(LayoutError::on("make_identity_layout", Class::Limit, &[("shape", shape)])
                .found(format!("a leaf at {path:?}"))
                .required("at most five levels of nesting and 256 modes in each"));
        };
        leaves.push(Leaf::tagged(1, tag).nested_like(*leaf));
    }
    Ok(Layout::from_parts(shape.clone(), IntTuple::from_leaves(leaves)))
}
