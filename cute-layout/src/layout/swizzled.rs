//! Operations whose result on a swizzled layout is not simply that of its inner layout: inverses, casts, common vectors,
//! products.

use super::coalesce::flatten;
use super::compose_any::compose_any;
use super::composed::{AnyLayout, ComposedLayout, MOST_SCANNED};
use super::core::Layout;
use super::error::{Class, LayoutError};
use super::inverse::{first, greatest_common_divisor, left_inverse, max_alignment, max_common_layout, right_inverse};
use super::product::logical_product;
use super::recast::{recast_layout, recast_ratio};
use super::swizzle::Swizzle;
use super::tiler::Tiler;

/// The right inverse where the layout may be swizzled: the inverse functions in the opposite order (CuTe's
/// `right_inverse`).
///
/// *Law.* `layout(result(i)) == i` for every `i` below the size of the inner layout's inverse, where the offset is 0.
///
/// *Source.* `cute/swizzle_layout.hpp`, `right_inverse`.
///
/// # Errors
/// As for [`right_inverse`] and [`compose_any`].
///
/// ```
/// use cute_layout::layout::right_inverse_any;
/// let layout = "Sw<2,0,3> o 0 o (8,8):(8,1)".parse()?;
/// let inverse = right_inverse_any(&layout)?;
/// for i in 0..64 {
///     assert_eq!(layout.at(inverse.at(i)?)?, i);
/// }
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn right_inverse_any(layout: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    let result = inverse(layout, right_inverse)?;
    checked("right_inverse", layout, &result, result.domain(), |i| Ok(layout.at(result.at(i)?)? == i))?;
    Ok(result)
}

/// The left inverse where the layout may be swizzled (CuTe's `left_inverse`).
///
/// *Law.* `layout(result(layout(i))) == layout(i)` for every `i` below the size, where the offset is 0.
///
/// *Source.* `cute/swizzle_layout.hpp`, `left_inverse`.
///
/// # Errors
/// As for [`left_inverse`] and [`compose_any`].
///
/// ```
/// use cute_layout::layout::left_inverse_any;
/// let layout = "Sw<2,0,3> o 0 o (8,8):(8,1)".parse()?;
/// let inverse = left_inverse_any(&layout)?;
/// for i in 0..64 {
///     assert_eq!(inverse.at(layout.at(i)?)?, i);
/// }
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn left_inverse_any(layout: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    let result = inverse(layout, left_inverse)?;
    let leads_back = |i: i64| {
        let value = layout.at(i)?;
        Ok(layout.at(result.at(value)?)? == value)
    };
    checked("left_inverse", layout, &result, layout.domain(), leads_back)?;
    Ok(result)
}

/// A swizzle may move an index or a value past the end of the inner layout or its inverse: the law is looked at, at every
/// index of the domain up to [`MOST_SCANNED`].
fn checked(
    op: &'static str,
    layout: &AnyLayout,
    result: &AnyLayout,
    domain: Result<&Layout, LayoutError>,
    holds: impl Fn(i64) -> Result<bool, LayoutError>,
) -> Result<(), LayoutError> {
    let swizzled =
        matches!(layout, AnyLayout::Composed(c) if c.is_nested() || c.offset() == 0 && c.swizzle().is_some());
    let count = if swizzled { domain?.size() } else { 0 };
    for i in (0..count).take_while(|_| count <= MOST_SCANNED) {
        if !holds(i)? {
            return Err(LayoutError::on(op, Class::QuasiInverse, &[("layout", layout)])
                .found(format!("{result}, which does not lead back at index {i}"))
                .required("an inverse at every index")
                .because("the swizzle moves an index past the end of the inner layout's inverse")
                .help("give the inner layout the whole block that the swizzle permutes"));
        }
    }
    Ok(())
}

fn inverse(layout: &AnyLayout, of: fn(&Layout) -> Result<Layout, LayoutError>) -> Result<AnyLayout, LayoutError> {
    let composed = match layout {
        AnyLayout::Plain(layout) => return of(layout).map(AnyLayout::Plain),
        AnyLayout::Swizzle(swizzle) => return Ok(AnyLayout::Swizzle(*swizzle)),
        AnyLayout::Composed(composed) => composed,
    };
    if composed.is_nested() {
        return inverse_of_nested(layout, composed, of);
    }
    let inner = AnyLayout::Plain(of(composed.domain()?)?);
    if composed.offset() == 0 && composed.swizzle().is_some() {
        return compose_any(&inner, composed.outer());
    }
    // The inverse of the inner layout is applied last, and beyond its domain.
    composed.domain()?.require_ints("inverse")?;
    let offset = composed.offset().checked_neg().ok_or_else(|| LayoutError::overflow("inverse", "the offset"))?;
    Ok(AnyLayout::Composed(ComposedLayout::new(inner, offset, inverse(composed.outer(), of)?)))
}

/// The inverse of a chain of functions that do not compose pairwise: their inverses in the opposite order. Every index
/// must be checked, which an offset would lead below 0.
fn inverse_of_nested(
    layout: &AnyLayout,
    composed: &ComposedLayout,
    of: fn(&Layout) -> Result<Layout, LayoutError>,
) -> Result<AnyLayout, LayoutError> {
    let size = composed.domain()?.size();
    if composed.offset() != 0 || size > MOST_SCANNED {
        return Err(LayoutError::on("inverse", Class::Limit, &[("layout", layout)])
            .found(format!("more than two functions, one after the other, offset {}, size {size}", composed.offset()))
            .required(format!("offsets of 0, and at most {MOST_SCANNED} coordinates, since each one is checked")));
    }
    compose_any(&inverse(composed.inner(), of)?, &inverse(composed.outer(), of)?)
}

/// The layout seen with elements of another size, where it may be swizzled: every part is recast (CuTe's
/// `recast_layout`; `upcast` by `n` is from 1 to `n`).
///
/// *Law.* The same bytes, block by block: [`laws::recast_any`](super::laws::recast_any).
///
/// *Source.* `cute/swizzle_layout.hpp` and `cute/layout_composed.hpp`, `recast_layout`.
///
/// # Errors
/// As for [`recast_layout`](super::recast_layout). For a swizzle: the ratio is not a power of two, or the offset is not
/// a multiple of it. For a function after a layout that is not a swizzle: it covers other bytes, or is too large to be
/// checked.
///
/// ```
/// use cute_layout::layout::recast_any;
/// let bytes = "Sw<3,4,3> o 0 o (8,128):(128,1)".parse()?;
/// assert_eq!(recast_any(&bytes, 8, 16)?.to_string(), "Sw<3,3,3> o 0 o (8,64):(64,1)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn recast_any(layout: &AnyLayout, old_bits: i64, new_bits: i64) -> Result<AnyLayout, LayoutError> {
    let (up, down) = recast_ratio(old_bits, new_bits)?;
    match layout {
        AnyLayout::Plain(layout) => recast_layout(layout, old_bits, new_bits).map(AnyLayout::Plain),
        AnyLayout::Swizzle(swizzle) => swizzle.recast(old_bits, new_bits).map(AnyLayout::Swizzle),
        AnyLayout::Composed(composed) => recast_composed(composed, old_bits, new_bits, (up, down)),
    }
    .map_err(|e| e.within("recast_layout", &[("layout", layout), ("old bits", &old_bits), ("new bits", &new_bits)]))
}

/// A swizzle and an offset keep whole elements whole. Another function reads an index, which is none in other elements
/// unless its first mode counts up: the law is looked at, at every coordinate.
fn recast_composed(
    composed: &ComposedLayout,
    old_bits: i64,
    new_bits: i64,
    (up, down): (i64, i64),
) -> Result<AnyLayout, LayoutError> {
    let outer = recast_any(composed.outer(), old_bits, new_bits)?;
    let inner = recast_any(composed.inner(), old_bits, new_bits)?;
    if composed.offset() % up != 0 {
        return Err(LayoutError::new("recast_layout", Class::Upcast)
            .found(format!("offset {} and factor {up}", composed.offset()))
            .required("an offset that is a multiple of the factor")
            .because("an element of the new size would begin inside one"));
    }
    let offset = super::error::mul(composed.offset() / up, down)?;
    // As in CuTe, a swizzle whose bits all fall below an element stays in the text.
    let vanished = matches!(outer, AnyLayout::Swizzle(swizzle) if swizzle.bits() == 0);
    let result = if vanished {
        AnyLayout::Composed(ComposedLayout::new(outer, offset, inner))
    } else {
        outer.after(offset, inner)?
    };
    if (up, down) == (1, 1) || composed.swizzle().is_some() {
        return Ok(result);
    }
    let refuse = |class| LayoutError::new("recast_layout", class).required("a result that covers the same bytes");
    if composed.domain()?.size().saturating_mul(down) > MOST_SCANNED {
        return Err(refuse(Class::Limit).found(format!("more than {MOST_SCANNED} units, which are not looked at")));
    }
    match super::laws::recast_any(&AnyLayout::Composed(composed.clone()), up, down, &result) {
        Ok(()) => Ok(result),
        Err(broken) => Err(refuse(Class::Upcast).found(format!("{result}; {}", broken.at))),
    }
}

/// The largest factor by which the layout can be upcast, where it may be swizzled (CuTe's `max_alignment`).
///
/// *Law.* With `n` for the result: runs of `n` values that begin at multiples of `n` stay together.
///
/// *Source.* `cute/swizzle.hpp`, `max_alignment`; `cute/layout_composed.hpp` has 1 for every composed layout.
///
/// # Errors
/// As for [`max_alignment`].
///
/// ```
/// use cute_layout::layout::max_alignment_any;
/// assert_eq!(max_alignment_any(&"Sw<3,3,3> o 0 o (8,64):(64,1)".parse()?)?, 8);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn max_alignment_any(layout: &AnyLayout) -> Result<i64, LayoutError> {
    match layout {
        AnyLayout::Plain(layout) => max_alignment(layout),
        AnyLayout::Swizzle(swizzle) => Ok(1i64 << swizzle.base()),
        AnyLayout::Composed(composed) => match composed.swizzle() {
            None => Ok(1),
            Some(swizzle) => {
                let both = greatest_common_divisor(1i64 << swizzle.base(), composed.offset());
                Ok(greatest_common_divisor(both, max_alignment(composed.domain()?)?))
            }
        },
    }
}

/// Up to which index a swizzle after an offset counts up by 1 from where it begins; `None` for no bound.
fn counts_up(layout: &AnyLayout) -> Option<i64> {
    let AnyLayout::Composed(composed) = layout else { return None };
    let swizzle = composed.swizzle().filter(|swizzle| swizzle.bits() > 0)?;
    let block = 1i64 << swizzle.base();
    Some(block - composed.offset().rem_euclid(block))
}

/// Whether two layouts are swizzled in the same way.
fn alike(a: &AnyLayout, b: &AnyLayout) -> bool {
    let (AnyLayout::Composed(a), AnyLayout::Composed(b)) = (a, b) else { return false };
    a.swizzle().is_some() && (a.swizzle(), a.offset()) == (b.swizzle(), b.offset())
}

/// How many elements two layouts have in common, where either may be swizzled (CuTe's `max_common_vector`): at most the
/// indices that the swizzles leave in place, unless both are swizzled the same way.
///
/// *Law.* The size of [`max_common_layout_any`].
///
/// *Source.* `cute/swizzle_layout.hpp`, `max_common_vector`.
///
/// # Errors
/// As for [`max_common_vector`](super::max_common_vector).
///
/// ```
/// use cute_layout::layout::max_common_vector_any;
/// let swizzled = "Sw<2,3,3> o 0 o (4,64):(64,1)".parse()?;
/// let plain = "(4,64):(64,1)".parse()?;
/// assert_eq!(max_common_vector_any(&swizzled, &plain)?, 8);
/// assert_eq!(max_common_vector_any(&swizzled, &swizzled)?, 256);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn max_common_vector_any(a: &AnyLayout, b: &AnyLayout) -> Result<i64, LayoutError> {
    max_common_layout_any(a, b)?.shape().size()
}

/// The common layout of two layouts, where either may be swizzled (CuTe's `max_common_layout`).
///
/// *Law.* `a(result(i)) - a(0) == b(result(i)) - b(0)`, with `result(i)` in both domains. It is `i`, but where both are
/// swizzled in the same way: then the inner layouts count up together; see [`max_common_layout`].
///
/// *Source.* `cute/swizzle_layout.hpp`, `max_common_layout`.
///
/// # Errors
/// As for [`max_common_layout`].
///
/// ```
/// use cute_layout::layout::max_common_layout_any;
/// let swizzled = "Sw<2,3,3> o 0 o (4,64):(64,1)".parse()?;
/// let plain = "(4,64):(64,1)".parse()?;
/// assert_eq!(max_common_layout_any(&swizzled, &plain)?.to_string(), "8:4");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn max_common_layout_any(a: &AnyLayout, b: &AnyLayout) -> Result<Layout, LayoutError> {
    require_swizzled("max_common_layout", a)?;
    require_swizzled("max_common_layout", b)?;
    let common = max_common_layout(a.domain()?, b.domain()?)?;
    let most = [counts_up(a), counts_up(b)].into_iter().flatten().min();
    let Some(most) = most.filter(|_| !alike(a, b)) else { return Ok(common) };
    common.require_ints("max_common_layout")?;
    first(&common, most)
}

fn require_swizzled(op: &'static str, layout: &AnyLayout) -> Result<(), LayoutError> {
    if matches!(layout, AnyLayout::Composed(composed) if composed.swizzle().is_none()) {
        return Err(LayoutError::on(op, Class::Argument, &[("layout", layout)])
            .found("another function after a layout than one swizzle")
            .required("a layout or a swizzled layout"));
    }
    Ok(())
}

/// `logical_product` with a swizzled tiler (CuTe's overload of it): the swizzle is carried over to where the tiler's
/// bits end up in the product.
///
/// *Law.* The copies are those of the product with the plain tiler, in the swizzled order.
///
/// *Source.* `cute/swizzle_layout.hpp`, `logical_product` with a swizzled tiler.
///
/// # Errors
/// As for [`logical_product`]; the tiler has an offset; the carried masks are not a swizzle's.
///
/// ```
/// use cute_layout::layout::logical_product_any;
/// let result = logical_product_any(&"4:1".parse()?, &"Sw<1,0,1> o 0 o (2,2):(1,2)".parse()?)?;
/// assert_eq!(result.to_string(), "Sw<1,2,1> o 0 o (4,(2,2)):(1,(4,8))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn logical_product_any(block: &AnyLayout, tiler: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    let AnyLayout::Composed(swizzled) = tiler else {
        let tiler = Tiler::Layout(tiler.domain()?.clone());
        return block.map_domain(|layout| logical_product(layout, &tiler));
    };
    let (Some(swizzle), 0) = (swizzled.swizzle(), swizzled.offset()) else {
        return Err(LayoutError::on("logical_product", Class::Swizzle, &[("tiler", tiler)])
            .found(swizzled.to_string())
            .required("a swizzled tiler without an offset"));
    };
    let block = block.plain("logical_product")?;
    let inner = swizzled.domain()?;
    let product = logical_product(block, &Tiler::Layout(inner.clone()))?;
    let copies = flatten(&product.mode(1).unwrap_or_else(Layout::unit));
    let active = super::swizzled_slice::bits_of(inner).unwrap_or(0) & (swizzle.y_mask() | swizzle.z_mask());
    let through = |mask: i64| copies.at(inner.at(active & mask)?);
    let carried = Swizzle::from_masks(through(swizzle.y_mask())?, through(swizzle.z_mask())?)
        .map_err(|e| e.within("logical_product", &[("block", block), ("tiler", tiler)]))?;
    Ok(AnyLayout::compose(AnyLayout::Swizzle(carried), 0, product))
}
