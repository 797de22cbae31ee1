//! The common case of composition, in one pass over the leaves: no values are computed and nothing is allocated.
//!
//! A, coalesced, is a mixed-radix number system: mode `k` has extent `s_k` and weight `P_k = s_0 * .. * s_(k-1)`; the
//! last mode has no bound. A leaf `t:e` of B steps through it. Where `e` is a multiple of `P_k` and each step stays
//! inside mode `k` until it lands exactly on its end, the leaf splits into one piece for each mode it crosses. Pieces of
//! different leaves do not disturb each other if, in each mode, the pieces together stay below the mode's extent: no
//! digit carries. That is checked here for all leaves of B together, which CuTe does not do.

use super::super::core::{Flat, Layout, div_rem};
use super::super::leaf::Leaf;
use super::super::written::Sink;

/// Modes of A that are kept in arrays; anything larger is left to the exact decision.
pub(super) const MOST: usize = 8;

/// A, coalesced, in two arrays: extents and strides.
pub(super) struct Modes {
    pub(super) extent: [i64; MOST],
    pub(super) stride: [i64; MOST],
    /// The index of the last mode, whose extent does not count.
    pub(super) last: usize,
}

impl Modes {
    #[inline(always)]
    pub(super) fn new() -> Modes {
        Modes { extent: [0; MOST], stride: [0; MOST], last: 0 }
    }

    /// Whether A could be read: it has no more leaves than fit, and all of them are integers.
    ///
    /// No branch depends on the numbers: a branch that is guessed wrongly costs more than all of this.
    #[inline(always)]
    pub(super) fn read(&mut self, a: &Layout) -> bool {
        let (Some((s, shape)), Some((d, stride))) = (a.shape().raw().split_first(), a.stride().raw().split_first())
        else {
            return false;
        };
        if shape.len() >= MOST {
            return false;
        }
        let mut kinds = s.meta | d.meta;
        let (mut extent, mut by) = (s.value, d.value);
        let mut count = 0;
        let mut left = shape.len();
        for (s, d) in shape.iter().zip(stride) {
            left -= 1;
            kinds |= s.meta | d.meta;
            let (end, over) = by.overflowing_mul(extent);
            let merges = (!over & (end == d.value)) | ((s.value == 1) & (left > 0));
            self.extent[count & (MOST - 1)] = extent;
            self.stride[count & (MOST - 1)] = by;
            // A leading mode of extent 1 gives way to the next.
            count += usize::from(!merges & (extent != 1));
            extent = if merges { extent.wrapping_mul(s.value) } else { s.value };
            by = if merges { by } else { d.value };
        }
        self.extent[count & (MOST - 1)] = extent;
        self.stride[count & (MOST - 1)] = by;
        self.last = count;
        Leaf { value: 0, meta: kinds }.is_int()
    }
}

/// Writes the composition where every leaf is regular and no digit carries, and tells its number of leaves. `None` says
/// nothing more than that this is not so, or that there was no room; what was written means nothing then.
///
/// As in CuTe's fold every mode of A gives every leaf of B a piece, here perhaps of extent 1, and the next piece is
/// written over that one. Two divisions for each, and no branch that depends on the numbers.
#[inline(always)]
pub(super) fn compose(a: &Modes, b: &Layout, out: &mut impl Sink) -> Option<usize> {
    // For each mode of A the largest digit that the pieces reach together.
    let mut span = [0i64; MOST];
    let (mut kinds, mut negative, mut positive) = (0, false, false);
    let mut len = 0;
    for (t, e) in b.pairs() {
        kinds |= t.meta | e.meta;
        let (mut rest, mut step) = (t.value, e.value.checked_abs()?);
        if step == 0 || rest == 1 {
            let by = if step == 0 { 0 } else { unit(a, e.value)? };
            out.put(len, t, Leaf { value: by, meta: t.meta })?;
            len += 1;
            continue;
        }
        let sign = 1 | e.value >> 63;
        negative |= sign < 0;
        positive |= sign > 0;
        let first = len;
        let mut bad = false;
        for ((s, by), span) in a.extent.iter().zip(&a.stride).zip(&mut span).take(a.last) {
            let inside = step < *s;
            let (more, less) = if inside { (*s, step) } else { (step, *s) };
            let (quotient, uneven) = div_rem(more, less);
            let fits = if inside { quotient + i64::from(uneven != 0) } else { 1 };
            let piece = fits.min(rest);
            let (after, odd) = div_rem(rest, piece);
            bad |= (odd != 0) | ((uneven != 0) & (rest > fits));
            // Below `s`, since a piece stays inside its mode.
            *span = span.checked_add((piece - 1) * step)?;
            out.put(len, Leaf::int(piece), Leaf::int(by.checked_mul(step * sign)?))?;
            len += usize::from(piece > 1);
            rest = after;
            step = if inside { 1 } else { quotient };
        }
        if bad {
            return None;
        }
        out.put(len, Leaf::int(rest), Leaf::int(a.stride[a.last].checked_mul(step * sign)?))?;
        len += usize::from(rest > 1);
        out.nest(first, len, t);
    }
    let carries = span.iter().zip(&a.extent).take(a.last).any(|(span, s)| span >= s);
    let wrong = carries || negative && positive || !Leaf { value: 0, meta: kinds }.is_int();
    (!wrong).then_some(len)
}

/// The stride that CuTe gives a leaf of extent 1, or `None` where CuTe refuses. No value depends on it.
#[inline]
pub(super) fn unit(a: &Modes, stride: i64) -> Option<i64> {
    let rest = unit_steps(a.extent[..a.last].iter().copied(), stride)?;
    a.stride[a.last].checked_mul(rest)
}

/// [`unit`] for any A.
pub(super) fn unit_stride(lhs: &Flat, stride: i64) -> Option<Leaf> {
    let (last, before) = lhs.split_last()?;
    last.1.scaled(unit_steps(before.iter().map(|(s, _)| s.value), stride)?)
}

#[inline]
fn unit_steps(extents: impl Iterator<Item = i64>, stride: i64) -> Option<i64> {
    let mut rest = stride.checked_abs()?;
    for s in extents {
        let (quotient, remainder) = div_rem(rest, s);
        if remainder != 0 && stride >= s && rest >= s {
            return None;
        }
        rest = quotient + i64::from(remainder != 0);
    }
    rest.checked_mul(stride.signum())
}
