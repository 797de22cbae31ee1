//! The executor: it runs and judges kernels where there is no GPU.
//!
//! It runs the PTX that nvcc made of a kernel's text ([`ptx`]): from an artifact, or from nvcc. It finds accesses out of bounds,
//! uninitialised reads, races and misused barriers, and runs the instructions of tensor cores.
//!
//! A [`ptx::Program`] takes a [`Job`] and reports [`Finding`]s. [`Kernel`] launches a recipe's kernel with the typed views that a
//! GPU takes.

mod error;
mod extent;
mod finding;
mod job;
mod kernel;
mod profile;
pub mod ptx;
mod report;
mod target;

pub use error::{Error, Refused};
pub use finding::{Finding, FindingKind, Origin, Other, Path, Rule, Site, SourceLine, Who};
pub use job::{Buffer, Job};
pub use kernel::Kernel;
pub use profile::{Counts, Profile, Profiled, Stages};
pub use report::Report;
pub use target::Target;
