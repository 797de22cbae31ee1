//! A product launch's requests to memory, L1, shared memory and schedulers, from its tiling and the addresses of the
//! first CTA.

use super::{F32, Parts};
use crate::layout::LayoutError;
use crate::model::traffic::{Counter, Prediction, SECTOR, Traffic};
use crate::model::{SharedAnalysis, SharedOp, Work};
use crate::plan::{ModeStride, Operand, Product};
use crate::tiling::{Global, Place, TileCopy, Tiling};
use crate::view::{Access, ViewRef};

/// A launch. The first CTA stands for all: a CTA at an edge counts as a whole one.
pub(crate) struct Launch<'a> {
    /// Its copies from global memory load factors, by the names of operands; one copy stores D.
    pub(crate) tiling: &'a Tiling,
    pub(crate) shared: &'a [SharedAnalysis],
    pub(crate) product: &'a Product,
    pub(crate) operands: &'a [Operand],
    pub(crate) views: &'a [ViewRef],
    pub(crate) parts: Parts,
}

/// A count, which saturates: views that bind can have products of 2^124 terms, and a launch of that size takes days.
fn count(exact: i128) -> u64 {
    u64::try_from(exact.max(0)).unwrap_or(u64::MAX)
}

/// Tiles of an extent.
fn tiles(extent: i128, tile: i128) -> i128 {
    (extent + tile - 1) / tile
}

fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl Launch<'_> {
    /// `None` if the extents of the views are not a product.
    pub(crate) fn predict(&self) -> Option<Prediction> {
        let shapes: Vec<&[i64]> = self.views.iter().map(|view| view.layout.shape()).collect();
        let problem = self.product.problem_shape(self.operands).problem_of(&shapes)?;
        let [m, n, k, l] = [0, 1, 2, 3].map(|mode| problem.get(mode).map_or(1, |extent| i128::from(*extent)));
        let [bm, bn, bk] = self.tiling.tile.map(i128::from);
        let (places, k_tiles) = (tiles(m, bm) * tiles(n, bn) * l, tiles(k, bk));
        let number = |exact: i128| i64::try_from(exact).unwrap_or(i64::MAX);
        let cut = self.parts.cut(number(places), number(k_tiles), self.tiling.tile[2]);
        let sums = self.parts.sums(&cut, [m, n, l], self.tiling.tile);
        let parts = i128::from(cut.parts);
        let ends = self.ends(
            (count(cut.whole.into()), places),
            (count(i128::from(cut.cut) * parts), count(i128::from(F32) * sums * parts)),
        );
        let step = self.step().ok()?;
        let of_ends = |of: fn(&Traffic) -> u64| total(ends.iter().map(|(_, each)| of(each)));
        // The first pieces of K have equally many tiles, the last one has the rest, and those behind it have none. A
        // wave is split so that all multiprocessors have equally many steps: there a step stands for a CTA.
        let (steps, requests, lines) = match self.parts {
            Parts::Each(_) => (i128::from(cut.k_part), of_ends(|t| t.requests), of_ends(|t| t.lines)),
            Parts::Wave(_) => (k_tiles.min(1), 0, 0),
        };
        let whole = if steps > 0 { places * (k_tiles / steps) } else { places * parts };
        let all_steps = count(places * k_tiles);
        let of_steps = |each: u64| count(steps).saturating_mul(each);
        let end_sectors = total(ends.iter().map(|(blocks, each)| each.sectors.saturating_mul(*blocks)));
        let work = Work {
            // Four extents of at most 2^31 each.
            flop: count(2 * m * n * k * l),
            blocks: count(whole),
            instructions: of_steps(step.instructions).saturating_add(requests),
            wavefronts: of_steps(step.wavefronts).saturating_add(lines),
            l2_bytes: all_steps.saturating_mul(step.bytes).saturating_add(end_sectors.saturating_mul(SECTOR)),
            other_bytes: count(i128::from(F32) * sums * (parts + 1)),
            tensor: None,
        };
        let steps = step.traffic.iter().map(|each| each.times(all_steps));
        Some(Prediction {
            traffic: steps.chain(ends.iter().map(|(blocks, each)| each.times(*blocks))).collect(),
            blocks: count(i128::from(cut.whole) + i128::from(cut.cut) * parts),
            threads: self.tiling.threads(),
            work: Some(work),
        })
    }

    /// Each CTA's reads and writes after its last product: D and the epilogue inputs, without C if a scalar can spare
    /// it. A piece of K writes only its sums, which are taken to lie as D does. A second kernel writes the rest of D.
    fn ends(&self, (whole, places): (u64, i128), (parts, bytes): (u64, u64)) -> Vec<(u64, Traffic)> {
        let spared = |index: &usize| self.operands[*index].name == "C" && self.product.beta().is_some();
        let share = |bytes: u64| count(i128::from(bytes) * i128::from(whole) / places.max(1));
        let of_whole = (2..self.operands.len()).filter(|index| whole > 0 && !spared(index)).map(|index| {
            let each = self.traffic(index, self.store());
            (whole, Traffic { bytes: share(each.bytes), ..each })
        });
        let of_parts = (parts > 0).then(|| self.traffic(self.operands.len() - 1, self.store()));
        of_whole.chain(of_parts.map(|each| (parts, Traffic { operand: "W", bytes, ..each }))).collect()
    }

    /// One k-tile: from global memory into shared memory, from there into registers, products.
    fn step(&self) -> Result<Step, LayoutError> {
        let tiling = self.tiling;
        // Stages are handed over by one barrier; a tile that is alone is written behind one and read behind another.
        let barriers = match (tiling.smem.len(), tiling.stages()) {
            (0, _) => 0,
            (_, 1) => 2,
            _ => 1,
        };
        let warps = u64::from(tiling.threads()).div_ceil(32);
        let mut step = Step {
            traffic: Vec::new(),
            instructions: tiling.counts()?.mmas + warps * barriers,
            wavefronts: 0,
            bytes: 0,
        };
        for copy in tiling.of_global_memory() {
            let Place::Global(Global { tensor, .. }) = copy.from else { continue };
            let Some(index) = self.operands.iter().position(|operand| operand.name == tensor) else { continue };
            let t = self.traffic(index, Some(copy));
            step.instructions += t.requests;
            step.wavefronts += t.lines;
            // Data that the threads of a CTA share comes from L2 once.
            let [rows, columns] = copy.tile;
            let shared = matches!(copy.to, Place::Shared(_));
            step.bytes += if shared { SECTOR * t.sectors } else { copy.dtype.bytes().0 * (rows * columns) as u64 };
            step.traffic.push(t);
        }
        for access in self.shared.iter().flat_map(|analysis| &analysis.accesses) {
            // An asynchronous copy is its own store.
            step.instructions += if access.op == SharedOp::Copy { 0 } else { access.requests };
            step.wavefronts += access.wavefronts;
        }
        Ok(step)
    }

    /// The copy of D, which the epilogue inputs are read with.
    fn store(&self) -> Option<&TileCopy> {
        self.tiling.of_global_memory().find(|copy| matches!(copy.to, Place::Global(_)))
    }

    /// The accesses of a copy to an operand; element by element where vectors are not aligned.
    fn traffic(&self, index: usize, copy: Option<&TileCopy>) -> Traffic {
        let (operand, view) = (&self.operands[index], &self.views[index]);
        let bytes = view.layout.distinct().size().unwrap_or(u64::MAX).saturating_mul(view.dtype.bytes().0);
        let mut counter = Counter::new(operand.name, operand.access == Access::Write, bytes);
        let moved = copy.and_then(|copy| Some((copy, copy.global()?, self.tiling.moves(copy).ok()??)));
        let Some((copy, Global { modes, .. }, moves)) = moved else { return counter.traffic() };
        // Vectors of the epilogue inputs lie along N.
        let unit = matches!(copy.from, Place::Global(_)) || operand.strides.get(1) == Some(&ModeStride::Unit);
        let wide = unit && operand.aligned(view, moves.vector());
        let (vec, rows) = (if wide { moves.vector() } else { 1 }, copy.tile[0]);
        // Addresses of the first batch. Rows and columns outside of the matrix have addresses too, which may exceed 64
        // bits: only their distances count.
        let along = |mode: usize, at: i64| at.wrapping_mul(view.layout.stride().get(mode).copied().unwrap_or(0));
        let size = view.dtype.bytes().0;
        for lanes in moves.requests(vec) {
            let address = |at: i64| {
                let element = along(modes[0], at % rows).wrapping_add(along(modes[1], at / rows));
                view.ptr.wrapping_add_signed(element.wrapping_mul(size as i64))
            };
            counter.request(lanes.map(address), size * vec as u64);
        }
        counter.traffic()
    }
}

/// A CTA's work for one step along K: a k-tile, or one k without tiles.
struct Step {
    /// Loads of factors.
    traffic: Vec<Traffic>,
    instructions: u64,
    wavefronts: u64,
    /// Bytes from L2.
    bytes: u64,
}
