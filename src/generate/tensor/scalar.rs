//! Element types as the verifier sees them: bits, values, and the two marks that no computation produces.

use crate::dtype::{Bool, DType, E4m3, E5m2, Element};
use crate::expr::round;

/// An element type with its bits and its value.
///
/// The marks of integers, FP8 and truth values are numbers as well. [`fill_unwritten`](crate::verify::fill_unwritten)
/// chooses the fill of such an output.
pub trait Scalar: Element + PartialEq + core::fmt::Debug {
    /// Fills redzones and the gaps between rows: a quiet NaN where the type has one with a payload, so that a kernel that
    /// reads it cannot go unnoticed.
    const CANARY: u64;
    /// Fills an output before the kernel runs: a quiet NaN with another payload.
    const UNWRITTEN: u64;
    /// The bit that tells a quiet NaN from a signaling one; 0 for types without payloads.
    const QUIET: u64;

    /// The bits, zero-extended.
    fn bits(self) -> u64;
    /// The value of the low bits.
    fn of_bits(bits: u64) -> Self;
    /// The value, exactly.
    fn value(self) -> f64;
    /// The nearest value, ties to even; integers truncate and saturate, as Rust's `as`.
    fn nearest(value: f64) -> Self;

    /// Whether it is a NaN.
    fn is_nan(self) -> bool {
        self.value().is_nan()
    }
}

macro_rules! float_scalars {
    ($($T:ty: $Bits:ty, $canary:literal $unwritten:literal $quiet:literal, $value:expr, $nearest:expr;)+) => {$(
        impl Scalar for $T {
            const CANARY: u64 = $canary;
            const UNWRITTEN: u64 = $unwritten;
            const QUIET: u64 = $quiet;

            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn of_bits(bits: u64) -> Self {
                <$T>::from_bits(bits as $Bits)
            }
            fn value(self) -> f64 {
                $value(self)
            }
            fn nearest(value: f64) -> Self {
                $nearest(value)
            }
        }
    )+};
}

// The conversions of `half` from f64 forget the low half of it, which decides between two neighbours that are equally far else.
float_scalars! {
    f64: u64, 0x7ffd_a5a5_a5a5_a5a5 0x7ffa_5a5a_5a5a_5a5a 0x0008_0000_0000_0000, f64::from, f64::from;
    f32: u32, 0x7fe5_a5a5 0x7fda_5a5a 0x0040_0000, f64::from, |v: f64| v as f32;
    half::f16: u16, 0x7fa5 0x7e5a 0x0200, half::f16::to_f64, |v| half::f16::from_bits(round::bits(DType::F16, v) as u16);
    half::bf16: u16, 0x7fe5 0x7fda 0x0040, half::bf16::to_f64, |v| half::bf16::from_bits(round::bits(DType::Bf16, v) as u16);
}

macro_rules! byte_scalars {
    ($($T:ident: $dtype:ident;)+) => {$(
        impl Scalar for $T {
            const CANARY: u64 = 0xa5;
            const UNWRITTEN: u64 = 0x5a;
            const QUIET: u64 = 0;

            fn bits(self) -> u64 {
                u64::from(self.0)
            }
            fn of_bits(bits: u64) -> Self {
                $T(bits as u8)
            }
            fn value(self) -> f64 {
                round::value(DType::$dtype, u64::from(self.0))
            }
            fn nearest(value: f64) -> Self {
                $T(round::bits(DType::$dtype, value) as u8)
            }
        }
    )+};
}

byte_scalars! {
    E4m3: E4m3;
    E5m2: E5m2;
    Bool: Bool;
}

macro_rules! int_scalars {
    ($($T:ident: $Bits:ident, $canary:literal $unwritten:literal;)+) => {$(
        impl Scalar for $T {
            const CANARY: u64 = $canary;
            const UNWRITTEN: u64 = $unwritten;
            const QUIET: u64 = 0;

            fn bits(self) -> u64 {
                u64::from(self.cast_unsigned())
            }
            fn of_bits(bits: u64) -> Self {
                (bits as $Bits).cast_signed()
            }
            fn value(self) -> f64 {
                f64::from(self)
            }
            fn nearest(value: f64) -> Self {
                value as $T
            }
        }
    )+};
}

int_scalars! {
    i32: u32, 0xa5a5_a5a5 0x5a5a_5a5a;
    i16: u16, 0xa5a5 0x5a5a;
    i8: u8, 0xa5 0x5a;
}

impl Scalar for u8 {
    const CANARY: u64 = 0xa5;
    const UNWRITTEN: u64 = 0x5a;
    const QUIET: u64 = 0;

    fn bits(self) -> u64 {
        u64::from(self)
    }
    fn of_bits(bits: u64) -> Self {
        bits as u8
    }
    fn value(self) -> f64 {
        f64::from(self)
    }
    fn nearest(value: f64) -> Self {
        value as u8
    }
}

/// Runs an expression with `$T` bound to the Rust type of a [`DType`].
macro_rules! with_scalar {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_scalar!(@ $dtype, $T => $body;
            F64 f64, F32 f32, F16 half::f16, Bf16 half::bf16, E4m3 $crate::dtype::E4m3, E5m2 $crate::dtype::E5m2,
            I32 i32, I16 i16, I8 i8, U8 u8, Bool $crate::dtype::Bool)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $type:ty),+) => {
        match $dtype {
            $($crate::dtype::DType::$variant => {
                type $T = $type;
                $body
            })+
        }
    };
}
pub(crate) use with_scalar;

/// The value of some bits, exactly.
pub(crate) fn value(dtype: DType, bits: u64) -> f64 {
    with_scalar!(dtype, T => T::of_bits(bits).value())
}

/// Whether a quiet NaN with these bits was made from one of `sources` by an operation that passes payloads on.
pub(crate) fn carried(dtype: DType, bits: u64, mut sources: impl Iterator<Item = u64>) -> bool {
    let quiet = with_scalar!(dtype, T => T::QUIET);
    quiet != 0 && sources.any(|s| s | quiet == bits)
}

/// 2^(exponent - 127), as a scale of a byte has it; NaN for 255.
pub(crate) fn power_of_two(exponent: u8) -> f32 {
    if exponent == u8::MAX { f32::NAN } else { libm::ldexpf(1.0, i32::from(exponent) - 127) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_differ_and_are_quiet_nans_where_there_are_payloads() {
        for dtype in DType::ALL {
            with_scalar!(*dtype, T => {
                assert_ne!(T::CANARY, T::UNWRITTEN);
                for mark in [T::CANARY, T::UNWRITTEN] {
                    assert_eq!(T::of_bits(mark).is_nan(), T::QUIET != 0, "{dtype} {mark:#x}");
                    assert_eq!(mark & T::QUIET, T::QUIET, "{dtype} {mark:#x}");
                    assert_eq!(T::of_bits(mark).bits(), mark);
                }
            });
        }
    }
}
