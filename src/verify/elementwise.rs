//! Elementwise kernels: every element of every output against the values that the function may give there.

use crate::dtype::DType;
use crate::expr::{Accept, Checked, Evaluator};
use crate::plan::Plan;
use crate::verify::compare::{Element, Expected, Mismatch, Verdict};
use crate::verify::reference::ReferenceError;
use crate::verify::scalar::{Scalar, carried, with_scalar};
use crate::verify::tensor::Tensor;
use crate::verify::walk::Walk;

/// What a kernel of the plan has to give.
fn function(plan: &Plan) -> Result<&Checked, ReferenceError> {
    plan.function().ok_or_else(|| ReferenceError::Family { family: plan.family().to_owned() })
}

/// The elements of a tensor as values and bits, in row-major order of their coordinates.
struct Elements<'a> {
    tensor: &'a Tensor,
    walk: Walk,
}

impl<'a> Elements<'a> {
    fn of(tensor: &'a Tensor) -> Self {
        Self { tensor, walk: tensor.offsets() }
    }

    fn next(&mut self) -> Option<(f64, u64)> {
        let at = self.walk.next()?;
        with_scalar!(self.tensor.dtype(), T => self.tensor.span::<T>()?.get(at).map(|v| (v.value(), v.bits())))
    }
}

/// Walks over all coordinates: what is accepted of each output there, with the bits of the inputs.
struct Problem<'a> {
    evaluator: Evaluator,
    named: Vec<(&'static str, DType)>,
    inputs: Vec<Elements<'a>>,
    values: Vec<f64>,
    bits: Vec<u64>,
}

impl<'a> Problem<'a> {
    fn new(plan: &Plan, inputs: &[&'a Tensor], scalars: &[f64]) -> Result<Self, ReferenceError> {
        let wrong = |found: String| ReferenceError::Inputs { family: plan.family().to_owned(), found };
        let evaluator = function(plan)?.evaluator(scalars).map_err(|e| wrong(e.found))?;
        let read: Vec<_> = plan.operands().iter().filter(|o| o.access == crate::view::Access::Read).collect();
        if read.len() != inputs.len() || read.iter().zip(inputs).any(|(o, t)| o.dtype != t.dtype()) {
            return Err(wrong(format!("{inputs:?}")));
        }
        if let Some(pair) = inputs.windows(2).find(|pair| pair[0].shape() != pair[1].shape()) {
            return Err(wrong(format!("{:?} and {:?}, of different shapes", pair[0], pair[1])));
        }
        Ok(Self {
            evaluator,
            named: read.iter().map(|o| (o.name, o.dtype)).collect(),
            inputs: inputs.iter().map(|t| Elements::of(t)).collect(),
            values: Vec::new(),
            bits: Vec::new(),
        })
    }

    /// The next coordinate.
    fn accepted(&mut self) -> impl Iterator<Item = Accept> + use<> {
        self.values.clear();
        self.bits.clear();
        for (value, bits) in self.inputs.iter_mut().filter_map(Elements::next) {
            self.values.push(value);
            self.bits.push(bits);
        }
        self.evaluator.evaluate(&self.values).unwrap_or_default().into_iter()
    }
}

/// Fills the outputs with what no right kernel writes: a NaN with a mark, and where a type has none, bits that are wrong at
/// that coordinate.
///
/// # Errors
/// The inputs are not those of the plan.
pub fn fill_unwritten(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &mut [Tensor],
) -> Result<(), ReferenceError> {
    let mut problem = Problem::new(plan, inputs, scalars)?;
    outputs.iter_mut().for_each(Tensor::fill_unwritten);
    if outputs.iter().all(|o| marked(o.dtype())) {
        return Ok(());
    }
    let mut walks: Vec<Walk> = outputs.iter().map(Tensor::offsets).collect();
    for _ in 0..outputs.iter().map(Tensor::size).max().unwrap_or(0) {
        for ((output, walk), accept) in outputs.iter_mut().zip(&mut walks).zip(problem.accepted()) {
            let (dtype, at) = (output.dtype(), walk.next());
            with_scalar!(dtype, T => if let (Some(at), Some(elements)) = (at, output.span_mut::<T>()) {
                let wrong = [T::UNWRITTEN, !T::UNWRITTEN, 0].into_iter().map(T::of_bits);
                let wrong = wrong.map(|v| v.bits()).find(|bits| !accept.accepts(dtype, *bits));
                elements[at] = T::of_bits(wrong.unwrap_or(T::UNWRITTEN));
            });
        }
    }
    Ok(())
}

/// Whether the type has a NaN of its own for what was never written.
fn marked(dtype: DType) -> bool {
    with_scalar!(dtype, T => T::QUIET != 0)
}

/// Compares every element of every output of the plan's kernel with the values that its function may give for the inputs,
/// and checks the guards of the outputs.
///
/// Where every operation is exact in IEEE 754 or in integers there is one value, and equal means equal bits but for NaN;
/// a function such as `exp` may give the values within its documented error. See [`Accept`].
///
/// # Errors
/// The inputs are not those of the plan.
pub fn check(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &[&Tensor],
) -> Result<Vec<Verdict>, ReferenceError> {
    let mut problem = Problem::new(plan, inputs, scalars)?;
    let mut found: Vec<Elements<'_>> = outputs.iter().map(|t| Elements::of(t)).collect();
    let mut verdicts: Vec<Verdict> = outputs.iter().map(|o| Verdict::new(o.size(), o.guards())).collect();
    for _ in 0..outputs.iter().map(|o| o.size()).max().unwrap_or(0) {
        let coordinate = found.first().map(|f| f.walk.clone());
        let accepted = problem.accepted();
        for ((elements, verdict), accept) in found.iter_mut().zip(&mut verdicts).zip(accepted) {
            let dtype = elements.tensor.dtype();
            let Some((value, bits)) = elements.next() else { continue };
            let mark = with_scalar!(dtype, T => T::UNWRITTEN);
            let right = accept.accepts(dtype, bits);
            // An input may hold the mark's payload by chance, and additions pass payloads on.
            let unwritten = bits == mark
                && if value.is_nan() { !carried(dtype, bits, problem.bits.iter().copied()) } else { !right };
            if right && !unwritten {
                continue;
            }
            let expected = match accept.exact(dtype) {
                Some(bits) => Expected::Bits(bits),
                None => Expected::Range { range: accept.range(), nan: accept.may_be_nan() },
            };
            let inputs = problem.named.iter().zip(&problem.bits);
            let inputs =
                inputs.map(|((name, dtype), bits)| Element { name: (*name).to_owned(), dtype: *dtype, bits: *bits });
            let inputs = inputs.collect();
            let coordinate = coordinate.as_ref().map(Walk::coordinate).unwrap_or_default();
            verdict.push(Mismatch { coordinate, unwritten, found: bits, expected, inputs, dtype });
        }
    }
    Ok(verdicts)
}
