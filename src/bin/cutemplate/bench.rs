//! `cutemplate bench`: the rate of a kernel, and its ratio to a device copy or to cuBLAS in the same run.

use std::process::ExitCode;

use cutemplate::launch::{Gpu, Protocol, bench};
use cutemplate::model::H200;
use cutemplate::plan::Plan;
use cutemplate::recipe::sgemm::{Record, Variant};
use cutemplate::recipe::{Recipe, Sgemm};
use cutemplate::settings::Settings;
use cutemplate::verify::Fill;
use serde_json::json;

use crate::args::{BenchArgs, Problem};
use crate::device;
use crate::output::{Failure, Output};
use crate::product::{self, Measurement, Trials};
use crate::run;

fn gpu() -> Result<Gpu, Failure> {
    Gpu::find().map_err(|none| Failure::message(format_args!("a bench needs a GPU; {none}")))
}

/// The problems that were asked for, else this one.
fn problems(args: &BenchArgs, usual: &[i64]) -> Vec<Problem> {
    if args.problem.is_empty() { vec![Problem(usual.to_vec())] } else { args.problem.clone() }
}

pub(crate) fn run(args: &BenchArgs, out: &Output) -> Result<ExitCode, Failure> {
    if args.kernel.kernel == Sgemm::FAMILY {
        return products(args, out);
    }
    if args.ladder || !args.variant.is_empty() {
        let found = if args.ladder { "--ladder" } else { "--variant" };
        return Err(Failure::message(format_args!("{found}: the rungs are those of `sgemm`")));
    }
    let plan = args.kernel.plan(out)?;
    let gpu = gpu()?;
    let kernel = device::load(&gpu, &plan, out)?;
    let protocol = Protocol { timings: args.timings, ..Protocol::default() };
    let scalars = run::scalars(kernel.plan(), &args.scalar)?;
    for problem in problems(args, &[16384, 8192]) {
        let layouts = run::layouts(kernel.plan(), &problem.0, args.ld)?;
        let inputs = (args.fill, args.seed);
        let how = bench::How { graph: args.graph, warm: args.warm };
        let report = bench::run(&gpu, &kernel, &layouts, &scalars, inputs, how, &protocol).map_err(Failure::message)?;
        out.text(&report);
        out.object(json!({ "bench": report }));
    }
    Ok(ExitCode::SUCCESS)
}

fn products(args: &BenchArgs, out: &Output) -> Result<ExitCode, Failure> {
    if args.fill == Fill::Specials {
        return Err(Failure::message(
            "--fill specials: cuBLAS's product must be finite to check by; `cutemplate run` takes any",
        ));
    }
    let mut trials = Trials::default();
    for problem in problems(args, &[4096; 3]) {
        let plans = plans(args, &problem, out)?;
        // Before anything is compiled.
        plans.first().map_or(Ok(Vec::new()), |plan| run::layouts(plan, &problem.0, args.ld))?;
        trials.add(&problem, plans);
    }
    let how = bench::How { graph: args.graph, warm: args.warm };
    let inputs = (args.fill, args.seed);
    let measurement = Measurement { ld: args.ld, scalars: &args.scalar, inputs, how, timings: args.timings };
    let reports = measurement.run(&gpu()?, trials, "bench", out)?;
    let right = reports.iter().all(|report| report.wrong.is_empty());
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The plans of a problem: of the recipe, of several rungs, or of all and the recipe that is chosen.
fn plans(args: &BenchArgs, problem: &Problem, out: &Output) -> Result<Vec<Plan>, Failure> {
    let given = args.kernel.settings()?;
    let rung = |variant: &Variant| {
        let mut settings = given.clone();
        settings.set("variant", variant.to_string());
        settings
    };
    let mut all: Vec<(Option<&str>, Settings)> = match (args.ladder, &args.variant[..]) {
        (true, _) => Variant::ALL.iter().map(|variant| (None, rung(variant))).collect(),
        (false, []) => vec![(None, given.clone())],
        (false, some) => some.iter().map(|variant| (None, rung(variant))).collect(),
    };
    match (&args.kernel.name, &mut all[..]) {
        (Some(name), [(only, _)]) => *only = Some(name),
        (Some(name), _) => {
            return Err(Failure::message(format_args!("--name {name}: found several kernels, required one")));
        }
        (None, _) => {}
    }
    if args.ladder {
        all.push((Some("sgemm_chosen"), chosen(&given, problem)?));
    }
    all.iter().map(|(name, settings)| args.kernel.plan_of(settings, *name, out)).collect()
}

/// The settings of the recipe that is chosen for a problem on an H200, with those that were given.
fn chosen(given: &Settings, problem: &Problem) -> Result<Settings, Failure> {
    let Sgemm { a, b, .. } = Sgemm::from_settings(given)?;
    let [m, n, k] = product::extents(problem)?;
    let problem = cutemplate::recipe::product::Problem { m, n, k, a, b };
    let mut settings = Sgemm::choose(&problem, &H200, &Record::h200()).settings();
    for (key, value) in given.iter() {
        settings.set(key, value);
    }
    Ok(settings)
}
