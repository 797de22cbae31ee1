//! The sums of `wgmma`: 16 rows of a warp, as its registers hold them.
//!
//! A register holds eight rows of four columns: the even or the odd columns of a group of eight. Lane l has row l/4 and column 2 (l%4),
//! or the next column. A vector of eight lanes has two rows of four columns. A and B are converted to this layout first.

use super::sums::Adder;
use super::tensor_formats::{brain, e4m3, e5m2, half, tf32, to_half};
use super::wgmma::Matrix;
use super::wgmma_exact;
use crate::code_async::WgmmaInfo;
use crate::machine::threads::run::compiled;
use crate::machine::vectors::vector::Rows;
use crate::types::Ty;

/// The most columns of B.
pub(crate) const MOST_N: usize = 256;

/// Rows of A and columns of B as they lie in memory: 32 bytes along K each.
pub(crate) struct Factors {
    pub(crate) a: Vec<[u8; 32]>,
    pub(crate) b: Vec<[u8; 32]>,
}

impl Factors {
    pub(crate) fn new(n: u32) -> Factors {
        Factors { a: vec![[0; 32]; 16], b: vec![[0; 32]; n as usize] }
    }
}

/// Brings rows of a matrix out of shared memory. All chunks lie in it, which was checked when the product was issued.
pub(crate) fn fetch(shared: &[u8], m: &Matrix, first: u64, rows: u64, into: &mut [[u8; 32]]) {
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
pub(crate) fn element<const BYTES: usize>(row: &[u8; 32], k: usize) -> u32 {
    match BYTES {
        1 => u32::from(row[k]),
        2 => u32::from(u16::from_le_bytes([row[2 * k], row[2 * k + 1]])),
        _ => u32::from_le_bytes([row[4 * k], row[4 * k + 1], row[4 * k + 2], row[4 * k + 3]]),
    }
}

/// D = A B, or D = A B + D.
///
/// # Safety
/// The registers are those of the warp; with `V3` the processor has AVX2 and fused multiply-add.
pub(crate) unsafe fn run<const V3: bool>(
    info: &WgmmaInfo,
    r: Rows,
    d: &[u32],
    f: &mut Factors,
    adds: bool,
    adder: Option<Adder>,
    cache: &mut Cache,
) {
    if info.negate_a != info.negate_b {
        let size = info.b.bits() as usize / 8;
        for row in &mut f.b {
            row.iter_mut().skip(size - 1).step_by(size).for_each(|byte| *byte ^= 0x80);
        }
    }
    match adder.filter(|_| info.d != Ty::S32) {
        // SAFETY: the caller says so.
        Some(adder) => unsafe { wgmma_exact::run::<V3>(info, r, d, f, adds, adder) },
        None => {
            // SAFETY: as above.
            unsafe {
                let columns = cache.columns::<V3>(info.b, &f.b);
                with::<V3>(info.a, Fast(Sums { info, r, d, adds, rows: &f.a, columns }));
            }
        }
    }
}

/// Columns of B as the sums take them: by eight, the even and the odd ones, by k.
type Columns = Vec<[f32; 4]>;

/// The columns of the last products: the four warps of a warpgroup multiply by the same.
#[derive(Default)]
pub(crate) struct Cache {
    all: Vec<(Ty, Vec<[u8; 32]>, Columns)>,
    oldest: usize,
}

/// Products that a warp may make before the next one has its turn.
const CACHED: usize = 16;

impl Cache {
    /// # Safety
    /// With `V3` the processor has AVX2.
    unsafe fn columns<const V3: bool>(&mut self, ty: Ty, raw: &[[u8; 32]]) -> &[[f32; 4]] {
        let found = self.all.iter().position(|(t, b, _)| *t == ty && b == raw);
        let index = found.unwrap_or_else(|| {
            if self.all.len() < CACHED {
                self.all.push((ty, Vec::new(), Vec::new()));
                self.oldest = self.all.len() - 1;
            } else {
                self.oldest = (self.oldest + 1) % CACHED;
            }
            let (t, b, columns) = &mut self.all[self.oldest];
            *t = ty;
            b.clear();
            b.extend_from_slice(raw);
            columns.clear();
            // SAFETY: the caller says so.
            unsafe { with::<V3>(ty, Convert { rows: raw, columns }) };
            self.oldest
        });
        &self.all[index].2
    }
}

/// An operation on elements of a type: their bytes, their number along K, and their value, which is exact in f32.
trait ElementTask {
    /// # Safety
    /// With `FMA` the processor has fused multiply-add.
    unsafe fn run<const BYTES: usize, const K: usize, const FMA: bool>(self, of: impl Fn(u32) -> f32);
}

/// # Safety
/// With `V3` the processor has AVX2 and fused multiply-add.
unsafe fn with<const V3: bool>(ty: Ty, f: impl ElementTask) {
    // SAFETY: the caller says so.
    unsafe {
        match ty {
            Ty::F16 => elements::<_, 2, 16, V3>(f, half),
            Ty::Bf16 => elements::<_, 2, 16, V3>(f, brain),
            Ty::Tf32 => elements::<_, 4, 8, V3>(f, tf32),
            Ty::E4m3 => elements::<_, 1, 32, V3>(f, e4m3),
            Ty::E5m2 => elements::<_, 1, 32, V3>(f, e5m2),
            Ty::S8 => elements::<_, 1, 32, V3>(f, |v| f32::from(v as i8)),
            _ => elements::<_, 1, 32, V3>(f, |v| v as f32),
        }
    }
}

compiled!(
    elements,
    elements_v3,
    element_loops,
    [E: ElementTask, const BYTES: usize, const K: usize],
    [E, BYTES, K],
    (f: E, of: impl Fn(u32) -> f32)
);

/// # Safety
/// As for [`ElementTask::run`].
#[inline(always)]
unsafe fn element_loops<E: ElementTask, const BYTES: usize, const K: usize, const FMA: bool>(
    f: E,
    of: impl Fn(u32) -> f32,
) {
    // SAFETY: the caller says so.
    unsafe { f.run::<BYTES, K, FMA>(of) }
}

struct Convert<'a> {
    rows: &'a [[u8; 32]],
    columns: &'a mut Columns,
}

impl ElementTask for Convert<'_> {
    #[inline(always)]
    unsafe fn run<const BYTES: usize, const K: usize, const FMA: bool>(self, of: impl Fn(u32) -> f32) {
        for rows in self.rows.chunks_exact(8) {
            let values = values::<BYTES, K>(rows, &of);
            for odd in 0..2 {
                self.columns.extend((0..K).map(|x| core::array::from_fn::<f32, 4, _>(|t| values[2 * t + odd][x])));
            }
        }
    }
}

/// Values of eight rows.
#[inline(always)]
fn values<const BYTES: usize, const K: usize>(rows: &[[u8; 32]], of: impl Fn(u32) -> f32) -> [[f32; K]; 8] {
    let mut values = [[0.0; K]; 8];
    for (values, row) in values.iter_mut().zip(rows) {
        for (x, value) in values.iter_mut().enumerate() {
            *value = of(element::<BYTES>(row, x));
        }
    }
    values
}

/// A register: eight rows of four columns, as vectors.
type Register<T> = [[T; 8]; 4];

/// The vectors of columns of one parity: the register of the first, and that of the second eight rows.
#[inline(always)]
fn rows_of<T: Copy>([a, b, c, d]: &Register<T>, [e, f, g, h]: &Register<T>) -> [[T; 8]; 8] {
    [*a, *b, *c, *d, *e, *f, *g, *h]
}

#[inline(always)]
fn registers_of<T: Copy>([a, b, c, d, e, f, g, h]: &[[T; 8]; 8]) -> (Register<T>, Register<T>) {
    ([*a, *b, *c, *d], [*e, *f, *g, *h])
}

/// The operands of a product in registers.
struct Sums<'a> {
    info: &'a WgmmaInfo,
    r: Rows,
    d: &'a [u32],
    adds: bool,
    rows: &'a [[u8; 32]],
    columns: &'a [[f32; 4]],
}

/// Sums in f32, a product at a time. Those of integers are exact: 32 products of 16 bits.
struct Fast<'a>(Sums<'a>);

impl ElementTask for Fast<'_> {
    #[inline(always)]
    unsafe fn run<const BYTES: usize, const K: usize, const FMA: bool>(self, of: impl Fn(u32) -> f32) {
        let mut a = [[[0.0_f32; 8]; 8]; K];
        for eight in 0..2 {
            let values = values::<BYTES, K>(&self.0.rows[8 * eight..8 * eight + 8], &of);
            for (x, a) in a.iter_mut().enumerate() {
                for pair in 0..4 {
                    a[4 * eight + pair] = core::array::from_fn(|l| values[2 * pair + l / 4][x]);
                }
            }
        }
        let columns = self.0.columns.as_chunks::<K>().0;
        for (number, columns) in columns.as_chunks::<2>().0.iter().enumerate() {
            // SAFETY: the registers are rows of the warp; the constructor requires it.
            unsafe {
                match self.0.info.d {
                    Ty::F16 => halves::<K, FMA>(&self.0, number, &a, columns),
                    _ => words::<K, FMA>(&self.0, number, &a, columns),
                }
            }
        }
    }
}

#[inline(always)]
fn add_products<const K: usize, const FMA: bool>(sum: &mut [[f32; 8]; 8], a: &[[[f32; 8]; 8]; K], b: &[[f32; 4]; K]) {
    // At `opt-level = 1` the compiler does not inline a range's `next`.
    let mut x = 0;
    while x < K {
        let [p, q, s, t] = b[x];
        let b = [p, q, s, t, p, q, s, t];
        let mut i = 0;
        while i < 8 {
            let mut l = 0;
            while l < 8 {
                let (p, q) = (a[x][i][l], b[l]);
                sum[i][l] = if FMA { p.mul_add(q, sum[i][l]) } else { sum[i][l] + p * q };
                l += 1;
            }
            i += 1;
        }
        x += 1;
    }
}

#[inline(always)]
fn add_to(out: &mut [[i32; 8]; 8], sum: &[[f32; 8]; 8], add: impl Fn(i32, i32) -> i32) {
    for (out, sum) in out.as_flattened_mut().iter_mut().zip(sum.as_flattened()) {
        *out = add(*out, *sum as i32);
    }
}

/// Eight columns of f32 or s32: the even ones, and the odd ones.
///
/// # Safety
/// The registers are those of the warp.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
unsafe fn words<const K: usize, const FMA: bool>(
    of: &Sums<'_>,
    number: usize,
    a: &[[[f32; 8]; 8]; K],
    columns: &[[[f32; 4]; K]; 2],
) {
    for (odd, b) in columns.iter().enumerate() {
        let [upper, lower] = [0, 2].map(|i| of.d[4 * number + i + odd]);
        let mut sum = [[0.0; 8]; 8];
        if of.info.d == Ty::S32 {
            add_products::<K, FMA>(&mut sum, a, b);
            // SAFETY: the caller says so.
            let [upper, lower] = unsafe { [upper, lower].map(|row| &mut *of.r.lanes::<Register<i32>>(row)) };
            let mut out = if of.adds { rows_of(upper, lower) } else { [[0; 8]; 8] };
            if of.info.saturate {
                add_to(&mut out, &sum, i32::saturating_add);
            } else {
                add_to(&mut out, &sum, i32::wrapping_add);
            }
            (*upper, *lower) = registers_of(&out);
            continue;
        }
        // SAFETY: the caller says so.
        let [upper, lower] = unsafe { [upper, lower].map(|row| &mut *of.r.lanes::<Register<f32>>(row)) };
        if of.adds {
            sum = rows_of(upper, lower);
        }
        add_products::<K, FMA>(&mut sum, a, b);
        for i in 0..8 {
            for l in 0..8 {
                let v = sum[i][l];
                sum[i][l] = if v.is_nan() { f32::from_bits(0x7fff_ffff) } else { v };
            }
        }
        (*upper, *lower) = registers_of(&sum);
    }
}

/// Eight columns of f16, of which a register holds two.
///
/// # Safety
/// The registers are those of the warp.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops of fixed length become vectors")]
unsafe fn halves<const K: usize, const FMA: bool>(
    of: &Sums<'_>,
    number: usize,
    a: &[[[f32; 8]; 8]; K],
    columns: &[[[f32; 4]; K]; 2],
) {
    let registers = [of.d[2 * number], of.d[2 * number + 1]];
    // SAFETY: the caller says so.
    let [upper, lower] = unsafe { registers.map(|row| &mut *of.r.lanes::<Register<u32>>(row)) };
    let old = rows_of(upper, lower);
    let mut out = [[0_u32; 8]; 8];
    for (odd, b) in columns.iter().enumerate() {
        let mut sum = [[0.0; 8]; 8];
        if of.adds {
            for i in 0..8 {
                for l in 0..8 {
                    sum[i][l] = half(old[i][l] >> (16 * odd) & 0xffff);
                }
            }
        }
        add_products::<K, FMA>(&mut sum, a, b);
        for i in 0..8 {
            for l in 0..8 {
                out[i][l] |= to_half(sum[i][l]) << (16 * odd);
            }
        }
    }
    (*upper, *lower) = registers_of(&out);
}
