//! The common case of composition, in one pass over the leaves: no values are computed.
//!
//! A, coalesced, is a mixed-radix number system: mode `k` has extent `s_k` and weight `P_k = s_0 * .. * s_(k-1)`; the
//! last mode has no bound. A leaf `t:e` of B steps through it. Where `e` is a multiple of `P_k` and each step stays
//! inside mode `k` until it lands exactly on its end, the leaf splits into one piece for each mode it crosses. Pieces of
//! different leaves do not disturb each other if, in each mode, the pieces together stay below the mode's extent: no
//! digit carries. That is checked here for all leaves of B together, which CuTe does not do.

use smallvec::SmallVec;

use super::super::core::{Flat, Layout, div_rem};
use super::super::int_tuple::{IntTuple, Leaves};
use super::super::leaf::Leaf;

/// The composition where every leaf is regular and no digit carries; `None` says nothing more than that it is not.
#[inline]
pub(super) fn compose(lhs: &Flat, b: &Layout) -> Option<Layout> {
    let mut parts = Parts { shape: Leaves::new(), stride: Leaves::new(), span: SmallVec::from_elem(0, lhs.len()) };
    let mut signs = 0u8;
    for (t, e) in b.pairs() {
        let first = parts.shape.len();
        if e.value == 0 {
            parts.push(t.value, Leaf::int(0));
        } else if t.value == 1 {
            parts.push(1, unit_stride(lhs, e.value)?);
        } else {
            signs |= if e.value > 0 { 1 } else { 2 };
            parts.step(lhs, t.value, e.value)?;
        }
        parts.nest(first, t);
    }
    let bounded = lhs.len() - 1;
    let carries = parts.span[..bounded].iter().zip(lhs).any(|(span, (s, _))| *span >= s.value);
    if carries || signs == 3 {
        return None;
    }
    Some(Layout::from_parts(IntTuple::from_leaves(parts.shape), IntTuple::from_leaves(parts.stride)))
}

struct Parts {
    shape: Leaves,
    stride: Leaves,
    /// For each mode of A the largest digit that the pieces reach together.
    span: SmallVec<[i64; 8]>,
}

impl Parts {
    #[inline]
    fn push(&mut self, extent: i64, stride: Leaf) {
        self.shape.push(Leaf::int(extent));
        self.stride.push(stride.bare());
    }

    /// Splits one leaf `extent:stride` of B over the modes of A.
    #[inline]
    fn step(&mut self, lhs: &Flat, extent: i64, stride: i64) -> Option<()> {
        let sign = stride.signum();
        let mut rest = extent;
        let mut step = stride.checked_abs()?;
        let last = lhs.len() - 1;
        for (k, (s, d)) in lhs[..last].iter().enumerate() {
            let s = s.value;
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
                self.span[k] = self.span[k].checked_add((rest - 1) * step)?;
                self.push(rest, d.scaled(step * sign)?);
                return Some(());
            }
            let (after, odd) = div_rem(rest, fits);
            if odd != 0 || uneven != 0 {
                return None;
            }
            self.span[k] = self.span[k].checked_add((fits - 1) * step)?;
            self.push(fits, d.scaled(step * sign)?);
            rest = after;
            step = 1;
        }
        let (_, d) = lhs[last];
        self.push(rest, d.scaled(step.checked_mul(sign)?)?);
        Some(())
    }

    /// Gives the pieces of a leaf that leaf's parentheses, and one more pair where there are several.
    #[inline]
    fn nest(&mut self, first: usize, like: Leaf) {
        let end = self.shape.len() - 1;
        let more = u8::from(end > first);
        self.shape[first].open = like.open + more;
        self.stride[first].open = like.open + more;
        self.shape[end].close = like.close + more;
        self.stride[end].close = like.close + more;
    }
}

/// The stride that CuTe gives a leaf of extent 1, or `None` where CuTe refuses. No value depends on it.
#[inline]
pub(super) fn unit_stride(lhs: &Flat, stride: i64) -> Option<Leaf> {
    let mut rest = stride.checked_abs()?;
    let (last, before) = lhs.split_last()?;
    for (s, _) in before {
        let (quotient, remainder) = div_rem(rest, s.value);
        if remainder != 0 && stride >= s.value && rest >= s.value {
            return None;
        }
        rest = quotient + i64::from(remainder != 0);
    }
    last.1.scaled(rest.checked_mul(stride.signum())?)
}
