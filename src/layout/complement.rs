//! `complement`: the layout of what a layout leaves out.

use smallvec::SmallVec;

use super::coalesce::write_filtered;
use super::core::{Layout, check_size, div_rem};
use super::error::{Class, LayoutError, mul};
use super::int_tuple::{IntTuple, Shape};
use super::leaf::Leaf;
use super::shape::ceil_div;
use super::written::INLINE;

/// The complement of a layout within `cotarget` (CuTe's `complement(layout, cotarget)`): an ordered layout whose steps
/// jump over the layout's image, so that the two side by side are injective.
///
/// *Law.* The result is strictly increasing; no value but 0 is a value of the layout; `(layout, result)` is injective (up
/// to the layout's zero strides). Where each stride divides into the next (see
/// [`is_admissible_for_complement`](super::is_admissible_for_complement)) it also covers `0 .. cotarget`.
///
/// *Source.* `cute/layout.hpp`, `complement`; C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298; J.
/// Shah, *A note on the algebra of CuTe layouts*.
///
/// # Errors
/// The layout is not injective or its modes interleave ([`Class::NonInjective`], as in CuTe); a stride is negative or not
/// an integer.
///
/// ```
/// use cutemplate::layout::{Layout, complement};
/// assert_eq!(complement(&"(2,4):(1,2)".parse()?, &16.into())?.to_string(), "2:8");
/// assert_eq!(complement(&"4:2".parse()?, &19.into())?.to_string(), "(2,3):(1,8)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
#[inline]
pub fn complement(layout: &Layout, cotarget: &Shape) -> Result<Layout, LayoutError> {
    Layout::written(|out| write_complement(layout, cotarget, out))
}

/// Writes the complement to a layout without leaves.
pub(super) fn write_complement(layout: &Layout, cotarget: &Shape, out: &mut Layout) -> Result<(), LayoutError> {
    let mut filtered = Layout::empty();
    write_filtered(layout, &mut filtered)?;
    complement_of_filtered(&filtered, cotarget, out)
        .map_err(|e| e.within("complement", &[("layout", layout), ("cotarget", cotarget)]))
}

/// The complement of a layout within its own cosize (CuTe's `complement(layout)`).
///
/// *Law.* That of [`complement`], with `cosize(layout)` for the cotarget.
///
/// *Source.* `cute/layout.hpp`, `complement` without a cotarget.
///
/// # Errors
/// As for [`complement`].
///
/// ```
/// use cutemplate::layout::{Layout, complement_in_cosize};
/// assert_eq!(complement_in_cosize(&"(2,2):(1,8)".parse()?)?.to_string(), "4:2");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
#[inline]
pub fn complement_in_cosize(layout: &Layout) -> Result<Layout, LayoutError> {
    Layout::written(|out| {
        let mut filtered = Layout::empty();
        write_filtered(layout, &mut filtered)?;
        let cosize = IntTuple::int(filtered.cosize()?);
        complement_of_filtered(&filtered, &cosize, out).map_err(|e| e.within("complement", &[("layout", layout)]))
    })
}

fn complement_of_filtered(filtered: &Layout, cotarget: &Shape, out: &mut Layout) -> Result<(), LayoutError> {
    if let Some(bad) = cotarget.raw().iter().find(|leaf| !leaf.is_int() || leaf.value < 1) {
        if bad.tag().as_symbol().is_none() {
            return Err(LayoutError::new("complement", Class::Extent)
                .found(format!("cotarget {}", IntTuple::leaf(*bad)))
                .required("a positive integer or a shape"));
        }
        *out = symbolic(filtered, cotarget)?;
        return Ok(());
    }
    filtered.require_ints("complement")?;
    let mut modes: SmallVec<[(i64, i64); INLINE]> = SmallVec::new();
    for (s, d) in filtered.pairs().filter(|(_, d)| d.value != 0) {
        modes.push((s.value, d.value));
    }
    modes.sort_by_key(|(_, d)| *d);
    // No two modes of the result merge: each ends before the next begins. Gaps of 1 are left out.
    let mut covered = 1i64;
    for &(s, d) in &modes {
        if d < 0 {
            return Err(negative(d));
        }
        let (gap, _) = div_rem(d, covered);
        if gap == 0 {
            return Err(overlap(&modes, s, d, covered));
        }
        if gap > 1 {
            out.push(Leaf::int(gap), Leaf::int(covered));
        }
        covered = mul(d, s)?;
    }
    let rest = tiles(cotarget, covered)?;
    if rest > 1 {
        out.push(Leaf::int(rest), Leaf::int(covered));
    }
    out.wrap_flat();
    out.shape().check_limits()?;
    // The gaps and the rest together may be more than the cotarget.
    check_size(out.shape())
}

/// The size of `ceil_div(cotarget, covered)`: leaf by leaf, the divisor is used up from left to right.
#[inline]
fn tiles(cotarget: &Shape, covered: i64) -> Result<i64, LayoutError> {
    let ceil = |a: i64, b: i64| {
        let (quotient, rest) = div_rem(a, b);
        quotient + i64::from(rest != 0)
    };
    let mut divisor = covered;
    let mut size = 1i64;
    for leaf in cotarget.raw() {
        size = mul(size, ceil(leaf.value, divisor))?;
        divisor = ceil(divisor, leaf.value);
    }
    Ok(size)
}

/// The rest of a symbolic extent, for a contiguous layout: `complement(64:1, M)` is `ceil_div(M,64):64`.
fn symbolic(filtered: &Layout, cotarget: &Shape) -> Result<Layout, LayoutError> {
    let covered = match filtered.pairs().collect::<Vec<_>>().as_slice() {
        [(s, d)] if s.is_int() && d.is_one() => s.value,
        [(s, d)] if s.is_one() && d.is_zero() => 1,
        _ => {
            return Err(LayoutError::new("complement", Class::StrideKind)
                .found(format!("{filtered} within {cotarget}"))
                .required("a contiguous tiler, where the extent is symbolic"));
        }
    };
    let rest = ceil_div(cotarget, &IntTuple::int(covered))?;
    let mut extent = Leaf::int(1);
    for leaf in rest.raw() {
        extent = super::construct::product(extent, *leaf)?;
    }
    let stride = if extent.is_one() { 0 } else { covered };
    Ok(Layout::from_parts(IntTuple::leaf(extent), IntTuple::int(stride)))
}

pub(super) fn negative(stride: i64) -> LayoutError {
    LayoutError::new("complement", Class::StrideKind)
        .found(format!("stride {stride}"))
        .required("strides that are not negative")
        .because("the image reaches below 0, where no complement can be ordered")
        .cute("compiles, and gives a layout that means nothing")
}

#[cold]
fn overlap(modes: &[(i64, i64)], s: i64, d: i64, covered: i64) -> LayoutError {
    let sorted: Vec<String> = modes.iter().map(|(s, d)| format!("{s}:{d}")).collect();
    LayoutError::new("complement", Class::NonInjective)
        .found(format!(
            "in order of strides {}, mode {s}:{d} begins inside the modes before it, which reach to {covered}",
            sorted.join(" "),
        ))
        .required(format!("a stride of at least {covered} there ({d} / {covered} = 0)"))
        .because("two coordinates have the same value, or the modes interleave and no gap has a fixed width")
        .help("drop the mode, or widen its stride")
        .cute("refuses: Non-injective Layout detected in complement.")
}
