//! The model of the text for sm_80: its CTAs share the pipes of a multiprocessor, and each waits for its own k-tiles.
//!
//! Constants were fitted to 14 recipes on 18 problems, f16, on an H100 (`tests/data/h100_gemm_sm80.txt`). Other GPUs
//! were not timed: their pipes are those of [`TensorOp`], the other constants are the same.

use super::{COPY, Expected, STRADDLED, SUMS, both, k_tiles, shared_sectors, straddles};
use crate::model::{Machine, TensorOp};
use crate::recipe::Gemm;
use crate::recipe::gemm::candidates::for_older;
use crate::recipe::gemm::stream_k::Load;
use crate::recipe::gemm::tilings;
use crate::recipe::product::{Major, Problem};
use crate::tiling::Place;

/// Seconds of a launch ahead of its first k-tile and behind its last.
const LAUNCH: f64 = 2.9e-6;

/// Efficiency, relative to the busier of tensor cores and shared memory.
const REACHED: f64 = 0.9;

/// Seconds from asking for a k-tile until it is there and multiplied, which pass for all stages but one at the same time.
const LATENCY: f64 = 0.84e-6;

/// Seconds of an epilogue for each element of a tile, and what each other CTA of the multiprocessor adds to that.
const EPILOGUE: f64 = 1.5e-6 / (128.0 * 128.0);
const BESIDE: f64 = 0.7;

/// Seconds in which a CTA begins a part of a shared tile and writes its sums, for each element of the tile.
const PIECE: f64 = 1.2e-6 / (128.0 * 128.0);

/// Seconds from the last of those sums to the first that the entry which adds them up has read.
const ADD_UP: f64 = 0.8e-6;

/// Cycles for which a k-tile keeps the busier pipe of a multiprocessor busy, by the counts of its tiling.
fn cycles(recipe: &Gemm, machine: &Machine) -> Option<f64> {
    let tiling = tilings::sm80(recipe, &recipe.sm80()).ok()?;
    let of_k_tile = |name: &str| {
        let is = |place: Place| matches!(place, Place::Shared(tensor) if name.strip_prefix('s') == Some(tensor));
        tiling.copies.iter().any(|copy| copy.is_of_k_tile() && (is(copy.from) || is(copy.to)))
    };
    let shared = tiling.shared().ok()?;
    let accesses = shared.iter().filter(|tensor| of_k_tile(&tensor.name)).flat_map(|tensor| &tensor.accesses);
    let wavefronts: u64 = accesses.map(|access| access.wavefronts).sum();
    let products = tiling.counts().ok()?.products as f64 / TensorOp::Mma.products_per_cycle(machine.arch);
    Some(both(wavefronts as f64, products) / REACHED)
}

fn expected((recipe, resident): (Gemm, u64), problem: &Problem, machine: &Machine) -> Option<Expected> {
    let [bm, bn, bk] = recipe.sm80_tile.0.map(u64::from);
    let tiles = problem.m.div_ceil(bm).saturating_mul(problem.n.div_ceil(bn));
    let (elements, k_tiles) = ((bm * bn) as f64, k_tiles(problem, recipe.sm80_tile.0[2]));
    let rows = [
        if recipe.a == Major::Row { problem.k } else { problem.m },
        if recipe.b == Major::Col { problem.k } else { problem.n },
    ];
    let sectors = if rows.into_iter().any(straddles) { STRADDLED } else { 1.0 };
    let busy = sectors * cycles(&recipe, machine)? / machine.clock;
    let alone = sectors * LATENCY / f64::from(recipe.sm80_stages.saturating_sub(1).max(1));
    // Seconds of a k-tile, with this many CTAs on a multiprocessor at a time.
    let k_tile = |ctas: u64| both(ctas as f64 * busy, alone);
    let epilogue = |ctas: u64| EPILOGUE * elements * (1.0 + BESIDE * ctas.saturating_sub(1) as f64);
    let whole = |ctas: u64| if ctas > 0 { k_tiles as f64 * k_tile(ctas) + epilogue(ctas) } else { 0.0 };
    let load = match recipe.sm80_stream_k {
        0 => None,
        least => Load::of(tiles, problem.k.div_ceil(bk), recipe.sm80_ctas.into(), least),
    };
    let of_busiest = tiles.div_ceil(machine.sms.max(1));
    let turns = load.map_or(of_busiest / resident.max(1), |load| load.rounds);
    let shared = load.map_or(whole(of_busiest % resident.max(1)), |Load { share, pieces, sums, .. }| {
        let sums = 2.0 * 4.0 * sums as f64 * elements;
        share as f64 * k_tile(resident) + pieces as f64 * PIECE * elements + ADD_UP + sums / SUMS
    });
    let [m, n, k] = [problem.m, problem.n, problem.k].map(|extent| extent as f64);
    let written = m * n * (1.0 + shared_sectors(problem, bn));
    let bytes = 2.0 * (m * k + n * k + written) / (COPY * machine.copy);
    let mainloop = k_tiles as f64 * k_tile(resident);
    Some(Expected { recipe, turns, mainloop, epilogue: epilogue(resident), shared, bytes, launch: LAUNCH })
}

/// The model's expectation of each candidate for an older architecture.
pub(super) fn expect(problem: &Problem, machine: &Machine) -> Vec<Expected> {
    for_older(problem, machine).into_iter().filter_map(|tried| expected(tried, problem, machine)).collect()
}
