//! The arithmetic of PTX, one lane at a time. It defines the result of every instruction, and the vector loops are checked against it.
//!
//! A lane function takes up to three operands, zero-extended to 64 bits, and the modifiers of the instruction as [`Ctl`]
//! bits; registers of 16 bits hold their value in the low half.

pub(super) mod approx;
pub(super) mod convert;
pub(super) mod float;
pub(super) mod format;
pub(super) mod half2;
pub(super) mod int;
pub(super) mod parts;
pub(super) mod video;
pub(super) mod wide;

/// One lane of an instruction.
pub(super) type LaneFn = fn(u64, u64, u64, u32) -> u64;

/// Rounding of the result, in the low three bits of a control word.
pub(super) const RN: u32 = 0;
pub(super) const RZ: u32 = 1;
pub(super) const RM: u32 = 2;
pub(super) const RP: u32 = 3;
/// To nearest, ties away from zero: `.rna` of `cvt` to tf32.
pub(super) const RNA: u32 = 4;
pub(super) const ROUND: u32 = 7;
/// Subnormal inputs and results are zeros of their sign.
pub(super) const FTZ: u32 = 1 << 3;
/// Clamped to [0, 1] for floats, to the type for integers.
pub(super) const SAT: u32 = 1 << 4;
pub(super) const RELU: u32 = 1 << 5;
pub(super) const SATFINITE: u32 = 1 << 6;
/// `min.NaN`: NaN wins.
pub(super) const NAN: u32 = 1 << 7;
pub(super) const XORSIGN: u32 = 1 << 8;
pub(super) const ABS: u32 = 1 << 9;
/// First free bit for an instruction's own use.
pub(super) const OWN: u32 = 16;

/// The functions of an integer type.
macro_rules! by_integer {
    ($ty:expr, $f:ident) => {
        match $ty {
            $crate::types::Ty::S16 => Some($crate::num::int::s16::$f as $crate::num::LaneFn),
            $crate::types::Ty::U16 | $crate::types::Ty::B16 => Some($crate::num::int::u16::$f as $crate::num::LaneFn),
            $crate::types::Ty::S32 => Some($crate::num::int::s32::$f as $crate::num::LaneFn),
            $crate::types::Ty::U32 | $crate::types::Ty::B32 => Some($crate::num::int::u32::$f as $crate::num::LaneFn),
            $crate::types::Ty::S64 => Some($crate::num::int::s64::$f as $crate::num::LaneFn),
            $crate::types::Ty::U64 | $crate::types::Ty::B64 => Some($crate::num::int::u64::$f as $crate::num::LaneFn),
            _ => None,
        }
    };
}

/// The functions of a float type.
macro_rules! by_float {
    ($ty:expr, $f:ident) => {
        match $ty {
            $crate::types::Ty::F32 => Some($crate::num::float::f32::$f as $crate::num::LaneFn),
            $crate::types::Ty::F16 => Some($crate::num::float::f16::$f as $crate::num::LaneFn),
            $crate::types::Ty::Bf16 => Some($crate::num::float::bf16::$f as $crate::num::LaneFn),
            $crate::types::Ty::F64 => Some($crate::num::float::f64::$f as $crate::num::LaneFn),
            $crate::types::Ty::F16x2 => Some($crate::num::half2::f16x2::$f as $crate::num::LaneFn),
            $crate::types::Ty::Bf16x2 => Some($crate::num::half2::bf16x2::$f as $crate::num::LaneFn),
            _ => None,
        }
    };
}
pub(super) use {by_float, by_integer};
