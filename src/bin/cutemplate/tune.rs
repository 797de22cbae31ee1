//! `cutemplate tune`: several recipes of a family on the same problems, against cuBLAS in the same run.

use std::process::ExitCode;

use cutemplate::build::Compiler;
use cutemplate::emit::render;
use cutemplate::launch::{AnyKernel, Gpu, Protocol, bench};
use cutemplate::recipe::sgemm::{Measured, Problem, Record};
use cutemplate::recipe::{Recipe, Settings, Sgemm, family};
use cutemplate::verify::Fill;
use cutlass_sys::Finder;
use serde_json::json;

use crate::args::TuneArgs;
use crate::output::{Failure, Output};
use crate::product;
use crate::progress::{Fetching, while_working};

/// The recipes of a file: one a line, settings with `;` between them; `#` begins a comment.
fn candidates(args: &TuneArgs) -> Result<Vec<Settings>, Failure> {
    let text = std::fs::read_to_string(&args.candidates)
        .map_err(|e| Failure::message(format_args!("{}: {e}", args.candidates.display())))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
    Ok(lines.map(|line| Settings::parse_lines(&line.replace(';', "\n"))).collect())
}

pub(crate) fn run(args: &TuneArgs, out: &Output) -> Result<ExitCode, Failure> {
    let gpu = Gpu::find().map_err(|none| Failure::message(format_args!("tuning needs a GPU; {none}")))?;
    let targets = cutemplate::arch::Targets::new(args.arch.iter().copied()).unwrap_or_default();
    let family = family(&args.kernel)?;
    let mut plans = Vec::new();
    for (index, settings) in candidates(args)?.iter().enumerate() {
        match family.plan(settings, Some(&format!("candidate_{index:03}")), &targets) {
            Ok(plan) => plans.push(plan),
            Err(refused) => out.text(format_args!("candidate {index} is refused:\n{refused}")),
        }
    }
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
    for problem in &args.problem {
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
