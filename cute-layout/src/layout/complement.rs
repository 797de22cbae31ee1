//! `complement`: the layout of the indices that a layout leaves out.

use super::coalesce::filtered;
use super::core::{Flat, Layout};
use super::error::{Class, LayoutError};
use super::int_tuple::{IntTuple, Shape};
use super::leaf::Leaf;
use super::number::{at_most, ceil_div, equal, never_one, quotient, times, unknown};
use super::symbol::Term;

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
/// use cute_layout::layout::{Layout, complement};
/// assert_eq!(complement(&"(2,4):(1,2)".parse()?, &16.into())?.to_string(), "2:8");
/// assert_eq!(complement(&"4:2".parse()?, &19.into())?.to_string(), "(2,3):(1,8)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn complement(layout: &Layout, cotarget: &Shape) -> Result<Layout, LayoutError> {
    let within = || -> Result<Layout, LayoutError> {
        if let Some(bad) = cotarget.raw().iter().find(|leaf| leaf.value < 1 || Term::of(**leaf).is_none()) {
            return Err(LayoutError::new("complement", Class::Extent)
                .found(format!("cotarget {}", IntTuple::leaf(*bad)))
                .required("a positive integer or a shape"));
        }
        gaps(layout)?.with_rest(cotarget, |_| false)
    };
    within().map_err(|e| e.within("complement", &[("layout", layout), ("cotarget", cotarget)]))
}

/// The complement of a tiler within the shape of a coalesced layout that it divides.
///
/// With numbers in the place of the names more of the layout's modes may merge, and the rest of a mode that the tiler
/// does not divide would be another one: that is refused.
pub(super) fn complement_in_layout(tiler: &Layout, target: &Layout) -> Result<Layout, LayoutError> {
    let modes: Flat = target.pairs().collect();
    gaps(tiler)?.with_rest(target.shape(), |i| {
        let Ok(end) = times(modes[i].0, modes[i].1) else { return false };
        for (s, d) in &modes[i + 1..] {
            if equal(end, *d) != Some(false) {
                return true;
            }
            if never_one(*s) {
                break;
            }
        }
        false
    })
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
/// use cute_layout::layout::{Layout, complement_in_cosize};
/// assert_eq!(complement_in_cosize(&"(2,2):(1,8)".parse()?)?.to_string(), "4:2");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn complement_in_cosize(layout: &Layout) -> Result<Layout, LayoutError> {
    // The last mode ends at the cosize or past it, so there is no rest.
    gaps(layout)
        .and_then(|gaps| if gaps.vanishing { Err(gaps.unknown_rest()) } else { Layout::from_flat(&gaps.modes) })
        .map_err(|e| e.within("complement", &[("layout", layout)]))
}

/// The indices that a layout leaves out between its modes.
pub(super) struct Gaps {
    modes: Flat,
    /// Where the layout's last mode ends.
    covered: Leaf,
    /// A mode does not begin at a multiple of where the one before ends.
    floored: bool,
    /// A mode behind a gap may have extent 1, and would then leave none: the same function, as long as all divides.
    vanishing: bool,
}

/// The gaps before each mode, in the order of the strides. No two of them merge: each ends before the next begins.
pub(super) fn gaps(layout: &Layout) -> Result<Gaps, LayoutError> {
    let mut modes = filtered(layout)?;
    if let Some((_, d)) = modes.iter().find(|(_, d)| Term::of(*d).is_none()) {
        return Err(LayoutError::new("complement", Class::StrideKind)
            .found(format!("stride {}", IntTuple::leaf(*d)))
            .required("integers or symbols")
            .because("the result depends on the order of the strides as numbers"));
    }
    if let Some((_, d)) = modes.iter().find(|(_, d)| d.value < 0) {
        return Err(negative(IntTuple::leaf(*d)));
    }
    in_order(&mut modes)?;
    let mut gaps = Gaps { modes: Flat::new(), covered: Leaf::int(1), floored: false, vanishing: false };
    for &(s, d) in &modes {
        let gap = match quotient(d, gaps.covered) {
            Some(gap) => gap,
            None if d.is_int() && gaps.covered.is_int() => {
                gaps.floored = true;
                Leaf::int(d.value / gaps.covered.value)
            }
            None => {
                let found = format!("stride {} after {}", IntTuple::leaf(d), IntTuple::leaf(gaps.covered));
                return Err(unknown("complement", found).required("a stride that is a multiple of what lies before it"));
            }
        };
        if gap.is_zero() {
            return Err(overlap(&modes, s, d, gaps.covered));
        }
        if !gap.is_one() {
            gaps.vanishing |= !never_one(s);
            gaps.modes.push((gap, gaps.covered));
        }
        gaps.covered = times(d, s)?;
    }
    Ok(gaps)
}

/// Sorts modes by stride, or says which strides have no order.
fn in_order(modes: &mut Flat) -> Result<(), LayoutError> {
    for i in 1..modes.len() {
        let mut at = i;
        while at > 0 && !at_most(modes[at - 1].1, modes[at].1) {
            let (x, y) = (modes[at - 1].1, modes[at].1);
            if !at_most(y, x) {
                let found = format!("strides {} and {}", IntTuple::leaf(x), IntTuple::leaf(y));
                return Err(unknown("complement", found).required("strides of which one is never larger"));
            }
            modes.swap(at - 1, at);
            at -= 1;
        }
    }
    Ok(())
}

impl Gaps {
    /// The gaps and the rest of a cotarget, where mode `i` of it may merge with one behind it.
    fn with_rest(mut self, cotarget: &Shape, may_merge: impl Fn(usize) -> bool) -> Result<Layout, LayoutError> {
        let rest = self.rest(cotarget, may_merge)?;
        if !rest.is_one() {
            self.modes.push((rest, self.covered));
        }
        Layout::from_flat(&self.modes)
    }

    /// The size of `ceil_div(cotarget, covered)`: leaf by leaf, the divisor is used up from left to right.
    fn rest(&self, cotarget: &Shape, may_merge: impl Fn(usize) -> bool) -> Result<Leaf, LayoutError> {
        let (mut size, mut divisor) = (Leaf::int(1), self.covered);
        let last = cotarget.leaf_count() - 1;
        for (i, leaf) in cotarget.raw().iter().map(|leaf| leaf.bare()).enumerate() {
            let inside = i < last && quotient(divisor, leaf).is_some();
            let whole = quotient(leaf, divisor).is_some() || inside;
            if !whole && (self.vanishing || i < last && may_merge(i)) {
                return Err(self.unknown_rest());
            }
            size = times(size, ceil_div(leaf, divisor)?)?;
            if i < last {
                divisor = ceil_div(divisor, leaf)?;
            }
        }
        Ok(size)
    }

    fn unknown_rest(&self) -> LayoutError {
        unknown("complement", format!("a tiler that reaches to {}", IntTuple::leaf(self.covered)))
            .required("an extent that it divides, or that divides it")
    }

    /// The offsets of the copies of a block: the gaps, and all indices from the block's end on.
    pub(super) fn unbounded(mut self) -> Result<Layout, LayoutError> {
        if self.floored {
            return Err(unknown("complement", format!("a block that reaches to {}", IntTuple::leaf(self.covered)))
                .required("strides that are multiples of what lies before them"));
        }
        self.modes.push((Leaf::int(2), self.covered));
        Layout::from_flat(&self.modes)
    }
}

pub(super) fn negative(stride: IntTuple) -> LayoutError {
    LayoutError::new("complement", Class::StrideKind)
        .found(format!("stride {stride}"))
        .required("strides that are not negative")
        .because("the image reaches below 0, where no complement can be ordered")
        .cute("compiles, and gives a layout that means nothing")
}

fn overlap(modes: &Flat, s: Leaf, d: Leaf, covered: Leaf) -> LayoutError {
    let sorted: Vec<String> = modes.iter().map(|(s, d)| mode(*s, *d)).collect();
    let covered = covered.value;
    LayoutError::new("complement", Class::NonInjective)
        .found(format!(
            "in order of strides {}, mode {} begins inside the modes before it, which reach to {covered}",
            sorted.join(" "),
            mode(s, d),
        ))
        .required(format!("a stride of at least {covered} there ({} / {covered} = 0)", d.value))
        .because("two coordinates have the same value, or the modes interleave and no gap has a fixed width")
        .help("drop the mode, or widen its stride")
        .cute("refuses: Non-injective Layout detected in complement.")
}

fn mode(s: Leaf, d: Leaf) -> String {
    format!("{}:{}", IntTuple::leaf(s), IntTuple::leaf(d))
}
