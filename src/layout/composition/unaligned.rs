//! Composition where steps of B are not aligned to A's modes but no carries cancel: 64-bit numbers, nothing allocated.
//!
//! The same decision as in [`exact`](super::exact), for integer strides. It hands over where a number does not fit or
//! where carries cancel each other at the first place they occur.

use smallvec::SmallVec;

use super::super::core::{Layout, div_rem};
use super::super::leaf::{Leaf, nest_pieces};
use super::exact::Reason;
use super::regular::{MOST, Modes, unit};

const MOST_PIECES: usize = 16;

/// The weights of A's modes but the first, each with the jump of A's slope there.
struct Slopes {
    first: i64,
    weight: [i64; MOST],
    jump: [i64; MOST],
    len: usize,
}

impl Slopes {
    #[inline]
    fn new(a: &Modes) -> Option<Slopes> {
        let mut slopes = Slopes { first: a.stride[0], weight: [0; MOST], jump: [0; MOST], len: a.last };
        let mut weight = 1i64;
        for k in 0..a.last {
            weight = weight.checked_mul(a.extent[k])?;
            slopes.weight[k] = weight;
            slopes.jump[k] = a.stride[k + 1].checked_sub(a.extent[k].checked_mul(a.stride[k])?)?;
        }
        Some(slopes)
    }

    #[inline]
    fn pairs(&self) -> impl Iterator<Item = (i64, i64)> {
        self.weight[..self.len].iter().copied().zip(self.jump[..self.len].iter().copied())
    }

    fn at(&self, x: i64) -> Option<i64> {
        self.pairs().try_fold(self.first.checked_mul(x)?, |value, (weight, jump)| {
            jump.checked_mul(div_rem(x, weight).0)?.checked_add(value)
        })
    }
}

#[derive(Clone, Copy)]
struct Piece {
    leaf: usize,
    extent: i64,
    step: i64,
    slope: i64,
}

/// Writes the composition to `out`, or says why there is none; `None` where that is not decided here. `out` comes in
/// empty.
pub(super) fn compose(a: &Modes, b: &Layout, out: &mut Layout) -> Option<Result<(), Reason>> {
    if !(b.static_shape() && b.int_strides()) || b.stride().raw().iter().any(|e| e.value < 0) {
        return None;
    }
    let (shape, stride) = out.leaves_mut();
    let slopes = Slopes::new(a)?;
    let mut pieces = [Piece { leaf: 0, extent: 1, step: 0, slope: 0 }; MOST_PIECES];
    let mut count = 0;
    let mut span = [0i64; MOST];
    for (leaf, (t, e)) in b.pairs().enumerate() {
        let first = shape.len();
        if e.value == 0 || t.value == 1 {
            let by = if e.value == 0 { 0 } else { unit(a, e.value).unwrap_or(0) };
            shape.push(t);
            stride.push(Leaf { value: by, meta: t.meta });
            continue;
        }
        let (mut rest, mut step) = (t.value, e.value);
        loop {
            let (run, slope) = run(&slopes, rest, step)?;
            let (after, odd) = div_rem(rest, run);
            if odd != 0 {
                return Some(Err(Reason::Leaf { leaf, run, rest, stride: step }));
            }
            *pieces.get_mut(count)? = Piece { leaf, extent: run, step, slope };
            count += 1;
            for (span, (weight, _)) in span.iter_mut().zip(slopes.pairs()) {
                *span = (run - 1).checked_mul(div_rem(step, weight).1)?.checked_add(*span)?;
            }
            shape.push(Leaf::int(run));
            stride.push(Leaf::int(slope));
            rest = after;
            if rest == 1 {
                break;
            }
            step = step.checked_mul(run)?;
        }
        nest_pieces(&mut shape[first..], t);
        nest_pieces(&mut stride[first..], t);
    }
    for (k, (weight, _)) in slopes.pairs().enumerate() {
        if span[k] >= weight {
            let leaves = b.shape().leaf_count();
            return carry(&slopes, &pieces[..count], weight, leaves).map(Err);
        }
    }
    Some(Ok(()))
}

/// The longest run of steps on which A is linear, and its slope there; `None` where carries cancel.
#[inline]
fn run(slopes: &Slopes, extent: i64, step: i64) -> Option<(i64, i64)> {
    let mut slope = slopes.first.checked_mul(step)?;
    let mut run = extent;
    let mut sum = 1i64;
    for (weight, jump) in slopes.pairs() {
        let (quotient, rest) = div_rem(step, weight);
        slope = jump.checked_mul(quotient)?.checked_add(slope)?;
        if rest == 0 {
            continue;
        }
        // At most `weight`, which fits.
        let (whole, odd) = div_rem(weight, rest);
        let here = whole + i64::from(odd != 0);
        if here < run {
            run = here;
            sum = jump;
        } else if here == run && run < extent {
            sum = sum.checked_add(jump)?;
        }
    }
    (sum != 0).then_some((run, slope))
}

/// A coordinate that reaches `weight` with as little as it can, where the pieces' values do not add up.
fn carry(slopes: &Slopes, pieces: &[Piece], weight: i64, leaves: usize) -> Option<Reason> {
    let mut missing = weight;
    let mut coord: SmallVec<[i64; 8]> = SmallVec::from_elem(0, leaves);
    let mut scale: SmallVec<[i64; 8]> = SmallVec::from_elem(1, leaves);
    let (mut x, mut alone) = (0i64, 0i64);
    for piece in pieces {
        let rest = div_rem(piece.step, weight).1;
        if rest != 0 && missing > 0 {
            let c = (piece.extent - 1).min((missing - 1) / rest + 1);
            missing -= c * rest;
            x = c.checked_mul(piece.step)?.checked_add(x)?;
            alone = c.checked_mul(piece.slope)?.checked_add(alone)?;
            coord[piece.leaf] += c * scale[piece.leaf];
        }
        scale[piece.leaf] *= piece.extent;
    }
    (slopes.at(x)? != alone).then_some(Reason::Carry { coord })
}
