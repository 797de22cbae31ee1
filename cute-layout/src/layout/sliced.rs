//! Slices: the modes that a coordinate leaves open, and the offset of the others.

use super::coord::{coord_mismatch, crd2idx};
use super::core::Layout;
use super::error::{Class, LayoutError};
use super::int_tuple::{Coord, IntTuple};
use super::leaf::Leaf;

/// Keeps the modes that the coordinate marks with `_` (CuTe's `slice`).
///
/// *Law.* `slice(c, L)(d) + L(c with 0 for _) == L(c with d for _)`.
///
/// *Source.* `cute/underscore.hpp` and `cute/layout.hpp`, `slice`.
///
/// # Errors
/// The coordinate's profile does not fit, or it has no `_`.
///
/// ```
/// use cute_layout::layout::{Layout, slice};
/// let layout: Layout = "((3,2),((2,3),2)):((4,1),((2,15),100))".parse()?;
/// assert_eq!(slice(&"(_,1)".parse()?, &layout)?.to_string(), "((3,2)):((4,1))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn slice(coord: &Coord, layout: &Layout) -> Result<Layout, LayoutError> {
    pick("slice", coord, layout, true)
}

/// Keeps the modes that the coordinate gives an integer for (CuTe's `dice`).
///
/// *Law.* The modes that `slice` leaves out: `dice(c, L)(c without _) == L(c with 0 for _)`.
///
/// *Source.* `cute/underscore.hpp` and `cute/layout.hpp`, `dice`.
///
/// # Errors
/// The coordinate's profile does not fit, or it has no integer.
///
/// ```
/// use cute_layout::layout::{Layout, dice};
/// let layout: Layout = "((3,2),((2,3),2)):((4,1),((2,15),100))".parse()?;
/// assert_eq!(dice(&"((1,_),((_,0),_))".parse()?, &layout)?.to_string(), "(3,3):(4,15)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn dice(coord: &Coord, layout: &Layout) -> Result<Layout, LayoutError> {
    pick("dice", coord, layout, false)
}

fn pick(op: &'static str, coord: &Coord, layout: &Layout, underscores: bool) -> Result<Layout, LayoutError> {
    if coord.is_leaf() && coord.has_underscore() == underscores {
        return Ok(layout.clone());
    }
    let mut kept = Vec::new();
    lift(coord, layout, underscores, &mut kept).map_err(|e| e.within(op, &[("coord", coord), ("layout", layout)]))?;
    if kept.is_empty() {
        let required = if underscores { "a `_` in the coordinate" } else { "an integer in the coordinate" };
        return Err(LayoutError::on(op, Class::Argument, &[("coord", coord), ("layout", layout)])
            .found(coord.to_string())
            .required(required)
            .because("no mode is left, and empty layouts do not exist"));
    }
    Layout::from_modes(kept)
}

fn lift(coord: &IntTuple, layout: &Layout, underscores: bool, kept: &mut Vec<Layout>) -> Result<(), LayoutError> {
    if coord.is_leaf() {
        if coord.has_underscore() == underscores {
            kept.push(layout.clone());
        }
        return Ok(());
    }
    if layout.shape().is_leaf() || coord.rank() != layout.rank() {
        return Err(coord_mismatch(coord, layout.shape()));
    }
    coord.modes().zip(layout.modes()).try_for_each(|(c, mode)| lift(&c, &mode, underscores, kept))
}

/// The slice, and the value that the coordinate contributes with `_` as 0 (CuTe's `slice_and_offset`).
///
/// *Law.* The layout at a coordinate that fills the `_` is the offset plus the slice at what was filled in.
///
/// *Source.* `cute/layout.hpp`, `slice_and_offset`.
///
/// # Errors
/// As for [`slice()`] and [`crd2idx`].
///
/// ```
/// use cute_layout::layout::{Layout, slice_and_offset};
/// let (row, offset) = slice_and_offset(&"(2,_)".parse()?, &"(4,8):(8,1)".parse()?)?;
/// assert_eq!((row.to_string(), offset.to_string()), ("(8):(1)".into(), "16".into()));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn slice_and_offset(coord: &Coord, layout: &Layout) -> Result<(Layout, IntTuple), LayoutError> {
    Ok((slice(coord, layout)?, crd2idx(&zeroed(coord), layout)?))
}

/// The coordinate with 0 for `_`.
pub(crate) fn zeroed(coord: &Coord) -> Coord {
    let leaves =
        coord.raw().iter().map(|leaf| if leaf.tag().is_any() { Leaf::int(0).nested_like(*leaf) } else { *leaf });
    IntTuple::from_leaves(leaves.collect())
}

/// The layout seen from a coordinate on: the same layout, and the offset of its new origin (CuTe's `domain_offset`).
///
/// *Law.* `layout(c + d) == offset + result(d)` for coordinates of the layout's own profile.
///
/// *Source.* `cute/layout.hpp`, `domain_offset`.
///
/// # Errors
/// As for [`crd2idx`].
///
/// ```
/// use cute_layout::layout::{Layout, domain_offset};
/// let (layout, offset) = domain_offset(&(2, 3).into(), &"(4,8):(8,1)".parse()?)?;
/// assert_eq!((layout.to_string(), offset.to_string()), ("(4,8):(8,1)".into(), "19".into()));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn domain_offset(coord: &Coord, layout: &Layout) -> Result<(Layout, IntTuple), LayoutError> {
    Ok((layout.clone(), crd2idx(coord, layout)?))
}
