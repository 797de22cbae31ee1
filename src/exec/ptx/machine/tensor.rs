//! Products of 16 x 8 floats: `mma` of f16, bf16, tf32 and 8-bit floats, eight columns at a time.
//!
//! A register of A holds 8 rows of the matrix one after the other, a register of B 8 columns. Columns of C lie in the order of its
//! registers: the even ones, then the odd ones.

use std::sync::OnceLock;

use super::vector::{Rows, store};
use crate::exec::ptx::code::{MmaInfo, NONE};
use crate::exec::ptx::num::RZ;
use crate::exec::ptx::num::format::{BF16, E4M3, E5M2, F16, F32, Format, TF32};
use crate::exec::ptx::types::Ty;

/// The most that K is.
const MOST: usize = 32;
const COLUMN: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

/// Elements of A by rows, of B by rows with their columns in order, of C.
struct Operands {
    a: [[u32; MOST]; 16],
    b: [[u32; 8]; MOST],
    c: [[u32; 8]; 16],
}

/// The registers of an instruction.
pub(super) struct Registers<'a> {
    pub(super) d: &'a [u32],
    pub(super) a: &'a [u32],
    pub(super) b: &'a [u32],
    pub(super) c: &'a [u32],
}

/// Elements of the registers of A or B: each holds 8 rows, one after the other; `two` of them lie below each other.
///
/// # Safety
/// The registers are those of the warp.
#[inline(always)]
unsafe fn unpack<T: Copy + Into<u32>, const PER: usize>(
    r: Rows,
    registers: &[u32],
    two: bool,
    out: &mut [[u32; MOST]],
) {
    for (i, register) in registers.iter().enumerate() {
        let (first, column) = if two { (8 * (i % 2), i / 2) } else { (0, i) };
        // SAFETY: the caller says so; a row has 32 words, which are 8 rows of 4 * PER elements.
        let words = unsafe { core::slice::from_raw_parts(r.lanes::<T>(*register), 32 * PER) };
        for (from, to) in words.chunks_exact(4 * PER).zip(&mut out[first..first + 8]) {
            for (from, to) in from.iter().zip(&mut to[4 * PER * column..4 * PER * (column + 1)]) {
                *to = (*from).into();
            }
        }
    }
}

/// Runs one instruction.
///
/// # Safety
/// The registers are those of the warp, as many as the shape has.
#[inline(always)]
pub(super) unsafe fn run(info: &MmaInfo, r: Rows, of: &Registers<'_>, exactly: bool, mask: u32) {
    let mut o = Operands { a: [[0; MOST]; 16], b: [[0; 8]; MOST], c: [[0; 8]; 16] };
    let mut columns = [[0; MOST]; 8];
    // SAFETY: the caller says so.
    unsafe {
        match info.a.bits() {
            8 => {
                unpack::<u8, 4>(r, of.a, true, &mut o.a);
                unpack::<u8, 4>(r, of.b, false, &mut columns);
            }
            16 => {
                unpack::<u16, 2>(r, of.a, true, &mut o.a);
                unpack::<u16, 2>(r, of.b, false, &mut columns);
            }
            _ => {
                unpack::<u32, 1>(r, of.a, true, &mut o.a);
                unpack::<u32, 1>(r, of.b, false, &mut columns);
            }
        }
    }
    for (x, row) in o.b.iter_mut().enumerate().take(info.k as usize) {
        *row = core::array::from_fn(|j| columns[COLUMN[j]][x]);
    }
    let halves = info.c == Ty::F16;
    for (i, register) in of.c.iter().enumerate() {
        // SAFETY: as above.
        let words = unsafe { *r.lanes::<[u32; 32]>(*register) };
        for (lane, word) in words.iter().enumerate() {
            let (g, t) = (lane / 4, lane % 4);
            if halves {
                (o.c[g + 8 * (i % 2)][t], o.c[g + 8 * (i % 2)][4 + t]) = (word & 0xffff, word >> 16);
            } else {
                o.c[g + 8 * (i / 2 % 2)][i % 2 * 4 + t] = *word;
            }
        }
    }
    if exactly {
        exact(info, &mut o);
    } else {
        fast(info, &mut o);
    }
    for (i, register) in of.d.iter().enumerate().filter(|(_, register)| **register != NONE) {
        let mut out = [0; 32];
        for (lane, word) in out.iter_mut().enumerate() {
            let (g, t) = (lane / 4, lane % 4);
            *word = if halves {
                o.c[g + 8 * (i % 2)][t] | o.c[g + 8 * (i % 2)][4 + t] << 16
            } else {
                o.c[g + 8 * (i / 2 % 2)][i % 2 * 4 + t]
            };
        }
        // SAFETY: as above.
        unsafe { store(r.lanes(*register), &out, mask) };
    }
}

/// The f32 of an f16.
#[inline(always)]
fn half(v: u32) -> f32 {
    // Exponents differ by 112; the product makes subnormals right.
    let small = f32::from_bits((v & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let special = if v & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(small.to_bits() | special | (v & 0x8000) << 16)
}

/// The f16 of each e4m3, and of each e5m2: all are numbers of f16.
fn eighths(ty: Ty) -> &'static [u16; 256] {
    static TABLES: OnceLock<[[u16; 256]; 2]> = OnceLock::new();
    let of = |f: Format| core::array::from_fn(|v| F16.from_f64(f.to_f64(v as u64), 0, false) as u16);
    &TABLES.get_or_init(|| [of(E4M3), of(E5M2)])[usize::from(ty == Ty::E5m2)]
}

/// 8-bit floats become f16.
#[inline(always)]
fn widen(info: &MmaInfo, o: &mut Operands) {
    if info.a.bits() == 8 {
        let (a, b) = (eighths(info.a), eighths(info.b));
        o.a.iter_mut().flatten().for_each(|v| *v = u32::from(a[*v as usize & 0xff]));
        o.b.iter_mut().flatten().for_each(|v| *v = u32::from(b[*v as usize & 0xff]));
    }
}

/// Sums in f32, a product at a time: within gamma(K + 1) of the exact sum, as the tensor cores are.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
fn fast(info: &MmaInfo, o: &mut Operands) {
    widen(info, o);
    let (halves, k) = (info.c == Ty::F16, (info.k as usize).min(MOST));
    let mut a = [[0.0_f32; MOST]; 16];
    let mut b = [[0.0_f32; 8]; MOST];
    macro_rules! convert {
        ($f:expr) => {{
            for (to, from) in a.iter_mut().zip(&o.a) {
                for (to, from) in to[..k].iter_mut().zip(&from[..k]) {
                    *to = $f(*from);
                }
            }
            for (to, from) in b[..k].iter_mut().zip(&o.b) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = $f(*from);
                }
            }
        }};
    }
    match info.a {
        Ty::Bf16 => convert!(|v: u32| f32::from_bits(v << 16)),
        // The chip reads the upper 19 bits of the register.
        Ty::Tf32 => convert!(|v: u32| f32::from_bits(v & 0xffff_e000)),
        _ => convert!(half),
    }
    // Four rows at a time: their sums stay in registers.
    for first in (0..16).step_by(4) {
        let mut sum = [[0.0_f32; 8]; 4];
        for i in 0..4 {
            for j in 0..8 {
                let c = o.c[first + i][j];
                sum[i][j] = if halves { half(c) } else { f32::from_bits(c) };
            }
        }
        for x in 0..k {
            for i in 0..4 {
                let p = a[first + i][x];
                for j in 0..8 {
                    sum[i][j] += p * b[x][j];
                }
            }
        }
        for i in 0..4 {
            for j in 0..8 {
                let sum = sum[i][j];
                o.c[first + i][j] = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
            }
        }
    }
    if halves {
        for c in o.c.iter_mut().flatten() {
            let sum = half::f16::from_f32(f32::from_bits(*c));
            *c = if sum.is_nan() { 0x7fff } else { u32::from(sum.to_bits()) };
        }
    }
}

/// The most products of a step.
const TERMS: usize = 16;
/// Bits below the largest exponent of a sum that the tensor cores of the H200 keep.
const FRACTION: i32 = 25;
/// The exponent of zero: below all that two exponents can add up to.
const NOTHING: i32 = -10_000;

/// Numbers as the adder sees them: signs as masks, significands, exponents of their upper bits.
#[derive(Clone, Copy)]
struct Parts<const N: usize> {
    signs: [i32; N],
    significands: [u32; N],
    tops: [i32; N],
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

#[inline(always)]
fn is_special(f: Format, v: u32) -> bool {
    v >> (f.precision - 1) & ((1 << f.exponent_bits) - 1) == (1 << f.exponent_bits) - 1
}

/// Bit by bit as the tensor cores of the H200: the products of a step and the accumulator are aligned to the largest of their
/// exponents, cut to 25 bits below it, added exactly, and the sum is cut to f32.
#[inline(always)]
fn exact(info: &MmaInfo, o: &mut Operands) {
    widen(info, o);
    // `mma` has no 8-bit floats on Hopper chips: ptxas makes f16 of them, 16 at a time.
    let eight = info.a.bits() == 8;
    if info.a == Ty::Tf32 {
        o.a.iter_mut().flatten().chain(o.b.iter_mut().flatten()).for_each(|v| *v >>= 13);
    }
    let k = info.k as usize;
    if eight && k == 32 {
        // Of each four 8-bit values, the lower two are in the first step.
        let at = |x: usize| x % 16 / 2 * 4 + x % 2 + x / 16 * 2;
        o.b = core::array::from_fn(|x| o.b[at(x)]);
        for row in &mut o.a {
            *row = core::array::from_fn(|x| row[at(x)]);
        }
    }
    let halves = info.c == Ty::F16;
    let old = if halves { F16 } else { F32 };
    let terms = if info.a == Ty::Tf32 { 8 } else { 16 };
    let mut c = if eight { [[0; 8]; 16] } else { o.c };
    for start in (0..k).step_by(terms) {
        let range = start..(start + terms).min(k);
        // Between the steps the sum is f32.
        let of = if start == 0 && !eight { old } else { F32 };
        match info.a {
            Ty::Bf16 => step(BF16, of, o, &mut c, range),
            Ty::Tf32 => step(TF32, of, o, &mut c, range),
            _ => step(F16, of, o, &mut c, range),
        }
    }
    for (c, out) in c.iter().flatten().zip(o.c.iter_mut().flatten()) {
        let mut sum = f32::from_bits(*c);
        if eight {
            // 8-bit products are summed on their own, and added to C at the end.
            sum += if halves { half(*out) } else { f32::from_bits(*out) };
        }
        *out = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
        if info.d == Ty::F16 {
            *out = F16.from_f64(F32.to_f64(u64::from(*out)), 0, false) as u32;
        }
    }
}

/// One step of all sums: `c` has the format `of` before, and is f32 after.
#[inline(always)]
fn step(f: Format, of: Format, o: &Operands, c: &mut [[u32; 8]; 16], range: core::ops::Range<usize>) {
    let mut b = [Parts { signs: [0; 8], significands: [0; 8], tops: [0; 8] }; TERMS];
    let mut special = [false; 8];
    let n = range.len().min(TERMS);
    let (start, end) = (range.start, range.start + n);
    for (b, row) in b.iter_mut().zip(&o.b[start..end]) {
        *b = parts(f, row);
        for (special, v) in special.iter_mut().zip(row) {
            *special |= is_special(f, *v);
        }
    }
    let product_shift = FRACTION - 2 * (f.precision as i32 - 1);
    let old_shift = FRACTION - (of.precision as i32 - 1);
    // Significands have 27 bits: 31 shift them out.
    let cut = |significand: u32, by: i32| significand >> by.min(31);
    for (row, c) in o.a.iter().zip(c) {
        let mut values = [0; TERMS];
        values[..n].copy_from_slice(&row[start..end]);
        let a = parts(f, &values);
        let old = parts(of, c);
        let mut largest = old.tops;
        let mut products = [[0_u32; 8]; TERMS];
        let mut tops = [[0_i32; 8]; TERMS];
        for x in 0..n {
            let (top, significand) = (a.tops[x], a.significands[x]);
            for j in 0..8 {
                products[x][j] = (significand * b[x].significands[j]) << product_shift;
                tops[x][j] = top + b[x].tops[j];
                largest[j] = largest[j].max(tops[x][j]);
            }
        }
        let mut sum = [0_i64; 8];
        for j in 0..8 {
            let v = cut(old.significands[j] << old_shift, largest[j] - old.tops[j]) as i32;
            sum[j] = i64::from((v ^ old.signs[j]) - old.signs[j]);
        }
        // Eight terms of 27 bits fit in 32.
        for first in (0..n).step_by(8) {
            let mut part = [0_i32; 8];
            for x in first..(first + 8).min(n) {
                let sign = a.signs[x];
                for j in 0..8 {
                    let v = cut(products[x][j], largest[j] - tops[x][j]) as i32;
                    let sign = sign ^ b[x].signs[j];
                    part[j] += (v ^ sign) - sign;
                }
            }
            for j in 0..8 {
                sum[j] += i64::from(part[j]);
            }
        }
        let all = values.iter().fold(false, |any, v| any | is_special(f, *v));
        for j in 0..8 {
            let odd = all || special[j] || is_special(of, c[j]);
            let pairs = (start..end).map(|x| (row[x], o.b[x][j]));
            let special = if odd { not_finite(f, of, c[j], pairs) } else { None };
            c[j] = special.unwrap_or_else(|| rounded(sum[j], largest[j]));
        }
    }
}

/// `sum * 2^(largest - 25)`, cut to f32.
#[inline(always)]
fn rounded(sum: i64, largest: i32) -> u32 {
    let magnitude = sum.unsigned_abs();
    let top = 63 - (magnitude | 1).leading_zeros() as i32;
    let exponent = top + largest - FRACTION;
    if magnitude != 0 && (-126..=127).contains(&exponent) {
        let fraction = (magnitude << (63 - top) >> 40) as u32 & 0x7f_ffff;
        return u32::from(sum < 0) << 31 | ((exponent + 127) as u32) << 23 | fraction;
    }
    F32.round(sum < 0, u128::from(magnitude), largest - FRACTION, RZ, false) as u32
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
    let bits = if sum.is_nan() { F32.nan } else { F32.from_f64(sum, 0, false) };
    is_special.then_some(bits as u32)
}
