//! `upcast`, `downcast`, `recast_layout`: the same bytes seen as larger or smaller elements.

use super::core::Layout;
use super::error::{Class, LayoutError, abs};
use super::int_tuple::IntTuple;
use super::inverse::greatest_common_divisor;
use super::leaf::Leaf;
use super::number::{self, magnitude, never_one, quotient, times, unknown};

/// The layout of elements `factor` times as large (CuTe's `upcast<N>`): the modes that step through the inside of a new
/// element shrink, the strides of the others are divided.
///
/// *Law.* The same bytes, block by block: [`laws::recast`](super::laws::recast) with `up = factor`. A new element covers
/// the old elements `factor * r .. factor * r + factor`, and the layout must cover each of them, once.
///
/// *Source.* `cute/layout.hpp`, `upcast`, which checks that each stride divides the factor or is a multiple of it.
///
/// # Errors
/// No layout of the same profile covers the same bytes ([`Class::Upcast`]); the factor is not positive; a stride is not an
/// integer, or the answer depends on the value of a name.
///
/// ```
/// use cute_layout::layout::upcast;
/// assert_eq!(upcast(&"(8,4):(1,8)".parse()?, 4)?.to_string(), "(2,4):(1,2)");
/// // Two modes of stride 1 overlap: the bytes 0 to 8 are not whole elements.
/// assert!(upcast(&"(2,8):(1,1)".parse()?, 2).is_err());
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn upcast(layout: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    check_factor("upcast", layout, factor)?;
    if factor == 1 {
        return Ok(layout.clone());
    }
    let inside = inside_element(layout, factor).map_err(|refusal| refusal.error(layout, factor))?;
    let mut inside = inside.into_iter();
    map_leaves(layout, |s, d| {
        let steps = inside.next().unwrap_or(1);
        let shape = quotient(s, Leaf::int(steps)).unwrap_or(s);
        if let Some(by) = quotient(d, Leaf::int(factor)) {
            return Ok((shape, by));
        }
        // The mode ends with the element, or has one element and is never stepped through.
        let value = d.value.signum() * number::ceil_div(Leaf::int(abs(d.value)?), Leaf::int(factor))?.value;
        Ok((shape, Leaf { value, ..d }))
    })
}

/// Why a layout cannot be seen in larger elements.
enum Refusal {
    /// A stride that neither steps from element to element nor fits inside one.
    Stride(Leaf),
    /// An extent that is not a whole number of elements.
    Extent(Leaf, i64),
    /// Only this many old elements of each new one are covered.
    Gap(i64),
    /// It depends on the value of a name.
    Unknown(Leaf, Leaf),
}

/// How many steps of each mode lie inside one element of `factor` old ones.
///
/// The modes whose stride is not a multiple of the factor step inside. In the order of their strides each begins where
/// the one before it ended, from 1 up to the factor: only so is every old element covered, and covered once.
fn inside_element(layout: &Layout, factor: i64) -> Result<Vec<i64>, Refusal> {
    let whole = |d: Leaf| d.is_zero() || quotient(d, Leaf::int(factor)).is_some();
    let mut modes: Vec<(usize, Leaf, Leaf)> =
        layout.pairs().enumerate().map(|(i, (s, d))| (i, s, d)).filter(|(_, s, d)| !s.is_one() && !whole(*d)).collect();
    if let Some((_, s, d)) = modes.iter().find(|(_, _, d)| !d.is_int()) {
        return Err(Refusal::Unknown(*s, *d));
    }
    modes.sort_by_key(|(_, _, d)| d.value);
    let mut inside = vec![1; layout.shape().leaf_count()];
    let mut covered = 1;
    for (i, s, d) in modes {
        if d.value != covered {
            return Err(Refusal::Stride(d));
        }
        let steps = factor / covered;
        let steps = match quotient(s, Leaf::int(steps)) {
            Some(_) => steps,
            None if !s.is_int() => return Err(Refusal::Unknown(s, d)),
            None if s.value < steps && steps % s.value == 0 => s.value,
            None => return Err(Refusal::Extent(s, steps)),
        };
        inside[i] = steps;
        covered *= steps;
    }
    if covered == factor { Ok(inside) } else { Err(Refusal::Gap(covered)) }
}

impl Refusal {
    #[cold]
    fn error(&self, layout: &Layout, factor: i64) -> LayoutError {
        // CuTe looks at each stride alone.
        let divides = layout.pairs().all(|(_, d)| d.value == 0 || d.value % factor == 0 || factor % d.value == 0);
        let refuse = |found: String, required: &str, because: &str| {
            LayoutError::on("upcast", Class::Upcast, &[("layout", layout)])
                .found(found)
                .required(required)
                .because(because)
                .help(largest_factor(layout, factor).map_or(String::new(), |most| format!("a factor of {most}")))
                .cute(if divides { "accepts, and covers other bytes" } else { "refuses: Divisibility condition" })
        };
        match self {
            Refusal::Stride(d) => {
                let size = d.value.saturating_abs();
                refuse(
                    format!("stride {} and factor {factor} ({size} mod {factor} = {})", d.value, size % factor),
                    "strides that are multiples of the factor; or 1, and then each where the mode before it ends",
                    "an element of the new size would begin inside one, straddle two, or be covered twice",
                )
            }
            Refusal::Extent(s, steps) => refuse(
                format!("extent {} and {steps} steps in an element", IntTuple::leaf(*s)),
                "an extent that the steps divide, or that divides them",
                "the last element would not be whole",
            ),
            Refusal::Gap(covered) => refuse(
                format!("modes that cover {covered} of the {factor} elements in each new one"),
                "modes that step through all of a new element",
                "the result would cover bytes that the layout does not",
            ),
            Refusal::Unknown(s, d) => {
                unknown("upcast", format!("mode {}:{} and factor {factor}", IntTuple::leaf(*s), IntTuple::leaf(*d)))
                    .of(&[("layout", layout)])
                    .required(
                        "strides that the factor always divides, and an extent that it divides where the stride is 1",
                    )
            }
        }
    }
}

/// The number of the element of `factor` values that each value lies in, whether or not the layout has all of an element:
/// CuTe's rule for `upcast`, for indices and not for bytes.
///
/// # Errors
/// A stride neither divides the factor nor is a multiple of it.
pub(crate) fn element_numbers(layout: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    check_factor("upcast", layout, factor)?;
    layout.require_ints("upcast")?;
    map_leaves(layout, |s, d| {
        let size = abs(d.value)?;
        if size == 0 {
            return Ok((s, d));
        }
        if !s.is_one() && size % factor != 0 && factor % size != 0 {
            return Err(LayoutError::on("upcast", Class::Upcast, &[("layout", layout)])
                .found(format!("stride {} and factor {factor}", d.value))
                .required("one divides the other"));
        }
        let steps = |of: i64, by: i64| number::ceil_div(Leaf::int(of), Leaf::int(by));
        let value = d.value.signum() * steps(size, factor)?.value;
        Ok((number::ceil_div(s, steps(factor, size)?)?, Leaf { value, ..d }))
    })
}

/// The layout of elements a `factor`-th as large (CuTe's `downcast<N>`): the first mode of stride 1 grows, the strides of
/// the others are multiplied. Where no stride is 1, the first mode of extent 1 grows.
///
/// *Law.* The same bytes, block by block: [`laws::recast`](super::laws::recast) with `down = factor`.
///
/// *Source.* `cute/layout.hpp`, `downcast`, which lets every mode of stride 1 grow.
///
/// # Errors
/// No mode has stride 1 or extent 1 ([`Class::Downcast`]); a number does not fit in 64 bits; the factor is not positive;
/// the answer depends on the value of a name.
///
/// ```
/// use cute_layout::layout::downcast;
/// assert_eq!(downcast(&"(2,4):(1,2)".parse()?, 4)?.to_string(), "(8,4):(1,8)");
/// assert_eq!(downcast(&"(2,8):(1,1)".parse()?, 2)?.to_string(), "(4,8):(1,2)");
/// assert_eq!(downcast(&"1:0".parse()?, 4)?.to_string(), "4:1");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn downcast(layout: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    check_factor("downcast", layout, factor)?;
    if factor == 1 {
        return Ok(layout.clone());
    }
    let grows = growing_mode(layout)?;
    let mut at = 0;
    let result = map_leaves(layout, |s, d| {
        at += 1;
        let (s, d) = if at == grows + 1 {
            (times(s, Leaf::int(factor))?, Leaf::int(1))
        } else {
            (s, times(d, Leaf::int(factor))?)
        };
        Ok((s, d))
    })?;
    super::core::check_size(result.shape())?;
    Ok(result)
}

/// The mode that takes the parts of an element.
fn growing_mode(layout: &Layout) -> Result<usize, LayoutError> {
    for (i, (_, d)) in layout.pairs().enumerate() {
        if d.is_one() {
            return Ok(i);
        }
        if !d.is_int() && !never_one(magnitude(d)?) {
            return Err(unknown("downcast", format!("stride {}", IntTuple::leaf(d)))
                .of(&[("layout", layout)])
                .required("strides that are never 1, or always"));
        }
    }
    layout.pairs().position(|(s, _)| s.is_one()).ok_or_else(|| {
        LayoutError::on("downcast", Class::Downcast, &[("layout", layout)])
            .found(layout.to_string())
            .required("a mode of stride 1, or of extent 1")
            .because("the parts of one element lie side by side, and no other mode can grow to hold them")
            .cute("refuses: Downcast requires adjacent elements")
    })
}

/// The layout seen with elements of another number of bits (CuTe's `recast_layout<Old, New>`).
///
/// *Law.* The same bytes, block by block: [`laws::recast`](super::laws::recast). With `old / new = down / up` in lowest
/// terms the result is `downcast(upcast(L, up), down)`.
///
/// *Source.* `cute/layout.hpp`, `recast_layout`.
///
/// # Errors
/// As for [`upcast`] and [`downcast`]; a number of bits is not positive.
///
/// ```
/// use cute_layout::layout::recast_layout;
/// assert_eq!(recast_layout(&"(16,16):(16,1)".parse()?, 8, 16)?.to_string(), "(16,8):(8,1)");
/// assert_eq!(recast_layout(&"(32,4):(1,32)".parse()?, 6, 8)?.to_string(), "(24,4):(1,24)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
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
    (2..factor.min(MOST_TRIED)).rev().find(|n| inside_element(layout, *n).is_ok())
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
