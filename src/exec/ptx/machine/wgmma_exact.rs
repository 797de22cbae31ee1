//! The sums of `wgmma` bit by bit, as far as a model of the chip is known: eight columns at a time.

use super::sums::{Adder, Inputs, add};
use super::vector::Rows;
use super::wgmma_sums::{Factors, element};
use crate::exec::ptx::code_async::WgmmaInfo;
use crate::exec::ptx::num::RZ;
use crate::exec::ptx::num::format::{BF16, E4M3, E5M2, F16, F32, Format, TF32};
use crate::exec::ptx::types::Ty;

/// Bits below the largest exponent that sums of 8-bit floats keep, and bits of the significand that they are cut to: Xie et al.,
/// "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores" (arXiv 2511.10909).
const FRACTION: i32 = 13;

/// # Safety
/// The registers are those of the warp.
#[inline(always)]
pub(super) unsafe fn run<const V3: bool>(info: &WgmmaInfo, r: Rows, d: &[u32], f: &Factors, adds: bool, adder: Adder) {
    // SAFETY: the caller says so.
    unsafe {
        match info.a.bits() {
            8 => eight_columns::<1, 32, V3>(info, r, d, f, adds, adder),
            16 => eight_columns::<2, 16, V3>(info, r, d, f, adds, adder),
            _ => eight_columns::<4, 8, V3>(info, r, d, f, adds, adder),
        }
    }
}

/// # Safety
/// The registers are those of the warp.
#[inline(always)]
unsafe fn eight_columns<const BYTES: usize, const K: usize, const V3: bool>(
    info: &WgmmaInfo,
    r: Rows,
    d: &[u32],
    f: &Factors,
    adds: bool,
    adder: Adder,
) {
    // The chip reads the upper 19 bits of tf32.
    let down = if BYTES == 4 { 13 } else { 0 };
    let mut a = [[0_u32; K]; 16];
    for (to, row) in a.iter_mut().zip(&f.a) {
        for (x, to) in to.iter_mut().enumerate() {
            *to = element::<BYTES>(row, x) >> down;
        }
    }
    let halves = info.d == Ty::F16;
    let each = if halves { 2 } else { 4 };
    for (eight, registers) in d.chunks_exact(each).enumerate() {
        // Columns in the order of the registers: the even ones, then the odd ones.
        let mut b = [[0_u32; 8]; K];
        for (j, column) in [0, 2, 4, 6, 1, 3, 5, 7].into_iter().enumerate() {
            for (x, to) in b.iter_mut().enumerate() {
                to[j] = element::<BYTES>(&f.b[8 * eight + column], x) >> down;
            }
        }
        let mut c = [[0_u32; 8]; 16];
        for (i, register) in registers.iter().enumerate().filter(|_| adds) {
            // SAFETY: the caller says so.
            let words = unsafe { *r.lanes::<[u32; 32]>(*register) };
            for (l, word) in words.iter().enumerate() {
                let (row, t) = (l / 4, l % 4);
                if halves {
                    (c[row + 8 * i][t], c[row + 8 * i][4 + t]) = (word & 0xffff, word >> 16);
                } else {
                    c[row + 8 * (i / 2)][i % 2 * 4 + t] = *word;
                }
            }
        }
        match info.a {
            Ty::F16 => add::<K, V3>(adder, &Inputs { format: F16, a, b }, halves, &mut c),
            Ty::Bf16 => add::<K, V3>(adder, &Inputs { format: BF16, a, b }, halves, &mut c),
            Ty::Tf32 => add::<K, V3>(adder, &Inputs { format: TF32, a, b }, halves, &mut c),
            _ => eighths(info, &a, &b, &mut c),
        }
        for (i, register) in registers.iter().enumerate() {
            let out: [u32; 32] = core::array::from_fn(|l| {
                let (row, t) = (l / 4, l % 4);
                if halves {
                    c[row + 8 * i][t] | c[row + 8 * i][4 + t] << 16
                } else {
                    c[row + 8 * (i / 2)][i % 2 * 4 + t]
                }
            });
            // SAFETY: as above.
            unsafe { *r.lanes::<[u32; 32]>(*register) = out };
        }
    }
}

/// A number as the adder sees it: sign as a mask, significand, exponent of its upper bit.
#[derive(Clone, Copy, Default)]
struct Part {
    sign: i32,
    significand: i32,
    top: i32,
}

/// The exponent of zero: below all that two exponents can add up to.
const NOTHING: i32 = -10_000;

#[inline(always)]
fn part(f: Format, v: u32) -> Part {
    let bits = f.precision - 1;
    let fraction = v & ((1 << bits) - 1);
    let biased = (v >> bits & ((1 << f.exponent_bits) - 1)) as i32;
    let significand = (if biased == 0 { fraction } else { fraction | 1 << bits }) as i32;
    let top = if significand == 0 { NOTHING } else { biased.max(1) - f.bias() };
    Part { sign: 0_i32.wrapping_sub((v >> (bits + f.exponent_bits) & 1) as i32), significand, top }
}

/// Sums of 32 products of 8-bit floats and what was there.
#[inline(always)]
fn eighths<const K: usize>(info: &WgmmaInfo, a: &[[u32; K]; 16], b: &[[u32; 8]; K], c: &mut [[u32; 8]; 16]) {
    let of = |ty: Ty| if ty == Ty::E4m3 { E4M3 } else { E5M2 };
    let (fa, fb) = (of(info.a), of(info.b));
    let fc = if info.d == Ty::F16 { F16 } else { F32 };
    let is_special = |f: Format, v: u32| f.is_nan(u64::from(v)) || f.is_infinite(u64::from(v));
    let bad_b: [bool; 8] = core::array::from_fn(|j| b.iter().any(|row| is_special(fb, row[j])));
    let parts_b: [[Part; 8]; K] = core::array::from_fn(|x| b[x].map(|v| part(fb, v)));
    let up = FRACTION - (fa.precision + fb.precision) as i32 + 2;
    for (row, c) in a.iter().zip(c) {
        let bad_a = row.iter().any(|v| is_special(fa, *v));
        let parts_a = row.map(|v| part(fa, v));
        let old = c.map(|v| part(fc, v));
        let mut largest = old.map(|p| p.top);
        for (a, b) in parts_a.iter().zip(&parts_b) {
            for (largest, b) in largest.iter_mut().zip(b) {
                *largest = (*largest).max(a.top + b.top);
            }
        }
        let mut sums = [0_i32; 8];
        for (a, b) in parts_a.iter().zip(&parts_b) {
            for j in 0..8 {
                let v = (a.significand * b[j].significand) << up >> (largest[j] - a.top - b[j].top).min(31);
                let sign = a.sign ^ b[j].sign;
                sums[j] += (v ^ sign) - sign;
            }
        }
        for j in 0..8 {
            if bad_a || bad_b[j] || is_special(fc, c[j]) {
                c[j] = not_finite((fa, fb, fc), row, b, j, c[j]);
                continue;
            }
            let down = fc.precision as i32 - 1 - FRACTION + largest[j] - old[j].top;
            let v = if down < 0 { old[j].significand << -down } else { old[j].significand >> down.min(31) };
            c[j] = cut(sums[j] + ((v ^ old[j].sign) - old[j].sign), largest[j] - FRACTION, fc);
        }
    }
}

#[cold]
fn not_finite<const K: usize>(
    (fa, fb, fc): (Format, Format, Format),
    row: &[u32; K],
    b: &[[u32; 8]; K],
    j: usize,
    c: u32,
) -> u32 {
    let products = row.iter().zip(b).map(|(a, b)| fa.to_f64(u64::from(*a)) * fb.to_f64(u64::from(b[j])));
    let sum = products.fold(fc.to_f64(u64::from(c)), |sum, product| sum + product);
    if sum.is_nan() { fc.nan as u32 } else { fc.from_f64(sum, 0, false) as u32 }
}

/// `sum * 2^exponent`, cut to as many bits as are kept; to f16 it is rounded then.
#[inline(always)]
fn cut(sum: i32, exponent: i32, to: Format) -> u32 {
    let magnitude = sum.unsigned_abs();
    let below = (32 - magnitude.leading_zeros()).saturating_sub(FRACTION as u32 + 1);
    let kept = magnitude >> below << below;
    // Of 14 bits at most: exact in f32 where it is normal.
    let scaled = kept as f32 * f32::from_bits(((exponent.clamp(-126, 127) + 127) as u32) << 23);
    if to == F32 && (-126..=100).contains(&exponent) {
        return scaled.to_bits() | u32::from(sum < 0 && kept != 0) << 31;
    }
    if kept == 0 {
        return 0;
    }
    to.round(sum < 0, u128::from(kept), exponent, if to == F16 { 0 } else { RZ }, false) as u32
}
