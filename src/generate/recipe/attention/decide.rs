//! The decisions for a recipe.

use super::{Attention, launch, tilings};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::plan::checks::{self, Checks};
use crate::plan::{Draft, Entry, Fact, KernelPlan, Plan, Reference};
use crate::reference::{Softmax, Visible};
use crate::tiling::{TileMma, Tiling};
use crate::units::Bytes;

/// The longest rows of Q and of V.
const LONGEST: u32 = 256;

/// The decisions.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: Attention,
    pub(super) tiling: Tiling,
    pub(super) smem: Bytes,
    softmax: Softmax,
}

pub(super) fn plan(recipe: &Attention, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let tiling = if refuse(recipe, &mut checks) { proved(recipe, targets, &mut checks) } else { None };
    let (tiling, registers, smem) = checks.finish(tiling)?;
    let shared = tiling.shared().unwrap_or_else(|e| unreachable!("the proofs accept what cannot be analyzed: {e}"));
    let softmax = Softmax {
        visible: match recipe.mask {
            super::Mask::Full => Visible::All,
            super::Mask::Causal => Visible::UpToOwn,
            super::Mask::Window => Visible::Window,
        },
        weights: recipe.dtype,
        step: tiling.tile[2],
        packed: recipe.varlen,
        lse: recipe.lse,
    };
    let entry = Entry {
        dynamic_smem: smem,
        registers: Some(registers),
        min_blocks: Some(1),
        ..Entry::new(name, tiling.threads(), Bytes(0))
    };
    let facts = Fact::of_tiling(&tiling);
    let problem = launch::problem(recipe);
    let operands = launch::operands(recipe);
    let params = launch::params(recipe, &operands, &problem);
    let draft = Draft {
        rule: launch::rule(recipe, &params, &tiling),
        params,
        operands,
        entries: vec![entry],
        scalars: recipe.scalars(),
        problem: Some(problem),
        ..Draft::of(recipe, name, targets)
    };
    let decision = Decision { recipe: recipe.clone(), tiling, smem, softmax };
    // SAFETY: the proofs of its tiling show that copies stay inside or are guarded, and that the tiles of CTAs are apart; the rule
    // refuses rows that are not aligned, heads that do not fit together, and what overflows.
    let plan = unsafe { draft.of_tensors().plan(decision) };
    let accessed = shared.into_iter().filter(|tensor| !tensor.accesses.is_empty());
    Ok(plan.with_facts(facts).with_shared(accessed.collect()))
}

/// The tiling, the registers of a thread, and the bytes of shared memory.
fn proved(recipe: &Attention, targets: &Targets, checks: &mut Checks) -> Option<(Tiling, u64, Bytes)> {
    let help = "sm80_tile=64x32 sm80_warps=4";
    let tiling = checks.sound("rows and threads are layouts", tilings::sm80(recipe))?;
    checks::instructions(checks, &tiling, targets, "no architecture before sm_80");
    checks::thread_count(checks, tiling.threads().into(), "sm80_warps=4");
    if !checks::proofs(checks, &tiling, help) {
        return None;
    }
    let (need, limit) = checks::register_need(Bytes(4 * held(&tiling)), tiling.threads());
    let found = format!("about {need} registers, {} threads", tiling.threads());
    let because =
        "scores and outputs that do not fit in registers are spilled to local memory, which is as slow as DRAM";
    checks.require(need <= limit, Code::Registers, found, &format!("at most {limit}"), because, help);
    let smem = checks.sound("tensors have a size", tiling.smem_bytes())?;
    let arch = targets.archs().iter().copied().min_by_key(|arch| arch.smem_per_block())?;
    let limit = arch.smem_per_block();
    let because =
        "a block that asks for more cannot be launched (CUDA C++ Programming Guide, \"Compute Capabilities\")";
    let found = format!("{smem} of shared memory for {} stages", recipe.stages());
    let help = "sm80_stages=1, or a smaller sm80_tile";
    checks.require(smem <= limit, Code::SharedMemory, found, &format!("at most {limit} on {arch}"), because, help);
    Some((tiling, need, smem))
}

/// Registers of a thread for outputs, and beside them for scores with the fragments of two k-steps, or for weights with those of V:
/// scores become weights one pair after the other. nvcc 13.0 fetches a k-step ahead; with one it spilled 20 bytes at 248.
fn held(tiling: &Tiling) -> u64 {
    let threads = u64::from(tiling.threads());
    let of = |mma: &TileMma| {
        let [m, n, _] = mma.tile.map(i64::unsigned_abs);
        // 16 elements of a row of each factor, two in a register, among the lanes of a warp.
        (m * n / threads, [m * 32 / threads * 16 / 64, n * 16 / 64])
    };
    let [scores, output] = &tiling.mmas[..] else { return 0 };
    let ((scores, [q, k]), (output, [_, v])) = (of(scores), of(output));
    output + (scores + 2 * (q + k)).max(scores / 2 + 2 * v)
}

/// Settings that are none; whether the tiling can be looked at.
fn refuse(recipe: &Attention, checks: &mut Checks) -> bool {
    let is_half = matches!(recipe.dtype, DType::F16 | DType::Bf16);
    let (found, because) = (format!("dtype={}", recipe.dtype), "tensor cores multiply factors of 16 bits here");
    checks.require(is_half, Code::TileType, found, "f16 or bf16", because, "dtype=bf16");
    let mut fits = is_half;
    for (key, elements) in [("head", recipe.head), ("value", recipe.value())] {
        let whole = elements % 8 == 0 && (8..=LONGEST).contains(&elements);
        let because = "rows are copied in vectors of 16 bytes, and a row of O stays in registers";
        let required = format!("a multiple of 8, up to {LONGEST}");
        checks.require(whole, Code::TileSize, format!("{key}={elements}"), &required, because, &format!("{key}=64"));
        fits &= whole;
    }
    let [m, n] = recipe.tile();
    let rows = 16 * i64::from(recipe.sm80_warps);
    let whole = (1..=32).contains(&recipe.sm80_warps) && m > 0 && m % rows == 0 && m <= 1024;
    let found = format!("{m} queries, {} warps", recipe.sm80_warps);
    let because = "a warp multiplies 16 queries at once, and has the same ones for all keys";
    checks.require(whole, Code::TileDivides, found, "a multiple of 16 queries a warp", because, "sm80_tile=128x64");
    let steps = n > 0 && n % 16 == 0 && n <= 1024;
    let because = "weights are multiplied with V 16 keys at once";
    checks.require(steps, Code::TileDivides, format!("{n} keys"), "a multiple of 16", because, "sm80_tile=128x64");
    let stages = recipe.stages();
    let staged = (1..=8).contains(&stages);
    let because = "K and V have a place for each stage";
    checks.require(staged, Code::Stages, format!("{stages} stages"), "1 to 8", because, "sm80_stages=2");
    fits && whole && steps && staged
}

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.softmax)
    }

    fn spills_denied(&self) -> bool {
        true
    }
}
