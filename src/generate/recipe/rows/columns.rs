//! Outputs that are reduced over rows: each CTA reduces every n-th tile of rows, and a further entry joins their results.

use super::decide::Decision;
use super::schedule::Schedule;
use super::tensors::Tensor;
use super::{Rows, tilings};
use crate::diagnostic::Code;
use crate::expr::rows::Passes;
use crate::layout::LayoutError;
use crate::model::H200;
use crate::model::banks::WARP;
use crate::plan::checks::Checks;
use crate::plan::{Field, Given, Int, IntOp, ParamType, Rule, WORKSPACE};
use crate::tiling::{
    Completion, CopyOp, Engine, Global, Guard, Order, Place, Reduced, Scope, SmemTensor, TileCopy, TileReduce, Tiling,
    flat,
};
use crate::units::Bytes;

/// The suffix of the entry that joins the results of CTAs.
pub(super) const JOIN: &str = "columns";
/// Columns of a CTA there, and parts that it reads at once.
const TILE: i64 = WARP as i64;
/// Threads of a multiprocessor. With more, each has few registers for its columns.
const RESIDENT: i64 = 1024;
/// Bytes of rows on their way that keep a multiprocessor's share of memory busy. With up to five times as many, backward norms of 8192
/// columns had 0.01 to 0.03 of a copy less on an H200.
const IN_FLIGHT: i64 = 32 << 10;
/// Stages, at most.
const MOST_STAGES: i64 = 16;

/// CTAs of a multiprocessor. Where threads never wait for each other fewer do, and leave fewer results.
pub(super) fn resident(schedule: &Schedule) -> i64 {
    let threads = if schedule.cut { RESIDENT / 2 } else { RESIDENT };
    schedule.resident().min(threads / schedule.cta()).max(1)
}

/// With the CTAs that share the rows, where an output is of columns. `auto` fills the multiprocessors of an H200 once: with more CTAs,
/// more results are written and read again.
pub(super) fn shared(recipe: &Rows, passes: &Passes, schedule: Schedule, checks: &mut Checks) -> Option<Schedule> {
    let any = passes.columns().next().is_some();
    let with = |ctas| Schedule { ctas, ..schedule };
    let chosen = if any { H200.sms as i64 * resident(&schedule) } else { 0 };
    let Some(set) = recipe.ctas.map(i64::from) else { return Some(with(chosen)) };
    let (found, help) = (format!("ctas={set}"), "ctas=auto");
    let because = "CTAs share the rows where columns are reduced; else each tile of rows has a CTA";
    let wanted = checks.require(any, Code::Variant, found.clone(), "an output of columns", because, help);
    let because = "each CTA leaves a result for each column, which a second kernel reads";
    let holds = (1..=65_535).contains(&set);
    (checks.require(holds, Code::ThreadCount, found, "1 to 65535", because, help) && wanted).then(|| with(set))
}

/// With the stages of its rows. `auto` has as many bytes on their way as keep memory busy, where there is shared memory for two stages.
pub(super) fn queued(
    recipe: &Rows,
    tensors: &[Tensor],
    most: Bytes,
    schedule: Schedule,
    checks: &mut Checks,
) -> Option<Schedule> {
    let gathers = recipe.gather.is_some();
    let with = |stages| Schedule { stages, ..schedule };
    let each = with(2).staged(tensors) / 2;
    if let Some(set) = recipe.stages.map(i64::from) {
        let found = format!("stages={set}");
        let (wanted, holds) = (schedule.ctas > 0 && each > 0, (1..=MOST_STAGES).contains(&set));
        let because = "a CTA has a next tile of rows where CTAs share the rows of columns";
        let wanted =
            checks.require(wanted, Code::Variant, found.clone(), "an output of columns", because, "stages=auto");
        let because = "each stage is a place in shared memory";
        let required = format!("1 to {MOST_STAGES}");
        let holds = checks.require(holds, Code::Variant, found, &required, because, "stages=auto");
        let because = "the next row is known when its index is";
        let found = format!("stages={set}, gather");
        let alone = set == 1 || !gathers;
        let alone = checks.require(alone, Code::Variant, found, "stages=1", because, "stages=auto");
        return (wanted && holds && alone).then(|| with(set));
    }
    if schedule.ctas == 0 || each == 0 || gathers {
        return Some(schedule);
    }
    let (wanted, fit) = (1 + IN_FLIGHT / (resident(&schedule) * each), most.0 as i64 / each);
    Some(with(wanted.max(2).min(fit).clamp(1, MOST_STAGES)))
}

/// Chains of additions along a column, and additions behind them: those of a CTA, of a warp of the second entry, and of its lanes.
pub(super) fn additions(schedule: &Schedule) -> [u64; 2] {
    let parts = (schedule.ctas * schedule.rows).max(1).unsigned_abs();
    [parts, 1 + parts.div_ceil(TILE as u64) + u64::from(WARP.ilog2())]
}

/// The workspace, and how many parts it has.
pub(super) fn fields(passes: &Passes) -> impl Iterator<Item = Field> {
    let any = passes.columns().next().is_some();
    let doc = "results of parts of the rows, (PARTS,N) for each output of columns";
    let workspace = (WORKSPACE.to_owned(), ParamType::MutPtr, doc.to_owned(), Given::Follows);
    let parts = ("parts".to_owned(), ParamType::I32, "results for each column".to_owned(), Given::Follows);
    [workspace, parts].into_iter().filter(move |_| any)
}

/// The CTAs that share the tiles of rows of each piece of a row, and those pieces.
pub(super) fn shares(schedule: &Schedule, [m, n]: [Int; 2]) -> [Int; 2] {
    let pieces = if schedule.cut { n.ceil_div(schedule.columns()) } else { 1.into() };
    let most = Int::from(schedule.ctas) / pieces.clone().op(IntOp::Max, 1);
    [m.ceil_div(schedule.rows).op(IntOp::Min, most.op(IntOp::Max, 1)), pieces]
}

/// The parts, the workspace, and the grid of the second entry.
pub(super) fn join(decision: &Decision, rule: &mut Rule) {
    let (schedule, outputs) = (&decision.schedule, decision.passes.columns().count() as i64);
    if outputs == 0 {
        return;
    }
    let [m, n] = ["m", "n"].map(|name| rule.param(name));
    let [tiles, _] = shares(schedule, [m, n.clone()]);
    let parts = rule.steps.set("parts_of_rows", tiles * schedule.rows);
    rule.derive("parts", parts.clone());
    let bytes = decision.passes.compute().dtype().bytes().0 as i64;
    let something = Int::from(0).less(n.clone());
    rule.workspace = parts * n.clone() * (outputs * bytes);
    rule.grid(something, [n.ceil_div(TILE), outputs.into(), 1.into()]);
}

/// A CTA of the second entry: 32 parts of 32 columns at a time.
pub(super) fn tiling(passes: &Passes) -> Result<Tiling, LayoutError> {
    let dtype = passes.compute().dtype();
    let square = |rows, columns| flat([(TILE, rows), (TILE, columns)]);
    let load = TileCopy {
        name: "LoadPart",
        what: "load of parts",
        tile: [TILE, TILE],
        dtype,
        from: Place::Global(Global { align: dtype.bytes(), ..Global::matrix("Part") }),
        to: Place::Threads,
        engine: Engine::Threads {
            op: CopyOp::Universal(dtype.bytes()),
            threads: square(TILE, 1)?,
            values: flat([(1, 1), (1, 1)])?,
        },
        guard: Guard::Elements,
        completes: Completion::Program,
        split: None,
    };
    // A word more for each column, so that lanes meet in no bank.
    let of_warps = SmemTensor::plain(["Parts", "(COLUMNS,WARPS)"], dtype, square(TILE + 1, 1)?, dtype.bytes());
    let reduces = passes.columns().map(|(_, reduction)| TileReduce {
        what: "reduction of a column",
        of: Reduced::Copied("LoadPart"),
        mode: 0,
        op: tilings::op(reduction),
        over: vec![Scope::Warps("Parts")],
    });
    let order = Order::numbered(&[("n", TILE)], Some(("parts", TILE)));
    Ok(Tiling {
        reduces: reduces.collect(),
        smem: vec![of_warps],
        ..Tiling::of_copies([TILE; 2], TILE * TILE, vec![load], order)
    })
}
