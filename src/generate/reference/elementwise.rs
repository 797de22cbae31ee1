//! Elementwise kernels: the values that a function may give at each coordinate.

use crate::dtype::DType;
use crate::expr::{Checked, Evaluator, ExprError, Outputs};
use crate::plan::{Accepted, Case, Cursor, InputElement, Reference, ReferenceError};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Elements, Tensor, carried};

/// The function at each coordinate.
impl Reference for Checked {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        Ok(vec![Box::new(Elementwise {
            evaluator: of_one_shape(self, case)?,
            outputs: self.function().outputs(),
            named: case.read().map(|o| (o.name, o.dtype)).collect(),
            inputs: case.inputs.to_vec(),
        })])
    }
}

/// The evaluator of a function of inputs of one shape.
pub(super) fn of_one_shape(function: &Checked, case: &Case<'_, '_>) -> Result<Evaluator, ReferenceError> {
    case.alone()?;
    if let Some(pair) = case.inputs.windows(2).find(|pair| pair[0].shape() != pair[1].shape()) {
        return Err(case.unfit(format!("{:?} and {:?}, of different shapes", pair[0], pair[1])));
    }
    function.evaluator(case.scalars).map_err(|e| case.unfit(e.found))
}

/// One function and its inputs, all of one shape.
struct Elementwise<'a> {
    evaluator: Evaluator,
    outputs: usize,
    named: Vec<(&'static str, DType)>,
    inputs: Vec<&'a Tensor>,
}

impl Accepted for Elementwise<'_> {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn shape(&self) -> Option<Vec<i64>> {
        self.inputs.first().map(|t| t.shape().to_vec())
    }

    fn grain(&self) -> u64 {
        GRAIN
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        Box::new(Together {
            evaluator: self.evaluator.clone(),
            problem: self,
            inputs: self.inputs.iter().map(|t| Elements::starting_at(t, index)).collect(),
            values: Vec::new(),
            bits: Vec::new(),
        })
    }
}

/// The inputs, walked over together.
struct Together<'a> {
    evaluator: Evaluator,
    problem: &'a Elementwise<'a>,
    inputs: Vec<Elements<'a>>,
    values: Vec<f64>,
    bits: Vec<u64>,
}

impl Cursor for Together<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        self.values.clear();
        self.bits.clear();
        for (value, bits) in self.inputs.iter_mut().filter_map(Elements::next) {
            self.values.push(value);
            self.bits.push(bits);
        }
        self.evaluator.evaluate(&self.values)
    }

    fn inputs(&self) -> Vec<InputElement> {
        let inputs = self.problem.named.iter().zip(&self.bits);
        inputs
            .map(|((name, dtype), bits)| InputElement { name: (*name).to_owned(), dtype: *dtype, bits: *bits })
            .collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        carried(dtype, bits, self.bits.iter().copied())
    }
}
