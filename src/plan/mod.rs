//! Plans: what was decided for a recipe, after every check has run.

mod bind;
pub(crate) mod checks;
mod conflicts;
mod entry;
mod fact;
mod params;
mod product;
pub(crate) mod rule;
#[cfg(test)]
pub(crate) mod tests;

use core::fmt;
use std::sync::Arc;

pub use bind::{Binding, BoundMap, BoundTensor, EntryLaunch, Workspace};
pub use conflicts::ConflictLevel;
pub(crate) use conflicts::judge;
pub use entry::Entry;
pub use fact::Fact;
pub use params::{PackError, Param, ParamStruct, ParamType, ParamValue};
pub use product::{Computes, Product};
pub(crate) use rule::{Int, IntOp, MapRule, Rule, Step, Steps};

use crate::arch::Targets;
use crate::diagnostic::{BindError, Code, Defect, Diagnostic, Severity};
use crate::dtype::DType;
use crate::model::{Prediction, SharedAnalysis};
use crate::settings::Settings;
use crate::units::Bytes;
use crate::view::{Access, ViewLayout, ViewRef};

/// What a kernel was generated for along one mode of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModeStride {
    /// Neighbours are neighbours in memory: stride 1.
    Unit,
    /// One element stands for all: stride 0.
    Broadcast,
    /// Any stride, known at launch.
    Dynamic,
}

impl fmt::Display for ModeStride {
    /// As in a layout of CuTe's: `1`, `0`, and `?` for what is known at launch only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ModeStride::Unit => "1",
            ModeStride::Broadcast => "0",
            ModeStride::Dynamic => "?",
        })
    }
}

/// A tensor of the kernel, in argument order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its name in the emitted text: `A` for `mA`.
    pub name: &'static str,
    /// The field of the parameter struct that holds its address.
    pub param: String,
    /// Its element type.
    pub dtype: DType,
    /// Whether the kernel reads or writes it.
    pub access: Access,
    /// Its stride along each mode.
    pub strides: Vec<ModeStride>,
    /// Whether it may be the very memory of an output, element for element.
    pub in_place: bool,
    /// Whether it may have no elements: an extent of 0. No memory is needed then, and its strides mean nothing.
    pub may_be_empty: bool,
}

impl Operand {
    /// One whose address stands in the field of its name, which is apart from every output and may have no elements.
    pub(crate) fn new(name: &'static str, dtype: DType, access: Access, strides: &[ModeStride]) -> Self {
        let (param, strides) = (name.to_ascii_lowercase(), strides.to_vec());
        Self { name, param, dtype, access, strides, in_place: false, may_be_empty: true }
    }

    /// Whether vectors of `vec` elements at multiples of `vec` along the contiguous mode are aligned, at every coordinate of the
    /// other modes.
    pub(crate) fn aligned(&self, view: &ViewRef, vec: i64) -> bool {
        let bytes = view.dtype.bytes().0 * vec.unsigned_abs();
        let modes = self.strides.iter().zip(view.layout.stride()).zip(view.layout.shape());
        let mut steps = modes.filter(|((want, _), extent)| **want == ModeStride::Dynamic && **extent > 1);
        view.ptr.is_multiple_of(bytes) && steps.all(|((_, stride), _)| stride % vec == 0)
    }

    /// Its strides in CuTe notation: `(?,1)` for a row-major matrix.
    pub fn stride_text(&self) -> String {
        let modes: Vec<String> = self.strides.iter().map(ToString::to_string).collect();
        if let [one] = &modes[..] { one.clone() } else { format!("({})", modes.join(",")) }
    }

    /// A layout of these strides for a shape: without gaps, the contiguous mode innermost and the others from the last to
    /// the first; `pad` elements instead of the innermost extent lie between its neighbours. `None` where the ranks differ,
    /// `pad` is smaller than the extent, or the strides overflow.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{ElementwiseAdd, Recipe};
    ///
    /// let plan = ElementwiseAdd::default().plan(&Targets::default())?;
    /// let layout = |pad| plan.operands()[0].layout(&[3, 12], pad).map(|l| l.to_string());
    /// assert_eq!(layout(None).as_deref(), Some("(3,12):(12,1)"));
    /// assert_eq!(layout(Some(16)).as_deref(), Some("(3,12):(16,1)"));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub fn layout(&self, shape: &[i64], pad: Option<i64>) -> Option<ViewLayout> {
        if shape.len() != self.strides.len() {
            return None;
        }
        let unit = self.strides.iter().position(|s| *s == ModeStride::Unit);
        let others = (0..shape.len()).rev().filter(|i| Some(*i) != unit && self.strides[*i] != ModeStride::Broadcast);
        let mut stride = vec![0; shape.len()];
        let mut next = 1_i64;
        for (place, mode) in unit.into_iter().chain(others).enumerate() {
            stride[mode] = next;
            let extent = match pad {
                Some(pad) if place == 0 => Some(pad).filter(|pad| *pad >= shape[mode])?,
                _ => shape[mode],
            };
            next = next.checked_mul(extent)?;
        }
        ViewLayout::strided(shape, &stride)
    }
}

/// Grids and parameter values of one launch, as a family computes them from checked views.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Geometry {
    /// Blocks of each entry of the plan, which run one after the other; `None` for an entry that has nothing to do.
    pub(crate) grids: Vec<Option<[u32; 3]>>,
    /// The parameters, in the order of the fields; whoever launches replaces that of the workspace.
    pub(crate) values: Vec<ParamValue>,
    /// Memory for what one entry leaves for the next. Where it is not 0, the field [`WORKSPACE`] holds its address.
    pub(crate) workspace: Bytes,
}

/// The field of the parameter struct that holds the address of the workspace, of type `void*`.
pub(crate) const WORKSPACE: &str = "workspace";

/// The part of a plan that only its kernel family knows.
pub(crate) trait KernelPlan: fmt::Debug + Send + Sync {
    /// The text of the `.cuh` file.
    fn header(&self, plan: &Plan) -> String;
    /// What the outputs have to be, if the family says so.
    fn computes(&self) -> Option<Computes<'_>> {
        None
    }
    /// What a launch on these views will do, if the family has a model of it.
    fn predict(&self, _: &[ViewRef]) -> Option<Prediction> {
        None
    }
    /// Whether a build fails where the compiler spills registers of this kernel.
    fn spills_denied(&self) -> bool {
        false
    }
    /// What the kernel is made of that the C++ executor does not have, if anything.
    fn needs_gpu(&self) -> Option<&'static str> {
        None
    }
    /// The grids and the parameters for views that passed the general checks.
    fn geometry(&self, plan: &Plan, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError>;
}

/// What was decided: layouts, tile, threads, registers, shared memory, grid, facts. Only [`Recipe::plan`] makes one.
///
/// `Display` prints the whole decision.
///
/// [`Recipe::plan`]: crate::recipe::Recipe::plan
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) family: &'static str,
    pub(crate) rust_type: &'static str,
    pub(crate) name: String,
    pub(crate) recipe: String,
    pub(crate) settings: Settings,
    pub(crate) targets: Targets,
    pub(crate) operands: Vec<Operand>,
    pub(crate) params: ParamStruct,
    /// The first has the name of the plan.
    pub(crate) entries: Vec<Entry>,
    pub(crate) scalars: Vec<String>,
    pub(crate) shared: Vec<SharedAnalysis>,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) facts: Vec<Fact>,
    /// What a launch computes on the host; `None` for a plan that says it in its parts.
    pub(crate) rule: Option<Rule>,
    pub(crate) kernel: Arc<dyn KernelPlan>,
    /// Where architectures have texts of their own: the plan of each text, with the targets that it serves, oldest first; what
    /// this plan says of entries, parameters and shared memory is then what the first of them says. Empty where one text serves
    /// all targets.
    pub(crate) parts: Vec<Plan>,
}

impl Plan {
    /// The kernel family, as `cutemplate list` names it.
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// The Rust type of the recipe, in [`crate::recipe`].
    pub fn rust_type(&self) -> &'static str {
        self.rust_type
    }

    /// The name of the kernel's first entry and of its files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The recipe in its `Debug` form.
    pub fn recipe(&self) -> &str {
        &self.recipe
    }

    /// The recipe as `key=value` settings, from which the same recipe can be made again.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The architectures it was checked for.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The plans of its texts: itself, or one for each group of architectures that has a text, entries and parameters of its
    /// own, oldest first. Each is compiled, loaded and launched by itself; operands and results are the same.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let plan = Gemm::default().plan(&Targets::default())?;
    /// let names: Vec<&str> = plan.parts().iter().map(|part| part.name()).collect();
    /// assert_eq!(names, ["gemm_f16_sm80", "gemm_f16_sm90a"]);
    /// assert_eq!(plan.part_on((8, 9)).map(|part| part.name()), Some(names[0]));
    /// assert_eq!(plan.part_on((9, 0)).map(|part| part.name()), Some(names[1]));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub fn parts(&self) -> &[Plan] {
        if self.parts.is_empty() { core::slice::from_ref(self) } else { &self.parts }
    }

    /// The part that a device of this compute capability runs: the newest with SASS for it, or else with PTX.
    pub fn part_on(&self, capability: (u32, u32)) -> Option<&Plan> {
        let newest = || self.parts().iter().rev();
        let sass = |part: &&Plan| part.targets.archs().iter().any(|arch| arch.sass_runs_on(capability));
        newest().find(sass).or_else(|| newest().find(|part| part.targets.run_on(capability)))
    }

    /// What the kernel is made of that the C++ executor does not have, if anything.
    pub fn needs_gpu(&self) -> Option<&'static str> {
        self.kernel.needs_gpu()
    }

    /// The tensors, in argument order.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The parameter struct.
    pub fn params(&self) -> &ParamStruct {
        &self.params
    }

    /// The `__global__` functions, in the order in which a launch runs them. The first has the name of the plan.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Threads of a block of the first entry.
    pub fn threads(&self) -> u32 {
        self.entries.first().map_or(0, |entry| entry.threads)
    }

    /// Whether a build fails where the compiler spills registers of this kernel.
    pub fn spills_denied(&self) -> bool {
        self.kernel.spills_denied()
    }

    /// Shared memory of a block of the first entry, static and dynamic.
    pub fn smem(&self) -> Bytes {
        self.entries.first().map_or(Bytes(0), Entry::shared_memory)
    }

    /// What the kernel computes, if its family says so: by this its outputs are verified.
    pub fn computes(&self) -> Option<Computes<'_>> {
        self.kernel.computes()
    }

    /// What a launch on these views will ask of the memory system, counted from the addresses of every warp; `None` where the
    /// family has no model of it. Of a plan with several [parts](Plan::parts) it is said of the first. The work grows with the number of warps: about 0.1 us each.
    ///
    /// # Errors
    /// Every view that does not fit the plan.
    pub fn predict(&self, views: &[ViewRef]) -> Result<Option<Prediction>, BindError> {
        // No scalar is 0, so that nothing is left out.
        self.bind_with(views, &vec![1.0; self.scalars.len()])?;
        Ok(self.kernel.predict(views))
    }

    /// The names of the run-time scalars, in order.
    pub fn scalars(&self) -> &[String] {
        &self.scalars
    }

    /// Decisions and counts, with their reasons.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// Its tensors in shared memory, with the passes over the banks that a block takes for one tile of each.
    pub fn shared(&self) -> &[SharedAnalysis] {
        &self.shared
    }

    /// What makes the kernel slower than it could be.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Checks the views of one launch and derives its grids and parameters.
    ///
    /// # Errors
    /// Every view that does not fit the plan, with what would.
    pub fn bind(&self, views: &[ViewRef]) -> Result<Binding, BindError> {
        self.bind_with(views, &[])
    }

    /// The same for a kernel with run-time scalars.
    ///
    /// # Errors
    /// As [`Plan::bind`]; another number of scalars than the kernel has.
    pub fn bind_with(&self, views: &[ViewRef], scalars: &[f64]) -> Result<Binding, BindError> {
        bind::check_views(self, views, scalars)?;
        let geometry = self.kernel.geometry(self, views, scalars)?;
        Ok(Binding::new(self, views, geometry)?)
    }

    /// What follows from the parameters that a launch is given, where those that follow may be any; `None` where the kernel's
    /// numbers do not reach.
    pub(crate) fn follow(&self, params: &[ParamValue]) -> Result<Option<Geometry>, Defect> {
        let rule = self.rule.as_ref();
        let rule =
            rule.ok_or_else(|| Defect::new("a plan that is launched by its parts is bound itself", &self.recipe))?;
        Ok(rule.geometry(params))
    }

    /// Views that passed the general checks are not what the family takes them for.
    pub(crate) fn unexpected_views(&self, views: &[ViewRef]) -> Defect {
        let views: Vec<String> = views.iter().map(ToString::to_string).collect();
        Defect::new(format!("{} does not know its own views: {}", self.family, views.join(", ")), &self.recipe)
    }

    /// A diagnostic about this plan's recipe.
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
            recipe: self.recipe.clone(),
            found,
            required,
            because: because.to_owned(),
            help: help.to_owned(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} for {}", self.name, self.targets)?;
        writeln!(f, "  recipe          {}", self.recipe)?;
        for o in &self.operands {
            let verb = if o.access == Access::Write { "written" } else { "read" };
            writeln!(f, "  {:15} {} with strides {}, {verb}", o.name, o.dtype, o.stride_text())?;
        }
        match &self.parts[..] {
            [] => self.write_text(f),
            parts => parts.iter().enumerate().try_for_each(|(i, part)| {
                writeln!(f, "{}{} for {}", if i == 0 { "" } else { "\n" }, part.name, part.targets)?;
                part.write_text(f)
            }),
        }
    }
}

impl Plan {
    /// What is decided for one text.
    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, entry) in self.entries.iter().enumerate() {
            let label = if i == 0 { "threads" } else { entry.function(&self.name) };
            writeln!(f, "  {label:15} {entry}")?;
            for arch in self.targets.archs() {
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
        let fields: Vec<String> = self.params.fields().iter().map(ToString::to_string).collect();
        write!(f, "  parameters      {} bytes: {}", self.params.size(), fields.join(", "))
    }
}
