//! A launch's requests to memory, L1, shared memory, schedulers and tensor cores, from the counts of its tiling.

use super::decide::Part;
use super::launch::{self, oriented};
use super::rule;
use crate::dtype::DType;
use crate::model::{Prediction, SECTOR, SharedAnalysis, TensorOp, TensorWork, Traffic, Work};
use crate::plan::{Groups, Indexed, Operand, Rule, SCALE_D};
use crate::tiling::{CopyCount, Engine, Place, TileCopy, Tiling};
use crate::view::{Access, ViewRef};

/// Lanes of a warp.
const LANES: u64 = 32;

/// Sectors of a line of L1.
const SECTORS_PER_LINE: u64 = 4;

/// A launch: how often each of its blocks repeats its tiling's counts.
struct Launch {
    blocks: u64,
    /// Tiles of D for which A, B and D are read or written: of a factor that stays in its stages one for each CTA.
    tiles: [u64; 3],
    /// Tiles of the whole matrices that all blocks read or write, in elements: of A, B and D.
    moved: [u128; 3],
    views: [ViewRef; 3],
}

/// `None` if the views are not a product.
///
/// Tiles that hang over an edge count as whole for the multiprocessors, which compute on zeros there. For memory only
/// their inside counts. WGMMA's reads of shared memory are not counted: their number is not documented.
pub(super) fn predict(part: &Part, views: &[ViewRef]) -> Option<Prediction> {
    // How many tiles there are, or which rows, is known to the device alone.
    let is_known = part.recipe.groups == Groups::None && part.recipe.indices() == Indexed::default();
    is_known.then_some(())?;
    let rule = rule::rule(part)?;
    let ones = vec![1.0; part.recipe.epilogue.scalars().len()];
    let values = rule.values(&launch::params(part), views, &ones).ok()??;
    let packed = packed(part, views, &rule, &values);
    let views = oriented(part, views);
    let [a, b, others @ .., d] = &views[..] else { return None };
    let tiling = &part.tiling;
    let (counts, shared) = (tiling.counts().ok()?, tiling.shared().ok()?);
    let extent = |view: &ViewRef, mode: usize| view.layout.shape().get(mode).map(|extent| extent.unsigned_abs());
    let [m, n, k, l] = [extent(d, 0)?, extent(b, 1)?, extent(a, 1)?, extent(d, 2).unwrap_or(1)];
    let [rows, columns, steps] =
        [(m, 0), (n, 1), (k, 2)].map(|(extent, mode)| extent.div_ceil(tiling.tile[mode].unsigned_abs().max(1)));
    let product = |factors: [u64; 4]| factors.into_iter().map(u128::from).product();
    let blocks = rows.saturating_mul(columns).saturating_mul(l);
    let tiles = asked(part, &rule, &values, blocks);
    let of_tiles = |moved: u128, tiles: u64| moved.saturating_mul(tiles.into()) / u128::from(blocks.max(1));
    let [of_a, of_b] = [product([m, k, columns, l]), product([k, n, rows, l])];
    let launch = Launch {
        blocks,
        tiles: [tiles[0], tiles[1], blocks],
        moved: [of_tiles(of_a, tiles[0]), of_tiles(of_b, tiles[1]), product([m, n / part.recipe.sums() as u64, 1, l])],
        views: [*a, *b, *d],
    };
    let copies = || tiling.copies.iter().zip(&counts.copies);
    // Once for each k-tile, but for what becomes of the tile of D, which is stored part by part.
    let times = |copy: &TileCopy| if copy.is_of_k_tile() { steps } else { parts(tiling, copy) };
    let mut traffic: Vec<Traffic> =
        copies().filter_map(|(copy, count)| launch.traffic(copy, count, times(copy))).collect();
    // Scales of blocks have a copy of their own: each tile of D reads those of its rows or columns.
    let scales = |operand: &Operand, view: &ViewRef| {
        let (copy, count) = copies().find(|(copy, _)| copy.global().is_some_and(|of| of.tensor == operand.name))?;
        let all = |of_one: u64| blocks.saturating_mul(times(copy)).saturating_mul(of_one);
        Some(Traffic {
            requests: all(count.instructions),
            sectors: all(count.sectors),
            lines: all(lines(copy, count)),
            lane_bytes: all(count.bytes.0),
            ..launch.read(operand, view)
        })
    };
    // E is stored as D is.
    let of_d = traffic.iter().find(|traffic| traffic.written).copied();
    traffic.extend(part.operands().iter().skip(2).zip(others).filter_map(|(operand, view)| match operand.access {
        // One for 128 elements of D.
        _ if operand.name == SCALE_D => None,
        Access::Read => Some(scales(operand, view).unwrap_or_else(|| launch.read(operand, view))),
        Access::Write | Access::ReadWrite => of_d.map(|of_d| Traffic { operand: operand.name, ..of_d }),
    }));
    let each = |of: fn(&TileCopy, &CopyCount) -> u64| {
        copies().map(|(copy, count)| times(copy).saturating_mul(of(copy, count))).fold(0, u64::saturating_add)
    };
    let passes = |tensor: &SharedAnalysis| {
        let is = |place: Place| matches!(place, Place::Shared(name) if tensor.name.strip_prefix('s') == Some(name));
        let copy = tiling.copies.iter().find(|copy| is(copy.to));
        copy.map_or(1, times).saturating_mul(tensor.accesses.iter().map(|access| access.wavefronts).sum())
    };
    let [wide, half] = [part.recipe.dtype.dtype(), DType::F16].map(|dtype| dtype.bytes().0);
    let op = if tiling.mmas.first()?.has_fragments() { TensorOp::Mma } else { TensorOp::Wgmma };
    let work = Work {
        flop: u64::try_from(product([m, n, k, l]).saturating_mul(2)).unwrap_or(u64::MAX),
        blocks: launch.blocks,
        instructions: each(|_, count| count.instructions).saturating_add(steps.saturating_mul(counts.mmas)),
        wavefronts: shared.iter().map(passes).fold(each(lines), u64::saturating_add),
        l2_bytes: traffic.iter().map(|t| t.sectors.saturating_mul(SECTOR)).fold(0, u64::saturating_add),
        other_bytes: packed?,
        // Elements twice as wide: half as many products per cycle (NVIDIA H100 Tensor Core GPU Architecture).
        tensor: Some(TensorWork { op, products: steps.saturating_mul(counts.products).saturating_mul(wide) / half }),
    };
    Some(Prediction { traffic, blocks: launch.blocks, threads: tiling.threads(), work: Some(work) })
}

/// How often a copy of a part of D is done for its tile.
fn parts(tiling: &Tiling, copy: &TileCopy) -> u64 {
    let [m, n] = tiling.tile_of_d();
    (m * n / copy.tile.iter().product::<i64>().max(1)).unsigned_abs()
}

/// Tiles of D for which A and B are loaded, out of `blocks`. If clusters take the same rows or columns of tiles again
/// and again, an operand stays resident in the stages of each CTA. Reloads for another batch are not counted.
fn asked(part: &Part, rule: &Rule, values: &[i64], blocks: u64) -> [u64; 2] {
    let of = |name: &str| rule.steps.value(name, values).and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
    let [stays, launched, period] = ["stays_in_stages", "launched", "period"].map(of);
    if stays == 0 || !launched.is_multiple_of(period.max(1)) {
        return [blocks; 2];
    }
    let once = blocks.min(launched.saturating_mul(part.tiling.cluster_size().into()));
    let stays = part.own.stays();
    [0, 1].map(|factor| if factor == stays { once } else { blocks })
}

/// Bytes that are packed ahead of the product, read and written.
fn packed(part: &Part, views: &[ViewRef], rule: &Rule, values: &[i64]) -> Option<u64> {
    let bytes = |view: &ViewRef| view.layout.distinct().size()?.checked_mul(view.dtype.bytes().0);
    let written = u64::try_from(rule.workspace.eval(values)?).ok()?;
    // The launch's A is B in a text that is turned.
    let read = part.arguments().into_iter().zip(views).take(2).map(|(operand, view)| {
        let packs = rule.steps.value(&format!("is_packed_{}", operand.param), values)?;
        if packs != 0 { bytes(view) } else { Some(0) }
    });
    read.sum::<Option<u64>>()?.checked_add(written)
}

/// Lines that threads look up in L1 for one tile, at least: one for each request, and four sectors in each.
fn lines(copy: &TileCopy, count: &CopyCount) -> u64 {
    match copy.engine {
        Engine::Tma { .. } => 0,
        _ if count.sectors == 0 => 0,
        _ => count.instructions.max(count.sectors.div_ceil(SECTORS_PER_LINE)),
    }
}

impl Launch {
    /// Traffic of an epilogue input: each thread reads the elements of its accumulators, two neighbours along N, with
    /// four lanes in a row.
    fn read(&self, operand: &Operand, view: &ViewRef) -> Traffic {
        let size = view.dtype.bytes().0;
        let elements = u64::try_from(self.moved[2]).unwrap_or(u64::MAX);
        let distinct = view.layout.distinct().size().unwrap_or(u64::MAX);
        let sectors = (elements / 8).saturating_mul((8 * size).div_ceil(SECTOR));
        Traffic {
            operand: operand.name,
            written: false,
            requests: elements / LANES,
            sectors,
            lines: elements / 8,
            lane_bytes: elements.saturating_mul(size),
            bytes: distinct.saturating_mul(size),
        }
    }

    /// A copy's requests to global memory, repeated for a tile of D; `None` if it does not touch global memory.
    fn traffic(&self, copy: &TileCopy, count: &CopyCount, times: u64) -> Option<Traffic> {
        let operand = copy.global()?.tensor;
        let index = ["A", "B", "D"].iter().position(|name| *name == operand)?;
        let written = matches!(copy.to, Place::Global(_));
        let tiles = self.tiles[index].saturating_mul(times);
        let tile: u128 = copy.tile.iter().map(|extent| u128::from(extent.unsigned_abs())).product();
        let inside = |of_a_tile: u64| {
            let all = self.moved[index].saturating_mul(of_a_tile.into()) / tile.max(1);
            u64::try_from(all).unwrap_or(u64::MAX)
        };
        let view = &self.views[index];
        Some(Traffic {
            operand,
            written,
            requests: tiles.saturating_mul(count.instructions),
            sectors: inside(count.sectors),
            lines: inside(lines(copy, count)),
            lane_bytes: inside(count.bytes.0),
            bytes: view.layout.distinct().size().unwrap_or(u64::MAX).saturating_mul(view.dtype.bytes().0),
        })
    }
}
