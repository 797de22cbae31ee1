//! Compares every element of every output with the values that the kernel's definition accepts there.

use core::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::dtype::DType;
use crate::expr::{ExprError, Outputs};
use crate::plan::{Accepted, Baseline, Case, Operand, Plan, ReferenceError};
use crate::tensor::{Done, Elements, Scalar, Tensor, parallel, with_scalar};
use crate::verify::verdict::{Expected, Mismatch, Verdict, unwritten};
use crate::view::Access;

/// What is accepted for these inputs, one item for each group of outputs.
fn accepted<'a>(
    plan: &'a Plan,
    inputs: &[&'a Tensor],
    scalars: &[f64],
    written: &[Vec<i64>],
    baseline: Option<Baseline<'a>>,
) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
    let family = || plan.family().to_owned();
    let reference = plan.reference().ok_or_else(|| ReferenceError::Family { family: family() })?;
    let case = Case { abi: plan.abi(), inputs, scalars, written, baseline };
    let fits = |(operand, tensor): (&Operand, &&Tensor)| operand.dtype == tensor.dtype();
    if case.read().count() != inputs.len() || !case.read().zip(inputs).all(fits) {
        return Err(case.unfit(format!("{inputs:?}")));
    }
    reference.accepted(&case)
}

fn shapes(outputs: &[&Tensor]) -> Vec<Vec<i64>> {
    outputs.iter().map(|output| output.shape().to_vec()).collect()
}

/// The numbers of the outputs that each group has, which are those of the plan, of the shapes that its problem has.
fn fit(
    plan: &Plan,
    groups: &[Box<dyn Accepted + '_>],
    outputs: &[&Tensor],
) -> Result<Vec<Range<usize>>, ReferenceError> {
    let written: Vec<_> = plan.operands().iter().filter(|o| o.access == Access::Write).collect();
    let (mut ranges, mut shapes) = (Vec::new(), Vec::new());
    for group in groups {
        let first = shapes.len();
        let shape = group.shape().or_else(|| outputs.get(first).map(|o| o.shape().to_vec())).unwrap_or_default();
        shapes.extend(core::iter::repeat_n(shape, group.outputs()));
        ranges.push(first..shapes.len());
    }
    let fits = |((operand, output), shape): ((&&Operand, &&Tensor), &Vec<i64>)| {
        operand.dtype == output.dtype() && output.shape() == shape
    };
    let counts = [written.len(), outputs.len()];
    if counts == [shapes.len(); 2] && written.iter().zip(outputs).zip(&shapes).all(fits) {
        return Ok(ranges);
    }
    let required: Vec<String> = match &shapes[..] {
        [first, others @ ..] if others.iter().all(|shape| shape == first) => {
            let named: Vec<String> = written.iter().map(|o| format!("{} {}", o.name, o.dtype)).collect();
            vec![format!("{}, of shape {first:?}", named.join(", "))]
        }
        shapes => {
            written.iter().zip(shapes).map(|(o, shape)| format!("{} {} of shape {shape:?}", o.name, o.dtype)).collect()
        }
    };
    Err(ReferenceError::Outputs {
        family: plan.family().to_owned(),
        found: format!("{outputs:?}"),
        required: required.join(", "),
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
    let written = shapes(&outputs.iter().collect::<Vec<_>>());
    let groups = accepted(plan, inputs, scalars, &written, None)?;
    let ranges = fit(plan, &groups, &outputs.iter().collect::<Vec<_>>())?;
    outputs.iter_mut().for_each(Tensor::fill_unwritten);
    for (group, range) in groups.iter().zip(ranges) {
        mark(plan, group.as_ref(), &mut outputs[range])?;
    }
    Ok(())
}

/// Gives the outputs of one group bits that are wrong, where a type has no mark.
fn mark(plan: &Plan, group: &dyn Accepted, outputs: &mut [Tensor]) -> Result<(), ReferenceError> {
    let dtypes: Vec<DType> = outputs.iter().map(Tensor::dtype).collect();
    if dtypes.iter().all(|dtype| marked(*dtype)) {
        return Ok(());
    }
    let total = outputs.iter().map(Tensor::size).max().unwrap_or(0);
    let outputs = Mutex::new(outputs);
    let parts = parallel::ranges(
        total,
        group.grain(),
        || Ok(()),
        |state: &mut Result<(), ReferenceError>, part| {
            if state.is_ok() {
                *state = marks(plan, group, &dtypes, part.clone()).map(|marks| {
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
    group: &dyn Accepted,
    dtypes: &[DType],
    part: Range<u64>,
) -> Result<Vec<Vec<u64>>, ReferenceError> {
    let mut cursor = group.starting_at(part.start);
    let mut all = vec![Vec::with_capacity((part.end - part.start) as usize); dtypes.len()];
    for _ in part {
        let accepted = evaluated(plan, cursor.accepted(), dtypes.len())?;
        for ((dtype, marks), accept) in dtypes.iter().zip(&mut all).zip(accepted) {
            marks.push(unwritten(*dtype, &accept));
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

/// The same, and calls `done` with the number of coordinates compared since its last call. Outputs of one shape are compared
/// together: their total is the size of one of each shape.
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
    verdicts(plan, &accepted(plan, inputs, scalars, &shapes(outputs), None)?, outputs, done)
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
    verdicts(plan, &accepted(plan, inputs, scalars, &shapes(outputs), Some(baseline))?, outputs, &|_| {})
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
    groups: &[Box<dyn Accepted + '_>],
    outputs: &[&Tensor],
    done: Done<'_>,
) -> Result<Vec<Verdict>, ReferenceError> {
    let ranges = fit(plan, groups, outputs)?;
    let each = groups.iter().zip(ranges).map(|(group, range)| verdicts_of(plan, group.as_ref(), &outputs[range], done));
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Those of one group.
fn verdicts_of(
    plan: &Plan,
    group: &dyn Accepted,
    outputs: &[&Tensor],
    done: Done<'_>,
) -> Result<Vec<Verdict>, ReferenceError> {
    let total = outputs.first().map_or(0, |o| o.size());
    let new = || -> Tallies { Ok(outputs.iter().map(|_| Tally::default()).collect()) };
    let tallies = parallel::ranges(total, group.grain(), new, |state: &mut Tallies, part| {
        if let Ok(tallies) = state {
            let count = part.end - part.start;
            if !group.is_right(outputs, &part)
                && let Err(error) = compare(plan, group, outputs, part, tallies)
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
    group: &dyn Accepted,
    outputs: &[&Tensor],
    part: Range<u64>,
    tallies: &mut [Tally],
) -> Result<(), ReferenceError> {
    let mut cursor = group.starting_at(part.start);
    let mut found: Vec<Elements<'_>> = outputs.iter().map(|t| Elements::starting_at(t, part.start)).collect();
    for index in part {
        let accepted = evaluated(plan, cursor.accepted(), outputs.len())?;
        for ((elements, tally), accept) in found.iter_mut().zip(&mut *tallies).zip(accepted) {
            let dtype = elements.tensor().dtype();
            let (value, bits) = elements.next().ok_or_else(|| ReferenceError::Outputs {
                family: plan.family().to_owned(),
                found: format!("{:?}, which ends at element {index}", elements.tensor()),
                required: "an element at each coordinate".to_owned(),
            })?;
            let mark = with_scalar!(dtype, T => T::UNWRITTEN);
            let right = match cursor.is_written() || marked(dtype) {
                true => accept.accepts(dtype, bits),
                false => bits == unwritten(dtype, &accept),
            };
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
            let expected = Expected::of(&accept, dtype);
            let coordinate = elements.tensor().offsets().starting_at(index).coordinate();
            let inputs = cursor.inputs();
            tally.first.push((index, Mismatch { coordinate, unwritten, found: bits, expected, inputs, dtype }));
        }
    }
    Ok(())
}
