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
