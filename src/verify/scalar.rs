//! Element types as the verifier sees them: bits, values, and the two marks that no computation produces.

use crate::dtype::{DType, Element};

/// An element type with its bits and its value.
pub trait Scalar: Element + PartialEq + core::fmt::Debug {
    /// Fills redzones and the gaps between rows: a quiet NaN, so that a kernel that reads it cannot go unnoticed.
    const CANARY: u32;
    /// Fills an output before the kernel runs: a quiet NaN with another payload.
    const UNWRITTEN: u32;
    /// The bit that tells a quiet NaN from a signaling one.
    const QUIET: u32;

    /// The bits, zero-extended.
    fn bits(self) -> u32;
    /// The value of the low bits.
    fn of_bits(bits: u32) -> Self;
    /// The value, exactly.
    fn value(self) -> f32;
    /// The nearest value, ties to even.
    fn nearest(value: f32) -> Self;
}

impl Scalar for f32 {
    const CANARY: u32 = 0x7fe5_a5a5;
    const UNWRITTEN: u32 = 0x7fda_5a5a;
    const QUIET: u32 = 0x0040_0000;

    fn bits(self) -> u32 {
        self.to_bits()
    }
    fn of_bits(bits: u32) -> Self {
        f32::from_bits(bits)
    }
    fn value(self) -> f32 {
        self
    }
    fn nearest(value: f32) -> Self {
        value
    }
}

impl Scalar for half::f16 {
    const CANARY: u32 = 0x7fa5;
    const UNWRITTEN: u32 = 0x7e5a;
    const QUIET: u32 = 0x0200;

    fn bits(self) -> u32 {
        u32::from(self.to_bits())
    }
    fn of_bits(bits: u32) -> Self {
        half::f16::from_bits(bits as u16)
    }
    fn value(self) -> f32 {
        half::f16::to_f32(self)
    }
    fn nearest(value: f32) -> Self {
        half::f16::from_f32(value)
    }
}

impl Scalar for half::bf16 {
    const CANARY: u32 = 0x7fe5;
    const UNWRITTEN: u32 = 0x7fda;
    const QUIET: u32 = 0x0040;

    fn bits(self) -> u32 {
        u32::from(self.to_bits())
    }
    fn of_bits(bits: u32) -> Self {
        half::bf16::from_bits(bits as u16)
    }
    fn value(self) -> f32 {
        half::bf16::to_f32(self)
    }
    fn nearest(value: f32) -> Self {
        half::bf16::from_f32(value)
    }
}

/// Runs an expression with `$T` bound to the Rust type of a [`DType`].
macro_rules! with_scalar {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dtype::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::dtype::DType::Bf16 => {
                type $T = half::bf16;
                $body
            }
        }
    };
}
pub(crate) use with_scalar;

/// The value of some bits, exactly.
pub(crate) fn value(dtype: DType, bits: u32) -> f32 {
    with_scalar!(dtype, T => T::of_bits(bits).value())
}

/// Whether a quiet NaN with these bits was made from one of `sources` by an operation that passes payloads on.
pub(crate) fn carried(dtype: DType, bits: u32, mut sources: impl Iterator<Item = u32>) -> bool {
    let quiet = with_scalar!(dtype, T => T::QUIET);
    sources.any(|s| s | quiet == bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_are_different_quiet_nans() {
        for dtype in DType::ALL {
            with_scalar!(*dtype, T => {
                assert_ne!(T::CANARY, T::UNWRITTEN);
                for mark in [T::CANARY, T::UNWRITTEN] {
                    assert!(T::of_bits(mark).value().is_nan(), "{dtype} {mark:#x}");
                    assert_eq!(mark & T::QUIET, T::QUIET, "{dtype} {mark:#x}");
                    assert_eq!(T::of_bits(mark).bits(), mark);
                }
            });
        }
    }
}
