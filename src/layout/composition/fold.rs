//! Composition leaf by leaf, where what is asked of the numbers can be decided: integers and symbols alike.
//!
//! A, coalesced, is a mixed-radix number system: mode `k` has extent `s_k` and weight `P_k = s_0 * .. * s_(k-1)`; the
//! last mode has no bound. A leaf `t:e` of B steps through it. Where `e` is a multiple of `P_k` and each step stays
//! inside mode `k` until it lands exactly on its end, the leaf splits into one piece for each mode it crosses. Pieces of
//! different leaves do not disturb each other if, in each mode, the pieces together stay below the mode's extent: no
//! digit carries. That is checked here for all leaves of B together, which CuTe does not do.
//!
//! Every question (does one number divide another, is it always smaller) must have the same answer for all values of
//! the names. Integers always decide; what they decide against is looked at again in [`exact`](super::exact).

use smallvec::SmallVec;

use super::super::core::{Flat, Layout};
use super::super::error::{Class, LayoutError};
use super::super::int_tuple::{IntTuple, Leaves};
use super::super::leaf::{Leaf, nest_pieces};
use super::super::number::{Sum, below, magnitude, quotient, times, unknown};
use super::exact::unit_stride;
use super::leaf_path;

/// What does not hold, or is not known to hold.
pub(super) enum Undecided {
    /// A step of a leaf of B neither stays inside a mode of A nor is a multiple of its extent.
    Step { leaf: usize, step: Leaf, extent: Leaf },
    /// What is left of a leaf's extent is not cut evenly by the end of a mode of A.
    Pieces { leaf: usize, rest: Leaf, step: Leaf, extent: Leaf },
    /// The leaves of B together may reach the end of this mode.
    Carry { extent: Leaf },
    /// Strides of both signs.
    Signs,
    /// A product does not fit, or is none.
    Number(LayoutError),
}

impl From<LayoutError> for Undecided {
    fn from(error: LayoutError) -> Undecided {
        Undecided::Number(error)
    }
}

/// A piece of a leaf of B that stays inside a mode of A: `extent` steps of `step`.
struct Piece {
    mode: usize,
    extent: Leaf,
    step: Leaf,
}

/// `A o B`, with A's modes in `lhs`.
pub(super) fn compose(lhs: &Flat, b: &Layout) -> Result<Layout, Undecided> {
    let mut shape = Leaves::new();
    let mut stride = Leaves::new();
    let mut inside: SmallVec<[Piece; 8]> = SmallVec::new();
    let mut signs = [false; 2];
    for (leaf, (t, e)) in b.pairs().enumerate() {
        let first = shape.len();
        if e.value == 0 || t.is_one() {
            let by = if e.value == 0 || !e.is_int() { None } else { unit_stride(lhs, e.value) };
            shape.push(t.bare());
            stride.push(by.unwrap_or(Leaf::int(0)).bare());
        } else {
            signs[usize::from(e.value < 0)] = true;
            let mut push = |extent: Leaf, by: Leaf, step: Leaf| -> Result<(), LayoutError> {
                shape.push(extent);
                stride.push(times(by, times(step, Leaf::int(e.value.signum()))?)?);
                Ok(())
            };
            let last = cut(lhs, leaf, t.bare(), magnitude(e.bare())?, &mut inside, &mut push)?;
            if let Some((rest, step)) = last {
                push(rest, lhs[lhs.len() - 1].1, step)?;
            }
        }
        nest_pieces(&mut shape[first..], t);
        nest_pieces(&mut stride[first..], t);
    }
    if signs == [true; 2] {
        return Err(Undecided::Signs);
    }
    for (mode, (extent, _)) in lhs.iter().enumerate().take(lhs.len() - 1) {
        if carries(*extent, inside.iter().filter(|piece| piece.mode == mode))? {
            return Err(Undecided::Carry { extent: *extent });
        }
    }
    Ok(Layout::from_parts(IntTuple::from_leaves(shape), IntTuple::from_leaves(stride)))
}

/// Cuts `rest` steps of `step` at the ends of A's modes. What is left for the last mode, which has no end, comes back.
fn cut(
    lhs: &Flat,
    leaf: usize,
    mut rest: Leaf,
    mut step: Leaf,
    inside: &mut SmallVec<[Piece; 8]>,
    push: &mut impl FnMut(Leaf, Leaf, Leaf) -> Result<(), LayoutError>,
) -> Result<Option<(Leaf, Leaf)>, Undecided> {
    for (mode, &(extent, by)) in lhs.iter().enumerate().take(lhs.len() - 1) {
        if let Some(steps) = quotient(step, extent) {
            step = steps;
            continue;
        }
        // A mode of extent `step` is one piece of extent 1 and leaves the next mode to steps of 1: as whatever divides.
        if !below(step, extent) && quotient(extent, step).is_none() {
            return Err(Undecided::Step { leaf, step, extent });
        }
        let whole = Piece { mode, extent: rest, step };
        if !carries(extent, [&whole].into_iter())? {
            push(rest, by, step)?;
            inside.push(whole);
            return Ok(None);
        }
        let cut = quotient(extent, step).and_then(|fits| Some((fits, quotient(rest, fits)?)));
        let Some((fits, after)) = cut else {
            return Err(Undecided::Pieces { leaf, rest, step, extent });
        };
        push(fits, by, step)?;
        inside.push(Piece { mode, extent: fits, step });
        if after.is_one() {
            return Ok(None);
        }
        (rest, step) = (after, Leaf::int(1));
    }
    Ok(Some((rest, step)))
}

/// Whether pieces together may reach the end of a mode.
fn carries<'a>(extent: Leaf, mut pieces: impl Iterator<Item = &'a Piece> + Clone) -> Result<bool, LayoutError> {
    if extent.is_int() && pieces.clone().all(|piece| piece.extent.is_int() && piece.step.is_int()) {
        let reach = pieces
            .try_fold(0i64, |reach, piece| (piece.extent.value - 1).checked_mul(piece.step.value)?.checked_add(reach));
        return Ok(reach.is_none_or(|reach| reach >= extent.value));
    }
    let mut left = Sum::of(-1);
    left.add(&[extent], 1)?;
    for piece in pieces {
        left.add(&[piece.extent, piece.step], -1)?;
        left.add(&[piece.step], 1)?;
    }
    Ok(!left.never_negative())
}

impl Undecided {
    /// The error of a composition with symbols that depends on the numbers they stand for.
    pub(super) fn error(self, a: &Layout, b: &Layout) -> LayoutError {
        let text = IntTuple::leaf;
        let path = |leaf: usize| format!("B{}", leaf_path(b.shape(), leaf));
        let error = match self {
            Undecided::Step { leaf, step, extent } => {
                unknown("composition", format!("steps of {} through a mode of extent {}", text(step), text(extent)))
                    .leaf(path(leaf))
                    .required("steps that are always smaller, or always a multiple")
            }
            Undecided::Pieces { leaf, rest, step, extent } => {
                let found = format!("{} steps of {} in a mode of extent {}", text(rest), text(step), text(extent));
                unknown("composition", found)
                    .leaf(path(leaf))
                    .required("steps that stay inside the mode, or that its end always cuts evenly")
            }
            Undecided::Carry { extent } => {
                unknown("composition", format!("leaves of B that may together reach {}", text(extent)))
                    .required("leaves that stay below the end of A's mode together")
            }
            Undecided::Signs => LayoutError::new("composition", Class::StrideKind)
                .found("strides of B of both signs")
                .required("strides of one sign, where there are symbols"),
            Undecided::Number(error) => error,
        };
        error.within("composition", &[("A", a), ("B", b)])
    }
}
