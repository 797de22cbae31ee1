//! Floating-point formats, and rounding into any of them.

use super::{RM, RN, RNA, ROUND, RP, RZ};

/// A binary format of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Format {
    /// Bits of the significand, the hidden one included.
    pub(in super::super) precision: u32,
    pub(in super::super) exponent_bits: u32,
    /// Whether the largest exponent is for infinity and NaN; e4m3 has one NaN and no infinity.
    pub(in super::super) has_infinity: bool,
    /// The GPU's NaN.
    pub(in super::super) nan: u64,
}

pub(in super::super) const F64: Format =
    Format { precision: 53, exponent_bits: 11, has_infinity: true, nan: 0x7fff_ffff_ffff_ffff };
pub(in super::super) const F32: Format =
    Format { precision: 24, exponent_bits: 8, has_infinity: true, nan: 0x7fff_ffff };
pub(in super::super) const TF32: Format = Format { precision: 11, exponent_bits: 8, has_infinity: true, nan: 0x3ffff };
pub(in super::super) const F16: Format = Format { precision: 11, exponent_bits: 5, has_infinity: true, nan: 0x7fff };
pub(in super::super) const BF16: Format = Format { precision: 8, exponent_bits: 8, has_infinity: true, nan: 0x7fff };
pub(in super::super) const E4M3: Format = Format { precision: 4, exponent_bits: 4, has_infinity: false, nan: 0x7f };
pub(in super::super) const E5M2: Format = Format { precision: 3, exponent_bits: 5, has_infinity: true, nan: 0x7f };

impl Format {
    pub(in super::super) const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    pub(in super::super) const fn sign(self) -> u64 {
        1 << (self.precision - 1 + self.exponent_bits)
    }

    /// The bits of infinity, or for e4m3 the bits after the largest number.
    const fn infinity(self) -> u64 {
        if self.has_infinity { ((1 << self.exponent_bits) - 1) << (self.precision - 1) } else { 0x7f }
    }

    pub(in super::super) const fn largest(self) -> u64 {
        self.infinity() - 1
    }

    pub(in super::super) const fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign() - 1);
        if self.has_infinity { magnitude > self.infinity() } else { magnitude == 0x7f }
    }

    pub(in super::super) const fn is_infinite(self, bits: u64) -> bool {
        self.has_infinity && bits & (self.sign() - 1) == self.infinity()
    }

    pub(in super::super) const fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign() - 1);
        magnitude != 0 && magnitude < 1 << (self.precision - 1)
    }

    /// A number as sign, significand and exponent: `significand * 2^exponent`; not for NaN and infinity.
    pub(in super::super) const fn unpack(self, bits: u64) -> (bool, u64, i32) {
        let fraction = bits & ((1 << (self.precision - 1)) - 1);
        let biased = ((bits & (self.sign() - 1)) >> (self.precision - 1)) as i32;
        let hidden = if biased == 0 { 0 } else { 1 << (self.precision - 1) };
        let exponent = if biased == 0 { 1 } else { biased };
        (bits & self.sign() != 0, fraction | hidden, exponent - self.bias() - (self.precision as i32 - 1))
    }

    /// The exact value; formats of up to 53 bits of precision fit in an f64.
    pub(in super::super) fn to_f64(self, bits: u64) -> f64 {
        if self == F64 {
            return f64::from_bits(bits);
        }
        let negative = bits & self.sign() != 0;
        let magnitude = if self.is_nan(bits) {
            f64::NAN
        } else if self.is_infinite(bits) {
            f64::INFINITY
        } else {
            let (_, significand, exponent) = self.unpack(bits);
            significand as f64 * f64::from_bits(((exponent + 1023) as u64) << 52)
        };
        if negative { -magnitude } else { magnitude }
    }

    /// Rounds `significand * 2^exponent`. The significand's lowest bit may be sticky; then the significand needs at least two bits more
    /// than the precision.
    pub(in super::super) fn round(
        self,
        negative: bool,
        significand: u128,
        exponent: i32,
        mode: u32,
        saturate: bool,
    ) -> u64 {
        let sign = if negative { self.sign() } else { 0 };
        if significand == 0 {
            return sign;
        }
        let top = 127 - significand.leading_zeros() as i32 + exponent;
        let smallest = 1 - self.bias();
        let lowest = top.max(smallest) - (self.precision as i32 - 1);
        let shift = lowest - exponent;
        let (mut q, rest) = if shift <= 0 {
            (significand << (-shift).min(127), 0)
        } else if shift > 127 {
            // Far below half of the smallest number.
            (0, 1)
        } else {
            let half = 1_u128 << (shift - 1);
            let low = significand & ((half << 1) - 1);
            // Less than half 1, half 2, more 3.
            (significand >> shift, if low == 0 { 0 } else { 1 + u32::from(low >= half) + u32::from(low > half) })
        };
        let up = match mode & ROUND {
            RN => rest == 3 || rest == 2 && q & 1 == 1,
            RNA => rest >= 2,
            RM => rest != 0 && negative,
            RP => rest != 0 && !negative,
            _ => false,
        };
        q += u128::from(up);
        let biased = (top.max(smallest) + self.bias()) as u64;
        let overflows = biased > (1 << self.exponent_bits);
        let bits = if overflows { u64::MAX } else { ((biased - 1) << (self.precision - 1)) + q as u64 };
        if bits < self.infinity() {
            return sign | bits;
        }
        let to_largest = match mode & ROUND {
            RZ => true,
            RM => !negative,
            RP => negative,
            _ => false,
        };
        sign | if saturate || to_largest { self.largest() } else { self.infinity() }
    }

    /// Rounds an f64 that is exact, or was rounded to odd.
    #[allow(clippy::wrong_self_convention, reason = "into the format, from an f64")]
    pub(in super::super) fn from_f64(self, value: f64, mode: u32, saturate: bool) -> u64 {
        if value.is_nan() {
            return self.nan;
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        if value.is_infinite() {
            return sign | if saturate { self.largest() } else { self.infinity() };
        }
        let (negative, significand, exponent) = F64.unpack(value.to_bits());
        self.round(negative, u128::from(significand), exponent, mode, saturate)
    }
}

/// Moves a rounded result to its odd neighbour on the side of the error. A second rounding, to at most 51 bits, is then correct
/// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
fn to_odd(value: f64, error: f64) -> f64 {
    let bits = value.to_bits();
    if error == 0.0 || !value.is_finite() || error.is_nan() || bits & 1 == 1 {
        return value;
    }
    if value == 0.0 {
        return error;
    }
    let outward = (error > 0.0) == (value > 0.0);
    f64::from_bits(if outward { bits + 1 } else { bits - 1 })
}

/// a + b, rounded to odd.
pub(in super::super) fn add_odd(a: f64, b: f64) -> f64 {
    let s = a + b;
    let bb = s - a;
    to_odd(s, (a - (s - bb)) + (b - bb))
}

/// a / b, rounded to odd, for operands of at most 24 bits.
pub(in super::super) fn div_odd(a: f64, b: f64) -> f64 {
    let q = a / b;
    if !q.is_finite() || q == 0.0 {
        return q;
    }
    let rest = (-q).mul_add(b, a);
    to_odd(q, if b > 0.0 { rest } else { -rest })
}

/// The square root, rounded to odd, of at most 24 bits.
pub(in super::super) fn sqrt_odd(a: f64) -> f64 {
    let r = a.sqrt();
    if !r.is_finite() || r == 0.0 {
        return r;
    }
    to_odd(r, (-r).mul_add(r, a))
}
