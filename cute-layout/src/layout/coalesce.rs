//! `coalesce`, `filter`, `filter_zeros`, `flatten`: the same function in fewer modes.

use super::core::{Flat, Layout};
use super::error::{Class, LayoutError};
use super::int_tuple::{IntTuple, Leaves};
use super::leaf::Leaf;
use super::number::times;

/// Merges neighbouring modes where the second goes on where the first ends, and drops modes of extent 1 (CuTe's
/// `coalesce`).
///
/// *Law.* The result has depth at most 1, the same size, and the same value at every index below the size.
///
/// *Source.* `cute/layout.hpp`, `coalesce`; C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298.
///
/// # Errors
/// A merged extent does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::{Layout, coalesce};
/// assert_eq!(coalesce(&"(2,(1,6)):(1,(6,2))".parse()?)?.to_string(), "12:1");
/// assert_eq!(coalesce(&"(2,1):(3,1)".parse()?)?.to_string(), "2:3");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn coalesce(layout: &Layout) -> Result<Layout, LayoutError> {
    Layout::from_flat(&coalesced(layout)?)
}

/// The modes of the coalesced layout; none where the layout has size 1.
pub(crate) fn coalesced(layout: &Layout) -> Result<Flat, LayoutError> {
    coalesced_modes(layout.pairs())
}

/// [`coalesced`] for modes that are not a layout yet.
pub(crate) fn coalesced_modes(modes: impl Iterator<Item = (Leaf, Leaf)>) -> Result<Flat, LayoutError> {
    merged(modes.filter(|(s, _)| !s.is_one()))
}

/// Like [`coalesced`], and the same function also beyond the size: the last leaf keeps its stride although its extent
/// is 1. Callers never look at the last extent (CuTe's `detail::coalesce_x`).
pub(crate) fn coalesced_unbounded(layout: &Layout) -> Result<Flat, LayoutError> {
    let last = layout.shape().leaf_count() - 1;
    merged(layout.pairs().enumerate().filter(|(i, (s, _))| !s.is_one() || *i == last).map(|(_, mode)| mode))
}

/// Neighbours merged where the second goes on where the first ends, whatever numbers the names stand for.
fn merged(modes: impl Iterator<Item = (Leaf, Leaf)>) -> Result<Flat, LayoutError> {
    let mut flat = Flat::new();
    for (s, d) in modes {
        match flat.last_mut() {
            Some((last_s, last_d)) if times(*last_s, *last_d).is_ok_and(|end| end.same(d)) => {
                *last_s = times(*last_s, s)?;
            }
            _ => flat.push((s.bare(), d.bare())),
        }
    }
    Ok(flat)
}

/// Coalesces at the terminals of a profile; modes past the profile stay (CuTe's `coalesce(layout, profile)`).
///
/// *Law.* As for [`coalesce`], at every terminal of the profile.
///
/// *Source.* `cute/layout.hpp`, `coalesce` with a target profile.
///
/// # Errors
/// The profile has more modes than the layout.
///
/// ```
/// use cute_layout::layout::{Layout, coalesce_by};
/// let result = coalesce_by(&"(2,(1,6)):(1,(6,2))".parse()?, &"(1,1)".parse()?)?;
/// assert_eq!(result.to_string(), "(2,6):(1,2)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn coalesce_by(layout: &Layout, profile: &IntTuple) -> Result<Layout, LayoutError> {
    by_profile("coalesce", layout, profile, &coalesce)
}

/// Gives every mode of stride 0 the extent 1 (CuTe's `filter_zeros`).
///
/// *Law.* Same profile and strides; the same image.
///
/// *Source.* `cute/layout.hpp`, `filter_zeros`.
///
/// ```
/// use cute_layout::layout::{Layout, filter_zeros};
/// assert_eq!(filter_zeros(&"(4,(2,3)):(0,(1,0))".parse()?).to_string(), "(1,(2,1)):(0,(1,0))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[must_use]
pub fn filter_zeros(layout: &Layout) -> Layout {
    let mut shape = layout.shape().clone();
    for (s, d) in shape.raw_mut().iter_mut().zip(layout.stride().raw()) {
        if d.is_zero() {
            *s = Leaf::int(1).nested_like(*s);
        }
    }
    Layout::from_parts(shape, layout.stride().clone())
}

/// Gives the modes that a profile marks with 0 the extent 1 (CuTe's `filter_zeros(layout, profile)`).
///
/// *Law.* `result(c) == layout(c)` for every coordinate `c` of the result; same profile and strides.
///
/// *Source.* `cute/layout.hpp`, `filter_zeros` with a target profile.
///
/// # Errors
/// The profile is not weakly congruent with the layout's shape.
///
/// ```
/// use cute_layout::layout::{Layout, filter_zeros_by};
/// let result = filter_zeros_by(&"(4,(2,3)):(1,(4,8))".parse()?, &"(1,0)".parse()?)?;
/// assert_eq!(result.to_string(), "(4,(1,1)):(1,(4,8))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn filter_zeros_by(layout: &Layout, profile: &IntTuple) -> Result<Layout, LayoutError> {
    let shape = ones_at_zeros(profile, layout.shape())?;
    Ok(Layout::from_parts(shape, layout.stride().clone()))
}

/// The shape with extent 1 at every leaf below a terminal 0 of the guide.
pub(crate) fn ones_at_zeros(guide: &IntTuple, shape: &IntTuple) -> Result<IntTuple, LayoutError> {
    if guide.is_leaf() {
        return Ok(if guide.raw()[0].is_zero() { shape.repeat_like(Leaf::int(1)) } else { shape.clone() });
    }
    if shape.is_leaf() || guide.rank() != shape.rank() {
        return Err(mismatch("filter_zeros", guide, shape));
    }
    let mut leaves = Leaves::new();
    for (guide, mode) in guide.modes().zip(shape.modes()) {
        leaves.extend_from_slice(ones_at_zeros(&guide, &mode)?.raw());
    }
    IntTuple::wrapped(leaves)
}

/// Drops modes of stride 0 and of extent 1, then coalesces (CuTe's `filter`).
///
/// *Law.* The result is injective wherever the layout is up to its zero strides, and has the same image.
///
/// *Source.* `cute/layout.hpp`, `filter`.
///
/// # Errors
/// As for [`coalesce`].
///
/// ```
/// use cute_layout::layout::{Layout, filter};
/// assert_eq!(filter(&"(4,2,8):(0,1,2)".parse()?)?.to_string(), "16:1");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn filter(layout: &Layout) -> Result<Layout, LayoutError> {
    Layout::from_flat(&filtered(layout)?)
}

/// The modes of the filtered layout; none where the layout has size 1.
pub(crate) fn filtered(layout: &Layout) -> Result<Flat, LayoutError> {
    merged(layout.pairs().filter(|(s, d)| !s.is_one() && !d.is_zero()))
}

/// Filters at the terminals of a profile (CuTe's `filter(layout, profile)`).
///
/// *Law.* That of [`filter`], at every terminal of the profile.
///
/// *Source.* `cute/layout.hpp`, `filter` with a target profile.
///
/// # Errors
/// The profile has more modes than the layout.
///
/// ```
/// use cute_layout::layout::{Layout, filter_by};
/// let result = filter_by(&"((4,2),(3,5)):((0,1),(2,0))".parse()?, &"(1,1)".parse()?)?;
/// assert_eq!(result.to_string(), "(2,3):(1,2)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn filter_by(layout: &Layout, profile: &IntTuple) -> Result<Layout, LayoutError> {
    by_profile("filter", layout, profile, &filter)
}

/// The same modes in a layout of depth one (CuTe's `flatten`).
///
/// *Law.* `flatten(L)(i) == L(i)`, and every mode is a leaf.
///
/// *Source.* `cute/layout.hpp`, `flatten`.
///
/// ```
/// use cute_layout::layout::{Layout, flatten};
/// assert_eq!(flatten(&"((2,(3,4)),5):((1,(2,6)),24)".parse()?).to_string(), "(2,3,4,5):(1,2,6,24)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[must_use]
pub fn flatten(layout: &Layout) -> Layout {
    Layout::from_parts(layout.shape().flatten(), layout.stride().flatten())
}

/// Folds the leaves of a flat layout into a profile (CuTe's `unflatten`).
///
/// *Law.* `unflatten(L, P)(i) == L(i)`, congruent with `P`; `unflatten(flatten(L), shape(L)) == L`.
///
/// *Source.* `cute/layout.hpp`, `unflatten`.
///
/// # Errors
/// The layout is not flat, or the profile has another number of leaves.
///
/// ```
/// use cute_layout::layout::{Layout, unflatten};
/// let result = unflatten(&"(2,3,4):(1,2,6)".parse()?, &"(0,(0,0))".parse()?)?;
/// assert_eq!(result.to_string(), "(2,(3,4)):(1,(2,6))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn unflatten(layout: &Layout, profile: &IntTuple) -> Result<Layout, LayoutError> {
    if layout.depth() > 1 || layout.shape().leaf_count() != profile.leaf_count() {
        return Err(LayoutError::on("unflatten", Class::MismatchedRanks, &[("layout", layout), ("profile", profile)])
            .found(format!("depth {} with {} leaves", layout.depth(), layout.shape().leaf_count()))
            .required(format!("depth at most 1 with {} leaves, as the profile has", profile.leaf_count())));
    }
    let nested = |tuple: &IntTuple| {
        IntTuple::from_leaves(
            tuple.raw().iter().zip(profile.raw()).map(|(leaf, like)| leaf.nested_like(*like)).collect(),
        )
    };
    Ok(Layout::from_parts(nested(layout.shape()), nested(layout.stride())))
}

/// Applies an operation at the terminals of a profile and keeps the modes past it.
pub(crate) fn by_profile(
    op: &'static str,
    layout: &Layout,
    profile: &IntTuple,
    apply: &dyn Fn(&Layout) -> Result<Layout, LayoutError>,
) -> Result<Layout, LayoutError> {
    if profile.is_leaf() {
        return apply(layout);
    }
    if profile.rank() > layout.rank() {
        return Err(mismatch(op, profile, layout.shape()));
    }
    let mut terminals = profile.modes();
    Layout::of_modes(layout.modes().map(|mode| match terminals.next() {
        Some(terminal) => by_profile(op, &mode, &terminal, apply),
        None => Ok(mode),
    }))
}

pub(crate) fn mismatch(op: &'static str, guide: &IntTuple, shape: &IntTuple) -> LayoutError {
    LayoutError::on(op, Class::MismatchedRanks, &[("shape", shape), ("profile", guide)])
        .found(format!("rank {} against rank {}", guide.rank(), shape.rank()))
        .required("a profile that the shape refines")
}
