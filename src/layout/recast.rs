//! `upcast`, `downcast`, `recast_layout`: the same bytes seen as larger or smaller elements.

use super::core::Layout;
use super::error::{Class, LayoutError, abs};
use super::int_tuple::IntTuple;
use super::inverse::greatest_common_divisor;
use super::leaf::Leaf;
use super::number::{self, magnitude, never_one, quotient, times, unknown};

/// The layout of elements `factor` times as large (CuTe's `upcast<N>`): modes with a stride below the factor shrink, other
/// strides are divided.
///
/// *Law.* `factor * result(c) == layout(c')` where `c'` is `c` with the coordinates of shrunk modes scaled back.
///
/// *Source.* `cute/layout.hpp`, `upcast`.
///
/// # Errors
/// A stride neither divides the factor nor is a multiple of it ([`Class::Upcast`]); the factor is not positive; a stride is
/// not an integer.
///
/// ```
/// use cutemplate::layout::upcast;
/// assert_eq!(upcast(&"(8,4):(1,8)".parse()?, 4)?.to_string(), "(2,4):(1,2)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn upcast(layout: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    check_factor("upcast", layout, factor)?;
    map_leaves(layout, |s, d| {
        if d.is_zero() {
            return Ok((s, d));
        }
        if let Some(by) = d.tag().as_symbol().and(quotient(d, Leaf::int(factor))) {
            return Ok((s, by));
        }
        if !d.is_int() {
            return Err(unknown("upcast", format!("stride {} and factor {factor}", IntTuple::leaf(d)))
                .of(&[("layout", layout)])
                .required("strides that the factor always divides"));
        }
        let size = abs(d.value)?;
        // A mode of one element is never stepped through.
        if !s.is_one() && d.value % factor != 0 && factor % size != 0 {
            return Err(LayoutError::on("upcast", Class::Upcast, &[("layout", layout)])
                .found(format!("stride {} and factor {factor} ({size} mod {factor} = {})", d.value, size % factor))
                .required("one divides the other")
                .because("an element of the new size would begin inside one, or straddle two")
                .help(largest_factor(layout, factor).map_or(String::new(), |most| format!("a factor of {most}")))
                .cute("refuses: Divisibility condition"));
        }
        let steps = |of: i64, by: i64| number::ceil_div(Leaf::int(of), Leaf::int(by));
        let value = d.value.signum() * steps(size, factor)?.value;
        Ok((number::ceil_div(s, steps(factor, size)?)?, Leaf { value, ..d }))
    })
}

/// The layout of elements a `factor`-th as large (CuTe's `downcast<N>`): modes of stride 1 or -1 grow, other strides are
/// multiplied.
///
/// *Law.* `upcast(downcast(L, n), n) == L`.
///
/// *Source.* `cute/layout.hpp`, `downcast`.
///
/// # Errors
/// No mode has stride 1 ([`Class::Downcast`]); a number does not fit in 64 bits; the factor is not positive.
///
/// ```
/// use cutemplate::layout::downcast;
/// assert_eq!(downcast(&"(2,4):(1,2)".parse()?, 4)?.to_string(), "(8,4):(1,8)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn downcast(layout: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    check_factor("downcast", layout, factor)?;
    if !layout.stride().raw().iter().any(|d| d.is_one()) {
        return Err(LayoutError::on("downcast", Class::Downcast, &[("layout", layout)])
            .found(format!("strides {}", layout.stride()))
            .required("a mode of stride 1")
            .because("the parts of one element lie side by side, and only a mode of stride 1 can grow to hold them")
            .cute("refuses: Downcast requires adjacent elements"));
    }
    let result = map_leaves(layout, |s, d| {
        let may_be_one = !d.is_int() && !never_one(magnitude(d)?);
        if may_be_one && factor > 1 {
            return Err(unknown("downcast", format!("stride {}", IntTuple::leaf(d)))
                .of(&[("layout", layout)])
                .required("strides that are never 1, or always"));
        }
        if d.is_int() && d.value.abs() == 1 {
            Ok((times(s, Leaf::int(factor))?, d))
        } else {
            Ok((s, times(d, Leaf::int(factor))?))
        }
    })?;
    super::core::check_size(result.shape())?;
    Ok(result)
}

/// The layout seen with elements of another number of bits (CuTe's `recast_layout<Old, New>`).
///
/// *Law.* The same bits: with `old / new = down / up` in lowest terms it is `downcast(upcast(L, up), down)`.
///
/// *Source.* `cute/layout.hpp`, `recast_layout`.
///
/// # Errors
/// As for [`upcast`] and [`downcast`]; a number of bits is not positive.
///
/// ```
/// use cutemplate::layout::recast_layout;
/// assert_eq!(recast_layout(&"(16,16):(16,1)".parse()?, 8, 16)?.to_string(), "(16,8):(8,1)");
/// assert_eq!(recast_layout(&"(32,4):(1,32)".parse()?, 6, 8)?.to_string(), "(24,4):(1,24)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn recast_layout(layout: &Layout, old_bits: i64, new_bits: i64) -> Result<Layout, LayoutError> {
    let (up, down) = recast_ratio(old_bits, new_bits)?;
    match (up, down) {
        (1, 1) => Ok(layout.clone()),
        (1, down) => downcast(layout, down),
        (up, 1) => upcast(layout, up),
        (up, down) => downcast(&upcast(layout, up)?, down),
    }
    .map_err(|e| e.within("recast_layout", &[("layout", layout), ("old bits", &old_bits), ("new bits", &new_bits)]))
}

/// The ratio of two element sizes in lowest terms.
pub(crate) fn recast_ratio(old_bits: i64, new_bits: i64) -> Result<(i64, i64), LayoutError> {
    if old_bits < 1 || new_bits < 1 {
        return Err(LayoutError::new("recast_layout", Class::Argument)
            .found(format!("{old_bits} bits to {new_bits} bits"))
            .required("positive numbers of bits"));
    }
    let common = greatest_common_divisor(old_bits, new_bits);
    Ok((new_bits / common, old_bits / common))
}

fn check_factor(op: &'static str, layout: &Layout, factor: i64) -> Result<(), LayoutError> {
    if let Some(bad) = layout.stride().raw().iter().find(|d| d.tag().is_basis()) {
        return Err(LayoutError::on(op, Class::StrideKind, &[("layout", layout)])
            .found(format!("stride {}", IntTuple::leaf(*bad)))
            .required("integers or symbols"));
    }
    if factor < 1 {
        return Err(LayoutError::on(op, Class::Argument, &[("layout", layout)])
            .found(format!("factor {factor}"))
            .required("a factor of at least 1"));
    }
    Ok(())
}

/// The most factors that are tried in the place of one that does not fit.
const MOST_TRIED: i64 = 256;

/// The largest smaller factor that every mode allows, of those worth trying.
fn largest_factor(layout: &Layout, factor: i64) -> Option<i64> {
    let fits = |n: i64| layout.pairs().all(|(s, d)| d.value == 0 || s.is_one() || d.value % n == 0 || n % d.value == 0);
    (2..factor.min(MOST_TRIED)).rev().find(|n| fits(*n))
}

fn map_leaves(
    layout: &Layout,
    mut each: impl FnMut(Leaf, Leaf) -> Result<(Leaf, Leaf), LayoutError>,
) -> Result<Layout, LayoutError> {
    Layout::refined(layout, |_, s, d, own| -> Result<(), LayoutError> {
        own.push(each(s, d)?);
        Ok(())
    })
}
