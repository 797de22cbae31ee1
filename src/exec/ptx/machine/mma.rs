//! `mma.sync`: fragments become matrices, matrices are multiplied, the result becomes fragments.
//!
//! Which lane holds what follows the figures of PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions": with e elements in
//! a register, register r of A holds row lane/4 + 8 (r%2) and columns e (lane%4) + 4 e (r/2) on; of B it holds column lane/4 and rows
//! e (lane%4) + 4 e r on; of C and D, columns 2 (lane%4) on of row lane/4, and of the row 8 below.

use super::Grid;
use super::vector::{Rows, store};
use crate::exec::ptx::code::{Inst, MmaInfo};
use crate::exec::ptx::num::format::{BF16, E4M3, E5M2, F16, F32, Format, TF32};
use crate::exec::ptx::types::Ty;

/// Whether the shape exists with these types.
pub(in super::super) fn is_known(i: &MmaInfo) -> bool {
    use Ty::{B1, Bf16, E4m3, E5m2, F16, F32, F64, S4, S8, S32, Tf32, U4, U8};
    if i.a_column || !i.b_column {
        return false;
    }
    let shape = (i.m, i.n, i.k);
    match (i.a, i.b) {
        (F16, F16) => matches!(shape, (16, 8, 8 | 16)) && matches!((i.d, i.c), (F32, F32) | (F16, F16)),
        (Bf16, Bf16) => matches!(shape, (16, 8, 8 | 16)) && (i.d, i.c) == (F32, F32),
        (Tf32, Tf32) => matches!(shape, (16, 8, 4 | 8)) && (i.d, i.c) == (F32, F32),
        (F64, F64) => matches!(shape, (8, 8, 4) | (16, 8, 4 | 8 | 16)) && (i.d, i.c) == (F64, F64),
        (S8 | U8, S8 | U8) => matches!(shape, (8, 8, 16) | (16, 8, 16 | 32)) && (i.d, i.c) == (S32, S32),
        (S4 | U4, S4 | U4) => matches!(shape, (8, 8, 32) | (16, 8, 32 | 64)) && (i.d, i.c) == (S32, S32),
        (B1, B1) => matches!(shape, (8, 8, 128) | (16, 8, 128 | 256)) && (i.d, i.c) == (S32, S32),
        (E4m3 | E5m2, E4m3 | E5m2) => {
            matches!(shape, (16, 8, 16 | 32)) && matches!((i.d, i.c), (F32, F32) | (F16, F16))
        }
        _ => false,
    }
}

/// Bits of an element in its register: tf32 fills one of 32.
fn width(ty: Ty) -> u32 {
    ty.bits().min(64)
}

/// Registers of D, A, B, C.
pub(in super::super) fn registers(i: &MmaInfo) -> [u32; 4] {
    let of = |elements: u32, bits: u32| if bits == 64 { elements / 32 } else { elements * bits / 32 / 32 };
    [of(i.m * i.n, width(i.d)), of(i.m * i.k, width(i.a)), of(i.k * i.n, width(i.b)), of(i.m * i.n, width(i.c))]
}

fn format(ty: Ty) -> Option<Format> {
    Some(match ty {
        Ty::F16 => F16,
        Ty::Bf16 => BF16,
        Ty::Tf32 => TF32,
        Ty::E4m3 => E4M3,
        Ty::E5m2 => E5M2,
        Ty::F32 => F32,
        _ => return None,
    })
}

/// An element of a fragment: its row or column, and its place along K.
fn place_a(lane: usize, register: usize, element: usize, per: usize, two_rows: bool) -> (usize, usize) {
    if two_rows {
        (lane / 4 + 8 * (register % 2), per * (lane % 4) + element + 4 * per * (register / 2))
    } else {
        (lane / 4, per * (lane % 4) + element + 4 * per * register)
    }
}

/// Registers of a fragment, lane by lane.
///
/// # Safety
/// The rows are those of the warp.
unsafe fn fragment(r: Rows, rows: &[u32], wide: bool) -> Vec<[u64; 32]> {
    rows.iter()
        // SAFETY: the caller says so.
        .map(|row| unsafe {
            if wide { *r.lanes::<[u64; 32]>(*row) } else { (*r.lanes::<[u32; 32]>(*row)).map(u64::from) }
        })
        .collect()
}

/// # Safety
/// The operands are those of the warp.
pub(super) unsafe fn mma(g: &Grid<'_>, r: Rows, inst: &Inst, mask: u32) {
    let info = &g.code.mmas[inst.x as usize];
    let counts = registers(info).map(|n| n as usize);
    let list = &g.code.list[inst.list as usize..(inst.list + u32::from(inst.len)) as usize];
    let (d, rest) = list.split_at(counts[0]);
    let (a, rest) = rest.split_at(counts[1]);
    let (b, c) = rest.split_at(counts[2]);
    // SAFETY: the caller says so.
    let (fa, fb, fc) = unsafe {
        (fragment(r, a, info.a == Ty::F64), fragment(r, b, info.b == Ty::F64), fragment(r, c, info.c == Ty::F64))
    };
    let (m, n, k) = (info.m as usize, info.n as usize, info.k as usize);
    let per = (32 / width(info.a)).max(1) as usize;
    let mut ma = vec![0_u64; m * k];
    let mut mb = vec![0_u64; k * n];
    let bits = width(info.a);
    let keep = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    for (i, register) in fa.iter().enumerate() {
        for (lane, value) in register.iter().enumerate() {
            for e in 0..per {
                let (row, column) = place_a(lane, i, e, per, m == 16);
                ma[row * k + column] = value >> (bits as usize * e) & keep;
            }
        }
    }
    for (i, register) in fb.iter().enumerate() {
        for (lane, value) in register.iter().enumerate() {
            for e in 0..per {
                let (column, row) = place_a(lane, i, e, per, false);
                mb[row * n + column] = value >> (bits as usize * e) & keep;
            }
        }
    }
    // C and D: two elements of 32 bits, or a pair of halves, a register.
    let halves = info.c == Ty::F16;
    let place_c = |lane: usize, register: usize, element: usize| {
        let (row, column) = if halves { (register, element) } else { (register / 2, register % 2) };
        (lane / 4 + 8 * row, 2 * (lane % 4) + column)
    };
    let each = if halves { 2 } else { 1 };
    let mut mc = vec![0_u64; m * n];
    for (i, register) in fc.iter().enumerate() {
        for (lane, value) in register.iter().enumerate() {
            for e in 0..each {
                let (row, column) = place_c(lane, i, e);
                mc[row * n + column] = if halves { value >> (16 * e) & 0xffff } else { *value };
            }
        }
    }
    multiply(g, info, &ma, &mb, &mut mc);
    for (i, row) in d.iter().enumerate() {
        let value = |lane: usize| {
            (0..each).fold(0, |v, e| {
                let (row, column) = place_c(lane, i, e);
                v | mc[row * n + column] << (16 * e)
            })
        };
        // SAFETY: the caller says so.
        unsafe {
            if *row == crate::exec::ptx::code::NONE {
            } else if info.d == Ty::F64 {
                store(r.lanes(*row), &core::array::from_fn::<u64, 32, _>(value), mask);
            } else {
                store(r.lanes(*row), &core::array::from_fn::<u32, 32, _>(|l| value(l) as u32), mask);
            }
        }
    }
}

/// c = a b + c, row-major.
fn multiply(g: &Grid<'_>, info: &MmaInfo, a: &[u64], b: &[u64], c: &mut [u64]) {
    let (m, n, k) = (info.m as usize, info.n as usize, info.k as usize);
    match info.a {
        Ty::F64 => {
            for i in 0..m {
                for j in 0..n {
                    let mut sum = f64::from_bits(c[i * n + j]);
                    for x in 0..k {
                        sum = f64::from_bits(a[i * k + x]).mul_add(f64::from_bits(b[x * n + j]), sum);
                    }
                    c[i * n + j] = if sum.is_nan() { 0xfff8_0000_0000_0000 } else { sum.to_bits() };
                }
            }
        }
        Ty::S8 | Ty::U8 | Ty::S4 | Ty::U4 | Ty::B1 => integers(info, a, b, c),
        _ if g.exact_mma => exact(info, a, b, c),
        _ => fast(info, a, b, c),
    }
}

fn integers(info: &MmaInfo, a: &[u64], b: &[u64], c: &mut [u64]) {
    let (m, n, k) = (info.m as usize, info.n as usize, info.k as usize);
    let value = |v: u64, ty: Ty| match ty {
        Ty::S8 => i64::from(v as i8),
        Ty::S4 => i64::from((v << 4) as i8 >> 4),
        _ => v as i64,
    };
    for i in 0..m {
        for j in 0..n {
            let mut sum = i64::from(c[i * n + j] as u32 as i32);
            for x in 0..k {
                let (p, q) = (a[i * k + x], b[x * n + j]);
                sum += match info.a {
                    Ty::B1 => (if info.is_and { p & q } else { p ^ q } & 1) as i64,
                    _ => value(p, info.a) * value(q, info.b),
                };
            }
            let sum = if info.saturate { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { sum };
            c[i * n + j] = u64::from(sum as u32);
        }
    }
}

/// Sums in f32, a fused product at a time: within gamma(K + 1) of the exact sum, as the tensor cores are.
fn fast(info: &MmaInfo, a: &[u64], b: &[u64], c: &mut [u64]) {
    let (m, n, k) = (info.m as usize, info.n as usize, info.k as usize);
    let of = |ty: Ty, v: u64| -> f32 {
        match ty {
            Ty::F16 => half::f16::from_bits(v as u16).to_f32(),
            Ty::Bf16 => f32::from_bits((v as u32) << 16),
            // The chip reads the upper 19 bits of the register.
            Ty::Tf32 => f32::from_bits(v as u32 & 0xffff_e000),
            Ty::E4m3 => E4M3.to_f64(v) as f32,
            _ => E5M2.to_f64(v) as f32,
        }
    };
    let a: Vec<f32> = a.iter().map(|v| of(info.a, *v)).collect();
    let b: Vec<f32> = b.iter().map(|v| of(info.b, *v)).collect();
    let halves = info.c == Ty::F16;
    for i in 0..m {
        let mut sum = [0.0_f32; 8];
        for (j, s) in sum.iter_mut().enumerate() {
            let v = c[i * n + j];
            *s = if halves { half::f16::from_bits(v as u16).to_f32() } else { f32::from_bits(v as u32) };
        }
        for x in 0..k {
            let p = a[i * k + x];
            let row = &b[x * n..x * n + 8];
            for (s, q) in sum.iter_mut().zip(row) {
                *s += p * q;
            }
        }
        for (j, s) in sum.iter().enumerate() {
            c[i * n + j] = if halves {
                F16.from_f64(f64::from(*s), 0, false)
            } else if s.is_nan() {
                0x7fff_ffff
            } else {
                u64::from(s.to_bits())
            };
        }
    }
}

/// How a chip adds: products at a time, and bits of fraction below the largest exponent of a sum.
#[derive(Clone, Copy, Debug)]
struct Adder {
    terms: usize,
    fraction: i32,
}

/// As the tensor cores of the H200 add: all products of a step and the accumulator are aligned to the largest of their exponents,
/// cut to 25 bits below it, added exactly, and the sum is cut to f32.
fn adder(ty: Ty) -> Adder {
    match ty {
        Ty::Tf32 => Adder { terms: 8, fraction: 25 },
        _ => Adder { terms: 16, fraction: 25 },
    }
}

fn exact(info: &MmaInfo, a: &[u64], b: &[u64], c: &mut [u64]) {
    let (m, n, k) = (info.m as usize, info.n as usize, info.k as usize);
    let (Some(fa), Some(fb)) = (format(info.a), format(info.b)) else { return };
    let adder = adder(info.a);
    // `mma` has no 8-bit floats on Hopper chips: ptxas makes f16 of them, 16 at a time.
    let eight = info.a.bits() == 8;
    let cut = |v: u64, f: Format| match info.a {
        Ty::Tf32 => v >> 13,
        _ if eight => F16.from_f64(f.to_f64(v), 0, false),
        _ => v,
    };
    let (ga, gb) = if eight { (F16, F16) } else { (fa, fb) };
    let fc = if info.c == Ty::F16 { F16 } else { F32 };
    for i in 0..m {
        for j in 0..n {
            // 8-bit products are summed on their own, and added to C at the end.
            let mut sum = if eight { 0 } else { c[i * n + j] };
            let mut format = if eight { F32 } else { fc };
            for start in (0..k).step_by(adder.terms) {
                let end = (start + adder.terms).min(k);
                // Of each four 8-bit values, the lower two are in the first step.
                let at = |x: usize| if eight && k == 32 { x % 16 / 2 * 4 + x % 2 + x / 16 * 2 } else { x };
                let pair = |x: usize| (cut(a[i * k + at(x)], fa), cut(b[at(x) * n + j], fb));
                sum = dot(adder, ga, gb, format, sum, (start..end).map(pair));
                // Between the steps the sum is f32.
                format = F32;
            }
            if eight {
                let old = F32.from_f64(fc.to_f64(c[i * n + j]), 0, false);
                sum = crate::exec::ptx::num::float::f32::add(sum, old, 0, 0);
            }
            c[i * n + j] = if info.d == Ty::F16 { F16.from_f64(F32.to_f64(sum), 0, false) } else { sum };
        }
    }
}

/// One step: the bits of an f32.
fn dot(adder: Adder, fa: Format, fb: Format, fc: Format, c: u64, pairs: impl Iterator<Item = (u64, u64)>) -> u64 {
    // NaN and infinity go as in any sum.
    let mut special = fc.to_f64(c);
    let mut is_special = !special.is_finite();
    let mut terms: Vec<(bool, u64, i32)> = Vec::with_capacity(adder.terms + 1);
    for (p, q) in pairs {
        let (x, y) = (fa.to_f64(p), fb.to_f64(q));
        if !x.is_finite() || !y.is_finite() {
            special = if is_special { special + x * y } else { x * y };
            is_special = true;
            continue;
        }
        let (sx, mx, ex) = fa.unpack(p);
        let (sy, my, ey) = fb.unpack(q);
        // The exponent of a product is the sum of its factors' exponents, whether it carries or not.
        let top = (ex + fa.precision as i32 - 1) + (ey + fb.precision as i32 - 1);
        if mx != 0 && my != 0 {
            let shift = (fa.precision + fb.precision - 2) as i32;
            debug_assert_eq!(top - shift, ex + ey);
            terms.push((sx != sy, mx * my, top));
        }
    }
    if is_special {
        return if special.is_nan() { F32.nan } else { F32.from_f64(special, 0, false) };
    }
    let product_bits = (fa.precision + fb.precision - 2) as i32;
    let (sc, mc, ec) = fc.unpack(c);
    let c_top = ec + fc.precision as i32 - 1;
    let largest = terms.iter().map(|t| t.2).chain((mc != 0).then_some(c_top)).max();
    let Some(largest) = largest else { return 0 };
    let align = |m: u64, top: i32, bits: i32| -> i128 {
        let shift = adder.fraction - bits - (largest - top);
        if shift >= 0 { i128::from(m) << shift } else { i128::from(m.checked_shr((-shift) as u32).unwrap_or(0)) }
    };
    let mut sum: i128 = 0;
    for (negative, m, top) in terms {
        let v = align(m, top, product_bits);
        sum += if negative { -v } else { v };
    }
    if mc != 0 {
        let v = align(mc, c_top, fc.precision as i32 - 1);
        sum += if sc { -v } else { v };
    }
    F32.round(sum < 0, sum.unsigned_abs(), largest - adder.fraction, crate::exec::ptx::num::RZ, false)
}

/// `movmatrix.trans`: 8 x 8 halves, lane l holds columns 2(l%4) and the next of row l/4.
///
/// # Safety
/// The operands are those of the warp.
pub(super) unsafe fn transpose(r: Rows, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        let from = *r.lanes::<[u32; 32]>(inst.a);
        let element = |row: usize, column: usize| from[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
        let out: [u32; 32] = core::array::from_fn(|l| {
            let (i, j) = (l / 4, 2 * (l % 4));
            element(j, i) | element(j + 1, i) << 16
        });
        store(r.lanes(inst.d), &out, mask);
    }
}
