//! Products of matrices: what the epilogue may give for the bounds of every accumulator.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::expr::{Bounds, Evaluator, MAX_INPUTS, Outputs};
use crate::plan::{Operand, Product};
use crate::verify::baseline::Given;
use crate::verify::check::{Elements, Problem};
use crate::verify::scalar::carried;
use crate::verify::sums::Computed;
use crate::verify::tensor::Tensor;
use crate::verify::verdict::Element;

/// Where the accumulators of one product are known from.
pub(super) enum Sums<'a> {
    /// Summed up here.
    Computed(Computed),
    /// Another implementation's.
    Given(Given<'a>),
}

impl Sums<'_> {
    fn next(&mut self) -> Bounds {
        match self {
            Sums::Computed(sums) => sums.next(),
            Sums::Given(sums) => sums.next(),
        }
    }

    /// Whether a NaN of these bits could come from the factors of the sum that was last given.
    fn carry(&self, dtype: DType, bits: u64) -> bool {
        match self {
            Sums::Computed(sums) => carried(dtype, bits, sums.factors().map(|x| u64::from(x.to_bits()))),
            // Its sums are finite, and so are its factors.
            Sums::Given(_) => false,
        }
    }
}

/// `[M, N, K, L]`, where K is 0 if these scalars spare the factors; `None` where the shapes do not belong together.
pub(super) fn product_extents(product: &Product, scalars: &[f64], inputs: &[&Tensor]) -> Option<[i64; 4]> {
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
pub(super) struct Matrices<'a> {
    evaluator: Evaluator,
    sums: Sums<'a>,
    has_c: bool,
    reads_c: bool,
    /// Whether the epilogue has an input for C and does not use it.
    unused_c: bool,
    named: Vec<(&'static str, DType)>,
    /// C, where it is an operand, and the auxiliary tensors.
    elements: Vec<Elements<'a>>,
    bits: Vec<u64>,
    accumulator: Bounds,
}

impl<'a> Matrices<'a> {
    pub(super) fn new(
        product: &Product,
        evaluator: Evaluator,
        scalars: &[f64],
        read: &[&Operand],
        inputs: &[&'a Tensor],
        sums: Sums<'a>,
    ) -> Self {
        Self {
            evaluator,
            sums,
            has_c: product.has_c(),
            reads_c: product.reads_c(scalars),
            unused_c: !product.has_c() && product.epilogue().function().inputs() > 1,
            named: read.iter().skip(2).map(|o| (o.name, o.dtype)).collect(),
            elements: inputs.iter().skip(2).map(|t| Elements::of(t)).collect(),
            bits: Vec::new(),
            accumulator: Bounds::point(0.0),
        }
    }
}

impl Problem for Matrices<'_> {
    fn accepted(&mut self) -> Outputs {
        self.accumulator = self.sums.next();
        self.bits.clear();
        let mut values = SmallVec::<[Bounds; MAX_INPUTS]>::from_slice(&[self.accumulator]);
        values.extend(self.unused_c.then(|| Bounds::point(0.0)));
        for (i, (value, bits)) in self.elements.iter_mut().filter_map(Elements::next).enumerate() {
            let skipped = i == 0 && self.has_c && !self.reads_c;
            values.push(Bounds::point(if skipped { 0.0 } else { value }));
            self.bits.push(bits);
        }
        self.evaluator.evaluate_bounds(&values).unwrap_or_default()
    }

    fn inputs(&self) -> Vec<Element> {
        let element = |name: &str, dtype, bits| Element { name: name.to_owned(), dtype, bits };
        let ends = self.accumulator.range().unwrap_or((f64::NAN, f64::NAN));
        let ends = [("least A @ B", ends.0), ("greatest A @ B", ends.1)];
        let ends = ends.into_iter().map(|(name, value)| element(name, DType::F64, value.to_bits()));
        let others = self.named.iter().zip(&self.bits);
        ends.chain(others.map(|((name, dtype), bits)| element(name, *dtype, *bits))).collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        self.sums.carry(dtype, bits) || carried(dtype, bits, self.bits.iter().copied())
    }
}
