//! Checks, tilings, and the plan.

use super::reference::Dequantised;
use super::tilings::{self, REDUCE};
use super::{W4a16, launch, pack};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::dtype::DType;
use crate::plan::checks::{self, Checks};
use crate::plan::{Arithmetic, Draft, Entry, Fact, KernelPlan, Plan, Product, Reference};
use crate::recipe::Isa;
use crate::recipe::product::Extents;
use crate::tiling::{Lives, Tiling};
use crate::units::Bytes;

#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) recipe: W4a16,
    /// A slice, the sum of a CTA's slices, and the sum of several CTAs.
    pub(super) tilings: [Tiling; 3],
    /// Shared memory of a CTA: the stages of all slices, or their sums.
    pub(super) smem: Bytes,
    registers: u64,
    pub(super) reference: Dequantised,
    /// Whether its kernels begin while those before them end.
    pub(super) overlaps: bool,
}

impl Decision {
    pub(super) fn product(&self) -> &Product {
        &self.reference.product
    }

    pub(super) fn threads(&self) -> u32 {
        self.tilings[1].threads()
    }
}

/// Types, groups, tiles, slices and stages.
fn settings(recipe: &W4a16, checks: &mut Checks) -> bool {
    let W4a16 { dtype, group, slices, stages, tile: Extents([bm, bn, bk]), .. } = recipe;
    let out = recipe.out();
    let mut all = Vec::new();
    let mut require = |holds, code, found: String, required: &str, because: &str, help: &str| {
        all.push(checks.require(holds, code, found, required, because, help));
    };
    let is_half = |dtype| matches!(dtype, DType::F16 | DType::Bf16);
    let because = "weights become numbers of 16 bits, which tensor cores multiply by A";
    require(is_half(*dtype), Code::TileType, format!("dtype={dtype}"), "f16 or bf16", because, "dtype=bf16");
    let because = "sums are f32, and D is no wider";
    let is_out = is_half(out) || out == DType::F32;
    require(is_out, Code::TileType, format!("out={out}"), "f16, bf16 or f32", because, "out=auto");
    let because = "a k-tile has whole groups, or is a part of one";
    let is_group = [32, 64, 128].contains(group);
    require(is_group, Code::TileSize, format!("group={group}"), "32, 64 or 128", because, "group=128");
    let found = || format!("tile={}", recipe.tile);
    let because = "a thread has 2 * BM accumulators";
    require([16, 32, 48, 64].contains(bm), Code::TileSize, found(), "BM of 16, 32, 48 or 64", because, "tile=16x64x64");
    let because = "a warp has 64 columns of D";
    require([64, 128, 256].contains(bn), Code::TileSize, found(), "BN of 64, 128 or 256", because, "tile=16x64x64");
    let because = "a k-tile has whole groups, or is a part of one";
    let is_k = [32, 64, 128, 256].contains(bk);
    require(is_k, Code::TileSize, found(), "BK of 32, 64, 128 or 256", because, "tile=16x64x64");
    let because = "all threads of a CTA add the sums of its slices, each as many";
    let found = format!("slices={slices}");
    require([1, 2, 4, 8].contains(slices), Code::ThreadCount, found, "1, 2, 4 or 8", because, "slices=4");
    let because = "a slice multiplies one k-tile while others are copied";
    let is_staged = (2..=16).contains(stages);
    require(is_staged, Code::Stages, format!("stages={stages}"), "2 to 16", because, "stages=4");
    let because = "the workspace has a tile of sums for each";
    let found = format!("ctas={}", recipe.ctas);
    require(recipe.ctas <= 65535, Code::SplitK, found, "0 to 65535", because, "ctas=396");
    all.into_iter().all(|holds| holds)
}

/// Registers for accumulators, fragments of A, words, scales and zero points.
fn registers(recipe: &W4a16, threads: u32, checks: &mut Checks) -> Option<u64> {
    let rows = u64::from(recipe.tile.0[0]);
    let values = 2 * rows + rows / 4 + 4 + 8 + if recipe.zeros { 8 } else { 0 };
    checks::registers(checks, Bytes(4 * values), threads, 1, "a smaller BM, or fewer slices")
}

fn decide(recipe: &W4a16, targets: &Targets, checks: &mut Checks) -> Option<Decision> {
    let product = recipe.epilogue().product(checks).map(|product| product.computed(Arithmetic::TensorCores));
    settings(recipe, checks).then_some(())?;
    let tilings = [tilings::slice(recipe), tilings::finish(recipe), tilings::reduce(recipe)];
    let [slice, finish, reduce] = tilings.map(|tiling| checks.sound("tiles and threads are layouts", tiling));
    let tilings = [slice?, finish?, reduce?];
    checks.sound("the order of packed weights is a layout", pack::order())?;
    let mut sound = true;
    for tiling in &tilings {
        sound &= checks::proofs(checks, tiling, "tile=16x64x64 slices=4");
    }
    checks::instructions(checks, &tilings[0], targets, "no architecture before sm_80");
    let threads = checks::thread_count(checks, tilings[1].threads().into(), "slices=4")?;
    let registers = registers(recipe, threads, checks);
    let smem = smem(recipe, &tilings, checks)?;
    shared_memory(recipe, smem, targets, checks);
    let product = product.filter(|_| sound)?;
    let reference = Dequantised { product, group: recipe.group as usize, zeros: recipe.zeros, dtype: recipe.dtype };
    let (recipe, registers) = (recipe.clone(), registers?);
    Some(Decision { recipe, tilings, smem, registers, reference, overlaps: false })
}

/// The stages of all slices, which the sums of a part of the tile take the place of.
fn smem(recipe: &W4a16, [slice, finish, _]: &[Tiling; 3], checks: &mut Checks) -> Option<Bytes> {
    let mut stages = slice.clone();
    stages.smem.retain(|tensor| tensor.lives == Lives::Mainloop);
    let of = |tiling: &Tiling| tiling.smem_bytes();
    let stages = checks.sound("stages fit in memory", of(&stages))?;
    let sums = checks.sound("sums fit in memory", of(finish))?;
    Some(Bytes((stages.0 * u64::from(recipe.slices)).max(sums.0).next_multiple_of(128)))
}

fn shared_memory(recipe: &W4a16, smem: Bytes, targets: &Targets, checks: &mut Checks) {
    let Some(arch) = targets.archs().iter().copied().min_by_key(|arch| arch.smem_per_block()) else { return };
    let limit = arch.smem_per_block();
    let each = smem.0 / u64::from(recipe.stages).max(1);
    let fitting = limit.0 / each.max(1);
    let help = if fitting >= 2 {
        format!("stages={fitting}, or fewer slices")
    } else {
        "fewer slices, or a smaller BK".into()
    };
    checks.require(
        smem <= limit,
        Code::SharedMemory,
        format!("{smem} of shared memory for {} stages of each of {} slices", recipe.stages, recipe.slices),
        &format!("at most {limit} on {arch}"),
        "a block that asks for more cannot be launched (CUDA C++ Programming Guide, \"Compute Capabilities\")",
        &help,
    );
}

pub(super) fn plan_as(recipe: &W4a16, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let decision = decide(recipe, targets, &mut checks);
    let decision = checks.finish(decision)?;
    // One text for all; only sm_90a begins early.
    let texts = Isa::among(targets).map(|(isa, own)| {
        let decision = Decision { overlaps: isa == Isa::Sm90a, ..decision.clone() };
        text(decision, &format!("{name}_{}", isa.suffix()), &own)
    });
    Ok(Plan::of_texts(name, texts.collect())?)
}

fn text(decision: Decision, name: &str, targets: &Targets) -> Plan {
    let recipe = decision.recipe.clone();
    let params = launch::params(&recipe, decision.product());
    let operands = launch::operands(&recipe, decision.product().has_c());
    let kernel = Entry {
        dynamic_smem: decision.smem,
        registers: Some(decision.registers),
        min_blocks: Some(1),
        overlaps: decision.overlaps,
        ..Entry::new(name, decision.threads(), Bytes(0))
    };
    let reduce =
        Entry { overlaps: decision.overlaps, ..Entry::new(&format!("{name}_reduce"), REDUCE as u32, Bytes(0)) };
    let draft = Draft {
        rule: launch::rule(&decision, &params),
        problem: Some(launch::problem(&recipe, &operands)),
        entries: vec![kernel, reduce],
        operands,
        params,
        scalars: recipe.epilogue.scalars().to_vec(),
        ..Draft::of(&recipe, name, targets)
    };
    let facts = facts(&decision);
    // SAFETY: the proofs show that copies of A, W, scales and zero points are guarded, that the sums of a slice have a place each, and
    // that each element of D has one thread. The rule refuses rows that are not aligned, and weights that have gaps or no whole blocks.
    unsafe { draft.of_tensors().plan(decision) }.with_facts(facts)
}

fn facts(of: &Decision) -> Vec<Fact> {
    let recipe = &of.recipe;
    let mut facts = vec![
        Fact::new("epilogue", &recipe.epilogue, "a accumulator; each operation rounded by itself"),
        Fact::new("weights", format!("groups of {}", recipe.group), "(q - z) * s, rounded to A's type"),
        Fact::new("slices", recipe.slices, "parts of K in a CTA, each with warps and stages of its own"),
    ];
    facts.extend(of.tilings.iter().take(1).flat_map(Fact::of_tiling));
    facts
}

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn spills_denied(&self) -> bool {
        true
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.reference)
    }
}
