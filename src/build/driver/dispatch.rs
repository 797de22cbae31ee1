//! Several kernels of one product, and which of them serves which problem.

use super::config::{Asked, Config, Planner};
use crate::diagnostic::{Code, Diagnostic, PlanError, Severity};
use crate::model::Machine;
use crate::plan::{Operand, Plan};
use crate::recipe::product::{Problem, Record, dispatch_module};
use crate::recipe::{Family, Recipe};
use crate::settings::Settings;

/// Which kernel for which problem.
pub(super) struct Dispatch {
    pub(super) name: String,
    /// Where the choice comes from.
    by: String,
    rows: Vec<(Problem, String)>,
}

impl Config {
    /// Adds the kernels of a record of measurements, called `<name>_0` and so on, and a module `name` whose `select` gives the
    /// one for a problem. [`Config::dispatch_by_model`] needs no record.
    ///
    /// # Examples
    /// ```no_run
    /// // build.rs; product::select(&Problem::rows(m, n, k)) then names the kernel.
    /// use cutemplate::{build::Config, recipe::{Recipe, Sgemm}};
    /// let record = Sgemm::record().expect("it was measured on an H200");
    /// Config::new().dispatch("product", &record).compile();
    /// ```
    #[must_use]
    pub fn dispatch(self, name: &str, record: &Record) -> Config {
        let rows = record.rows.iter().map(|row| (row.problem, Ok(row.settings.clone()))).collect();
        self.dispatch_rows(name, format!("measured on {}", record.device), *record.family(), rows)
    }

    /// Adds the kernels that a recipe's family chooses for these problems on a machine, and a module `name` whose `select` gives
    /// the one for a problem. The types, the epilogue and the auxiliary tensors are the recipe's. A and B lie as the problem says. Tiles,
    /// stages and the like are chosen by the record that ships, else by the model. Problems that get the same recipe share a kernel.
    ///
    /// # Examples
    /// ```no_run
    /// // build.rs: one product with a bias and gelu, for large and for flat problems
    /// use cutemplate::build::Config;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::model::H200;
    /// use cutemplate::recipe::Gemm;
    /// use cutemplate::recipe::product::{Major, Problem};
    ///
    /// let recipe = Gemm::of(DType::Bf16).expect("tensor cores have it").bias(|x| x.gelu());
    /// let problem = |m| Problem { b: Major::Col, ..Problem::rows(m, 4096, 4096) };
    /// Config::new().dispatch_by_model("mlp", &recipe, &H200, &[16, 256, 8192].map(problem)).compile();
    /// ```
    #[must_use]
    pub fn dispatch_by_model<R: Recipe>(
        self,
        name: &str,
        recipe: &R,
        machine: &Machine,
        problems: &[Problem],
    ) -> Config {
        let family = Family::of::<R>();
        // What the recipe says beside what is chosen; the problem says how A and B lie.
        let given = family.brief(&recipe.settings()).without("a").without("b");
        let chosen = |problem: &Problem| {
            let none = || Err(no_choice(R::FAMILY));
            (*problem, family.chosen(problem, machine, &given).unwrap_or_else(none))
        };
        let rows = problems.iter().map(chosen).collect();
        self.dispatch_rows(name, format!("chosen for {}", machine.name), family, rows)
    }

    fn dispatch_rows(
        mut self,
        name: &str,
        by: String,
        family: Family,
        chosen: Vec<(Problem, Result<Settings, PlanError>)>,
    ) -> Config {
        let mut recipes: Vec<Result<Settings, PlanError>> = Vec::new();
        let mut rows = Vec::new();
        for (problem, settings) in chosen {
            let index = recipes.iter().position(|known| *known == settings).unwrap_or_else(|| {
                recipes.push(settings);
                recipes.len() - 1
            });
            rows.push((problem, format!("{name}_{index}")));
        }
        for (index, settings) in recipes.into_iter().enumerate() {
            let kernel = format!("{name}_{index}");
            let identity = settings
                .as_ref()
                .ok()
                .map(|settings| (family.name, family.complete(settings).unwrap_or_else(|_| settings.clone())));
            let planner: Planner = Box::new({
                let kernel = kernel.clone();
                move |targets| family.plan(settings.as_ref().map_err(Clone::clone)?, Some(&kernel), targets)
            });
            self.ask(&kernel, identity, planner);
        }
        self.dispatches.push(Dispatch { name: name.to_owned(), by, rows });
        self
    }

    /// The modules that choose a kernel for a problem.
    pub(super) fn dispatch_texts(&self) -> impl Iterator<Item = String> {
        self.dispatches.iter().map(|dispatch| {
            let Dispatch { name, by, rows } = dispatch;
            let text = dispatch_module(name, by, rows, self.takes_the_same(rows));
            text.replace("::cutemplate", &self.root)
        })
    }

    /// Whether the kernels take the same arguments: tensors of the same types in the same order, and the same scalars.
    fn takes_the_same(&self, rows: &[(Problem, String)]) -> bool {
        let targets = self.targets();
        let is_row = |asked: &&Asked| rows.iter().any(|(_, kernel)| *kernel == asked.name);
        let arguments = |plan: &Plan| {
            let of = |operand: &Operand| (operand.name, operand.dtype, operand.access);
            (plan.operands().iter().map(of).collect::<Vec<_>>(), plan.scalars().to_vec())
        };
        let mut all =
            self.kernels.iter().filter(is_row).map(|asked| (asked.planner)(&targets).ok().as_ref().map(arguments));
        let first = all.next().flatten();
        first.is_some() && all.all(|other| other == first)
    }
}

fn no_choice(family: &str) -> PlanError {
    Diagnostic {
        severity: Severity::Error,
        code: Code::Family,
        kernel: None,
        recipe: family.to_owned(),
        found: "problems to choose a recipe for".into(),
        required: "a family of matrix products with a model or a record: gemm, sgemm".into(),
        because: "other families have one recipe for every problem".into(),
        help: "Config::recipe".into(),
    }
    .into()
}
