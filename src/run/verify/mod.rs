//! What right means: inputs, references, comparisons and memory guards, shared by tests, benches, the command line tool
//! and users.
//!
//! A kernel is verified in four steps. Inputs come from a seed ([`Fill`]). The output is filled with a marked NaN
//! ([`Tensor::fill_unwritten`]). The kernel runs. [`check`] compares with the values that its definition accepts, and
//! looks at the memory around the output and between its rows. There is no tolerance if the definition of the operation
//! leaves none.
//!
//! ```
//! use cutemplate::arch::Targets;
//! use cutemplate::dtype::DType;
//! use cutemplate::recipe::{ElementwiseAdd, Recipe};
//! use cutemplate::verify::{self, Fill, Tensor, TensorLayout};
//!
//! let plan = ElementwiseAdd { dtype: DType::F16, ..Default::default() }.plan(&Targets::default())?;
//! let layout = TensorLayout::padded(3, 12, 16);
//! let mut a = Tensor::new(DType::F16, layout)?;
//! let mut b = Tensor::new(DType::F16, layout)?;
//! a.fill(Fill::Normal, 1);
//! b.fill(Fill::Normal, 2);
//!
//! let mut found = Tensor::new(DType::F16, layout)?;
//! found.fill_unwritten();
//! let verdicts = verify::check(&plan, &[&a, &b], &[], &[&found])?;
//! assert_eq!(verdicts[0].unwritten, 36);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod baseline;
mod check;
mod elementwise;
mod guards;
mod input;
#[cfg(feature = "npy")]
pub mod npy;
mod parallel;
mod product;
mod reference;
mod rows;
mod scalar;
mod sums;
mod tensor;
pub(crate) mod tf32;
mod verdict;
mod walk;

pub use baseline::Baseline;
pub use check::{check, check_against, check_watched, fill_unwritten};
pub use guards::{GuardReport, GuardViolation, Place};
pub use input::{Fill, SplitMix64};
pub use parallel::Done;
pub use reference::{ReferenceError, ShapeMismatch, add};
pub use scalar::Scalar;
#[cfg(any(feature = "cuda", feature = "dlpack"))]
pub(crate) use scalar::with_scalar;
pub use tensor::{Tensor, TensorError, TensorLayout};
pub use verdict::{Element, Expected, Mismatch, Verdict};
