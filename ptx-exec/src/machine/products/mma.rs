//! `mma.sync`: converts fragments to matrices, multiplies, and converts the result to fragments.
//!
//! Fragments follow the figures of PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions". With e elements in a register r:
//!
//! | matrix | rows | columns |
//! |---|---|---|
//! | A | lane/4 + 8 (r%2) | e elements from e (lane%4) + 4 e (r/2) |
//! | B | e elements from e (lane%4) + 4 e r | lane/4 |
//! | C, D | lane/4, and 8 below | 2 elements from 2 (lane%4) |

use super::tensor;
use super::tensor::{Product, Registers};
use crate::code::{Inst, MmaInfo};
use crate::machine::Grid;
use crate::machine::vectors::vector::{Rows, store};
use crate::num::float;
use crate::types::Ty;

/// Whether the shape exists with these types.
pub(crate) fn is_known(i: &MmaInfo) -> bool {
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
pub(crate) fn registers(i: &MmaInfo) -> [u32; 4] {
    let of = |elements: u32, bits: u32| if bits == 64 { elements / 32 } else { elements * bits / 32 / 32 };
    [of(i.m * i.n, width(i.d)), of(i.m * i.k, width(i.a)), of(i.k * i.n, width(i.b)), of(i.m * i.n, width(i.c))]
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
/// The operands are those of the warp; with `V3` the processor has AVX2.
pub(crate) unsafe fn mma<const V3: bool>(g: &Grid<'_>, r: Rows, inst: &Inst, mask: u32) {
    let info = &g.code.mmas[inst.x as usize];
    let counts = registers(info).map(|n| n as usize);
    let list = g.code.listed(inst);
    let (d, rest) = list.split_at(counts[0]);
    let (a, rest) = rest.split_at(counts[1]);
    let (b, c) = rest.split_at(counts[2]);
    if matches!(info.a, Ty::F16 | Ty::Bf16 | Ty::Tf32 | Ty::E4m3 | Ty::E5m2)
        || info.m == 16 && matches!(info.a, Ty::S8 | Ty::U8)
    {
        let product = Product { info, r, of: Registers { d, a, b, c }, mask };
        // SAFETY: the caller says so.
        return unsafe { tensor::run::<V3>(&product, g.adder) };
    }
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
    multiply(info, &ma, &mb, &mut mc);
    for (i, row) in d.iter().enumerate() {
        let value = |lane: usize| {
            (0..each).fold(0, |v, e| {
                let (row, column) = place_c(lane, i, e);
                v | mc[row * n + column] << (16 * e)
            })
        };
        // SAFETY: the caller says so.
        unsafe {
            if info.d == Ty::F64 {
                store(r.lanes(*row), &core::array::from_fn::<u64, 32, _>(value), mask);
            } else {
                store(r.lanes(*row), &core::array::from_fn::<u32, 32, _>(|l| value(l) as u32), mask);
            }
        }
    }
}

/// c = a b + c, row-major.
fn multiply(info: &MmaInfo, a: &[u64], b: &[u64], c: &mut [u64]) {
    let (m, n, k) = (info.m as usize, info.n as usize, info.k as usize);
    match info.a {
        Ty::F64 => {
            for i in 0..m {
                for j in 0..n {
                    let mut sum = f64::from_bits(c[i * n + j]);
                    for x in 0..k {
                        let fma = float::f64::fma(a[i * k + x], b[x * n + j], sum.to_bits(), info.round);
                        sum = f64::from_bits(fma);
                    }
                    c[i * n + j] = if sum.is_nan() { 0xfff8_0000_0000_0000 } else { sum.to_bits() };
                }
            }
        }
        Ty::S8 | Ty::U8 | Ty::S4 | Ty::U4 | Ty::B1 => integers(info, a, b, c),
        _ => debug_assert!(false, "products of floats are those of `tensor`"),
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
