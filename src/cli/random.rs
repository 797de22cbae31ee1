//! `cutemplate bench --random`: many problems, each by the recipe that is chosen for it.

use std::process::ExitCode;

use cutemplate::launch::Gpu;
use cutemplate::model::Machine;
use cutemplate::plan::{Plan, ProblemShape};
use cutemplate::recipe::{Family, product};
use cutemplate::settings::Settings;
use serde_json::json;

use crate::cli::args::{BenchArgs, Problem};
use crate::cli::lab::{self, ProductReport, Ratios};
use crate::cli::output::{Failure, Output, counted};
use crate::cli::product::{Measurement, Trials, machine};

/// Problems that are named with the summary, the slowest of all.
const SLOWEST: usize = 10;

/// Measures that many problems and prints statistics of their ratios.
pub(crate) fn run(
    args: &BenchArgs,
    family: &Family,
    count: u32,
    measurement: &Measurement<'_>,
    gpu: Result<Gpu, Failure>,
    out: &Output,
) -> Result<ExitCode, Failure> {
    let usual = args.kernel.plan_of(family, &args.kernel.settings()?, None, out)?;
    let chosen_for = machine(gpu.as_ref().ok(), usual.targets());
    let problems = lab::random_problems(count, args.seed, args.spread);
    let trials = trials(family, &usual, &args.kernel.settings()?, &problems, &chosen_for, |settings, name| {
        args.kernel.plan_of(family, settings, Some(name), out)
    })?;
    let (gpu, recipes) = (gpu?, trials.plans.len());
    out.text(format_args!(
        "{} by {}",
        counted(count.into(), "problem", "problems"),
        counted(recipes as u64, "recipe", "recipes")
    ));
    let reports = measurement.run(&gpu, trials, "bench", out)?;
    let wrong = reports.iter().filter(|report| !report.wrong.is_empty()).count();
    let mut timed: Vec<(f64, &ProductReport)> =
        reports.iter().filter_map(|report| Some((report.kernels.first()?.ratio, report))).collect();
    timed.sort_by(|(x, _), (y, _)| x.total_cmp(y));
    if let Some(ratios) = Ratios::of(timed.iter().map(|(ratio, _)| *ratio)) {
        out.text(format_args!(
            "{} right of {count}: ratio {:.4} in the geometric mean, {:.4} at the 5th percentile, the slowest",
            ratios.count, ratios.geometric_mean, ratios.percentile_5
        ));
        for (ratio, report) in timed.iter().take(SLOWEST) {
            let [m, n, k, _] = report.problem;
            out.text(format_args!("  {ratio:.4}  {m}x{n}x{k}  {}", report.kernels[0].kernel));
        }
        out.object(json!({ "random": { "recipes": recipes, "seed": args.seed, "spread": args.spread, "wrong": wrong, "ratios": ratios } }));
    }
    Ok(if wrong == 0 && timed.len() == count as usize { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Each problem with the recipe that the family chooses for it, changed as the arguments say.
fn trials(
    family: &Family,
    usual: &Plan,
    given: &Settings,
    problems: &[[i64; 3]],
    machine: &Machine,
    plan: impl Fn(&Settings, &str) -> Result<Plan, Failure>,
) -> Result<Trials, Failure> {
    let batched = usual.problem_shape().is_some_and(ProblemShape::is_batched);
    let none = || Failure::message(format_args!("--random: `{}` chooses no recipe by problem", family.name));
    if batched {
        return Err(Failure::message("--random: found batched=true, required problems MxNxK"));
    }
    let mut known: Vec<(Settings, Plan)> = Vec::new();
    let mut trials = Trials::default();
    for extents in problems {
        let problem = product::Problem::of(usual, extents.map(i64::unsigned_abs));
        let settings = problem.and_then(|problem| family.chosen(&problem, machine, given)).ok_or_else(none)??;
        let plan = match known.iter().find(|(other, _)| *other == settings) {
            Some((_, plan)) => plan.clone(),
            None => {
                let plan = plan(&settings, &format!("chosen_{:02}", known.len()))?;
                known.push((settings, plan.clone()));
                plan
            }
        };
        trials.add(&Problem(extents.to_vec()), [plan]);
    }
    Ok(trials)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutemplate::arch::{Arch, Targets};
    use cutemplate::model::H200;
    use cutemplate::recipe::family;

    #[test]
    fn many_problems_share_few_recipes() {
        let gemm = family("gemm").expect("there is one");
        let plan = |settings: &Settings, name: Option<&str>| gemm.plan(settings, name, &Targets::default());
        let given = Settings::parse_lines("out=f32");
        let usual = plan(&given, None).expect("a right recipe");
        let problems = lab::random_problems(200, 1, lab::Spread::Log);
        let trials = trials(gemm, &usual, &given, &problems, &H200, |settings, name| Ok(plan(settings, Some(name))?));
        let trials = trials.expect("each has a recipe");
        assert_eq!(trials.of.len(), 200);
        assert!((2..=40).contains(&trials.plans.len()), "{} recipes", trials.plans.len());
        assert!(trials.plans.iter().all(|plan| plan.settings().get("out") == Some("f32")));
        // Tiles follow the factors' type.
        for given in ["dtype=tf32", "dtype=bf16\nb=row", "dtype=tf32\na=col"].map(Settings::parse_lines) {
            let usual = plan(&given, None).expect("a right recipe");
            let named = |settings: &Settings, name: &str| Ok(plan(settings, Some(name))?);
            let trials = self::trials(gemm, &usual, &given, &problems, &H200, named).expect("each has a recipe");
            let dtype = given.get("dtype");
            assert!(trials.plans.iter().all(|plan| plan.settings().get("dtype") == dtype), "{given}");
            let trials = self::trials(gemm, &usual, &given, &problems[..20], &Machine::of(Arch::Sm80), named);
            let recipes = trials.expect("each has a recipe").plans.len();
            assert!((2..=14).contains(&recipes), "{given}: {recipes} recipes for sm_80");
        }
        // A problem of the record has its recipe.
        let known = [[8192, 8192, 128]];
        let one = self::trials(gemm, &usual, &given, &known, &H200, |settings, name| Ok(plan(settings, Some(name))?));
        let one = one.expect("it has a recipe");
        assert_eq!(one.plans[0].settings().get("schedule"), Some("pingpong"));
    }
}
