//! The inputs of `cutemplate run` from `.npy` files: one for each tensor that the kernel reads.

use std::path::{Path, PathBuf};

use cutemplate::plan::{ModeStride, Operand, Plan};
use cutemplate::verify::npy::{self, Array};
use cutemplate::verify::{Tensor, TensorLayout};
use cutemplate::view::{Access, ViewLayout};

use crate::cli::args::{Problem, RunArgs};
use crate::cli::output::Failure;
use crate::cli::run::{layouts, problem_shape};

/// The tensors, and the problem that they belong to.
pub(crate) fn read(args: &RunArgs, plan: &Plan, operands: &[&Operand]) -> Result<(Vec<Tensor>, Vec<i64>), Failure> {
    if args.input.len() != operands.len() {
        let names: Vec<&str> = operands.iter().map(|o| o.name).collect();
        return Err(Failure::message(format_args!(
            "found {} --input, required {}: one for each of {}",
            args.input.len(),
            operands.len(),
            names.join(", ")
        )));
    }
    let arrays = args.input.iter().zip(operands).map(|(path, operand)| npy::open(path, operand.dtype));
    let arrays: Vec<Array> = arrays.collect::<Result<_, _>>().map_err(Failure::message)?;
    let shapes: Vec<&[i64]> = arrays.iter().map(Array::shape).collect();
    let given = args.problem.as_ref().map(|p| p.0.clone());
    let shape = problem_shape(plan)?;
    let told = shape.problem_of_arrays(plan.operands(), &shapes);
    let problem = given.or(told).unwrap_or_default();
    let batched = shape.is_batched();
    let layouts = layouts(plan, &problem, args.ld)?;
    let inputs = || plan.operands().iter().zip(&layouts).filter(|(o, _)| o.access == Access::Read);
    let laid = |(((operand, layout), array), path): (((&Operand, &TensorLayout), &Array), &PathBuf)| {
        let layout = if batched { of_all_batches(layout, array) } else { *layout };
        if array.fits(&layout.layout) {
            return Ok(layout);
        }
        Err(unfit(operand, batched, &layout, array, path, &problem, args.problem.is_some()))
    };
    let laid: Vec<TensorLayout> = inputs().zip(&arrays).zip(&args.input).map(laid).collect::<Result<_, _>>()?;
    let tensors = operands.iter().zip(laid).zip(arrays).map(|((operand, layout), array)| {
        let mut tensor = Tensor::new(operand.dtype, layout).map_err(Failure::message)?;
        array.read_into(&mut tensor).map_err(Failure::message)?;
        Ok(tensor)
    });
    Ok((tensors.collect::<Result<_, Failure>>()?, problem))
}

/// The layout of a batched operand: with stride 0 from batch to batch, where the array has one matrix for all of them.
fn of_all_batches(layout: &TensorLayout, array: &Array) -> TensorLayout {
    let mut strides = layout.layout.stride().to_vec();
    strides.last_mut().into_iter().for_each(|last| *last = 0);
    let one = ViewLayout::strided(layout.layout.shape(), &strides).map(TensorLayout::from);
    one.filter(|one| !array.fits(&layout.layout) && array.fits(&one.layout)).unwrap_or(*layout)
}

/// The shapes of arrays that fill an operand: all of it, extent 1 where the kernel has stride 0 and for the batches, no axis there.
fn serving(operand: &Operand, batched: bool, shape: &[i64]) -> String {
    let with = |broadcast: fn(i64) -> Option<i64>| {
        let axis = |(mode, (extent, stride)): (usize, (&i64, &ModeStride))| {
            let one_for_all = *stride == ModeStride::Broadcast || (batched && mode + 1 == shape.len());
            if one_for_all { broadcast(*extent) } else { Some(*extent) }
        };
        Problem(shape.iter().zip(&operand.strides).enumerate().filter_map(axis).collect()).to_string()
    };
    let mut all = vec![with(Some), with(|_| Some(1)), with(|_| None)];
    all.dedup();
    all.retain(|shape| !shape.is_empty());
    all.join(" or ")
}

fn unfit(
    operand: &Operand,
    batched: bool,
    layout: &TensorLayout,
    array: &Array,
    path: &Path,
    problem: &[i64],
    given: bool,
) -> Failure {
    Failure::message(format_args!(
        "{}: {} is {}, and a problem of {} needs {}{}",
        operand.name,
        path.display(),
        Problem(array.shape().to_vec()),
        Problem(problem.to_vec()),
        serving(operand, batched, layout.layout.shape()),
        if given { "; leave out --problem to take the shapes of the files" } else { "" }
    ))
}
