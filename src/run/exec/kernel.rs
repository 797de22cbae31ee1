//! A recipe's kernel on an executor, launched with typed views.

use core::fmt;
use core::marker::PhantomData;

use super::extent::Extent;
use super::job::Job;
use super::{Error, Executor, Report, checked};
use crate::plan::Abi;
use crate::view::{AnyView, Args, Host, ViewRef};

/// The kernel of recipe `R` on an executor: `ptx::Kernel`, or `cxx::Kernel`.
pub struct Kernel<R, E> {
    abi: Abi,
    program: E,
    recipe: PhantomData<fn() -> R>,
}

impl<R, E: fmt::Debug> fmt::Debug for Kernel<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("abi", &self.abi).field("program", &self.program).finish()
    }
}

impl<R, E> Kernel<R, E> {
    pub(super) fn new(abi: Abi, program: E) -> Self {
        Kernel { abi, program, recipe: PhantomData }
    }

    /// What every launch is checked by.
    pub fn abi(&self) -> &Abi {
        &self.abi
    }

    /// What runs it.
    pub fn program(&self) -> &E {
        &self.program
    }
}

impl<R, E: Executor> Kernel<R, E> {
    /// Runs the kernel and waits for it. Only elements are read and written: what lies between them may be used by
    /// others meanwhile.
    ///
    /// # Errors
    /// A view does not fit the kernel; the kernel could not be run; or [`Error::Verdict`], where it did something wrong.
    pub fn launch(&self, args: impl Args<R, Host>) -> Result<(), Error> {
        let report = self.report(args)?;
        if report.is_clean() { Ok(()) } else { Err(Error::Verdict(Box::new(report))) }
    }

    /// Runs the kernel and tells what was found, good or bad.
    ///
    /// # Errors
    /// As [`Kernel::launch`], but for the verdict.
    pub fn report(&self, mut args: impl Args<R, Host>) -> Result<Report, Error> {
        let scalars = args.scalars();
        let views = args.views();
        let raw: Vec<ViewRef> = views.iter().map(AnyView::raw).collect();
        let binding = self.abi.bind_with(&raw, &scalars)?;
        let extents: Vec<Extent> = binding.tensors().iter().map(Extent::of).collect();
        // SAFETY: a host view borrows its elements, exclusively if it may be written, and the views are held until the
        // call returns; `bind` has checked that they lie in its memory, and that what the kernel writes may be written.
        let report = unsafe { checked(&self.program, &Job::from(&binding), &extents) };
        drop(views);
        report
    }
}
