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

mod add;
mod check;
#[cfg(feature = "npy")]
pub mod npy;
mod verdict;

pub use add::add;
pub use check::{check, check_against, check_watched, fill_unwritten};
#[cfg(feature = "ptx")]
pub(crate) use verdict::unwritten;
pub use verdict::{Expected, Mismatch, Verdict};

pub use crate::plan::{Baseline, InputElement, ReferenceError};
#[cfg(any(feature = "cuda", feature = "dlpack"))]
pub(crate) use crate::tensor::with_scalar;
pub use crate::tensor::{
    Done, Fill, GuardReport, GuardViolation, Place, Scalar, ShapeMismatch, SplitMix64, Tensor, TensorError,
    TensorLayout,
};
