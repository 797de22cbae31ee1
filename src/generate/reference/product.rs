//! Products of matrices: the epilogue's possible results for the bounds of every accumulator.

use core::ops::Range;

use smallvec::SmallVec;

use super::baseline::{Given, GivenSums};
use super::sums::{Computed, ComputedSums};
use crate::dtype::DType;
use crate::expr::{Bounds, Evaluator, ExprError, MAX_INPUTS, Outputs};
use crate::plan::{Accepted, Case, Cursor, InputElement, Product, Reference, ReferenceError};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Elements, Tensor, carried};

impl Reference for Product {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        let evaluator = self.epilogue().evaluator(case.scalars).map_err(|e| case.unfit(e.found))?;
        let extents = product_extents(self, case.scalars, case.inputs);
        let extents = extents.ok_or_else(|| case.unfit(format!("{:?}, which do not fit together", case.inputs)))?;
        let sums = match case.baseline {
            Some(baseline) if extents[2] > 0 => {
                Sums::Given(Given::new(baseline, case.inputs, extents, self.arithmetic())?)
            }
            _ => Sums::Computed(Computed::new(case.inputs[0], case.inputs[1], extents, self.arithmetic())),
        };
        Ok(vec![Box::new(Matrices::new(self, evaluator, case, sums))])
    }

    fn usual_scalar(&self, index: usize) -> Option<f64> {
        self.usual_scalar(index)
    }

    /// Two for each product that is added.
    fn flop(&self, extents: &[i64]) -> Option<f64> {
        Some(2.0 * extents.iter().map(|extent| *extent as f64).product::<f64>())
    }

    fn product(&self) -> Option<&Product> {
        Some(self)
    }
}

/// Where the accumulators of one product are known from.
enum Sums<'a> {
    /// Summed up here.
    Computed(Computed),
    /// Another implementation's.
    Given(Given<'a>),
}

/// The bounds of one accumulator after the other.
#[expect(clippy::large_enum_variant, reason = "there is one a thread, asked for every element")]
enum SumsFrom<'a> {
    Computed(ComputedSums<'a>),
    Given(GivenSums<'a>),
}

impl SumsFrom<'_> {
    fn next(&mut self) -> Bounds {
        match self {
            SumsFrom::Computed(sums) => sums.next(),
            SumsFrom::Given(sums) => sums.next(),
        }
    }

    /// Whether a NaN of these bits could come from the factors of the sum that was last given.
    fn carry(&self, dtype: DType, bits: u64) -> bool {
        match self {
            SumsFrom::Computed(sums) => carried(dtype, bits, sums.factors().map(|x| u64::from(x.to_bits()))),
            // Its sums are finite, and so are its factors.
            SumsFrom::Given(_) => false,
        }
    }
}

/// `[M, N, K, L]`, where K is 0 if these scalars spare the factors; `None` where the shapes do not belong together.
fn product_extents(product: &Product, scalars: &[f64], inputs: &[&Tensor]) -> Option<[i64; 4]> {
    let (factors, rest) = inputs.split_at_checked(2)?;
    let [a, b] = [factors[0].shape(), factors[1].shape()];
    let ([m, k, batches @ ..], [k_b, n, batches_b @ ..]) = (a, b) else { return None };
    let shape: Vec<i64> = [*m, *n].into_iter().chain(batches.iter().copied()).collect();
    let fits = k == k_b && batches == batches_b && rest.iter().all(|t| t.shape() == shape);
    (fits && batches.len() == usize::from(product.is_batched())).then_some(())?;
    let k = if product.reads_factors(scalars) { *k } else { 0 };
    Some([*m, *n, k, batches.first().copied().unwrap_or(1)])
}

/// The matrices of one product.
struct Matrices<'a> {
    evaluator: Evaluator,
    sums: Sums<'a>,
    /// Shape of D.
    shape: Vec<i64>,
    outputs: usize,
    has_c: bool,
    reads_c: bool,
    /// Whether the epilogue has an input for C and does not use it.
    unused_c: bool,
    /// Whether the epilogue gives accumulators as they are.
    only_sums: bool,
    named: Vec<(&'static str, DType)>,
    /// C, where it is an operand, and the auxiliary tensors.
    others: Vec<&'a Tensor>,
}

impl<'a> Matrices<'a> {
    /// For matrices that fit together, and the sums of their factors.
    fn new(product: &Product, evaluator: Evaluator, case: &Case<'a, '_>, sums: Sums<'a>) -> Self {
        let shape = match case.inputs {
            [a, b, ..] => a.shape().iter().take(1).chain(b.shape().iter().skip(1)).copied().collect(),
            _ => Vec::new(),
        };
        Self {
            evaluator,
            sums,
            shape,
            outputs: product.epilogue().function().outputs(),
            has_c: product.has_c(),
            reads_c: product.reads_c(case.scalars),
            unused_c: !product.has_c() && product.epilogue().function().inputs() > 1,
            only_sums: product.epilogue().function().is_first_input(),
            named: case.read().skip(2).map(|o| (o.name, o.dtype)).collect(),
            others: case.inputs.iter().skip(2).copied().collect(),
        }
    }
}

impl Accepted for Matrices<'_> {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn shape(&self) -> Option<Vec<i64>> {
        Some(self.shape.clone())
    }

    fn grain(&self) -> u64 {
        match &self.sums {
            Sums::Computed(sums) => sums.grain(),
            Sums::Given(_) => GRAIN,
        }
    }

    fn is_right(&self, outputs: &[&Tensor], part: &Range<u64>) -> bool {
        match (&self.sums, outputs) {
            (Sums::Given(sums), [output]) if self.only_sums => sums.are_right(output, part),
            _ => false,
        }
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        Box::new(Together {
            evaluator: self.evaluator.clone(),
            problem: self,
            sums: match &self.sums {
                Sums::Computed(sums) => SumsFrom::Computed(sums.starting_at(index)),
                Sums::Given(sums) => SumsFrom::Given(sums.starting_at(index)),
            },
            others: self.others.iter().map(|t| Elements::starting_at(t, index)).collect(),
            bits: Vec::new(),
            accumulator: Bounds::point(0.0),
        })
    }
}

/// Accumulators and the elements of the other matrices, walked over together.
struct Together<'a> {
    evaluator: Evaluator,
    problem: &'a Matrices<'a>,
    sums: SumsFrom<'a>,
    others: Vec<Elements<'a>>,
    bits: Vec<u64>,
    accumulator: Bounds,
}

impl Cursor for Together<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        self.accumulator = self.sums.next();
        self.bits.clear();
        let mut values = SmallVec::<[Bounds; MAX_INPUTS]>::from_slice(&[self.accumulator]);
        values.extend(self.problem.unused_c.then(|| Bounds::point(0.0)));
        for (i, (value, bits)) in self.others.iter_mut().filter_map(Elements::next).enumerate() {
            let skipped = i == 0 && self.problem.has_c && !self.problem.reads_c;
            values.push(Bounds::point(if skipped { 0.0 } else { value }));
            self.bits.push(bits);
        }
        let mut outputs = self.evaluator.evaluate_bounds(&values)?;
        // D, which the function gives first, is the last operand.
        outputs.rotate_left(1);
        Ok(outputs)
    }

    fn inputs(&self) -> Vec<InputElement> {
        let element = |name: &str, dtype, bits| InputElement { name: name.to_owned(), dtype, bits };
        let ends = self.accumulator.range().unwrap_or((f64::NAN, f64::NAN));
        let ends = [("least A @ B", ends.0), ("greatest A @ B", ends.1)];
        let ends = ends.into_iter().map(|(name, value)| element(name, DType::F64, value.to_bits()));
        let others = self.problem.named.iter().zip(&self.bits);
        ends.chain(others.map(|((name, dtype), bits)| element(name, *dtype, *bits))).collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        self.sums.carry(dtype, bits) || carried(dtype, bits, self.bits.iter().copied())
    }
}
