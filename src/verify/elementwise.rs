//! Elementwise kernels: the values that a function may give at each coordinate.

use crate::dtype::DType;
use crate::expr::{Evaluator, Outputs};
use crate::plan::Operand;
use crate::verify::check::{Elements, Problem};
use crate::verify::scalar::carried;
use crate::verify::tensor::Tensor;
use crate::verify::verdict::Element;

/// The inputs of one function, walked over together.
pub(super) struct Elementwise<'a> {
    evaluator: Evaluator,
    named: Vec<(&'static str, DType)>,
    inputs: Vec<Elements<'a>>,
    values: Vec<f64>,
    bits: Vec<u64>,
}

impl<'a> Elementwise<'a> {
    pub(super) fn new(evaluator: Evaluator, read: &[&Operand], inputs: &[&'a Tensor]) -> Self {
        Self {
            evaluator,
            named: read.iter().map(|o| (o.name, o.dtype)).collect(),
            inputs: inputs.iter().map(|t| Elements::of(t)).collect(),
            values: Vec::new(),
            bits: Vec::new(),
        }
    }
}

impl Problem for Elementwise<'_> {
    fn accepted(&mut self) -> Outputs {
        self.values.clear();
        self.bits.clear();
        for (value, bits) in self.inputs.iter_mut().filter_map(Elements::next) {
            self.values.push(value);
            self.bits.push(bits);
        }
        self.evaluator.evaluate(&self.values).unwrap_or_default()
    }

    fn inputs(&self) -> Vec<Element> {
        let inputs = self.named.iter().zip(&self.bits);
        inputs.map(|((name, dtype), bits)| Element { name: (*name).to_owned(), dtype: *dtype, bits: *bits }).collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        carried(dtype, bits, self.bits.iter().copied())
    }
}
