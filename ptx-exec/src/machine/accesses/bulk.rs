//! Loads and stores of whole warps. If all lanes are in one variable or allocation, no lane is checked by itself.

use super::access::{addresses, extend, fault, locate, read, write};
use super::moves;
use super::places::{Asked, Room, find, find_any};
use crate::machine::Grid;
use crate::machine::asynchronous::hopper::Issue;
use crate::machine::races::race;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::undefined::defined;
use crate::types::Space;

/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(crate) unsafe fn load<const CHECKED: bool>(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>) {
    let Issue { r, inst, pc, mask, .. } = issue;
    // SAFETY: in a `Code` the entry lies in its table (5), and the registers in the list (4).
    let (mem, list) = unsafe {
        let mem = g.code.mems.get_unchecked(inst.x as usize);
        (mem, g.code.list.get_unchecked(inst.list as usize..(inst.list + u32::from(inst.len)) as usize))
    };
    let asked = Asked::new(inst, mem, false);
    if !(CHECKED || g.checks.bounds || mem.space == Space::Local) {
        // SAFETY: the caller says so for the rows, and the lanes lie in the room.
        return unsafe {
            match find(g, b, w, r, asked, mask) {
                Some(places) => moves::load(g.memory, r, mem, list, &places, mask),
                None => load_each(g, b, w, issue),
            }
        };
    }
    // SAFETY: as above.
    let Some(places) = (unsafe { find_any(g, b, w, r, asked, mask) }) else {
        // SAFETY: as above.
        return unsafe { load_each(g, b, w, issue) };
    };
    // SAFETY: the caller says so for the rows, and the lanes lie in the room.
    unsafe { moves::load(g.memory, r, mem, list, &places, mask) };
    if CHECKED && g.checks.init {
        // SAFETY: the lanes lie in the room.
        unsafe { defined::loaded_together(g, b, w, issue, &places) };
    }
    if CHECKED && g.checks.races && !matches!(mem.space, Space::Local | Space::Const | Space::Param) {
        let is_global = matches!(places.room, Room::Global { .. });
        race::together(g, b, w, pc, mask, &places.addresses(), mem, is_global, places.pattern, None);
    }
}

/// The slow path, lane by lane, which reports faults.
///
/// # Safety
/// The operands are those of the warp.
#[inline(never)]
unsafe fn load_each(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>) {
    let Issue { r, inst, pc, mask, .. } = issue;
    let mem = &g.code.mems[inst.x as usize];
    // SAFETY: the caller says so.
    let at = &unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
    let total = u64::from(mem.bytes * mem.elements);
    let list = g.code.listed(inst);
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let place = match locate(g, w, mem.space, at[l as usize], l, total, false) {
            Ok(place) => place,
            Err(kind) => {
                fault(g, b, w, kind, pc, l, at[l as usize], mem, false);
                continue;
            }
        };
        for (e, d) in list.iter().enumerate() {
            let value = extend(read(g, b, w, place.plus(e as u64 * u64::from(mem.bytes)), mem.bytes), mem);
            // SAFETY: the caller says so.
            unsafe {
                if mem.wide {
                    *r.lanes::<u64>(*d).add(l as usize) = value;
                } else {
                    *r.lanes::<u32>(*d).add(l as usize) = value as u32;
                }
            }
        }
    }
    if g.checks.init {
        defined::loaded(g, b, w, inst, pc, mask, at);
    }
    if g.checks.races {
        race::accesses(g, b, w, pc, mask, at, mem, false, None);
    }
}

/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(crate) unsafe fn store<const CHECKED: bool>(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>) {
    let Issue { r, inst, pc, mask, .. } = issue;
    // SAFETY: in a `Code` the entry lies in its table (5), and the registers in the list (4).
    let (mem, list) = unsafe {
        let mem = g.code.mems.get_unchecked(inst.x as usize);
        (mem, g.code.list.get_unchecked(inst.list as usize..(inst.list + u32::from(inst.len)) as usize))
    };
    let asked = Asked::new(inst, mem, true);
    if !(CHECKED || g.checks.bounds || mem.space == Space::Local) {
        // SAFETY: the caller says so for the rows, and the lanes lie in the room.
        return unsafe {
            match find(g, b, w, r, asked, mask) {
                Some(places) => moves::store(g.memory, r, mem, list, &places, mask),
                None => store_each(g, b, w, issue),
            }
        };
    }
    // SAFETY: as above.
    let Some(places) = (unsafe { find_any(g, b, w, r, asked, mask) }) else {
        // SAFETY: as above.
        return unsafe { store_each(g, b, w, issue) };
    };
    if CHECKED && g.checks.races && mem.space != Space::Local {
        let is_global = matches!(places.room, Room::Global { .. });
        race::together(g, b, w, pc, mask, &places.addresses(), mem, is_global, places.pattern, Some(list));
    }
    // SAFETY: the caller says so for the rows, and the lanes lie in the room.
    unsafe { moves::store(g.memory, r, mem, list, &places, mask) };
    if CHECKED && g.checks.init {
        // SAFETY: the lanes lie in the room.
        unsafe { defined::stored_together(g, b, w, issue, &places) };
    }
}

/// The slow path, lane by lane, which reports faults.
///
/// # Safety
/// The operands are those of the warp.
#[inline(never)]
unsafe fn store_each(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>) {
    let Issue { r, inst, pc, mask, .. } = issue;
    let mem = &g.code.mems[inst.x as usize];
    // SAFETY: the caller says so.
    let at = &unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
    let total = u64::from(mem.bytes * mem.elements);
    let list = g.code.listed(inst);
    if g.checks.races {
        race::accesses(g, b, w, pc, mask, at, mem, true, Some(list));
    }
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let place = match locate(g, w, mem.space, at[l as usize], l, total, true) {
            Ok(place) => place,
            Err(kind) => {
                fault(g, b, w, kind, pc, l, at[l as usize], mem, true);
                continue;
            }
        };
        for (e, s) in list.iter().enumerate() {
            // SAFETY: the caller says so.
            let value = unsafe {
                if mem.wide {
                    *r.lanes::<u64>(*s).add(l as usize)
                } else {
                    u64::from(*r.lanes::<u32>(*s).add(l as usize))
                }
            };
            write(g, b, w, place.plus(e as u64 * u64::from(mem.bytes)), mem.bytes, value);
        }
    }
    if g.checks.init {
        defined::stored(g, b, w, inst, pc, mask, at);
    }
}
