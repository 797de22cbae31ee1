//! The functions of the entries.

use askama::Template;

use super::super::columns::JOIN;
use super::super::decide::{Decision, ELEMENTS};
use super::super::tilings::meetings;
use super::matrix::{Matrix, matrix};
use super::words::{Words, op};
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
    /// Whether tiles of rows queue in shared memory.
    queues: bool,
    tiles: OwnTiles<'a>,
    /// CTAs that have tiles of a row.
    row_ctas: &'static str,
    kept: &'static str,
    /// Inputs that are held for all rows.
    weights: &'a [Matrix],
    outputs: Vec<Column>,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
}

/// How a CTA reduces its tiles of rows.
#[derive(Template)]
enum OwnTiles<'a> {
    /// Each is loaded in its turn.
    #[template(path = "rows/tiles.cuh")]
    InTurn,
    /// The next ones are on their way meanwhile.
    #[template(path = "rows/tiles_queued.cuh")]
    Queued { weights: &'a [Matrix] },
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
        queues: decision.schedule.stages > 1,
        tiles: match decision.schedule.stages {
            ..=1 => OwnTiles::InTurn,
            _ => OwnTiles::Queued { weights: &weights },
        },
        row_ctas,
        kept: if weights.is_empty() { "" } else { ", and of rows that stand for all" },
        weights: &weights,
        outputs: outputs.collect(),
        aliases: tiling.aliases(),
        assertions: tiling.assertions(),
    })
}
