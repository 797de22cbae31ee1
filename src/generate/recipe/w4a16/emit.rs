//! The text.

use askama::Template;

use super::decide::Decision;
use super::launch::of_product;
use crate::dtype::DType;
use crate::emit::{self, Alias, Assertion};
use crate::expr::Helpers;
use crate::plan::Plan;
use crate::recipe::product::{EpilogueText, Tensor};

#[derive(Template)]
#[template(path = "w4a16/kernel.cuh")]
struct Text<'a> {
    banner: String,
    plan: &'a Plan,
    d: &'a Decision,
    element: &'static str,
    op: EpilogueText,
    operands: Vec<Tensor>,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
}

impl Text<'_> {
    /// The epilogue inputs and D.
    fn epilogue(&self) -> &[Tensor] {
        &self.operands[2..]
    }

    /// The arguments of the epilogue after the accumulator, at coordinates of D.
    fn arguments(&self, index: &str) -> String {
        self.op.arguments(&self.operands, |tensor| tensor.load("m", index))
    }

    /// A result of the epilogue as an element of D.
    fn rounded(&self, value: &str) -> String {
        Helpers::new(self.d.product().epilogue().compute()).store(self.d.recipe.out(), value)
    }
}

pub(super) fn header(of: &Decision, plan: &Plan) -> String {
    let product = of.product();
    let operands = of_product(&of.recipe, product.has_c());
    let (mut aliases, mut assertions) = (Vec::new(), Vec::new());
    for tiling in &of.tilings {
        let new = |alias: &Alias| aliases.iter().all(|known: &Alias| known.name != alias.name);
        let more: Vec<Alias> = tiling.aliases().into_iter().filter(new).collect();
        let new = |assertion: &Assertion| !assertions.contains(assertion);
        let asserted: Vec<Assertion> = tiling.assertions().into_iter().filter(new).collect();
        aliases.extend(more);
        assertions.extend(asserted);
    }
    emit::text(&Text {
        banner: emit::banner(plan, "w4a16/kernel.cuh"),
        plan,
        d: of,
        element: emit::element(of.recipe.dtype),
        op: EpilogueText::new(product, &operands),
        operands: operands.into_iter().map(|operand| Tensor::new(product, operand, 1)).collect(),
        aliases,
        assertions,
    })
}
