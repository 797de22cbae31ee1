//! Recipes: the user's description of a kernel. One folder or file per kernel family, and the registry that everything
//! else derives from.

pub mod append;
pub mod attention;
pub mod elementwise_add;
pub mod elementwise_apply;
pub mod field;
pub mod gemm;
mod isa;
mod names;
pub mod product;
mod raster;
pub mod reader;
mod registry;
pub mod rows;
pub mod sgemm;
pub mod sum;
mod tensor_args;
mod tensor_spec;
pub mod top_k;
pub mod w4a16;

use core::fmt;

pub use append::Append;
pub use attention::Attention;
pub use elementwise_add::ElementwiseAdd;
pub use elementwise_apply::ElementwiseApply;
pub use gemm::Gemm;
pub(crate) use isa::Isa;
pub use names::Names;
pub use raster::Raster;
#[cfg(feature = "bundle")]
pub(crate) use registry::family_of;
pub use registry::{FAMILIES, Family, UnknownFamily, family};
pub use rows::Rows;
pub use sgemm::Sgemm;
pub use sum::Sum;
pub use tensor_args::{OfTensors, TensorArgs};
pub use tensor_spec::{SpecError, TensorSpec};
pub use top_k::TopK;
pub use w4a16::W4a16;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::model::Machine;
use crate::plan::{Call, Draft, ParamStruct, Plan, Rule};
use crate::recipe::field::Fields;
use crate::recipe::product::{Measured, Problem, Record};
use crate::recipe::reader::Reader;
use crate::settings::{Setting, Settings};

/// A name that a kernel may have: of a long one the begin, and a digest of all of it.
fn shortened(name: String) -> String {
    const MOST: usize = 64;
    if name.len() <= MOST {
        return name;
    }
    let digest = crate::digest::Digest::of(name.as_bytes()).to_string();
    let begin: Vec<&str> = name
        .split('_')
        .scan(0, |end, part| {
            *end += part.len() + 1;
            (*end + 8 <= MOST).then_some(part)
        })
        .collect();
    format!("{}_{}", begin.join("_"), &digest[..8])
}

/// A kernel recipe: a plain, printable struct that a plan can be made of. Implemented for ours and for those of other crates.
pub trait Recipe: Fields + fmt::Debug + Clone + PartialEq + Send + Sync + Sized + 'static {
    /// The name of the kernel family, as in [`FAMILIES`].
    const FAMILY: &'static str;

    /// The name of this type in [`crate::recipe`](mod@crate::recipe), or for a family of another crate its path: `my_kernels::Gated`.
    const RUST_TYPE: &'static str;

    /// One line on the function of its kernels.
    const SUMMARY: &'static str;

    /// The settings of its recipes.
    const SETTINGS: &'static [Setting];

    /// Settings whose kernels belong to the catalogue: what `catalog` compiles and the suites run.
    const CATALOGUE: &'static [&'static str];

    /// The problem that its kernels are usually measured on, its extents as [`crate::plan::ProblemShape::extents`] names them.
    const PROBLEM: &'static [i64];

    /// The rungs of its ladder, the lowest first: values of the setting `variant`.
    const RUNGS: &'static [&'static str] = &[];

    /// Whether its expressions may reduce rows: whether they have [`crate::expr::row_functions`] too.
    const REDUCES_ROWS: bool = false;

    /// Arguments of the command line that show it at work, behind a command and the family's name: `("run", "--problem 3x5")`.
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[];

    /// Runs every check and decides everything. `name` becomes the name of the kernel and of its files.
    ///
    /// # Errors
    /// Every reason why the recipe would not be a right kernel.
    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError>;

    /// The same under the recipe's default name; of a name over 64 letters the begin, and a digest of all of it.
    ///
    /// # Errors
    /// As [`Recipe::plan_as`].
    fn plan(&self, targets: &Targets) -> Result<Plan, PlanError> {
        self.plan_as(&shortened(self.default_name()), targets)
    }

    /// The architectures that it is planned for where none are asked for: those of [`Targets::default`] that it has instructions on.
    ///
    /// ```
    /// use cutemplate::arch::{Arch, Targets};
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let floats_of_8_bits = Gemm::of(DType::E4m3)?;
    /// assert!(floats_of_8_bits.plan(&Targets::default()).is_err(), "sm_80 has no such tensor cores");
    /// let plan = floats_of_8_bits.plan(&floats_of_8_bits.usual_targets())?;
    /// assert_eq!(plan.targets().archs(), [Arch::Sm90a]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn usual_targets(&self) -> Targets {
        Targets::default()
    }

    /// A name that tells the family and the main choices: `elementwise_add_f16`.
    fn default_name(&self) -> String;

    /// The recipe with the given settings; the rest keeps its default.
    ///
    /// # Errors
    /// Unknown keys, with the nearest known one, and values that cannot be read; all at once.
    fn from_settings(settings: &Settings) -> Result<Self, PlanError> {
        let mut reader = Reader::new(Self::FAMILY, Self::SETTINGS, settings);
        let mut recipe = Self::base(&mut reader);
        recipe.read_fields(&mut reader);
        reader.finish().map(|()| recipe)
    }

    /// The recipe that the settings change, where some of them choose the defaults of others.
    #[doc(hidden)]
    fn base(reader: &mut Reader<'_>) -> Self {
        Self::default().retyped(reader)
    }

    /// The same recipe for the types that the settings name, where others depend on them.
    #[doc(hidden)]
    fn retyped(self, _: &mut Reader<'_>) -> Self {
        self
    }

    /// The problem of the types that candidates are measured in which takes as long as this one in the recipe's.
    #[doc(hidden)]
    fn as_measured(&self, problem: &Problem) -> Problem {
        *problem
    }

    /// Whether what is fastest for the other recipe, but for tiles and their like, is measured for this one, too.
    #[doc(hidden)]
    fn is_measured_with(&self, _: &Self) -> bool {
        true
    }

    /// All settings, from which [`Recipe::from_settings`] makes the same recipe.
    fn settings(&self) -> Settings {
        self.written()
    }

    /// The recipes that are tried where the fastest for a product of matrices is looked for; none where the family's recipes are
    /// not chosen by problem.
    fn candidates(_: &Problem, _: &Machine) -> Vec<Self> {
        Vec::new()
    }

    /// The candidates with the seconds that the family's model expects of each, the fastest first.
    fn expected(_: &Problem, _: &Machine) -> Vec<(Self, f64)> {
        Vec::new()
    }

    /// A recorded recipe for a similar problem is chosen even if the model expects it to be this many times slower than
    /// the best candidate. It is the model's error where all candidates were measured.
    const DOUBT: f64 = 1.0;

    /// Measurements of the candidates that ship with the crate.
    fn record() -> Option<Record> {
        None
    }

    /// The recipe for a problem. It is that of the most similar problem in this family's record, if no extent differs
    /// by more than a factor of 2. Tiles of one problem may not divide another. So the model's best candidate is chosen
    /// instead if it is expected to be faster by more than [`Recipe::DOUBT`], or if the record has no similar problem.
    fn chosen(problem: &Problem, machine: &Machine, record: &Record) -> Option<Self> {
        Self::choices(&Self::default(), problem, machine, record).into_iter().next()
    }

    /// The choices for a product of the types of `typed`: the chosen recipe, the one that would be chosen without it, and so on. A
    /// recorded recipe of like types comes before those of the family's usual ones.
    #[doc(hidden)]
    fn choices(typed: &Self, problem: &Problem, machine: &Machine, record: &Record) -> Vec<Self> {
        let is_of_machine = record.arch.is_none_or(|arch| arch == machine.arch);
        let own = Some(record).filter(|record| record.family().name == Self::FAMILY && is_of_machine);
        let usual = typed.as_measured(problem);
        let alike = |kind: &Self, problem: &Problem| {
            let read = |row: &Measured| Self::from_settings(&row.settings).ok();
            let rows = own?.only(|row| read(row).is_some_and(|recipe| kind.is_measured_with(&recipe)));
            let row = rows.alike(problem)?;
            Some((row.problem == *problem, read(row)?))
        };
        let measured = alike(typed, problem).or_else(|| alike(&Self::default(), &usual));
        let expected = Self::expected(&usual, machine);
        let slower = |recipe: &Self| {
            let of = expected.iter().find(|(candidate, _)| candidate == recipe)?.1;
            Some(of > Self::DOUBT * expected.first()?.1)
        };
        let first = measured.filter(|(same, recipe)| *same || slower(recipe) != Some(true));
        first.map(|(_, recipe)| recipe).into_iter().chain(expected.into_iter().map(|(recipe, _)| recipe)).collect()
    }

    /// The recipe for a problem as [`Recipe::chosen`] says, of those that are kernels with the settings that are given; `None` where
    /// there is no choice.
    ///
    /// # Errors
    /// As [`Recipe::from_settings`]; and why no choice is a kernel with these settings.
    fn chosen_with(
        problem: &Problem,
        machine: &Machine,
        record: &Record,
        given: &Settings,
    ) -> Option<Result<Self, PlanError>> {
        let mut reader = Reader::new(Self::FAMILY, Self::SETTINGS, given);
        let mut typed = Self::base(&mut reader);
        // What cannot be read is told for each choice.
        typed.read_fields(&mut reader);
        let mut first = None;
        for choice in Self::choices(&typed, problem, machine, record) {
            let planned = choice.with_settings(given).and_then(|recipe| {
                let of_machine = Targets::new([machine.arch]).unwrap_or_default();
                recipe.plan(&of_machine).map(|_| recipe)
            });
            match planned {
                Ok(recipe) => return Some(Ok(recipe)),
                Err(refused) => first = first.or(Some(refused)),
            }
        }
        first.map(Err)
    }

    /// The same recipe but for the given settings, and for what depends on the types that they name.
    ///
    /// # Errors
    /// As [`Recipe::from_settings`].
    fn with_settings(self, given: &Settings) -> Result<Self, PlanError> {
        let mut reader = Reader::new(Self::FAMILY, Self::SETTINGS, given);
        let mut recipe = self.retyped(&mut reader);
        recipe.read_fields(&mut reader);
        reader.finish().map(|()| recipe)
    }
}

impl Draft {
    /// The draft of a recipe, without operands, parameters, entries, scalars and rule.
    pub fn of<R: Recipe>(recipe: &R, name: &str, targets: &Targets) -> Self {
        Self {
            family: R::FAMILY,
            rust_type: R::RUST_TYPE,
            name: name.to_owned(),
            recipe: format!("{recipe:?}"),
            settings: recipe.settings(),
            targets: targets.clone(),
            operands: Vec::new(),
            params: ParamStruct::default(),
            entries: Vec::new(),
            scalars: Vec::new(),
            problem: None,
            call: Call::default(),
            rule: Rule::default(),
        }
    }
}
