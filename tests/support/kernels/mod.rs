//! Recipes with everything that a launch of them needs, drawn from a number or listed, and how they are judged.
//! What runs the kernels, executor or GPU, is the caller's.
#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

pub(crate) mod append;
pub(crate) mod apply;
pub(crate) mod attention;
pub(crate) mod gemm;
mod problem;
mod random;
pub(crate) mod sgemm;
pub(crate) mod w4a16;

use std::collections::BTreeMap;
use std::fmt;

use cutemplate::arch::Targets;
use cutemplate::diagnostic::Code;
use cutemplate::emit::{SourceFile, Unit, render};
use cutemplate::plan::Plan;
use cutemplate::recipe::Recipe;

pub(crate) use problem::{Problem, Tensors};
pub(crate) use random::Random;

/// A planned recipe and its text.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// What its problems are drawn from.
    pub(crate) index: u64,
    pub(crate) plan: Plan,
    pub(crate) unit: Unit,
}

impl Kernel {
    /// The kernel of a recipe, or why it is refused.
    pub(crate) fn new(stem: &str, index: u64, recipe: &impl Recipe, targets: &Targets) -> Result<Kernel, Refused> {
        match recipe.plan_as(&format!("{stem}_{index:04}"), targets) {
            Ok(plan) => Ok(Kernel { index, unit: render(&plan), plan }),
            Err(error) => Err(Refused(error.diagnostics().first().map(|d| d.code))),
        }
    }

    /// Its files with a change of the header, which has to be there to be changed.
    pub(crate) fn changed(&self, what: &str, from: &str, to: &str) -> Vec<SourceFile> {
        let mut files = self.unit.files().to_vec();
        let header = &mut files[0].text;
        assert!(header.contains(from), "{what}: no `{from}` in\n{header}");
        *header = header.replace(from, to);
        files
    }

    /// Problems of its own, of at most about `elements` elements, or products for a product of matrices.
    pub(crate) fn problems(&self, count: u64, elements: i64) -> impl Iterator<Item = Problem> {
        (0..count).map(move |i| Problem::drawn(&self.plan, &mut Random::new(2 + i, self.index), elements))
    }
}

/// The command that makes the kernel.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cutemplate run {}", self.plan.name(), self.plan.family())?;
        self.plan.settings().iter().try_for_each(|(key, value)| write!(f, " --set '{key}={value}'"))
    }
}

/// The first code of a refusal; a refusal without a reason is a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) Option<Code>);

/// What became of many recipes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) recipes: usize,
    pub(crate) refused: BTreeMap<Code, usize>,
    pub(crate) kernels: usize,
    pub(crate) launches: usize,
    pub(crate) elements: u64,
    /// Launches that ran in place of an input.
    pub(crate) in_place: usize,
    /// How often each word of interest was there: variants, types, ranks.
    pub(crate) seen: BTreeMap<String, usize>,
    pub(crate) failures: Vec<String>,
}

impl Tally {
    /// Plans recipes and keeps count.
    pub(crate) fn plan<R: Recipe>(
        &mut self,
        stem: &str,
        recipes: impl IntoIterator<Item = (u64, R)>,
        targets: &Targets,
    ) -> Vec<Kernel> {
        let mut kernels = Vec::new();
        for (index, recipe) in recipes {
            self.recipes += 1;
            let settings = recipe.settings();
            match Kernel::new(stem, index, &recipe, targets) {
                Ok(kernel) => {
                    self.see(&kernel);
                    kernels.push(kernel);
                }
                Err(Refused(Some(code))) => *self.refused.entry(code).or_default() += 1,
                Err(Refused(None)) => self.failures.push(format!("refused without a reason:\n{settings}")),
            }
        }
        self.kernels += kernels.len();
        kernels
    }

    fn see(&mut self, kernel: &Kernel) {
        let structure = kernel.plan.facts().iter().find(|f| f.name == "variant");
        let structure = structure.and_then(|f| f.value.split(':').next()).unwrap_or("none").to_owned();
        let rank = kernel.plan.operands().last().map_or(0, |o| o.strides.len());
        let mut types: Vec<String> = kernel.plan.operands().iter().map(|o| o.dtype.to_string()).collect();
        types.sort();
        types.dedup();
        for word in [structure, format!("rank {rank}")].into_iter().chain(types) {
            *self.seen.entry(word).or_default() += 1;
        }
    }

    /// Counts a launch and what is wrong with it.
    pub(crate) fn judge(&mut self, kernel: &Kernel, problem: &Problem, wrong: Option<String>) {
        self.launches += 1;
        self.elements += problem.size();
        self.in_place += usize::from(problem.is_in_place());
        if let Some(wrong) = wrong {
            self.failures.push(format!("{kernel}\n  {problem}\n  {wrong}"));
        }
    }

    pub(crate) fn add(&mut self, other: Tally) {
        self.launches += other.launches;
        self.elements += other.elements;
        self.in_place += other.in_place;
        self.failures.extend(other.failures);
    }

    /// Prints the counts; panics with every failure.
    pub(crate) fn finish(&self, what: &str) {
        println!("{what}: {self}");
        assert!(
            self.failures.is_empty(),
            "{} failures:\n{}\n{what}: {self}",
            self.failures.len(),
            self.failures.join("\n")
        );
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: Vec<String>| all.join(", ");
        let refused: usize = self.refused.values().sum();
        let codes = list(self.refused.iter().map(|(code, n)| format!("{code} {n}")).collect());
        let seen = list(self.seen.iter().map(|(word, n)| format!("{word} {n}")).collect());
        write!(f, "{} recipes, {refused} refused ({codes}), {} kernels ({seen}), ", self.recipes, self.kernels)?;
        let (launches, in_place, failures) = (self.launches, self.in_place, self.failures.len());
        write!(f, "{launches} launches of {} elements, {in_place} in place, {failures} failures", self.elements)
    }
}
