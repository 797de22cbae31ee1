//! The text.

use askama::Template;

use super::decide::Decision;
use super::{Append, Pairs};
use crate::emit::{self, Alias, Assertion};
use crate::plan::Plan;

#[derive(Template)]
#[template(path = "append/kernel.cuh")]
struct Text<'a> {
    banner: String,
    plan: &'a Plan,
    recipe: &'a Append,
    element: &'static str,
    /// The type of elements of pages, where it is another one.
    kept: Option<&'static str>,
    /// Their type in the text.
    page: &'static str,
    /// What is stored of keys, and of values.
    keeps: [&'static str; 2],
    /// The functions that move keys and queries; one, where those are stored alike.
    moves: Vec<Move>,
    interleaved: bool,
    rows_of: RowsOf,
    /// How many new rows a head has, and what `row_of` takes beside a row's number.
    new: &'static str,
    hint: &'static str,
    /// What is stored of queries.
    turned: &'static str,
    /// Rows of a CTA, of keys and of values.
    rows: [i64; 2],
    /// Elements of a key that are not rotated.
    others: u32,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
}

impl Text<'_> {
    /// The function that moves queries.
    fn move_queries(&self) -> &'static str {
        self.moves.last().map_or("", |of| of.function)
    }

    /// The strides of new rows of an operand, as arguments: (B,SQ,H), or (TQ,H).
    fn strides(&self, param: &str) -> String {
        let modes = if self.recipe.varlen { 2 } else { 3 };
        let all: Vec<String> = (0..modes).map(|mode| format!("params.{param}_stride{mode}")).collect();
        all.join(", ")
    }
}

/// Which sequence a new row is of.
#[derive(Template)]
enum RowsOf {
    /// Each sequence has as many.
    #[template(path = "append/row.cuh")]
    Dense,
    /// Starts say where each begins.
    #[template(path = "append/row_varlen.cuh")]
    Ragged { queries: bool },
}

/// A function that moves rows, and the middle of the names of its copies.
struct Move {
    what: &'static str,
    function: &'static str,
    of: &'static str,
}

const ROUNDED: &str = "[](Row const&) { return Rounded{}; }";
const NARROWED: [&str; 2] = [
    "[&](Row const& row) { return Narrowed{static_cast<float const*>(params.scalek)[row.head]}; }",
    "[&](Row const& row) { return Narrowed{static_cast<float const*>(params.scalev)[row.head]}; }",
];

const OF_SEQUENCE: &str = "[](Row const& row) { return OfSequence{row.batch >= 0}; }";

fn moves(recipe: &Append) -> Vec<Move> {
    let keys = Move { what: "Keys", function: "move_keys", of: "" };
    if !recipe.queries {
        return vec![keys];
    }
    if recipe.is_narrow() {
        return vec![keys, Move { what: "Queries", function: "move_queries", of: "Query" }];
    }
    vec![Move { what: "Keys, or queries", ..keys }]
}

pub(super) fn header(of: &Decision, plan: &Plan) -> String {
    let recipe = &of.recipe;
    emit::text(&Text {
        banner: emit::banner(plan, "append/kernel.cuh"),
        plan,
        recipe,
        element: emit::element(recipe.dtype),
        page: if recipe.is_narrow() { "Stored" } else { "Element" },
        keeps: if recipe.is_narrow() { NARROWED } else { [ROUNDED; 2] },
        moves: moves(recipe),
        kept: recipe.is_narrow().then(|| emit::element(recipe.dtype_kv())),
        rows_of: if recipe.varlen { RowsOf::Ragged { queries: recipe.queries } } else { RowsOf::Dense },
        new: if recipe.varlen { "params.tq" } else { "params.b * params.sq" },
        hint: if recipe.varlen { ", behind" } else { "" },
        turned: if recipe.varlen { OF_SEQUENCE } else { ROUNDED },
        interleaved: recipe.pairs == Pairs::Interleaved,
        rows: of.rows,
        others: recipe.head - recipe.rotary(),
        aliases: of.tilings.iter().flat_map(|tiling| tiling.aliases()).collect(),
        assertions: of.tilings.iter().flat_map(|tiling| tiling.assertions()).collect(),
    })
}
