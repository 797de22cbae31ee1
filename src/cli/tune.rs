//! `cutemplate tune`: several recipes of a family on the same problems, against cuBLAS or cuBLASLt in the same run.

use std::path::Path;
use std::process::ExitCode;

use cutemplate::arch::Targets;
use cutemplate::launch::Gpu;
use cutemplate::model::Machine;
use cutemplate::recipe::Family;
use cutemplate::recipe::product::{Major, Measured, Problem, Record};
use cutemplate::settings::Settings;

use crate::cli::args::{TuneArgs, settings};
use crate::cli::bench::measurable;
use crate::cli::families::Families;
use crate::cli::lab::{How, ProductReport};
use crate::cli::output::{Failure, Output};
use crate::cli::product::{self, Measurement, Trials};

/// The recipes of a file: one a line, settings with `;` between them; `#` begins a comment.
fn of_file(path: &Path) -> Result<Vec<Settings>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::message(format_args!("{}: {e}", path.display())))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
    Ok(lines.map(|line| Settings::parse_lines(&line.replace(';', "\n"))).collect())
}

/// The recipes to try on a problem with the given settings: the file's, else the family's candidates.
fn candidates(
    args: &TuneArgs,
    family: &Family,
    problem: &Problem,
    machine: &Machine,
    given: &Settings,
) -> Result<Vec<Settings>, Failure> {
    let Some(path) = &args.candidates else { return Ok(family.candidates(problem, machine, given)?) };
    let mut all = of_file(path)?;
    for settings in &mut all {
        given.iter().for_each(|(key, value)| {
            settings.set(key, value);
        });
    }
    Ok(all)
}

fn none(families: &Families, family: &Family, problem: &Problem, machine: &Machine) -> Failure {
    let has = |f: &&Family| f.candidates(problem, machine, &Settings::new()).is_ok_and(|all| !all.is_empty());
    let known: Vec<&str> = families.iter().filter(has).map(|f| f.name).collect();
    Failure::message(format_args!(
        "`{}` has no candidates to tune; those that have are {}",
        family.name,
        known.join(", ")
    ))
}

fn trials(
    args: &TuneArgs,
    families: &Families,
    family: &Family,
    targets: &Targets,
    machine: &Machine,
    out: &Output,
) -> Result<Trials, Failure> {
    let given = settings(&args.set)?;
    let usual = family.complete(&given)?;
    let major = |key| usual.get(key).and_then(|major| major.parse().ok()).unwrap_or(Major::Row);
    // Each recipe has a number, whatever problems it is tried on.
    let mut known: Vec<Settings> = Vec::new();
    let mut trials = Trials::default();
    for problem in &args.problem {
        measurable(problem)?;
        let [m, n, k] = product::extents(problem)?;
        let of = Problem { m, n, k, a: major("a"), b: major("b") };
        let all = candidates(args, family, &of, machine, &given)?;
        if all.is_empty() {
            return Err(none(families, family, &of, machine));
        }
        let mut plans = Vec::new();
        for settings in all {
            let number = known.iter().position(|other| *other == settings);
            let name = format!("candidate_{:03}", number.unwrap_or(known.len()));
            match family.plan(&settings, Some(&name), targets) {
                Ok(plan) => plans.push(plan),
                Err(refused) if number.is_none() => out.text(format_args!("{name} is refused:\n{refused}")),
                Err(_) => {}
            }
            if number.is_none() {
                known.push(settings);
            }
        }
        trials.add(problem, plans);
    }
    Ok(trials)
}

pub(crate) fn run(args: &TuneArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    let family = families.find(&args.kernel)?;
    super::bench::finite(args.fill)?;
    let gpu = Gpu::find();
    let targets = Targets::new(args.arch.iter().copied()).unwrap_or_default();
    let machine = product::machine(gpu.as_ref().ok(), &targets);
    let trials = trials(args, families, family, &targets, &machine, out)?;
    let gpu = gpu.map_err(|none| Failure::message(format_args!("tuning needs a GPU; {none}")))?;
    let how = How { graph: !args.one_by_one, warm: args.warm, ..How::default() };
    let inputs = (args.fill, args.seed);
    let protocol = super::bench::protocol(args.timings, args.rest);
    let measurement = Measurement { ld: None, scalars: &[], inputs, how, protocol, keep_going: false };
    let reports = measurement.run(&gpu, trials, "tune", out)?;
    let mut record = Record::new(family, gpu.name());
    record.arch = Some(machine.arch);
    record.rows.extend(reports.iter().filter_map(|report| fastest(family, report)));
    if let Some(path) = &args.record {
        cutemplate::build::write_if_changed(path, record.to_string().as_bytes())
            .map_err(|e| Failure::message(format_args!("{}: {e}", path.display())))?;
    }
    let right = reports.iter().all(|report| report.wrong.is_empty());
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The fastest recipe of a report, as a row of a record.
fn fastest(family: &Family, report: &ProductReport) -> Option<Measured> {
    let row = report.kernels.iter().min_by(|x, y| x.seconds.total_cmp(&y.seconds))?;
    let settings = Settings::parse_lines(&row.settings);
    let plan = family.usual_plan(&settings).ok()?;
    let [m, n, k, _] = report.problem.map(|extent| extent.unsigned_abs());
    let problem = Problem::of(&plan, [m, n, k])?;
    Some(Measured { problem, settings, tflop_per_s: row.tflop_per_s, ratio: row.ratio })
}
