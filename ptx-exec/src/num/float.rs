//! Floating-point arithmetic of one lane.
//!
//! Formats of up to 32 bits are computed in f64, exactly or rounded to odd, and then rounded once to their format. For f64 the
//! processor rounds to nearest, and [`super::wide`] serves the other modes.

use super::format::{BF16, F16, F32, F64, Format, add_odd, div_odd, sqrt_odd};
use super::{ABS, FTZ, NAN, RELU, RN, ROUND, SAT, XORSIGN};

/// An operand, with subnormals flushed for `.ftz`.
fn read(f: Format, bits: u64, ctl: u32) -> u64 {
    let bits = bits & ((f.sign() << 1).wrapping_sub(1));
    if ctl & FTZ != 0 && f.is_subnormal(bits) { bits & f.sign() } else { bits }
}

/// A result as the instruction leaves it.
fn finish(f: Format, bits: u64, ctl: u32) -> u64 {
    if f.is_nan(bits) {
        // `.sat` makes NaN zero, `.relu` keeps it.
        return if ctl & SAT != 0 {
            0
        } else if f == F64 {
            bits
        } else {
            f.nan
        };
    }
    let bits = if ctl & FTZ != 0 && f.is_subnormal(bits) { bits & f.sign() } else { bits };
    if ctl & (SAT | RELU) != 0 {
        let one = (f.bias() as u64) << (f.precision - 1);
        if bits & f.sign() != 0 {
            return 0;
        }
        return if ctl & SAT != 0 { bits.min(one) } else { bits };
    }
    bits
}

/// Rounds an f64 that is exact or rounded to odd; a NaN becomes the format's.
fn store(f: Format, value: f64, ctl: u32) -> u64 {
    if f == F32 && ctl & ROUND == RN {
        // The processor rounds as `from_f64` does, and faster.
        let r = value as f32;
        return finish(f, if r.is_nan() { f.nan } else { u64::from(r.to_bits()) }, ctl);
    }
    finish(f, f.from_f64(value, ctl, false), ctl)
}

/// The sign of an exact zero sum: negative only where both are, or rounding goes down.
fn zero_sum(value: f64, a: f64, b: f64, ctl: u32) -> f64 {
    if value == 0.0 && a == -b && ctl & ROUND == super::RM && a.is_sign_negative() != b.is_sign_negative() {
        -0.0
    } else {
        value
    }
}

fn add(f: Format, a: u64, b: u64, ctl: u32) -> u64 {
    let (x, y) = (f.to_f64(read(f, a, ctl)), f.to_f64(read(f, b, ctl)));
    store(f, zero_sum(add_odd(x, y), x, y, ctl), ctl)
}

fn mul(f: Format, a: u64, b: u64, ctl: u32) -> u64 {
    // 24 bits times 24 are exact in 53, and f32's exponents are far from f64's limits.
    store(f, f.to_f64(read(f, a, ctl)) * f.to_f64(read(f, b, ctl)), ctl)
}

fn fma(f: Format, a: u64, b: u64, c: u64, ctl: u32) -> u64 {
    let product = f.to_f64(read(f, a, ctl)) * f.to_f64(read(f, b, ctl));
    let c = f.to_f64(read(f, c, ctl));
    store(f, zero_sum(add_odd(product, c), product, c, ctl), ctl)
}

fn minmax(f: Format, a: u64, b: u64, ctl: u32, max: bool) -> u64 {
    let (mut a, mut b) = (read(f, a, ctl), read(f, b, ctl));
    let sign = (a ^ b) & f.sign();
    if ctl & ABS != 0 {
        (a, b) = (a & !f.sign(), b & !f.sign());
    }
    let r = match (f.is_nan(a), f.is_nan(b)) {
        (true, true) => f.nan,
        (true, false) | (false, true) if ctl & NAN != 0 => f.nan,
        (true, false) => b,
        (false, true) => a,
        // Ordered as integers of their sign: -0 < +0.
        (false, false) => {
            let key = |v: u64| if v & f.sign() != 0 { -((v & !f.sign()) as i128) - 1 } else { i128::from(v) };
            if (key(a) < key(b)) == max { b } else { a }
        }
    };
    if f.is_nan(r) {
        return f.nan;
    }
    if ctl & XORSIGN != 0 { (r & !f.sign()) | sign } else { r }
}

macro_rules! formats {
    ($($name:ident $format:ident),*) => {$(
        pub(in super::super) mod $name {
            use super::*;
            pub(in super::super::super) fn add(a: u64, b: u64, _: u64, ctl: u32) -> u64 { super::add($format, a, b, ctl) }
            pub(in super::super::super) fn sub(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
                let b = if $format.is_nan(b) { b } else { b ^ $format.sign() };
                super::add($format, a, b, ctl)
            }
            pub(in super::super::super) fn mul(a: u64, b: u64, _: u64, ctl: u32) -> u64 { super::mul($format, a, b, ctl) }
            pub(in super::super::super) fn fma(a: u64, b: u64, c: u64, ctl: u32) -> u64 { super::fma($format, a, b, c, ctl) }
            pub(in super::super::super) fn min(a: u64, b: u64, _: u64, ctl: u32) -> u64 { minmax($format, a, b, ctl, false) }
            pub(in super::super::super) fn max(a: u64, b: u64, _: u64, ctl: u32) -> u64 { minmax($format, a, b, ctl, true) }
            pub(in super::super::super) fn neg(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
                let a = read($format, a, ctl);
                if $format.is_nan(a) && $format != F64 { $format.nan } else { a ^ $format.sign() }
            }
            pub(in super::super::super) fn abs(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
                let a = read($format, a, ctl);
                if $format.is_nan(a) && $format != F64 { $format.nan } else { a & !$format.sign() }
            }
            /// Comparison `ctl >> OWN` by number: see [`compare`].
            pub(in super::super::super) fn set(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
                let (a, b) = ($format.to_f64(read($format, a, ctl)), $format.to_f64(read($format, b, ctl)));
                u64::from(compare(a, b, ctl >> super::super::OWN))
            }
        }
    )*};
}
formats!(f32 F32, f16 F16, bf16 BF16);

/// The comparisons of `setp` for floats, by number: eq ne lt le gt ge equ neu ltu leu gtu geu num nan.
pub(in super::super) fn compare(a: f64, b: f64, number: u32) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match number {
        0 => a == b,
        1 => !unordered && a != b,
        2 => a < b,
        3 => a <= b,
        4 => a > b,
        5 => a >= b,
        6 => unordered || a == b,
        7 => a != b,
        8 => unordered || a < b,
        9 => unordered || a <= b,
        10 => unordered || a > b,
        11 => unordered || a >= b,
        12 => !unordered,
        _ => unordered,
    }
}

pub(in super::super) fn div_f32(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
    let q = div_odd(F32.to_f64(read(F32, a, ctl)), F32.to_f64(read(F32, b, ctl)));
    // The GPU flushes a quotient that is subnormal before it is rounded.
    let q = if ctl & FTZ != 0 && q.abs() < f64::from(core::primitive::f32::MIN_POSITIVE) { q * 0.0 } else { q };
    store(F32, q, ctl)
}

pub(in super::super) fn rcp_f32(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    store(F32, div_odd(1.0, F32.to_f64(read(F32, a, ctl))), ctl)
}

pub(in super::super) fn sqrt_f32(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    store(F32, sqrt_odd(F32.to_f64(read(F32, a, ctl))), ctl)
}

/// `copysign d, a, b`: the magnitude of b with the sign of a.
pub(in super::super) fn copysign_f32(a: u64, b: u64, _: u64, _: u32) -> u64 {
    (a & F32.sign()) | (b & (F32.sign() - 1))
}

pub(in super::super) fn copysign_f64(a: u64, b: u64, _: u64, _: u32) -> u64 {
    (a & F64.sign()) | (b & (F64.sign() - 1))
}

/// `testp`: `ctl >> OWN` is finite, infinite, number, notanumber, normal, subnormal.
fn testp(f: Format, a: u64, ctl: u32) -> u64 {
    let (nan, infinite, subnormal) = (f.is_nan(a), f.is_infinite(a), f.is_subnormal(a));
    u64::from(match ctl >> super::OWN {
        0 => !nan && !infinite,
        1 => infinite,
        2 => !nan,
        3 => nan,
        4 => !nan && !infinite && !subnormal,
        _ => subnormal,
    })
}

pub(in super::super) fn testp_f32(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    testp(F32, a, ctl)
}

pub(in super::super) fn testp_f64(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
    testp(F64, a, ctl)
}

/// f64: to nearest by the processor.
pub(in super::super) mod f64 {
    use super::super::wide;
    use super::{F64, RN, ROUND, compare};

    /// The NaN of an operation: the first operand that is one, quiet; else the GPU's own.
    fn nan(result: u64, operands: &[u64]) -> u64 {
        if !F64.is_nan(result) {
            return result;
        }
        operands.iter().find(|o| F64.is_nan(**o)).map_or(0xfff8_0000_0000_0000, |o| o | 1 << 51)
    }

    pub(in super::super::super) fn add(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
        let exact = ctl & ROUND == RN;
        nan(if exact { (f(a) + f(b)).to_bits() } else { wide::add(a, b, ctl) }, &[a, b])
    }

    pub(in super::super::super) fn sub(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
        add(a, if F64.is_nan(b) { b } else { b ^ F64.sign() }, 0, ctl)
    }

    pub(in super::super::super) fn mul(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
        nan(if ctl & ROUND == RN { (f(a) * f(b)).to_bits() } else { wide::mul(a, b, ctl) }, &[a, b])
    }

    pub(in super::super::super) fn fma(a: u64, b: u64, c: u64, ctl: u32) -> u64 {
        let r = if ctl & ROUND == RN { f(a).mul_add(f(b), f(c)).to_bits() } else { wide::fma(a, b, c, ctl) };
        nan(r, &[a, b, c])
    }

    pub(in super::super::super) fn div(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
        nan(if ctl & ROUND == RN { (f(a) / f(b)).to_bits() } else { wide::div(a, b, ctl) }, &[a, b])
    }

    pub(in super::super::super) fn rcp(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
        div(1.0_f64.to_bits(), a, 0, ctl)
    }

    pub(in super::super::super) fn sqrt(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
        nan(if ctl & ROUND == RN { f(a).sqrt().to_bits() } else { wide::sqrt(a, ctl) }, &[a])
    }

    pub(in super::super::super) fn min(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
        super::minmax(F64, a, b, ctl, false)
    }

    pub(in super::super::super) fn max(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
        super::minmax(F64, a, b, ctl, true)
    }

    pub(in super::super::super) fn neg(a: u64, _: u64, _: u64, _: u32) -> u64 {
        a ^ F64.sign()
    }

    pub(in super::super::super) fn abs(a: u64, _: u64, _: u64, _: u32) -> u64 {
        a & !F64.sign()
    }

    pub(in super::super::super) fn set(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
        u64::from(compare(f(a), f(b), ctl >> super::super::OWN))
    }

    fn f(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}
