//! What right means: inputs, references, comparisons and memory guards, shared by tests, benches, the command line tool
//! and users.
//!
//! A kernel is verified in four steps: inputs from a seed ([`Fill`]), an output that is filled with a marked NaN
//! ([`Tensor::fill_unwritten`]), the kernel, and [`compare`] against the reference, which also looks at the memory around
//! the output and between its rows. There is no tolerance where the definition of the operation leaves none.
//!
//! ```
//! use cutemplate::dtype::DType;
//! use cutemplate::verify::{self, Fill, Tensor, TensorLayout};
//!
//! let layout = TensorLayout::padded(3, 12, 16);
//! let mut a = Tensor::new(DType::F16, layout)?;
//! let mut b = Tensor::new(DType::F16, layout)?;
//! a.fill(Fill::Normal, 1);
//! b.fill(Fill::Normal, 2);
//! let expected = verify::elementwise_add(&a, &b)?;
//!
//! let mut found = Tensor::new(DType::F16, layout)?;
//! found.fill_unwritten();
//! let verdict = verify::compare(&found, &expected, &[("A", &a), ("B", &b)])?;
//! assert_eq!(verdict.unwritten, 36);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod baseline;
mod check;
mod compare;
mod elementwise;
mod guards;
mod input;
#[cfg(feature = "npy")]
pub mod npy;
mod product;
mod reference;
mod scalar;
mod sums;
mod tensor;
mod walk;

pub use baseline::Baseline;
pub use check::{check, check_against, fill_unwritten};
pub use compare::{Element, Expected, Mismatch, Verdict, compare};
pub use guards::{GuardReport, GuardViolation, Place};
pub use input::{Fill, UnknownFill};
pub use reference::{ReferenceError, ShapeMismatch, add, elementwise_add};
pub use scalar::Scalar;
#[cfg(feature = "cuda")]
pub(crate) use scalar::with_scalar;
pub use tensor::{Tensor, TensorError, TensorLayout};
