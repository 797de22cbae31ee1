//! The epilogue: whether the function fits the tensors, and names that are free.

use super::Sgemm;
use super::launch::CUT;
use crate::diagnostic::Code;
use crate::expr::Compute;
use crate::plan::checks::Checks;
use crate::plan::{ModeStride, Product};

/// Names of auxiliary tensors in the emitted text.
pub(super) const AUX: [&str; 6] = ["Aux0", "Aux1", "Aux2", "Aux3", "Aux4", "Aux5"];

/// The product with this epilogue, where it is one.
pub(super) fn product(recipe: &Sgemm, checks: &mut Checks) -> Option<Product> {
    let checked = match recipe.epilogue.check(Compute::F32) {
        Ok(checked) => Some(checked),
        Err(errors) => {
            for e in errors {
                checks.push(Code::Expression, e.found, e.required, &e.because, e.help);
            }
            None
        }
    };
    let fits = [signature(recipe, checks), strides(recipe, checks), free_names(recipe, checks)];
    let checked = checked.filter(|_| fits.into_iter().all(|fit| fit))?;
    Some(Product::new(checked, recipe.batched))
}

fn signature(recipe: &Sgemm, checks: &mut Checks) -> bool {
    let function = &recipe.epilogue;
    let (inputs, aux) = (function.inputs(), recipe.aux.len());
    let fits = match inputs {
        0 => false,
        1 | 2 => aux == 0,
        more => aux == more - 2,
    };
    if !fits || function.outputs() != 1 {
        checks.push(
            Code::TensorCount,
            format!("`{function}` of {inputs} inputs and {} outputs, {aux} auxiliary tensors", function.outputs()),
            "an input for the accumulator, one for C, one for each auxiliary tensor, and one output".into(),
            "the epilogue computes an element of D from the accumulator a, the element b of C, and elements c, d, .. of the \
             auxiliary tensors",
            "list as many tensors in `aux`; inputs that are not used stand before the expression: |a, b, c| a + c".into(),
        );
        return false;
    }
    true
}

fn strides(recipe: &Sgemm, checks: &mut Checks) -> bool {
    let rank = if recipe.batched { 3 } else { 2 };
    let mut fits = true;
    for (name, spec) in AUX.iter().zip(&recipe.aux) {
        let units = spec.strides.iter().filter(|s| **s == ModeStride::Unit).count();
        if spec.strides.len() != rank || units > 1 {
            fits = false;
            let modes = if recipe.batched { "(M,N,L)" } else { "(M,N)" };
            checks.push(
                if spec.strides.len() == rank { Code::TensorStride } else { Code::TensorRank },
                format!("{name} = {spec}"),
                format!("strides along {modes}, at most one of them 1"),
                "a coordinate of D names one element of each auxiliary tensor",
                if recipe.batched { "f32:(0,1,0) is one row for all" } else { "f32:(0,1) is one row for all" }.into(),
            );
        }
    }
    fits
}

/// Scalars are parameters beside addresses, strides and extents.
fn free_names(recipe: &Sgemm, checks: &mut Checks) -> bool {
    let taken = |name: &str| {
        let fixed = ["m", "n", "k", "l", "a", "b", "c", "d", "workspace"].contains(&name);
        let of_a_wave = CUT.iter().any(|(param, _)| *param == name);
        fixed || of_a_wave || ["aux", "ld", "inc", "batch", "aligned"].iter().any(|stem| name.starts_with(stem))
    };
    let mut free = true;
    for scalar in recipe.epilogue.scalars().iter().filter(|s| taken(s)) {
        free = false;
        checks.push(
            Code::Expression,
            format!("a run-time scalar called `{scalar}`"),
            "a name that is no parameter of the kernel: not m, n, k, l, a, b, c, d, workspace, whole, cut, parts, k_part, \
             aux.., ld.., inc.., batch.., aligned.."
                .into(),
            "scalars stand in the same parameter struct as addresses, strides and extents",
            format!("call it `scale_{scalar}`"),
        );
    }
    free
}
