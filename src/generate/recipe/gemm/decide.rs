//! The decisions for a recipe: a plan for each group of architectures, and one for them all.

use super::budget::{Budget, Needs};
use super::settings::{LEAST_COLUMNS, settings};
use super::text_settings::TextSettings;
use super::{Gemm, entries, launch, order, predict, rule, tilings};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::layout::LayoutError;
use crate::model::Prediction;
use crate::plan::checks::{self, Checks};
use crate::plan::{Draft, Entry, Fact, Groups, KernelPlan, Plan, Product, Reference};
use crate::recipe::product::{self, Major};
use crate::recipe::{Isa, Recipe};
use crate::tiling::{Arrivals, Law, Task, Tiling};
use crate::units::Bytes;
use crate::view::ViewRef;

impl Isa {
    /// The settings of its text.
    fn settings(self, recipe: &Gemm) -> TextSettings {
        match self {
            Isa::Sm80 => recipe.sm80(),
            Isa::Sm90a => recipe.sm90a(),
        }
    }

    /// The setting that is its tile.
    fn tile_key(self) -> &'static str {
        match self {
            Isa::Sm80 => "sm80_tile",
            Isa::Sm90a => "tile",
        }
    }

    fn tiling(self, recipe: &Gemm, own: &TextSettings) -> Result<Tiling, LayoutError> {
        match self {
            Isa::Sm80 => tilings::sm80(recipe, own),
            Isa::Sm90a => tilings::sm90a(recipe, own),
        }
    }

    /// Tiling of the entry for a D that TMA cannot store.
    fn direct(self, recipe: &Gemm, tiling: &Tiling) -> Result<Option<Tiling>, LayoutError> {
        match self {
            Isa::Sm80 => Ok(None),
            // The kernel itself stores rows wherever they lie.
            Isa::Sm90a if recipe.scatter => Ok(None),
            Isa::Sm90a => entries::direct(recipe, tiling).map(Some),
        }
    }
}

/// The decisions for one text.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) recipe: Gemm,
    /// What the text has of its own.
    pub(super) own: TextSettings,
    pub(super) isa: Isa,
    /// Tiling of the entry that has the kernel's name.
    pub(super) tiling: Tiling,
    /// Tiling of the entry that packs an operand first.
    pub(super) pack: Tiling,
    /// Tiling of the entry for a D that TMA cannot store.
    pub(super) direct: Option<Tiling>,
    /// If clusters share tiles: the tilings of their partial sums, and of the entry that adds these up.
    pub(super) stream_k: Option<[Tiling; 2]>,
    pub(super) smem: Bytes,
    registers: u64,
    pub(super) product: Product,
    /// How its threads share their registers.
    pub(super) budget: Budget,
}

impl KernelPlan for Part {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.product)
    }

    fn predict(&self, views: &[ViewRef]) -> Option<Prediction> {
        predict::predict(self, views)
    }

    fn spills_denied(&self) -> bool {
        true
    }
}

impl Part {
    /// What the mbarriers of the mainloop wait for.
    pub(super) fn arrivals(&self) -> Arrivals {
        self.tiling.arrivals(&self.tiling.pipelines[0])
    }

    /// Whether an operand's k-tiles may stay resident from tile to tile: without split-K and stream-K, all tiles have
    /// all of K. Rows of groups begin anywhere.
    pub(super) fn stays(&self) -> bool {
        let is_one = self.recipe.groups == Groups::None;
        is_one && self.isa == Isa::Sm90a && self.tiling.splits() == 1 && !self.tiling.streams_k()
    }
}

pub(super) fn plan(recipe: &Gemm, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let product = recipe
        .epilogue()
        .product(&mut checks)
        .map(|product| product.computed(recipe.arithmetic()).scaled_by_blocks(recipe.block_scales()))
        .map(|product| product.indexed(recipe.indices()))
        .map(|product| if recipe.scale_d.is_some() { product.quantised() } else { product });
    let fits = settings(recipe, &mut checks);
    let mut parts = Vec::new();
    for (isa, own) in Isa::among(targets) {
        let Some(product) = product.as_ref().filter(|_| fits) else { continue };
        let part = part(recipe, isa, &own, product.clone(), &mut checks);
        parts.extend(part.map(|part| (part, own)));
    }
    let parts = checks.finish(Some(parts))?;
    let texts = parts.into_iter().map(|(part, own)| part_plan(part, name, own)).collect();
    Ok(Plan::of_texts(name, texts)?)
}

/// Registers for the epilogue inputs: addresses, strides, and the elements that are read or written at a time. With
/// more than one tensor, some elements are computed while others are read. A thread with two blocks of 64 rows works on
/// both at once.
///
/// With the 32 registers that any kernel has beside its accumulators, one tensor takes 40, two take 56 and three take
/// 72. With two blocks they take 104 and 120. nvcc 13.0 has compiled kernels at these bounds. With two blocks it
/// spilled a few registers at 88 and 104.
fn for_tensors(count: u64, blocks: u32) -> u64 {
    match count {
        0 => 0,
        1 => 8,
        _ if blocks > 1 => 16 * count + 40,
        _ => 16 * count - 8,
    }
}

/// Whether the text for mma.sync has what is asked for; else why not.
fn older_has(recipe: &Gemm, own_targets: &Targets, checks: &mut Checks) -> bool {
    let archs: Vec<String> = own_targets.archs().iter().map(ToString::to_string).collect();
    let mut fine = true;
    let mut only_newer = |holds: bool, found: String, instead: &str, because: &str| {
        fine &= holds;
        if !holds {
            let found = format!("{found}, for {}", archs.join(", "));
            let help = format!("{}, or sm_90a as the only target, `--arch sm_90a`", instead.replace(" = ", "="));
            checks.push(Code::Instruction, found, format!("{instead}, or sm_90a"), because, help);
        }
    };
    let because = "the text for sm_90a moves sums to f32; that for mma.sync leaves all of K to the tensor cores";
    only_newer(recipe.promote == 0, format!("promote = {}", recipe.promote), "promote = 0", because);
    let because = "in the text for sm_90a a warp has whole rows of a tile; in that for mma.sync several share them";
    only_newer(recipe.scale_d.is_none(), "scale_d".to_owned(), "scale_d = auto", because);
    // TMA takes coordinates, cp.async addresses.
    let because = "a group begins at any row, and cp.async reads 16 bytes of a column of A from multiples of 16 bytes";
    let holds = recipe.groups != Groups::Rows || recipe.a == Major::Row;
    only_newer(holds, "a = col, groups = rows".to_owned(), "a = row", because);
    fine
}

fn part(recipe: &Gemm, isa: Isa, own_targets: &Targets, product: Product, checks: &mut Checks) -> Option<Part> {
    let algebra = |e: LayoutError, checks: &mut Checks| {
        let found = format!("{}: {}", isa.suffix(), e.what_was_found());
        let required = e.what_is_required().to_string();
        checks.push(Code::TileDivides, found, required, "threads and tiles divide", "tile=128x128x64".into());
    };
    if isa == Isa::Sm80 && !older_has(recipe, own_targets, checks) {
        return None;
    }
    let own = isa.settings(recipe);
    let tiling = isa.tiling(recipe, &own).map_err(|e| algebra(e, checks)).ok()?;
    let direct = isa.direct(recipe, &tiling).map_err(|e| algebra(e, checks)).ok()?;
    let pack = entries::pack(recipe).map_err(|e| algebra(e, checks)).ok()?;
    let stream_k = tiling.streams_k().then(|| entries::stream_k(recipe, &tiling)).transpose();
    let stream_k = stream_k.map_err(|e| algebra(e, checks)).ok()?;
    let newer = match recipe.dtype.is_narrow() {
        true => "architectures from sm_89 on; elsewhere dtype=f16, whose values those of 8 bits all are",
        false => "no architecture before sm_80",
    };
    checks::instructions(checks, &tiling, own_targets, newer);
    let mut flaws = tiling.flaws();
    if flaws.is_empty() {
        flaws.extend(direct.iter().chain([&pack]).chain(stream_k.iter().flatten()).flat_map(Tiling::flaws));
    }
    for flaw in flaws {
        let code = match flaw.law {
            Law::CoversOnce | Law::Order => Code::TileDivides,
            // Below, with what else a thread holds.
            Law::Registers => continue,
            law => checks::code_of(law),
        };
        let found = format!("{}: {}", isa.suffix(), flaw.found);
        checks.push(code, found, flaw.required, flaw.because, "tile=128x128x64, or another power of two".into());
    }
    let threads = checks::thread_count(checks, tiling.threads().into(), "tile=128x128x64")?;
    let registers = tiling.registers().map_err(|e| algebra(e, checks)).ok()?;
    // Where operands come from registers, the epilogue's tensors take no more than those did.
    let (read, second) = (recipe.aux.len() as u64 + u64::from(product.has_c()), recipe.epilogue.outputs() as u64 - 1);
    let beside = for_tensors(read, tilings::blocks_of_rows(&own)) + for_tensors(second, 1);
    let beside = if isa == Isa::Sm90a { beside } else { 0 };
    let (need, limit) = checks::register_need(Bytes(4 * (registers + beside)), threads);
    let consumers = tiling.roles.iter().filter(|role| role.task == Task::Consume);
    let limit = consumers
        .filter_map(|role| role.registers)
        .map(|own| tilings::most_needed(own, read + second))
        .min()
        .map_or(limit, u64::from);
    if need > limit {
        let [m, n, k] = tiling.tile;
        checks.push(
            Code::Registers,
            format!("{}: BM = {m}, BN = {n}: about {need} registers, {threads} threads", isa.suffix()),
            format!("at most {limit} registers a thread"),
            "accumulators that do not fit in registers are spilled to local memory, which is as slow as DRAM",
            format!(
                "a smaller BM or BN: {}=128x{}x{k}",
                isa.tile_key(),
                if tiling.teams() > 1 || recipe.promote > 0 { 128 } else { 256 }
            ),
        );
    } else {
        one_instruction(&tiling, checks);
    }
    let tensors = recipe.tensors(&product);
    let reads = tensors.get(recipe.epilogue_inputs(tensors.len())).unwrap_or_default();
    let budget = Budget::of(isa, &Needs { recipe, tiling: &tiling, reads });
    let smem = tiling.smem_bytes().map_err(|e| algebra(e, checks)).ok()?;
    shared_memory(isa, &tiling, own_targets, checks);
    Some(Part {
        recipe: recipe.clone(),
        own,
        isa,
        tiling,
        pack,
        direct,
        stream_k,
        smem,
        registers: need,
        product,
        budget,
    })
}

/// Accumulators of one WGMMA, against the registers of the launch.
fn one_instruction(tiling: &Tiling, checks: &mut Checks) {
    let Some([accumulators, most]) = tiling.too_many_at_once() else { return };
    let ([m, n, k], most_n) = (tiling.tile, most * 2 / LEAST_COLUMNS * LEAST_COLUMNS);
    checks.push(
        Code::Registers,
        format!("sm90a: BN = {n}: {accumulators} accumulators of one instruction, {} threads", tiling.threads()),
        format!("at most {most}, BN up to {most_n}"),
        Tiling::AT_ONCE,
        format!("tile={m}x{most_n}x{k}"),
    );
}

/// Shared memory of all stages, with what would fit.
fn shared_memory(isa: Isa, tiling: &Tiling, own: &Targets, checks: &mut Checks) {
    let Some(arch) = own.archs().iter().copied().min_by_key(|a| a.smem_per_block()) else { return };
    let Ok(smem) = tiling.smem_bytes() else { return };
    let limit = arch.smem_per_block();
    if smem <= limit {
        return;
    }
    let stage: u64 = tiling.operands().map(|tensor| tensor.stage_bytes().0).sum();
    let stages = tiling.stages();
    let others = smem.0.saturating_sub(stage * stages as u64);
    let fitting = limit.0.saturating_sub(others) / stage.max(1);
    let key = if isa == Isa::Sm80 { "sm80_stages" } else { "stages" };
    let help = if fitting >= 2 { format!("{key}={fitting}, or a smaller tile") } else { "a smaller tile".into() };
    checks.push(
        Code::SharedMemory,
        format!("{smem} of shared memory for {stages} stages"),
        format!("at most {limit} on {arch}"),
        "a block that asks for more cannot be launched (CUDA C++ Programming Guide, \"Compute Capabilities\")",
        help,
    );
}

fn part_plan(part: Part, name: &str, targets: Targets) -> Plan {
    let name = format!("{name}_{}", part.isa.suffix());
    let shared =
        part.tiling.shared().unwrap_or_else(|e| unreachable!("the proofs accept what cannot be analyzed: {e}"));
    let entry = Entry {
        dynamic_smem: part.smem,
        // Those that setmaxnreg adds are not asked for at the launch.
        registers: Some(part.registers.min(part.tiling.launched_registers().into())),
        cluster: part.tiling.cluster_size(),
        // Without it ptxas (13.0) does not know the registers at entry, and ignores setmaxnreg; or spills, so that there is room for more.
        min_blocks: Some(1),
        // Older GPUs have no such launch.
        overlaps: part.isa == Isa::Sm90a,
        ..Entry::new(&name, part.tiling.threads(), Bytes(0))
    };
    // A tile that is turned lies there.
    let turned = part.pack.smem_bytes().unwrap_or_else(|e| unreachable!("the proofs accept what has no size: {e}"));
    let pack = Entry { overlaps: entry.overlaps, ..Entry::new(&format!("{name}_pack"), part.pack.threads(), turned) };
    let direct = part.direct.as_ref().map(|_| Entry { name: format!("{name}_direct"), ..entry.clone() });
    let reduce = part.stream_k.as_ref().map(|[_, add_up]| Entry {
        overlaps: entry.overlaps,
        ..Entry::new(&format!("{name}_reduce"), add_up.threads(), Bytes(0))
    });
    let scalars = part.recipe.epilogue.scalars().to_vec();
    let rule =
        rule::rule(&part).unwrap_or_else(|| unreachable!("a copy by TMA without a box is no tiling that was proved"));
    let operands = part.arguments();
    let draft = Draft {
        problem: Some(part.product.problem_shape(&operands)),
        call: product::call(Gemm::RUST_TYPE, &operands, &scalars),
        operands,
        params: launch::params(&part),
        rule,
        entries: [pack, entry].into_iter().chain(direct).chain(reduce).collect(),
        scalars,
        ..Draft::of(&part.recipe, &name, &targets)
    };
    Plan {
        shared: shared.into_iter().filter(|tensor| !tensor.accesses.is_empty()).collect(),
        facts: facts(&part),
        // SAFETY: the proofs of its tilings show that copies stay inside or are guarded; the rule refuses what overflows.
        ..unsafe { draft.plan(part) }
    }
}

fn facts(part: &Part) -> Vec<Fact> {
    let [along_m, along_n, splits] = part.tiling.cluster;
    let each = "a accumulator, b C, c.. auxiliary; each operation rounded by itself";
    let mut facts = vec![Fact::new("epilogue", &part.recipe.epilogue, each)];
    facts.extend(Fact::of_tiling(&part.tiling));
    facts.push(part.budget.fact());
    if part.isa == Isa::Sm90a {
        let Arrivals { full, bytes, empty, turn, parts } = part.arrivals();
        let also = |name, count| if count > 0 { format!(", {name} {count}") } else { String::new() };
        let value = format!("full {full} and {bytes}, empty {empty}{}{}", also("turn", turn), also("parts", parts));
        facts.push(Fact::new(
            "arrivals",
            value,
            "at barriers: the thread that issues TMA; the warps that read a stage, in all CTAs that share it",
        ));
    }
    facts.extend([&part.pack].into_iter().chain(part.stream_k.iter().flatten()).flat_map(Fact::copies));
    let along_k = if splits > 1 { format!(" x {splits} along K") } else { String::new() };
    let groups = order::GROUPS.map(|group| group.to_string()).join(" or ");
    let groups = part.own.group.map_or(groups, |group| group.to_string());
    let [along, next] = part.own.along().modes().map(str::to_uppercase);
    let shares =
        if part.tiling.streams_k() { "; the last tiles, which do not fill a wave, are split along K" } else { "" };
    facts.push(Fact::new(
        "grid",
        format!("at most {} CTAs, in clusters of {along_m} x {along_n}{along_k}", part.own.ctas),
        &format!("clusters take tiles in turn, {groups} of them along {along}, then along {next}{shares}"),
    ));
    facts
}
