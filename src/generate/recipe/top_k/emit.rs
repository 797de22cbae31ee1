//! The text.

use askama::Template;

use super::decide::{Decision, ELEMENTS};
use crate::dtype::DType;
use crate::emit;
use crate::expr::{Compute, Helpers};
use crate::plan::Plan;
use crate::recipe::rows::Walk;

#[derive(Template)]
#[template(path = "top_k/kernel.cuh")]
struct Text<'a> {
    banner: String,
    plan: &'a Plan,
    d: &'a Decision,
    element: &'static str,
    elements: &'static str,
    walks: [Walk; 2],
    columns: &'static str,
    helpers: String,
    /// An element as f32.
    loaded: String,
    /// Two elements in a register, as PTX names them.
    pair: Option<&'static str>,
}

pub(super) fn header(of: &Decision, plan: &Plan) -> String {
    let mut helpers = Helpers::new(Compute::F32);
    let loaded = helpers.load(of.recipe.dtype, "x");
    let [vectors, elements] = &of.tilings;
    emit::text(&Text {
        banner: emit::banner(plan, "top_k/kernel.cuh"),
        plan,
        d: of,
        element: emit::element(of.recipe.dtype),
        elements: ELEMENTS,
        walks: [Walk::of("Vectors", "in vectors", true, vectors), Walk::of("Elements", "one by one", false, elements)],
        columns: "LoadX",
        helpers: helpers.to_string(),
        loaded,
        pair: match of.recipe.dtype {
            DType::F16 => Some("f16x2"),
            DType::Bf16 => Some("bf16x2"),
            _ => None,
        },
    })
}
