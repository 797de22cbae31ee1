//! The registry of kernel families. Command line, goldens, rejects, executor runs, GPU tests and docs derive from it.

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::plan::Plan;
use crate::recipe::{
    ElementwiseAdd, ElementwiseApply, Gemm, Recipe, Sgemm, elementwise_add, elementwise_apply, gemm, sgemm,
};
use crate::settings::{Setting, Settings};

/// A kernel family, without its Rust type.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line on what its kernels compute.
    pub summary: &'static str,
    /// The settings of its recipes.
    pub settings: &'static [Setting],
    /// Settings whose kernels belong to the catalogue: what `catalog` compiles and the suites run.
    pub catalogue: &'static [&'static str],
    plan: fn(&Settings, Option<&str>, &Targets) -> Result<Plan, PlanError>,
}

impl Family {
    const fn of<R: Recipe>(
        summary: &'static str,
        settings: &'static [Setting],
        catalogue: &'static [&'static str],
    ) -> Self {
        Self { name: R::FAMILY, summary, settings, catalogue, plan: plan::<R> }
    }

    /// Plans the recipe that the settings make, under `name` or the recipe's own default name.
    ///
    /// # Errors
    /// Every reason why there is no such recipe, or why it would not be a right kernel.
    pub fn plan(&self, settings: &Settings, name: Option<&str>, targets: &Targets) -> Result<Plan, PlanError> {
        (self.plan)(settings, name, targets)
    }
}

fn plan<R: Recipe>(settings: &Settings, name: Option<&str>, targets: &Targets) -> Result<Plan, PlanError> {
    let recipe = R::from_settings(settings)?;
    match name {
        Some(name) => recipe.plan_as(name, targets),
        None => recipe.plan(targets),
    }
}

/// Every kernel family.
pub const FAMILIES: &[Family] = &[
    Family::of::<ElementwiseAdd>(
        "C = A + B, elementwise, row-major matrices of any size",
        elementwise_add::SETTINGS,
        elementwise_add::CATALOGUE,
    ),
    Family::of::<ElementwiseApply>(
        "any function of 0 to 8 tensors, elementwise, with types and strides of their own",
        elementwise_apply::SETTINGS,
        elementwise_apply::CATALOGUE,
    ),
    Family::of::<Sgemm>(
        "D = epilogue(A @ B, C, ..) in f32, any extents, on every rung of the ladder",
        sgemm::SETTINGS,
        sgemm::CATALOGUE,
    ),
    Family::of::<Gemm>(
        "D = A @ B on tensor cores: f16 in, f32 accumulation, f16 or f32 out; A and B K-major",
        gemm::SETTINGS,
        gemm::CATALOGUE,
    ),
];

/// There is no family of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kernel family `{name}`; {}", match nearest {
    Some(n) => format!("did you mean `{n}`?"),
    None => format!("known are {}", FAMILIES.iter().map(|f| f.name).collect::<Vec<_>>().join(", ")),
})]
pub struct UnknownFamily {
    /// The name that was asked for.
    pub name: String,
    /// A known name that is close to it.
    pub nearest: Option<&'static str>,
}

/// The family of that name.
///
/// # Errors
/// Where there is none; the error names the nearest.
pub fn family(name: &str) -> Result<&'static Family, UnknownFamily> {
    FAMILIES.iter().find(|f| f.name == name).ok_or_else(|| {
        let nearest = FAMILIES
            .iter()
            .map(|f| (strsim::damerau_levenshtein(f.name, name), f.name))
            .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
            .min()
            .map(|(_, candidate)| candidate);
        UnknownFamily { name: name.to_owned(), nearest }
    })
}
