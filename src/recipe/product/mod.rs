//! What the families of matrix products share: words, problems, records, and the choice of a kernel for a problem.

mod dispatch;
mod problem;
mod record;
mod words;

pub use dispatch::dispatch_module;
pub use problem::Problem;
pub use record::{Measured, Record};
pub(crate) use words::named;
pub use words::{Extents, Major, UnknownWord};
