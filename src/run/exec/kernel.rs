//! A recipe's kernel on the executor, launched with typed views.

use core::fmt;
use core::marker::PhantomData;

use super::extent::Extent;
use super::job::{Job, refused};
use super::{Error, Options, Program, Report, ptx};
use crate::artifact::{Artifact, Code, Kind};
use crate::plan::{Abi, Binding, Plan};
use crate::view::{AnyView, Args, HostMemory, ViewRef};

/// The kernel of recipe `R`, as nvcc made PTX of it.
pub struct Kernel<R> {
    abi: Abi,
    program: Program,
    recipe: PhantomData<fn() -> R>,
}

impl<R> fmt::Debug for Kernel<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("abi", &self.abi).field("program", &self.program).finish()
    }
}

impl<R: Kind> Kernel<R> {
    /// The kernel of an artifact from a build script. Nothing is compiled, and every fault is looked for. With several
    /// texts, it is the text for the newest architecture that the executor runs.
    ///
    /// # Errors
    /// The artifact belongs to another version of the crate, has no PTX, or none that the executor runs.
    pub fn load(artifact: &Artifact<'_>) -> Result<Self, Error> {
        Self::load_with(artifact, Options::default())
    }

    /// As `load`, with other options.
    ///
    /// # Errors
    /// As `load`.
    pub fn load_with(artifact: &Artifact<'_>, options: Options) -> Result<Self, Error> {
        let mut refused = None;
        for (abi, text) in artifact.open::<R>()?.into_iter().zip(artifact.texts()).rev() {
            let made = match text.code {
                Code::Fatbin { ptx, .. } => ptx
                    .text()
                    .map_err(|e| ptx::Error::file("the artifact's PTX cannot be unpacked", e.to_string()))
                    .and_then(|ptx| Program::of(&abi, ptx, options)),
                Code::Stub { why } => Err(ptx::Error::file("the artifact has no PTX", why)),
            };
            match made {
                Ok(program) => return Ok(Kernel { abi, program, recipe: PhantomData }),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| ptx::Error::file("the artifact has no text", "")).into())
    }

    /// The kernel of a plan, which nvcc made this PTX of. The plan must be one of recipe `R`: each launch checks its views
    /// against it.
    ///
    /// # Errors
    /// The text is not PTX, is that of another kernel, or uses what the executor does not run.
    pub fn from_ptx(plan: Plan, ptx: impl Into<String>, options: Options) -> Result<Self, Error> {
        let program = Program::of(&plan, ptx, options)?;
        Ok(Kernel { abi: plan.abi().clone(), program, recipe: PhantomData })
    }
}

impl<R> Kernel<R> {
    /// What every launch is checked by.
    pub fn abi(&self) -> &Abi {
        &self.abi
    }

    /// What runs it.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Checks the arguments of a launch.
    pub(super) fn bind(&self, views: &[AnyView<'_, HostMemory>], scalars: &[f64]) -> Result<Binding, Error> {
        let raw: Vec<ViewRef> = views.iter().map(AnyView::raw).collect();
        let binding = self.abi.bind_with(&raw, scalars)?;
        let Some(alone) = AnyView::alone(views) else { return Ok(binding) };
        let found = binding.tensors().get(alone).map_or(String::new(), |tensor| format!("{} alone", tensor.name));
        Err(refused(
            "a second view of an output is launched without the first",
            found,
            "all views that the arguments gave, together".into(),
            "the first one has borrowed the memory of both",
            "launch the arguments as they are",
        ))
    }

    /// Runs the kernel and waits for it. Only elements are read and written: others may use the memory between them
    /// meanwhile.
    ///
    /// # Errors
    /// A view does not fit the kernel; the kernel could not be run; or [`Error::Verdict`], where it did something wrong.
    pub fn launch(&self, args: impl Args<R, HostMemory>) -> Result<(), Error> {
        let report = self.report(args)?;
        if report.is_clean() { Ok(()) } else { Err(Error::Verdict(Box::new(report))) }
    }

    /// Runs the kernel and tells what was found, good or bad.
    ///
    /// # Errors
    /// As [`Kernel::launch`], but for the verdict.
    pub fn report(&self, mut args: impl Args<R, HostMemory>) -> Result<Report, Error> {
        let scalars = args.scalars();
        let views = args.views();
        let binding = self.bind(&views, &scalars)?;
        let extents: Vec<Extent> = binding.tensors().iter().map(Extent::of).collect();
        // SAFETY: a host view borrows its elements, exclusively if it may be written, and the views are held until the
        // call returns; `bind` has checked that they lie in its memory, and that what the kernel writes may be written.
        let report = unsafe { self.program.run_on(&Job::from(&binding), &extents) };
        drop(views);
        report
    }
}
