//! Row programs: functions whose rows are reduced, as traversals of the row.
//!
//! ```
//! use cutemplate::expr::Function;
//! use cutemplate::expr::rows::{Passes, Reading, Step};
//!
//! let norm: Function = "|x, w; eps| { let r = rsqrt(mean(x * x) + eps); x * r * w }".parse()?;
//! let passes = Passes::of(&norm, &Reading::of(&norm)).expect("x and w are read twice");
//! let [Step::Traverse(squares), Step::Values(root), Step::Traverse(products)] = passes.steps() else { panic!() };
//! // A sum of products has both factors, which `fma` multiplies and adds.
//! assert_eq!(squares.part.function.function().to_string(), "|x| x, x");
//! assert_eq!(root.part.function.function().to_string(), "|width, v0; eps| rsqrt(v0 / width + eps)");
//! assert_eq!(products.part.function.function().to_string(), "|x, w, v1| x * v1 * w");
//! # Ok::<(), cutemplate::expr::ExprError>(())
//! ```

mod closures;
mod cones;
mod levels;
mod pairs;
mod part;
mod passes;
mod plan;
mod reading;
mod reduction;

pub use closures::Elements;
pub use pairs::{Online, Pair};
pub use part::{Part, Source};
pub use passes::{Made, Origin, Output, Passes, Step, Traversal, Value, Values};
pub use reading::Reading;
pub use reduction::{Along, Level, Reduction};

pub(super) use levels::{exists, fits, joined};

#[cfg(test)]
mod tests;
