//! `discard.L2`: 128 bytes of global memory become undefined. In the PTX ISA it is a weak write of an undefined value.

use crate::FindingKind;
use crate::code::Inst;
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, addresses, fault, locate};
use crate::machine::races::race;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::vectors::vector::Rows;

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn discard(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let mem = g.code.mems[inst.x as usize];
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
    if g.checks.races {
        race::accesses(g, b, w, pc, mask, &at, &mem, true, None);
    }
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let address = at[l as usize];
        match locate(g, w, mem.space, address, l, u64::from(mem.bytes), true) {
            Ok(Place::Global(at)) => {
                for i in (0..u64::from(mem.bytes)).step_by(8) {
                    g.memory.define(at + i, 8, u64::MAX);
                }
            }
            Ok(_) => fault(g, b, w, FindingKind::OutOfBounds, pc, l, address, &mem, true),
            Err(kind) => fault(g, b, w, kind, pc, l, address, &mem, true),
        }
    }
}
