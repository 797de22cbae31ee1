//! Composition of layouts, composed layouts and swizzles with each other.

use super::composed::{AnyLayout, MOST_SCANNED};
use super::composition::{composition, composition_by};
use super::construct::make_layout;
use super::core::Layout;
use super::error::LayoutError;
use super::swizzle::Swizzle;
use super::tiler::Tiler;

/// Composition where either side may be swizzled (CuTe's overloads of `composition`).
///
/// Functions that do not compose into one swizzle, one offset and one layout stay a chain of functions.
///
/// *Law.* `result(c) == a(b(c))`; a swizzle as `b`, which has no shape, has that of `a`.
///
/// *Source.* `cute/layout_composed.hpp` and `cute/swizzle_layout.hpp`, `composition`, which refuse what stays apart
/// here.
///
/// # Errors
/// As for [`composition`]; two bare swizzles that no single one equals.
///
/// ```
/// use cute_layout::layout::{AnyLayout, compose_any};
/// let result = compose_any(&"(8,8):(8,1)".parse()?, &"Sw<1,0,3>".parse()?)?;
/// assert_eq!(result.to_string(), "Sw<1,0,-3> o 0 o (8,8):(8,1)");
/// let result = compose_any(&"Sw<2,0,3>".parse()?, &"Sw<2,1,4> o 0 o (8,8):(8,1)".parse()?)?;
/// assert_eq!(result.to_string(), "Sw<2,0,3> o 0 o Sw<2,1,4> o 0 o (8,8):(8,1)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn compose_any(a: &AnyLayout, b: &AnyLayout) -> Result<AnyLayout, LayoutError> {
    match (a, b) {
        (AnyLayout::Plain(a), AnyLayout::Plain(b)) => composition(a, b).map(AnyLayout::Plain),
        (AnyLayout::Swizzle(a), AnyLayout::Swizzle(b)) => a.after(*b).map(AnyLayout::Swizzle),
        (AnyLayout::Swizzle(a), AnyLayout::Plain(b)) => Ok(AnyLayout::compose(AnyLayout::Swizzle(*a), 0, b.clone())),
        (AnyLayout::Swizzle(outer), AnyLayout::Composed(composed)) => {
            match composed.swizzle().and_then(|inner| outer.after(inner).ok()) {
                Some(both) => {
                    Ok(AnyLayout::compose(AnyLayout::Swizzle(both), composed.offset(), composed.domain()?.clone()))
                }
                None => a.clone().after(0, b.clone()),
            }
        }
        (AnyLayout::Plain(outer), AnyLayout::Swizzle(swizzle)) => match pass_through(outer, *swizzle, None)? {
            Some(carried) => Ok(carried),
            None => a.clone().after(0, AnyLayout::compose(b.clone(), 0, make_layout(outer.shape())?)),
        },
        (AnyLayout::Plain(outer), AnyLayout::Composed(composed)) => {
            let carried = match composed.swizzle().filter(|_| composed.offset() == 0) {
                Some(swizzle) => pass_through(outer, swizzle, Some(composed.domain()?))?,
                // From the inside out: the values may lie beyond the outer layout's size, where nothing else is exact.
                None => composed.as_one().and_then(|inner| composition(outer, &inner).ok()).map(AnyLayout::Plain),
            };
            carried.map_or_else(|| a.clone().after(0, b.clone()), Ok)
        }
        (AnyLayout::Composed(a), b) => a.outer().clone().after(a.offset(), compose_any(a.inner(), b)?),
    }
}

/// Composition with a tiler, which acts on the domain (CuTe's `composition(layout, tiler)`).
///
/// *Law.* That of [`composition_by`] on the domain: `result(c) == outer(offset + R(c))` with `R =
/// composition_by(domain, tiler)`.
///
/// *Source.* `cute/layout_composed.hpp`, `composition` with a tiler.
///
/// # Errors
/// As for [`composition_by`].
///
/// ```
/// use cute_layout::layout::compose_any_by;
/// let tiled = compose_any_by(&"Sw<1,0,3> o 0 o (8,8):(8,1)".parse()?, &"[4:2,_]".parse()?)?;
/// assert_eq!(tiled.to_string(), "Sw<1,0,3> o 0 o (4,8):(16,1)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn compose_any_by(a: &AnyLayout, tiler: &Tiler) -> Result<AnyLayout, LayoutError> {
    a.map_domain(|layout| composition_by(layout, tiler))
}

/// A layout after a swizzle as a swizzle after the layout, at the values of `over` or at every index of the layout: the
/// masks are carried through the layout, as in CuTe. Then the law is checked, at every index up to [`MOST_SCANNED`] or bit
/// by bit where the layout maps bits to bits. `None` where no swizzle after the layout gives its values at the swizzled
/// indices.
fn pass_through(a: &Layout, b: Swizzle, over: Option<&Layout>) -> Result<Option<AnyLayout>, LayoutError> {
    let context = |e: LayoutError| e.within("composition", &[("A", a), ("B", &b)]);
    let domain = over.unwrap_or(a);
    let count = domain.shape().size().map_err(context)?;
    let Ok(swizzle) = Swizzle::from_masks(a.at(b.y_mask())?, a.at(b.z_mask())?) else { return Ok(None) };
    let agree = |x: i64| -> Result<bool, LayoutError> { Ok(a.at(b.apply(x))? == swizzle.apply(a.at(x)?)) };
    let index = |i: i64| over.map_or(Ok(i), |over| over.at(i));
    let mut right = true;
    if count <= MOST_SCANNED {
        for i in 0..count {
            right = right && agree(index(i)?)?;
        }
    } else if let Some(top) = bits_to_bits(a, b, domain)? {
        for bit in 0..top {
            right = right && agree(1i64 << bit)?;
        }
    } else {
        right = false;
    }
    let inner = over.map_or(Ok(a.clone()), |over| composition(a, over)).ok().filter(|_| right);
    Ok(inner.map(|inner| AnyLayout::compose(AnyLayout::Swizzle(swizzle), 0, inner)))
}

/// How many bits the indices have that the values of `domain` are, where the layout sends each bit to a bit of its own (or
/// to nothing); then layout and swizzle are linear over exclusive or, and the bits alone decide.
fn bits_to_bits(a: &Layout, b: Swizzle, domain: &Layout) -> Result<Option<u32>, LayoutError> {
    let power = |n: i64| n > 0 && n.count_ones() == 1;
    let powers = a.pairs().all(|(s, d)| power(s.value) && (d.value == 0 || power(d.value)));
    if !powers || domain.stride().raw().iter().any(|d| d.value < 0) {
        return Ok(None);
    }
    let top = (i64::BITS - a.size().max(b.block()).max(domain.cosize()?).leading_zeros()).min(62);
    let mut seen = 0i64;
    for bit in 0..top {
        let image = a.at(1i64 << bit)?;
        if image & seen != 0 {
            return Ok(None);
        }
        seen |= image;
    }
    Ok(Some(top))
}
