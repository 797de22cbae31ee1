//! Every element of every output against what the kernel's definition accepts there.

use crate::dtype::DType;
use crate::expr::Outputs;
use crate::plan::{Computes, Operand, Plan};
use crate::verify::baseline::{Baseline, Given};
use crate::verify::elementwise::Elementwise;
use crate::verify::product::{Matrices, Sums, product_extents};
use crate::verify::reference::ReferenceError;
use crate::verify::scalar::{Scalar, with_scalar};
use crate::verify::sums::Computed;
use crate::verify::tensor::Tensor;
use crate::verify::verdict::{Element, Expected, Mismatch, Verdict};
use crate::verify::walk::Walk;
use crate::view::Access;

/// The elements of a tensor as values and bits, in row-major order of their coordinates.
pub(super) struct Elements<'a> {
    tensor: &'a Tensor,
    walk: Walk,
}

impl<'a> Elements<'a> {
    pub(super) fn of(tensor: &'a Tensor) -> Self {
        Self { tensor, walk: tensor.offsets() }
    }

    pub(super) fn next(&mut self) -> Option<(f64, u64)> {
        let at = self.walk.next()?;
        with_scalar!(self.tensor.dtype(), T => self.tensor.span::<T>()?.get(at).map(|v| (v.value(), v.bits())))
    }
}

/// What is accepted, coordinate by coordinate of the outputs, in row-major order.
pub(super) trait Problem {
    /// At the next coordinate, for each output.
    fn accepted(&mut self) -> Outputs;
    /// What belongs to that coordinate, for a report.
    fn inputs(&self) -> Vec<Element>;
    /// Whether an operation that passes payloads on could have made a NaN of these bits there.
    fn carries(&self, dtype: DType, bits: u64) -> bool;
}

/// The operands that are read.
pub(super) fn read(plan: &Plan) -> Vec<&Operand> {
    plan.operands().iter().filter(|o| o.access == Access::Read).collect()
}

fn problem<'a>(
    plan: &'a Plan,
    inputs: &[&'a Tensor],
    scalars: &[f64],
    baseline: Option<Baseline<'a>>,
) -> Result<Box<dyn Problem + 'a>, ReferenceError> {
    let wrong = |found: String| ReferenceError::Inputs { family: plan.family().to_owned(), found };
    let read = read(plan);
    if read.len() != inputs.len() || read.iter().zip(inputs).any(|(o, t)| o.dtype != t.dtype()) {
        return Err(wrong(format!("{inputs:?}")));
    }
    match plan.computes() {
        Some(Computes::Elementwise(_)) if baseline.is_some() => {
            Err(ReferenceError::Baseline { found: "a product, and a kernel that computes none".into() })
        }
        Some(Computes::Elementwise(function)) => {
            if let Some(pair) = inputs.windows(2).find(|pair| pair[0].shape() != pair[1].shape()) {
                return Err(wrong(format!("{:?} and {:?}, of different shapes", pair[0], pair[1])));
            }
            let evaluator = function.evaluator(scalars).map_err(|e| wrong(e.found))?;
            Ok(Box::new(Elementwise::new(evaluator, &read, inputs)))
        }
        Some(Computes::Product(product)) => {
            let evaluator = product.epilogue().evaluator(scalars).map_err(|e| wrong(e.found))?;
            let extents = product_extents(product, scalars, inputs);
            let extents = extents.ok_or_else(|| wrong(format!("{inputs:?}, which do not fit together")))?;
            let sums = match baseline {
                Some(baseline) if extents[2] > 0 => Sums::Given(Given::new(baseline, inputs, extents)?),
                _ => Sums::Computed(Computed::new(inputs[0], inputs[1], extents)),
            };
            Ok(Box::new(Matrices::new(product, evaluator, scalars, &read, inputs, sums)))
        }
        None => Err(ReferenceError::Family { family: plan.family().to_owned() }),
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
    let mut problem = problem(plan, inputs, scalars, None)?;
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

/// Compares every element of every output of the plan's kernel with the values that its definition accepts for the inputs,
/// and checks the guards of the outputs.
///
/// An elementwise kernel: where every operation is exact in IEEE 754 or in integers there is one value, and equal means equal
/// bits but for NaN; a function such as `exp` may give the values within its documented error. See
/// [`Accept`](crate::expr::Accept).
///
/// A product: the accumulator is a sum of K products in any order, each addition and multiplication rounded or fused. Where
/// the factors are integers and the sum of `|a| * |b|` is at most 2^24, every such sum is exact and there is one value.
/// Elsewhere it lies within `((1 + u)^K - 1) * sum |a| |b|` of the exact sum, u = 2^-24 (Higham, "Accuracy and Stability of
/// Numerical Algorithms", 2nd edition, sections 3.1 and 4.2). What the epilogue may give for all these is accepted. Factors
/// that are multiplied by a scalar of 0 are not read: the accumulator is 0 there, whatever they hold, and so is C.
///
/// # Errors
/// The inputs are not those of the plan.
pub fn check(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &[&Tensor],
) -> Result<Vec<Verdict>, ReferenceError> {
    Ok(verdicts(problem(plan, inputs, scalars, None)?.as_mut(), outputs))
}

/// The same for a product whose sums another implementation computed, such as a library on a GPU: in time proportional to the
/// outputs.
///
/// Both lie within `((1 + u)^K - 1) * sum |a| |b|` of the exact sum, so within twice that of each other, and the exact sum of sizes
/// is at most `1 / (1 - ((1 + u)^K - 1))` times the one of the baseline. Where all factors are integers and that sum is below 2^24,
/// both are exact.
///
/// # Errors
/// As [`check`]; a kernel that is no product; a baseline of another shape, or one that is not finite or so large that a sum could
/// overflow, which says nothing about the kernel.
pub fn check_against(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &[&Tensor],
    baseline: Baseline<'_>,
) -> Result<Vec<Verdict>, ReferenceError> {
    Ok(verdicts(problem(plan, inputs, scalars, Some(baseline))?.as_mut(), outputs))
}

fn verdicts(problem: &mut dyn Problem, outputs: &[&Tensor]) -> Vec<Verdict> {
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
            let unwritten = bits == mark && if value.is_nan() { !problem.carries(dtype, bits) } else { !right };
            if right && !unwritten {
                continue;
            }
            let expected = match accept.exact(dtype) {
                Some(bits) => Expected::Bits(bits),
                None => Expected::Range { range: accept.range(), nan: accept.may_be_nan() },
            };
            let coordinate = coordinate.as_ref().map(Walk::coordinate).unwrap_or_default();
            let inputs = problem.inputs();
            verdict.push(Mismatch { coordinate, unwritten, found: bits, expected, inputs, dtype });
        }
    }
    verdicts
}
