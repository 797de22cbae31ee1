//! The common case of composition, in one pass over the leaves: no values are computed and nothing is allocated.
//!
//! A, coalesced, is a mixed-radix number system: mode `k` has extent `s_k` and weight `P_k = s_0 * .. * s_(k-1)`; the
//! last mode has no bound. A leaf `t:e` of B steps through it. Where `e` is a multiple of `P_k` and each step stays
//! inside mode `k` until it lands exactly on its end, the leaf splits into one piece for each mode it crosses. Pieces of
//! different leaves do not disturb each other if, in each mode, the pieces together stay below the mode's extent: no
//! digit carries. That is checked here for all leaves of B together, which CuTe does not do.

use super::super::core::{Flat, Layout, div_rem};
use super::super::leaf::{Leaf, nest_pieces};

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

    /// `None` where A has too many leaves, or A or B has leaves that are not integers.
    #[inline(always)]
    pub(super) fn read(&mut self, a: &Layout, b: &Layout) -> Option<()> {
        let (shape, stride) = (a.shape().raw(), a.stride().raw());
        if shape.len() > MOST || shape.len() != stride.len() || !(b.static_shape() && b.int_strides()) {
            return None;
        }
        let mut count = 0;
        for (i, (s, d)) in shape.iter().zip(stride).enumerate() {
            if !(s.is_int() && d.is_int()) {
                return None;
            }
            if s.value == 1 && i + 1 < shape.len() {
                continue;
            }
            if count > 0 {
                let before = self.extent[count - 1];
                if self.stride[count - 1].checked_mul(before)? == d.value {
                    self.extent[count - 1] = before.checked_mul(s.value)?;
                    continue;
                }
            }
            self.extent[count] = s.value;
            self.stride[count] = d.value;
            count += 1;
        }
        self.last = count.checked_sub(1)?;
        Some(())
    }
}

/// Writes the composition to `out` where every leaf is regular and no digit carries. `None` says nothing more than that
/// this is not so, and leaves `out` unusable. `out` comes in empty.
#[inline(always)]
pub(super) fn compose(a: &Modes, b: &Layout, out: &mut Layout) -> Option<()> {
    let (shape, stride) = out.leaves_mut();
    // For each mode of A the largest digit that the pieces reach together.
    let mut span = [0i64; MOST];
    let mut signs = 0u8;
    for (t, e) in b.pairs() {
        let first = shape.len();
        let (mut rest, mut step) = (t.value, e.value.checked_abs()?);
        let sign = e.value.signum();
        let mut by = a.stride[a.last];
        if step == 0 || rest == 1 {
            by = if step == 0 { 0 } else { unit(a, e.value)? };
            step = 1;
        } else {
            signs |= if sign > 0 { 1 } else { 2 };
            for (k, span) in span.iter_mut().enumerate().take(a.last) {
                let s = a.extent[k];
                if step >= s {
                    let (quotient, remainder) = div_rem(step, s);
                    if remainder != 0 {
                        return None;
                    }
                    step = quotient;
                    continue;
                }
                let (whole, uneven) = if step == 1 { (s, 0) } else { div_rem(s, step) };
                let fits = whole + i64::from(uneven != 0);
                if rest <= fits {
                    *span = span.checked_add((rest - 1) * step)?;
                    by = a.stride[k];
                    break;
                }
                let (after, odd) = div_rem(rest, fits);
                if odd != 0 || uneven != 0 {
                    return None;
                }
                *span = span.checked_add((fits - 1) * step)?;
                shape.push(Leaf::int(fits));
                stride.push(Leaf::int(a.stride[k].checked_mul(step * sign)?));
                rest = after;
                step = 1;
            }
            step *= sign;
        }
        let by = by.checked_mul(step)?;
        if shape.len() == first {
            shape.push(Leaf { value: rest, meta: t.meta });
            stride.push(Leaf { value: by, meta: t.meta });
        } else {
            shape.push(Leaf::int(rest));
            stride.push(Leaf::int(by));
            nest_pieces(&mut shape[first..], t);
            nest_pieces(&mut stride[first..], t);
        }
    }
    let carries = (0..a.last).any(|k| span[k] >= a.extent[k]);
    (!carries && signs != 3).then_some(())
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
