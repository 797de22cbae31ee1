//! What is decided for a recipe: threads, copies, shared memory, registers.

use std::sync::Arc;

use super::epilogue::{self, AUX};
use super::wave::Cut;
use super::{Sgemm, Variant, budget, emit, launch, tilings};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::model::SharedAnalysis;
use crate::plan::checks::{self, Checks};
use crate::plan::{Entry, ModeStride, Operand, Plan, Product};
use crate::recipe::Recipe;
use crate::recipe::product::Major;
use crate::tiling::{Place, TileCopy, Tiling};
use crate::units::Bytes;
use crate::view::Access;

/// Threads of the kernel that adds the parts of K.
pub(super) const REDUCE_THREADS: u32 = 256;

/// What was decided.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: Sgemm,
    pub(super) product: Product,
    pub(super) tiling: Tiling,
    /// What the accesses to each tile in shared memory cost.
    pub(super) shared: Vec<SharedAnalysis>,
    /// Registers of a thread, at most, as the values alone tell.
    pub(super) registers: u64,
}

impl Decision {
    pub(super) fn tile(&self) -> [i64; 3] {
        self.tiling.tile
    }

    /// Threads along M and N.
    pub(super) fn thr(&self) -> [i64; 2] {
        let ([m, n, _], [tm, tn]) = (self.tile(), self.thread_tile());
        [m / tm, n / tn]
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

    /// The copy of A (0), B (1) or D (2): from or to global memory.
    pub(super) fn copy(&self, factor: usize) -> &TileCopy {
        let global = |copy: &&TileCopy| [copy.from, copy.to].iter().any(|place| matches!(place, Place::Global(_)));
        let all = self.tiling.copies.iter().filter(global).nth(factor);
        all.unwrap_or_else(|| unreachable!("A, B and D are copied from or to global memory"))
    }

    /// Elements that a copy of A, B or D moves at once where they are aligned.
    pub(super) fn vector(&self, factor: usize) -> i64 {
        match self.tiling.moves(self.copy(factor)) {
            Ok(Some(moves)) => moves.vector(),
            _ => 1,
        }
    }

    /// Whether several elements of A, of B, or of D and what is read with it are moved at once, so that the text asks whether
    /// they are aligned.
    pub(super) fn moves_vectors(&self, name: &str) -> bool {
        self.vector(["a", "b"].iter().position(|factor| *factor == name).unwrap_or(2)) > 1
    }

    /// Shared memory of a block.
    pub(super) fn smem(&self) -> Bytes {
        self.tiling.smem_bytes().unwrap_or(Bytes(u64::MAX))
    }
}

pub(super) fn plan(recipe: &Sgemm, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let product = epilogue::product(recipe, &mut checks);
    let structure = structure(recipe, targets, &mut checks);
    let decision = structure.zip(product).map(|((tiling, shared, registers), product)| Decision {
        recipe: recipe.clone(),
        product,
        tiling,
        shared,
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
        shared: decision.shared.clone(),
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
        ..Entry::new(name, decision.tiling.threads(), fixed)
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

type Structure = (Tiling, Vec<SharedAnalysis>, u64);

fn structure(recipe: &Sgemm, targets: &Targets, checks: &mut Checks) -> Option<Structure> {
    let extents_fit = extents(recipe, checks);
    let only_pipelined = pipeline(recipe, checks);
    (extents_fit && only_pipelined).then_some(())?;
    let [bm, bn, _] = recipe.tile.0.map(i64::from);
    let [tm, tn] = recipe.thread_tile.0.map(i64::from);
    let thr = [bm / tm, bn / tn];
    let threads = checks::thread_count(checks, thr[0].saturating_mul(thr[1]), "tile=128x128x16 thread=8x8")?;
    budget::resident(recipe, threads, targets, checks)?;
    tilings::warps_divide(recipe, thr, checks).then_some(())?;
    let tiling = tilings::tiling(recipe, thr, checks);
    let registers = match recipe.variant {
        Variant::Naive | Variant::Coalesced => Some(0),
        _ => budget::registers(recipe, threads, checks),
    };
    let (tiling, registers) = tiling.zip(registers)?;
    let flaw = tiling.flaws().into_iter().next();
    checks.sound("each element is copied once, and computed once", flaw.map_or(Ok(()), Err))?;
    let shared = checks.sound("accesses that are proved can be counted", tiling.shared())?;
    Some((tiling, shared, registers))
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
