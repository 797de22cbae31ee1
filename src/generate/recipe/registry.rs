//! The registry of kernel families. Command line, goldens, rejects, executor runs, GPU tests and docs derive from it.

use crate::arch::Targets;
use crate::diagnostic::{PlanError, debug_as_display};
use crate::model::Machine;
use crate::near;
use crate::plan::Plan;
use crate::recipe::product::{Problem, Record};
use crate::recipe::{Append, Attention, ElementwiseAdd, ElementwiseApply, Gemm, Recipe, Rows, Sgemm, Sum, TopK, W4a16};
use crate::settings::{Setting, Settings};

/// Every kernel family.
pub const FAMILIES: &[Family] = &[
    Family::of::<ElementwiseAdd>(),
    Family::of::<ElementwiseApply>(),
    Family::of::<Sgemm>(),
    Family::of::<Gemm>(),
    Family::of::<Sum>(),
    Family::of::<Rows>(),
    Family::of::<TopK>(),
    Family::of::<Attention>(),
    Family::of::<Append>(),
    Family::of::<W4a16>(),
];

/// All settings of a recipe, or why there is none.
type Completed = Result<Settings, PlanError>;

/// A kernel family without its Rust type: the properties of its [`Recipe`].
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line on the function of its kernels.
    pub summary: &'static str,
    /// The settings of its recipes.
    pub settings: &'static [Setting],
    /// Settings whose kernels belong to the catalogue: what `catalog` compiles and the suites run.
    pub catalogue: &'static [&'static str],
    /// The problem that its kernels are usually measured on.
    pub problem: &'static [i64],
    /// The rungs of its ladder: values of the setting `variant`.
    pub rungs: &'static [&'static str],
    /// Whether its expressions have [`crate::expr::row_functions`] too.
    pub reduces_rows: bool,
    /// Arguments of the command line that show it at work, behind a command and its name.
    pub examples: &'static [(&'static str, &'static str)],
    plan: fn(&Settings, Option<&str>, &Targets) -> Result<Plan, PlanError>,
    usual_targets: fn(&Settings) -> Targets,
    complete: fn(&Settings) -> Completed,
    candidates: fn(&Problem, &Machine, &Settings) -> Result<Vec<Settings>, PlanError>,
    chosen: fn(&Problem, &Machine, &Record, &Settings) -> Option<Completed>,
    record: fn() -> Option<Record>,
}

impl PartialEq for Family {
    /// A name stands for one family.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Family {
    /// The family of a recipe type.
    pub const fn of<R: Recipe>() -> Self {
        Self {
            name: R::FAMILY,
            summary: R::SUMMARY,
            settings: R::SETTINGS,
            catalogue: R::CATALOGUE,
            problem: R::PROBLEM,
            rungs: R::RUNGS,
            reduces_rows: R::REDUCES_ROWS,
            examples: R::EXAMPLES,
            plan: plan::<R>,
            usual_targets: |settings| {
                R::from_settings(settings).map(|recipe| recipe.usual_targets()).unwrap_or_default()
            },
            complete: |settings| R::from_settings(settings).map(|recipe| recipe.settings()),
            candidates: candidates::<R>,
            chosen: |problem, machine, record, given| {
                R::chosen_with(problem, machine, record, given).map(|recipe| recipe.map(|recipe| recipe.settings()))
            },
            record: R::record,
        }
    }

    /// Plans the recipe that the settings make, under `name` or the recipe's own default name.
    ///
    /// # Errors
    /// Every reason why the recipe does not exist, or why its kernel would be wrong.
    pub fn plan(&self, settings: &Settings, name: Option<&str>, targets: &Targets) -> Result<Plan, PlanError> {
        (self.plan)(settings, name, targets)
    }

    /// The same under the default name, for the architectures of [`Family::usual_targets`].
    ///
    /// # Errors
    /// As [`Family::plan`].
    pub fn usual_plan(&self, settings: &Settings) -> Result<Plan, PlanError> {
        self.plan(settings, None, &self.usual_targets(settings))
    }

    /// The architectures that the recipe of these settings is planned for where none are asked for: [`Recipe::usual_targets`].
    pub fn usual_targets(&self, settings: &Settings) -> Targets {
        (self.usual_targets)(settings)
    }

    /// All settings of the recipe that these make.
    ///
    /// # Errors
    /// Unknown keys, and values that cannot be read.
    pub fn complete(&self, settings: &Settings) -> Result<Settings, PlanError> {
        (self.complete)(settings)
    }

    /// The settings without those that the recipe has anyway.
    ///
    /// ```
    /// use cutemplate::recipe::family;
    /// use cutemplate::settings::Settings;
    ///
    /// let add = family("elementwise_add")?;
    /// let told = |text| add.brief(&Settings::parse_lines(text)).to_string();
    /// assert_eq!(told("dtype=f16\nraster=m\nvector=16"), "raster=m");
    /// # Ok::<(), cutemplate::recipe::UnknownFamily>(())
    /// ```
    #[must_use]
    pub fn brief(&self, settings: &Settings) -> Settings {
        let whole = self.complete(settings).ok();
        let mut told = settings.clone();
        for (key, _) in settings.iter() {
            let rest = told.without(key);
            if whole.is_some() && self.complete(&rest).ok() == whole {
                told = rest;
            }
        }
        told
    }

    /// The recipes that are tried where the fastest for a product of matrices is looked for, with the settings that are given; none
    /// where the family's recipes are not chosen by problem.
    ///
    /// # Errors
    /// Given keys that are unknown, and values that cannot be read.
    pub fn candidates(
        &self,
        problem: &Problem,
        machine: &Machine,
        given: &Settings,
    ) -> Result<Vec<Settings>, PlanError> {
        (self.candidates)(problem, machine, given)
    }

    /// The recipe for a problem, by what was measured and shipped, else by the family's model, of those that are kernels with the
    /// settings that are given; `None` where there is no choice.
    ///
    /// # Errors
    /// Given keys that are unknown, values that cannot be read, and why no choice is a kernel with them.
    ///
    /// ```
    /// use cutemplate::model::H200;
    /// use cutemplate::recipe::family;
    /// use cutemplate::recipe::product::{Major, Problem};
    /// use cutemplate::settings::Settings;
    ///
    /// let problem = Problem { b: Major::Col, ..Problem::rows(4096, 4096, 4096) };
    /// let given = Settings::parse_lines("dtype=tf32");
    /// let chosen = family("gemm")?.chosen(&problem, &H200, &given).expect("products have a choice")?;
    /// // Of elements twice as wide a k-tile has half as many.
    /// assert_eq!(chosen.get("tile"), Some("128x256x32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chosen(
        &self,
        problem: &Problem,
        machine: &Machine,
        given: &Settings,
    ) -> Option<Result<Settings, PlanError>> {
        let record = self.record().unwrap_or_else(|| Record::new(self, machine.name));
        (self.chosen)(problem, machine, &record, given)
    }

    /// Measurements of the candidates that ship with the crate.
    pub fn record(&self) -> Option<Record> {
        (self.record)()
    }
}

fn candidates<R: Recipe>(problem: &Problem, machine: &Machine, given: &Settings) -> Result<Vec<Settings>, PlanError> {
    let all = R::candidates(problem, machine).into_iter();
    all.map(|recipe| recipe.with_settings(given).map(|recipe| recipe.settings())).collect()
}

fn plan<R: Recipe>(settings: &Settings, name: Option<&str>, targets: &Targets) -> Result<Plan, PlanError> {
    let recipe = R::from_settings(settings)?;
    match name {
        Some(name) => recipe.plan_as(name, targets),
        None => recipe.plan(targets),
    }
}

/// The error for an unknown family.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no kernel family `{name}`; {}", match nearest {
    Some(n) => format!("did you mean `{n}`?"),
    None => format!("known are {}", known.join(", ")),
})]
pub struct UnknownFamily {
    /// The name that was asked for.
    pub name: String,
    /// A known name that is close to it.
    pub nearest: Option<&'static str>,
    /// All known names.
    pub known: Vec<&'static str>,
}

debug_as_display!(UnknownFamily);

/// The family of that name.
///
/// # Errors
/// Where there is none; the error names the nearest.
pub fn family(name: &str) -> Result<&'static Family, UnknownFamily> {
    family_of(FAMILIES, name)
}

/// The one of these families that has the name.
pub(crate) fn family_of<'a>(families: &'a [Family], name: &str) -> Result<&'a Family, UnknownFamily> {
    families.iter().find(|f| f.name == name).ok_or_else(|| {
        let known: Vec<&str> = families.iter().map(|f| f.name).collect();
        UnknownFamily { name: name.to_owned(), nearest: near::nearest(name, known.iter().copied()), known }
    })
}
