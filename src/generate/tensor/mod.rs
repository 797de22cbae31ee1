//! Tensors in host memory: element types as bits and values, inputs from a seed, guards around and between the elements.

mod fill;
mod guards;
mod host;
pub(crate) mod parallel;
mod scalar;
mod walk;

pub use fill::{Fill, Numbers, SplitMix64};
pub use guards::{GuardReport, GuardViolation, Place};
pub use host::{ShapeMismatch, Tensor, TensorError, TensorLayout};
pub use parallel::Done;
pub use scalar::Scalar;
pub(crate) use scalar::{carried, power_of_two, value, with_scalar};
pub use walk::Elements;
#[cfg(feature = "npy")]
pub(crate) use walk::Walk;
pub(crate) use walk::coordinate_at;
