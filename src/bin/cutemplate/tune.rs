//! `cutemplate tune`: several recipes of a family on the same problems, against cuBLAS in the same run.

use std::path::Path;
use std::process::ExitCode;

use cutemplate::arch::Targets;
use cutemplate::build::Compiler;
use cutemplate::emit::render;
use cutemplate::launch::{AnyKernel, Gpu, Protocol, bench};
use cutemplate::plan::Plan;
use cutemplate::recipe::sgemm::{Measured, Problem, Record, choose};
use cutemplate::recipe::{Recipe, Settings, Sgemm, family};
use cutemplate::verify::Fill;
use cutlass_sys::Finder;
use serde_json::json;

use crate::args::{self, TuneArgs};
use crate::output::{Failure, Output};
use crate::product;
use crate::progress::{Fetching, while_working};

/// The recipes of a file: one a line, settings with `;` between them; `#` begins a comment.
fn of_file(path: &Path) -> Result<Vec<Settings>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::message(format_args!("{}: {e}", path.display())))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
    Ok(lines.map(|line| Settings::parse_lines(&line.replace(';', "\n"))).collect())
}

/// The recipes to try on a problem: those of the file, else those that the model chooses from.
fn candidates(args: &TuneArgs, problem: &Problem) -> Result<Vec<Settings>, Failure> {
    let mut all = match &args.candidates {
        Some(path) => of_file(path)?,
        None => choose::candidates(problem).iter().map(Recipe::settings).collect(),
    };
    for settings in &mut all {
        for (key, value) in [("a", problem.a), ("b", problem.b)] {
            settings.set(key, value.to_string());
        }
    }
    Ok(all)
}

/// Plans that are tried on any problem, each once, and which of them on which.
struct Trials {
    plans: Vec<Plan>,
    of: Vec<(args::Problem, Vec<usize>)>,
}

fn trials(args: &TuneArgs, out: &Output) -> Result<Trials, Failure> {
    let targets = Targets::new(args.arch.iter().copied()).unwrap_or_default();
    let family = family(&args.kernel)?;
    let mut known: Vec<(Settings, Option<usize>)> = Vec::new();
    let mut trials = Trials { plans: Vec::new(), of: Vec::new() };
    for problem in &args.problem {
        let [m, n, k] = product::extents(problem)?;
        let mut chosen = Vec::new();
        for settings in candidates(args, &Problem { m, n, k, a: args.a, b: args.b })? {
            let index = match known.iter().find(|(other, _)| *other == settings) {
                Some((_, index)) => *index,
                None => {
                    let name = format!("candidate_{:03}", known.len());
                    let index = match family.plan(&settings, Some(&name), &targets) {
                        Ok(plan) => {
                            trials.plans.push(plan);
                            Some(trials.plans.len() - 1)
                        }
                        Err(refused) => {
                            out.text(format_args!("{name} is refused:\n{refused}"));
                            None
                        }
                    };
                    known.push((settings, index));
                    index
                }
            };
            chosen.extend(index);
        }
        trials.of.push((problem.clone(), chosen));
    }
    Ok(trials)
}

pub(crate) fn run(args: &TuneArgs, out: &Output) -> Result<ExitCode, Failure> {
    let gpu = Gpu::find().map_err(|none| Failure::message(format_args!("tuning needs a GPU; {none}")))?;
    let Trials { plans, of } = trials(args, out)?;
    let compiler = Compiler::new(&Finder::from_env(), &mut Fetching::new(out)).map_err(Failure::message)?;
    let units: Vec<_> = plans.iter().map(|plan| (render(plan), plan.targets().clone())).collect();
    let what = format!("nvcc compiles {} candidates, unless the store has them", units.len());
    let compiled = while_working(out, &what, || compiler.compile_all(&units));
    let mut kernels = Vec::new();
    for (plan, compiled) in plans.into_iter().zip(compiled) {
        let compiled = compiled.map_err(Failure::message)?;
        kernels.push(AnyKernel::load(&gpu, plan, &compiled.fatbin).map_err(Failure::message)?);
    }
    let protocol = Protocol { timings: args.timings, ..Protocol::default() };
    let mut record = Record { device: gpu.name().to_owned(), rows: Vec::new() };
    for (problem, chosen) in &of {
        let kernels: Vec<&AnyKernel> = chosen.iter().map(|index| &kernels[*index]).collect();
        let Some(first) = kernels.first() else { return Err(Failure::message("no candidate is left")) };
        let layouts = product::layouts(first.plan(), problem)?;
        // alpha = 1, beta = 0.
        let scalars: Vec<f64> = first.plan().scalars().iter().map(|s| f64::from(s != "beta")).collect();
        let how = bench::How { graph: !args.one_by_one, warm: args.warm };
        let inputs = (Fill::Normal, args.seed);
        let report =
            bench::products(&gpu, &kernels, &layouts, &scalars, inputs, how, &protocol).map_err(Failure::message)?;
        out.text(&report);
        out.object(json!({ "tune": report }));
        record.rows.extend(fastest(&report));
    }
    if let Some(path) = &args.record {
        cutemplate::build::write_if_changed(path, record.to_string().as_bytes())
            .map_err(|e| Failure::message(format_args!("{}: {e}", path.display())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The fastest recipe of a report, as a row of a record.
fn fastest(report: &bench::ProductReport) -> Option<Measured> {
    let row = report.kernels.iter().min_by(|x, y| x.seconds.total_cmp(&y.seconds))?;
    let recipe = Sgemm::from_settings(&Settings::parse_lines(&row.settings)).ok()?;
    let [m, n, k, _] = report.problem.map(|extent| extent.unsigned_abs());
    let problem = Problem { m, n, k, a: recipe.a, b: recipe.b };
    Some(Measured { problem, recipe, tflop_per_s: row.tflop_per_s, ratio: row.ratio })
}
