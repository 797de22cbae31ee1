//! A recipe's kernel on the CPU, launched with typed views.

use core::marker::PhantomData;

use super::job::Extent;
use super::{Error, Launch, Mode, Options, Program, Report, exec};
use crate::artifact::Artifact;
use crate::emit::{self, Unit};
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::view::{Access, AnyView, Args, Host, ViewRef};

/// The kernel of recipe `R`, compiled for the CPU.
#[derive(Clone, Debug)]
pub struct Kernel<R> {
    plan: Plan,
    program: Program,
    recipe: PhantomData<fn() -> R>,
}

impl<R: Recipe> Kernel<R> {
    /// Compiles the kernel of an artifact that a build script left, or finds it compiled: in [`Mode::Plain`], with
    /// [`Options::from_env`].
    ///
    /// # Errors
    /// The artifact belongs to another version of the crate, a part of the toolchain is missing, or the text does not
    /// compile.
    pub fn load(artifact: &Artifact) -> Result<Kernel<R>, Error> {
        Kernel::load_with(artifact, Mode::Plain, &Options::from_env(&mut ())?)
    }

    /// As [`Kernel::load`], in any mode.
    ///
    /// # Errors
    /// As [`Kernel::load`].
    pub fn load_with(artifact: &Artifact, mode: Mode, options: &Options) -> Result<Kernel<R>, Error> {
        let (plan, _) = artifact.open::<R>()?;
        Kernel::compile(plan, mode, options)
    }

    /// Compiles the kernel of a plan, or finds it compiled. The plan must be one of recipe `R`: each launch checks its
    /// views against it.
    ///
    /// # Errors
    /// The text does not compile, or the cache cannot be written.
    pub fn compile(plan: Plan, mode: Mode, options: &Options) -> Result<Kernel<R>, Error> {
        let unit = emit::render(&plan);
        Kernel::build(plan, &unit, mode, options)
    }

    fn build(plan: Plan, unit: &Unit, mode: Mode, options: &Options) -> Result<Kernel<R>, Error> {
        if let Some(what) = plan.needs_gpu() {
            return Err(Error::needs_gpu(plan.name(), what));
        }
        let program = Program::compile(unit, mode, options)?;
        Ok(Kernel { plan, program, recipe: PhantomData })
    }

    /// The plan that every launch is checked against.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The compiled text.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs the kernel and waits for it.
    ///
    /// # Errors
    /// A view does not fit the plan; the process could not be run; or [`Error::Verdict`], where the kernel did
    /// something wrong.
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
        let binding = self.plan.bind_with(&raw, &scalars)?;
        let extents: Vec<Extent> = binding
            .tensors()
            .iter()
            .map(|tensor| Extent {
                data: core::ptr::with_exposed_provenance_mut(tensor.view.ptr as usize),
                // `bind` has checked that the view lies within an address space.
                bytes: (tensor.view.available.0 * tensor.view.dtype.bytes().0) as usize,
                writable: tensor.view.access == Access::Write,
            })
            .collect();
        // SAFETY: a host view borrows the memory that it says is available, exclusively if it may be written, and the
        // views are held until the call returns; `bind` has checked that what the kernel writes may be written.
        let report = unsafe { exec::run(&self.program, &Launch::from(&binding), &extents) };
        drop(views);
        report
    }
}
