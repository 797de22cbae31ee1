//! Which elements are right.

use super::Compute;
use super::round::{self, Values, stored, values};
use crate::dtype::DType;

/// The values that a device may give for one output of one element: a range, NaN, or both.
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::expr::{Compute, Function};
///
/// let exact = Function::binary(|a, b| a * b + 1).check(Compute::F32).expect("f32 has it");
/// let accept = exact.evaluator(&[])?.evaluate(&[0.1, 10.0])?[0];
/// // The product, and the sum, each rounded to f32.
/// assert_eq!(accept.exact(DType::F32), Some(u64::from((0.1f32 * 10.0 + 1.0).to_bits())));
///
/// let near = Function::unary(|x| x.exp()).check(Compute::F32).expect("f32 has it");
/// let accept = near.evaluator(&[])?.evaluate(&[1.0])?[0];
/// assert_eq!(accept.exact(DType::F32), None);
/// assert!(accept.accepts(DType::F32, u64::from(1f32.exp().to_bits())));
/// assert!(!accept.accepts(DType::F32, u64::from(2.7182f32.to_bits())));
/// // A type with fewer digits leaves one result.
/// assert_eq!(accept.exact(DType::Bf16), Some(0x402e));
/// # Ok::<(), cutemplate::expr::ExprError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Accept {
    /// In the compute type; `low` is above `high` where there is none.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) nan: bool,
    pub(super) compute: Compute,
}

impl Accept {
    /// The values that differ from `value` by at most `error`, each rounded to the element type; NaN where `value` is NaN. An error that is NaN
    /// counts as 0.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::expr::Accept;
    ///
    /// let accept = Accept::within(1.0, 1e-7);
    /// assert!(accept.accepts(DType::F32, u64::from(1.000_000_1_f32.to_bits())));
    /// assert!(!accept.accepts(DType::F32, u64::from(1.000_000_3_f32.to_bits())));
    /// ```
    pub fn within(value: f64, error: f64) -> Self {
        // A bound that cannot be computed is none: it accepts no other value.
        let error = if error.is_nan() { 0.0 } else { error.abs() };
        let (low, high) = if value.is_infinite() { (value, value) } else { (value - error, value + error) };
        match value.is_nan() {
            true => Self { low: 1.0, high: 0.0, nan: true, compute: Compute::F64 },
            false => Self { low, high, nan: false, compute: Compute::F64 },
        }
    }

    /// The same, or NaN.
    #[must_use]
    pub fn or_nan(self) -> Self {
        Self { nan: true, ..self }
    }

    /// The lowest and the highest value in the compute type, if there is one that is not NaN.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.low <= self.high).then_some((self.low, self.high))
    }

    /// Whether NaN is among the values.
    pub fn may_be_nan(&self) -> bool {
        self.nan
    }

    /// The ends as elements, NaN having become a number where the element type has none.
    fn elements(&self, dtype: DType) -> (Option<(f64, f64)>, bool) {
        let float = matches!(values(dtype), Values::F64 | Values::Float(_));
        let of = |x: f64| stored(dtype, self.compute, x);
        let ends = self.range().map(|(low, high)| match dtype {
            // Truth is not monotone: zero lies between true values.
            DType::Bool if low < high => (if low <= 0.0 && high >= 0.0 { 0.0 } else { 1.0 }, 1.0),
            _ => (of(low), of(high)),
        });
        if float || !self.nan {
            return (ends, self.nan);
        }
        let nan = of(f64::NAN);
        (Some(ends.map_or((nan, nan), |(low, high)| (low.min(nan), high.max(nan)))), false)
    }

    /// Whether an element of these bits is right.
    ///
    /// A Bool has to be 0 or 1; any NaN is as good as another, and 0 is not -0.
    pub fn accepts(&self, dtype: DType, bits: u64) -> bool {
        let (ends, nan) = self.elements(dtype);
        let value = round::value(dtype, bits);
        if value.is_nan() {
            return nan;
        }
        let written = dtype != DType::Bool || bits <= 1;
        written && ends.is_some_and(|(low, high)| low.total_cmp(&value).is_le() && value.total_cmp(&high).is_le())
    }

    /// The bits of the only element that is right, if there is only one. NaN has many.
    pub fn exact(&self, dtype: DType) -> Option<u64> {
        match self.elements(dtype) {
            (Some((low, high)), false) if low.total_cmp(&high).is_eq() => Some(round::bits(dtype, low)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(accept: Accept, dtype: DType) -> Vec<u64> {
        (0..1 << dtype.bits()).filter(|bits| accept.accepts(dtype, *bits)).collect()
    }

    #[test]
    fn nan_becomes_a_number_where_there_is_none() {
        let accept = Accept { low: 2.0, high: 3.5, nan: true, compute: Compute::F32 };
        assert_eq!(accepted(accept, DType::U8), [0, 1, 2, 3]);
        assert_eq!(accepted(accept, DType::Bool), [1]);
        assert_eq!(accept.exact(DType::Bool), Some(1));
        let only = Accept { low: f64::INFINITY, high: f64::NEG_INFINITY, ..accept };
        assert_eq!(accepted(only, DType::I8), [0]);
        assert_eq!(accepted(only, DType::E4m3), [0x7f, 0xff]);
        assert_eq!(only.exact(DType::E4m3), None);
    }

    #[test]
    fn ends_are_rounded_and_zeros_have_signs() {
        let accept = Accept { low: -0.0, high: 0.01, nan: false, compute: Compute::F64 };
        let last = round::bits(DType::E5m2, 0.01);
        let expected: Vec<u64> = (0..=last).chain([0x80]).collect();
        assert_eq!(accepted(accept, DType::E5m2), expected);
        assert_eq!(accepted(accept, DType::Bool), [0, 1]);
        assert_eq!(accept.exact(DType::I32), Some(0));
        let below = Accept { high: -0.0, ..accept };
        assert_eq!(accepted(below, DType::E4m3), [0x80]);
    }
}
