//! What is decided for a recipe: threads, copies, shared memory, registers.

use std::sync::Arc;

use super::copy::{F32, Reads, Tile, Wanted};
use super::epilogue::{self, AUX};
use super::wave::Cut;
use super::{Sgemm, Variant, budget, emit, launch};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::model::storage;
use crate::plan::checks::{self, Checks};
use crate::plan::{Entry, ModeStride, Operand, Plan, Product};
use crate::recipe::Recipe;
use crate::recipe::product::{Extents, Major};
use crate::units::Bytes;
use crate::view::Access;

/// Threads of the kernel that adds the parts of K.
pub(super) const REDUCE_THREADS: u32 = 256;

/// What was decided.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: Sgemm,
    pub(super) product: Product,
    pub(super) threads: u32,
    /// Threads along M and N.
    pub(super) thr: [i64; 2],
    /// Tiles of A and B, where the rung has them.
    pub(super) tiles: Option<[Tile; 2]>,
    /// Registers of a thread, at most, as the values alone tell.
    pub(super) registers: u64,
}

impl Decision {
    pub(super) fn tile(&self) -> [i64; 3] {
        self.recipe.tile.0.map(i64::from)
    }

    pub(super) fn thread_tile(&self) -> [i64; 2] {
        self.recipe.thread_tile.0.map(i64::from)
    }

    pub(super) fn stages(&self) -> i64 {
        if self.recipe.variant == Variant::Pipelined { i64::from(self.recipe.stages) } else { 1 }
    }

    pub(super) fn split(&self) -> i64 {
        i64::from(self.recipe.split_k)
    }

    /// Whether a second kernel adds parts of K.
    pub(super) fn reduces(&self) -> bool {
        self.recipe.split_k > 1 || self.recipe.wave > 0
    }

    /// How the tiles of D become blocks where a wave is asked for.
    pub(super) fn cut(&self, tiles: i64, k: i64) -> Cut {
        let bk = self.tile()[2];
        Cut::new(i64::from(self.recipe.wave), tiles, (k + bk - 1) / bk, bk)
    }

    /// Neighbours along M and N that one thread computes.
    pub(super) fn vectors(&self) -> [i64; 2] {
        self.thread_tile().map(vector_of)
    }

    /// Whether several elements of A, of B, or of D and what is read with it are moved at once, so that the text asks whether
    /// they are aligned.
    pub(super) fn moves_vectors(&self, name: &str) -> bool {
        let tile = |i: usize| self.tiles.as_ref().is_some_and(|tiles| tiles[i].vec > 1);
        match name {
            "a" => tile(0),
            "b" => tile(1),
            _ => self.vectors()[1] > 1,
        }
    }

    /// Shared memory of a block.
    pub(super) fn smem(&self) -> Bytes {
        let array = |tile: &Tile| (Bytes((tile.cosize(self.stages()) * F32) as u64), tile.alignment());
        storage(self.tiles.iter().flatten().map(array))
    }
}

/// The largest vector of 1, 2 or 4 elements that divides so many.
fn vector_of(elements: i64) -> i64 {
    [4, 2, 1].into_iter().find(|v| elements % v == 0).unwrap_or(1)
}

pub(super) fn plan(recipe: &Sgemm, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let product = epilogue::product(recipe, &mut checks);
    let structure = structure(recipe, &mut checks);
    let decision = structure.zip(product).map(|((threads, thr, tiles, registers), product)| Decision {
        recipe: recipe.clone(),
        product,
        threads,
        thr,
        tiles,
        registers,
    });
    if let Some(decision) = &decision {
        budget::shared_memory(decision, targets, &mut checks);
    }
    let warnings = checks.take_warnings();
    let decision = checks.finish(decision)?;
    Ok(Plan {
        family: Sgemm::FAMILY,
        rust_type: Sgemm::RUST_TYPE,
        name: name.to_owned(),
        recipe: format!("{recipe:?}"),
        settings: recipe.settings(),
        targets: targets.clone(),
        operands: operands(&decision),
        params: launch::params(&decision),
        entries: entries(&decision, name),
        scalars: recipe.epilogue.scalars().to_vec(),
        shared: decision.tiles.iter().flatten().filter_map(|tile| tile.analysis.clone()).collect(),
        warnings,
        facts: emit::facts(&decision),
        kernel: Arc::new(decision),
        parts: Vec::new(),
    })
}

fn entries(decision: &Decision, name: &str) -> Vec<Entry> {
    let recipe = &decision.recipe;
    let smem = decision.smem();
    let (fixed, dynamic) = if recipe.variant == Variant::Pipelined { (Bytes(0), smem) } else { (smem, Bytes(0)) };
    let kernel = Entry {
        dynamic_smem: dynamic,
        registers: (decision.registers > 0).then_some(decision.registers),
        min_blocks: (recipe.min_blocks > 0).then_some(recipe.min_blocks),
        ..Entry::new(name, decision.threads, fixed)
    };
    let reduce = decision.reduces().then(|| Entry::new(&format!("{name}_reduce"), REDUCE_THREADS, Bytes(0)));
    core::iter::once(kernel).chain(reduce).collect()
}

pub(super) fn operands(decision: &Decision) -> Vec<Operand> {
    let recipe = &decision.recipe;
    let operand = |name: &'static str, strides: &[ModeStride], access| Operand {
        name,
        param: name.to_ascii_lowercase(),
        dtype: DType::F32,
        access,
        strides: strides.iter().copied().chain(recipe.batched.then_some(ModeStride::Dynamic)).collect(),
        in_place: false,
        may_be_empty: true,
    };
    let row = Major::Row.strides();
    let mut operands =
        vec![operand("A", &recipe.a.strides(), Access::Read), operand("B", &recipe.b.strides(), Access::Read)];
    // Each element of C and of the auxiliary tensors is read by the thread that writes the same element of D, before.
    if decision.product.has_c() {
        operands.push(Operand { in_place: true, ..operand("C", &row, Access::Read) });
    }
    operands.extend(AUX.iter().zip(&recipe.aux).map(|(name, spec)| Operand {
        dtype: spec.dtype,
        strides: spec.strides.clone(),
        in_place: true,
        ..operand(name, &row, Access::Read)
    }));
    operands.push(operand("D", &row, Access::Write));
    operands
}

type Structure = (u32, [i64; 2], Option<[Tile; 2]>, u64);

fn structure(recipe: &Sgemm, checks: &mut Checks) -> Option<Structure> {
    let extents_fit = extents(recipe, checks);
    let only_pipelined = pipeline(recipe, checks);
    (extents_fit && only_pipelined).then_some(())?;
    let [bm, bn, _] = recipe.tile.0.map(i64::from);
    let [tm, tn] = recipe.thread_tile.0.map(i64::from);
    let thr = [bm / tm, bn / tn];
    let threads = checks::thread_count(checks, thr[0].saturating_mul(thr[1]), "tile=128x128x16 thread=8x8")?;
    if matches!(recipe.variant, Variant::Naive | Variant::Coalesced) {
        return Some((threads, thr, None, 0));
    }
    let reads = reads(recipe, thr, threads, checks)?;
    let tiles = tiles(recipe, &reads, threads, checks);
    let registers = budget::registers(recipe, threads, checks);
    Some((threads, thr, Some(tiles?), registers?))
}

/// Extents are positive, and thread tiles make the tile of the block.
fn extents(recipe: &Sgemm, checks: &mut Checks) -> bool {
    const LARGEST: u32 = 1024;
    let [bm, bn, bk] = recipe.tile.0;
    let [tm, tn] = recipe.thread_tile.0;
    let all = [("BM", bm), ("BN", bn), ("BK", bk), ("TM", tm), ("TN", tn)];
    let mut fits = true;
    for (name, extent) in all.into_iter().filter(|(_, e)| !(1..=LARGEST).contains(e)) {
        fits = false;
        checks.push(
            Code::TileSize,
            format!("{name} = {extent}"),
            format!("1 to {LARGEST} elements"),
            "a tile is what one block computes; larger ones fit in no shared memory",
            "tile=128x128x16 thread=8x8".into(),
        );
    }
    for (tile, thread, [t, e]) in [("BM", "TM", [bm, tm]), ("BN", "TN", [bn, tn])] {
        if fits && t % e != 0 {
            fits = false;
            checks.push(
                Code::TileDivides,
                format!("{tile} = {t}, {thread} = {e}, remainder {}", t % e),
                format!("{tile} % {thread} == 0"),
                "the last threads would compute elements of the next block's tile",
                format!("{tile} = {} or {}, or a {thread} that divides {t}", t - t % e, t - t % e + e),
            );
        }
    }
    if fits && recipe.variant == Variant::Pipelined && bk % 2 != 0 {
        fits = false;
        checks.push(
            Code::TileDivides,
            format!("variant = pipelined, BK = {bk}"),
            "an even BK".into(),
            "columns of a tile are in two sets of registers by turns, and the first of the next tile belongs in the first set",
            format!("BK = {} or {}", (bk - 1).max(2), bk + 1),
        );
    }
    let single = matches!(recipe.variant, Variant::Naive | Variant::Coalesced | Variant::SmemTiled);
    let wrong = match recipe.variant {
        _ if single && [tm, tn] != [1, 1] => Some("1x1"),
        Variant::Block1d if tn != 1 => Some("8x1"),
        _ => None,
    };
    if let Some(thread) = wrong {
        fits = false;
        checks.push(
            Code::Variant,
            format!("variant = {}, thread = {}", recipe.variant, recipe.thread_tile),
            format!("thread = {thread}"),
            "the rung is defined by how many elements one thread computes",
            format!("thread={thread}, or variant=block_2d"),
        );
    }
    fits
}

/// Stages and parts of K.
fn pipeline(recipe: &Sgemm, checks: &mut Checks) -> bool {
    let pipelined = recipe.variant == Variant::Pipelined;
    let stages = if pipelined { 2..=16 } else { 1..=1 };
    let mut fits = true;
    if !stages.contains(&recipe.stages) {
        fits = false;
        checks.push(
            Code::Stages,
            format!("variant = {}, stages = {}", recipe.variant, recipe.stages),
            if pipelined { "2 to 16 stages" } else { "1 stage" }.into(),
            "a pipeline computes one tile while others are on their way; the other rungs have one tile",
            if pipelined { "stages=3" } else { "variant=pipelined" }.into(),
        );
    }
    let parts = if pipelined { 1..=64 } else { 1..=1 };
    if !parts.contains(&recipe.split_k) {
        fits = false;
        checks.push(
            Code::SplitK,
            format!("variant = {}, split_k = {}", recipe.variant, recipe.split_k),
            if pipelined { "1 to 64 parts" } else { "1 part" }.into(),
            "each part has a block of its own and writes its sums to memory, where a second kernel adds them in order",
            if pipelined { "split_k=4" } else { "variant=pipelined" }.into(),
        );
    }
    let waves = if pipelined && recipe.split_k == 1 { 0..=65535 } else { 0..=0 };
    if !waves.contains(&recipe.wave) {
        fits = false;
        checks.push(
            Code::SplitK,
            format!("variant = {}, split_k = {}, wave = {}", recipe.variant, recipe.split_k, recipe.wave),
            if recipe.split_k > 1 { "split_k = 1" } else if pipelined { "0 to 65535 blocks" } else { "wave = 0" }.into(),
            "the tiles that do not fill a wave are cut along K in place of all tiles, and their sums are written to memory, \
             where a second kernel adds them in order",
            if pipelined { "wave=264 split_k=1" } else { "variant=pipelined" }.into(),
        );
    }
    if ![4, 16].contains(&recipe.vector) {
        fits = false;
        checks.push(
            Code::VectorWidth,
            format!("vector = {} bytes", recipe.vector),
            "16 or 4 bytes".into(),
            "tensors of f32 are loaded by vectors of four elements or one by one",
            "vector=16".into(),
        );
    }
    fits
}

/// What the threads read of the tiles of A and of B.
fn reads(recipe: &Sgemm, thr: [i64; 2], threads: u32, checks: &mut Checks) -> Option<[Reads; 2]> {
    let thread_tile = recipe.thread_tile.0.map(i64::from);
    let place = place(recipe, thr, checks)?;
    let side = |mode: usize| {
        let (t, vec) = (thread_tile[mode], vector_of(thread_tile[mode]));
        let firsts = (0..i64::from(threads)).map(|thread| place(thread)[mode]);
        // A thread's vectors lie one after the other, or with those of the other threads between.
        let (step, distance) = if recipe.variant.has_mma() { (vec, vec * thr[mode]) } else { (t, vec) };
        Reads { first: firsts.map(|at| at * step).collect(), vec, rest: (0..t / vec).map(|i| i * distance).collect() }
    };
    Some([side(0), side(1)])
}

/// Lanes of a warp along a mode: so many, so far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    pub(super) count: i64,
    pub(super) stride: i64,
}

/// The lanes of a warp along M and along N, each as two modes: bit 0 of a lane goes along N and bit 1 along M, so that lanes l
/// and l ^ 1 read the same of A and lanes l and l ^ 2 the same of B. A load of 16 bytes then serves twice as many lanes at a
/// time, as `plan::Request` counts.
pub(super) fn zigzag([lanes_m, lanes_n]: [i64; 2]) -> ([Lanes; 2], [Lanes; 2]) {
    let lanes = |count, stride| Lanes { count, stride };
    let (low_m, low_n) = (lanes_m.min(2), lanes_n.min(2));
    let (high_m, high_n) = (lanes_m / low_m, lanes_n / low_n);
    let low = low_m * low_n;
    ([lanes(low_m, low_n), lanes(high_m, low * high_n)], [lanes(low_n, 1), lanes(high_n, low)])
}

/// From a thread to its place along M and N.
fn place(recipe: &Sgemm, thr: [i64; 2], checks: &mut Checks) -> Option<impl Fn(i64) -> [i64; 2] + use<>> {
    let [lanes_m, lanes_n] = recipe.warp.0.map(i64::from);
    let tiled = matches!(recipe.variant, Variant::WarpTiled | Variant::Pipelined);
    let power = lanes_m.count_ones() == 1 && lanes_n.count_ones() == 1;
    if tiled && (!power || lanes_m * lanes_n != 32 || thr[0] % lanes_m != 0 || thr[1] % lanes_n != 0) {
        let Extents([m, n]) = recipe.warp;
        checks.push(
            Code::TileDivides,
            format!("warp = {m}x{n}, {} x {} threads along M and N", thr[0], thr[1]),
            "32 threads of a warp that divide the threads of the block along M and along N".into(),
            "each warp has a tile of its own, of the same size as any other",
            "warp=4x8, warp=8x4 or warp=2x16; BM = 4*TM*i and BN = 8*TN*j fit warp=4x8".into(),
        );
        return None;
    }
    let warps_m = thr[0] / lanes_m.max(1);
    let ([m_low, m_high], [n_low, n_high]) = zigzag([lanes_m, lanes_n]);
    Some(move |thread: i64| {
        if !tiled {
            return [thread / thr[1], thread % thr[1]];
        }
        let (lane, warp) = (thread % 32, thread / 32);
        let along =
            |[low, high]: [Lanes; 2]| lane / low.stride % low.count + low.count * (lane / high.stride % high.count);
        [along([m_low, m_high]) + lanes_m * (warp % warps_m), along([n_low, n_high]) + lanes_n * (warp / warps_m)]
    })
}

fn tiles(recipe: &Sgemm, reads: &[Reads; 2], threads: u32, checks: &mut Checks) -> Option<[Tile; 2]> {
    let [bm, bn, bk] = recipe.tile.0.map(i64::from);
    let mma = recipe.variant.has_mma();
    let wanted = |name, x, major, smem, contiguous_k| Wanted {
        name,
        x,
        k: bk,
        major,
        // Without an MMA the tile lies as its matrix does.
        smem_k: !mma && contiguous_k,
        vec: vector(recipe, contiguous_k),
        smem,
        conflicts: recipe.conflicts,
        asynchronous: recipe.variant == Variant::Pipelined,
        stages: i64::from(recipe.stages),
        mma,
        threads,
    };
    let a_k = recipe.a == Major::Row;
    let b_k = recipe.b == Major::Col;
    let a = Tile::new(&wanted("A", bm, recipe.a, recipe.smem_a, a_k), &reads[0], checks);
    let b = Tile::new(&wanted("B", bn, recipe.b, recipe.smem_b, b_k), &reads[1], checks);
    Some([a?, b?])
}

/// Elements of one load of global memory. An asynchronous copy puts them into shared memory as they are, so that a tile that
/// is turned is copied element by element.
fn vector(recipe: &Sgemm, contiguous_k: bool) -> i64 {
    match recipe.variant {
        Variant::Vectorized | Variant::WarpTiled => i64::from(recipe.vector) / F32,
        Variant::Pipelined if !contiguous_k => i64::from(recipe.vector) / F32,
        _ => 1,
    }
}
