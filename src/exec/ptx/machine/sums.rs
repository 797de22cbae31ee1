//! Sums of products as tensor cores make them, bit by bit: the products of a step and the accumulator are aligned to the largest
//! of their exponents, cut some bits below it, and added exactly.

use core::ops::Range;

use super::tensor::to_half;
use crate::exec::ptx::num::RZ;
use crate::exec::ptx::num::format::{F16, F32, Format, TF32};

/// How the tensor cores of a chip add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Adder {
    /// Bits below the largest exponent of a sum that are kept.
    fraction: i32,
    /// Products of f16 and bf16 in a step; of tf32 half as many.
    products: usize,
}

/// As an H200 adds: `tests/data/h200_ptx.bin`.
pub(in super::super) const HOPPER: Adder = Adder { fraction: 25, products: 16 };

/// As Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores" (arXiv 2511.10909), have it for the A100.
pub(in super::super) const AMPERE: Adder = Adder { fraction: 24, products: 8 };

/// Elements of A by rows, of B by rows.
pub(super) struct Inputs<const K: usize> {
    pub(super) format: Format,
    pub(super) a: [[u32; K]; 16],
    pub(super) b: [[u32; 8]; K],
}

/// Adds all products to `c`, which is f16 or f32, before and after.
/// `V3` says that the processor has AVX2.
#[inline(always)]
pub(super) fn add<const K: usize, const V3: bool>(adder: Adder, of: &Inputs<K>, halves: bool, c: &mut Tile<u32>) {
    let products = if of.format == TF32 { adder.products / 2 } else { adder.products };
    let old = if halves { F16 } else { F32 };
    for start in (0..K).step_by(products) {
        step::<K, V3>(adder, old, of, start..(start + products).min(K), c);
    }
}

/// The most products of a step.
pub(super) const MOST: usize = 16;

/// A number for each sum.
pub(super) type Tile<T> = [[T; 8]; 16];

/// The exponent of zero: below all that two exponents can add up to.
const NOTHING: i32 = -10_000;

/// Numbers as the adder sees them: signs as masks, significands, exponents of their upper bits.
#[derive(Clone, Copy)]
pub(super) struct Parts<const N: usize> {
    pub(super) signs: [i32; N],
    pub(super) significands: [u32; N],
    pub(super) tops: [i32; N],
}

#[inline(always)]
fn parts<const N: usize>(f: Format, values: &[u32; N]) -> Parts<N> {
    let mut p = Parts { signs: [0; N], significands: [0; N], tops: [0; N] };
    let bits = f.precision - 1;
    for (i, v) in values.iter().enumerate() {
        let fraction = v & ((1 << bits) - 1);
        let biased = (v >> bits & ((1 << f.exponent_bits) - 1)) as i32;
        let significand = if biased == 0 { fraction } else { fraction | 1 << bits };
        p.significands[i] = significand;
        p.tops[i] = if significand == 0 { NOTHING } else { biased.max(1) - f.bias() };
        p.signs[i] = 0_i32.wrapping_sub((v >> (bits + f.exponent_bits) & 1) as i32);
    }
    p
}

/// The accumulators and the sums of products, and the exponents that they are aligned to.
struct Aligned {
    old: Tile<i32>,
    /// Of 16 products of 11 bits each, 5 bits further: they fit.
    products: Tile<i32>,
    largest: Tile<i32>,
}

/// One step of all sums: the products in a range of K.
#[inline(always)]
fn step<const K: usize, const V3: bool>(
    adder: Adder,
    of: Format,
    inputs: &Inputs<K>,
    range: Range<usize>,
    c: &mut Tile<u32>,
) {
    let f = inputs.format;
    let b = &inputs.b[range.clone()];
    let sums = aligned::<K, V3>(adder, of, inputs, range.clone(), c);
    let (out, mut odd) = rounded(&sums, adder.fraction, of == F16);
    odd |= any_special(f, b.as_flattened()) | any_special(of, c.as_flattened());
    for row in &inputs.a {
        odd |= any_special(f, &row[range.clone()]);
    }
    if !odd {
        *c = out;
        return;
    }
    for (i, row) in c.iter_mut().enumerate() {
        let a = &inputs.a[i][range.clone()];
        for (j, c) in row.iter_mut().enumerate() {
            let pairs = a.iter().zip(b).map(|(v, row)| (*v, row[j]));
            let sum = i64::from(sums.old[i][j]) + i64::from(sums.products[i][j]);
            let exponent = sums.largest[i][j] - adder.fraction;
            *c = not_finite(f, of, *c, pairs).unwrap_or_else(|| slowly(sum, exponent, of));
        }
    }
}

#[inline(always)]
fn any_special(f: Format, values: &[u32]) -> bool {
    let top = ((1 << f.exponent_bits) - 1) << (f.precision - 1);
    values.iter().fold(0, |any, v| any | u32::from(v & top == top)) != 0
}

#[inline(always)]
fn aligned<const K: usize, const V3: bool>(
    adder: Adder,
    of: Format,
    inputs: &Inputs<K>,
    range: Range<usize>,
    c: &Tile<u32>,
) -> Aligned {
    let f = inputs.format;
    let shifts = [adder.fraction - 2 * (f.precision as i32 - 1), adder.fraction - (of.precision as i32 - 1)];
    let n = range.len().min(MOST);
    let mut b = [Parts { signs: [0; 8], significands: [0; 8], tops: [0; 8] }; MOST];
    for (b, row) in b.iter_mut().zip(&inputs.b[range.clone()]) {
        *b = parts(f, row);
    }
    let mut all = Aligned { old: [[0; 8]; 16], products: [[0; 8]; 16], largest: [[0; 8]; 16] };
    for (i, c) in c.iter().enumerate() {
        let mut values = [0; MOST];
        values[..n].copy_from_slice(&inputs.a[i][range.start..range.start + n]);
        let (a, old) = (parts(f, &values), parts(of, c));
        let out = [&mut all.old[i], &mut all.products[i], &mut all.largest[i]];
        #[cfg(target_arch = "x86_64")]
        if V3 {
            // SAFETY: the processor has the features: the caller says so by `V3`.
            unsafe { super::sums_v3::row(n, &a, &b, &old, shifts, out) };
            continue;
        }
        row(n, &a, &b, &old, shifts, out);
    }
    all
}

/// The accumulators, sums of products, and exponents of a row.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
pub(super) fn row(
    n: usize,
    a: &Parts<MOST>,
    b: &[Parts<8>; MOST],
    old: &Parts<8>,
    [product_shift, old_shift]: [i32; 2],
    [accumulator, sum, largest]: [&mut [i32; 8]; 3],
) {
    // Significands have 27 bits: 31 shift them out.
    let cut = |significand: u32, by: i32| (significand >> (by as u32).min(31)) as i32;
    *largest = old.tops;
    let mut products = [[0_u32; 8]; MOST];
    let mut tops = [[0_i32; 8]; MOST];
    for x in 0..n {
        let (top, significand) = (a.tops[x], a.significands[x]);
        for j in 0..8 {
            products[x][j] = (significand * b[x].significands[j]) << product_shift;
            tops[x][j] = top + b[x].tops[j];
            largest[j] = largest[j].max(tops[x][j]);
        }
    }
    for x in 0..n {
        let sign = a.signs[x];
        for j in 0..8 {
            let v = cut(products[x][j], largest[j] - tops[x][j]);
            let sign = sign ^ b[x].signs[j];
            sum[j] += (v ^ sign) - sign;
        }
    }
    for j in 0..8 {
        let v = cut(old.significands[j] << old_shift, largest[j] - old.tops[j]);
        accumulator[j] = (v ^ old.signs[j]) - old.signs[j];
    }
}

/// `sum * 2^(largest - fraction)`, cut to f32, or rounded to f16; and whether one of them is neither zero nor normal in f32.
#[inline(always)]
fn rounded(of: &Aligned, fraction: i32, halves: bool) -> (Tile<u32>, bool) {
    const BELOW: u64 = (1 << 29) - 1;
    let mut out = [[0; 8]; 16];
    let mut odd = 0;
    let sums = of.old.as_flattened().iter().zip(of.products.as_flattened()).zip(of.largest.as_flattened());
    for (out, ((old, products), largest)) in out.as_flattened_mut().iter_mut().zip(sums) {
        // Exact: they have 32 bits each.
        let bits = (f64::from(*old) + f64::from(*products)).to_bits();
        let exponent = (largest - fraction).clamp(-900, 900) + 1023;
        let cut = f64::from_bits(bits & !BELOW) * f64::from_bits((exponent as u64) << 52);
        let v = cut as f32;
        let magnitude = v.to_bits() & 0x7fff_ffff;
        odd |= u32::from(magnitude.wrapping_sub(1 << 23) >= 254 << 23) & u32::from(bits != 0);
        // For f16, what was cut off is kept as a last bit, so that rounding again is rounding once.
        *out = v.to_bits() | u32::from(halves) & u32::from(bits & BELOW != 0);
    }
    if halves {
        for out in out.as_flattened_mut() {
            *out = to_half(f32::from_bits(*out));
        }
    }
    (out, odd != 0)
}

/// The same for any numbers.
#[cold]
fn slowly(sum: i64, exponent: i32, of: Format) -> u32 {
    let mode = if of == F16 { 0 } else { RZ };
    if sum == 0 { 0 } else { of.round(sum < 0, u128::from(sum.unsigned_abs()), exponent, mode, false) as u32 }
}

/// What NaN and infinity make of a sum, as in any sum; `None` where there are none.
#[cold]
fn not_finite(f: Format, of: Format, c: u32, pairs: impl Iterator<Item = (u32, u32)>) -> Option<u32> {
    let mut sum = of.to_f64(u64::from(c));
    let mut is_special = !sum.is_finite();
    for (p, q) in pairs {
        let (x, y) = (f.to_f64(u64::from(p)), f.to_f64(u64::from(q)));
        if !x.is_finite() || !y.is_finite() {
            sum = if is_special { sum + x * y } else { x * y };
            is_special = true;
        }
    }
    is_special.then(|| of.from_f64(sum, 0, false) as u32)
}
