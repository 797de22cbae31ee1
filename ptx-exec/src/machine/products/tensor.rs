//! Products of 16 x 8 floats: `mma` of f16, bf16, tf32 and 8-bit floats, eight columns at a time.
//!
//! A register of A holds 8 rows of the matrix one after the other, a register of B 8 columns. Columns of C lie in the order of its
//! registers: the even ones, then the odd ones.

use std::sync::OnceLock;

use super::sums::{self, Adder, Side};
use super::tensor_formats::{brain, e4m3, e5m2, half, tf32, to_half};
#[cfg(target_arch = "x86_64")]
use super::tensor_v3;
use crate::code::MmaInfo;
use crate::machine::threads::run::compiled;
use crate::machine::vectors::vector::{Rows, store};
use crate::num::format::{BF16, E4M3, E5M2, F16, Format, TF32};
use crate::types::Ty;

pub(crate) const COLUMN: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

/// The registers of an instruction.
pub(crate) struct Registers<'a> {
    pub(crate) d: &'a [u32],
    pub(crate) a: &'a [u32],
    pub(crate) b: &'a [u32],
    pub(crate) c: &'a [u32],
}

/// An instruction on a warp's registers, as many as the shape has.
pub(crate) struct Product<'a> {
    pub(crate) info: &'a MmaInfo,
    pub(crate) r: Rows,
    pub(crate) of: Registers<'a>,
    pub(crate) mask: u32,
}

/// Aligns a value to a cache line, so that no vector in it crosses a line.
#[repr(align(64))]
struct CacheAligned<T>(T);

/// Runs one instruction.
///
/// # Safety
/// The registers are registers of the warp, in the number of the shape. With `V3` the processor has AVX2.
pub(crate) unsafe fn run<const V3: bool>(p: &Product<'_>, adder: Option<Adder>) {
    let (a, k) = (p.info.a, p.info.k);
    // SAFETY: the caller says so.
    unsafe {
        // Sums of integers are exact on every chip.
        match adder.filter(|_| !matches!(a, Ty::S8 | Ty::U8)) {
            Some(adder) => match (a, k) {
                (Ty::E4m3 | Ty::E5m2, 16) => exact::<u8, 4, 16, V3>(p, adder),
                (Ty::E4m3 | Ty::E5m2, _) => exact::<u8, 4, 32, V3>(p, adder),
                (Ty::Tf32, 4) => exact::<u32, 1, 4, V3>(p, adder),
                (Ty::Tf32, _) => exact::<u32, 1, 8, V3>(p, adder),
                (_, 8) => exact::<u16, 2, 8, V3>(p, adder),
                _ => exact::<u16, 2, 16, V3>(p, adder),
            },
            None => match (a, k) {
                (Ty::S8 | Ty::U8, 16) => of_integers::<16, V3>(p),
                (Ty::S8 | Ty::U8, _) => of_integers::<32, V3>(p),
                (Ty::E4m3 | Ty::E5m2, 16) => of_eighths::<16, V3>(p),
                (Ty::E4m3 | Ty::E5m2, _) => of_eighths::<32, V3>(p),
                (Ty::Tf32, 4) => fast::<u32, 1, 4, V3>(p, tf32, tf32),
                (Ty::Tf32, _) => fast::<u32, 1, 8, V3>(p, tf32, tf32),
                (Ty::Bf16, 8) => of_halves::<8, true, V3>(p),
                (Ty::Bf16, _) => of_halves::<16, true, V3>(p),
                (_, 8) => of_halves::<8, false, V3>(p),
                _ => of_halves::<16, false, V3>(p),
            },
        }
    }
}

/// # Safety
/// As for [`run`].
unsafe fn of_eighths<const K: usize, const V3: bool>(p: &Product<'_>) {
    // SAFETY: the caller says so.
    unsafe {
        match (p.info.a, p.info.b) {
            (Ty::E4m3, Ty::E4m3) => fast::<u8, 4, K, V3>(p, e4m3, e4m3),
            (Ty::E4m3, _) => fast::<u8, 4, K, V3>(p, e4m3, e5m2),
            (_, Ty::E4m3) => fast::<u8, 4, K, V3>(p, e5m2, e4m3),
            _ => fast::<u8, 4, K, V3>(p, e5m2, e5m2),
        }
    }
}

/// # Safety
/// As for [`run`].
unsafe fn of_halves<const K: usize, const BRAIN: bool, const V3: bool>(p: &Product<'_>) {
    // SAFETY: the caller says so.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if V3 {
            return of_halves_v3::<K, BRAIN>(p);
        }
        if BRAIN { fast::<u16, 2, K, false>(p, brain, brain) } else { fast::<u16, 2, K, false>(p, half, half) }
    }
}

/// # Safety
/// As for [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn of_halves_v3<const K: usize, const BRAIN: bool>(p: &Product<'_>) {
    let Product { info, r, of, mask } = p;
    let halves = info.c == Ty::F16;
    // SAFETY: the caller says so.
    unsafe {
        let mut c = CacheAligned(accumulators(*r, of.c, halves));
        let a = CacheAligned(tensor_v3::rows::<K, 16, BRAIN>(*r, of.a));
        let b = CacheAligned(tensor_v3::rows::<K, 8, BRAIN>(*r, of.b));
        let b = CacheAligned(turned::<K, true>(&b.0));
        multiply(&a.0, &b.0, &mut c.0, halves);
        results(*r, of.d, halves, &c.0, *mask);
    }
}

compiled!(
    fast,
    fast_v3,
    fast_loops,
    [T: Copy + Into<u32>, const PER: usize, const K: usize],
    [T, PER, K],
    (p: &Product<'_>, of_a: impl Fn(u32) -> f32, of_b: impl Fn(u32) -> f32)
);

/// One shape, its sums in f32: elements of `T`, `PER` in a register, `K` in a row of A.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn fast_loops<T: Copy + Into<u32>, const PER: usize, const K: usize, const V3: bool>(
    p: &Product<'_>,
    of_a: impl Fn(u32) -> f32,
    of_b: impl Fn(u32) -> f32,
) {
    let Product { info, r, of, mask } = p;
    let halves = info.c == Ty::F16;
    // SAFETY: the caller says so.
    unsafe {
        let mut c = CacheAligned(accumulators(*r, of.c, halves));
        let a = CacheAligned(rows::<T, f32, PER, K, 16>(*r, of.a, of_a));
        let b = CacheAligned(rows::<T, f32, PER, K, 8>(*r, of.b, of_b));
        let b = CacheAligned(turned::<K, V3>(&b.0));
        multiply(&a.0, &b.0, &mut c.0, halves);
        results(*r, of.d, halves, &c.0, *mask);
    }
}

compiled!(
    exact,
    exact_v3,
    exact_loops,
    [T: Copy + Into<u32>, const PER: usize, const K: usize],
    [T, PER, K],
    (p: &Product<'_>, adder: Adder)
);

/// One shape, its sums as a chip makes them.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn exact_loops<T: Copy + Into<u32>, const PER: usize, const K: usize, const V3: bool>(
    p: &Product<'_>,
    adder: Adder,
) {
    let Product { info, r, of, mask } = p;
    let halves = info.c == Ty::F16;
    // SAFETY: the caller says so.
    unsafe {
        let mut c = accumulators(*r, of.c, halves);
        let a = rows::<T, u32, PER, K, 16>(*r, of.a, raw(info.a));
        let b = columns::<T, u32, PER, K>(*r, of.b, raw(info.b));
        add_exactly::<K, V3>(info, adder, a, b, &mut c);
        results(*r, of.d, halves, &c, *mask);
    }
}

/// Elements of the registers of A or B by rows: each register holds 8 rows, one after the other; of 16 rows the lower 8 are in the
/// next register.
///
/// # Safety
/// The registers are those of the warp.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
unsafe fn rows<T: Copy + Into<u32>, V: Copy + Default, const PER: usize, const K: usize, const ROWS: usize>(
    r: Rows,
    registers: &[u32],
    f: impl Fn(u32) -> V,
) -> [[V; K]; ROWS] {
    let mut out = [[V::default(); K]; ROWS];
    for i in 0..K * ROWS / (32 * PER) {
        let (first, column) = (8 * (i % (ROWS / 8)), i / (ROWS / 8) * 4 * PER);
        // SAFETY: the caller says so; a register has 32 words, which are 8 rows of 4 * PER elements.
        let from: *const T = unsafe { r.lanes(registers[i]) };
        for g in 0..8 {
            for e in 0..4 * PER {
                // SAFETY: as above.
                out[first + g][column + e] = f(unsafe { *from.add(4 * PER * g + e) }.into());
            }
        }
    }
    out
}

/// Elements of B by rows, their columns in the order of the sums.
///
/// # Safety
/// The registers are those of the warp.
#[inline(always)]
unsafe fn columns<T: Copy + Into<u32>, V: Copy + Default, const PER: usize, const K: usize>(
    r: Rows,
    registers: &[u32],
    f: impl Fn(u32) -> V,
) -> [[V; 8]; K] {
    // SAFETY: the caller says so.
    let columns = unsafe { rows::<T, V, PER, K, 8>(r, registers, f) };
    in_order(&columns)
}

/// Rows of columns, in the order of the sums.
#[inline(always)]
fn in_order<V: Copy + Default, const K: usize>(columns: &[[V; K]; 8]) -> [[V; 8]; K] {
    let mut out = [[V::default(); 8]; K];
    for (x, row) in out.iter_mut().enumerate() {
        for (j, v) in row.iter_mut().enumerate() {
            *v = columns[COLUMN[j]][x];
        }
    }
    out
}

/// The same of f32; with `V3` the processor has AVX2.
#[inline(always)]
fn turned<const K: usize, const V3: bool>(columns: &[[f32; K]; 8]) -> [[f32; 8]; K] {
    #[cfg(target_arch = "x86_64")]
    if V3 && K.is_multiple_of(8) {
        // SAFETY: the processor has the features: the caller says so by `V3`.
        return unsafe { tensor_v3::turned(columns) };
    }
    in_order(columns)
}

/// # Safety
/// The registers are those of the warp.
#[inline(always)]
pub(crate) unsafe fn accumulators(r: Rows, registers: &[u32], halves: bool) -> [[u32; 8]; 16] {
    let mut c = [[0; 8]; 16];
    for (i, register) in registers.iter().enumerate().take(4) {
        // SAFETY: the caller says so.
        let words = unsafe { &*r.lanes::<[[u32; 4]; 8]>(*register) };
        for (g, words) in words.iter().enumerate() {
            if halves {
                let row = &mut c[g + 8 * (i % 2)];
                row[..4].copy_from_slice(&words.map(|w| w & 0xffff));
                row[4..].copy_from_slice(&words.map(|w| w >> 16));
            } else {
                c[g + 8 * (i / 2)][i % 2 * 4..][..4].copy_from_slice(words);
            }
        }
    }
    c
}

/// # Safety
/// The registers are those of the warp.
#[inline(always)]
pub(crate) unsafe fn results(r: Rows, registers: &[u32], halves: bool, c: &[[u32; 8]; 16], mask: u32) {
    for (i, register) in registers.iter().enumerate().take(4) {
        let mut out = [0; 32];
        for (g, words) in out.chunks_exact_mut(4).enumerate() {
            if halves {
                let row = &c[g + 8 * (i % 2)];
                for (t, word) in words.iter_mut().enumerate() {
                    *word = row[t] | row[4 + t] << 16;
                }
            } else {
                words.copy_from_slice(&c[g + 8 * (i / 2)][i % 2 * 4..][..4]);
            }
        }
        // SAFETY: the caller says so.
        unsafe { store(r.lanes(*register), &out, mask) };
    }
}

/// Sums in f32, a product at a time: within gamma(K + 1) of the exact sum, as the tensor cores are.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
fn multiply<const K: usize>(a: &[[f32; K]; 16], b: &[[f32; 8]; K], c: &mut [[u32; 8]; 16], halves: bool) {
    // Eight rows at a time: their sums stay in registers.
    for first in [0, 8] {
        let mut sum = [[0.0_f32; 8]; 8];
        for i in 0..8 {
            for j in 0..8 {
                let c = c[first + i][j];
                sum[i][j] = if halves { half(c) } else { f32::from_bits(c) };
            }
        }
        for x in 0..K {
            for i in 0..8 {
                let p = a[first + i][x];
                for j in 0..8 {
                    sum[i][j] += p * b[x][j];
                }
            }
        }
        for i in 0..8 {
            for j in 0..8 {
                let sum = sum[i][j];
                let bits = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
                c[first + i][j] = if halves { to_half(sum) } else { bits };
            }
        }
    }
}

compiled!(of_integers, of_integers_v3, integer_loops, [const K: usize], [K], (p: &Product<'_>));

/// Products of 8-bit integers.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
unsafe fn integer_loops<const K: usize, const V3: bool>(p: &Product<'_>) {
    let Product { info, r, of, mask } = p;
    // Signed ones from their sign on.
    let of_type = |ty: Ty| {
        let sign = if ty == Ty::S8 { 0x80 } else { 0 };
        move |v: u32| (v ^ sign).wrapping_sub(sign) as i32
    };
    // SAFETY: the caller says so.
    unsafe {
        let a = CacheAligned(rows::<u8, i32, 4, K, 16>(*r, of.a, of_type(info.a)));
        let b = CacheAligned(columns::<u8, i32, 4, K>(*r, of.b, of_type(info.b)));
        let mut c = CacheAligned(accumulators(*r, of.c, false));
        let (a, b, c) = (&a.0, &b.0, &mut c.0);
        for i in 0..16 {
            // They fit: 32 products of 16 bits.
            let mut sum = [0_i32; 8];
            for x in 0..K {
                for j in 0..8 {
                    sum[j] += a[i][x] * b[x][j];
                }
            }
            for j in 0..8 {
                let old = c[i][j] as i32;
                let new = if info.saturate { old.saturating_add(sum[j]) } else { old.wrapping_add(sum[j]) };
                c[i][j] = new as u32;
            }
        }
        results(*r, of.d, false, c, *mask);
    }
}

/// The f16 of each e4m3, and of each e5m2: all are numbers of f16.
fn eighths(ty: Ty) -> &'static [u16; 256] {
    static TABLES: OnceLock<[[u16; 256]; 2]> = OnceLock::new();
    let of = |f: Format| core::array::from_fn(|v| F16.from_f64(f.to_f64(v as u64), 0, false) as u16);
    &TABLES.get_or_init(|| [of(E4M3), of(E5M2)])[usize::from(ty == Ty::E5m2)]
}

/// Elements for the adder: 8-bit floats as f16, and tf32 without the bits that the chip ignores.
#[inline(always)]
fn raw(ty: Ty) -> impl Fn(u32) -> u32 {
    let table = if ty.bits() == 8 { Some(eighths(ty)) } else { None };
    let cut = if ty == Ty::Tf32 { 13 } else { 0 };
    move |v| table.map_or(v >> cut, |table| u32::from(table[v as usize & 0xff]))
}

/// Adds as a chip does.
#[inline(always)]
fn add_exactly<const K: usize, const V3: bool>(
    info: &MmaInfo,
    adder: Adder,
    a: [[u32; K]; 16],
    b: [[u32; 8]; K],
    c: &mut [[u32; 8]; 16],
) {
    let halves = info.c == Ty::F16;
    if info.a.bits() == 8 {
        // `mma` has no 8-bit floats on Hopper chips: ptxas converts them to f16, 16 at a time. The lower two of each four 8-bit values
        // are in the first step.
        let at = |x: usize| if K == 32 { x % 16 / 2 * 4 + x % 2 + x / 16 * 2 } else { x };
        let b: [[u32; 8]; K] = core::array::from_fn(|x| b[at(x)]);
        let a = a.map(|row| core::array::from_fn(|x| row[at(x)]));
        let mut sum = [[0; 8]; 16];
        sums::add::<K, V3>(adder, &Side::new(F16, a), &Side::new(F16, b), false, &mut sum);
        // They are summed on their own, and added to C at the end.
        for (c, sum) in c.iter_mut().flatten().zip(sum.iter().flatten()) {
            let sum = f32::from_bits(*sum) + if halves { half(*c) } else { f32::from_bits(*c) };
            let bits = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
            *c = if halves { to_half(sum) } else { bits };
        }
        return;
    }
    let format = match info.a {
        Ty::Bf16 => BF16,
        Ty::Tf32 => TF32,
        _ => F16,
    };
    sums::add::<K, V3>(adder, &Side::new(format, a), &Side::new(format, b), halves, c);
}
