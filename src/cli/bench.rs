//! `cutemplate bench`: the rate of a kernel, and its ratio to a device copy or, for a product, to NVIDIA's libraries in the same run.

use std::process::ExitCode;

use cutemplate::launch::{Gpu, Protocol};
use cutemplate::plan::Plan;
use cutemplate::recipe::Family;
use cutemplate::settings::Settings;
use cutemplate::verify::Fill;
use serde_json::json;

use crate::cli::args::{BenchArgs, Problem};
use crate::cli::device;
use crate::cli::families::Families;
use crate::cli::lab::{Amount, How, against_copy};
use crate::cli::output::{Failure, Output};
use crate::cli::product::{self, Measurement, Trials};
use crate::cli::run::{layouts, scalars};
use crate::cli::{chart, chosen, fit, random};

pub(crate) fn run(args: &BenchArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    let family = families.find(&args.kernel.kernel)?;
    if let Some(count) = args.random {
        return random::run(args, family, count, &measurement(args)?, gpu(), out);
    }
    if args.fit {
        let (measurement, plan) = (measurement(args)?, args.kernel.plan(families, out)?);
        return fit::run(&measurement, gpu(), &plan, out);
    }
    let rungs = rungs(args, families, family)?;
    args.problem.iter().try_for_each(measurable)?;
    let usual = [Problem(family.problem.to_vec())];
    let (mut trials, mut known) = (Trials::default(), Vec::new());
    for problem in if args.problem.is_empty() { &usual[..] } else { &args.problem } {
        let plans = plans(args, family, &rungs, problem, &mut known, out)?;
        // Before anything is compiled.
        plans.first().map_or(Ok(Vec::new()), |plan| layouts(plan, &problem.0, args.ld))?;
        trials.add(problem, plans);
    }
    if trials.plans.iter().all(|plan| plan.product().is_some()) {
        products(args, trials, out)
    } else {
        copies(args, &trials, out)
    }
}

/// Refuses a problem that has nothing to measure.
pub(crate) fn measurable(problem: &Problem) -> Result<(), Failure> {
    if !problem.0.contains(&0) {
        return Ok(());
    }
    let text = "found an extent of 0, required at least 1: an empty launch takes no time";
    Err(Failure::message(format_args!("--problem {problem}: {text}")))
}

fn gpu() -> Result<Gpu, Failure> {
    Gpu::find().map_err(|none| Failure::message(format_args!("a bench needs a GPU; {none}")))
}

pub(crate) fn protocol(timings: u32, rest_seconds: f64) -> Protocol {
    Protocol { timings, rest_seconds, ..Protocol::default() }
}

/// Inputs of a product that is checked by cuBLAS's.
pub(crate) fn finite(fill: Fill) -> Result<(), Failure> {
    if fill != Fill::Specials {
        return Ok(());
    }
    Err(Failure::message("--fill specials: cuBLAS's product must be finite to check by; `cutemplate run` takes any"))
}

/// Each kernel against a copy of equally many bytes.
fn copies(args: &BenchArgs, trials: &Trials, out: &Output) -> Result<ExitCode, Failure> {
    let asked =
        [(args.sustained > 0.0, "--sustained"), (args.ceilings, "--ceilings"), (args.chart.is_some(), "--chart")];
    if let Some((_, option)) = asked.into_iter().find(|(asked, _)| *asked) {
        return Err(Failure::message(format_args!("{option} is for products; `{}` is none", args.kernel.kernel)));
    }
    let mut amounts = Vec::new();
    for (problem, chosen) in &trials.of {
        for plan in chosen.iter().map(|index| &trials.plans[*index]) {
            let amount = Amount::of(plan, &problem.0, &layouts(plan, &problem.0, args.ld)?);
            out.text(format_args!("{} {problem}: {amount}; baseline: a device copy of as many bytes", plan.name()));
            out.object(
                json!({ "row": { "kernel": plan.name(), "problem": problem.to_string(), "amount": amount, "baseline": "copy" } }),
            );
            amounts.push(amount);
        }
    }
    let (gpu, mut amounts) = (gpu()?, amounts.into_iter());
    let kernels = trials.plans.iter().map(|plan| device::load(&gpu, plan, out)).collect::<Result<Vec<_>, _>>()?;
    let protocol = protocol(args.timings, args.rest);
    let how = How { graph: args.graph, warm: args.warm, ..How::default() };
    for (problem, chosen) in &trials.of {
        for kernel in chosen.iter().map(|index| &kernels[*index]) {
            let how = How { amount: amounts.next().unwrap_or_default(), ..how };
            let scalars = scalars(kernel.plan(), &args.scalar)?;
            let layouts = layouts(kernel.plan(), &problem.0, args.ld)?;
            let report = against_copy(&gpu, kernel, &layouts, &scalars, (args.fill, args.seed), how, &protocol);
            let report = report.map_err(Failure::message)?;
            out.text(&report);
            out.object(json!({ "bench": report }));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How products are measured.
fn measurement(args: &BenchArgs) -> Result<Measurement<'_>, Failure> {
    finite(args.fill)?;
    let (graph, warm, ceilings) = (args.graph, args.warm, args.ceilings);
    let how = How { graph, warm, ceilings, sustained_seconds: args.sustained, ..How::default() };
    let inputs = (args.fill, args.seed);
    let protocol = protocol(args.timings, args.rest);
    Ok(Measurement { ld: args.ld, scalars: &args.scalar, inputs, how, protocol, keep_going: args.random.is_some() })
}

/// The kernels of each problem in turn with the baseline.
fn products(args: &BenchArgs, trials: Trials, out: &Output) -> Result<ExitCode, Failure> {
    let reports = measurement(args)?.run(&gpu()?, trials, "bench", out)?;
    if let Some(path) = &args.chart {
        chart::write(path, &reports)?;
    }
    let right = reports.iter().all(|report| report.wrong.is_empty());
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The settings of each kernel that was asked for: of the recipe, or of rungs of the family's ladder.
fn rungs(args: &BenchArgs, families: &Families, family: &Family) -> Result<Vec<Settings>, Failure> {
    let given = args.kernel.settings()?;
    let asked: Vec<&str> = match (args.ladder, &args.variant[..]) {
        (true, _) => family.rungs.to_vec(),
        (false, some) => some.iter().map(String::as_str).collect(),
    };
    if (args.ladder || !asked.is_empty()) && family.rungs.is_empty() {
        let found = if args.ladder { "--ladder" } else { "--variant" };
        let known: Vec<&str> = families.iter().filter(|f| !f.rungs.is_empty()).map(|f| f.name).collect();
        let (name, known) = (family.name, known.join(", "));
        return Err(Failure::message(format_args!("{found}: `{name}` has no rungs; those that have are {known}")));
    }
    if let Some(unknown) = asked.iter().find(|asked| !family.rungs.contains(asked)) {
        let known = family.rungs.join(", ");
        return Err(Failure::message(format_args!("--variant {unknown}: `{}` has the rungs {known}", family.name)));
    }
    let rung = |variant: &&str| {
        let mut settings = given.clone();
        settings.set("variant", *variant);
        settings
    };
    let all: Vec<Settings> = if asked.is_empty() { vec![given.clone()] } else { asked.iter().map(rung).collect() };
    match (&args.kernel.name, all.len()) {
        (Some(name), 2..) => Err(Failure::message(format_args!("--name {name}: found several kernels, required one"))),
        _ => Ok(all),
    }
}

/// The plans of a problem, for the recipe that the family chooses or that the settings name. With a ladder: the plans
/// of every rung, and of the chosen recipe. `known` holds the recipes that were chosen so far.
fn plans(
    args: &BenchArgs,
    family: &Family,
    rungs: &[Settings],
    problem: &Problem,
    known: &mut Vec<Settings>,
    out: &Output,
) -> Result<Vec<Plan>, Failure> {
    let plan = |settings: &Settings| args.kernel.plan_of(family, settings, args.kernel.name.as_deref(), out);
    let plans: Vec<Plan> = rungs.iter().map(plan).collect::<Result<_, _>>()?;
    let is_product = |plan: &&Plan| plan.product().is_some();
    let Some(last) = plans.last().filter(is_product).filter(|_| args.ladder || args.variant.is_empty()) else {
        return Ok(plans);
    };
    // Before anything is chosen: whether the problem has the kernel's extents.
    layouts(last, &problem.0, args.ld)?;
    let gpu = Gpu::find().ok();
    let machine = product::machine(gpu.as_ref(), last.targets());
    let given = args.kernel.settings()?;
    let chosen = if args.ladder {
        let of = cutemplate::recipe::product::Problem::of(last, product::extents(problem)?);
        of.and_then(|of| family.chosen(&of, &machine, &given)).transpose()?
    } else {
        chosen::settings(family, last, problem, &machine, &given)?
    };
    let Some(settings) = chosen else { return Ok(plans) };
    // Without a GPU nothing is measured.
    if gpu.is_some() {
        chosen::tell(family, problem, &settings, out)?;
    }
    let number = known.iter().position(|other| *other == settings).unwrap_or_else(|| {
        known.push(settings.clone());
        known.len() - 1
    });
    let name = args.kernel.name.clone().unwrap_or_else(|| format!("{}_chosen_{number:02}", family.name));
    let chosen = args.kernel.plan_of(family, &settings, Some(&name), out)?;
    Ok(if args.ladder { plans.into_iter().chain([chosen]).collect() } else { vec![chosen] })
}
