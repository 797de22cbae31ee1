//! Sums of products as tensor cores make them, bit by bit. A step aligns the products and the accumulator to the largest exponent,
//! truncates them some bits below it, and adds them exactly.

use super::tensor_formats::to_half;
use crate::num::RZ;
use crate::num::format::{F16, F32, Format, TF32};

/// How the tensor cores of a chip add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adder {
    /// Bits below the largest exponent of a sum that are kept.
    fraction: i32,
    /// Products of f16 and bf16 in a step; of tf32 half as many.
    products: usize,
}

/// As an H200 adds: `tests/data/h200_ptx.bin`.
pub(crate) const HOPPER: Adder = Adder { fraction: 25, products: 16 };

/// As Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores" (arXiv 2511.10909), have it for the A100.
pub(crate) const AMPERE: Adder = Adder { fraction: 24, products: 8 };

/// The parameters of one step.
#[derive(Clone, Copy)]
struct Step {
    fraction: i32,
    /// Bits of the significand of a sum.
    kept: u32,
}

/// 32 products of 8-bit floats: as Xie et al. have it for Hopper chips. Sums of f16 are rounded as they were added.
const EIGHTHS: [Step; 2] = [Step { fraction: 13, kept: 14 }, Step { fraction: 13, kept: 24 }];

/// A number for each sum.
pub(crate) type Tile<T> = [[T; 8]; 16];

/// The exponent of zero: below all that two exponents can add up to.
const NOTHING: i32 = -10_000;

/// Numbers as the adder sees them: signs as masks, significands, exponents of their upper bits.
#[derive(Clone, Copy)]
pub(crate) struct Parts<const N: usize> {
    pub(crate) signs: [i32; N],
    pub(crate) significands: [u32; N],
    pub(crate) tops: [i32; N],
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

/// Whether one of them is NaN or an infinity.
#[inline(always)]
fn any_special(f: Format, values: &[u32]) -> bool {
    let magnitude = (1 << (f.exponent_bits + f.precision - 1)) - 1;
    let first = if f.has_infinity { ((1 << f.exponent_bits) - 1) << (f.precision - 1) } else { f.nan as u32 };
    values.iter().fold(0, |any, v| any | u32::from(v & magnitude >= first)) != 0
}

/// `R` rows of `C` elements: of A by rows, of B by k.
pub(crate) struct Side<const R: usize, const C: usize> {
    format: Format,
    raw: [[u32; C]; R],
    parts: [Parts<C>; R],
    is_special: bool,
}

impl<const R: usize, const C: usize> Side<R, C> {
    #[inline(always)]
    pub(crate) fn new(format: Format, raw: [[u32; C]; R]) -> Side<R, C> {
        let mut parts_of = [Parts { signs: [0; C], significands: [0; C], tops: [0; C] }; R];
        for (to, raw) in parts_of.iter_mut().zip(&raw) {
            *to = parts(format, raw);
        }
        Side { format, is_special: any_special(format, raw.as_flattened()), raw, parts: parts_of }
    }
}

/// Adds all products to `c`, which is f16 or f32, before and after. `V3` says that the processor has AVX2.
#[inline(always)]
pub(crate) fn add<const K: usize, const V3: bool>(
    adder: Adder,
    a: &Side<16, K>,
    b: &Side<K, 8>,
    halves: bool,
    c: &mut Tile<u32>,
) {
    let of = if halves { F16 } else { F32 };
    let step = Step { fraction: adder.fraction, kept: 24 };
    match (a.format.precision, adder.products) {
        (..=4, _) => steps::<K, 32, V3>(EIGHTHS[usize::from(halves)], of, a, b, c),
        _ if a.format == TF32 && adder.products == 8 => steps::<K, 4, V3>(step, of, a, b, c),
        _ if a.format == TF32 || adder.products == 8 => steps::<K, 8, V3>(step, of, a, b, c),
        _ => steps::<K, 16, V3>(step, of, a, b, c),
    }
}

/// The accumulators and the sums of products, and the exponents that they are aligned to.
struct Aligned {
    old: Tile<i32>,
    /// Sums of products; 16 products add at most 4 bits, so that they fit.
    products: Tile<i32>,
    largest: Tile<i32>,
}

/// Steps of `N` products.
#[inline(always)]
fn steps<const K: usize, const N: usize, const V3: bool>(
    step: Step,
    of: Format,
    a: &Side<16, K>,
    b: &Side<K, 8>,
    c: &mut Tile<u32>,
) {
    for start in (0..K).step_by(N) {
        let sums = aligned::<K, N, V3>(step, of, a, b, start, c);
        let (out, odd) = rounded(&sums, step, of == F16);
        if odd || a.is_special || b.is_special || any_special(of, c.as_flattened()) {
            one_by_one::<K, N>(step, of, a, b, start, &sums, c);
        } else {
            *c = out;
        }
    }
}

#[inline(always)]
fn aligned<const K: usize, const N: usize, const V3: bool>(
    step: Step,
    of: Format,
    a: &Side<16, K>,
    b: &Side<K, 8>,
    start: usize,
    c: &Tile<u32>,
) -> Aligned {
    let product_shift = step.fraction - (a.format.precision + b.format.precision) as i32 + 2;
    let old_shift = step.fraction - (of.precision as i32 - 1);
    let mut all = Aligned { old: [[0; 8]; 16], products: [[0; 8]; 16], largest: [[0; 8]; 16] };
    for (i, c) in c.iter().enumerate() {
        let mut old = parts(of, c);
        for v in &mut old.significands {
            *v = if old_shift < 0 { *v >> -old_shift } else { *v << old_shift };
        }
        let out = [&mut all.old[i], &mut all.products[i], &mut all.largest[i]];
        #[cfg(target_arch = "x86_64")]
        if V3 {
            // SAFETY: the processor has the features: the caller says so by `V3`.
            unsafe { super::sums_v3::row::<K, N>(start, &a.parts[i], &b.parts, &old, product_shift, out) };
            continue;
        }
        row::<K, N>(start, &a.parts[i], &b.parts, &old, product_shift, out);
    }
    all
}

/// The accumulators, sums of products, and exponents of a row.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
fn row<const K: usize, const N: usize>(
    start: usize,
    a: &Parts<K>,
    b: &[Parts<8>; K],
    old: &Parts<8>,
    product_shift: i32,
    [accumulator, sum, largest]: [&mut [i32; 8]; 3],
) {
    // Significands have 27 bits: 31 shift them out.
    let cut = |significand: u32, by: i32| (significand >> (by as u32).min(31)) as i32;
    *largest = old.tops;
    let mut products = [[0_u32; 8]; N];
    let mut tops = [[0_i32; 8]; N];
    let n = N.min(K);
    for x in 0..n {
        let (top, significand, b) = (a.tops[start + x], a.significands[start + x], &b[start + x]);
        for j in 0..8 {
            products[x][j] = (significand * b.significands[j]) << product_shift;
            tops[x][j] = top + b.tops[j];
            largest[j] = largest[j].max(tops[x][j]);
        }
    }
    for x in 0..n {
        let sign = a.signs[start + x];
        for j in 0..8 {
            let v = cut(products[x][j], largest[j] - tops[x][j]);
            let sign = sign ^ b[start + x].signs[j];
            sum[j] += (v ^ sign) - sign;
        }
    }
    for j in 0..8 {
        let v = cut(old.significands[j], largest[j] - old.tops[j]);
        accumulator[j] = (v ^ old.signs[j]) - old.signs[j];
    }
}

/// `sum * 2^(largest - fraction)`, truncated to the kept bits or rounded to f16. Also tells whether a sum is neither zero nor normal in
/// f32.
#[inline(always)]
fn rounded(of: &Aligned, step: Step, halves: bool) -> (Tile<u32>, bool) {
    let below = (1_u64 << (53 - step.kept)) - 1;
    // For f16, the bits below the 24 kept ones become a sticky bit, so that the second rounding is exact.
    let is_sticky = u32::from(halves && step.kept == 24);
    let mut out = [[0; 8]; 16];
    let mut odd = 0;
    let sums = of.old.as_flattened().iter().zip(of.products.as_flattened()).zip(of.largest.as_flattened());
    for (out, ((old, products), largest)) in out.as_flattened_mut().iter_mut().zip(sums) {
        // Exact: they have 32 bits each.
        let bits = (f64::from(*old) + f64::from(*products)).to_bits();
        let exponent = (largest - step.fraction).clamp(-900, 900) + 1023;
        let cut = f64::from_bits(bits & !below) * f64::from_bits((exponent as u64) << 52);
        let v = cut as f32;
        let magnitude = v.to_bits() & 0x7fff_ffff;
        odd |= u32::from(magnitude.wrapping_sub(1 << 23) >= 254 << 23) & u32::from(bits != 0);
        *out = v.to_bits() | is_sticky & u32::from(bits & below != 0);
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
fn one_by_one<const K: usize, const N: usize>(
    step: Step,
    of: Format,
    a: &Side<16, K>,
    b: &Side<K, 8>,
    start: usize,
    sums: &Aligned,
    c: &mut Tile<u32>,
) {
    for (i, row) in c.iter_mut().enumerate() {
        for (j, c) in row.iter_mut().enumerate() {
            let pairs = (start..(start + N).min(K)).map(|x| (a.raw[i][x], b.raw[x][j]));
            *c = not_finite([a.format, b.format, of], *c, pairs).unwrap_or_else(|| {
                let sum = i64::from(sums.old[i][j]) + i64::from(sums.products[i][j]);
                slowly(sum, sums.largest[i][j] - step.fraction, step.kept, of)
            });
        }
    }
}

fn slowly(sum: i64, exponent: i32, kept: u32, of: Format) -> u32 {
    if sum == 0 {
        return 0;
    }
    let magnitude = sum.unsigned_abs();
    // With 24 kept bits, the rounding below suffices: the format keeps at most 24.
    let below = if kept == 24 { 0 } else { (64 - magnitude.leading_zeros()).saturating_sub(kept) };
    let magnitude = magnitude >> below << below;
    // Overflow gives infinity, although sums of f32 are truncated.
    let top = 63 - magnitude.leading_zeros() as i32 + exponent;
    let mode = if of == F16 || top > of.bias() { 0 } else { RZ };
    of.round(sum < 0, u128::from(magnitude), exponent, mode, false) as u32
}

/// The sum if a NaN or an infinity is among the operands; `None` without one.
fn not_finite([fa, fb, of]: [Format; 3], c: u32, pairs: impl Iterator<Item = (u32, u32)>) -> Option<u32> {
    let mut sum = of.to_f64(u64::from(c));
    let mut is_special = !sum.is_finite();
    for (p, q) in pairs {
        let (x, y) = (fa.to_f64(u64::from(p)), fb.to_f64(u64::from(q)));
        if !x.is_finite() || !y.is_finite() {
            sum = if is_special { sum + x * y } else { x * y };
            is_special = true;
        }
    }
    is_special.then(|| of.from_f64(sum, 0, false) as u32)
}
