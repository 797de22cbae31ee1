//! The decisions for a recipe.

use super::schedule::{Hold, Schedule, schedule};
use super::tensors::{self, Tensor};
use super::{Rows, columns, facts, launch, tilings};
use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::expr::MAX_OUTPUTS;
use crate::expr::rows::{Level, Passes};
use crate::model::{Prediction, Traffic};
use crate::plan::checks::{self, Checks};
use crate::plan::{Draft, Entry, KernelPlan, Numbers, Operand, Plan, ProblemShape, Reference, interned};
use crate::recipe::{Names, Recipe};
use crate::reference::RowProgram;
use crate::tiling::Tiling;
use crate::units::Bytes;
use crate::view::{Access, ViewRef};

/// The suffix of the entry for rows that are not whole vectors.
pub(super) const ELEMENTS: &str = "elements";

/// The decisions.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) recipe: Rows,
    pub(super) passes: Passes,
    /// What the outputs must be.
    reference: RowProgram,
    /// Inputs, then outputs.
    pub(super) tensors: Vec<Tensor>,
    /// The parameters that hold the run-time scalars.
    pub(super) scalars: Vec<String>,
    pub(super) problem: ProblemShape,
    pub(super) schedule: Schedule,
    /// Which thread has what: in vectors, and element by element.
    pub(super) tilings: [Tiling; 2],
    /// The same of the entry that joins results of columns.
    pub(super) columns: Option<Tiling>,
}

/// The extent of the rows that an index names.
pub(super) const SOURCE: &str = "ROWS";

impl Decision {
    /// An output, by number.
    pub(super) fn output(&self, number: usize) -> &Tensor {
        &self.tensors[self.tensors.len() - self.recipe.outputs.len() + number]
    }
}

/// Names of the outputs: that of the one there is, or `Y0`, `Y1`, ..
fn output_names(recipe: &Rows) -> Vec<&'static str> {
    let stem = Names::output(&recipe.function, "Y");
    match recipe.function.outputs() {
        1 => vec![stem],
        several => (0..several.max(MAX_OUTPUTS)).map(|i| interned(format!("{stem}{i}"))).take(several).collect(),
    }
}

fn decide(recipe: &Rows, targets: &Targets, checks: &mut Checks) -> Option<Decision> {
    let outputs = output_names(recipe);
    let others: Vec<&str> = outputs.iter().copied().chain(recipe.gather.as_ref().map(|_| tensors::INDEX)).collect();
    let names = Names::new(&others, &[], recipe.function.input_names(), &recipe.function);
    tensors::fit(recipe, &names, &outputs, checks).then_some(())?;
    let scheduled = |hold, keep, checks: &mut Checks| {
        let passes = tensors::passes(recipe, [hold == Hold::Registers, keep], &outputs, checks)?;
        let tensors = tensors::tensors(recipe, &names, &outputs, &passes);
        let schedule = schedule(recipe, hold, &tensors, &passes, targets, checks)?;
        Some((passes, tensors, schedule))
    };
    let tried = |hold, keep| scheduled(hold, keep, &mut Checks::new("", targets));
    let [kept, again] = [true, false].map(|keep| tried(Hold::Registers, keep));
    let of = |tried: &Option<(Passes, Vec<Tensor>, Schedule)>| tried.as_ref().map(|(.., schedule)| *schedule);
    let keep = Schedule::keeps(of(&kept).as_ref(), of(&again).as_ref());
    let held = of(if keep { &kept } else { &again });
    let is_good =
        |held: &Schedule| recipe.cluster.is_some() || held.cut || held.cluster == 1 && keep && held.resident() > 1;
    // CTAs that share a row wait for each other, and what is computed again had better share a traversal: shared memory holds such rows
    // better, and memory has all others. What is read once waits nowhere.
    let once = again.iter().chain(&kept).any(|(passes, ..)| passes.traversals().count() == 1);
    let better = if once { Hold::Memory } else { Hold::Shared };
    let others = [better, Hold::Memory].into_iter().filter(|hold| tried(*hold, false).is_some());
    let other = || others.clone().find(|hold| held.is_none() || *hold == better);
    let chosen = match &held {
        Some(held) if is_good(held) => Hold::Registers,
        _ => other().unwrap_or(Hold::Registers),
    };
    let hold = recipe.hold.unwrap_or(chosen);
    let (passes, tensors, schedule) = scheduled(hold, keep && hold == Hold::Registers, checks)?;
    let mut tiling = |whole| {
        let tiling = tilings::tiling(&tensors, &passes, &schedule, whole);
        let tiling = checks.sound("threads of rows are a layout", tiling)?;
        checks::proofs(checks, &tiling, "threads=auto chunks=auto").then_some(tiling)
    };
    let tilings = [tiling(true)?, tiling(false)?];
    let columns = match passes.columns().next() {
        Some(_) => {
            let tiling = checks.sound("parts of columns are a layout", columns::tiling(&passes))?;
            checks::proofs(checks, &tiling, "ctas=auto").then_some(Some(tiling))?
        }
        None => None,
    };
    let problem = problem(&tensors, recipe.columns);
    let reference = RowProgram::new(passes.clone()).added_in(schedule.threads.unsigned_abs(), schedule.additions());
    let [chains, after] = columns::additions(&schedule);
    let reference = reference.columns_added_in(chains, after);
    let gathered = tensors.iter().position(|tensor| tensor.gathered);
    let reference = gathered.into_iter().fold(reference, RowProgram::gathering);
    Some(Decision {
        recipe: recipe.clone(),
        passes,
        reference,
        tensors,
        scalars: names.scalars,
        problem,
        schedule,
        tilings,
        columns,
    })
}

/// Elements (M,N), rows (M), groups (M,N/128), columns (N).
fn problem(tensors: &[Tensor], columns: u32) -> ProblemShape {
    let modes = tensors.iter().map(|t| match t.level {
        _ if t.gathered => vec![2, 1],
        Level::Column => vec![1],
        _ if t.spec.strides.len() == 1 => vec![0],
        _ => vec![0, 1],
    });
    let source = tensors.iter().position(|t| t.name == tensors::INDEX);
    let extents = ["M", "N"].into_iter().chain(source.map(|_| SOURCE));
    let shape = ProblemShape::new(extents, modes).agreeing(
        "a row of each tensor belongs to one row of all others",
        "pass views that fit together; a broadcast mode has stride 0, not extent 1",
    );
    let example = [67, i64::from(columns).min(511), 33];
    let shape = match source {
        Some(index) => shape.with_example(&example).with_numbers(index, Numbers::Coordinates, 2),
        None => shape.with_example(&example[..2]),
    };
    tensors.iter().enumerate().fold(shape, |shape, (operand, tensor)| match tensor.level {
        Level::Group(size) if tensor.output => shape.with_groups(operand, 1, size.into()),
        _ => shape,
    })
}

/// The plan of `asked`, which is `recipe` or a name for it: `Sum` is one.
///
/// # Errors
/// As [`Recipe::plan_as`].
pub fn plan_as<R: Recipe>(recipe: &Rows, asked: &R, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{asked:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let decision = decide(recipe, targets, &mut checks);
    let decision = checks.finish(decision)?;
    let operands = decision.tensors.iter().map(|tensor| Operand {
        // A thread loads its elements of all inputs before it stores the same coordinates.
        in_place: !tensor.output && tensor.level == Level::Element && !tensor.gathered,
        param: tensor.param.clone(),
        ..Operand::new(
            tensor.name,
            tensor.spec.dtype,
            if tensor.output { Access::Write } else { Access::Read },
            &tensor.spec.strides,
        )
    });
    let entry = |name: &str, tiling: &Tiling| {
        let dynamic_smem = Bytes(decision.schedule.staged(&decision.tensors).unsigned_abs());
        let smem = Bytes(tiling.smem_bytes().unwrap_or(Bytes(u64::MAX)).0.saturating_sub(dynamic_smem.0));
        let entry = Entry::new(name, tiling.threads(), smem).with_registers(decision.schedule.registers.unsigned_abs());
        Entry { cluster: decision.schedule.cluster as u32, dynamic_smem, ..entry }
    };
    let [vectors, elements] = &decision.tilings;
    let join = decision.columns.as_ref().map(|tiling| {
        let smem = tiling.smem_bytes().unwrap_or(Bytes(u64::MAX));
        Entry::new(&format!("{name}_{}", columns::JOIN), tiling.threads(), smem)
    });
    // Threads that take single elements need more registers.
    let min_blocks = decision.schedule.at_once(decision.schedule.staged(&decision.tensors));
    let vectors = Entry { min_blocks, ..entry(name, vectors) };
    let entries = [vectors, entry(&format!("{name}_{ELEMENTS}"), elements)];
    let draft = Draft {
        operands: operands.collect(),
        params: launch::params(&decision),
        rule: launch::rule(&decision),
        entries: entries.into_iter().chain(join).collect(),
        scalars: recipe.function.scalars().to_vec(),
        problem: Some(decision.problem.clone()),
        ..Draft::of(asked, name, targets)
    };
    let facts = facts::facts(&decision);
    // SAFETY: the proofs show that each element of a row belongs to one thread. The text skips rows and columns past the end. The rule
    // refuses rows that are wider than what the threads hold, and launches vectors only where all are aligned and whole.
    Ok(unsafe { draft.of_tensors().plan(decision) }.with_facts(facts))
}

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.reference)
    }

    fn predict(&self, views: &[ViewRef]) -> Option<Prediction> {
        let operands = views.iter().zip(&self.tensors);
        let traffic = operands.map(|(view, tensor)| Traffic::along_rows(tensor.name, view)).collect();
        let (tensor, mode) = self.problem.first_with(0)?;
        let rows = views.get(tensor)?.layout.shape().get(mode)?.unsigned_abs();
        let columns = views.get(tensor)?.layout.shape().get(mode + 1).map_or(1, |columns| columns.unsigned_abs());
        let pieces = if self.schedule.cut { columns.div_ceil(self.schedule.columns().unsigned_abs()) } else { 1 };
        let blocks = rows.div_ceil(self.schedule.rows.unsigned_abs()) * self.schedule.cluster.unsigned_abs() * pieces;
        let most = self.schedule.ctas.unsigned_abs();
        let blocks = if most > 0 { blocks.min(most) } else { blocks };
        Some(Prediction { traffic, blocks, threads: self.schedule.cta() as u32, work: None })
    }
}
