//! `ldmatrix`, `stmatrix` and `movmatrix`: matrices of 8 x 8 halves, lane l with columns 2(l%4) and the next of row l/4.

use crate::FindingKind;
use crate::code::{Class, Inst, MatrixInfo};
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, addresses, fault, locate, write};
use crate::machine::races::race;
use crate::machine::races::word::Access;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::undefined::defined::{copied, undefined};
use crate::machine::undefined::origin;
use crate::machine::vectors::vector::{Rows, store as store_row};

/// The rows of 16 bytes that the matrices of `ldmatrix` and `stmatrix` lie in: lane 8 m + i has the address of row i of matrix m.
fn matrix_rows(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    info: &MatrixInfo,
    pc: u32,
    at: &[u64; 32],
    write: bool,
) -> [Option<u64>; 32] {
    let mut rows = [None; 32];
    for (l, row) in (0..info.count * 8).zip(&mut rows) {
        let address = at[l as usize];
        match locate(g, w, info.mem.space, address, l, 16, write) {
            Ok(Place::Shared(place)) => *row = Some(place),
            // A generic address has to be one of shared memory.
            Ok(_) => fault(g, b, w, FindingKind::OutOfBounds, pc, l, address, &info.mem, write),
            Err(kind) => fault(g, b, w, kind, pc, l, address, &info.mem, write),
        }
    }
    rows
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn ldmatrix(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.matrices[inst.x as usize];
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, info.mem.address64, info.mem.offset, mask) };
    let rows = matrix_rows(g, b, w, &info, pc, &at, false);
    for m in 0..info.count {
        let d = g.code.list[(inst.list + m) as usize];
        // Rows in memory have the order of the lanes: lane l holds columns 2(l%4) and the next of row l/4.
        let mut matrix = [[0_u16; 8]; 8];
        for (row, at) in matrix.iter_mut().zip(&rows[m as usize * 8..]) {
            let bytes = at.and_then(|at| b.shared.get(at as usize..at as usize + 16));
            for (element, bytes) in row.iter_mut().zip(bytes.unwrap_or(&[0; 16]).chunks_exact(2)) {
                *element = u16::from_le_bytes([bytes[0], bytes[1]]);
            }
        }
        if info.transposed {
            let of = matrix;
            for (i, row) in matrix.iter_mut().enumerate() {
                for (j, element) in row.iter_mut().enumerate() {
                    *element = of[j][i];
                }
            }
        }
        let mut out = [0_u32; 32];
        for (word, pair) in out.iter_mut().zip(matrix.as_flattened().chunks_exact(2)) {
            *word = u32::from(pair[0]) | u32::from(pair[1]) << 16;
        }
        // SAFETY: the caller says so.
        unsafe { store_row(r.lanes(d), &out, mask) };
    }
    let lanes = if info.count == 4 { mask } else { mask & ((1 << (8 * info.count)) - 1) };
    if g.checks.init {
        matrix_loaded(g, b, w, inst, pc, mask, &rows);
    }
    if g.checks.races {
        let found = (0..32).filter(|l| lanes >> l & 1 != 0 && rows[*l].is_some()).fold(0, |m, l| m | 1 << l);
        let places = rows.map(|at| at.unwrap_or(0) as u32);
        race::note_lanes(g, b, w, found, &places, 16, Access::new(w, pc, false));
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn stmatrix(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.matrices[inst.x as usize];
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, info.mem.address64, info.mem.offset, mask) };
    let lanes = if info.count == 4 { mask } else { mask & ((1 << (8 * info.count)) - 1) };
    if g.checks.races {
        race::accesses(g, b, w, pc, lanes, &at, &info.mem, true, None);
    }
    let rows = matrix_rows(g, b, w, &info, pc, &at, true);
    for m in 0..info.count {
        let s = g.code.list[(inst.list + m) as usize];
        // SAFETY: the caller says so.
        let from = unsafe { *r.lanes::<[u32; 32]>(s) };
        for (l, value) in from.iter().enumerate() {
            for half in 0..2 {
                let (i, j) = (l / 4, 2 * (l % 4) + half);
                let (row, column) = if info.transposed { (j, i) } else { (i, j) };
                if let Some(at) = rows[m as usize * 8 + row] {
                    let value = u64::from(value >> (16 * half) & 0xffff);
                    write(g, b, w, Place::Shared(at + 2 * column as u64), 2, value);
                }
            }
        }
    }
    if g.checks.init {
        matrix_stored(b, w, g, inst, &rows);
    }
}

/// `ldmatrix` was executed.
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
fn matrix_loaded(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32, rows: &[Option<u64>]) {
    let info = g.code.matrices[inst.x as usize];
    for m in 0..info.count {
        let d = g.code.list[(inst.list + m) as usize];
        let (mut out, mut from) = ([0; 32], [0; 32]);
        for l in 0..32 {
            let (i, j) = (l / 4, 2 * (l as u64 % 4));
            let halves = if info.transposed {
                [(j as usize, i as u64), (j as usize + 1, i as u64)]
            } else {
                [(i, j), (i, j + 1)]
            };
            for (half, (row, column)) in halves.into_iter().enumerate() {
                let Some(at) = rows[m as usize * 8 + row] else { continue };
                let place = Place::Shared(at + 2 * column);
                let bits = undefined(g, b, w, place, 2);
                if bits != 0 && from[l] == 0 {
                    from[l] = origin::of(b, w, pc, l as u32, place, bits);
                }
                out[l] |= bits << (16 * half);
            }
        }
        w.shadow.set_from(Class::W32, d, &out, &from, mask, w.live);
    }
}

/// `stmatrix` was executed.
fn matrix_stored(b: &mut Block, w: &Warp, g: &Grid<'_>, inst: &Inst, rows: &[Option<u64>]) {
    let info = g.code.matrices[inst.x as usize];
    for m in 0..info.count {
        let s = g.code.list[(inst.list + m) as usize];
        let (shadow, from) = (w.shadow.get(Class::W32, s), w.shadow.from(Class::W32, s));
        for (l, bits) in shadow.iter().enumerate() {
            for half in 0..2 {
                let (i, j) = (l / 4, 2 * (l % 4) + half);
                let (row, column) = if info.transposed { (j, i) } else { (i, j) };
                if let Some(at) = rows[m as usize * 8 + row] {
                    let bits = bits >> (16 * half);
                    let undefined = u32::from(bits & 0xff != 0) | u32::from(bits & 0xff00 != 0) << 1;
                    copied(b, at + 2 * column as u64, 2, undefined, from[l]);
                }
            }
        }
    }
}

/// `movmatrix.trans`: 8 x 8 halves, lane l holds columns 2(l%4) and the next of row l/4.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn transpose(r: Rows, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        let from = *r.lanes::<[u32; 32]>(inst.a);
        let element = |row: usize, column: usize| from[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
        let out: [u32; 32] = core::array::from_fn(|l| {
            let (i, j) = (l / 4, 2 * (l % 4));
            element(j, i) | element(j + 1, i) << 16
        });
        store_row(r.lanes(inst.d), &out, mask);
    }
}
