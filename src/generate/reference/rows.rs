//! Sums along rows: bounds of the results of any order of additions.

use super::elementwise::of_one_shape;
use super::sums::{Spread, Terms};
use crate::dtype::DType;
use crate::expr::{Bounds, Checked, Compute, Evaluator, ExprError, Function, Outputs};
use crate::plan::{Accepted, Arithmetic, Case, Cursor, InputElement, Reference, ReferenceError};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Elements, Tensor, carried};

/// For each row, the sum in f32 of the function of the inputs' elements there, from 0 on, in any order.
#[derive(Clone, Debug)]
pub struct RowSum(pub Checked);

impl Reference for RowSum {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        let n = case.inputs.first().and_then(|t| t.shape().get(1)).map_or(0, |n| n.unsigned_abs());
        Ok(vec![Box::new(Rows {
            terms: of_one_shape(&self.0, case)?,
            sum: identity().map_err(|found| case.unfit(found))?,
            inputs: case.inputs.to_vec(),
            named: case.read().map(|o| (o.name, o.dtype)).collect(),
            n,
            spread: Spread::of(n as usize, Arithmetic::F32),
        })])
    }
}

/// An output of a sum in f32.
fn identity() -> Result<Evaluator, String> {
    let identity = Function::unary(|sum| sum).check(Compute::F32);
    let found = |errors: Vec<ExprError>| errors.into_iter().map(|e| e.found).collect::<String>();
    identity.map_err(found)?.evaluator(&[]).map_err(|e| e.found)
}

/// The function of the terms, and its inputs, all `(M,N)`.
struct Rows<'a> {
    terms: Evaluator,
    /// The sum, as an output stores it.
    sum: Evaluator,
    inputs: Vec<&'a Tensor>,
    named: Vec<(&'static str, DType)>,
    n: u64,
    spread: Spread,
}

impl Accepted for Rows<'_> {
    fn outputs(&self) -> usize {
        1
    }

    fn shape(&self) -> Option<Vec<i64>> {
        self.inputs.first().map(|t| t.shape().iter().take(1).copied().collect())
    }

    fn grain(&self) -> u64 {
        (GRAIN / self.n.max(1)).max(1)
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        let inputs = self.inputs.iter().map(|t| Elements::starting_at(t, index * self.n)).collect();
        let (terms, sum) = (self.terms.clone(), self.sum.clone());
        Box::new(Row { problem: self, terms, sum, inputs, bits: Vec::new(), bounds: Bounds::point(0.0) })
    }
}

/// Row after row.
struct Row<'a> {
    problem: &'a Rows<'a>,
    terms: Evaluator,
    sum: Evaluator,
    inputs: Vec<Elements<'a>>,
    /// Results of the last row.
    bits: Vec<u64>,
    bounds: Bounds,
}

impl Cursor for Row<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        self.bits.clear();
        let mut terms = Terms::new(true);
        let mut values = Vec::with_capacity(self.inputs.len());
        for _ in 0..self.problem.n {
            values.clear();
            for (value, bits) in self.inputs.iter_mut().filter_map(Elements::next) {
                values.push(value);
                self.bits.push(bits);
            }
            if let Some(term) = self.terms.evaluate(&values)?.first() {
                terms.add(term.range(), term.may_be_nan());
            }
        }
        self.bounds = terms.bounds(self.problem.spread);
        self.sum.evaluate_bounds(&[self.bounds])
    }

    fn inputs(&self) -> Vec<InputElement> {
        let ends = self.bounds.range().unwrap_or((f64::NAN, f64::NAN));
        let end =
            |name: &str, value: f64| InputElement { name: name.to_owned(), dtype: DType::F64, bits: value.to_bits() };
        vec![end("least sum", ends.0), end("greatest sum", ends.1)]
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        let same = self.problem.named.iter().map(|(_, of)| *of == dtype).collect::<Vec<_>>();
        let sources = self.bits.iter().zip(same.iter().cycle()).filter(|(_, same)| **same).map(|(bits, _)| *bits);
        carried(dtype, bits, sources)
    }
}
