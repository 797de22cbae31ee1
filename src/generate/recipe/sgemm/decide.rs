//! The decisions for a recipe: threads, copies, shared memory, registers.

use super::{Sgemm, Variant, facts, launch, tilings};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::model::SharedAnalysis;
use crate::plan::checks::{self, Checks};
use crate::plan::{Draft, Entry, Operand, Plan, Product};
use crate::recipe::product::{Extents, F32, Major, Parts, REDUCE_THREADS};
use crate::recipe::{Recipe, product};
use crate::tiling::{TileCopy, Tiling};
use crate::units::Bytes;

/// The decisions.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: Sgemm,
    pub(super) product: Product,
    pub(super) tiling: Tiling,
    /// The cost of the accesses to each tile in shared memory.
    pub(super) shared: Vec<SharedAnalysis>,
    /// Registers of a thread, at most, as the values alone tell.
    pub(super) registers: u64,
}

impl Sgemm {
    /// How K is cut.
    pub(super) fn parts(&self) -> Parts {
        match self.wave {
            0 => Parts::Each(self.split_k.into()),
            wave => Parts::Wave(wave.into()),
        }
    }

    /// Whether a second kernel adds parts of K.
    pub(super) fn reduces(&self) -> bool {
        self.parts() != Parts::Each(1)
    }
}

impl Decision {
    pub(super) fn tile(&self) -> [i64; 3] {
        self.tiling.tile
    }

    pub(super) fn stages(&self) -> i64 {
        if self.recipe.variant == Variant::Pipelined { i64::from(self.recipe.stages) } else { 1 }
    }

    /// The copy of A (0), B (1) or D (2) from or to global memory. Without tiles in shared memory the products load A and B themselves.
    pub(super) fn moved(&self, factor: usize) -> Option<&TileCopy> {
        let names = [["CopyA", "LoadA"], ["CopyB", "LoadB"], ["StoreD"; 2]];
        names.get(factor)?.iter().find_map(|name| self.tiling.copy(name))
    }

    /// Elements that an aligned copy of A (0), B (1) or D (2) from or to global memory moves at once.
    pub(super) fn vector(&self, factor: usize) -> i64 {
        let moves = self.moved(factor).map(|copy| self.tiling.moves(copy));
        if let Some(Ok(Some(moves))) = moves { moves.vector() } else { 1 }
    }

    /// Whether a launch tells if vectors of A (0), of B (1), or of D and the epilogue inputs (2) are aligned.
    pub(super) fn has_vectors(&self, factor: usize) -> bool {
        self.recipe.variant.has_mma() && self.vector(factor) > 1
    }

    /// Shared memory of a block.
    pub(super) fn smem(&self) -> Bytes {
        self.tiling.smem_bytes().unwrap_or(Bytes(u64::MAX))
    }
}

pub(super) fn plan(recipe: &Sgemm, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let product = recipe.epilogue().product(&mut checks);
    let structure = structure(recipe, targets, &mut checks);
    let decision = structure.zip(product).map(|((tiling, shared, registers), product)| Decision {
        recipe: recipe.clone(),
        product,
        tiling,
        shared,
        registers,
    });
    let scalars = recipe.epilogue.scalars();
    if let Some(decision) = &decision {
        shared_memory(decision, targets, &mut checks);
    }
    let warnings = checks.take_warnings();
    let decision = checks.finish(decision)?;
    let operands = operands(&decision);
    let draft = Draft {
        problem: Some(decision.product.problem_shape(&operands)),
        call: product::call(Sgemm::RUST_TYPE, &operands, scalars),
        operands,
        params: launch::params(&decision),
        rule: launch::rule(&decision),
        entries: entries(&decision, name),
        scalars: scalars.to_vec(),
        ..Draft::of(recipe, name, targets)
    };
    let (shared, facts) = (decision.shared.clone(), facts::facts(&decision));
    // SAFETY: the proofs of its tilings show that copies stay inside or are guarded; the rule refuses what overflows.
    let plan = unsafe { draft.plan(decision) };
    Ok(plan.with_facts(facts).with_shared(shared).with_warnings(warnings))
}

fn entries(decision: &Decision, name: &str) -> Vec<Entry> {
    let (recipe, smem) = (&decision.recipe, decision.smem());
    let (fixed, dynamic) = if recipe.variant == Variant::Pipelined { (Bytes(0), smem) } else { (smem, Bytes(0)) };
    let kernel = Entry {
        dynamic_smem: dynamic,
        registers: (decision.registers > 0).then_some(decision.registers),
        min_blocks: (recipe.min_blocks > 0).then_some(recipe.min_blocks),
        ..Entry::new(name, decision.tiling.threads(), fixed)
    };
    let reduce = decision.recipe.reduces().then(|| Entry::new(&format!("{name}_reduce"), REDUCE_THREADS, Bytes(0)));
    core::iter::once(kernel).chain(reduce).collect()
}

pub(super) fn operands(decision: &Decision) -> Vec<Operand> {
    let Sgemm { a, b, .. } = decision.recipe;
    decision.recipe.epilogue().operands(decision.product.has_c(), [DType::F32; 3], [a, b, Major::Row])
}

fn structure(recipe: &Sgemm, targets: &Targets, checks: &mut Checks) -> Option<(Tiling, Vec<SharedAnalysis>, u64)> {
    (extents(recipe, checks) & pipeline(recipe, checks)).then_some(())?;
    let [bm, bn, _] = recipe.tile.0.map(i64::from);
    let [tm, tn] = recipe.thread_tile.0.map(i64::from);
    let thr = [bm / tm, bn / tn];
    let threads = checks::thread_count(checks, thr[0].saturating_mul(thr[1]), "tile=128x128x16 thread=8x8")?;
    resident(recipe, threads, targets, checks)?;
    tilings::warps_divide(recipe, thr, checks).then_some(())?;
    let tiling = tilings::tiling(recipe, thr, checks);
    let registers = match recipe.variant {
        Variant::Naive | Variant::Coalesced => Some(0),
        _ => registers(recipe, threads, checks),
    };
    let (tiling, registers) = tiling.zip(registers)?;
    checks::instructions(checks, &tiling, targets, "variant=vectorized, or no architecture before sm_80");
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
    let mut fits = true;
    for (name, extent) in [("BM", bm), ("BN", bn), ("BK", bk), ("TM", tm), ("TN", tn)] {
        fits &= checks.require(
            (1..=LARGEST).contains(&extent),
            Code::TileSize,
            format!("{name} = {extent}"),
            &format!("1 to {LARGEST} elements"),
            "one block computes a tile; larger tiles do not fit in shared memory",
            "tile=128x128x16 thread=8x8",
        );
    }
    let positive = fits;
    for (tile, thread, [t, e]) in [("BM", "TM", [bm, tm]), ("BN", "TN", [bn, tn])] {
        let rest = t % e.max(1);
        fits &= checks.require(
            !positive || rest == 0,
            Code::TileDivides,
            format!("{tile} = {t}, {thread} = {e}, remainder {rest}"),
            &format!("{tile} % {thread} == 0"),
            "the last threads would compute elements of the next block's tile",
            &format!("{tile} = {} or {}, or a {thread} that divides {t}", t - rest, (t - rest).saturating_add(e)),
        );
    }
    fits &= checks.require(
        !fits || recipe.variant != Variant::Pipelined || bk % 2 == 0,
        Code::TileDivides,
        format!("variant = pipelined, BK = {bk}"),
        "an even BK",
        "columns of a tile alternate between two sets of registers, and each tile's first column must be in the first set",
        &format!("BK = {} or {}", bk.saturating_sub(1).max(2), bk.saturating_add(1)),
    );
    let (right, thread) = match recipe.variant {
        Variant::Naive | Variant::Coalesced | Variant::SmemTiled => ([tm, tn] == [1, 1], "1x1"),
        Variant::Block1d => (tn == 1, "8x1"),
        _ => (true, ""),
    };
    fits & checks.require(
        right,
        Code::Variant,
        format!("variant = {}, thread = {}", recipe.variant, recipe.thread_tile),
        &format!("thread = {thread}"),
        "the rung is defined by how many elements one thread computes",
        &format!("thread={thread}, or variant=block_2d"),
    )
}

/// Stages and parts of K.
fn pipeline(recipe: &Sgemm, checks: &mut Checks) -> bool {
    let Sgemm { variant, stages, split_k, wave, vector, .. } = recipe;
    let pipelined = *variant == Variant::Pipelined;
    let said = |of_a_pipeline: &'static str, of_another| if pipelined { of_a_pipeline } else { of_another };
    let fit = [
        checks.require(
            if pipelined { (2..=16).contains(stages) } else { *stages == 1 },
            Code::Stages,
            format!("variant = {variant}, stages = {stages}"),
            said("2 to 16 stages", "1 stage"),
            "a pipeline computes one tile while others are in flight; the other rungs have one tile",
            said("stages=3", "variant=pipelined"),
        ),
        checks.require(
            (1..=if pipelined { 64 } else { 1 }).contains(split_k),
            Code::SplitK,
            format!("variant = {variant}, split_k = {split_k}"),
            said("1 to 64 parts", "1 part"),
            "each part has a block of its own and writes its sums to memory, where a second kernel adds them in order",
            said("split_k=4", "variant=pipelined"),
        ),
        checks.require(
            *wave <= if pipelined && *split_k == 1 { 65535 } else { 0 },
            Code::SplitK,
            format!("variant = {variant}, split_k = {split_k}, wave = {wave}"),
            if *split_k > 1 { "split_k = 1" } else { said("0 to 65535 blocks", "wave = 0") },
            "only the tiles that do not fill a wave are split along K, and their sums are written to memory, \
             where a second kernel adds them in order",
            said("wave=264 split_k=1", "variant=pipelined"),
        ),
        checks.require(
            [4, 16].contains(vector),
            Code::VectorWidth,
            format!("vector = {vector} bytes"),
            "16 or 4 bytes",
            "tensors of f32 are loaded by vectors of four elements or one by one",
            "vector=16",
        ),
    ];
    fit.into_iter().all(|fits| fits)
}

/// Shared memory of all stages; a pipeline has dynamic shared memory.
fn shared_memory(decision: &Decision, targets: &Targets, checks: &mut Checks) {
    let pipelined = decision.recipe.variant == Variant::Pipelined;
    let (stages, smem) = (pipelined.then_some(decision.recipe.stages.into()), decision.smem());
    let Extents([bm, bn, bk]) = decision.recipe.tile;
    checks::shared_memory(checks, smem, stages, targets, |limit| {
        let dynamic = "variant=pipelined, which has dynamic shared memory";
        match u64::from(bk) * limit.0 / smem.0.max(1) {
            0 => format!("a smaller tile, or {dynamic}"),
            bk => format!("tile={bm}x{bn}x{bk} at most, or {dynamic}"),
        }
    });
}

/// Registers for accumulators, columns of A and B, and copies in flight.
fn registers(recipe: &Sgemm, threads: u32, checks: &mut Checks) -> Option<u64> {
    let [bm, bn, bk] = recipe.tile.0.map(u64::from);
    let [tm, tn] = recipe.thread_tile.0.map(u64::from);
    let (columns, on_the_way) = match recipe.variant {
        Variant::Pipelined => (2, 0),
        Variant::Vectorized | Variant::WarpTiled => (1, (bm + bn) * bk / u64::from(threads)),
        _ => (1, 0),
    };
    let values = Bytes(F32 as u64 * (tm * tn + columns * (tm + tn) + on_the_way));
    let blocks = if recipe.min_blocks > 1 { ", or min_blocks=1" } else { "" };
    let help = format!("a smaller thread tile, or fewer threads{blocks}");
    checks::registers(checks, values, threads, recipe.min_blocks, &help)
}

/// Whether the requested number of blocks can be resident on a multiprocessor.
fn resident(recipe: &Sgemm, threads: u32, targets: &Targets, checks: &mut Checks) -> Option<()> {
    let arch = targets.archs().iter().copied().min_by_key(|arch| arch.threads_per_sm())?;
    let (blocks, limit) = (recipe.min_blocks, arch.threads_per_sm());
    let holds = checks.require(
        u64::from(threads) * u64::from(blocks) <= limit.into(),
        Code::ThreadCount,
        format!("min_blocks = {blocks} of {threads} threads"),
        &format!("at most {limit} threads at a time on a multiprocessor of {arch}"),
        "this many blocks are never resident together, and ptxas then ignores the register limit (CUDA C++ Programming Guide, \
         \"Compute Capabilities\")",
        &format!("min_blocks={} at most, or fewer threads", limit / threads.max(1)),
    );
    holds.then_some(())
}
