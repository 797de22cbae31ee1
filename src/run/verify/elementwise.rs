//! Elementwise kernels: the values that a function may give at each coordinate.

use crate::dtype::DType;
use crate::expr::{Evaluator, ExprError, Outputs};
use crate::plan::Operand;
use crate::verify::check::{Cursor, Elements, Problem};
use crate::verify::parallel::GRAIN;
use crate::verify::scalar::carried;
use crate::verify::tensor::Tensor;
use crate::verify::verdict::Element;

/// One function and its inputs, all of one shape.
pub(super) struct Elementwise<'a> {
    evaluator: Evaluator,
    named: Vec<(&'static str, DType)>,
    inputs: Vec<&'a Tensor>,
}

impl<'a> Elementwise<'a> {
    pub(super) fn new(evaluator: Evaluator, read: &[&Operand], inputs: &[&'a Tensor]) -> Self {
        Self { evaluator, named: read.iter().map(|o| (o.name, o.dtype)).collect(), inputs: inputs.to_vec() }
    }
}

impl Problem for Elementwise<'_> {
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

    fn inputs(&self) -> Vec<Element> {
        let inputs = self.problem.named.iter().zip(&self.bits);
        inputs.map(|((name, dtype), bits)| Element { name: (*name).to_owned(), dtype: *dtype, bits: *bits }).collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        carried(dtype, bits, self.bits.iter().copied())
    }
}
