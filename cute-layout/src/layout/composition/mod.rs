//! `composition(A, B)`: the layout R with `R(c) = A(B(c))`, accepted exactly where one exists.
//!
//! *Law.* `compatible(B, R)`: every leaf of B is a mode of R, perhaps cut into several; and `R(c) == A(B(c))` for every
//! coordinate `c` of B. If a layout with these two properties exists, `composition` finds it; if none exists, it refuses.
//! CuTe C++ checks divisibility of each leaf of B alone, and so accepts some B whose leaves carry into each other under A
//! (and returns a layout with other values), and refuses some that are representable.
//!
//! Choices that are made here, also beyond A's size and below 0:
//! * A's last leaf has no bound, also where its extent is 1: `(4,1):(1,7) o 8:1` is `(4,2):(1,7)`.
//! * A mode of B with stride 0 stays as it is. A mode of extent 1 gets the stride that CuTe gives it.
//! * Negative strides: A continues below 0 as C++ division does, towards zero, so `A(-x) = -A(x)`.
//! * B with basis strides (`2@1`) steps through the mode of A that the basis points to.
//!
//! Time depends on the number of leaves. Only where carries can cancel each other are values looked at, and that is
//! bounded; see [`MOST_EVENTS`] and [`MOST_VALUES`].

mod exact;
mod fold;
mod refuse;
mod verdict;

pub use exact::{MOST_EVENTS, MOST_VALUES};
pub(crate) use refuse::Refusal;
pub(crate) use verdict::cute_composition;
pub use verdict::{Cute, cute_verdict};

use super::coalesce::coalesced_unbounded;
use super::construct::make_layout;
use super::core::Layout;
use super::error::{Class, LayoutError};
use super::int_tuple::{IntTuple, Shape};
use super::leaf::{Leaf, Tag};
use super::tiler::{Tiler, TilerModes};

/// The composition of two layouts, `R(c) = A(B(c))` (CuTe's `composition(A, B)`).
///
/// *Law.* `compatible(B, R)` and `R(c) == A(B(c))` for every coordinate `c` of B.
///
/// *Source.* `cute/layout.hpp`, `composition`; C. Cecka, *CuTe Layout Representation and Algebra*, arXiv 2603.02298; J.
/// Shah, *A note on the algebra of CuTe layouts*.
///
/// # Errors
/// No layout compatible with B has these values ([`Class::StrideDivisibility`], [`Class::ShapeDivisibility`],
/// [`Class::Carry`]); deciding reaches a bound ([`Class::Undecided`]); a number does not fit in 64 bits.
///
/// ```
/// use cute_layout::layout::{Layout, composition};
/// let a: Layout = "(16,256):(512,1)".parse()?;
/// let b: Layout = "((32,4),(8,4)):((128,4),(16,1))".parse()?;
/// assert_eq!(composition(&a, &b)?.to_string(), "((32,4),(8,4)):((8,2048),(1,512))");
///
/// // CuTe C++ accepts this one and answers (2,2):(1,3), whose value at 3 is 4; A(B(3)) is 100.
/// assert!(composition(&"(4,2):(1,100)".parse()?, &"(2,2):(1,3)".parse()?).is_err());
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn composition(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    if b.stride().raw().iter().any(|d| d.tag().is_basis()) {
        return by_basis(a, b);
    }
    let lhs = coalesced_unbounded(a)?;
    let undecided = match fold::compose(&lhs, b) {
        Ok(result) => return bounded(result),
        Err(undecided) => undecided,
    };
    let integers = b.static_shape() && b.int_strides() && lhs[..lhs.len() - 1].iter().all(|(s, _)| s.is_int());
    if !integers {
        return Err(undecided.within("composition", &[("A", a), ("B", b)]));
    }
    match exact::compose(&lhs, b) {
        Ok(result) => bounded(result),
        Err(reason) => Err(refuse::refuse(a, b, reason)),
    }
}

/// A piece adds a level of nesting; B may already have as many as there can be.
fn bounded(result: Layout) -> Result<Layout, LayoutError> {
    result.shape().check_limits().map_err(|e| e.within("composition", &[]))?;
    Ok(result)
}

/// B's strides are basis elements: each leaf steps through the mode of A that its basis points to. Leaves that point to
/// the same mode must agree there; leaves that point to different modes are independent.
fn by_basis(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let mut tags: Vec<Tag> = b.stride().raw().iter().filter(|d| d.value != 0).map(|d| d.tag()).collect();
    tags.sort_unstable();
    tags.dedup();
    let overlap =
        tags.iter().any(|x| tags.iter().any(|y| x != y && y.path().as_slice().starts_with(x.path().as_slice())));
    if overlap || tags.iter().any(|tag| !tag.is_basis() && !tag.is_int()) {
        return Err(LayoutError::on("composition", Class::StrideKind, &[("A", a), ("B", b)])
            .found(format!("the strides of {b}"))
            .required("basis elements that all point to leaves of one codomain"));
    }
    let mut parts: Vec<Option<Layout>> = vec![None; b.shape().leaf_count()];
    for tag in tags {
        let target = mode_at(a, tag.path().as_slice()).ok_or_else(|| {
            LayoutError::on("composition", Class::MismatchedRanks, &[("A", a), ("B", b)])
                .found(format!("a basis element at {:?}", tag.path().as_slice()))
                .required("a mode of A at that place")
        })?;
        let members: Vec<usize> =
            b.pairs().enumerate().filter(|(_, (_, d))| d.tag() == tag && d.value != 0).map(|(i, _)| i).collect();
        let own = Layout::from_modes(members.iter().map(|&i| {
            let (s, d) = (b.shape().raw()[i], b.stride().raw()[i]);
            Layout::from_parts(IntTuple::leaf(s), IntTuple::int(d.value))
        }))?;
        let result = composition(&target, &own)?;
        members.iter().zip(result.modes()).for_each(|(&i, mode)| parts[i] = Some(mode));
    }
    bounded(Layout::refined(b, |i, s, _, own| -> Result<(), LayoutError> {
        match &parts[i] {
            Some(part) => own.extend(part.pairs()),
            None => own.push((s, Leaf::int(0))),
        }
        Ok(())
    })?)
}

fn mode_at(a: &Layout, path: &[u8]) -> Option<Layout> {
    Some(Layout::from_parts(a.shape().at_path(path)?, a.stride().at_path(path)?))
}

/// The layout with another shape: the same value at each index, and so an inverse in the shape of one's choosing (CuTe's
/// `layout.with_shape(shape)`).
///
/// *Law.* `compatible(shape, R)`, and `R(i) == layout(i)` at every index `i` below the shape's size. Past its own size the
/// layout goes on, as in [`composition`].
///
/// *Source.* `cute/layout.hpp`, `Layout::with_shape`, which is `composition(layout, make_layout(shape))`.
///
/// # Errors
/// As for [`composition`]: a mode of the shape would need two strides; an extent is not positive.
///
/// ```
/// use cute_layout::layout::{Layout, left_inverse, with_shape};
/// let inverse = left_inverse(&"(4,4):(4,1)".parse()?)?;
/// assert_eq!(with_shape(&inverse, &(8, 2).into())?.to_string(), "((4,2),2):((4,1),2)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn with_shape(layout: &Layout, shape: &Shape) -> Result<Layout, LayoutError> {
    let within = |e: LayoutError| e.within("with_shape", &[("layout", layout), ("shape", shape)]);
    composition(layout, &make_layout(shape).map_err(within)?).map_err(within)
}

/// By-mode composition (CuTe's `composition(layout, tiler)`): each mode of the layout with its entry of the tiler; `_`
/// keeps a mode; modes past the tiler are dropped.
///
/// *Law.* That of [`composition`], mode by mode.
///
/// *Source.* `cute/layout.hpp`, `composition` with a tiler.
///
/// # Errors
/// The tiler has more modes than the layout; or as for [`composition`].
///
/// ```
/// use cute_layout::layout::{Layout, Tiler, composition_by};
/// let a: Layout = "(8,6,5):(30,5,1)".parse()?;
/// assert_eq!(composition_by(&a, &"[4:2,_]".parse::<Tiler>()?)?.to_string(), "(4,6):(60,5)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn composition_by(a: &Layout, tiler: &Tiler) -> Result<Layout, LayoutError> {
    match tiler.modes() {
        TilerModes::Keep => Ok(a.clone()),
        TilerModes::Terminal(layout) => composition(a, layout),
        TilerModes::Extent(extent) => composition(a, &Layout::new(extent.clone(), IntTuple::int(1))?),
        TilerModes::ByMode(entries) => {
            if entries > a.rank() {
                return Err(too_many("composition", a, tiler));
            }
            Layout::of_modes(a.modes().zip(tiler.entries()).map(|(mode, entry)| composition_by(&mode, &entry)))
        }
    }
}

pub(crate) fn too_many(op: &'static str, a: &Layout, tiler: &Tiler) -> LayoutError {
    LayoutError::on(op, Class::TooManyModes, &[("layout", a), ("tiler", tiler)])
        .found(format!("a tiler for more than the layout's {} modes", a.rank()))
        .required("at most one entry for each mode")
        .help("group modes of the tiler, or append modes of extent 1 to the layout")
}
