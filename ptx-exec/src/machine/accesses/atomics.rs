//! `atom` and `red`: lane after lane, in one indivisible turn each.
//!
//! An entry with atomics of global memory runs on one thread of the host, so a turn needs no lock.

use super::access::{Place, addresses, fault, locate, read, write};
use crate::code::{AtomOp, Inst};
use crate::machine::Grid;
use crate::machine::races::race;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::undefined::defined;
use crate::machine::vectors::vector::Rows;
use crate::num::{FTZ, LaneFn, by_float, by_integer};
use crate::types::Ty;

/// The new value of memory: of the old one, the operand, and what a swap puts there.
pub(crate) fn combine(op: AtomOp, ty: Ty, [old, a, b]: [u64; 3], ctl: u32) -> u64 {
    let by = |f: Option<LaneFn>, bytes: fn(u64, u64) -> u64| f.map_or_else(|| bytes(old, a), |f| f(old, a, 0, ctl));
    match op {
        AtomOp::And => old & a,
        AtomOp::Or => old | a,
        AtomOp::Xor => old ^ a,
        AtomOp::Exch => a,
        AtomOp::Cas => {
            let keep = u64::MAX >> (64 - ty.bits());
            if old & keep == a & keep { b } else { old }
        }
        AtomOp::Inc => (old as u32).checked_add(1).filter(|new| *new <= a as u32).map_or(0, u64::from),
        AtomOp::Dec => (old as u32).checked_sub(1).filter(|new| *new < a as u32).map_or(a, u64::from),
        AtomOp::Add => by(by_float!(ty, add).or(by_integer!(ty, add)), u64::wrapping_add),
        AtomOp::Min => by(by_float!(ty, min).or(by_integer!(ty, min)), u64::min),
        AtomOp::Max => by(by_float!(ty, max).or(by_integer!(ty, max)), u64::max),
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn atomic(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = &g.code.atoms[inst.x as usize];
    let mem = &info.mem;
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
    let list = g.code.listed(inst);
    let (defs, uses) = list.split_at(usize::from(inst.defs));
    let total = u64::from(mem.bytes * mem.elements);
    let lanes = mem.elements as usize;
    let value = |row: u32, l: usize| unsafe {
        // SAFETY: the caller says so.
        if mem.wide { *r.lanes::<u64>(row).add(l) } else { u64::from(*r.lanes::<u32>(row).add(l)) }
    };
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let address = at[l as usize];
        let place = match locate(g, w, mem.space, address, l, total, true) {
            Ok(place) => place,
            Err(kind) => {
                fault(g, b, w, kind, pc, l, address, mem, true);
                continue;
            }
        };
        if g.checks.races {
            race::atomic(g, b, w, pc, l, place, mem, mask);
        }
        if g.checks.init {
            defined::atomic(g, b, w, inst, pc, l, place);
        }
        // PTX ISA, "atom": f32 additions in global memory flush subnormals, in shared memory they do not.
        let flushes = info.ty == Ty::F32 && info.op == AtomOp::Add && !matches!(place, Place::Shared(_));
        let ctl = if flushes { FTZ } else { 0 };
        for e in 0..lanes {
            let place = place.plus(e as u64 * u64::from(mem.bytes));
            let old = read(g, b, w, place, mem.bytes);
            let a = value(uses[e], l as usize);
            let second = uses.get(lanes + e).map_or(0, |row| value(*row, l as usize));
            let new = combine(info.op, info.ty, [old, a, second], ctl);
            write(g, b, w, place, mem.bytes, new);
            if let Some(d) = defs.get(e) {
                // SAFETY: the caller says so.
                unsafe {
                    if mem.wide {
                        *r.lanes::<u64>(*d).add(l as usize) = old;
                    } else {
                        *r.lanes::<u32>(*d).add(l as usize) = old as u32;
                    }
                }
            }
        }
    }
}
