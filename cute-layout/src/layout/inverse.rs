//! Inverses: `right_inverse`, `left_inverse`, `nullspace`, and the common vector of two layouts.

use smallvec::SmallVec;

use super::coalesce::{coalesce, coalesced, coalesced_modes, flatten};
use super::composition::composition;
use super::construct::compact_from;
use super::core::{Flat, Layout};
use super::error::{Class, LayoutError};
use super::int_tuple::{IntTuple, Leaves};
use super::leaf::Leaf;
use super::number::{equal, never_one, product, quotient, times, unknown};

/// The most indices that are tried where the strides alone do not decide whether a quasi-inverse is one.
pub const MOST_INVERTED: i64 = 1 << 16;

/// The right inverse on the longest stretch of indices from 0 that the strides reach (CuTe's `right_inverse`).
///
/// *Law.* `layout(result(i)) == i` for every `i` below the result's size.
///
/// *Source.* `cute/layout.hpp`, `right_inverse`; C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298.
///
/// # Errors
/// A stride is not an integer.
///
/// ```
/// use cute_layout::layout::{Layout, right_inverse};
/// assert_eq!(right_inverse(&"(4,8):(8,1)".parse()?)?.to_string(), "(8,4):(4,1)");
/// assert_eq!(right_inverse(&"(4,8):(1,5)".parse()?)?.to_string(), "4:1");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn right_inverse(layout: &Layout) -> Result<Layout, LayoutError> {
    let (chain, _) = chain(&coalesced(layout)?).map_err(|e| e.within("right_inverse", &[("layout", layout)]))?;
    Layout::from_flat(&coalesced_modes(chain.iter().copied())?)
}

/// The modes of the right inverse, and where the chain of strides from 1 on ends.
///
/// Whether a stride goes on with the chain must not depend on the numbers that the names stand for. It may where the mode
/// before it in the chain has extent 1 then, and so has no part in it.
fn chain(flat: &Flat) -> Result<(Flat, Leaf), LayoutError> {
    let mut left = by_stride(flat)?;
    let (mut chain, mut reached) = (Flat::new(), Leaf::int(1));
    loop {
        let next = left.iter().position(|(_, d, _)| d.same(reached));
        let end = next.map(|i| times(left[i].0, reached)).transpose()?;
        for (i, (_, d, _)) in left.iter().enumerate() {
            let harmless = || end.is_some_and(|end| quotient(*d, end).is_some());
            if Some(i) != next && equal(*d, reached) != Some(false) && !harmless() && !numbers(flat) {
                let found = format!("a stride {} where {} is reached", IntTuple::leaf(*d), IntTuple::leaf(reached));
                return Err(unknown("right_inverse", found).required("strides that are always, or never, the next one"));
            }
        }
        let (Some(i), Some(end)) = (next, end) else { return Ok((chain, reached)) };
        let (s, _, before) = left.remove(i);
        chain.push((s, before));
        reached = end;
    }
}

fn numbers(flat: &Flat) -> bool {
    flat.iter().all(|(s, d)| s.is_int() && d.is_int())
}

/// A quasi-inverse, a left inverse where the layout is injective (CuTe's `left_inverse`).
///
/// *Law.* `layout(result(layout(i))) == layout(i)` for every `i` below the layout's size.
///
/// *Source.* `cute/layout.hpp`, `left_inverse`; C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298.
///
/// # Errors
/// The strides are not a chain of divisors ([`Class::LeftInverse`], as in CuTe). Or the layout overlaps so that CuTe's
/// construction breaks the law ([`Class::QuasiInverse`]; decided from the strides, or from at most [`MOST_INVERTED`]
/// values). Or a stride is negative or not an integer.
///
/// ```
/// use cute_layout::layout::{Layout, left_inverse};
/// assert_eq!(left_inverse(&"4:2".parse()?)?.to_string(), "(2,4):(0,1)");
/// assert_eq!(left_inverse(&"(4,8):(1,5)".parse()?)?.to_string(), "(5,8):(1,4)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn left_inverse(layout: &Layout) -> Result<Layout, LayoutError> {
    let flat = coalesced(layout)?;
    if !numbers(&flat) {
        return symbolic_left_inverse(&flat).map_err(|e| e.within("left_inverse", &[("layout", layout)]));
    }
    let modes = by_stride(&flat)?;
    // One mode more than there are strides.
    let mut result: SmallVec<[(Leaf, Leaf); 9]> = SmallVec::new();
    let mut reached = 1i64;
    let mut next = Leaf::int(0);
    for (s, d, before) in &modes {
        let (s, d) = (s.value, d.value);
        if d == 0 {
            continue;
        }
        if d < 0 {
            return Err(super::complement::negative(IntTuple::int(d)).within("left_inverse", &[("layout", layout)]));
        }
        if d % reached != 0 {
            return Err(LayoutError::on("left_inverse", Class::LeftInverse, &[("layout", layout)])
                .found(format!("mode {s}:{d} after stride {reached} ({d} mod {reached} = {})", d % reached))
                .required("each stride a multiple of the next smaller one")
                .cute("refuses: Left inverse divisibility condition"));
        }
        result.push((Leaf::int(d / reached), next));
        next = *before;
        reached = d;
    }
    result.push((modes.last().map_or(Leaf::int(1), |(s, _, _)| *s), next));
    let inverse = Layout::from_flat(&coalesced_modes(result.iter().copied())?)?;
    if chain_is_inverted(&modes)
        || layout.size() <= MOST_INVERTED && super::laws::left_inverse(layout, &inverse).is_ok()
    {
        // The gaps between the strides count too.
        super::core::check_size(inverse.shape()).map_err(|e| e.within("left_inverse", &[("layout", layout)]))?;
        return Ok(inverse);
    }
    Err(LayoutError::on("left_inverse", Class::QuasiInverse, &[("layout", layout)])
        .found(format!("{inverse}, which does not lead back to every value of the layout"))
        .required("layout(result(layout(i))) = layout(i) for every i")
        .because("modes of the layout overlap, and a digit of the index grows past the extent of its mode")
        .help("filter or coalesce the layout, or make it injective first")
        .cute(format!("accepts, and is wrong: {inverse}")))
}

/// Where there are symbols: a layout that is a bijection has its right inverse for a left one.
fn symbolic_left_inverse(flat: &Flat) -> Result<Layout, LayoutError> {
    let (chain, reached) = chain(flat)?;
    let size = product(flat.iter().filter(|(_, d)| !d.is_zero()).map(|(s, _)| *s))?;
    // A layout of size 1 with strides of 0 has another one.
    let lost = size.same(Leaf::int(1)) || flat.iter().any(|(_, d)| d.is_zero()) && !never_one(size);
    if lost || !size.same(reached) {
        return Err(unknown("left_inverse", format!("strides that reach to {}", IntTuple::leaf(reached)))
            .required("a layout that is a bijection for all values of the names"));
    }
    Layout::from_flat(&coalesced_modes(chain.iter().copied())?)
}

/// Extent, stride, and the product of the extents before.
type Ordered = SmallVec<[(Leaf, Leaf, Leaf); 8]>;

/// The modes in the order of their strides where those are integers, each with the product of the extents before it. Ties are in the order that
/// CuTe's exchange sort leaves them in.
fn by_stride(flat: &Flat) -> Result<Ordered, LayoutError> {
    let mut before = Leaf::int(1);
    let mut modes = Ordered::new();
    for &(s, d) in flat {
        modes.push((s, d, before));
        before = times(before, s)?;
    }
    for i in 0..modes.len() {
        for j in i + 1..modes.len() {
            if numbers(flat) && modes[j].1.value < modes[i].1.value {
                modes.swap(i, j);
            }
        }
    }
    Ok(modes)
}

/// Enough for the quasi-inverse to be right: no digit of a value grows past the extent of its mode. A digit is bounded by
/// the step to the next stride; beyond the mode's extent it can only get by a carry from below.
fn chain_is_inverted(modes: &[(Leaf, Leaf, Leaf)]) -> bool {
    let mut modes = modes.iter().filter(|(_, d, _)| !d.is_zero()).peekable();
    let mut below = 0i128;
    while let Some((s, d, _)) = modes.next() {
        let (s, d) = (i128::from(s.value), i128::from(d.value));
        let bounded = modes.peek().is_some_and(|(_, next, _)| i128::from(next.value) <= s * d);
        if below >= d && !bounded {
            return false;
        }
        below += (s - 1) * d;
    }
    true
}

/// The layout of the indices that stride-0 modes send to 0 (CuTe's `nullspace`).
///
/// *Law.* `layout(result(i)) == 0` for every `i`, and the result's size is the product of the extents of stride 0.
///
/// *Source.* `cute/layout.hpp`, `nullspace`.
///
/// # Errors
/// A number does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::{Layout, nullspace};
/// assert_eq!(nullspace(&"(4,(2,3)):(1,(0,4))".parse()?)?.to_string(), "2:4");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn nullspace(layout: &Layout) -> Result<Layout, LayoutError> {
    let (weights, _) = compact_from(&layout.shape().flatten(), Leaf::int(1))?;
    let zeros: Flat = layout
        .pairs()
        .zip(weights.raw())
        .filter(|((_, d), _)| d.is_zero())
        .map(|((s, _), weight)| (s.bare(), weight.bare()))
        .collect();
    Layout::from_flat(&zeros)
}

/// The longest layout on which two layouts both count up from 0 by 1 (CuTe's `max_common_layout`).
///
/// *Law.* `a(result(i)) == i` and `b(result(i)) == i`, with `result(i)` in both domains, for every `i` below the result's
/// size. The size does not change when the arguments are swapped.
///
/// *Source.* `cute/layout.hpp`, `max_common_layout`; there the result may leave the domain of `a`.
///
/// # Errors
/// An extent or a stride is not an integer.
///
/// ```
/// use cute_layout::layout::{Layout, max_common_layout};
/// let a: Layout = "(4,8):(1,4)".parse()?;
/// assert_eq!(max_common_layout(&a, &a)?.to_string(), "32:1");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn max_common_layout(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let numbers = |l: &Layout| l.static_shape() && l.int_strides();
    if !(numbers(a) && numbers(b)) {
        return symbolic_common(a, b).map_err(|e| e.within("max_common_layout", &[("a", a), ("b", b)]));
    }
    let (of_b, of_a) = (common(a, b)?, common(b, a)?);
    Ok(if of_a.size() > of_b.size() { of_a } else { of_b })
}

/// How many elements two layouts have in common from index 0 on, contiguous in both (CuTe's `max_common_vector`).
///
/// *Law.* With `n` for the result and `R = max_common_layout(a, b)`: `a(R(i)) == b(R(i)) == i` for `i < n`.
///
/// *Source.* `cute/layout.hpp`, `max_common_vector`.
///
/// # Errors
/// As for [`max_common_layout`].
///
/// ```
/// use cute_layout::layout::{Layout, max_common_vector};
/// let a: Layout = "((2,2),4):((1,8),2)".parse()?;
/// assert_eq!(max_common_vector(&a, &a)?, 16);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn max_common_vector(a: &Layout, b: &Layout) -> Result<i64, LayoutError> {
    max_common_layout(a, b)?.shape().size()
}

/// Where there are symbols: the right inverse of `b`, where all of it is one of `a`, too, and the domains are one.
fn symbolic_common(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let inverse = right_inverse(b)?;
    let size = inverse.shape().product_leaf()?;
    let values = coalesce(&composition(a, &inverse)?)?;
    let counts_up = values.shape().raw() == [size] && values.stride().raw() == [Leaf::int(1)];
    if counts_up && equal(a.shape().product_leaf()?, b.shape().product_leaf()?) == Some(true) {
        return Ok(inverse);
    }
    Err(unknown(
        "max_common_layout",
        format!("values {values} of the first layout at the second one's inverse {inverse}"),
    )
    .required("domains of one size, and one inverse"))
}

/// The longest part of the right inverse of `b` on which `a`, too, counts up from 0 by 1, within both domains.
fn common(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let inverse = right_inverse(b)?;
    let most = a.size().min(b.size());
    let counts_up = |layout: &Layout| -> Result<bool, LayoutError> {
        if layout.at(layout.size() - 1)? >= most {
            return Ok(false);
        }
        // A layout that counts up is one layout with the same modes, so a refusal says that it does not.
        let values = composition(a, layout).and_then(|values| coalesce(&values));
        Ok(values.is_ok_and(|values| layout.size() == 1 || Ok(values) == Layout::mode_of(layout.size(), 1)))
    };
    let (mut fits, mut too_long) = (1, inverse.size().saturating_add(1));
    while fits + 1 < too_long {
        let middle = fits + (too_long - fits) / 2;
        if counts_up(&first(&inverse, middle)?)? {
            fits = middle;
        } else {
            too_long = middle;
        }
    }
    first(&inverse, fits)
}

/// The longest beginning of a layout that has at most `most` coordinates and is a layout.
pub(super) fn first(layout: &Layout, most: i64) -> Result<Layout, LayoutError> {
    let mut left = most;
    let (mut shape, stride) = flatten(layout).into_parts();
    for leaf in shape.raw_mut() {
        let taken = leaf.value.min(left);
        // Behind a mode that is cut nothing more can be taken.
        left = if taken < leaf.value { 1 } else { left / taken };
        leaf.value = taken;
    }
    coalesce(&Layout::from_parts(shape, stride))
}

/// The largest factor by which the layout can be upcast (CuTe's `max_alignment`).
///
/// *Law.* With `n` for the result: `upcast(layout, n)` exists, and `n` divides every step to another run of `n` values.
///
/// *Source.* `cute/layout.hpp`, `max_alignment`.
///
/// # Errors
/// A stride is not an integer, or the division of the layout by its own inverse is refused.
///
/// ```
/// use cute_layout::layout::{Layout, max_alignment};
/// assert_eq!(max_alignment(&"(4,8):(8,1)".parse()?)?, 32);
/// assert_eq!(max_alignment(&"(4,4):(3,12)".parse()?)?, 1);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn max_alignment(layout: &Layout) -> Result<i64, LayoutError> {
    layout.require_ints("max_alignment")?;
    let flat = coalesce(layout)?;
    let permuted = super::divide::logical_divide(&flat, &right_inverse(&flat)?.into())?;
    let (Some(first), Some(second)) = (permuted.mode(0), permuted.mode(1)) else {
        return Ok(1);
    };
    Ok(second.stride().raw().iter().fold(first.size(), |gcd, d| greatest_common_divisor(gcd, d.value)))
}

/// The greatest common divisor, not negative.
pub(crate) fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(i64::MAX)
}

/// Spreads `size` over a shape: an ordered layout that takes as much of it from the first modes as divides them (CuTe's
/// `domain_distribute`). It may take less than `size`.
///
/// *Law.* The result's size divides `size`, its values increase, and it divides the shape evenly.
///
/// *Source.* `cute/layout.hpp`, `domain_distribute`.
///
/// # Errors
/// An extent or the size is not positive.
///
/// ```
/// use cute_layout::layout::domain_distribute;
/// assert_eq!(domain_distribute(&(15, 14).into(), 6)?.to_string(), "(3,2):(1,15)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn domain_distribute(shape: &IntTuple, size: i64) -> Result<Layout, LayoutError> {
    super::core::check_shape(shape)?;
    if size < 1 {
        return Err(LayoutError::on("domain_distribute", Class::Extent, &[("shape", shape)])
            .found(format!("size {size}"))
            .required("a size of at least 1"));
    }
    let flat = shape.flatten();
    let (stride, _) = compact_from(&flat, Leaf::int(1))?;
    let mut rest = size;
    let mut leaves = Leaves::new();
    for (i, leaf) in flat.raw().iter().enumerate() {
        if !leaf.is_int() {
            return Err(LayoutError::on("domain_distribute", Class::StrideKind, &[("shape", shape)])
                .leaf(shape.leaf_path(i))
                .found(format!("extent {}", IntTuple::leaf(*leaf)))
                .required("extents that are known"));
        }
        let part = greatest_common_divisor(leaf.value, rest);
        rest /= part;
        leaves.push(Leaf::int(part).nested_like(*leaf));
    }
    coalesce(&Layout::from_parts(IntTuple::from_leaves(leaves), stride))
}
