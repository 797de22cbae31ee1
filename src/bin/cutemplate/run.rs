//! `cutemplate run`: a kernel on real data, every element verified.

use std::path::PathBuf;
use std::process::ExitCode;

use cutemplate::plan::Plan;
use cutemplate::verify::{self, Tensor, TensorLayout, Verdict, npy};
use cutemplate::view::Access;
use serde_json::json;

use crate::args::{Problem, RunArgs};
use crate::device::{self, Device};
use crate::output::{Failure, GOOD, Output};

pub(crate) fn run(args: &RunArgs, out: &Output) -> Result<ExitCode, Failure> {
    let plan = args.kernel.plan()?;
    let device = Device::choose(args.on, args.mode)?;
    if let Device::Cpu(_, Some(why)) = &device {
        out.text(why);
    }
    let inputs = inputs(args, &plan)?;
    verified(&plan, inputs, &device, args.output.as_ref(), out)
}

/// Runs the kernel on the inputs, verifies its output and writes it.
pub(crate) fn verified(
    plan: &Plan,
    inputs: Vec<Tensor>,
    device: &Device,
    output: Option<&PathBuf>,
    out: &Output,
) -> Result<ExitCode, Failure> {
    let expected = verify::reference(plan, &inputs).map_err(Failure::message)?;
    let named: Vec<&str> = plan.operands().iter().map(|o| o.name).collect();
    let layout = inputs.first().map_or(expected.layout(), Tensor::layout);
    let mut result = Tensor::new(expected.dtype(), layout).map_err(Failure::message)?;
    result.fill_unwritten();
    let mut matrices = inputs;
    matrices.push(result);
    let report = device::run(device, plan, &mut matrices, out)?;
    let Some((found, inputs)) = matrices.split_last() else {
        return Err(Failure::message("the kernel has no operands"));
    };
    let inputs: Vec<(&str, &Tensor)> = named.into_iter().zip(inputs).collect();
    let verdict = verify::compare(found, &expected, &inputs).map_err(Failure::message)?;
    let clean = report.as_ref().is_none_or(|r| r.is_clean());
    if let Some(report) = report.filter(|r| !r.is_clean()) {
        out.text(&report);
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        out.object(json!({ "findings": findings }));
    }
    if let Some(path) = output {
        npy::write(path, found).map_err(Failure::message)?;
        out.text(format_args!("wrote {}", path.display()));
    }
    tell(&verdict, plan, device, layout, clean, out);
    Ok(if verdict.is_right() && clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(verdict: &Verdict, plan: &Plan, device: &Device, layout: TensorLayout, clean: bool, out: &Output) {
    let right = verdict.is_right() && clean;
    if right {
        let n = verdict.elements;
        out.text(format_args!("{GOOD}right{GOOD:#}: all {n} elements of {} {layout} on {device}", plan.name()));
    } else {
        out.text(format_args!("wrong: {verdict}"));
    }
    out.object(json!({
        "right": right, "kernel": plan.name(), "device": device.to_string(), "layout": layout.to_string(), "verdict": verdict,
    }));
}

/// The inputs: from files, or from the seed.
fn inputs(args: &RunArgs, plan: &Plan) -> Result<Vec<Tensor>, Failure> {
    let operands: Vec<_> = plan.operands().iter().filter(|o| o.access == Access::Read).collect();
    if !args.input.is_empty() {
        return from_files(args, &operands.iter().map(|o| (o.name, o.dtype)).collect::<Vec<_>>());
    }
    let Problem { rows, cols } = args.problem.unwrap_or(Problem { rows: 1023, cols: 511 });
    let layout = TensorLayout::padded(rows, cols, args.ld.unwrap_or(cols));
    let make = |(seed, operand): (u64, &&cutemplate::plan::Operand)| {
        let mut matrix = Tensor::new(operand.dtype, layout).map_err(Failure::message)?;
        matrix.fill(args.fill, seed);
        Ok(matrix)
    };
    (args.seed..).zip(&operands).map(make).collect()
}

fn from_files(args: &RunArgs, operands: &[(&str, cutemplate::dtype::DType)]) -> Result<Vec<Tensor>, Failure> {
    if args.input.len() != operands.len() {
        let names: Vec<&str> = operands.iter().map(|(name, _)| *name).collect();
        return Err(Failure::message(format_args!(
            "found {} --input, required {}: one for each of {}",
            args.input.len(),
            operands.len(),
            names.join(", ")
        )));
    }
    let mut matrices = Vec::new();
    for (path, (name, dtype)) in args.input.iter().zip(operands) {
        let matrix = npy::read(path, *dtype).map_err(Failure::message)?;
        if let Some(Problem { rows, cols }) =
            args.problem.filter(|p| (p.rows, p.cols) != (matrix.rows(), matrix.cols()))
        {
            return Err(Failure::message(format_args!(
                "{name}: {} is {} x {}, and --problem says {rows}x{cols}; leave out --problem to take the file's shape",
                path.display(),
                matrix.rows(),
                matrix.cols()
            )));
        }
        matrices.push(match args.ld {
            Some(ld) => padded(&matrix, ld)?,
            None => matrix,
        });
    }
    Ok(matrices)
}

/// The same elements with another leading dimension.
fn padded(matrix: &Tensor, ld: u64) -> Result<Tensor, Failure> {
    let layout = TensorLayout::padded(matrix.rows(), matrix.cols(), ld);
    let mut wide = Tensor::new(matrix.dtype(), layout).map_err(Failure::message)?;
    wide.copy_elements_from(matrix).map_err(Failure::message)?;
    Ok(wide)
}
