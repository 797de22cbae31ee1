//! Arithmetic of f64 in every rounding mode, exactly: significands as 128-bit integers.

use super::format::F64;
use super::{RM, ROUND};

/// A finite number that is not zero: the significand's highest bit is bit 125.
#[derive(Clone, Copy)]
struct Wide {
    negative: bool,
    significand: u128,
    exponent: i32,
}

const TOP: u32 = 125;

fn normal(negative: bool, significand: u128, exponent: i32) -> Wide {
    let shift = significand.leading_zeros() - (127 - TOP);
    Wide { negative, significand: significand << shift, exponent: exponent - shift as i32 }
}

fn unpack(bits: u64) -> Wide {
    let (negative, significand, exponent) = F64.unpack(bits);
    normal(negative, u128::from(significand), exponent)
}

/// Shifts right, and keeps the bits shifted out as a sticky lowest bit.
fn jam(value: u128, shift: u32) -> u128 {
    if shift == 0 {
        value
    } else if shift > 127 {
        u128::from(value != 0)
    } else {
        (value >> shift) | u128::from(value << (128 - shift) != 0)
    }
}

fn sum(a: Wide, b: Wide, mode: u32) -> u64 {
    let (a, b) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let small = jam(b.significand, (a.exponent - b.exponent) as u32);
    if a.negative == b.negative {
        return F64.round(a.negative, a.significand + small, a.exponent, mode, false);
    }
    match a.significand.cmp(&small) {
        core::cmp::Ordering::Equal => F64.round(mode & ROUND == RM, 0, 0, mode, false),
        core::cmp::Ordering::Greater => F64.round(a.negative, a.significand - small, a.exponent, mode, false),
        core::cmp::Ordering::Less => F64.round(b.negative, small - a.significand, a.exponent, mode, false),
    }
}

/// a + b.
pub(in super::super) fn add(a: u64, b: u64, mode: u32) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    if !x.is_finite() || !y.is_finite() {
        return (x + y).to_bits();
    }
    match (x == 0.0, y == 0.0) {
        (true, true) if a == b => a,
        (true, true) => F64.round(mode & ROUND == RM, 0, 0, mode, false),
        (true, false) => b,
        (false, true) => a,
        (false, false) => sum(unpack(a), unpack(b), mode),
    }
}

fn product(a: u64, b: u64) -> Wide {
    let (sa, ma, ea) = F64.unpack(a);
    let (sb, mb, eb) = F64.unpack(b);
    normal(sa != sb, u128::from(ma) * u128::from(mb), ea + eb)
}

/// a * b.
pub(in super::super) fn mul(a: u64, b: u64, mode: u32) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    if !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 {
        return (x * y).to_bits();
    }
    let p = product(a, b);
    F64.round(p.negative, p.significand, p.exponent, mode, false)
}

/// a * b + c.
pub(in super::super) fn fma(a: u64, b: u64, c: u64, mode: u32) -> u64 {
    let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
    if !x.is_finite() || !y.is_finite() || !z.is_finite() {
        return x.mul_add(y, z).to_bits();
    }
    if x == 0.0 || y == 0.0 {
        return add((x * y).to_bits(), c, mode);
    }
    let p = product(a, b);
    if z == 0.0 {
        return F64.round(p.negative, p.significand, p.exponent, mode, false);
    }
    sum(p, unpack(c), mode)
}

/// a / b.
pub(in super::super) fn div(a: u64, b: u64, mode: u32) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    if !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 {
        return (x / y).to_bits();
    }
    let (a, b) = (unpack(a), unpack(b));
    // 126 bits over 53: at least 72 bits of quotient.
    let divisor = b.significand >> (TOP - 52);
    let (q, rest) = (a.significand / divisor, a.significand % divisor);
    F64.round(
        a.negative != b.negative,
        (q << 1) | u128::from(rest != 0),
        a.exponent - b.exponent - (TOP as i32 - 52) - 1,
        mode,
        false,
    )
}

/// The square root.
pub(in super::super) fn sqrt(a: u64, mode: u32) -> u64 {
    let x = f64::from_bits(a);
    if !x.is_finite() || x <= 0.0 {
        return x.sqrt().to_bits();
    }
    let w = unpack(a);
    let (significand, exponent) =
        if w.exponent % 2 == 0 { (w.significand, w.exponent) } else { (w.significand << 1, w.exponent - 1) };
    let root = significand.isqrt();
    let rest = root * root != significand;
    F64.round(false, (root << 1) | u128::from(rest), exponent / 2 - 1, mode, false)
}
