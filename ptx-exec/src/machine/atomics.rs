//! `atom` and `red`: lane after lane, in one indivisible turn each.
//!
//! An entry with atomics of global memory runs on one thread of the host, so a turn needs no lock.

use super::access::{Place, addresses, fault, locate, read, write};
use super::vector::Rows;
use super::warp::{Block, Warp};
use super::{Grid, defined, race};
use crate::code::{AtomInfo, AtomOp, Inst};
use crate::num::{FTZ, float, half2};
use crate::types::Ty;

/// The new value of the memory.
fn combine(info: &AtomInfo, old: u64, a: u64, b: u64, shared: bool) -> u64 {
    let (narrow, signed) = (info.ty.bits() == 32, info.ty.is_signed());
    let cut = |v: u64| if narrow { v & 0xffff_ffff } else { v };
    let less = |x: u64, y: u64| match (narrow, signed) {
        (true, true) => (x as i32) < y as i32,
        (false, true) => (x as i64) < y as i64,
        _ => cut(x) < cut(y),
    };
    match info.op {
        AtomOp::And => old & a,
        AtomOp::Or => old | a,
        AtomOp::Xor => old ^ a,
        AtomOp::Exch => a,
        AtomOp::Cas => {
            let keep = if info.ty.bits() == 16 {
                0xffff
            } else if narrow {
                0xffff_ffff
            } else {
                u64::MAX
            };
            if old & keep == a & keep { b } else { old }
        }
        AtomOp::Inc => {
            if old as u32 >= a as u32 {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old as u32 == 0 || old as u32 > a as u32 {
                a
            } else {
                old - 1
            }
        }
        AtomOp::Add => match info.ty {
            // PTX ISA, "atom": f32 additions in global memory flush subnormals, in shared memory they do not.
            Ty::F32 => float::f32::add(old, a, 0, if shared { 0 } else { FTZ }),
            Ty::F64 => float::f64::add(old, a, 0, 0),
            Ty::F16 => float::f16::add(old, a, 0, 0),
            Ty::Bf16 => float::bf16::add(old, a, 0, 0),
            Ty::F16x2 => half2::f16x2::add(old, a, 0, 0),
            Ty::Bf16x2 => half2::bf16x2::add(old, a, 0, 0),
            _ => cut(old.wrapping_add(a)),
        },
        AtomOp::Min => match info.ty {
            Ty::F16 => float::f16::min(old, a, 0, 0),
            Ty::Bf16 => float::bf16::min(old, a, 0, 0),
            Ty::F16x2 => half2::f16x2::min(old, a, 0, 0),
            Ty::Bf16x2 => half2::bf16x2::min(old, a, 0, 0),
            _ => {
                if less(a, old) {
                    a
                } else {
                    old
                }
            }
        },
        AtomOp::Max => match info.ty {
            Ty::F16 => float::f16::max(old, a, 0, 0),
            Ty::Bf16 => float::bf16::max(old, a, 0, 0),
            Ty::F16x2 => half2::f16x2::max(old, a, 0, 0),
            Ty::Bf16x2 => half2::bf16x2::max(old, a, 0, 0),
            _ => {
                if less(old, a) {
                    a
                } else {
                    old
                }
            }
        },
    }
}

/// # Safety
/// The operands are those of the warp.
pub(super) unsafe fn atomic(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = &g.code.atoms[inst.x as usize];
    let mem = &info.mem;
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
    let list = &g.code.list[inst.list as usize..(inst.list + u32::from(inst.len)) as usize];
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
        let is_shared = matches!(place, Place::Shared(_));
        for e in 0..lanes {
            let place = place.plus(e as u64 * u64::from(mem.bytes));
            let old = read(g, b, w, place, mem.bytes);
            let a = value(uses[e], l as usize);
            let second = uses.get(lanes + e).map_or(0, |row| value(*row, l as usize));
            let new = combine(info, old, a, second, is_shared);
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
