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
    /// The scales, and zero points where there are some.
    of_groups: Vec<OfGroups>,
    quantiser: Quantiser,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
}

/// A tensor with a value for each column of each group: `(K/GROUP,N)`.
struct OfGroups {
    name: &'static str,
    /// Its array in shared memory.
    array: &'static str,
    element: &'static str,
    pointer: &'static str,
    strides: &'static str,
}

const SCALES: OfGroups = OfGroups {
    name: "S",
    array: "s",
    element: "Element",
    pointer: "static_cast<Element const*>(params.scales)",
    strides: "make_stride(params.ldscales, _1{}));",
};
const ZEROS: OfGroups = OfGroups {
    name: "Z",
    array: "z",
    element: "uint8_t",
    pointer: "static_cast<uint8_t const*>(params.zeros)",
    strides: "make_stride(params.ldzeros, _1{}));",
};

/// How a thread finds scales and zero points of its columns.
#[derive(Template)]
enum Quantiser {
    /// All zero points are 8.
    #[template(path = "w4a16/quantiser.cuh")]
    Symmetric,
    #[template(path = "w4a16/quantiser_zeros.cuh")]
    WithZeros,
}

impl Text<'_> {
    /// Where the values of a group lie in shared memory.
    fn at_group(&self, index: &str) -> String {
        self.of_groups.iter().map(|of| format!("&s{}{index}", of.name)).collect::<Vec<_>>().join(", ")
    }

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
        of_groups: if of.recipe.zeros { vec![SCALES, ZEROS] } else { vec![SCALES] },
        quantiser: if of.recipe.zeros { Quantiser::WithZeros } else { Quantiser::Symmetric },
        aliases,
        assertions,
    })
}
