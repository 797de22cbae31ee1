//! The text.

mod entries;
mod matrix;
mod steps;
mod words;

use askama::Template;

use entries::entries;
use matrix::{Kind, Matrix, matrix};
use steps::{Meeting, Reduced, StepText, reduced, step};
use words::Words;

use super::decide::{Decision, ELEMENTS};
use super::facts::grid;
use super::schedule::Hold;
use super::tilings::{along_rows, has_groups};
use crate::emit::{self, Alias, Assertion};
use crate::expr::rows::{Along, Level, Origin};
use crate::expr::{Compute, Helpers};
use crate::plan::Plan;
use crate::tiling::Tiling;

#[derive(Template)]
#[template(path = "rows/kernel.cuh")]
struct Text<'a> {
    banner: String,
    plan: &'a Plan,
    d: &'a Decision,
    /// Those that `cute/tensor.hpp` does not include.
    headers: &'static [&'static str],
    number: &'static str,
    helpers: String,
    walks: [Walk; 2],
    matrices: Vec<Matrix>,
    /// Reductions whose parts warps tell each other.
    exchanged: Vec<Reduced>,
    /// The columns of a thread, as this copy has them.
    columns: String,
    parts: Vec<StepText>,
    rows: Vec<Written>,
    groups: Vec<Written>,
    entries: String,
    elements: &'static str,
    grid: String,
}

/// The copies of an entry.
pub(crate) struct Walk {
    pub(crate) name: &'static str,
    pub(crate) how: &'static str,
    pub(crate) whole: bool,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) assertions: Vec<Assertion>,
}

impl Walk {
    /// Those of a tiling.
    pub(crate) fn of(name: &'static str, how: &'static str, whole: bool, tiling: &Tiling) -> Self {
        Self { name, how, whole, aliases: tiling.aliases(), assertions: tiling.assertions() }
    }
}

/// An output of rows or groups.
struct Written {
    name: &'static str,
    value: String,
    /// Its group, and how many elements of a vector each group has.
    group: u32,
    every: i64,
}

impl Text<'_> {
    fn meetings(&self) -> impl Iterator<Item = &StepText> {
        self.parts.iter().filter(|step| step.meets())
    }

    fn rounds_pairs(&self) -> bool {
        self.parts.iter().any(|step| step.rounds_pairs)
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Matrix> {
        self.matrices.iter().filter(move |t| t.kind == kind)
    }

    /// Of what only traversals, or groups, use: not every program has one.
    fn perhaps_unused(&self) -> &'static str {
        if self.parts.iter().any(|step| step.traverses) { "" } else { "[[maybe_unused]] " }
    }

    /// Those that are a tensor of all threads, from the begin on.
    fn used(&self) -> impl Iterator<Item = &Matrix> {
        let elsewhere = [Kind::Unused, Kind::Queued, Kind::Resident];
        self.matrices.iter().filter(move |t| t.row.is_none() && !elsewhere.contains(&t.kind))
    }

    fn gathered(&self) -> impl Iterator<Item = (&Matrix, &String)> {
        self.matrices.iter().filter(|t| t.kind != Kind::Unused).filter_map(|t| Some((t, t.row.as_ref()?)))
    }

    /// Those whose elements threads have in registers.
    fn moved(&self) -> impl Iterator<Item = &Matrix> {
        let of_elements = [Kind::Held, Kind::Late, Kind::Again, Kind::Staged, Kind::Store];
        self.matrices.iter().filter(move |t| of_elements.contains(&t.kind))
    }
}

/// The outputs of rows, and those of groups.
fn written(words: &mut Words<'_>) -> [Vec<Written>; 2] {
    let (mut rows, mut groups) = (Vec::new(), Vec::new());
    for (number, output) in words.decision.passes.outputs().iter().enumerate() {
        let Origin::Value(value) = output.from else { continue };
        let value = words.value(value);
        let value = words.stored(number, &value);
        let name = words.decision.output(number).name;
        match output.level {
            Level::Group(group) => {
                let every = words.decision.schedule.vec.min(group.into());
                groups.push(Written { name, value, group, every });
            }
            _ => rows.push(Written { name, value, group: 0, every: 0 }),
        }
    }
    [rows, groups]
}

/// The text of the `.cuh` file.
pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    let compute: Compute = decision.passes.compute();
    let mut words = Words { decision, helpers: Helpers::new(compute) };
    let mut parts: Vec<StepText> =
        decision.passes.steps().iter().enumerate().map(|(number, of)| step(&mut words, number, of)).collect();
    parts.iter_mut().filter(|step| step.meets()).enumerate().for_each(|(met, step)| step.met = met);
    let entries = entries(&mut words, plan);
    let [rows, groups] = written(&mut words);
    let [vectors, elements] = &decision.tilings;
    let several = decision.schedule.parts() > 1;
    let exchanged = along_rows(&decision.passes).filter(|_| several);
    let columns = vectors.copies.first().map_or_else(String::new, |copy| copy.name.to_owned());
    emit::text(&Text {
        banner: emit::banner(plan, "rows/kernel.cuh"),
        plan,
        d: decision,
        headers: if decision.schedule.cluster > 1 { &["cutlass/arch/barrier.h"] } else { &[] },
        number: compute.cxx(),
        helpers: words.helpers.to_string(),
        walks: [
            Walk::of("Vectors", "in vectors", true, vectors),
            Walk::of("Elements", "one by one", !has_groups(&decision.passes), elements),
        ],
        matrices: decision.tensors.iter().map(|tensor| matrix(decision, tensor)).collect(),
        exchanged: exchanged.map(|(value, of)| reduced(&words, of, Along::Row, value)).collect(),
        columns,
        parts,
        rows,
        groups,
        entries,
        elements: ELEMENTS,
        grid: grid(&decision.schedule),
    })
}
