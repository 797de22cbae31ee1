//! Operations whose result on a swizzled layout is not simply that of its inner layout: slices, inverses, casts, common
//! vectors, products.

use super::coalesce::flatten;
use super::composed::{AnyLayout, ComposedLayout, Map, compose_any};
use super::composition::{Cute, composition, fold_unmerged};
use super::coord::{crd2idx_int, dice, slice, slice_and_offset, zeroed};
use super::core::{Flat, Layout};
use super::error::{Class, LayoutError, add};
use super::int_tuple::{Coord, IntTuple};
use super::inverse::{
    greatest_common_divisor, left_inverse, max_alignment, max_common_layout, max_common_vector,
    right_inverse,
};
use super::leaf::Leaf;
use super::product::logical_product;
use super::recast::{downcast, recast_ratio, upcast};
use super::swizzle::Swizzle;
use super::tiler::Tiler;

/// The right inverse where the layout may be swizzled: the inverse functions in the opposite order (CuTe's
/// `right_inverse`).
///
/// *Law.* `layout(result(i)) == i` for every `i` below the size of the inner layout's inverse, where the offset is 0.
///
/// # Errors
/// As for [`right_inverse`] and [`compose_any`].
pub fn right_inverse_any(layout: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    inverse(layout, right_inverse)
}

/// The left inverse where the layout may be swizzled (CuTe's `left_inverse`).
///
/// # Errors
/// As for [`left_inverse`] and [`compose_any`].
pub fn left_inverse_any(layout: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    inverse(layout, left_inverse)
}

fn inverse(
    layout: &AnyLayout,
    of: fn(&Layout) -> Result<Layout, LayoutError>,
) -> Result<AnyLayout, LayoutError> {
    let composed = match layout {
        AnyLayout::Plain(layout) => return of(layout).map(AnyLayout::Plain),
        AnyLayout::Swizzle(swizzle) => return Ok(AnyLayout::Swizzle(*swizzle)),
        AnyLayout::Composed(composed) => composed,
    };
    let inner = of(composed.domain()?)?;
    match composed.outer() {
        Map::Swizzle(swizzle) if composed.offset() == 0 => {
            compose_any(&AnyLayout::Plain(inner), &AnyLayout::Swizzle(*swizzle))
        }
        outer => {
            let outer = match outer {
                Map::Swizzle(swizzle) => Map::Swizzle(*swizzle),
                Map::Layout(layout) => Map::Layout(of(layout)?),
            };
            let offset = composed
                .offset()
                .checked_neg()
                .ok_or_else(|| LayoutError::overflow("inverse", "the offset"))?;
            Ok(AnyLayout::Composed(ComposedLayout::new(
                Map::Layout(inner),
                offset,
                outer,
            )))
        }
    }
}

/// The layout seen with elements of another size, where it may be swizzled: every part is recast (CuTe's
/// `recast_layout`; `upcast` by `n` is from 1 to `n`).
///
/// # Errors
/// As for [`upcast`] and [`downcast`]; the ratio is not a power of two; the offset is not a multiple of it.
pub fn recast_any(
    layout: &AnyLayout,
    old_bits: i64,
    new_bits: i64,
) -> Result<AnyLayout, LayoutError> {
    let (up, down) = recast_ratio(old_bits, new_bits)?;
    let plain = |layout: &Layout| -> Result<Layout, LayoutError> {
        let smaller = if up == 1 {
            layout.clone()
        } else {
            upcast(layout, up)?
        };
        if down == 1 {
            Ok(smaller)
        } else {
            downcast(&smaller, down)
        }
    };
    let context = |e: LayoutError| {
        e.within(
            "recast_layout",
            &[
                ("layout", layout),
                ("old bits", &old_bits),
                ("new bits", &new_bits),
            ],
        )
    };
    match layout {
        AnyLayout::Plain(layout) => plain(layout).map(AnyLayout::Plain),
        AnyLayout::Swizzle(swizzle) => swizzle.recast(old_bits, new_bits).map(AnyLayout::Swizzle),
        AnyLayout::Composed(composed) => {
            let outer = match composed.outer() {
                Map::Swizzle(swizzle) => {
                    Map::Swizzle(swizzle.recast(old_bits, new_bits).map_err(context)?)
                }
                Map::Layout(layout) => Map::Layout(plain(layout).map_err(context)?),
            };
            if composed.offset() % up != 0 {
                return Err(LayoutError::new("recast_layout", Class::Upcast)
                    .operand("layout", composed)
                    .found(format!("offset {} and factor {up}", composed.offset()))
                    .required("an offset that is a multiple of the factor"));
            }
            let offset = super::error::mul(composed.offset() / up, down).map_err(context)?;
            Ok(AnyLayout::compose(
                outer,
                offset,
                plain(composed.domain()?).map_err(context)?,
            ))
        }
    }
    .map_err(context)
}

/// The largest factor by which the layout can be upcast, where it may be swizzled (CuTe's `max_alignment`).
///
/// # Errors
/// As for [`max_alignment`].
pub fn max_alignment_any(layout: &AnyLayout) -> Result<i64, LayoutError> {
    match layout {
        AnyLayout::Plain(layout) => max_alignment(layout),
        AnyLayout::Swizzle(swizzle) => Ok(1i64 << swizzle.base()),
        AnyLayout::Composed(composed) => match composed.swizzle() {
            None => Ok(1),
            Some(swizzle) => {
                let both = greatest_common_divisor(1i64 << swizzle.base(), composed.offset());
                Ok(greatest_common_divisor(
                    both,
                    max_alignment(composed.domain()?)?,
                ))
            }
        },
    }
}

/// How many leading indices a swizzle and its offset leave in place: `Sw(offset + i) - offset == i` below this.
fn kept_in_place(layout: &AnyLayout) -> Option<i64> {
    match layout {
        AnyLayout::Composed(composed) => composed.swizzle().map(|swizzle| 1i64 << swizzle.base()),
        _ => None,
    }
}

/// How many elements two layouts have in common, where either may be swizzled (CuTe's `max_common_vector`): at most the
/// indices that the swizzles leave in place, unless both are swizzled the same way.
///
/// # Errors
/// As for [`max_common_vector`].
pub fn max_common_vector_any(a: &AnyLayout, b: &AnyLayout) -> Result<i64, LayoutError> {
    let common = max_common_vector(a.domain()?, b.domain()?)?;
    if let (AnyLayout::Composed(x), AnyLayout::Composed(y)) = (a, b)
        && x.swizzle().is_some()
        && x.swizzle() == y.swizzle()
    {
        return Ok(common);
    }
    require_swizzled("max_common_vector", a)?;
    require_swizzled("max_common_vector", b)?;
    Ok([kept_in_place(a), kept_in_place(b)]
        .into_iter()
        .flatten()
        .fold(common, i64::min))
}

/// The common layout of two layouts, where either may be swizzled (CuTe's `max_common_layout`).
///
/// # Errors
/// As for [`max_common_layout`].
pub fn max_common_layout_any(a: &AnyLayout, b: &AnyLayout) -> Result<Layout, LayoutError> {
    require_swizzled("max_common_layout", a)?;
    require_swizzled("max_common_layout", b)?;
    let common = max_common_layout(a.domain()?, b.domain()?)?;
    let kept = [kept_in_place(a), kept_in_place(b)]
        .into_iter()
        .flatten()
        .min();
    match kept {
        Some(kept) if kept < common.size() => composition(&common, &Layout::mode_of(kept, 1)?),
        _ => Ok(common),
    }
}

fn require_swizzled(op: &'static str, layout: &AnyLayout) -> Result<(), LayoutError> {
    match layout {
        AnyLayout::Composed(composed) if composed.swizzle().is_none() => {
            Err(LayoutError::new(op, Class::Argument)
                .operand("layout", layout)
                .required("a layout or a swizzled layout"))
        }
        _ => Ok(()),
    }
}

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
/// # Errors
/// As for [`slice_and_offset`]; the modes that are taken do not compose with the swizzle's bits.
///
/// ```
/// use cutemplate::layout::{CoordKind, slice_and_offset_any};
/// let layout = "Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?;
/// let (row, offset) = slice_and_offset_any(&"(3,_)".parse()?, &layout, CoordKind::Static)?;
/// assert_eq!(row.to_string(), "((4,2)):((-1,4))");
/// assert_eq!(offset, 27);
/// # Ok::<(), cutemplate::layout::LayoutError>(())
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
                let (inner, offset) = slice_and_offset(coord, composed.domain()?)?;
                let offset = add(composed.offset(), int_offset(&offset)?)?;
                Ok((
                    AnyLayout::compose(composed.outer().clone(), offset, inner),
                    0,
                ))
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

/// The part of a value that a swizzle reads or changes, and the rest.
fn split(swizzle: Swizzle, value: i64) -> (i64, i64) {
    let touched = swizzle.y_mask() | swizzle.z_mask();
    (value & touched, value & !touched)
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
    let diced = dice(coord, inner)?;
    let taken = crd2idx_int(&zeroed(coord), inner)?;
    // The bits of what is taken and of what is left must not carry into each other, nor into the offset.
    let left = bits_of(&sliced);
    let (Some(left), Some(of_taken)) = (left, bits_of(&diced)) else {
        return Ok((keep(swizzle, composed, sliced, taken)?, 0));
    };
    if left & of_taken != 0
        || (left | of_taken) & composed.offset() != 0
        || composed.offset() < 0
        || taken < 0
    {
        return Ok((keep(swizzle, composed, sliced, taken)?, 0));
    }
    let (taken_zy, taken_rest) = split(swizzle, taken);
    let offset_zy = composed.offset() ^ taken_zy;
    let active = left & (swizzle.y_mask() | swizzle.z_mask());
    if active & !swizzle.apply(active) != 0 || swizzle.bits() == 0 {
        return Ok((
            AnyLayout::compose(Map::Swizzle(swizzle), offset_zy, sliced),
            taken_rest,
        ));
    }
    let dynamic = if kind == CoordKind::Dynamic {
        of_taken
    } else {
        0
    };
    let result = decayed(swizzle, offset_zy, dynamic, &sliced)?;
    Ok((
        AnyLayout::Plain(result),
        add(swizzle.apply(offset_zy), taken_rest)?,
    ))
}

/// The slice as it is, with what is taken added to the offset.
fn keep(
    swizzle: Swizzle,
    composed: &ComposedLayout,
    sliced: Layout,
    taken: i64,
) -> Result<AnyLayout, LayoutError> {
    Ok(AnyLayout::compose(
        Map::Swizzle(swizzle),
        add(composed.offset(), taken)?,
        sliced,
    ))
}

/// The bits that the values of a layout have, where every mode has bits of its own: extents and strides are powers of two
/// and no two modes share a bit.
fn bits_of(layout: &Layout) -> Option<i64> {
    let mut bits = 0i64;
    for (s, d) in layout.pairs() {
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
fn decayed(
    swizzle: Swizzle,
    offset: i64,
    dynamic: i64,
    sliced: &Layout,
) -> Result<Layout, LayoutError> {
    let low_z = swizzle.z_mask() & swizzle.z_mask().wrapping_neg();
    let low_y = swizzle.y_mask() & swizzle.y_mask().wrapping_neg();
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    // A changed bit counts up or down as the bit that is read is clear or set; a bit that is read also moves the bit that
    // it changes. A stride depends on the coordinate where it looks at a bit that the coordinate gives.
    let changed = |i: i64| {
        (
            if offset & (low_y << i) == 0 {
                low_z << i
            } else {
                -(low_z << i)
            },
            low_y << i,
        )
    };
    let read = |i: i64| {
        (
            if offset & (low_z << i) == 0 {
                (low_y + low_z) << i
            } else {
                (low_y - low_z) << i
            },
            low_z << i,
        )
    };
    let mut modes: Vec<(i64, i64, bool)> = vec![(1i64 << base, 1, false)];
    for i in 0..bits {
        let (stride, looks) = if low_z < low_y { changed(i) } else { read(i) };
        modes.push((2, stride, looks & dynamic != 0));
    }
    modes.push((1i64 << (shift.abs() - bits), 1i64 << (base + bits), false));
    for i in 0..bits {
        let (stride, looks) = if low_z < low_y { read(i) } else { changed(i) };
        modes.push((2, stride, looks & dynamic != 0));
    }
    modes.push((1, 1i64 << (base + bits + shift.abs()), false));
    let all: Flat = modes
        .iter()
        .map(|(s, d, _)| (Leaf::int(*s), Leaf::int(*d)))
        .collect();
    let exact = composition(&Layout::from_flat(&all)?, sliced)?;
    if modes.iter().all(|(_, _, dynamic)| !dynamic) {
        return Ok(exact);
    }
    // CuTe does not merge modes whose strides are known at run time only.
    match fold_unmerged(&unmerged(&modes), sliced) {
        Some(Cute::Accepts(layout))
            if super::coalesce::coalesce(&layout)? == super::coalesce::coalesce(&exact)? =>
        {
            Ok(layout)
        }
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
            Some((before_s, before_d, false)) if !dynamic && *before_s * *before_d == *d => {
                *before_s *= s
            }
            _ => result.push((*s, *d, *dynamic)),
        }
    }
    result
        .iter()
        .map(|(s, d, _)| (Leaf::int(*s), Leaf::int(*d)))
        .collect()
}

/// `logical_product` with a swizzled tiler: the swizzle is carried over to where the tiler's bits end up in the product.
///
/// *Law.* The copies are those of the product with the plain tiler, in the swizzled order.
///
/// # Errors
/// As for [`logical_product`]; the tiler has an offset; the carried masks are not a swizzle's.
pub fn logical_product_any(block: &AnyLayout, tiler: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    let AnyLayout::Composed(swizzled) = tiler else {
        let tiler = Tiler::Layout(tiler.domain()?.clone());
        return block.map_domain(|layout| logical_product(layout, &tiler));
    };
    let (Some(swizzle), 0) = (swizzled.swizzle(), swizzled.offset()) else {
        return Err(LayoutError::new("logical_product", Class::Swizzle)
            .operand("tiler", tiler)
            .required("a swizzled tiler without an offset"));
    };
    let block = block.plain("logical_product")?;
    let inner = swizzled.domain()?;
    let product = logical_product(block, &Tiler::Layout(inner.clone()))?;
    let copies = flatten(&product.mode(1).unwrap_or_else(Layout::unit));
    let active = bits_of(inner).unwrap_or(0) & (swizzle.y_mask() | swizzle.z_mask());
    let through = |mask: i64| copies.at(inner.at(active & mask)?);
    let carried = Swizzle::from_masks(through(swizzle.y_mask())?, through(swizzle.z_mask())?)
        .map_err(|e| e.within("logical_product", &[("block", block), ("tiler", tiler)]))?;
    let result = AnyLayout::compose(Map::Swizzle(carried), 0, product);
    Ok(result)
}
