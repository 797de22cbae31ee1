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
    interleaved: bool,
    /// Rows of a CTA, of keys and of values.
    rows: [i64; 2],
    /// Elements of a key that are not rotated.
    others: u32,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
}

pub(super) fn header(of: &Decision, plan: &Plan) -> String {
    let recipe = &of.recipe;
    emit::text(&Text {
        banner: emit::banner(plan, "append/kernel.cuh"),
        plan,
        recipe,
        element: emit::element(recipe.dtype),
        interleaved: recipe.pairs == Pairs::Interleaved,
        rows: of.rows,
        others: recipe.head - recipe.rotary(),
        aliases: of.tilings.iter().flat_map(|tiling| tiling.aliases()).collect(),
        assertions: of.tilings.iter().flat_map(|tiling| tiling.assertions()).collect(),
    })
}
