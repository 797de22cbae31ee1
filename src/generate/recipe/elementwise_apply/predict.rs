//! The requests of every warp of a launch, from the layouts alone.

use std::collections::BTreeMap;

use super::decide::{Body, Class, Decision, Tensor};
use super::launch::{Alignment, merging};
use crate::model::banks::WARP;
use crate::model::traffic::{Counter, LINE, Prediction};
use crate::plan::Mode;
use crate::tiling::{Place, TileCopy, Tiling};
use crate::view::ViewRef;

/// A vector of one thread: coordinate of its first element, which may lie before the row, and whether it is moved whole.
#[derive(Clone, Copy)]
struct Vector {
    m: i64,
    n: i64,
    whole: bool,
}

pub(super) struct Launch<'a> {
    pub(super) decision: &'a Decision,
    pub(super) n: Mode,
    pub(super) m: Vec<Mode>,
    alignment: Alignment,
    pub(super) views: &'a [ViewRef],
    pub(super) rows: i64,
}

impl Launch<'_> {
    /// Offset of row `m` of a tensor, in elements.
    fn row(&self, tensor: usize, m: i64) -> i64 {
        let mut rest = m;
        self.m.iter().fold(0, |at, mode| {
            let c = rest % mode.extent;
            rest /= mode.extent;
            at + c * mode.strides[tensor]
        })
    }

    pub(super) fn address(&self, tensor: usize, m: i64, n: i64) -> u64 {
        let view = &self.views[tensor];
        let element = self.row(tensor, m) + n * self.n.strides[tensor];
        view.ptr.wrapping_add_signed(element * view.dtype.bytes().0 as i64)
    }

    /// Loads or stores of one warp: whole vectors at once where the tensor can, else element by element.
    fn warp(&self, counter: &mut Counter, index: usize, lanes: &[Option<Vector>]) {
        let Tensor { class, dtype, .. } = self.decision.tensors[index];
        let (vec, bytes) = (self.decision.vec, dtype.bytes().0);
        let (rows, cols) = (self.rows, self.n.extent);
        let whole = || lanes.iter().flatten().filter(|v| v.whole);
        if matches!(class, Class::Contiguous) {
            counter.request(whole().map(|v| self.address(index, v.m, v.n)), bytes * vec as u64);
        } else {
            // One element for all of a vector is loaded once.
            for i in 0..if class == Class::Broadcast { 1 } else { vec } {
                counter.request(whole().map(|v| self.address(index, v.m, v.n + i)), bytes);
            }
        }
        for i in 0..vec {
            let part = lanes.iter().flatten().filter(|v| !v.whole);
            let inside = part.filter(|v| v.m < rows && (0..cols).contains(&(v.n + i)));
            counter.request(inside.map(|v| self.address(index, v.m, v.n + i)), bytes);
        }
    }
}

/// What the threads of a tile move, by the first copy of a kind: the first element of each lane, for each request of each warp.
pub(super) fn requests(tiling: &Tiling, of: impl Fn(&TileCopy) -> bool) -> Option<Vec<Vec<[i64; 2]>>> {
    let Some(copy) = tiling.copies.iter().find(|copy| of(copy)) else { return Some(Vec::new()) };
    let moves = tiling.moves(copy).ok()??;
    let place = |element: i64| [element % copy.tile[0], element / copy.tile[0]];
    Some(moves.requests(moves.vector()).map(|lanes| lanes.map(place).collect()).collect())
}

/// `None` where the views are not those of the kernel.
pub(super) fn predict(decision: &Decision, views: &[ViewRef]) -> Option<Prediction> {
    let mut m = merging(decision).modes(views)?;
    let n = m.remove(0);
    let rows = m.iter().map(|m| m.extent).product();
    let launch = Launch { decision, n, m, alignment: Alignment::of(decision, views), views, rows };
    let mut counters: Vec<Counter> = decision
        .tensors
        .iter()
        .zip(views)
        .map(|(t, v)| {
            let distinct = v.layout.distinct().size().unwrap_or(u64::MAX);
            Counter::new(t.name, t.output, distinct.saturating_mul(t.dtype.bytes().0))
        })
        .collect();
    let blocks = match &decision.body {
        Body::Naive => launch.linear(&mut counters, false),
        Body::Vectorized { .. } => launch.linear(&mut counters, true),
        Body::Tv { .. } => launch.tiles(&mut counters)?,
        Body::Transposed { narrower, .. } => launch.turned(narrower, &mut counters)?,
    };
    let traffic = counters.iter().map(Counter::traffic).collect();
    Some(Prediction { traffic, blocks, threads: decision.threads, work: None })
}

/// Adds one count, multiplied.
fn many(counters: &mut [Counter], times: u64, count: impl FnOnce(&mut [Counter])) {
    let mut one = counters.to_vec();
    one.iter_mut().for_each(Counter::restart);
    count(&mut one);
    counters.iter_mut().zip(&one).for_each(|(all, one)| all.add(one, times));
}

impl Launch<'_> {
    /// Vectors numbered along N first, a block's threads side by side.
    fn linear(&self, counters: &mut [Counter], vectors: bool) -> u64 {
        let Decision { vec, .. } = *self.decision;
        let Alignment { together, at_zero, .. } = self.alignment;
        let cols = self.n.extent;
        let per_row = match (vectors, together && !at_zero) {
            (false, _) => cols,
            (true, shifted) => (cols - 1) / vec + 1 + i64::from(shifted),
        };
        let last = self.decision.tensors.len() - 1;
        let total = per_row * self.rows;
        let vector = |index: i64| {
            (index < total).then(|| {
                let (m, k) = (index / per_row, index % per_row);
                let element = self.views[last].dtype.bytes().0;
                let shift = if together { (self.address(last, m, 0) / element) as i64 % vec } else { 0 };
                let n = vec * k - shift;
                Vector { m, n, whole: !vectors || (together && n >= 0 && n + vec <= cols) }
            })
        };
        let order = &self.decision.tiling.order;
        let blocks = order.count(&order.known_as(|_| total)).unwrap_or(i64::MAX);
        let count = |counters: &mut [Counter], vectors: core::ops::Range<i64>| {
            let mut lanes = [None; WARP];
            for first in vectors.step_by(WARP) {
                for (lane, slot) in (0..).zip(&mut lanes) {
                    *slot = vector(first + lane);
                }
                self.all(counters, &lanes);
            }
        };
        let period = self.period(if vectors { vec } else { 1 });
        // Between a row's first vectors and its last, a period stands for all.
        let along_row = |counters: &mut [Counter], first: i64| {
            let end = first + per_row;
            let between = (per_row - 2 * period).max(0) / period;
            let rest = first + if between > 0 { (between + 1) * period } else { 0 };
            if between > 0 {
                count(counters, first..first + period);
                many(counters, between as u64, |one| count(one, first + period..first + 2 * period));
            }
            count(counters, rest..end);
        };
        if per_row % WARP as i64 == 0 {
            // Warps end where rows end: a row stands for all that lie alike in lines of L1, and in vectors.
            for (m, times) in self.alike() {
                many(counters, times, |row| along_row(row, m * per_row));
            }
        } else if self.rows == 1 {
            along_row(counters, 0);
        } else {
            count(counters, 0..total);
        }
        blocks as u64
    }

    /// Vectors along a row, whole warps of them, behind which every tensor's addresses lie in lines of L1 as before.
    fn period(&self, vec: i64) -> i64 {
        let warps = self.views.iter().enumerate().map(|(tensor, view)| {
            let step = self.n.strides[tensor].unsigned_abs() % LINE * view.dtype.bytes().0 * vec as u64 * WARP as u64;
            // So many steps are whole lines: those are powers of two, so that only the factors of two in a step count.
            LINE >> step.trailing_zeros().min(LINE.trailing_zeros())
        });
        warps.max().unwrap_or(1) as i64 * WARP as i64
    }

    /// The first of the rows that begin alike in a line of L1, for every tensor, and how many those are.
    fn alike(&self) -> Vec<(i64, u64)> {
        let mut rows: BTreeMap<Vec<u64>, (i64, u64)> = BTreeMap::new();
        for m in 0..self.rows {
            let starts = (0..self.views.len()).map(|tensor| self.address(tensor, m, 0) % LINE).collect();
            rows.entry(starts).or_insert((m, 0)).1 += 1;
        }
        rows.into_values().collect()
    }

    /// One request of each tensor.
    fn all(&self, counters: &mut [Counter], lanes: &[Option<Vector>]) {
        for (index, counter) in counters.iter_mut().enumerate() {
            self.warp(counter, index, lanes);
        }
    }

    /// The corners of the tiles, (m,n), and their batches, in the order of the CTAs that have them.
    pub(super) fn corners(&self) -> Option<impl Iterator<Item = Option<[i64; 3]>>> {
        let tiling = &self.decision.tiling;
        let rows = self.m[0].extent;
        let extents = tiling.order.known_as(|name| match name {
            "m" => rows,
            "n" => self.n.extent,
            _ => self.rows / rows.max(1),
        });
        let corner = |tile: Option<Vec<i64>>| {
            let mut corner = [0; 3];
            for (at, (name, unit)) in tile?.into_iter().zip(tiling.order.names()) {
                let mode = ["m", "n"].iter().position(|mode| *mode == name).unwrap_or(2);
                corner[mode] = at * unit;
            }
            Some(corner)
        };
        Some(tiling.order.tiles(extents)?.map(corner))
    }

    /// What threads move along N, as the first output goes: the number of tiles.
    fn tiles(&self, counters: &mut [Counter]) -> Option<u64> {
        let Alignment { at_zero: aligned, .. } = self.alignment;
        let vec = self.decision.vec;
        let requests = requests(&self.decision.tiling, |copy| matches!(copy.to, Place::Global(_)))?;
        let mut blocks = 0;
        for corner in self.corners()? {
            let [m0, n0, _] = corner?;
            blocks += 1;
            for lanes in &requests {
                let vector = |[m, n]: &[i64; 2]| {
                    let (m, n) = (m0 + m, n0 + n);
                    let inside = m < self.rows && n + vec <= self.n.extent;
                    Some(Vector { m, n, whole: aligned && inside })
                };
                let lanes: Vec<Option<Vector>> = lanes.iter().map(vector).collect();
                self.all(counters, &lanes);
            }
        }
        Some(blocks)
    }
}
