//! `cutemplate run`: a kernel on real data, every element verified.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cutemplate::plan::{Operand, Plan, ProblemShape};
use cutemplate::verify::{self, Tensor, TensorLayout, Verdict, npy};
use cutemplate::view::Access;
use serde_json::json;

use crate::cli::args::{Problem, RunArgs, Scalar};
use crate::cli::arrays;
use crate::cli::device::{self, Device};
use crate::cli::families::Families;
use crate::cli::output::{Failure, GOOD, Output, counted};
use crate::cli::progress::{counting, on_terminal};
use crate::cli::stages;

pub(crate) fn run(args: &RunArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    let plan = args.kernel.plan(families, out)?;
    places(&plan, &args.output)?;
    let (device, why) = Device::choose(args.on, args.mode, args.profile, out)?;
    if let Some(why) = why {
        out.text(format_args!("no GPU: {why}; {device}, runs it"));
    }
    let scalars = scalars(&plan, &args.scalar)?;
    let (inputs, problem) = on_terminal(out, "makes the inputs", || inputs(args, &plan))?;
    let stages = args.stages.as_deref();
    let run = Run { device: &device, problem: &problem, ld: args.ld, scalars: &scalars, stages };
    verified(&plan, inputs, &run, &args.output, out)
}

/// Looks at where outputs are to go before anything is computed: not more of them than the kernel has, each with a place of its
/// own, in a folder that exists.
fn places(plan: &Plan, files: &[PathBuf]) -> Result<(), Failure> {
    let outputs: Vec<&str> = plan.operands().iter().filter(|o| o.access == Access::Write).map(|o| o.name).collect();
    if files.len() > outputs.len() {
        return Err(Failure::message(format_args!(
            "found {} --output, required at most {}: one for each of {}",
            files.len(),
            outputs.len(),
            outputs.join(", ")
        )));
    }
    for (i, path) in files.iter().enumerate() {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.is_dir() || !folder.is_dir() {
            let found = if path.is_dir() { "a folder".to_owned() } else { format!("no folder {}", folder.display()) };
            return Err(Failure::message(format_args!(
                "--output {}: found {found}, required the name of a file in a folder that exists",
                path.display()
            )));
        }
        if files[..i].contains(path) {
            return Err(Failure::message(format_args!("--output {}: found twice, required once", path.display())));
        }
    }
    Ok(())
}

/// Runs the kernel on the inputs, verifies its outputs and writes them.
pub(crate) fn verified(
    plan: &Plan,
    inputs: Vec<Tensor>,
    run: &Run<'_>,
    files: &[PathBuf],
    out: &Output,
) -> Result<ExitCode, Failure> {
    let layouts = layouts(plan, run.problem, run.ld)?;
    let count = inputs.len();
    let outputs = plan.operands().iter().zip(&layouts).skip(count);
    let outputs = outputs.map(|(o, l)| Tensor::new(o.dtype, *l).map_err(Failure::message));
    let mut tensors = inputs;
    tensors.extend(outputs.collect::<Result<Vec<_>, _>>()?);
    let (inputs, outputs) = tensors.split_at_mut(count);
    let read: Vec<&Tensor> = inputs.iter().collect();
    let fill = || verify::fill_unwritten(plan, &read, run.scalars, outputs);
    on_terminal(out, "marks the outputs", fill).map_err(Failure::message)?;
    let report = device::run(run, plan, &mut tensors, out)?;
    let (inputs, outputs) = tensors.split_at(count);
    let (read, written): (Vec<&Tensor>, Vec<&Tensor>) = (inputs.iter().collect(), outputs.iter().collect());
    let total = written.first().map_or(0, |t| t.size());
    let what = format!("verifies {}", counted(total, "element", "elements"));
    let check = |done: verify::Done<'_>| verify::check_watched(plan, &read, run.scalars, &written, done);
    let verdicts = counting(out, &what, total, check).map_err(Failure::message)?;
    let clean = report.as_ref().is_none_or(|r| r.is_clean());
    if let Some(report) = &report {
        ptx_exec::cli::tell(report, out.is_json());
        if let (Some(path), Some(profile)) = (run.stages, &report.profile) {
            stages::draw_stages(path, plan.name(), profile)?;
            out.text(format_args!("wrote {}", path.display()));
        }
    }
    for (path, tensor) in files.iter().zip(outputs) {
        let what = format!("writes {}", path.display());
        on_terminal(out, &what, || npy::write(path, tensor)).map_err(Failure::message)?;
        out.text(format_args!("wrote {}", path.display()));
    }
    for (verdict, (layout, operand)) in verdicts.iter().zip(layouts.iter().zip(plan.operands()).skip(count)) {
        let name = if verdicts.len() == 1 { String::new() } else { format!(" {} of", operand.name) };
        tell(verdict, &name, plan, run.device, *layout, clean, out);
    }
    let right = verdicts.iter().all(Verdict::is_right) && clean;
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(verdict: &Verdict, name: &str, plan: &Plan, device: &Device, layout: TensorLayout, clean: bool, out: &Output) {
    let right = verdict.is_right() && clean;
    if right {
        let all = match verdict.elements {
            1 => "the 1 element".to_owned(),
            n => format!("all {n} elements"),
        };
        out.text(format_args!("{GOOD}right{GOOD:#}: {all} of{name} {} {layout} on {device}", plan.name()));
    } else {
        out.text(format_args!("wrong: {verdict}"));
    }
    out.object(json!({
        "right": right, "kernel": plan.name(), "device": device.to_string(), "layout": layout.to_string(), "verdict": verdict,
    }));
}

/// The device, problem and scalars of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) device: &'a Device,
    pub(crate) problem: &'a [i64],
    pub(crate) ld: Option<i64>,
    pub(crate) scalars: &'a [f64],
    /// Where the picture of stages goes.
    pub(crate) stages: Option<&'a Path>,
}

/// How the shapes of the kernel's tensors belong together.
pub(crate) fn problem_shape(plan: &Plan) -> Result<&ProblemShape, Failure> {
    let unknown = || format!("`{}` does not say how the shapes of its tensors belong together", plan.family());
    plan.problem_shape().ok_or_else(|| Failure::message(unknown()))
}

/// The layout of each operand for a problem.
pub(crate) fn layouts(plan: &Plan, problem: &[i64], ld: Option<i64>) -> Result<Vec<TensorLayout>, Failure> {
    let shape = problem_shape(plan)?;
    let shown = || Problem(problem.to_vec());
    let shapes = shape.shapes(problem).ok_or_else(|| {
        Failure::message(format_args!("--problem {} has {} extents, required {}", shown(), problem.len(), shape))
    })?;
    let layout = |(operand, shape): (&Operand, &Vec<i64>)| {
        operand.layout(shape, ld).map(TensorLayout::from).ok_or_else(|| match ld {
            Some(ld) => Failure::message(format_args!(
                "leading dimension {ld} is smaller than a row of {} with strides {} in --problem {}",
                operand.name,
                operand.stride_text(),
                shown()
            )),
            None => Failure::message(format_args!("--problem {} has more elements than an address reaches", shown())),
        })
    };
    plan.operands().iter().zip(&shapes).map(layout).collect()
}

/// The values of the plan's run-time scalars, in order.
pub(crate) fn scalars(plan: &Plan, given: &[Scalar]) -> Result<Vec<f64>, Failure> {
    if let Some(unknown) = given.iter().find(|s| !plan.scalars().contains(&s.name)) {
        let known = plan.scalars().join(", ");
        return Err(Failure::message(format_args!(
            "--scalar {}: the function has {}",
            unknown.name,
            if known.is_empty() { "no run-time scalars".to_owned() } else { format!("the run-time scalars {known}") }
        )));
    }
    let value = |(index, name): (usize, &String)| {
        let last = given.iter().rev().find(|s| s.name == *name).map(|s| s.value);
        let usual = || plan.reference()?.usual_scalar(index);
        last.or_else(usual)
            .ok_or_else(|| Failure::message(format_args!("`{name}` has no value: --scalar {name}=0.5 gives it one")))
    };
    plan.scalars().iter().enumerate().map(value).collect()
}

/// The inputs: from files, or from the seed.
fn inputs(args: &RunArgs, plan: &Plan) -> Result<(Vec<Tensor>, Vec<i64>), Failure> {
    let operands: Vec<_> = plan.operands().iter().filter(|o| o.access == Access::Read).collect();
    if !args.input.is_empty() {
        return arrays::read(args, plan, &operands);
    }
    let problem = match &args.problem {
        Some(problem) => problem.0.clone(),
        None => problem_shape(plan)?.example().to_vec(),
    };
    let layouts = layouts(plan, &problem, args.ld)?;
    let shape = problem_shape(plan)?;
    let make = |(seed, (operand, layout)): (u64, (&&Operand, &TensorLayout))| {
        let mut tensor = Tensor::new(operand.dtype, *layout).map_err(Failure::message)?;
        tensor.fill_of(shape.numbers((seed - args.seed) as usize, &problem), args.fill, seed);
        Ok(tensor)
    };
    let tensors: Result<_, Failure> = (args.seed..).zip(operands.iter().zip(&layouts)).map(make).collect();
    Ok((tensors?, problem))
}
