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
use super::super::int_tuple::IntTuple;
use super::super::leaf::Leaf;
use super::super::number::{Sum, below, magnitude, quotient, times, unknown};
use super::exact::unit_stride;

/// A piece of a leaf of B that stays inside a mode of A: `extent` steps of `step`.
struct Piece {
    mode: usize,
    extent: Leaf,
    step: Leaf,
}

/// `A o B`, with A's modes in `lhs`; or what does not hold, or is not known to hold.
pub(super) fn compose(lhs: &Flat, b: &Layout) -> Result<Layout, LayoutError> {
    let mut inside: SmallVec<[Piece; 8]> = SmallVec::new();
    let mut signs = [false; 2];
    let layout = Layout::refined(b, |leaf, t, e, own| {
        if e.value == 0 || t.is_one() {
            let by = if e.value == 0 || !e.is_int() { None } else { unit_stride(lhs, e.value) };
            own.push((t, by.unwrap_or(Leaf::int(0))));
            return Ok(());
        }
        signs[usize::from(e.value < 0)] = true;
        let signed = |by: Leaf, step: Leaf| times(by, times(step, Leaf::int(e.value.signum()))?);
        let last = cut(lhs, &signed, t.bare(), magnitude(e.bare())?, &mut inside, own)
            .map_err(|error| error.leaf(format!("B{}", b.shape().leaf_path(leaf))))?;
        if let Some((rest, step)) = last {
            own.push((rest, signed(lhs[lhs.len() - 1].1, step)?));
        }
        Ok(())
    })?;
    if signs == [true; 2] {
        return Err(LayoutError::new("composition", Class::StrideKind)
            .found("strides of B of both signs")
            .required("strides of one sign, where there are symbols"));
    }
    for (mode, (extent, _)) in lhs.iter().enumerate().take(lhs.len() - 1) {
        if carries(*extent, inside.iter().filter(|piece| piece.mode == mode))? {
            let found = format!("leaves of B that may together reach {}", IntTuple::leaf(*extent));
            return Err(unknown("composition", found).required("leaves that stay below the end of A's mode together"));
        }
    }
    Ok(layout)
}

/// Cuts `rest` steps of `step` at the ends of A's modes. Returns the rest for the last mode, which has no end.
fn cut(
    lhs: &Flat,
    signed: &dyn Fn(Leaf, Leaf) -> Result<Leaf, LayoutError>,
    mut rest: Leaf,
    mut step: Leaf,
    inside: &mut SmallVec<[Piece; 8]>,
    own: &mut Flat,
) -> Result<Option<(Leaf, Leaf)>, LayoutError> {
    let text = IntTuple::leaf;
    for (mode, &(extent, by)) in lhs.iter().enumerate().take(lhs.len() - 1) {
        if let Some(steps) = quotient(step, extent) {
            step = steps;
            continue;
        }
        // A mode of extent `step` is one piece of extent 1 and leaves the next mode to steps of 1: as whatever divides.
        if !below(step, extent) && quotient(extent, step).is_none() {
            let found = format!("steps of {} through a mode of extent {}", text(step), text(extent));
            return Err(unknown("composition", found).required("steps that are always smaller, or always a multiple"));
        }
        let whole = Piece { mode, extent: rest, step };
        if !carries(extent, [&whole].into_iter())? {
            own.push((rest, signed(by, step)?));
            inside.push(whole);
            return Ok(None);
        }
        let cut = quotient(extent, step).and_then(|fits| Some((fits, quotient(rest, fits)?)));
        let Some((fits, after)) = cut else {
            let found = format!("{} steps of {} in a mode of extent {}", text(rest), text(step), text(extent));
            return Err(unknown("composition", found)
                .required("steps that stay inside the mode, or that its end always cuts evenly"));
        };
        own.push((fits, signed(by, step)?));
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
