//! What the function needs: a type to compute in that has its operations, and names for its scalars.

use super::ElementwiseApply;
use crate::diagnostic::Code;
use crate::dtype::{DType, Kind};
use crate::expr::Compute;
use crate::plan::checks::Checks;

/// The type to compute in: as set, or from the types of the tensors.
pub(super) fn compute(recipe: &ElementwiseApply, checks: &mut Checks) -> Option<Compute> {
    if recipe.compute.is_some() {
        return recipe.compute;
    }
    let types = || recipe.inputs.iter().chain(&recipe.outputs).map(|t| t.dtype);
    let has = |kind: Kind| types().any(|t| t.kind() == kind);
    match (has(Kind::Float), has(Kind::Int)) {
        (true, true) => {
            let list: Vec<&str> = types().map(DType::name).collect();
            checks.push(
                Code::MixedTypes,
                format!("tensors of {}", list.join(", ")),
                "floats only or integers only, or a compute type".into(),
                "a float that is computed as an integer loses its fraction, and an integer beyond 2^24 that is computed \
                 in f32 its last bits: that is a choice to make",
                "compute=f32, compute=f64 or compute=i32; stores convert as Rust's `as` does".into(),
            );
            None
        }
        _ if types().any(|t| t == DType::F64) => Some(Compute::F64),
        (false, true) => Some(Compute::I32),
        _ => Some(Compute::F32),
    }
}

/// Scalars are parameters beside addresses, strides and extents.
pub(super) fn free_names(recipe: &ElementwiseApply, checks: &mut Checks) -> bool {
    let taken = |name: &str| {
        let is_extent = ["n", "vectors", "aligned", "aligned_in"].contains(&name);
        let numbered =
            |stem: &str| name.strip_prefix(stem).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        let tensor = |stem: &str| {
            name.strip_prefix(stem).is_some_and(|t| t.starts_with(|c| ('a'..='h').contains(&c) || c == 'y'))
        };
        is_extent || numbered("m") || numbered("y") || tensor("ld") || tensor("inc")
    };
    let mut free = true;
    for scalar in recipe.function.scalars().iter().filter(|s| taken(s)) {
        free = false;
        checks.push(
            Code::Expression,
            format!("a run-time scalar called `{scalar}`"),
            "a name that is no parameter of the kernel: not m, n, y, ld.., inc.., vectors, aligned, aligned_in".into(),
            "scalars stand in the same parameter struct as addresses, strides and extents",
            format!("call it `{scalar}_value`"),
        );
    }
    free
}
