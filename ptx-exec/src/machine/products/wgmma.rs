//! `wgmma`: products of a warpgroup. Each of the four warps computes 16 rows by itself.
//!
//! A product happens at some moment between its issue and the wait for its group. It reads its operands at that moment.

use super::wgmma_groups::Product;
use super::wgmma_sums::{self, Factors, MOST_N};
use crate::code::{Class, Inst, NONE, Op};
use crate::code_async::WgmmaInfo;
use crate::lower::operands_of;
use crate::machine::Grid;
use crate::machine::accesses::access::Place;
use crate::machine::asynchronous::flight::{Moment, finding};
use crate::machine::races::race_async;
use crate::machine::races::race_async::Operation;
use crate::machine::reports::causes::Broken;
use crate::machine::reports::report;
use crate::machine::threads::run::is_x86_64_v3;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::undefined::origin;
use crate::machine::vectors::vector::Rows;
use crate::types::{Space, Ty};
use crate::{Finding, Rule};

/// A matrix in shared memory, as its descriptor says (PTX ISA, "Matrix Descriptor Format").
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    start: u64,
    leading: u64,
    stride: u64,
    base: u64,
    /// Bits of an address that are exchanged.
    bits: u32,
    /// Chunks of 16 bytes within a swizzle.
    width: u64,
    mn: bool,
}

impl Matrix {
    fn new(g: &Grid<'_>, w: &Warp, descriptor: u64, mn: bool) -> Matrix {
        let field = |at: u32| (descriptor >> at & 0x3fff) << 4;
        let bits = [0, 3, 2, 1][(descriptor >> 62) as usize];
        Matrix {
            start: field(0) + u64::from(w.rank) * g.shared_stride,
            leading: field(16),
            stride: field(32),
            base: descriptor >> 49 & 7,
            bits,
            width: 1 << bits,
            mn,
        }
    }

    /// Whether M or N is contiguous, not K.
    pub(crate) fn is_mn(&self) -> bool {
        self.mn
    }

    fn swizzled(&self, at: u64) -> u64 {
        at ^ ((at >> 7).wrapping_sub(self.base) & ((1 << self.bits) - 1)) << 4
    }

    /// Where 16 bytes lie: of a row, its half; where M or N is contiguous, eight rows of one k.
    #[inline]
    pub(crate) fn chunk(&self, row: u64, part: u64) -> u64 {
        let offset = match (self.mn, self.bits) {
            (false, 0) => row % 8 * 16 + row / 8 * self.stride + part * self.leading,
            (false, _) => row % 8 * 16 * self.width + row / 8 * self.stride + part * 16,
            (true, 0) => row * self.stride + part % 8 * 16 + part / 8 * self.leading,
            (true, _) => {
                let w = self.width;
                row % w * 16 + row / w * self.leading + part % 8 * 16 * w + part / 8 * self.stride
            }
        };
        self.swizzled(self.start + offset)
    }

    /// Where a row's two halves lie, of a matrix with K contiguous.
    #[inline(always)]
    pub(crate) fn halves(&self, row: u64) -> [u64; 2] {
        let at = self.start + row / 8 * self.stride + row % 8 * 16 * self.width;
        let next = if self.bits == 0 { self.leading } else { 16 };
        [self.swizzled(at), self.swizzled(at + next)]
    }

    /// Bytes that all chunks of the first rows lie between: swizzles exchange within 128 bytes.
    fn bounds(&self, rows: u64) -> (u64, u64) {
        let groups = rows.div_ceil(8) - 1;
        let (w, far) = (16 * self.width, self.leading.max(self.stride));
        let last = if self.mn { rows / 8 * far + 2 * far + 8 * w } else { groups * self.stride + 8 * w + self.leading };
        (self.start & !127, (self.start + last + 16) | 127)
    }

    /// The chunks of rows `first..first + rows`: of each its place, its row or eight rows, and its part.
    pub(crate) fn chunks(&self, first: u64, rows: u64) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let (first, rows, parts) = if self.mn { (first / 8, rows / 8, 16) } else { (first, rows, 2) };
        (0..rows).flat_map(move |row| (0..parts).map(move |part| (self.chunk(first + row, part), row, part)))
    }
}

/// The matrices of a product, and the rows of A that are this warp's.
fn matrices(g: &Grid<'_>, w: &Warp, info: &WgmmaInfo, p: &Product) -> (Option<Matrix>, Matrix, u64) {
    let a = (info.a_registers == 0).then(|| Matrix::new(g, w, p.a, info.a_mn));
    (a, Matrix::new(g, w, p.b, info.b_mn), u64::from(w.index % 4) * 16)
}

/// The most products in flight of a warp.
const MOST_PRODUCTS: usize = 4096;

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn issue(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, preds: *mut u32, inst: &Inst, pc: u32) {
    let lane = w.live.trailing_zeros() as usize & 31;
    // SAFETY: the caller says so.
    let p = unsafe {
        let wide = |row: u32| if row == NONE { 0 } else { *r.lanes::<u64>(row).add(lane) };
        let adds = inst.c == NONE || *preds.add(inst.c as usize) >> lane & 1 != 0;
        Product { pc, a: wide(inst.a), b: wide(inst.b), adds, group: None, done: false }
    };
    let info = &g.code.asyncs.wgmmas[inst.x as usize];
    if w.live != u32::MAX || (w.index / 4 + 1) * 128 > g.threads() {
        let detail = "a warpgroup is four whole warps".to_owned();
        report::simple(g, b, w, Rule::Warpgroup, pc, w.live, detail);
        return;
    }
    if !in_shared(g, b, w, info, &p) {
        return;
    }
    if g.checks.races {
        note(g, b, w, info, &p);
        unfenced(g, b, w, inst, pc);
    }
    if let Some(count) = b.profile.get_mut(pc as usize) {
        count.wgmma_flops += 2 * 16 * u64::from(info.n * info.k);
    }
    w.flying.wgmma.all.push(p);
    if w.flying.wgmma.all.len() > MOST_PRODUCTS {
        // Products may happen at any moment. This bounds the memory of an endless loop.
        happen(g, b, w, MOST_PRODUCTS);
        w.flying.wgmma.shorten();
    }
    if b.flying.moment == Moment::Early || b.flying.moment == Moment::Any && b.flying.random.below(4) == 0 {
        let all = w.flying.wgmma.all.len();
        happen(g, b, w, all);
    }
}

/// Whether all operands of a product are in shared memory of its block.
fn in_shared(g: &Grid<'_>, b: &mut Block, w: &Warp, info: &WgmmaInfo, p: &Product) -> bool {
    let (a, of_b, first) = matrices(g, w, info, p);
    let mut last = (1, 0);
    let mut stray = None;
    let mut look = |m: &Matrix, first: u64, rows: u64| {
        let (low, high) = m.bounds(first + rows);
        if g.shared.iter().any(|v| v.rank == w.rank && low >= v.start && high < v.start + v.bytes) {
            return;
        }
        for (at, ..) in m.chunks(first, rows) {
            if at >= last.0 && at + 16 <= last.1 {
                continue;
            }
            match g.shared.iter().find(|v| v.rank == w.rank && at >= v.start && at + 16 <= v.start + v.bytes) {
                Some(v) => last = (v.start, v.start + v.bytes),
                None => return stray = Some(at),
            }
        }
    };
    if let Some(a) = &a {
        look(a, first, 16);
    }
    look(&of_b, 0, u64::from(info.n));
    let Some(at) = stray else { return true };
    let target = Some(report::target(g, Space::Shared, at));
    let who = report::who(g, w.ctaid, w.index, w.live);
    let detail = format!("the access is by the matrix descriptor {:#018x}", if stray.is_some() { p.b } else { p.a });
    finding(g, b, Rule::InBounds, p.pc, who, target, detail);
    false
}

/// Notes the reads of a product for the race check.
fn note(g: &Grid<'_>, b: &mut Block, w: &mut Warp, info: &WgmmaInfo, p: &Product) {
    if w.flying.wgmma.actor == 0 {
        w.flying.wgmma.actor = g.actor();
    }
    let row = (w.flying.wgmma.actor, w.flying.wgmma.committed + 1);
    let (a, of_b, first) = matrices(g, w, info, p);
    let of_a = a.iter().flat_map(|a| a.chunks(first, 16));
    let pieces = of_a.chain(of_b.chunks(0, u64::from(info.n))).map(|(at, ..)| (at, 16));
    race_async::near(g, b, w, Operation { pc: p.pc, lanes: 1, write: false, row }, u64::from(w.rank), pieces);
}

fn registers<'g>(g: &'g Grid<'_>, inst: &Inst) -> &'g [u32] {
    g.code.listed(inst)
}

/// Registers of the product that were written since the last fence.
fn unfenced(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32) {
    if registers(g, inst).iter().any(|r| w.flying.wgmma.unfenced.contains(r)) {
        let detail = "registers of the product were written since the last wgmma.fence".to_owned();
        report::simple(g, b, w, Rule::ProductFence, pc, w.live, detail);
    }
}

/// An instruction touches a register that some `wgmma` works on.
pub(crate) fn touched(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    if inst.op == Op::Wgmma || !g.checks.races {
        return;
    }
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let classes = crate::proof::classes(g.code, inst);
    operands_of(g.code, inst, classes, |r, write| if write { writes.push(r) } else { reads.push(r) });
    let in_flight = w.flying.wgmma.all.iter().find(|p| {
        let of = g.code.insts[p.pc as usize];
        let d = g.code.asyncs.wgmmas[of.x as usize].d_registers as usize;
        let all = registers(g, &of);
        reads.iter().any(|r| all[..d].contains(r)) || writes.iter().any(|r| all.contains(r))
    });
    if let Some(p) = in_flight {
        let by = report::site(g.code, p.pc);
        let detail = format!("a register is touched while {by} works on it: wgmma.wait_group is missing");
        let at = Broken { other: Some(p.pc), ..Broken::by(w, Rule::ProductRegisters, pc, mask) };
        b.findings.keep(g, &at, || Finding { detail, ..report::broken(g, &at) });
    }
    w.flying.wgmma.unfenced.extend(writes);
}

pub(crate) fn fence(w: &mut Warp) {
    w.flying.wgmma.unfenced.clear();
}

/// The first `n` products happen, if they have not.
pub(crate) fn happen(g: &Grid<'_>, b: &mut Block, w: &mut Warp, n: usize) {
    for i in 0..n {
        if !core::mem::replace(&mut w.flying.wgmma.all[i].done, true) {
            let p = w.flying.wgmma.all[i];
            multiply(g, b, w, &p);
        }
    }
}

/// One product of a warp's rows.
fn multiply(g: &Grid<'_>, b: &mut Block, w: &mut Warp, p: &Product) {
    let inst = g.code.insts[p.pc as usize];
    let info = &g.code.asyncs.wgmmas[inst.x as usize];
    let (d, from) = registers(g, &inst).split_at(info.d_registers as usize);
    let (a, of_b, first) = matrices(g, w, info, p);
    let mut factors = Factors::new(info.n);
    match &a {
        Some(a) => wgmma_sums::fetch(&b.shared, a, first, 16, &mut factors.a),
        None => {
            let rows = w.rows();
            for (i, row) in from.iter().enumerate() {
                // SAFETY: the registers of a `Code` are rows of the warp (3, 4).
                let words = unsafe { *rows.lanes::<[u32; 32]>(*row) };
                for (l, word) in words.iter().enumerate() {
                    let at = 4 * (l % 4) + 16 * (i / 2);
                    factors.a[8 * (i % 2) + l / 4][at..at + 4].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }
    wgmma_sums::fetch(&b.shared, &of_b, 0, u64::from(info.n), &mut factors.b);
    let r = w.rows();
    let (factors, columns) = (&mut factors, &mut b.flying.columns);
    // SAFETY: D of a `Code` has as many registers as the shape (4, 5), all rows of the warp; the processor is asked what it has.
    unsafe {
        if is_x86_64_v3() {
            wgmma_sums::run::<true>(info, r, d, factors, p.adds, g.adder, columns);
        } else {
            wgmma_sums::run::<false>(info, r, d, factors, p.adds, g.adder, columns);
        }
    }
    if g.checks.init {
        undefined(b, w, p.pc, info, (a, of_b, first), (d, from), p.adds);
    }
}

/// The origin of an uninitialised byte in each row of a matrix, or in each column of B.
fn undefined_rows(b: &mut Block, w: &Warp, pc: u32, m: &Matrix, first: u64, rows: u64) -> Vec<Option<u32>> {
    let mut bad = vec![None; rows as usize];
    for (at, row, _) in m.chunks(first, rows) {
        for i in 0..16_u64 {
            if b.shared_written.get((at + i) as usize) == Some(&0) {
                let row = if m.mn { row as usize * 8 + i as usize / 2 } else { row as usize };
                if bad[row].is_none() {
                    bad[row] = Some(origin::of(b, w, pc, 0, Place::Shared(at + i), 1));
                }
            }
        }
    }
    bad
}

/// Elements of D that depend on uninitialised values.
fn undefined(
    b: &mut Block,
    w: &mut Warp,
    pc: u32,
    info: &WgmmaInfo,
    (a, of_b, first): (Option<Matrix>, Matrix, u64),
    (d, from): (&[u32], &[u32]),
    adds: bool,
) {
    let bad_b = undefined_rows(b, w, pc, &of_b, 0, u64::from(info.n));
    let mut bad_a = a.map_or_else(|| vec![None; 16], |a| undefined_rows(b, w, pc, &a, first, 16));
    for (i, row) in from.iter().enumerate() {
        if w.shadow.is_dirty(Class::W32, *row) {
            let of = w.shadow.from(Class::W32, *row);
            let undefined = w.shadow.get(Class::W32, *row);
            for l in (0..32).filter(|l| undefined[*l] != 0) {
                let row = &mut bad_a[8 * (i % 2) + l / 4];
                *row = row.or(Some(of[l]));
            }
        }
    }
    let any = bad_a.iter().chain(&bad_b).any(Option::is_some);
    let live = w.live;
    for (i, row) in d.iter().enumerate() {
        let (half, columns) = if info.d == Ty::F16 { (i % 2, i / 2 * 8) } else { (i / 2 % 2, i / 4 * 8 + i % 2) };
        let pairs = if info.d == Ty::F16 { 2 } else { 1 };
        let old = if adds { w.shadow.get(Class::W32, *row) } else { [0; 32] };
        if !any && old == [0; 32] {
            w.shadow.clean(Class::W32, *row, u32::MAX, live);
            continue;
        }
        let before = w.shadow.from(Class::W32, *row);
        let of = |l: usize| {
            let column = columns + 2 * (l % 4);
            let from_b = bad_b[column..column + pairs].iter().find_map(|from| *from);
            let before = (old[l] != 0).then_some(before[l]);
            before.or(bad_a[8 * half + l / 4]).or(from_b)
        };
        let bad: [Option<u32>; 32] = core::array::from_fn(of);
        let undefined = bad.map(|bad| if bad.is_some() { u64::MAX } else { 0 });
        w.shadow.set_from(Class::W32, *row, &undefined, &bad.map(|from| from.unwrap_or(0)), u32::MAX, live);
    }
    debug_assert!(info.n as usize <= MOST_N);
}
