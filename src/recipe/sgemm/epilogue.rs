//! The epilogue: whether the function fits the tensors.

use super::Sgemm;
use crate::diagnostic::Code;
use crate::expr::Compute;
use crate::plan::checks::{self, Checks};
use crate::plan::{ModeStride, Product};

/// Names of auxiliary tensors in the emitted text.
pub(super) const AUX: [&str; 6] = ["Aux0", "Aux1", "Aux2", "Aux3", "Aux4", "Aux5"];

/// The product with this epilogue, where it is one.
pub(super) fn product(recipe: &Sgemm, checks: &mut Checks) -> Option<Product> {
    let checked = checks::traced(checks, &recipe.epilogue, Compute::F32);
    let fits = signature(recipe, checks) & strides(recipe, checks);
    checked.filter(|_| fits).map(|checked| Product::new(checked, recipe.batched))
}

fn signature(recipe: &Sgemm, checks: &mut Checks) -> bool {
    let function = &recipe.epilogue;
    let (inputs, outputs, aux) = (function.inputs(), function.outputs(), recipe.aux.len());
    checks.require(
        inputs > 0 && outputs == 1 && aux == inputs.saturating_sub(2),
        Code::TensorCount,
        format!("`{function}` of {inputs} inputs and {outputs} outputs, {aux} auxiliary tensors"),
        "an input for the accumulator, one for C, one for each auxiliary tensor, and one output",
        "the epilogue computes an element of D from the accumulator a, the element b of C, and elements c, d, .. of the \
         auxiliary tensors",
        "list as many tensors in `aux`; inputs that are not used stand before the expression: |a, b, c| a + c",
    )
}

fn strides(recipe: &Sgemm, checks: &mut Checks) -> bool {
    let (rank, modes, example) = match recipe.batched {
        true => (3, "(M,N,L)", "f32:(0,1,0) is one row for all"),
        false => (2, "(M,N)", "f32:(0,1) is one row for all"),
    };
    let mut fits = true;
    for (name, spec) in AUX.iter().zip(&recipe.aux) {
        let units = spec.strides.iter().filter(|s| **s == ModeStride::Unit).count();
        fits &= checks.require(
            spec.strides.len() == rank && units <= 1,
            if spec.strides.len() == rank { Code::TensorStride } else { Code::TensorRank },
            format!("{name} = {spec}"),
            &format!("strides along {modes}, at most one of them 1"),
            "a coordinate of D names one element of each auxiliary tensor",
            example,
        );
    }
    fits
}
