//! `cvt`: between integers, floats, and both.

use super::format::{BF16, E4M3, E5M2, F16, F32, F64, Format, TF32};
use super::{FTZ, RELU, RM, RN, RNA, ROUND, RP, RZ, SAT, SATFINITE};
use crate::types::Ty;

fn float(ty: Ty) -> Option<Format> {
    Some(match ty {
        Ty::F16 => F16,
        Ty::Bf16 => BF16,
        Ty::F32 => F32,
        Ty::F64 => F64,
        _ => return None,
    })
}

/// Types as numbers, to be carried in a control word.
const CODES: [Ty; 12] =
    [Ty::U8, Ty::U16, Ty::U32, Ty::U64, Ty::S8, Ty::S16, Ty::S32, Ty::S64, Ty::F16, Ty::Bf16, Ty::F32, Ty::F64];

/// The control word of a conversion: destination, source, and whether a float is rounded to an integer of its own type.
pub(in super::super) fn ctl(to: Ty, from: Ty, to_integral: bool) -> Option<u32> {
    let code = |ty: Ty| CODES.iter().position(|c| *c == ty).map(|i| i as u32);
    Some(code(to)? << 16 | code(from)? << 20 | u32::from(to_integral) << 24)
}

/// Any scalar to any scalar.
pub(in super::super) fn scalar(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    let to = CODES[(ctl >> 16 & 15) as usize % CODES.len()];
    let from = CODES[(ctl >> 20 & 15) as usize % CODES.len()];
    match (float(to), float(from)) {
        (None, None) => int_to_int(a, to, from, ctl),
        (None, Some(f)) => float_to_int(a, to, f, ctl),
        (Some(t), None) => int_to_float(a, t, from, ctl),
        (Some(t), Some(f)) => float_to_float(a, t, f, ctl, ctl >> 24 & 1 != 0),
    }
}

fn signed(a: u64, ty: Ty) -> i128 {
    match ty {
        Ty::S8 => i128::from(a as i8),
        Ty::S16 => i128::from(a as i16),
        Ty::S32 => i128::from(a as i32),
        Ty::S64 => i128::from(a as i64),
        Ty::U8 => i128::from(a as u8),
        Ty::U16 => i128::from(a as u16),
        Ty::U32 => i128::from(a as u32),
        _ => i128::from(a),
    }
}

fn limits(ty: Ty) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Values of 8 and 16 bits stand in wider registers: signed ones sign-extended, as `cvt` leaves them.
fn place(value: i128, ty: Ty) -> u64 {
    match ty {
        Ty::S8 => value as i8 as i32 as u32 as u64,
        Ty::U8 => u64::from(value as u8),
        Ty::S16 | Ty::U16 => u64::from(value as u16),
        Ty::S32 | Ty::U32 => u64::from(value as u32),
        _ => value as u64,
    }
}

fn int_to_int(a: u64, to: Ty, from: Ty, ctl: u32) -> u64 {
    let value = signed(a, from);
    let (low, high) = limits(to);
    place(if ctl & SAT != 0 { value.clamp(low, high) } else { value }, to)
}

/// To an integral value: to nearest even, toward zero, down, up.
fn integral(value: f64, mode: u32) -> f64 {
    match mode & ROUND {
        RZ => value.trunc(),
        RM => value.floor(),
        RP => value.ceil(),
        _ => value.round_ties_even(),
    }
}

fn float_to_int(a: u64, to: Ty, from: Format, ctl: u32) -> u64 {
    let flush = ctl & FTZ != 0 && from == F32 && from.is_subnormal(a);
    let value = from.to_f64(if flush { 0 } else { a });
    let (low, high) = limits(to);
    if value.is_nan() {
        // The GPU gives 0, but for 64-bit results the highest bit.
        return if to.bits() == 64 { 1 << 63 } else { 0 };
    }
    let value = integral(value, ctl);
    // Out of range is clamped, with or without `.sat`.
    let value = if value >= high as f64 {
        high
    } else if value <= low as f64 {
        low
    } else {
        value as i128
    };
    place(value, to)
}

fn int_to_float(a: u64, to: Format, from: Ty, ctl: u32) -> u64 {
    let value = signed(a, from);
    let bits = to.round(value < 0, value.unsigned_abs(), 0, ctl, false);
    if ctl & SAT != 0 { clamp_unit(to, bits) } else { bits }
}

fn clamp_unit(f: Format, bits: u64) -> u64 {
    if f.is_nan(bits) || bits & f.sign() != 0 { 0 } else { bits.min((f.bias() as u64) << (f.precision - 1)) }
}

fn float_to_float(a: u64, to: Format, from: Format, ctl: u32, to_integral: bool) -> u64 {
    let flush = ctl & FTZ != 0;
    let a = if flush && from == F32 && from.is_subnormal(a) { a & from.sign() } else { a };
    let value = from.to_f64(a);
    if value.is_nan() {
        if ctl & SAT != 0 {
            return 0;
        }
        // A wider format keeps the bits of a NaN. A flushing conversion replaces it with the GPU's NaN first.
        let a = if flush { from.nan } else { a };
        let sign = if a & from.sign() != 0 { to.sign() } else { 0 };
        let fraction = |f: Format, bits: u64| bits & ((1 << (f.precision - 1)) - 1);
        return match (to, from) {
            (F64, F64) => a | 1 << 51,
            (F64, _) => sign | 0x7ff8_0000_0000_0000 | fraction(from, a) << (F64.precision - from.precision),
            (F32, BF16) => a << 16,
            _ => to.nan,
        };
    }
    let value = if to_integral { integral(value, ctl) } else { value };
    let bits = to.from_f64(value, ctl, ctl & SATFINITE != 0);
    let bits = if flush && to == F32 && to.is_subnormal(bits) { bits & to.sign() } else { bits };
    let bits = if ctl & RELU != 0 && bits & to.sign() != 0 { 0 } else { bits };
    if ctl & SAT != 0 { clamp_unit(to, bits) } else { bits }
}

fn narrow(f: Format, bits: u64, ctl: u32) -> u64 {
    let value = F32.to_f64(bits & 0xffff_ffff);
    if value.is_nan() {
        return f.nan;
    }
    let r = f.from_f64(value, ctl, ctl & SATFINITE != 0);
    if ctl & RELU != 0 && r & f.sign() != 0 { 0 } else { r }
}

macro_rules! pairs {
    ($($name:ident $format:ident $bits:literal),*) => {$(
        /// Two f32 to a pair: the first operand is the upper one.
        pub(in super::super) fn $name(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
            narrow($format, a, ctl) << $bits | narrow($format, b, ctl)
        }
    )*};
}
pairs!(pair_f16 F16 16, pair_bf16 BF16 16, pair_e4m3 E4M3 8, pair_e5m2 E5M2 8);

/// f32 to tf32: a float of 10 fraction bits in the upper 19 bits of the register.
pub(in super::super) fn tf32(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    let value = F32.to_f64(a & 0xffff_ffff);
    if value.is_nan() {
        return if ctl & ROUND == RNA { a & 0xffff_e000 } else { 0x7fff_e000 };
    }
    let r = TF32.from_f64(value, ctl, ctl & SATFINITE != 0);
    if ctl & RELU != 0 && r & TF32.sign() != 0 { 0 } else { r << 13 }
}

/// f16x2 to a pair of 8-bit floats, each half to a byte.
fn from_f16x2(f: Format, a: u64, ctl: u32) -> u64 {
    let one = |bits: u64| {
        let value = F16.to_f64(bits & 0xffff);
        if value.is_nan() {
            return f.nan;
        }
        let r = f.from_f64(value, RN, ctl & SATFINITE != 0);
        if ctl & RELU != 0 && r & f.sign() != 0 { 0 } else { r }
    };
    one(a) | one(a >> 16) << 8
}

pub(in super::super) fn e4m3x2_f16x2(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    from_f16x2(E4M3, a, ctl)
}
pub(in super::super) fn e5m2x2_f16x2(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    from_f16x2(E5M2, a, ctl)
}

fn to_f16x2(f: Format, a: u64, ctl: u32) -> u64 {
    let one = |bits: u64| {
        let value = f.to_f64(bits & 0xff);
        if value.is_nan() {
            return F16.nan;
        }
        let r = F16.from_f64(value, RN, false);
        if ctl & RELU != 0 && r & F16.sign() != 0 { 0 } else { r }
    };
    one(a) | one(a >> 8) << 16
}

pub(in super::super) fn f16x2_e4m3x2(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    to_f16x2(E4M3, a, ctl)
}
pub(in super::super) fn f16x2_e5m2x2(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    to_f16x2(E5M2, a, ctl)
}
