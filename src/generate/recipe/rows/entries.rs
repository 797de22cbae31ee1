//! The functions of the entries.

use askama::Template;

use super::columns::JOIN;
use super::decide::{Decision, ELEMENTS};
use super::emit::{Matrix, matrix};
use super::sources::{Words, op};
use super::tilings::meetings;
use crate::emit::{self, Alias, Assertion};
use crate::plan::Plan;

#[derive(Template)]
#[template(path = "rows/entries.cuh")]
struct Tiles<'a> {
    plan: &'a Plan,
    row_ctas: &'static str,
    elements: &'static str,
}

#[derive(Template)]
#[template(path = "rows/columns.cuh")]
struct Columns<'a> {
    plan: &'a Plan,
    elements: &'static str,
    join: &'static str,
    threads: u32,
    /// Whether the warps of a row meet once for it. With more, a meeting lies between what a tile reads and what the next one overwrites.
    meets: bool,
    stages: i64,
    /// CTAs that have tiles of a row.
    row_ctas: &'static str,
    kept: &'static str,
    /// Inputs that are held for all rows.
    weights: Vec<Matrix>,
    outputs: Vec<Column>,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
}

/// An output of columns.
struct Column {
    of: Matrix,
    op: &'static str,
    /// The result in its own type.
    stored: String,
}

/// A CTA for each tile of rows, or CTAs that share them and what joins their results.
pub(super) fn entries(words: &mut Words<'_>, plan: &Plan) -> String {
    let decision: &Decision = words.decision;
    let row_ctas = decision.schedule.row_ctas();
    let Some(tiling) = &decision.columns else { return emit::text(&Tiles { plan, row_ctas, elements: ELEMENTS }) };
    let outputs = decision.passes.columns().map(|(output, reduction)| {
        let of = matrix(decision, decision.output(output));
        Column { of, op: op(reduction), stored: words.stored(output, "result") }
    });
    let all = decision.tensors.iter().map(|tensor| matrix(decision, tensor));
    let weights: Vec<Matrix> = all.filter(Matrix::is_resident).collect();
    emit::text(&Columns {
        plan,
        elements: ELEMENTS,
        join: JOIN,
        threads: tiling.threads(),
        meets: decision.schedule.parts() > 1 && meetings(&decision.passes) == 1,
        stages: decision.schedule.stages,
        row_ctas,
        kept: if weights.is_empty() { "" } else { ", and of rows that stand for all" },
        weights,
        outputs: outputs.collect(),
        aliases: tiling.aliases(),
        assertions: tiling.assertions(),
    })
}
