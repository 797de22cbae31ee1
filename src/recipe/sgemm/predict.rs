//! What a launch asks of memory, L1, shared memory and schedulers, counted from the addresses of the first block.

use super::decide::{Decision, operands};
use super::launch::{Problem, aligned};
use super::tilings::F32;
use super::wave::Cut;
use crate::model::traffic::{Counter, Prediction, SECTOR, Traffic};
use crate::model::{SharedOp, Work};
use crate::plan::{ModeStride, Operand};
use crate::tiling::Place;
use crate::view::ViewRef;

/// A launch, of which the first block stands for all: one that hangs over an edge counts as if it did not.
struct Launch<'a> {
    decision: &'a Decision,
    operands: Vec<Operand>,
    views: &'a [ViewRef],
    problem: Problem,
}

/// What a block does for one step along K: a tile, or one k where there are no tiles.
struct Step {
    /// Loads of A and B.
    traffic: [Traffic; 2],
    instructions: u64,
    wavefronts: u64,
    /// Bytes from L2.
    bytes: u64,
}

/// What each of so many blocks reads and writes after its last product.
struct Ends {
    blocks: u64,
    traffic: Vec<Traffic>,
}

/// `None` where the extents of the views are not those of a product.
pub(super) fn predict(decision: &Decision, views: &[ViewRef]) -> Option<Prediction> {
    let problem = Problem::of(views)?;
    Some(Launch { decision, operands: operands(decision), views, problem }.predict())
}

/// A count, which stops at the largest that a number holds: views that bind can have products of 2^124 terms, and what is at least
/// so much takes days.
fn count(exact: i128) -> u64 {
    u64::try_from(exact.max(0)).unwrap_or(u64::MAX)
}

/// Tiles of an extent.
fn tiles(extent: i128, tile: i128) -> i128 {
    (extent + tile - 1) / tile
}

/// The same counts, so many times; what is never asked for is not moved.
fn times(traffic: Traffic, count: u64) -> Traffic {
    let Traffic { requests, sectors, lines, lane_bytes, bytes, .. } = traffic;
    Traffic {
        requests: requests.saturating_mul(count),
        sectors: sectors.saturating_mul(count),
        lines: lines.saturating_mul(count),
        lane_bytes: lane_bytes.saturating_mul(count),
        bytes: if count > 0 { bytes } else { 0 },
        ..traffic
    }
}

impl Launch<'_> {
    fn predict(&self) -> Prediction {
        let [m, n, k, l] = self.extents();
        let [bm, bn, bk] = self.decision.tile().map(i128::from);
        let split = i128::from(self.decision.split());
        let (places, k_tiles) = (self.places(), tiles(k, bk));
        let step = self.step();
        let all_steps = count(places * k_tiles);
        let ends = self.ends();
        let blocks = ends.iter().fold(0_u64, |sum, end| sum.saturating_add(end.blocks));
        let sum =
            |of: fn(&Traffic) -> u64| ends.iter().flat_map(|end| &end.traffic).map(of).fold(0, u64::saturating_add);
        let sectors =
            |end: &Ends| end.traffic.iter().map(|t| t.sectors.saturating_mul(end.blocks)).fold(0, u64::saturating_add);
        // The first parts of K have as many tiles as any, the last one what is left, and those behind it nothing. A wave is cut
        // such that all multiprocessors have as many steps: there a step stands for a block.
        let steps = if self.decision.recipe.wave > 0 { k_tiles.min(1) } else { tiles(k_tiles, split) };
        let whole = if steps > 0 { places * (k_tiles / steps) } else { places * split };
        let (requests, lines) = match self.decision.recipe.wave {
            0 => (sum(|t| t.requests), sum(|t| t.lines)),
            _ => (0, 0),
        };
        let cut = self.cut();
        let after = match (self.decision.recipe.wave, split) {
            (1.., _) => i128::from(cut.cut) * bm * bn * i128::from(cut.parts + 1),
            (0, 2..) => m * n * l * (split + 1),
            _ => 0,
        };
        let of_steps = |each: u64| count(steps).saturating_mul(each);
        let end_bytes = ends.iter().map(sectors).fold(0, u64::saturating_add).saturating_mul(SECTOR);
        let work = Work {
            // Of four extents of at most 2^31 each.
            flop: count(2 * m * n * k * l),
            blocks: count(whole),
            instructions: of_steps(step.instructions).saturating_add(requests),
            wavefronts: of_steps(step.wavefronts).saturating_add(lines),
            l2_bytes: all_steps.saturating_mul(step.bytes).saturating_add(end_bytes),
            after_bytes: count(i128::from(F32) * after),
            tensor: None,
        };
        let traffic = step.traffic.into_iter().map(|t| times(t, all_steps));
        let ends = ends.into_iter().flat_map(|end| end.traffic.into_iter().map(move |t| times(t, end.blocks)));
        Prediction {
            traffic: traffic.chain(ends).collect(),
            blocks,
            threads: self.decision.tiling.threads(),
            work: Some(work),
        }
    }

    fn extents(&self) -> [i128; 4] {
        let Problem { m, n, k, l } = self.problem;
        [m, n, k, l].map(i128::from)
    }

    /// Tiles of D.
    fn places(&self) -> i128 {
        let ([m, n, _, l], [bm, bn, _]) = (self.extents(), self.decision.tile().map(i128::from));
        tiles(m, bm) * tiles(n, bn) * l
    }

    /// How the tiles of D become blocks; where no wave is asked for, their number means nothing to it.
    fn cut(&self) -> Cut {
        self.decision.cut(i64::try_from(self.places()).unwrap_or(i64::MAX), self.problem.k)
    }

    fn counter(&self, index: usize) -> Counter {
        let Operand { name, access, .. } = self.operands[index];
        let view = &self.views[index];
        let bytes = view.layout.distinct().size().unwrap_or(u64::MAX).saturating_mul(view.dtype.bytes().0);
        Counter::new(name, access == crate::view::Access::Write, bytes)
    }

    /// The address of an element of the first batch.
    fn address(&self, index: usize, row: i64, column: i64) -> u64 {
        let view = &self.views[index];
        let stride = |mode: usize| view.layout.stride().get(mode).copied().unwrap_or(0);
        // Of rows and columns that are not there too, whose addresses are no numbers of 64 bits: what counts is how far apart they
        // are.
        let element = row.wrapping_mul(stride(0)).wrapping_add(column.wrapping_mul(stride(1)));
        view.ptr.wrapping_add_signed(element.wrapping_mul(view.dtype.bytes().0 as i64))
    }

    /// One k-tile: from global memory into shared memory, from there into registers, products.
    fn step(&self) -> Step {
        let tiling = &self.decision.tiling;
        let traffic = [0, 1].map(|index| self.traffic(index, index));
        // Stages are handed over by one barrier; a tile that is alone is written behind one and read behind another.
        let barriers = match (tiling.smem.len(), tiling.stages()) {
            (0, _) => 0,
            (_, 1) => 2,
            _ => 1,
        };
        let warps = u64::from(tiling.threads()).div_ceil(32);
        let products = tiling.counts().map_or(0, |counts| counts.mmas);
        let mut step = Step { traffic, instructions: products + warps * barriers, wavefronts: 0, bytes: 0 };
        for (index, t) in traffic.iter().enumerate() {
            step.instructions += t.requests;
            step.wavefronts += t.lines;
            // What the threads of a block share comes from L2 once.
            let copy = self.decision.copy(index);
            let shared = matches!(copy.to, Place::Shared(_));
            step.bytes += if shared { SECTOR * t.sectors } else { (F32 * copy.tile[0] * copy.tile[1]) as u64 };
        }
        for access in self.decision.shared.iter().flat_map(|analysis| &analysis.accesses) {
            // An asynchronous copy is its own store.
            step.instructions += if access.op == SharedOp::Copy { 0 } else { access.requests };
            step.wavefronts += access.wavefronts;
        }
        step
    }

    /// The loads of a tile of A (0) or B (1), or the accesses to an operand that go with D (2); element by element where vectors
    /// are not aligned.
    fn traffic(&self, index: usize, factor: usize) -> Traffic {
        let (copy, operand) = (self.decision.copy(factor), &self.operands[index]);
        let mut counter = self.counter(index);
        let Ok(Some(moves)) = self.decision.tiling.moves(copy) else { return counter.traffic() };
        // Vectors of what goes with D lie along N.
        let unit = factor < 2 || operand.strides.get(1) == Some(&ModeStride::Unit);
        let wide = unit && aligned(&self.views[index], operand, moves.vector());
        let (vec, rows) = (if wide { moves.vector() } else { 1 }, copy.tile[0]);
        let bytes = self.views[index].dtype.bytes().0 * vec as u64;
        for lanes in moves.requests(vec) {
            let address = |at: i64| match factor {
                // B is (N,K) in a tile.
                1 => self.address(index, at / rows, at % rows),
                _ => self.address(index, at % rows, at / rows),
            };
            counter.request(lanes.map(address), bytes);
        }
        counter.traffic()
    }

    /// What blocks read and write after their last product: D and what goes with it, without C where a scalar can spare it; for
    /// a part of K only the sums, which are taken to lie as D does.
    fn ends(&self) -> Vec<Ends> {
        let split = self.decision.split();
        let last = self.operands.len() - 1;
        let spared = |index: usize| self.operands[index].name == "C" && self.decision.product.beta().is_some();
        let whole = || (2..=last).filter(|index| !spared(*index)).map(|index| self.traffic(index, 2));
        let sums = |elements: i128| {
            vec![Traffic { operand: "W", bytes: count(i128::from(F32) * elements), ..self.traffic(last, 2) }]
        };
        let ([m, n, _, l], [bm, bn, _]) = (self.extents(), self.decision.tile().map(i128::from));
        let places = self.places();
        if split > 1 {
            let split = i128::from(split);
            return vec![Ends { blocks: count(places * split), traffic: sums(m * n * l * split) }];
        }
        let cut = self.cut();
        // The second kernel writes the rest of D.
        let share = |bytes: u64| count(i128::from(bytes) * i128::from(cut.whole) / places.max(1));
        let traffic = whole().map(|t| Traffic { bytes: share(t.bytes), ..t }).collect();
        let mut ends = vec![Ends { blocks: count(cut.whole.into()), traffic }];
        if cut.cut > 0 {
            let parts = i128::from(cut.cut) * i128::from(cut.parts);
            ends.push(Ends { blocks: count(parts), traffic: sums(parts * bm * bn) });
        }
        ends
    }
}
