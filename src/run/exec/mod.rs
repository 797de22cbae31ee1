//! Executors: kernels run, and are judged, where there is no GPU.
//!
//! | executor | runs | needs | sees |
//! |---|---|---|---|
//! | [`ptx`] | what nvcc made of the text | PTX: of an artifact, or nvcc | strays, reads of what nobody wrote, races, barriers; the instructions of tensor cores |
//! | `cxx` | the emitted text, compiled by the host's C++ compiler | g++ or clang++ on Linux | what the source shows: undefined behaviour, arrays in registers |
//!
//! Both are an [`Executor`]: they take one [`Job`], and report one kind of [`Finding`]. [`Kernel`] launches a recipe's kernel on
//! either with the typed views that a GPU takes.

#[cfg(feature = "host")]
pub mod cxx;
mod error;
mod extent;
mod finding;
mod job;
mod kernel;
mod profile;
#[cfg(feature = "ptx")]
pub mod ptx;
mod report;
mod target;

pub use error::{Error, Refused};
pub use extent::Extent;
pub use finding::{Finding, FindingKind, Origin, Other, Path, Rule, Site, SourceLine, Who};
pub use job::{Buffer, Job};
pub use kernel::Kernel;
pub use profile::{Counts, Profile, Profiled, Stages};
pub use report::Report;
pub use target::Target;

/// What runs the entries of one kernel.
pub trait Executor: core::fmt::Debug {
    /// The names of the entries, which a job calls by their number.
    fn entries(&self) -> &[String];

    /// Runs the grids of a job, which was checked and has one, on the memory of its tensors.
    ///
    /// # Safety
    /// What each extent says of the caller's memory is readable, and writable where it says so, for the time of the
    /// call, and nobody else writes it.
    ///
    /// # Errors
    /// The job could not be run. What the kernel does wrong is in the report.
    unsafe fn run_on(&self, job: &Job<'_>, extents: &[Extent]) -> Result<Report, Error>;

    /// Runs a job. Inputs are copied in, outputs are copied back to their last byte: gaps, and whatever lies behind the view, too.
    ///
    /// # Errors
    /// The buffers are not the memory of the views, or the job could not be run. What the kernel does wrong is in the report.
    fn run(&self, job: &Job<'_>, buffers: &mut [Buffer<'_>]) -> Result<Report, Error> {
        let extents = job::extents(job, buffers)?;
        // SAFETY: each extent was taken from a buffer, which is borrowed for this call.
        unsafe { checked(self, job, &extents) }
    }
}

/// Runs a job after it was checked.
///
/// # Safety
/// As [`Executor::run_on`].
unsafe fn checked<E: Executor + ?Sized>(executor: &E, job: &Job<'_>, extents: &[Extent]) -> Result<Report, Error> {
    job::check(executor.entries(), job)?;
    if job.launches.is_empty() {
        return Ok(Report::default());
    }
    // SAFETY: as for this function.
    unsafe { executor.run_on(job, extents) }
}
