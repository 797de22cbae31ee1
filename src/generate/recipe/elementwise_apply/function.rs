//! The type that a function is computed in.

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
                "a float computed as an integer loses its fraction, and an integer beyond 2^24 computed in f32 loses its \
                 last bits: choose one",
                "compute=f32, compute=f64 or compute=i32; stores convert as Rust's `as` does".into(),
            );
            None
        }
        _ if types().any(|t| t == DType::F64) => Some(Compute::F64),
        (false, true) => Some(Compute::I32),
        _ => Some(Compute::F32),
    }
}
