//! The exact decision, for every B: is there a layout compatible with B that equals `A(B(c))` at every coordinate?
//!
//! Write `P_k` for the weights of the coalesced A and `J_k = d_k - s_(k-1) * d_(k-1)` for the jump of its slope at the
//! end of mode `k-1` (never 0, or the modes would have merged). Then, with division towards zero,
//!
//! ```text
//! A(x) = d_0 * x + sum over k >= 1 of J_k * (x / P_k)
//! ```
//!
//! so a function of coordinates is linear exactly where the carries into the weights `P_k`, weighted by `J_k`, cancel.
//!
//! 1. *Each leaf* `t:e`. The longest run `L` on which `j -> A(j*e)` is linear ends at the first carry that does not
//!    cancel. Any layout for the leaf must begin with `L:A(e)` (or with all of it), so `L` must divide `t`, and the rest
//!    is the leaf `t/L : L*e`. This is greedy and exact.
//! 2. *All pieces together.* Their carries must cancel at every coordinate. Without any carry they do; where carries are
//!    possible a coordinate with a carry that does not cancel is looked for and is the proof of the refusal.
//!
//! Time depends on the number of leaves, but for one case: carries that keep cancelling each other. They are followed one
//! by one, at most [`MOST_EVENTS`] of them, and coordinates are tried one by one, at most [`MOST_VALUES`]; past that the
//! composition is refused as undecided. Layouts of that kind are made for the purpose.

use smallvec::SmallVec;

use super::super::core::{Flat, Layout};
use super::super::leaf::{Leaf, Tag};
use super::super::number::times;

/// The most carries that are followed in one leaf.
pub const MOST_EVENTS: usize = 1 << 16;

/// The most coordinates that are tried one by one.
pub const MOST_VALUES: u64 = 1 << 16;

/// Why no layout represents a composition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// Leaf `leaf` of B is linear for `run` steps, and that does not divide the rest of its extent.
    Leaf { leaf: usize, run: i64, rest: i64, stride: i64 },
    /// A leaf whose stretches (their extents and strides) divide it and do not repeat: its pieces do not add up.
    Uneven { leaf: usize, pieces: Vec<(i64, i64)> },
    /// Each leaf is representable, but not together: the pieces carry at this coordinate of B's leaves.
    Carry { coord: SmallVec<[i64; 8]> },
    /// The slope is a sum of basis elements, which no stride is.
    Slope { leaf: usize },
    /// A bound was reached.
    Undecided,
    /// A number does not fit in 64 bits.
    Overflow,
}

/// A's weights and jumps; basis strides have one column for each kind of stride.
pub(super) struct Slopes {
    tags: Vec<Tag>,
    first: Vec<i128>,
    jumps: Vec<Jump>,
}

#[derive(Clone)]
struct Jump {
    weight: i128,
    by: Vec<i128>,
}

impl Slopes {
    pub(super) fn new(lhs: &Flat) -> Option<Slopes> {
        let mut tags: Vec<Tag> = lhs.iter().map(|(_, d)| d.tag()).collect();
        tags.sort_unstable();
        tags.dedup();
        let row = |leaf: Leaf| -> Vec<i128> {
            tags.iter().map(|tag| if *tag == leaf.tag() { i128::from(leaf.value) } else { 0 }).collect()
        };
        let first = row(lhs.first()?.1);
        let mut jumps = Vec::with_capacity(lhs.len());
        let mut weight = 1i128;
        for pair in lhs.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            weight = weight.checked_mul(i128::from(before.0.value))?;
            let s = i128::from(before.0.value);
            let by = row(after.1).iter().zip(row(before.1)).map(|(d, b)| d - s * b).collect();
            jumps.push(Jump { weight, by });
        }
        Some(Slopes { tags, first, jumps })
    }

    /// `A(x)`, one number for each kind of stride.
    fn at(&self, x: i128) -> Option<Vec<i128>> {
        let mut value = self.first.iter().map(|d| d.checked_mul(x)).collect::<Option<Vec<_>>>()?;
        for jump in &self.jumps {
            let times = x / jump.weight;
            for (sum, by) in value.iter_mut().zip(&jump.by) {
                *sum = sum.checked_add(by.checked_mul(times)?)?;
            }
        }
        Some(value)
    }

    /// The value at `x` as a stride, where one kind of stride makes it up.
    fn stride_at(&self, x: i128, leaf: usize) -> Result<Leaf, Reason> {
        let value = self.at(x).ok_or(Reason::Overflow)?;
        let mut parts = self.tags.iter().zip(&value).filter(|(_, v)| **v != 0);
        let Some((tag, v)) = parts.next() else {
            return Ok(Leaf::int(0));
        };
        if parts.next().is_some() {
            return Err(Reason::Slope { leaf });
        }
        let value = i64::try_from(*v).map_err(|_| Reason::Overflow)?;
        Ok(Leaf::tagged(value, *tag))
    }

    /// The longest `L <= extent` such that `j -> A(j * stride)` is linear for `j < L`. At least 2 where `extent` is.
    fn run(&self, extent: i64, stride: i64) -> Result<i64, Reason> {
        struct Carry {
            rest: i128,
            weight: i128,
            by: Vec<i128>,
            passed: i128,
        }
        let step = i128::from(stride).abs();
        let mut carries: Vec<Carry> = Vec::new();
        for jump in &self.jumps {
            let rest = step % jump.weight;
            if rest == 0 {
                continue;
            }
            // Equal fractions carry at the same steps.
            match carries.iter_mut().find(|c| c.rest * jump.weight == rest * c.weight) {
                Some(same) => same.by.iter_mut().zip(&jump.by).for_each(|(sum, by)| *sum += by),
                None => carries.push(Carry { rest, weight: jump.weight, by: jump.by.clone(), passed: 0 }),
            }
        }
        carries.retain(|carry| carry.by.iter().any(|by| *by != 0));
        for _ in 0..MOST_EVENTS {
            let next = |carry: &Carry| ((carry.passed + 1) * carry.weight + carry.rest - 1) / carry.rest;
            let Some(step) = carries.iter().map(next).min() else {
                return Ok(extent);
            };
            if step >= i128::from(extent) {
                return Ok(extent);
            }
            let mut sum = vec![0i128; self.tags.len()];
            for carry in carries.iter_mut().filter(|carry| next(carry) == step) {
                carry.passed += 1;
                sum.iter_mut().zip(&carry.by).for_each(|(sum, by)| *sum += by);
            }
            if sum.iter().any(|by| *by != 0) {
                return i64::try_from(step).map_err(|_| Reason::Overflow);
            }
        }
        Err(Reason::Undecided)
    }
}

/// A linear piece of a leaf of B.
#[derive(Clone, Copy)]
struct Piece {
    leaf: usize,
    extent: i64,
    stride: i64,
}

/// The composition, or why no layout is one.
pub(super) fn compose(lhs: &Flat, b: &Layout) -> Result<Layout, Reason> {
    let slopes = Slopes::new(lhs).ok_or(Reason::Overflow)?;
    let mut pieces: Vec<Piece> = Vec::new();
    let layout = Layout::refined(b, |leaf, t, e, own| {
        if e.value == 0 || t.value == 1 {
            let by = if e.value == 0 { None } else { unit_stride(lhs, e.value) };
            own.push((t, by.unwrap_or(Leaf::int(0))));
            return Ok(());
        }
        let (mut rest, mut step) = (t.value, e.value);
        loop {
            let run = slopes.run(rest, step)?;
            if rest % run != 0 {
                return Err(Reason::Leaf { leaf, run, rest, stride: step });
            }
            own.push((Leaf::int(run), slopes.stride_at(i128::from(step), leaf)?));
            pieces.push(Piece { leaf, extent: run, stride: step });
            rest /= run;
            if rest == 1 {
                return Ok(());
            }
            step = step.checked_mul(run).ok_or(Reason::Overflow)?;
        }
    })?;
    additive(&slopes, &pieces, b.shape().leaf_count())?;
    Ok(layout)
}

/// Whether the pieces' values add up at every coordinate.
fn additive(slopes: &Slopes, pieces: &[Piece], leaves: usize) -> Result<(), Reason> {
    if never_carries(slopes, pieces) {
        return Ok(());
    }
    let unit: Option<Vec<Vec<i128>>> = pieces.iter().map(|p| slopes.at(i128::from(p.stride))).collect();
    let unit = unit.ok_or(Reason::Overflow)?;
    let parts = |c: &[i64]| -> Option<bool> {
        let x = c.iter().zip(pieces).map(|(c, p)| i128::from(*c) * i128::from(p.stride)).sum();
        let mut sum = slopes.at(x)?;
        for (c, unit) in c.iter().zip(&unit) {
            for (sum, by) in sum.iter_mut().zip(unit) {
                *sum = sum.checked_sub(by.checked_mul(i128::from(*c))?)?;
            }
        }
        Some(sum.iter().any(|by| *by != 0))
    };
    let adds_up = |c: &[i64]| -> Result<(), Reason> {
        if !parts(c).ok_or(Reason::Overflow)? {
            return Ok(());
        }
        let alone = |leaf: usize| -> Vec<i64> {
            c.iter().zip(pieces).map(|(c, piece)| if piece.leaf == leaf { *c } else { 0 }).collect()
        };
        Err(match (0..leaves).find(|leaf| parts(&alone(*leaf)) == Some(true)) {
            None => Reason::Carry { coord: of_leaves(c, pieces, leaves) },
            Some(leaf) => {
                let own = pieces.iter().filter(|piece| piece.leaf == leaf);
                Reason::Uneven { leaf, pieces: own.map(|piece| (piece.extent, piece.stride)).collect() }
            }
        })
    };
    likely(slopes, pieces).iter().try_for_each(|c| adds_up(c))?;
    let mut size = 1u64;
    for piece in pieces {
        size = size.saturating_mul(piece.extent.unsigned_abs());
    }
    if size > MOST_VALUES {
        return Err(Reason::Undecided);
    }
    let mut c = vec![0i64; pieces.len()];
    loop {
        let Some(at) = (0..c.len()).find(|&i| c[i] + 1 < pieces[i].extent) else {
            return Ok(());
        };
        c[at] += 1;
        c[..at].fill(0);
        adds_up(&c)?;
    }
}

/// A sufficient condition that no carry matters: one comparison for each weight.
fn never_carries(slopes: &Slopes, pieces: &[Piece]) -> bool {
    let span = |weight: i128| -> Option<i128> {
        pieces.iter().try_fold(0i128, |sum, p| {
            sum.checked_add((i128::from(p.stride).abs() % weight).checked_mul(i128::from(p.extent - 1))?)
        })
    };
    let positive = pieces.iter().all(|p| p.stride > 0) || pieces.iter().all(|p| p.stride < 0);
    if !positive {
        // Strides of both signs are safe as long as everything stays inside the first mode that some stride is not a
        // multiple of.
        let first = slopes.jumps.iter().find(|jump| pieces.iter().any(|p| i128::from(p.stride) % jump.weight != 0));
        let reach: i128 =
            pieces.iter().map(|p| i128::from(p.stride).abs().saturating_mul(i128::from(p.extent - 1))).sum();
        return first.is_none_or(|jump| reach < jump.weight);
    }
    // Weights whose carries are the same at every coordinate count together.
    let mut groups: Vec<(i128, Vec<i128>)> = Vec::new();
    for jump in &slopes.jumps {
        let same = |weight: i128| {
            pieces.iter().all(|p| {
                let step = i128::from(p.stride).abs();
                (step % weight) * jump.weight == (step % jump.weight) * weight
            })
        };
        match groups.iter_mut().find(|(weight, _)| same(*weight)) {
            Some((_, by)) => by.iter_mut().zip(&jump.by).for_each(|(sum, by)| *sum += by),
            None => groups.push((jump.weight, jump.by.clone())),
        }
    }
    groups
        .iter()
        .filter(|(_, by)| by.iter().any(|by| *by != 0))
        .all(|(weight, _)| span(*weight).is_some_and(|span| span < *weight))
}

/// Coordinates where a carry is likely to show: for each weight the least that reaches it, and the corners.
fn likely(slopes: &Slopes, pieces: &[Piece]) -> Vec<Vec<i64>> {
    let mut found = Vec::new();
    for jump in &slopes.jumps {
        for backwards in [false, true] {
            let mut c = vec![0i64; pieces.len()];
            let mut missing = jump.weight;
            for turn in 0..pieces.len() {
                let i = if backwards { pieces.len() - 1 - turn } else { turn };
                let step = i128::from(pieces[i].stride).abs() % jump.weight;
                if step == 0 || missing <= 0 {
                    continue;
                }
                let most = i128::from(pieces[i].extent - 1).min((missing + step - 1) / step);
                missing -= most * step;
                c[i] = most as i64;
            }
            found.push(c);
        }
    }
    found.push(pieces.iter().map(|p| p.extent - 1).collect());
    for i in 0..pieces.len().min(16) {
        for j in i + 1..pieces.len().min(16) {
            for (ci, cj) in [(1, 1), (pieces[i].extent - 1, 1), (1, pieces[j].extent - 1)] {
                let mut c = vec![0i64; pieces.len()];
                c[i] = ci;
                c[j] = cj;
                found.push(c);
            }
        }
    }
    found
}

/// The coordinate of B's leaves that a coordinate of the pieces stands for.
fn of_leaves(c: &[i64], pieces: &[Piece], leaves: usize) -> SmallVec<[i64; 8]> {
    let mut coord = SmallVec::from_elem(0i64, leaves);
    let mut scale = vec![1i64; leaves];
    for (c, piece) in c.iter().zip(pieces) {
        coord[piece.leaf] += c * scale[piece.leaf];
        scale[piece.leaf] *= piece.extent;
    }
    coord
}

/// The stride that CuTe gives a leaf of extent 1, or `None` where CuTe refuses. No value depends on it.
pub(super) fn unit_stride(lhs: &Flat, stride: i64) -> Option<Leaf> {
    let (last, before) = lhs.split_last()?;
    let mut rest = stride.checked_abs()?;
    for (s, _) in before {
        if !s.is_int() || rest % s.value != 0 && stride >= s.value && rest >= s.value {
            return None;
        }
        rest = rest / s.value + i64::from(rest % s.value != 0);
    }
    times(last.1, Leaf::int(rest.checked_mul(stride.signum())?)).ok()
}
