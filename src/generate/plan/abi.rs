//! The data that a launch needs of a kernel, besides its code.

use super::{bind, own};
use crate::arch::Targets;
use crate::diagnostic::{BindError, Code, Defect, Diagnostic, Severity};
use crate::plan::rule::NotItsTensors;
use crate::plan::{Binding, Draft, Entry, Operand, ParamStruct, ProblemShape, Reach};
use crate::settings::Settings;
use crate::units::Bytes;
use crate::view::ViewRef;

/// The data that a launch needs of a kernel: operands, parameters, entries, the relation of its tensors' shapes, and
/// the rule for grids and parameters. A plan has one, and a bundle keeps it: a launch plans nothing.
#[derive(Clone, Debug)]
pub struct Abi {
    draft: Draft,
}

impl Abi {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft }
    }

    /// Every field of it.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// The kernel family, as `cutemplate list` names it.
    pub fn family(&self) -> &'static str {
        self.draft.family
    }

    /// Whether a safe function may launch it: its family proves its kernels, or somebody vouches for this one.
    pub fn is_vouched(&self) -> bool {
        self.family() != own::FAMILY || self.settings().get(own::VOUCHED) == Some("yes")
    }

    /// The Rust type of the recipe, in [`crate::recipe`](mod@crate::recipe).
    pub fn rust_type(&self) -> &'static str {
        self.draft.rust_type
    }

    /// The name of the kernel: of the entry that computes, and of its files.
    pub fn name(&self) -> &str {
        &self.draft.name
    }

    /// The recipe in its `Debug` form.
    pub fn recipe(&self) -> &str {
        &self.draft.recipe
    }

    /// The recipe as `key=value` settings, from which the same recipe can be made again.
    pub fn settings(&self) -> &Settings {
        &self.draft.settings
    }

    /// The architectures it was checked for.
    pub fn targets(&self) -> &Targets {
        &self.draft.targets
    }

    /// The tensors, in argument order.
    pub fn operands(&self) -> &[Operand] {
        &self.draft.operands
    }

    /// The parameter struct.
    pub fn params(&self) -> &ParamStruct {
        &self.draft.params
    }

    /// The `__global__` functions, in the order in which a launch runs them. One has the name of the kernel, the others have a
    /// suffix behind it. None where a plan has several texts.
    pub fn entries(&self) -> &[Entry] {
        &self.draft.entries
    }

    /// The index in [`Abi::entries`] of the entry that has the name of the kernel.
    pub fn kernel(&self) -> usize {
        (0..self.draft.entries.len()).min_by_key(|index| self.draft.entries[*index].name.len()).unwrap_or(0)
    }

    /// Threads of a block of the entry that has the name of the kernel.
    pub fn threads(&self) -> u32 {
        self.draft.entries.get(self.kernel()).map_or(0, |entry| entry.threads)
    }

    /// Shared memory of a block of that entry, static and dynamic.
    pub fn smem(&self) -> Bytes {
        self.draft.entries.get(self.kernel()).map_or(Bytes(0), Entry::shared_memory)
    }

    /// The names of the run-time scalars, in order.
    pub fn scalars(&self) -> &[String] {
        &self.draft.scalars
    }

    /// How the shapes of the tensors belong together, where they do.
    pub fn problem_shape(&self) -> Option<&ProblemShape> {
        self.draft.problem.as_ref()
    }

    /// The shape of each operand for the extents of a problem; `None` where the kernel has other extents.
    pub fn shapes(&self, problem: &[i64]) -> Option<Vec<Vec<i64>>> {
        self.problem_shape()?.shapes(problem)
    }

    /// Checks the views of one launch and derives its grids and parameters.
    ///
    /// # Errors
    /// Every view that does not fit the kernel, with what would; an ABI of several texts.
    pub fn bind(&self, views: &[ViewRef]) -> Result<Binding, BindError> {
        self.bind_with(views, &[])
    }

    /// The same for a kernel with run-time scalars.
    ///
    /// # Errors
    /// As [`Abi::bind`]; another number of scalars than the kernel has.
    pub fn bind_with(&self, views: &[ViewRef], scalars: &[f64]) -> Result<Binding, BindError> {
        self.one_text(views)?;
        bind::check_views(self, views, scalars)?;
        match self.draft.rule.geometry(&self.draft.params, views, scalars) {
            Ok(Some(geometry)) => Ok(Binding::new(self, views, geometry)?),
            Ok(None) => Err(self.too_large(views, scalars).into()),
            Err(NotItsTensors) => Err(self.unexpected_views(views).into()),
        }
    }

    /// The numbers of these views are larger than the kernel's.
    fn too_large(&self, views: &[ViewRef], scalars: &[f64]) -> Diagnostic {
        let tensor = |(operand, view): (&Operand, &ViewRef)| format!("{} {}", operand.name, view.layout);
        let mut found: Vec<String> = self.draft.operands.iter().zip(views).map(tensor).collect();
        // A declaration is its author's own; a recipe says what it takes.
        let is_own = self.family() == own::FAMILY;
        let number = is_own.then(|| self.draft.rule.out_of_range(&self.draft.params, views, scalars)).flatten();
        found.extend(number);
        let Reach { required, because, help } = &self.draft.rule.reach;
        self.diagnostic(Code::ProblemTooLarge, found.join(", "), required.clone(), because, help)
    }

    /// Views that passed the general checks are not those that the rule was made for.
    fn unexpected_views(&self, views: &[ViewRef]) -> Defect {
        let views: Vec<String> = views.iter().map(ToString::to_string).collect();
        let what =
            format!("the parameters of {} cannot be read off its own views: {}", self.draft.family, views.join(", "));
        Defect::new(what, &self.draft.recipe)
    }

    /// A diagnostic about this kernel's recipe.
    pub(crate) fn diagnostic(
        &self,
        code: Code,
        found: String,
        required: String,
        because: &str,
        help: &str,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            kernel: Some(self.draft.name.clone()),
            recipe: self.draft.recipe.clone(),
            found,
            required,
            because: because.to_owned(),
            help: help.to_owned(),
        }
    }
}
