//! A sum by its definition.

use crate::dtype::{DType, Kind};
use crate::tensor::Scalar;

/// `x + y`, correctly rounded to nearest, ties to even.
///
/// The sum is rounded to f32 (from f64, which changes nothing for f32 terms: 53 >= 2*24 + 2) and again to the element
/// type. For f16 (11 bits of precision) and bf16 (8 bits) the second rounding changes nothing. A format with at least
/// 2p + 2 bits holds enough of the sum (Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30, 1995):
/// 24 >= 2*11 + 2. A sum in the subnormal range is a multiple of the smallest subnormal and therefore exact. GPUs do not
/// flush f16 and bf16 subnormals in additions. nvcc keeps f32 subnormals unless told otherwise (CUDA C++ Programming
/// Guide, "Floating-Point Standard"; nvcc `-ftz=false`).
pub fn add<T: Scalar>(x: T, y: T) -> T {
    match (T::DTYPE.kind(), T::DTYPE) {
        (Kind::Int, _) => T::of_bits(x.bits().wrapping_add(y.bits())),
        (_, DType::F64) => T::nearest(x.value() + y.value()),
        _ => T::nearest(f64::from((x.value() + y.value()) as f32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sign, integer significand and exponent of a finite number: `(-1)^s * m * 2^e`.
    #[derive(Clone, Copy)]
    struct Exact(i128, i32);

    /// A binary format: precision in bits, exponent of the smallest subnormal, largest exponent of a normal number.
    #[derive(Clone, Copy)]
    struct Format {
        precision: u32,
        least: i32,
        greatest: i32,
    }

    const F16: Format = Format { precision: 11, least: -24, greatest: 15 };
    const BF16: Format = Format { precision: 8, least: -133, greatest: 127 };

    fn exact(x: f32) -> Exact {
        let bits = x.to_bits();
        let (exponent, fraction) = ((bits >> 23 & 0xff) as i32, i128::from(bits & 0x7f_ffff));
        let (m, e) = if exponent == 0 { (fraction, -149) } else { (fraction | 1 << 23, exponent - 150) };
        Exact(if bits >> 31 == 1 { -m } else { m }, e)
    }

    /// The exact sum, rounded once by integer arithmetic. Independent of every floating-point addition.
    fn rounded_sum(x: f32, y: f32, format: Format) -> f64 {
        let (Exact(a, ae), Exact(b, be)) = match (exact(x), exact(y)) {
            (x, y) if x.0 == 0 || (y.0 != 0 && y.1 > x.1) => (y, x),
            in_order => in_order,
        };
        // `a` has the larger exponent. Far below it, all that counts of `b` is its sign: a sticky bit.
        let (sum, e) = match ae - be {
            _ if b == 0 => (a, ae),
            gap if gap > 80 => ((a << 80) + b.signum(), ae - 80),
            gap => ((a << gap) + b, be),
        };
        let negative = sum < 0;
        let m = sum.unsigned_abs();
        if m == 0 {
            return 0.0;
        }
        let length = 128 - m.leading_zeros() as i32;
        // Bits to drop: down to the precision, and never below the smallest subnormal.
        let drop = (length - format.precision as i32).max(format.least - e);
        let (kept, e) = if drop <= 0 {
            (m, e)
        } else {
            let (q, rest, half) = (m >> drop, m & ((1 << drop) - 1), 1_u128 << (drop - 1));
            (q + u128::from(rest > half || (rest == half && q & 1 == 1)), e + drop)
        };
        let value = kept as f64 * f64::powi(2.0, e);
        let value = if value >= f64::powi(2.0, format.greatest + 1) { f64::INFINITY } else { value };
        if negative { -value } else { value }
    }

    fn check<T: Scalar>(format: Format, xs: impl Iterator<Item = u64>, ys: &[u64]) -> u64 {
        let mut checked = 0;
        for x in xs {
            for y in ys {
                let (x, y) = (T::of_bits(x), T::of_bits(*y));
                let (xv, yv) = (x.value() as f32, y.value() as f32);
                let found = add(x, y).value();
                if !xv.is_finite() || !yv.is_finite() {
                    let sum = xv + yv;
                    assert!(found == f64::from(sum) || (found.is_nan() && sum.is_nan()), "{xv} + {yv}");
                    continue;
                }
                let expected = rounded_sum(xv, yv, format);
                assert_eq!(found, expected, "{xv:e} + {yv:e}");
                // A sum is -0 only where both terms are (IEEE 754-2019, 6.3).
                if expected == 0.0 {
                    let both = xv.is_sign_negative() && yv.is_sign_negative() && xv == 0.0 && yv == 0.0;
                    assert_eq!(found.is_sign_negative(), both, "{xv} + {yv}");
                }
                checked += 1;
            }
        }
        checked
    }

    /// Numbers of every exponent, with significands that tend to make ties.
    fn telling(step: usize) -> Vec<u64> {
        (0..=0xffff).step_by(step).chain([0, 1, 0x8000, 0x8001, 0x3c00, 0x7bff, 0xfbff]).collect()
    }

    #[test]
    fn f16_sums_are_rounded_once() {
        assert!(check::<half::f16>(F16, 0..=0xffff, &telling(509)) > 7_000_000);
    }

    #[test]
    fn bf16_sums_are_rounded_once() {
        assert!(check::<half::bf16>(BF16, 0..=0xffff, &telling(509)) > 7_000_000);
    }

    #[test]
    fn the_oracle_agrees_with_exact_f64_sums() {
        // In f16 every sum has at most 41 bits, so that f64 holds it exactly: the oracle at 53 bits must give just that.
        let wide = Format { precision: 53, least: -1074, greatest: 1023 };
        for x in (0..=0x7bff_u32).step_by(37) {
            for y in (0x8000..=0xfbff_u32).step_by(1021) {
                let (x, y) = (half::f16::from_bits(x as u16).to_f32(), half::f16::from_bits(y as u16).to_f32());
                assert_eq!(rounded_sum(x, y, wide), f64::from(x) + f64::from(y));
            }
        }
    }
}
