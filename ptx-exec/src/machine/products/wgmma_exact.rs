//! The sums of `wgmma` bit by bit, as far as a model of the chip is known: eight columns at a time.

use super::sums::{Adder, Side, add};
use super::tensor::{COLUMN, accumulators, results};
use super::wgmma_sums::{Factors, element};
use crate::code_async::WgmmaInfo;
use crate::machine::threads::run::compiled;
use crate::machine::vectors::vector::Rows;
use crate::num::format::{BF16, E4M3, E5M2, F16, Format, TF32};
use crate::types::Ty;

/// # Safety
/// The registers are those of the warp; with `V3` the processor has AVX2.
pub(crate) unsafe fn run<const V3: bool>(info: &WgmmaInfo, r: Rows, d: &[u32], f: &Factors, adds: bool, adder: Adder) {
    // SAFETY: the caller says so.
    unsafe {
        match info.a.bits() {
            8 => columns::<1, 32, V3>(info, r, d, f, adds, adder),
            16 => columns::<2, 16, V3>(info, r, d, f, adds, adder),
            _ => columns::<4, 8, V3>(info, r, d, f, adds, adder),
        }
    }
}

fn format(ty: Ty) -> Format {
    match ty {
        Ty::Bf16 => BF16,
        Ty::Tf32 => TF32,
        Ty::E4m3 => E4M3,
        Ty::E5m2 => E5M2,
        _ => F16,
    }
}

compiled!(
    columns,
    columns_v3,
    eight_columns,
    [const BYTES: usize, const K: usize],
    [BYTES, K],
    (info: &WgmmaInfo, r: Rows, d: &[u32], f: &Factors, adds: bool, adder: Adder)
);

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
    let a = Side::new(format(info.a), a);
    let halves = info.d == Ty::F16;
    for (columns, registers) in f.b.chunks_exact(8).zip(d.chunks_exact(if halves { 2 } else { 4 })) {
        let mut b = [[0_u32; 8]; K];
        for (j, column) in COLUMN.into_iter().enumerate() {
            for (x, to) in b.iter_mut().enumerate() {
                to[j] = element::<BYTES>(&columns[column], x) >> down;
            }
        }
        let b = Side::new(format(info.b), b);
        // SAFETY: the caller says so.
        let mut c = if adds { unsafe { accumulators(r, registers, halves) } } else { [[0; 8]; 16] };
        add::<K, V3>(adder, &a, &b, halves, &mut c);
        // SAFETY: as above.
        unsafe { results(r, registers, halves, &c, u32::MAX) };
    }
}
