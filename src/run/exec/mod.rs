//! The executor: it runs and judges kernels where there is no GPU.
//!
//! It runs the PTX that nvcc made of a kernel's text: from an artifact, or from nvcc. The crate [`ptx_exec`] does the work; it is
//! here as [`ptx`].
//!
//! A [`Program`] takes a [`Job`] and reports [`Finding`]s. [`Kernel`] launches a recipe's kernel with the typed views that a GPU
//! takes.

mod against;
mod error;
mod extent;
mod job;
mod kernel;
mod program;

pub use against::Wrong;
pub use error::{Error, Refused};
pub use job::{Buffer, Job};
pub use kernel::Kernel;
pub use program::{Options, Program};
pub use ptx_exec as ptx;
pub use ptx_exec::{
    Counts, Finding, FindingKind, Origin, Other, Path, Profile, Profiled, Report, Rule, Site, SourceLine, Stages,
    Target, Who,
};
