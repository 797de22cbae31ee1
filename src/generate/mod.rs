//! From a recipe to its text: plans, tilings, proofs, predictions, CuTe C++.

pub mod cuda;
#[cfg(feature = "emit")]
pub mod emit;
pub mod expr;
pub(crate) mod int;
pub mod model;
pub mod plan;
pub mod recipe;
pub mod reference;
pub mod tensor;
pub mod tiling;
