//! Exact conversions between `f64` and the element types, as values and as bits.

use super::Compute;
use crate::dtype::DType;

/// A binary float that is narrower than `f64`.
pub(super) struct Format {
    /// Bits of the significand that are stored.
    significand: u32,
    /// The exponent of the smallest normal value.
    lowest_exponent: i32,
    /// The largest finite value.
    pub(super) highest: f64,
    /// Bits of infinity without the sign, where the format has one.
    infinity: Option<u64>,
    /// Bits of a NaN.
    nan: u64,
    /// Whether a value out of range becomes the largest finite value.
    pub(super) saturates: bool,
    /// The bit of the sign.
    sign: u64,
}

/// The kind of values that an element type has.
pub(super) enum Values {
    F64,
    Float(&'static Format),
    Integer { lowest: i32, highest: i32 },
    Bool,
}

const F32: Format = Format {
    significand: 23,
    lowest_exponent: -126,
    highest: f32::MAX as f64,
    infinity: Some(0x7f80_0000),
    nan: 0x7fc0_0000,
    saturates: false,
    sign: 1 << 31,
};
const F16: Format = Format {
    significand: 10,
    lowest_exponent: -14,
    highest: 65504.0,
    infinity: Some(0x7c00),
    nan: 0x7e00,
    saturates: false,
    sign: 1 << 15,
};
const BF16: Format = Format {
    significand: 7,
    lowest_exponent: -126,
    // (2 - 2^-7) 2^127.
    highest: 255.0 / 128.0 * 170_141_183_460_469_231_731_687_303_715_884_105_728.0,
    infinity: Some(0x7f80),
    nan: 0x7fc0,
    saturates: false,
    sign: 1 << 15,
};
/// OCP 8-bit floating point specification 1.0, E4M3: no infinity, and the one NaN is all ones.
const E4M3: Format = Format {
    significand: 3,
    lowest_exponent: -6,
    highest: 448.0,
    infinity: None,
    nan: 0x7f,
    saturates: true,
    sign: 1 << 7,
};
/// OCP 8-bit floating point specification 1.0, E5M2: as binary16, with fewer bits of the significand.
const E5M2: Format = Format {
    significand: 2,
    lowest_exponent: -14,
    highest: 57344.0,
    infinity: Some(0x7c),
    // PTX ISA, `cvt`: the canonical NaN of both 8-bit formats.
    nan: 0x7f,
    saturates: true,
    sign: 1 << 7,
};

pub(super) fn values(dtype: DType) -> Values {
    let integer = |lowest, highest| Values::Integer { lowest, highest };
    match dtype {
        DType::F64 => Values::F64,
        DType::F32 => Values::Float(&F32),
        DType::F16 => Values::Float(&F16),
        DType::Bf16 => Values::Float(&BF16),
        DType::E4m3 => Values::Float(&E4M3),
        DType::E5m2 => Values::Float(&E5M2),
        DType::I32 => integer(i32::MIN, i32::MAX),
        DType::I16 => integer(i16::MIN.into(), i16::MAX.into()),
        DType::I8 => integer(i8::MIN.into(), i8::MAX.into()),
        DType::U8 => integer(u8::MIN.into(), u8::MAX.into()),
        DType::Bool => Values::Bool,
    }
}

/// 2 to the power of `exponent`, a normal `f64`'s exponent.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The integer nearest to `x`, which is less than 2^52 from 0, ties to even: from 2^52 on, an `f64` has no fraction. Without SSE4.1
/// `round_ties_even` is a call.
fn nearest_integer(x: f64) -> f64 {
    const WHOLE: f64 = (1_u64 << 52) as f64;
    ((x.abs() + WHOLE) - WHOLE).copysign(x)
}

impl Format {
    /// The exponent of values of the size of `x`, or the lowest one.
    fn exponent(&self, x: f64) -> i32 {
        let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        exponent.max(self.lowest_exponent)
    }

    /// `x` as a multiple of the distance between values of its size, which have this exponent; exact, since that is a power of two.
    fn in_quanta(&self, x: f64, exponent: i32) -> f64 {
        x * power_of_two(self.significand as i32 - exponent)
    }

    fn round(&self, x: f64) -> f64 {
        let infinite = if self.saturates { self.highest } else { f64::INFINITY };
        if !x.is_finite() {
            return if x.is_nan() { x } else { infinite.copysign(x) };
        }
        let exponent = self.exponent(x);
        if exponent > self.exponent(self.highest) {
            return infinite.copysign(x);
        }
        let quantum = power_of_two(exponent - self.significand as i32);
        let rounded = nearest_integer(self.in_quanta(x, exponent)) * quantum;
        if rounded.abs() > self.highest { infinite.copysign(x) } else { rounded }
    }

    fn encode(&self, x: f64) -> u64 {
        if x.is_nan() {
            return self.nan;
        }
        let sign = if x.is_sign_negative() { self.sign } else { 0 };
        let x = self.round(x.abs());
        match self.infinity {
            Some(infinity) if x.is_infinite() => return sign | infinity,
            _ => {}
        }
        let exponent = self.exponent(x);
        // With the hidden bit, which counts one exponent up.
        let significand = self.in_quanta(x, exponent) as u64;
        let exponents = (exponent - self.lowest_exponent) as u64;
        sign | ((exponents << self.significand) + significand)
    }

    fn decode(&self, bits: u64) -> f64 {
        let magnitude = bits & (self.sign - 1);
        let sign = if bits & self.sign != 0 { -1.0 } else { 1.0 };
        let exponents = magnitude >> self.significand;
        let hidden = u64::from(exponents > 0) << self.significand;
        let significand = (magnitude & ((1 << self.significand) - 1)) | hidden;
        let exponent = self.lowest_exponent - self.significand as i32 + exponents.max(1) as i32 - 1;
        match self.infinity {
            Some(infinity) if magnitude == infinity => sign * f64::INFINITY,
            Some(infinity) if magnitude > infinity => f64::NAN,
            None if magnitude == self.nan => f64::NAN,
            _ => sign * significand as f64 * power_of_two(exponent),
        }
    }
}

/// `x` converted to an element type, as a value: see [the rules](super#conversions).
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::expr::round::round_to;
///
/// assert_eq!(round_to(DType::F16, 1.0 + 1.0 / 2048.0), 1.0);
/// assert_eq!(round_to(DType::F16, 65520.0), f64::INFINITY);
/// assert_eq!(round_to(DType::E4m3, 1e9), 448.0);
/// assert_eq!(round_to(DType::I8, -128.9), -128.0);
/// assert_eq!(round_to(DType::Bool, f64::NAN), 1.0);
/// ```
pub fn round_to(dtype: DType, x: f64) -> f64 {
    match values(dtype) {
        Values::F64 => x,
        Values::Float(format) => format.round(x),
        // An `i32` saturates and drops the fraction; the narrower types saturate further.
        Values::Integer { lowest, highest } => f64::from((x as i32).clamp(lowest, highest)),
        Values::Bool => f64::from(u8::from(x != 0.0)),
    }
}

/// `x`, a value of the compute type, as an element: integers of an integer type wrap.
pub(super) fn stored(dtype: DType, compute: Compute, x: f64) -> f64 {
    match values(dtype) {
        Values::Integer { .. } if compute == Compute::I32 => value(dtype, x as i64 as u64),
        _ => round_to(dtype, x),
    }
}

/// The bits of `x` as an element, `x` being converted first; a NaN is the one that CUDA makes.
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::expr::round;
///
/// assert_eq!(round::bits(DType::E5m2, -57344.0), 0xfb);
/// assert_eq!(round::bits(DType::I16, -1.0), 0xffff);
/// ```
pub fn bits(dtype: DType, x: f64) -> u64 {
    match values(dtype) {
        Values::F64 => x.to_bits(),
        Values::Float(format) => format.encode(x),
        Values::Integer { .. } => (round_to(dtype, x) as i64 as u64) & (u64::MAX >> (64 - dtype.bits())),
        Values::Bool => u64::from(x != 0.0),
    }
}

/// The value of an element's bits; a Bool is true where any bit is set.
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::expr::round;
///
/// assert_eq!(round::value(DType::E4m3, 0x7e), 448.0);
/// assert!(round::value(DType::E4m3, 0xff).is_nan());
/// assert_eq!(round::value(DType::I8, 0xff), -1.0);
/// assert_eq!(round::value(DType::Bool, 2), 1.0);
/// ```
pub fn value(dtype: DType, bits: u64) -> f64 {
    match values(dtype) {
        Values::F64 => f64::from_bits(bits),
        Values::Float(format) => format.decode(bits),
        Values::Integer { lowest, .. } => {
            let unused = 64 - dtype.bits();
            let shifted = bits << unused;
            if lowest < 0 { (shifted as i64 >> unused) as f64 } else { (shifted >> unused) as f64 }
        }
        Values::Bool => f64::from(u8::from(bits & 0xff != 0)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    const SMALL: [DType; 4] = [DType::E4m3, DType::E5m2, DType::F16, DType::Bf16];

    fn count(dtype: DType) -> u64 {
        1 << dtype.bits()
    }

    /// The finite values from 0 on, by their bits, found without the code under test.
    fn grid(dtype: DType) -> Vec<f64> {
        let (significand, bias, last) = match dtype {
            DType::E4m3 => (3, 7, 0x7e),
            DType::E5m2 => (2, 15, 0x7b),
            DType::F16 => (10, 15, 0x7bff),
            _ => (7, 127, 0x7f7f),
        };
        (0..=last)
            .map(|bits: i32| {
                let (exponent, fraction) = (bits >> significand, bits & ((1 << significand) - 1));
                let one = f64::from(1 << significand);
                if exponent == 0 {
                    f64::from(fraction) / one * 2f64.powi(1 - bias)
                } else {
                    (1.0 + f64::from(fraction) / one) * 2f64.powi(exponent - bias)
                }
            })
            .collect()
    }

    /// The nearest value of the grid; of two, the one whose bits are even.
    fn nearest(grid: &[f64], x: f64) -> f64 {
        let above = grid.partition_point(|value| *value < x);
        match (above.checked_sub(1), grid.get(above)) {
            (None, _) => grid[0],
            (Some(below), None) => grid[below],
            (Some(below), Some(upper)) => {
                let (down, up) = (x - grid[below], upper - x);
                let to_lower = down < up || (down == up && below % 2 == 0);
                if to_lower { grid[below] } else { *upper }
            }
        }
    }

    #[test]
    fn decoding_gives_the_grid_and_encoding_gives_the_bits_back() {
        for dtype in SMALL {
            let grid = grid(dtype);
            for bits in 0..count(dtype) {
                let x = value(dtype, bits);
                let negative = bits >= count(dtype) / 2;
                let magnitude = bits & (count(dtype) / 2 - 1);
                match grid.get(magnitude as usize) {
                    Some(expected) => {
                        assert_eq!(x.abs(), *expected, "{dtype} {bits:#x}");
                        assert_eq!(x.is_sign_negative(), negative, "{dtype} {bits:#x}");
                        assert_eq!(super::bits(dtype, x), bits, "{dtype}");
                    }
                    None => assert!(!x.is_finite(), "{dtype} {bits:#x}"),
                }
            }
        }
        assert_eq!(value(DType::E5m2, 0xfc), f64::NEG_INFINITY);
        assert!(value(DType::E5m2, 0x7d).is_nan());
    }

    #[test]
    fn values_between_two_neighbours_go_to_the_nearest_and_ties_to_even() {
        for dtype in SMALL {
            let grid = grid(dtype);
            for pair in grid.windows(2) {
                let middle = pair[0] + (pair[1] - pair[0]) / 2.0;
                for x in [pair[0], pair[0].next_up(), middle.next_down(), middle, middle.next_up(), pair[1].next_down()]
                {
                    assert_eq!(round_to(dtype, x), nearest(&grid, x), "{dtype} {x:?}");
                    assert_eq!(round_to(dtype, -x).to_bits(), (-nearest(&grid, x)).to_bits(), "{dtype} {x:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_infinite_or_the_largest_value() {
        for (dtype, tie) in [(DType::F16, 65520.0), (DType::Bf16, (2.0 - 1.0 / 256.0) * 2f64.powi(127))] {
            assert_eq!(round_to(dtype, f64::next_down(tie)), *grid(dtype).last().expect("not empty"), "{dtype}");
            assert_eq!(round_to(dtype, tie), f64::INFINITY, "{dtype}");
        }
        for (dtype, largest) in [(DType::E4m3, 448.0), (DType::E5m2, 57344.0)] {
            for x in [largest * 1.01, 1e300, f64::INFINITY] {
                assert_eq!(round_to(dtype, x), largest);
                assert_eq!(round_to(dtype, -x), -largest);
            }
        }
    }

    /// The value in f32, towards zero, with an odd last digit if it is not exact. Rounding that to fewer digits then
    /// rounds only once. The conversions of `half` from f64 ignore its low half.
    fn odd(x: f64) -> f32 {
        let near = x as f32;
        let towards_zero = if f64::from(near).abs() > x.abs() { f32::from_bits(near.to_bits() - 1) } else { near };
        let exact = f64::from(towards_zero) == x || x.is_nan();
        f32::from_bits(towards_zero.to_bits() | u32::from(!exact))
    }

    /// The middle of two neighbours, and a little more.
    #[test]
    fn what_lies_a_little_above_the_middle_goes_up() {
        let x = f64::from(2.811_857_8e-31_f32).next_up();
        assert_eq!(round_to(DType::Bf16, x), half::bf16::from_f32(odd(x)).to_f64());
        assert!(round_to(DType::Bf16, x) > x && round_to(DType::Bf16, x.next_down().next_down()) < x);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(0x5eed_0b17),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn rounding_is_that_of_the_types_themselves(pattern in any::<u64>(), near in any::<f32>()) {
            let wide = f64::from_bits(pattern);
            for x in [wide, f64::from(near), f64::from(near).next_up()] {
                let same = |dtype: DType, expected: f64| {
                    let found = round_to(dtype, x);
                    assert!(found == expected || (found.is_nan() && expected.is_nan()), "{dtype} {x:?}: {found:?}");
                };
                same(DType::F32, f64::from(x as f32));
                same(DType::F16, half::f16::from_f32(odd(x)).to_f64());
                same(DType::Bf16, half::bf16::from_f32(odd(x)).to_f64());
                same(DType::I32, f64::from(x as i32));
                same(DType::I16, f64::from(x as i16));
                same(DType::I8, f64::from(x as i8));
                same(DType::U8, f64::from(x as u8));
                prop_assert_eq!(bits(DType::I16, x), u64::from(x as i16 as u16));
                if !x.is_nan() {
                    prop_assert_eq!(bits(DType::F32, x), u64::from((x as f32).to_bits()));
                    prop_assert_eq!(bits(DType::F16, x), u64::from(half::f16::from_f32(odd(x)).to_bits()));
                    prop_assert_eq!(bits(DType::Bf16, x), u64::from(half::bf16::from_f32(odd(x)).to_bits()));
                }
            }
        }
    }
}
