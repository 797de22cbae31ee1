//! Why a kernel was not run, or which fault it has.

use core::fmt;

use super::Report;
use crate::artifact::ArtifactError;
use crate::diagnostic::{BindError, debug_as_display, field};

/// Why a kernel was not run, or not run to a clean end.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The views do not fit the plan.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The artifact is not one of this version of the crate.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The job is none that an executor could run.
    #[error(transparent)]
    Job(Box<Refused>),
    /// The PTX is missing, malformed, or uses instructions that the executor does not run.
    #[error(transparent)]
    Ptx(#[from] super::ptx::Error),
    /// The kernel ran, and elements are not what they have to be.
    #[error(transparent)]
    Wrong(Box<super::Wrong>),
    /// The kernel ran and did something wrong.
    #[error("{0}")]
    Verdict(Box<Report>),
}

debug_as_display!(Error);

/// A job that cannot be run: what, found, required, because, help.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused {
    /// The problem, in one line.
    pub what: String,
    /// The actual value.
    pub found: String,
    /// The required value.
    pub required: String,
    /// Why it has to.
    pub because: String,
    /// What to do.
    pub help: String,
}

debug_as_display!(Refused);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[exec-launch]: {}", self.what)?;
        field(f, "found:", &self.found)?;
        field(f, "required:", &self.required)?;
        field(f, "because:", &self.because)?;
        field(f, "help:", &self.help)
    }
}

impl core::error::Error for Refused {}
