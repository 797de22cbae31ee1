//! What D must be: the product of A and of the dequantised weights, each rounded to A's type once.

use super::pack::unpack;
use crate::dtype::{DType, bf16, f16};
use crate::plan::{Accepted, Case, Product, Reference, ReferenceError};
use crate::tensor::{Tensor, value};

/// A product whose B is packed weights, scales and perhaps zero points.
#[derive(Clone, Debug)]
pub(super) struct Dequantised {
    pub(super) product: Product,
    /// Weights along K that share a scale.
    pub(super) group: usize,
    pub(super) zeros: bool,
    pub(super) dtype: DType,
}

/// The zero point of weights that have none of their own.
const MIDDLE: u8 = 8;

impl Dequantised {
    /// Operands that B is made of.
    fn made_of(&self) -> usize {
        if self.zeros { 3 } else { 2 }
    }

    /// B `(K,N)`. A weight less its zero point has 5 bits and a scale at most 11, so that their product is exact until it is rounded.
    fn weights(&self, inputs: &[&Tensor]) -> Option<Tensor> {
        let [a, w, scales, others @ ..] = inputs else { return None };
        let ([_, k], [n, _]) = (a.shape(), w.shape()) else { return None };
        let [k, n] = [*k, *n].map(|extent| usize::try_from(extent).unwrap_or_default());
        let weights = unpack(&w.to_vec::<i32>()?, n, k).ok()?;
        let zeros = if self.zeros { others.first()?.to_vec::<u8>()? } else { Vec::new() };
        let groups = k / self.group.max(1);
        let fits = scales.dtype() == self.dtype && scales.size() == (groups * n) as u64 && k == groups * self.group;
        (fits && zeros.len() == if self.zeros { groups * n } else { 0 }).then_some(())?;
        let bits: Vec<u16> = match self.dtype {
            DType::F16 => scales.to_vec::<f16>()?.into_iter().map(f16::to_bits).collect(),
            _ => scales.to_vec::<bf16>()?.into_iter().map(bf16::to_bits).collect(),
        };
        let scales: Vec<f64> = bits.into_iter().map(|bits| value(self.dtype, bits.into())).collect();
        let element = |at: usize| {
            let (of_k, of_n) = (at / n, at % n);
            let of_group = of_k / self.group * n + of_n;
            let zero = zeros.get(of_group).map_or(MIDDLE, |zero| zero & 15);
            f64::from(i16::from(weights[of_n * k + of_k]) - i16::from(zero)) * scales[of_group]
        };
        let (all, shape) = (0..k * n, [k as i64, n as i64]);
        match self.dtype {
            DType::F16 => Tensor::of(&all.map(|at| f16::from_f64(element(at))).collect::<Vec<f16>>(), &shape),
            _ => Tensor::of(&all.map(|at| bf16::from_f64(element(at))).collect::<Vec<bf16>>(), &shape),
        }
    }
}

impl Reference for Dequantised {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        let unfit = || case.unfit(format!("{:?}, which do not fit together", case.inputs));
        let b = self.weights(case.inputs).ok_or_else(unfit)?;
        self.product.accepted_of(case, &b, self.made_of())
    }

    fn usual_scalar(&self, index: usize) -> Option<f64> {
        self.product.usual_scalar(index)
    }

    fn flop(&self, extents: &[i64]) -> Option<f64> {
        self.product.flop(extents)
    }
}
