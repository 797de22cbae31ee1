//! Approximate functions. The manual bounds their error. This module computes them in f64 and rounds to nearest, which is within every
//! bound, but not equal to the GPU's results bit by bit.

use super::FTZ;
use super::format::{BF16, F16, F32, Format};

fn apply(f: Format, a: u64, ctl: u32, of: impl Fn(f64) -> f64) -> u64 {
    let flush = |bits: u64| if ctl & FTZ != 0 && f.is_subnormal(bits) { bits & f.sign() } else { bits };
    flush(f.from_f64(of(f.to_f64(flush(a))), 0, false))
}

macro_rules! functions {
    ($($name:ident $format:ident $of:expr;)*) => {$(
        pub(in super::super) fn $name(a: u64, _: u64, _: u64, ctl: u32) -> u64 { apply($format, a, ctl, $of) }
    )*};
}
functions! {
    ex2_f32 F32 libm::exp2;
    lg2_f32 F32 libm::log2;
    sin_f32 F32 libm::sin;
    cos_f32 F32 libm::cos;
    tanh_f32 F32 libm::tanh;
    rcp_f32 F32 |x| 1.0 / x;
    sqrt_f32 F32 f64::sqrt;
    rsqrt_f32 F32 |x| 1.0 / x.sqrt();
    ex2_f16 F16 libm::exp2;
    tanh_f16 F16 libm::tanh;
    ex2_bf16 BF16 libm::exp2;
    tanh_bf16 BF16 libm::tanh;
}

macro_rules! packed {
    ($($name:ident $one:ident;)*) => {$(
        pub(in super::super) fn $name(a: u64, _: u64, _: u64, ctl: u32) -> u64 {
            $one(a & 0xffff, 0, 0, ctl) | $one((a >> 16) & 0xffff, 0, 0, ctl) << 16
        }
    )*};
}
packed! {
    ex2_f16x2 ex2_f16;
    tanh_f16x2 tanh_f16;
    ex2_bf16x2 ex2_bf16;
    tanh_bf16x2 tanh_bf16;
}

/// `div.approx` and `div.full`: within 2 ulp for divisors from 2^-126 to 2^126.
pub(in super::super) fn div_f32(a: u64, b: u64, _: u64, ctl: u32) -> u64 {
    let flush = |bits: u64| if ctl & FTZ != 0 && F32.is_subnormal(bits) { bits & F32.sign() } else { bits };
    let q = F32.to_f64(flush(a)) / F32.to_f64(flush(b));
    flush(F32.from_f64(q, 0, false))
}

/// `rsqrt.approx.f64`.
pub(in super::super) fn rsqrt_f64(a: u64, _: u64, _: u64, _: u32) -> u64 {
    (1.0 / f64::from_bits(a).sqrt()).to_bits()
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: the low 32 bits of operand and result are zero.
pub(in super::super) fn rcp_f64(a: u64, _: u64, _: u64, _: u32) -> u64 {
    (1.0 / f64::from_bits(a & !0xffff_ffff)).to_bits() & !0xffff_ffff
}
