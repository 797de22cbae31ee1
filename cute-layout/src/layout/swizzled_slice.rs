//! Slices of swizzled layouts.

use super::coalesce::coalesce;
use super::composed::{AnyLayout, ComposedLayout};
use super::composition::{Cute, composition, cute_composition};
use super::coord::crd2idx_int;
use super::core::{Flat, Layout};
use super::error::{Class, LayoutError, add};
use super::int_tuple::{Coord, IntTuple};
use super::leaf::Leaf;
use super::sliced::{dice, slice, slice_and_offset, zeroed};
use super::swizzle::Swizzle;

/// Whether the integers of a coordinate are known when the program is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CoordKind {
    /// `Int<n>` in CuTe.
    Static,
    /// `int` in CuTe: the result's strides may depend on it, and modes with such strides do not merge.
    Dynamic,
}

/// The slice and its offset, where the layout may be swizzled (CuTe's `slice_and_offset`). Where the modes that are left
/// touch only one side of the swizzle, the slice is a plain layout.
///
/// *Law.* The layout at a coordinate that fills the `_` is the offset plus the slice at what was filled in.
///
/// *Source.* `cute/swizzle_layout.hpp`, `slice_and_offset`.
///
/// # Errors
/// As for [`slice_and_offset`]; the modes that are taken do not compose with the swizzle's bits.
///
/// ```
/// use cute_layout::layout::{CoordKind, slice_and_offset_any};
/// let layout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
/// let (row, offset) = slice_and_offset_any(&"(3,_)".parse()?, &layout, CoordKind::Static)?;
/// assert_eq!(row.to_string(), "((4,2)):((-1,4))");
/// assert_eq!(offset, 27);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn slice_and_offset_any(
    coord: &Coord,
    layout: &AnyLayout,
    kind: CoordKind,
) -> Result<(AnyLayout, i64), LayoutError> {
    match layout {
        AnyLayout::Composed(composed) => match composed.swizzle() {
            Some(swizzle) => slice_swizzled(coord, swizzle, composed, kind),
            None => {
                let (inner, offset) = slice_and_offset_any(coord, composed.inner(), kind)?;
                Ok((composed.outer().clone().after(add(composed.offset(), offset)?, inner)?, 0))
            }
        },
        other => {
            let (slice, offset) = slice_and_offset(coord, other.domain()?)?;
            Ok((AnyLayout::Plain(slice), int_offset(&offset)?))
        }
    }
}

fn int_offset(offset: &IntTuple) -> Result<i64, LayoutError> {
    offset.as_int().ok_or_else(|| {
        LayoutError::new("slice_and_offset", Class::StrideKind)
            .found(format!("offset {offset}"))
            .required("integer strides")
    })
}

fn slice_swizzled(
    coord: &Coord,
    swizzle: Swizzle,
    composed: &ComposedLayout,
    kind: CoordKind,
) -> Result<(AnyLayout, i64), LayoutError> {
    let inner = composed.domain()?;
    let sliced = slice(coord, inner)?;
    if coord.all_underscore() {
        return Ok((composed.over(sliced), 0));
    }
    // Which bits of an index a mode has decides the form of the slice.
    inner.require_ints("slice_and_offset")?;
    let diced = dice(coord, inner)?;
    let taken = crd2idx_int(&zeroed(coord), inner)?;
    // The slice as it is, with the taken part added to the offset.
    let kept = (AnyLayout::compose(AnyLayout::Swizzle(swizzle), add(composed.offset(), taken)?, sliced.clone()), 0);
    // The bits of the taken part and of the rest must not carry into each other.
    let (Some(left), Some(of_taken)) = (bits_of(&sliced), bits_of(&diced)) else { return Ok(kept) };
    if left & of_taken != 0 || composed.offset() < 0 || taken < 0 {
        return Ok(kept);
    }
    let touched = swizzle.y_mask() | swizzle.z_mask();
    let (taken_rest, active) = (taken & !touched, left & touched);
    let offset_zy = composed.offset() ^ taken & touched;
    let apart = if active & !swizzle.apply(active) != 0 || swizzle.bits() == 0 {
        (AnyLayout::compose(AnyLayout::Swizzle(swizzle), offset_zy, sliced), taken_rest)
    } else {
        let dynamic = if kind == CoordKind::Dynamic { of_taken } else { 0 };
        let result = decayed(swizzle, offset_zy, dynamic, &sliced)?;
        (AnyLayout::Plain(result), add(swizzle.apply(offset_zy), taken_rest)?)
    };
    // CuTe joins the offset's bits with the others by exclusive or. Where they meet that may be right or not.
    let meets = (left | taken) & composed.offset() != 0;
    if meets && !same_values(&apart, &kept)? { Ok(kept) } else { Ok(apart) }
}

/// The most values that are compared where an offset and a coordinate share bits.
const MOST_MET: i64 = 1 << 12;

/// Whether two slices with their offsets are one function, for slices that are not too large.
fn same_values(a: &(AnyLayout, i64), b: &(AnyLayout, i64)) -> Result<bool, LayoutError> {
    let size = a.0.domain()?.size();
    for i in 0..size.min(MOST_MET) {
        if add(a.0.at(i)?, a.1)? != add(b.0.at(i)?, b.1)? {
            return Ok(false);
        }
    }
    Ok(size <= MOST_MET)
}

/// The bits that the values of a layout have, where every mode has bits of its own: extents and strides are powers of two
/// and no two modes share a bit.
pub(super) fn bits_of(layout: &Layout) -> Option<i64> {
    let mut bits = 0i64;
    for (s, d) in layout.pairs() {
        if !s.is_int() || !d.is_int() {
            return None;
        }
        if d.value == 0 || s.value == 1 {
            continue;
        }
        if d.value < 0 || d.value.count_ones() != 1 || s.value.count_ones() != 1 {
            return None;
        }
        let own = (s.value - 1).checked_mul(d.value)?;
        if own & bits != 0 {
            return None;
        }
        bits |= own;
    }
    Some(bits)
}

/// The plain layout that a swizzle is, from an offset on, for indices that touch one side of it only.
fn decayed(swizzle: Swizzle, offset: i64, dynamic: i64, sliced: &Layout) -> Result<Layout, LayoutError> {
    let low_z = swizzle.z_mask() & swizzle.z_mask().wrapping_neg();
    let low_y = swizzle.y_mask() & swizzle.y_mask().wrapping_neg();
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    // A changed bit counts up or down as the bit that is read is clear or set; a bit that is read also moves the bit that
    // it changes. A stride depends on the coordinate where it looks at a bit that the coordinate gives.
    let changed = |i: i64| (if offset & (low_y << i) == 0 { low_z << i } else { -(low_z << i) }, low_y << i);
    let read =
        |i: i64| (if offset & (low_z << i) == 0 { (low_y + low_z) << i } else { (low_y - low_z) << i }, low_z << i);
    let run = |is_changed: bool| {
        (0..bits).map(move |i| {
            let (stride, looks) = if is_changed { changed(i) } else { read(i) };
            (2, stride, looks & dynamic != 0)
        })
    };
    let mut modes: Vec<(i64, i64, bool)> = vec![(1i64 << base, 1, false)];
    modes.extend(run(low_z < low_y));
    modes.push((1i64 << (shift.abs() - bits), 1i64 << (base + bits), false));
    modes.extend(run(low_z >= low_y));
    modes.push((1, 1i64 << (base + bits + shift.abs()), false));
    let all: Flat = modes.iter().map(|(s, d, _)| (Leaf::int(*s), Leaf::int(*d))).collect();
    let exact = composition(&Layout::from_flat(&all)?, sliced)?;
    if modes.iter().all(|(_, _, dynamic)| !dynamic) {
        return Ok(exact);
    }
    // CuTe does not merge modes whose strides are known at run time only.
    match cute_composition(&unmerged(&modes), sliced) {
        Some(Cute::Accepts(layout)) if coalesce(&layout)? == coalesce(&exact)? => Ok(layout),
        _ => Ok(exact),
    }
}

/// Coalesced as far as strides that are known at compile time allow.
fn unmerged(modes: &[(i64, i64, bool)]) -> Flat {
    let mut result: Vec<(i64, i64, bool)> = Vec::new();
    let last = modes.len() - 1;
    for (i, (s, d, dynamic)) in modes.iter().enumerate() {
        if *s == 1 && i < last {
            continue;
        }
        match result.last_mut() {
            Some((before_s, before_d, false)) if !dynamic && *before_s * *before_d == *d => *before_s *= s,
            _ => result.push((*s, *d, *dynamic)),
        }
    }
    result.iter().map(|(s, d, _)| (Leaf::int(*s), Leaf::int(*d))).collect()
}
