//! Compares every element of every output with the values that the kernel's definition accepts there.

use core::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::dtype::DType;
use crate::expr::{Compute, Evaluator, ExprError, Function, Outputs};
use crate::plan::{Computes, Operand, Plan};
use crate::verify::baseline::{Baseline, Given};
use crate::verify::elementwise::Elementwise;
use crate::verify::parallel::{self, Done};
use crate::verify::product::{Matrices, Sums, product_extents};
use crate::verify::reference::ReferenceError;
use crate::verify::rows::Rows;
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
    /// Those from the `index`-th coordinate on.
    pub(super) fn starting_at(tensor: &'a Tensor, index: u64) -> Self {
        Self { tensor, walk: tensor.offsets().starting_at(index) }
    }

    pub(super) fn next(&mut self) -> Option<(f64, u64)> {
        let at = self.walk.next()?;
        with_scalar!(self.tensor.dtype(), T => self.tensor.span::<T>()?.get(at).map(|v| (v.value(), v.bits())))
    }
}

/// The accepted values at each coordinate of the outputs.
pub(super) trait Problem: Sync {
    /// The shape of every output; `None` where nothing says so.
    fn shape(&self) -> Option<Vec<i64>>;
    /// How many coordinates are best looked at one after the other.
    fn grain(&self) -> u64;
    /// From the `index`-th coordinate on, in row-major order.
    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_>;
    /// Whether a part of the outputs is right, as far as that is seen without evaluating the function for each element.
    fn is_right(&self, _outputs: &[&Tensor], _part: &Range<u64>) -> bool {
        false
    }
}

/// Coordinate after coordinate.
pub(super) trait Cursor {
    /// At the next coordinate, for each output.
    fn accepted(&mut self) -> Result<Outputs, ExprError>;
    /// The inputs at that coordinate, for a report.
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
        Some(Computes::Elementwise(_) | Computes::RowSum(_)) if baseline.is_some() => {
            Err(ReferenceError::Baseline { found: "a product, and a kernel that computes none".into() })
        }
        Some(computes @ (Computes::Elementwise(function) | Computes::RowSum(function))) => {
            if let Some(pair) = inputs.windows(2).find(|pair| pair[0].shape() != pair[1].shape()) {
                return Err(wrong(format!("{:?} and {:?}, of different shapes", pair[0], pair[1])));
            }
            let evaluator = function.evaluator(scalars).map_err(|e| wrong(e.found))?;
            match computes {
                Computes::RowSum(_) => Ok(Box::new(Rows::new(evaluator, identity().map_err(wrong)?, &read, inputs))),
                _ => Ok(Box::new(Elementwise::new(evaluator, &read, inputs))),
            }
        }
        Some(Computes::Product(product)) => {
            let evaluator = product.epilogue().evaluator(scalars).map_err(|e| wrong(e.found))?;
            let extents = product_extents(product, scalars, inputs);
            let extents = extents.ok_or_else(|| wrong(format!("{inputs:?}, which do not fit together")))?;
            let sums = match baseline {
                Some(baseline) if extents[2] > 0 => {
                    Sums::Given(Given::new(baseline, inputs, extents, product.arithmetic())?)
                }
                _ => Sums::Computed(Computed::new(inputs[0], inputs[1], extents, product.arithmetic())),
            };
            Ok(Box::new(Matrices::new(product, evaluator, scalars, &read, inputs, sums)))
        }
        None => Err(ReferenceError::Family { family: plan.family().to_owned() }),
    }
}

/// An output of a sum in f32.
fn identity() -> Result<Evaluator, String> {
    let identity = Function::unary(|sum| sum).check(Compute::F32);
    let found = |errors: Vec<ExprError>| errors.into_iter().map(|e| e.found).collect::<String>();
    identity.map_err(found)?.evaluator(&[]).map_err(|e| e.found)
}

/// That these are outputs of the plan, of the shape that its problem has.
fn fit(plan: &Plan, problem: &dyn Problem, outputs: &[&Tensor]) -> Result<(), ReferenceError> {
    let written: Vec<_> = plan.operands().iter().filter(|o| o.access == Access::Write).collect();
    let shape = problem.shape().or_else(|| outputs.first().map(|o| o.shape().to_vec())).unwrap_or_default();
    let fits = |(operand, output): (&&Operand, &&Tensor)| operand.dtype == output.dtype() && output.shape() == shape;
    if written.len() == outputs.len() && written.iter().zip(outputs).all(fits) {
        return Ok(());
    }
    let required: Vec<String> = written.iter().map(|o| format!("{} {}", o.name, o.dtype)).collect();
    Err(ReferenceError::Outputs {
        family: plan.family().to_owned(),
        found: format!("{outputs:?}"),
        required: format!("{}, of shape {shape:?}", required.join(", ")),
    })
}

/// The evaluated outputs, or the reason why there are none.
fn evaluated(plan: &Plan, outputs: Result<Outputs, ExprError>, count: usize) -> Result<Outputs, ReferenceError> {
    let wrong = |found| ReferenceError::Inputs { family: plan.family().to_owned(), found };
    let outputs = outputs.map_err(|e| wrong(e.found))?;
    // A coordinate that is compared with nothing would count as right.
    if outputs.len() == count { Ok(outputs) } else { Err(wrong(format!("values for {} outputs", outputs.len()))) }
}

/// Fills the outputs with values that no right kernel writes: a NaN with a mark, or, for types without one, bits that
/// are wrong at that coordinate. Works on all cores.
///
/// # Errors
/// The inputs or the outputs are not those of the plan.
pub fn fill_unwritten(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &mut [Tensor],
) -> Result<(), ReferenceError> {
    let problem = problem(plan, inputs, scalars, None)?;
    fit(plan, problem.as_ref(), &outputs.iter().collect::<Vec<_>>())?;
    outputs.iter_mut().for_each(Tensor::fill_unwritten);
    let dtypes: Vec<DType> = outputs.iter().map(Tensor::dtype).collect();
    if dtypes.iter().all(|dtype| marked(*dtype)) {
        return Ok(());
    }
    let total = outputs.iter().map(Tensor::size).max().unwrap_or(0);
    let outputs = Mutex::new(outputs);
    let parts = parallel::ranges(
        total,
        problem.grain(),
        || Ok(()),
        |state: &mut Result<(), ReferenceError>, part| {
            if state.is_ok() {
                *state = marks(plan, problem.as_ref(), &dtypes, part.clone()).map(|marks| {
                    let mut outputs = outputs.lock().unwrap_or_else(PoisonError::into_inner);
                    for (output, marks) in outputs.iter_mut().zip(marks) {
                        let offsets = output.offsets().starting_at(part.start);
                        with_scalar!(output.dtype(), T => if let Some(elements) = output.span_mut::<T>() {
                            for (at, bits) in offsets.zip(marks) {
                                elements[at] = T::of_bits(bits);
                            }
                        });
                    }
                });
            }
        },
    );
    parts.into_iter().collect()
}

/// The bits that are wrong at some coordinates, for each output.
fn marks(
    plan: &Plan,
    problem: &dyn Problem,
    dtypes: &[DType],
    part: Range<u64>,
) -> Result<Vec<Vec<u64>>, ReferenceError> {
    let mut cursor = problem.starting_at(part.start);
    let mut all = vec![Vec::with_capacity((part.end - part.start) as usize); dtypes.len()];
    for _ in part {
        let accepted = evaluated(plan, cursor.accepted(), dtypes.len())?;
        for ((dtype, marks), accept) in dtypes.iter().zip(&mut all).zip(accepted) {
            marks.push(with_scalar!(*dtype, T => {
                let wrong = [T::UNWRITTEN, !T::UNWRITTEN, 0].into_iter().map(|bits| T::of_bits(bits).bits());
                wrong.into_iter().find(|bits| !accept.accepts(*dtype, *bits)).unwrap_or(T::UNWRITTEN)
            }));
        }
    }
    Ok(all)
}

/// Whether the type has a NaN that marks unwritten elements.
fn marked(dtype: DType) -> bool {
    with_scalar!(dtype, T => T::QUIET != 0)
}

/// Compares every element of every output of the plan's kernel with the values that its definition accepts for the inputs,
/// and checks the guards of the outputs.
///
/// An elementwise kernel. If every operation is exact in IEEE 754 or in integers, there is one value, and equal means
/// equal bits except for NaN. A function such as `exp` may give the values within its documented error. See
/// [`Accept`](crate::expr::Accept).
///
/// A product: the accumulator is a sum of K products in any order, each addition and multiplication rounded or fused.
/// If the factors are integers and the sum of `|a| * |b|` is at most 2^24, every such sum is exact and there is one
/// value. Elsewhere it lies within `((1 + u)^K - 1) * sum |a| |b|` of the exact sum, u = 2^-24 (Higham, "Accuracy and
/// Stability of Numerical Algorithms", 2nd edition, sections 3.1 and 4.2). Tensor cores cut off where others round:
/// they get the same bound with 3 K instead of K. A sum along a row is a sum of N terms, each within its own bounds.
/// Every value that the epilogue may give for these is accepted. Factors that are multiplied by a scalar of 0 are not
/// read: the accumulator is 0 there, whatever they hold, and so is C.
///
/// Works on all cores; the verdict does not depend on how many there are.
///
/// # Errors
/// The inputs or the outputs are not those of the plan.
pub fn check(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &[&Tensor],
) -> Result<Vec<Verdict>, ReferenceError> {
    check_watched(plan, inputs, scalars, outputs, &|_| {})
}

/// The same, and calls `done` with the number of coordinates compared since its last call. Their total is the size of
/// an output.
///
/// # Errors
/// As [`check`].
pub fn check_watched(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &[&Tensor],
    done: Done<'_>,
) -> Result<Vec<Verdict>, ReferenceError> {
    verdicts(plan, problem(plan, inputs, scalars, None)?.as_ref(), outputs, done)
}

/// The same for a product whose sums another implementation computed, such as a library on a GPU: in time proportional to the
/// outputs.
///
/// Both lie within `((1 + u)^K - 1) * sum |a| |b|` of the exact sum, so within twice that of each other. The exact sum
/// of sizes is at most `1 / (1 - ((1 + u)^K - 1))` times the baseline's. If all factors are integers and that sum is
/// below 2^24, both are exact.
///
/// # Errors
/// As [`check`]; a kernel that is not a product; a baseline of another shape. Also a baseline that is not finite, or so
/// large that a sum could overflow: it says nothing about the kernel.
pub fn check_against(
    plan: &Plan,
    inputs: &[&Tensor],
    scalars: &[f64],
    outputs: &[&Tensor],
    baseline: Baseline<'_>,
) -> Result<Vec<Verdict>, ReferenceError> {
    verdicts(plan, problem(plan, inputs, scalars, Some(baseline))?.as_ref(), outputs, &|_| {})
}

/// What one thread found of one output: its first mismatches with their indices, and how many there are.
#[derive(Default)]
struct Tally {
    mismatches: u64,
    unwritten: u64,
    first: Vec<(u64, Mismatch)>,
}

/// What one thread found of all outputs.
type Tallies = Result<Vec<Tally>, ReferenceError>;

fn verdicts(
    plan: &Plan,
    problem: &dyn Problem,
    outputs: &[&Tensor],
    done: Done<'_>,
) -> Result<Vec<Verdict>, ReferenceError> {
    fit(plan, problem, outputs)?;
    let total = outputs.first().map_or(0, |o| o.size());
    let new = || -> Tallies { Ok(outputs.iter().map(|_| Tally::default()).collect()) };
    let tallies = parallel::ranges(total, problem.grain(), new, |state: &mut Tallies, part| {
        if let Ok(tallies) = state {
            let count = part.end - part.start;
            if !problem.is_right(outputs, &part)
                && let Err(error) = compare(plan, problem, outputs, part, tallies)
            {
                *state = Err(error);
                return;
            }
            done(count);
        }
    });
    let mut verdicts: Vec<Verdict> = outputs.iter().map(|o| Verdict::new(o.size(), o.guards())).collect();
    let mut first: Vec<Vec<(u64, Mismatch)>> = outputs.iter().map(|_| Vec::new()).collect();
    for tallies in tallies {
        for ((verdict, first), tally) in verdicts.iter_mut().zip(&mut first).zip(tallies?) {
            verdict.mismatches += tally.mismatches;
            verdict.unwritten += tally.unwritten;
            first.extend(tally.first);
        }
    }
    // A thread's parts ascend, so that the first mismatch of all is among the first ones of the threads.
    for (verdict, mut first) in verdicts.iter_mut().zip(first) {
        first.sort_unstable_by_key(|(index, _)| *index);
        verdict.first = first.into_iter().map(|(_, mismatch)| mismatch).take(Verdict::KEPT).collect();
    }
    Ok(verdicts)
}

/// Compares some coordinates of all outputs.
fn compare(
    plan: &Plan,
    problem: &dyn Problem,
    outputs: &[&Tensor],
    part: Range<u64>,
    tallies: &mut [Tally],
) -> Result<(), ReferenceError> {
    let mut cursor = problem.starting_at(part.start);
    let mut found: Vec<Elements<'_>> = outputs.iter().map(|t| Elements::starting_at(t, part.start)).collect();
    for index in part {
        let accepted = evaluated(plan, cursor.accepted(), outputs.len())?;
        for ((elements, tally), accept) in found.iter_mut().zip(&mut *tallies).zip(accepted) {
            let dtype = elements.tensor.dtype();
            let (value, bits) = elements.next().ok_or_else(|| ReferenceError::Outputs {
                family: plan.family().to_owned(),
                found: format!("{:?}, which ends at element {index}", elements.tensor),
                required: "an element at each coordinate".to_owned(),
            })?;
            let mark = with_scalar!(dtype, T => T::UNWRITTEN);
            let right = accept.accepts(dtype, bits);
            // An input may hold the mark's payload by chance, and additions pass payloads on.
            let unwritten = bits == mark && if value.is_nan() { !cursor.carries(dtype, bits) } else { !right };
            if right && !unwritten {
                continue;
            }
            tally.mismatches += 1;
            tally.unwritten += u64::from(unwritten);
            if tally.first.len() == Verdict::KEPT {
                continue;
            }
            let expected = match accept.exact(dtype) {
                Some(bits) => Expected::Bits(bits),
                None => Expected::Range { range: accept.range(), nan: accept.may_be_nan() },
            };
            let coordinate = elements.tensor.offsets().starting_at(index).coordinate();
            let inputs = cursor.inputs();
            tally.first.push((index, Mismatch { coordinate, unwritten, found: bits, expected, inputs, dtype }));
        }
    }
    Ok(())
}
