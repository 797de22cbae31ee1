//! Plans: all decisions for a recipe, after every check has run.

mod abi;
mod abi_text;
mod bind;
pub mod checks;
mod conflicts;
mod demand;
mod draft;
mod entry;
mod fact;
mod given;
mod name;
mod operand;
pub(crate) mod own;
pub(crate) mod params;
mod problem_shape;
mod product;
mod reference;
pub(crate) mod rule;
mod several;
#[cfg(test)]
pub(crate) mod tests;

use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

pub use crate::tensor::Numbers;
pub use abi::Abi;
pub use abi_text::AbiError;
pub use bind::{Binding, BoundMap, BoundTensor, EntryLaunch, Workspace};
pub use conflicts::ConflictLevel;
pub(crate) use conflicts::judge;
pub use demand::{Demand, DemandKind};
pub use draft::{Call, Draft};
pub use entry::Entry;
pub use fact::Fact;
pub(crate) use given::Mode;
pub use given::{Given, Merging};
pub use name::kept as interned;
pub use operand::{ModeStride, Operand};
pub use own::Own;
pub use params::{Field, PackError, Param, ParamStruct, ParamType, ParamValue};
pub use problem_shape::ProblemShape;
#[cfg(test)]
pub(crate) use product::QUANTISER;
pub use product::{Arithmetic, BlockScales, Groups, Indexed, Product, SCALED_K, SCALED_N};
pub(crate) use product::{SCALE_D, SCALES};
pub(crate) use reference::dtype_name;
pub use reference::{Accepted, Baseline, Case, Cursor, InputElement, Reference, ReferenceError};
pub(crate) use rule::{Geometry, Grid};
pub use rule::{GridRule, MapRule, Reach, Rule};

use crate::arch::Targets;
use crate::diagnostic::{BindError, Diagnostic};
pub use crate::int::{Int, IntOp, NoInt, Step, Steps};
use crate::model::{Prediction, SharedAnalysis};
use crate::view::{Access, ViewRef};

/// The field of the parameter struct that holds the address of the workspace, of type `void*`.
pub const WORKSPACE: &str = "workspace";

/// The part of a plan that only its kernel family knows: text, meaning, prediction.
pub trait KernelPlan: fmt::Debug + Send + Sync {
    /// The text of the `.cuh` file.
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String;
    /// What the outputs must be, if the family says so.
    fn reference(&self) -> Option<&dyn Reference> {
        None
    }
    /// The prediction of a launch on these views, if the family has a model of it.
    fn predict(&self, _: &[ViewRef]) -> Option<Prediction> {
        None
    }
    /// Whether a build fails where the compiler spills registers of this kernel.
    fn spills_denied(&self) -> bool {
        false
    }
    /// The most registers that a thread may take, where a build fails with more.
    fn max_registers(&self) -> Option<u64> {
        None
    }
    /// The text that it is of, where that is one's own: CUDA C++, which no template renders.
    #[doc(hidden)]
    fn own(&self) -> Option<&Own> {
        None
    }
}

/// All decisions: layouts, tile, threads, registers, shared memory, grid, facts. Only [`Recipe::plan`] makes one.
///
/// `Display` prints the whole decision.
///
/// [`Recipe::plan`]: crate::recipe::Recipe::plan
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) abi: Abi,
    pub(crate) shared: Vec<SharedAnalysis>,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) kernel: Arc<dyn KernelPlan>,
    /// Where architectures have texts of their own: the plan of each, oldest first.
    pub(crate) texts: Vec<Plan>,
}

impl Plan {
    /// The data that a launch needs of it.
    pub fn abi(&self) -> &Abi {
        &self.abi
    }

    /// The plans of its texts: itself, or one for each group of architectures that has a text of its own, oldest first. Each is
    /// compiled, loaded and launched by itself. Recipe, operands, scalars and meaning are the same. Entries, parameters,
    /// shared memory and facts belong to a text: a plan of several has none, and is neither bound nor predicted.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let plan = Gemm::default().plan(&Targets::default())?;
    /// let names: Vec<&str> = plan.texts().iter().map(|text| text.name()).collect();
    /// assert_eq!(names, ["gemm_f16_sm80", "gemm_f16_sm90a"]);
    /// assert_eq!(plan.text_on((8, 9)).map(|text| text.name()), Some(names[0]));
    /// assert_eq!(plan.text_on((9, 0)).map(|text| text.name()), Some(names[1]));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub fn texts(&self) -> &[Plan] {
        if self.texts.is_empty() { core::slice::from_ref(self) } else { &self.texts }
    }

    /// The text that a device of this compute capability runs: the newest with SASS for it, or else with PTX.
    pub fn text_on(&self, capability: (u32, u32)) -> Option<&Plan> {
        let best = Targets::best(self.texts().iter().map(|text| text.targets()), capability)?;
        self.texts().get(best)
    }

    /// Whether a build fails where the compiler spills registers of this kernel.
    pub fn spills_denied(&self) -> bool {
        self.kernel.spills_denied()
    }

    /// The most registers that a thread may take, where a build fails with more.
    pub fn max_registers(&self) -> Option<u64> {
        self.kernel.max_registers()
    }

    /// The stem of the files of its compiled text, which several kernels of one's own share.
    pub(crate) fn stem(&self) -> &str {
        self.kernel.own().map_or(self.name(), |own| own.name.as_str())
    }

    /// What the outputs of the kernel must be, if its family says so.
    pub fn reference(&self) -> Option<&dyn Reference> {
        self.kernel.reference()
    }

    /// The product of matrices that the kernel computes, where it is one.
    pub fn product(&self) -> Option<&Product> {
        self.reference()?.product()
    }

    /// The requests of a launch on these views to the memory system, counted from the addresses of every warp. `None`
    /// if the family has no model of them. The work grows with the number of warps: about 0.1 us each.
    ///
    /// # Errors
    /// Every view that does not fit the plan; several [texts](Plan::texts).
    pub fn predict(&self, views: &[ViewRef]) -> Result<Option<Prediction>, BindError> {
        // No scalar is 0, so that nothing is left out.
        self.bind_with(views, &vec![1.0; self.scalars().len()])?;
        Ok(self.kernel.predict(views))
    }

    /// The same with decisions and counts.
    #[must_use]
    pub fn with_facts(self, facts: Vec<Fact>) -> Self {
        Self { facts, ..self }
    }

    /// The same with reasons why the kernel is slower than it could be.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<Diagnostic>) -> Self {
        Self { warnings, ..self }
    }

    /// The same with its tensors in shared memory.
    #[must_use]
    pub fn with_shared(self, shared: Vec<SharedAnalysis>) -> Self {
        Self { shared, ..self }
    }

    /// Decisions and counts, with their reasons.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// Its tensors in shared memory, with the passes over the banks that a block takes for one tile of each.
    pub fn shared(&self) -> &[SharedAnalysis] {
        &self.shared
    }

    /// Reasons why the kernel is slower than it could be.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }
}

impl Deref for Plan {
    type Target = Abi;

    /// The data that a launch needs of it.
    fn deref(&self) -> &Abi {
        &self.abi
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} for {}", self.name(), self.targets())?;
        writeln!(f, "  recipe          {}", self.recipe())?;
        for o in self.operands() {
            let verb = access_verb(o.access);
            writeln!(f, "  {:15} {} with strides {}, {verb}", o.name, o.dtype, o.stride_text())?;
        }
        match &self.texts[..] {
            [] => self.write_text(f),
            texts => texts.iter().enumerate().try_for_each(|(i, text)| {
                writeln!(f, "{}{} for {}", if i == 0 { "" } else { "\n" }, text.name(), text.targets())?;
                text.write_text(f)
            }),
        }
    }
}

/// What a kernel does with a tensor, in a word.
pub(crate) fn access_verb(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "written",
        Access::ReadWrite => "read and written",
    }
}

impl Plan {
    /// Writes the decisions of one text.
    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, entry) in self.entries().iter().enumerate() {
            let label = if i == self.kernel() { "threads" } else { entry.function(self.name()) };
            writeln!(f, "  {label:15} {entry}")?;
            for arch in self.targets().archs() {
                if let (Some(registers), Some(occupancy)) = (entry.registers, entry.occupancy(*arch)) {
                    writeln!(f, "    on {:10} {occupancy}, if it takes {registers} registers", arch.name())?;
                }
            }
        }
        for tensor in &self.shared {
            let text = tensor.to_string().replace('\n', "\n  ");
            writeln!(f, "  shared          {text}")?;
        }
        let width = self.facts.iter().map(|fact| fact.value.len()).max().unwrap_or(0);
        for fact in &self.facts {
            writeln!(f, "  {:15} {:width$}  {}", fact.name, fact.value, fact.why)?;
        }
        let fields: Vec<String> = self.params().fields().iter().map(ToString::to_string).collect();
        write!(f, "  parameters      {} bytes: {}", self.params().size(), fields.join(", "))
    }
}
