//! The decisions for a recipe.

use super::{Attention, Isa, Own, launch, tilings};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::expr::Checked;
use crate::plan::checks::{self, Checks};
use crate::plan::{Draft, Entry, Fact, KernelPlan, Plan, Reference};
use crate::reference::{Softmax, Visible};
use crate::tiling::{TileMma, Tiling};
use crate::units::Bytes;

/// The suffix of the entry that combines what splits have left.
const COMBINE: &str = "combine";

/// The longest rows of Q and of V.
const LONGEST: u32 = 256;

/// The decisions for one text.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: Attention,
    pub(super) own: Own,
    pub(super) tiling: Tiling,
    /// Of the entry that combines splits.
    pub(super) combine: Option<Tiling>,
    pub(super) smem: Bytes,
    registers: u64,
}

/// A text's decisions, and what is right.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) is: Decision,
    /// The function of scores, with an input for each place.
    pub(super) score: Checked,
    softmax: Softmax,
}

pub(super) fn plan(recipe: &Attention, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let score = recipe.checked_score(&mut checks);
    let mut all = Vec::new();
    let fits = refuse(recipe, &mut checks);
    for (isa, targets) in recipe.texts(targets) {
        let own = recipe.own(isa);
        if refuse_own(recipe, &own, &mut checks) && fits {
            all.extend(proved(recipe, own, &targets, &mut checks).map(|is| (is, targets)));
        }
    }
    let (all, score) = checks.finish(Some(all).zip(score))?;
    let softmax = Softmax {
        visible: match recipe.mask {
            super::Mask::Full => Visible::All,
            super::Mask::Causal => Visible::UpToOwn,
            super::Mask::Window => Visible::Window,
        },
        weights: recipe.dtype,
        // Each step rounds: the bound is that of the text with the most.
        step: all.iter().map(|(is, _)| is.tiling.tile[2]).min().unwrap_or(1),
        packed: recipe.varlen,
        paged: recipe.paged,
        lse: recipe.lse,
        score: recipe.is_scored().then(|| score.clone()),
        sinks: recipe.sinks,
        scales: recipe.is_narrow(),
    };
    let texts = all
        .into_iter()
        .map(|(is, targets)| text(Text { is, score: score.clone(), softmax: softmax.clone() }, name, &targets));
    let texts = texts.collect();
    Ok(Plan::of_texts(name, texts)?)
}

fn text(text: Text, name: &str, targets: &Targets) -> Plan {
    let Decision { recipe, own, tiling, combine, smem, registers } = &text.is;
    let name = format!("{name}_{}", own.isa.suffix());
    let shared = tiling.shared().unwrap_or_else(|e| unreachable!("the proofs accept what cannot be analyzed: {e}"));
    let entry = Entry {
        dynamic_smem: *smem,
        // Those that setmaxnreg adds are not asked for at the launch.
        registers: Some((*registers).min(tiling.launched_registers().into())),
        min_blocks: Some(1),
        ..Entry::new(&name, tiling.threads(), recipe.offsets(own))
    };
    let facts = Fact::of_tiling(tiling);
    let combine = combine.as_ref();
    let combine = combine.map(|combine| {
        // Of each warp what it has of a row, its maximum and its sum.
        // nvcc counts whole 128 bytes, to which the other entry's dynamic shared memory is aligned.
        let shared = Bytes(4 * tilings::WARPS as u64 * (combine.tile[1] as u64 + 8));
        Entry::new(&format!("{name}_{COMBINE}"), combine.threads(), shared)
    });
    let problem = launch::problem(recipe);
    let operands = launch::operands(recipe);
    let params = launch::params(&text.is, &operands, &problem);
    let draft = Draft {
        rule: launch::rule(&text.is, &params),
        params,
        operands,
        entries: core::iter::once(entry).chain(combine).collect(),
        scalars: recipe.scalars(),
        problem: Some(problem),
        ..Draft::of(recipe, &name, targets)
    };
    // SAFETY: the proofs of its tiling show that copies stay inside or are guarded, and that the tiles of CTAs are apart; the rule
    // refuses rows that are not aligned, heads that do not fit together, and what overflows. Starts, lengths and numbers of pages, which
    // the device reads, are clamped to what there is.
    let plan = unsafe { draft.of_tensors().plan(text) };
    let accessed = shared.into_iter().filter(|tensor| !tensor.accesses.is_empty());
    plan.with_facts(facts).with_shared(accessed.collect())
}

/// The decisions for a text whose tiling is proved.
fn proved(recipe: &Attention, own: Own, targets: &Targets, checks: &mut Checks) -> Option<Decision> {
    let (tiling, [key, help]) = match own.isa {
        Isa::Sm80 => (tilings::sm80(recipe, &own), ["sm80_", "sm80_tile=64x32 sm80_warps=4"]),
        Isa::Sm90a => (tilings::sm90a(recipe, &own), ["", "tile=64x32"]),
    };
    let tiling = checks.sound("rows and threads are layouts", tiling)?;
    checks::instructions(checks, &tiling, targets, "no architecture before sm_80");
    checks::thread_count(checks, tiling.threads().into(), help);
    let combine = recipe.splits(own.isa).then(|| tilings::combine(recipe)).transpose();
    let combine = checks.sound("rows of O and lanes are layouts", combine)?;
    if !checks::proofs(checks, &tiling, help) || !combine.iter().all(|combine| checks::proofs(checks, combine, help)) {
        return None;
    }
    let held = match own.isa {
        Isa::Sm80 => held(&tiling, recipe, &own),
        Isa::Sm90a => checks.sound("tiles have registers", tiling.registers())?,
    };
    let (need, limit) = checks::register_need(Bytes(4 * (held + addresses(recipe, &own))), tiling.threads());
    let limit = tiling.roles[0].registers.map_or(limit, u64::from);
    let found = format!("about {need} registers, {} threads", tiling.threads());
    let because =
        "scores and outputs that do not fit in registers are spilled to local memory, which is as slow as DRAM";
    if checks.require(need <= limit, Code::Registers, found, &format!("at most {limit}"), because, help)
        && let Some([found, most]) = tiling.too_many_at_once()
    {
        let found = format!("{found} accumulators of one instruction, {} threads", tiling.threads());
        checks.push(Code::Registers, found, format!("at most {most}"), Tiling::AT_ONCE, help.to_owned());
    }
    let smem = checks.sound("tensors have a size", tiling.smem_bytes())?;
    let arch = targets.archs().iter().copied().min_by_key(|arch| arch.smem_per_block())?;
    let limit = arch.smem_per_block();
    let because =
        "a block that asks for more cannot be launched (CUDA C++ Programming Guide, \"Compute Capabilities\")";
    let all = Bytes(smem.0 + recipe.offsets(&own).0);
    let found = format!("{all} of shared memory for {} stages", own.stages);
    let help = format!("{key}stages=1, or a smaller {key}tile");
    checks.require(all <= limit, Code::SharedMemory, found, &format!("at most {limit} on {arch}"), because, &help);
    Some(Decision { recipe: recipe.clone(), own, tiling, combine, smem, registers: need })
}

/// Registers of a thread for outputs, and beside them for scores with the fragments of two k-steps, or for weights with those of V.
/// Scores become weights one pair after the other. nvcc 13.0 fetches a k-step ahead: with room for one it spilled 20 bytes at 248. It fetches
/// at most 64 registers of V. Where the function of scores reads elements of keys, it fetches those too, and 256 columns spilled 32 bytes.
/// Keys of 8 bits become 16 while the next ones are fetched, which lie beside them: without their registers 80 bytes were spilled. Elements of
/// keys that do not lie side by side have places: four registers for each column of a thread. Without them 8 to 96 bytes were spilled.
fn held(tiling: &Tiling, recipe: &Attention, own: &Own) -> u64 {
    let threads = u64::from(tiling.threads());
    let of = |mma: &TileMma| {
        let [m, n, _] = mma.tile.map(i64::unsigned_abs);
        // 16 elements of a row of each factor, two in a register, among the lanes of a warp.
        (m * n / threads, [m * 32 / threads * 16 / 64, n * 16 / 64])
    };
    let [scores, output] = &tiling.mmas[..] else { return 0 };
    let ((scores, [q, k]), (output, [_, v])) = (of(scores), of(output));
    let fetched = if recipe.reads_keys() { 2 * v } else { (2 * v).min(64) };
    let bytes = if recipe.is_narrow() { k } else { 0 };
    let places = recipe.strided_keys() as u64 * own.tile[1].unsigned_abs();
    // Addresses in the stage whose turn it is: a tile of 128x48 has 255 registers with one stage, and spilled 36 bytes with more.
    let staged = if own.stages > 1 { 8 } else { 0 };
    output + bytes + places + staged + (scores + 2 * (q + k)).max(scores / 2 + fetched)
}

/// Registers of a thread for addresses of auxiliary elements: two for each tensor and row.
fn addresses(recipe: &Attention, own: &Own) -> u64 {
    2 * recipe.aux.len() as u64 * (own.tile[0] / (8 * own.warps)).unsigned_abs()
}

/// Settings that are none; whether the tiling can be looked at.
fn refuse(recipe: &Attention, checks: &mut Checks) -> bool {
    let mut fits = checks::halves(checks, recipe.dtype, "tensor cores multiply factors of 16 bits here");
    let because = "K and V become factors of 16 bits without rounding";
    fits &= checks::kept(checks, [recipe.dtype, recipe.dtype_kv()], because);
    let vector = recipe.vector_kv().max(8) as u32;
    for (key, elements) in [("head", recipe.head), ("value", recipe.value())] {
        let because = "rows are copied in vectors of 16 bytes, and a row of O stays in registers";
        fits &= checks::row(checks, key, elements, [vector, LONGEST], because);
    }
    let [_, step] = recipe.own(Isa::Sm80).tile;
    let split = recipe.split.map(i64::from);
    let (found, because) = (format!("split={}, {step} keys a step", split.unwrap_or(0)), "a CTA has whole steps");
    let whole = !recipe.paged || split.is_none_or(|split| split > 0 && step > 0 && split % step == 0);
    checks.require(whole, Code::TileDivides, found, "a multiple of the keys of a step", because, "split=512");
    let (found, because) = (format!("page={}", recipe.page.unwrap_or(0)), "keys lie in pages where paged is true");
    let in_pages = recipe.page.is_none_or(|page| recipe.paged && page > 0);
    checks.require(in_pages, Code::TileSize, found, "1 or more, with paged=true", because, "paged=true page=64");
    let (found, because) = ("ctas=0".to_owned(), "each computes tiles");
    checks.require(recipe.ctas > 0, Code::ThreadCount, found, "1 or more", because, "ctas=132") && fits && in_pages
}

/// Settings of a text that are none; whether its tiling can be looked at.
fn refuse_own(recipe: &Attention, own: &Own, checks: &mut Checks) -> bool {
    let Own { isa, tile: [m, n], stages, warps, .. } = *own;
    let (whole, required, because, [tile, ring]) = match isa {
        Isa::Sm80 => (
            (1..=32).contains(&warps) && m > 0 && m % (16 * warps) == 0 && m <= 1024,
            "a multiple of 16 queries a warp",
            "a warp multiplies 16 queries at once, and has the same ones for all keys",
            ["sm80_tile=128x64", "sm80_stages=2"],
        ),
        Isa::Sm90a => (
            [64, 128, 192].contains(&m),
            "64, 128 or 192 queries",
            "a warpgroup multiplies 64 queries at once, and three have the registers",
            ["tile=128x64", "stages=2"],
        ),
    };
    let whole =
        checks.require(whole, Code::TileDivides, format!("{m} queries, {warps} warps"), required, because, tile);
    let most = if isa == Isa::Sm80 { 1024 } else { 256 };
    let steps = n > 0 && n % 16 == 0 && n <= most;
    let because = "weights are multiplied with V 16 keys at once";
    let required = format!("a multiple of 16, up to {most}");
    checks.require(steps, Code::TileDivides, format!("{n} keys"), &required, because, tile);
    let staged = (1..=8).contains(&stages);
    let because = "K and V have a place for each stage";
    checks.require(staged, Code::Stages, format!("{stages} stages"), "1 to 8", because, ring);
    let boxes = isa == Isa::Sm80 || recipe.page.is_none() || recipe.box_of(n).is_some();
    let found = format!("page={}, {n} keys a step", recipe.page.unwrap_or(0));
    let required = "a multiple of 8 that divides the keys of a step, or that these divide";
    checks.require(boxes, Code::TileDivides, found, required, "TMA copies keys of one page at once", "page=64");
    whole && steps && staged && boxes
}

impl KernelPlan for Text {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(&self.is, &self.score, plan)
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.softmax)
    }

    fn spills_denied(&self) -> bool {
        true
    }
}
