//! The sums of `wgmma`: 16 rows of a warp, as its registers hold them.
//!
//! Of each group of eight columns, a register holds the even or the odd ones of eight rows: lane l has row l/4 and column 2 (l%4), or
//! the one after it. Vectors of eight lanes have two rows of four columns; A and B are laid out as these vectors first.

use super::sums::Adder;
use super::tensor::{brain, e4m3, e5m2, half, tf32, to_half};
use super::vector::Rows;
use super::wgmma::Matrix;
use super::wgmma_exact;
use crate::exec::ptx::code_async::WgmmaInfo;
use crate::exec::ptx::types::Ty;

/// The most columns of B.
pub(super) const MOST_N: usize = 256;

/// Rows of A and columns of B as they lie in memory: 32 bytes along K each.
pub(super) struct Factors {
    pub(super) a: Vec<[u8; 32]>,
    pub(super) b: Vec<[u8; 32]>,
}

impl Factors {
    pub(super) fn new(n: u32) -> Factors {
        Factors { a: vec![[0; 32]; 16], b: vec![[0; 32]; n as usize] }
    }
}

/// Brings rows of a matrix out of shared memory. All chunks lie in it, which was checked when the product was issued.
pub(super) fn fetch(shared: &[u8], m: &Matrix, first: u64, rows: u64, into: &mut [[u8; 32]]) {
    if !m.is_mn() {
        for (row, into) in (first..first + rows).zip(into) {
            for (at, half) in m.halves(row).into_iter().zip(into.chunks_exact_mut(16)) {
                if let Some(chunk) = shared.get(at as usize..at as usize + 16) {
                    half.copy_from_slice(chunk);
                }
            }
        }
        return;
    }
    for (at, row, part) in m.chunks(first, rows) {
        let Some(chunk) = shared.get(at as usize..at as usize + 16) else { continue };
        let (row, part) = (row as usize, part as usize);
        for (e, pair) in chunk.chunks_exact(2).enumerate() {
            into[8 * row + e][2 * part..2 * part + 2].copy_from_slice(pair);
        }
    }
}

/// The bits of an element of a row.
#[inline(always)]
pub(super) fn element<const BYTES: usize>(row: &[u8; 32], k: usize) -> u32 {
    match BYTES {
        1 => u32::from(row[k]),
        2 => u32::from(u16::from_le_bytes([row[2 * k], row[2 * k + 1]])),
        _ => u32::from_le_bytes([row[4 * k], row[4 * k + 1], row[4 * k + 2], row[4 * k + 3]]),
    }
}

/// D = A B, or D = A B + D.
///
/// # Safety
/// The registers are those of the warp.
#[inline(always)]
pub(super) unsafe fn run<const FMA: bool>(
    info: &WgmmaInfo,
    r: Rows,
    d: &[u32],
    f: &mut Factors,
    adds: bool,
    adder: Option<Adder>,
) {
    if info.negate_a != info.negate_b {
        let size = info.b.bits() as usize / 8;
        for row in &mut f.b {
            row.iter_mut().skip(size - 1).step_by(size).for_each(|byte| *byte ^= 0x80);
        }
    }
    // SAFETY: the caller says so.
    unsafe {
        if info.d == Ty::S32 {
            integers(info, r, d, f, adds);
        } else if let Some(adder) = adder {
            wgmma_exact::run::<FMA>(info, r, d, f, adds, adder);
        } else {
            fast::<FMA>(info, r, d, f, adds);
        }
    }
}

/// Values of all elements, as vectors: of A, by k, two rows of each half; of B, by eight columns, even or odd, and k.
struct Vectors<T, const K: usize> {
    a: [[[T; 8]; 8]; K],
    b: Vec<[[T; 8]; K]>,
}

/// Values of eight rows.
#[inline(always)]
fn values<T: Copy + Default, const BYTES: usize, const K: usize>(
    rows: &[[u8; 32]],
    of: impl Fn(u32) -> T,
) -> [[T; K]; 8] {
    let mut values = [[T::default(); K]; 8];
    for (values, row) in values.iter_mut().zip(rows) {
        for (x, value) in values.iter_mut().enumerate() {
            *value = of(element::<BYTES>(row, x));
        }
    }
    values
}

#[inline(always)]
fn vectors<T: Copy + Default, const BYTES: usize, const K: usize>(
    n: u32,
    f: &Factors,
    of_a: impl Fn(u32) -> T,
    of_b: impl Fn(u32) -> T,
) -> Vectors<T, K> {
    let mut v = Vectors { a: [[[T::default(); 8]; 8]; K], b: Vec::with_capacity(n as usize / 4) };
    for eight in 0..2 {
        let values = values::<T, BYTES, K>(&f.a[8 * eight..8 * eight + 8], &of_a);
        for (x, a) in v.a.iter_mut().enumerate() {
            for pair in 0..4 {
                a[4 * eight + pair] = core::array::from_fn(|l| values[2 * pair + l / 4][x]);
            }
        }
    }
    for rows in f.b[..n as usize].chunks_exact(8) {
        let values = values::<T, BYTES, K>(rows, &of_b);
        for odd in 0..2 {
            let mut b = [[T::default(); 8]; K];
            for (x, b) in b.iter_mut().enumerate() {
                let four: [T; 4] = core::array::from_fn(|t| values[2 * t + odd][x]);
                b[..4].copy_from_slice(&four);
                b[4..].copy_from_slice(&four);
            }
            v.b.push(b);
        }
    }
    v
}

/// The eight vectors of columns of one parity: of four registers' worth, that of the first and that of the second eight rows.
#[inline(always)]
fn rows_of<T: Copy + Default>(upper: &[T; 32], lower: &[T; 32]) -> [[T; 8]; 8] {
    core::array::from_fn(|v| core::array::from_fn(|l| if v < 4 { upper[8 * v + l] } else { lower[8 * (v - 4) + l] }))
}

#[inline(always)]
fn registers_of<T: Copy + Default>(sums: &[[T; 8]; 8]) -> ([T; 32], [T; 32]) {
    let of = |first: usize| core::array::from_fn(|l: usize| sums[first + l / 8][l % 8]);
    (of(0), of(4))
}

/// Sums in f32, a product at a time.
///
/// # Safety
/// The registers are those of the warp.
#[inline(always)]
unsafe fn fast<const FMA: bool>(info: &WgmmaInfo, r: Rows, d: &[u32], f: &Factors, adds: bool) {
    let n = info.n;
    // SAFETY: the caller says so.
    unsafe {
        match info.a {
            Ty::Bf16 => multiply::<16, FMA>(info, r, d, &vectors::<_, 2, 16>(n, f, brain, brain), adds),
            Ty::Tf32 => multiply::<8, FMA>(info, r, d, &vectors::<_, 4, 8>(n, f, tf32, tf32), adds),
            Ty::F16 => multiply::<16, FMA>(info, r, d, &vectors::<_, 2, 16>(n, f, half, half), adds),
            _ => {
                let v = match (info.a, info.b) {
                    (Ty::E4m3, Ty::E4m3) => vectors::<_, 1, 32>(n, f, e4m3, e4m3),
                    (Ty::E4m3, _) => vectors::<_, 1, 32>(n, f, e4m3, e5m2),
                    (_, Ty::E4m3) => vectors::<_, 1, 32>(n, f, e5m2, e4m3),
                    _ => vectors::<_, 1, 32>(n, f, e5m2, e5m2),
                };
                multiply::<32, FMA>(info, r, d, &v, adds);
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
fn add_products<const K: usize, const FMA: bool>(sum: &mut [[f32; 8]; 8], a: &[[[f32; 8]; 8]; K], b: &[[f32; 8]; K]) {
    for x in 0..K {
        for i in 0..8 {
            for l in 0..8 {
                let (p, q) = (a[x][i][l], b[x][l]);
                sum[i][l] = if FMA { p.mul_add(q, sum[i][l]) } else { sum[i][l] + p * q };
            }
        }
    }
}

/// # Safety
/// The registers are those of the warp.
#[inline(always)]
unsafe fn multiply<const K: usize, const FMA: bool>(
    info: &WgmmaInfo,
    r: Rows,
    d: &[u32],
    v: &Vectors<f32, K>,
    adds: bool,
) {
    let canonical = |v: f32| if v.is_nan() { 0x7fff_ffff } else { v.to_bits() };
    // SAFETY: the caller says so.
    unsafe {
        if info.d == Ty::F16 {
            for (columns, registers) in d.chunks_exact(2).enumerate() {
                let [upper, lower] = [registers[0], registers[1]].map(|row| *r.lanes::<[u32; 32]>(row));
                let mut out = [[0_u32; 32]; 2];
                for odd in 0..2 {
                    let of = |words: &[u32; 32]| words.map(|w| half(w >> (16 * odd) & 0xffff));
                    let mut sum = if adds { rows_of(&of(&upper), &of(&lower)) } else { [[0.0; 8]; 8] };
                    add_products::<K, FMA>(&mut sum, &v.a, &v.b[2 * columns + odd]);
                    let (up, low) = registers_of(&sum);
                    for (out, sums) in out.iter_mut().zip([up, low]) {
                        for (word, sum) in out.iter_mut().zip(sums) {
                            *word |= to_half(sum) << (16 * odd);
                        }
                    }
                }
                *r.lanes::<[u32; 32]>(registers[0]) = out[0];
                *r.lanes::<[u32; 32]>(registers[1]) = out[1];
            }
            return;
        }
        for (columns, b) in v.b.iter().enumerate() {
            let (i, odd) = (columns / 2 * 4, columns % 2);
            let (upper, lower) = (r.lanes::<[f32; 32]>(d[i + odd]), r.lanes::<[f32; 32]>(d[i + 2 + odd]));
            let mut sum = if adds { rows_of(&*upper, &*lower) } else { [[0.0; 8]; 8] };
            add_products::<K, FMA>(&mut sum, &v.a, b);
            let (up, low) = registers_of(&sum);
            *upper.cast::<[u32; 32]>() = up.map(canonical);
            *lower.cast::<[u32; 32]>() = low.map(canonical);
        }
    }
}

/// # Safety
/// The registers are those of the warp.
#[inline(always)]
unsafe fn integers(info: &WgmmaInfo, r: Rows, d: &[u32], f: &Factors, adds: bool) {
    let of = |ty: Ty| move |v: u32| if ty == Ty::S8 { i32::from(v as i8) } else { v as i32 };
    let v = vectors::<_, 1, 32>(info.n, f, of(info.a), of(info.b));
    for (columns, b) in v.b.iter().enumerate() {
        let (i, odd) = (columns / 2 * 4, columns % 2);
        let mut sum = [[0_i32; 8]; 8];
        for (a, b) in v.a.iter().zip(b) {
            for (sum, a) in sum.iter_mut().zip(a) {
                for l in 0..8 {
                    sum[l] += a[l] * b[l];
                }
            }
        }
        let (up, low) = registers_of(&sum);
        for (register, sums) in [(d[i + odd], up), (d[i + 2 + odd], low)] {
            // SAFETY: the caller says so.
            let old = unsafe { &mut *r.lanes::<[i32; 32]>(register) };
            for (old, sum) in old.iter_mut().zip(sums) {
                let c = if adds { *old } else { 0 };
                *old = if info.saturate { c.saturating_add(sum) } else { c.wrapping_add(sum) };
            }
        }
    }
}
