//! The weights of a row's keys, and the bounds of what they give.

use core::f64::consts::{LN_2, LOG2_E};

use super::{Problem, Sequence, Softmax, U};
use crate::dtype::DType;
use crate::expr::{Accept, ExprError, Outputs};
use crate::plan::Arithmetic;
use crate::reference::spread::Spread;

/// The largest relative error of `ex2.approx.ftz.f32` (PTX ISA, "ex2").
const EX2: f64 = 1.0 / 4_194_304.0;

/// The weights of a row's keys, relative to the largest, and how far those of a right kernel may be from them.
pub(super) struct Weights<'a> {
    sequence: Sequence,
    group: usize,
    pub(super) keys: core::ops::Range<usize>,
    softmax: &'a Softmax,
    /// Scores in base 2, and their errors; then weights, and their relative errors.
    all: Vec<(f64, f64)>,
    /// The largest score.
    most: f64,
    /// The sum of weights, and its error.
    sum: (f64, f64),
    /// Sums of numbers that overflow may be anything.
    pub(super) anything: bool,
    nan: bool,
    /// What the weighted sum of values is multiplied by.
    pub(super) of_v: Option<f64>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(
        (sequence, group): (Sequence, usize),
        keys: core::ops::Range<usize>,
        softmax: &'a Softmax,
    ) -> Self {
        let all = Vec::with_capacity(keys.len());
        let (most, sum) = (f64::NEG_INFINITY, (0.0, 0.0));
        Self { sequence, group, keys, softmax, all, most, sum, anything: false, nan: false, of_v: None }
    }

    pub(super) fn push(&mut self, score: f64, error: f64) {
        // An infinite score less itself is NaN.
        self.nan |= score.is_nan() || score == f64::INFINITY;
        self.most = self.most.max(score);
        self.all.push((score, error));
    }

    /// What a function makes of a score.
    pub(super) fn scored(&mut self, outputs: Result<Outputs, ExprError>) {
        let Some(accept) = outputs.ok().and_then(|outputs| outputs.first().copied()) else {
            self.anything = true;
            return;
        };
        let range = accept.range();
        match range {
            _ if accept.may_be_nan() => self.anything |= range.is_some(),
            Some((low, high)) if low == high => {}
            Some((low, high)) => self.anything |= !(low.is_finite() && high.is_finite()),
            None => {}
        }
        let (low, high) = range.unwrap_or((f64::NAN, f64::NAN));
        let score = if low == high { low } else { low + (high - low) / 2.0 } * LOG2_E;
        self.anything |= score.is_finite() && score.abs() + (high - low) * LOG2_E > f64::from(f32::MAX);
        let width = if low == high { 0.0 } else { (high - low) / 2.0 };
        self.push(score, LOG2_E * width + 3.0 * U * score.abs());
    }

    /// Steps of the keys, each of which may raise the maximum.
    fn steps(&self) -> f64 {
        (self.keys.len() as i64 / self.softmax.step.max(1) + 2 + i64::from(self.softmax.sinks)) as f64
    }

    /// Keys that are added up, those of the first and last step that are not seen among them.
    fn added(&self) -> usize {
        self.keys.len() + 2 * self.softmax.step.unsigned_abs() as usize + usize::from(self.softmax.sinks)
    }

    /// From scores to weights; the one without a key comes last.
    pub(super) fn finish(&mut self, sink: Option<f32>) {
        if let Some(sink) = sink {
            let score = f64::from(sink) * LOG2_E;
            self.anything |= sink.is_finite() && score.abs() > f64::from(f32::MAX);
            self.push(score, 3.0 * U * score.abs());
        }
        let (steps, most) = (self.steps(), self.most);
        let finite = |error: &f64| if error.is_finite() { *error } else { 0.0 };
        let moved = self.all.iter().map(|(_, error)| finite(error)).fold(0.0, f64::max) + U * finite(&most).abs();
        // What is absolute below is relative to a maximum that is off by less than a factor of 2.
        self.anything |= moved > 1.0;
        for (score, error) in &mut self.all {
            let weight = if *score == f64::NEG_INFINITY { 0.0 } else { (*score - most).exp2() };
            let depth = if weight > 0.0 { most - *score + 2.0 * moved } else { 0.0 };
            // The exponent of a weight, and those of the factors that it is scaled by later, are rounded: together they are no
            // larger than twice the depth. Each exponential, and each product with a factor, is rounded.
            let relative = LN_2 * (finite(error) + 2.0 * U * depth) + (EX2 + 2.0 * U) * (steps + 1.0);
            (*score, *error) = (weight, libm::expm1(relative));
        }
        // Each weight is added once, to sums of a thread and of four lanes, which are scaled once a step.
        let additions = U * (self.added() as f64 + steps + 4.0);
        let flushed = f64::from(f32::MIN_POSITIVE) * (steps + 2.0);
        for (weight, error) in &self.all {
            self.sum.0 += weight;
            self.sum.1 += weight * libm::expm1(libm::log1p(*error) + additions) + 2.0 * flushed;
        }
    }

    /// The logarithm of the sum of exponentials.
    pub(super) fn logarithm(&self) -> Accept {
        match self.special() {
            Some(special) => special,
            None if self.most == f64::NEG_INFINITY => Accept::within(f64::NEG_INFINITY, 0.0),
            None => {
                let ((sum, error), most) = (self.sum, self.most * LN_2);
                let log = sum.ln();
                // The maximum times ln(2), which is rounded; the logarithm, within one unit; and their sum.
                let rounded = U * (2.0 * most.abs() + 4.0 * (log.abs() + error) + 2.0 * (most + log).abs());
                Accept::within(most + log, error / (sum - error).max(0.0) + rounded + f64::from(f32::MIN_POSITIVE))
            }
        }
    }

    fn special(&self) -> Option<Accept> {
        match (self.anything, self.nan) {
            (true, _) => Some(Accept::within(0.0, f64::INFINITY).or_nan()),
            (false, true) => Some(Accept::within(f64::NAN, 0.0)),
            (false, false) => None,
        }
    }

    /// One element of O.
    pub(super) fn value(&self, problem: &Problem<'_>, element: usize) -> Accept {
        let dv = problem.elements[1];
        let at = |key| problem.row(&problem.v, dv, (key, self.group)).get(element).copied().unwrap_or(0.0);
        if let Some(special) = self.special() {
            return special;
        }
        if self.most == f64::NEG_INFINITY {
            return Accept::within(0.0, 0.0);
        }
        // 0 times a value that is not finite is NaN, where a step has keys that are not seen.
        let unseen = |key: &usize| !self.keys.contains(key);
        let may_be_nan = (self.sequence.keys[0]..self.sequence.keys[1]).filter(unseen).any(|key| !at(key).is_finite());
        let sum = self.summed(self.keys.clone().map(at));
        if may_be_nan { sum.or_nan() } else { sum }
    }

    /// The sum of weighted values, divided by the sum of weights.
    fn summed(&self, values: impl Iterator<Item = f32>) -> Accept {
        let (digits, least) = match self.softmax.weights {
            DType::Bf16 => (1.0 / 256.0, 0.0),
            // Half of the smallest f16.
            _ => (1.0 / 2048.0, 1.0 / 33_554_432.0),
        };
        let steps = self.steps();
        let (mut sum, mut size, mut error, mut infinite) = (0.0, 0.0, 0.0, [false; 2]);
        // A score of -inf has no weight: 0 times such a value is NaN, but a step of such scores alone may be left out.
        let mut may_be_nan = false;
        for ((weight, relative), value) in self.all.iter().zip(values).map(|(of, v)| (of, f64::from(v))) {
            if *weight == 0.0 && !value.is_finite() {
                may_be_nan = true;
                continue;
            }
            if value.is_nan() {
                return Accept::within(f64::NAN, 0.0);
            }
            if value.is_infinite() {
                infinite[usize::from(value < 0.0)] = true;
                continue;
            }
            let product = weight * value;
            sum += product;
            // The weight is rounded to 16 bits, and what it adds is scaled once a step.
            let grown = (1.0 + relative) * (1.0 + digits) * (1.0 + U * steps);
            let absolute = 2.0 * (least + f64::from(f32::MIN_POSITIVE) * (steps + 2.0)) * value.abs();
            size += product.abs() * grown + absolute;
            error += product.abs() * (grown - 1.0) + absolute;
        }
        match infinite {
            [false, false] => {}
            // A weight that is rounded to 0 makes NaN of it.
            [true, false] => return Accept::within(f64::INFINITY, 0.0).or_nan(),
            [false, true] => return Accept::within(f64::NEG_INFINITY, 0.0).or_nan(),
            [true, true] => return Accept::within(f64::NAN, 0.0),
        }
        error += Spread::of(self.added(), Arithmetic::TensorCores).error(size);
        let (of, of_sum) = self.sum;
        let value = sum / of;
        // The reciprocal, and the product with it, are rounded.
        let error = (error + value.abs() * of_sum) / (of - of_sum).max(0.0) * (1.0 + 4.0 * U) + 4.0 * U * value.abs();
        let (error, least) = (error + f64::from(f32::MIN_POSITIVE), f64::from(f32::MIN_POSITIVE));
        let accept = match self.of_v {
            None => Accept::within(value, error),
            Some(of_v) if !of_v.is_finite() => Accept::within(0.0, f64::INFINITY).or_nan(),
            // The product is rounded.
            Some(of_v) => {
                Accept::within(value * of_v, error * of_v.abs() * (1.0 + U) + U * (value * of_v).abs() + least)
            }
        };
        if may_be_nan { accept.or_nan() } else { accept }
    }
}
