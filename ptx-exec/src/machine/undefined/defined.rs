//! Uninitialised memory: its bytes, and how loads and stores move them to and from registers.

use super::origin::{self, Decides};
use crate::code::{AtomOp, Class, Inst, NONE};
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, locate};
use crate::machine::accesses::places::{Places, Room};
use crate::machine::asynchronous::hopper::Issue;
use crate::machine::threads::warp::{Block, Warp};
use crate::memory::Memory;
use crate::types::Space;

const ALL: u64 = u64::MAX;

/// Undefined bits of memory.
pub(crate) fn undefined(g: &Grid<'_>, b: &Block, w: &Warp, place: Place, bytes: u32) -> u64 {
    let of = |written: &[u8], at: u64| {
        (0..u64::from(bytes)).filter(|i| written.get((at + i) as usize) == Some(&0)).fold(0, |m, i| m | 0xff << (8 * i))
    };
    match place {
        Place::Global(at) => g.memory.undefined(at, bytes),
        Place::Shared(at) => of(&b.shared_written, at),
        Place::Local(at) => of(&w.local_written, at),
    }
}

fn define(g: &Grid<'_>, b: &mut Block, w: &mut Warp, place: Place, bytes: u32, undefined: u64) {
    let written = match place {
        Place::Global(at) => return g.memory.define(at, bytes, undefined),
        Place::Shared(at) => b.shared_written.get_mut(at as usize..at as usize + bytes as usize),
        Place::Local(at) => w.local_written.get_mut(at as usize..at as usize + bytes as usize),
    };
    for (i, cell) in written.into_iter().flatten().enumerate() {
        *cell = u8::from(undefined >> (8 * i) & 0xff == 0);
    }
}

/// A load was executed.
pub(crate) fn loaded(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32, at: &[u64; 32]) {
    let mem = &g.code.mems[inst.x as usize];
    let class = if mem.wide { Class::W64 } else { Class::W32 };
    let guard = if inst.guard == NONE { 0 } else { w.shadow.pred(inst.guard >> 1) & mask };
    let guards = if guard == 0 { [0; 32] } else { w.shadow.from(Class::Pred, inst.guard >> 1) };
    for e in 0..u32::from(inst.len) {
        let d = g.code.list[(inst.list + e) as usize];
        if d == NONE {
            continue;
        }
        let (mut out, mut from) = ([0; 32], [0; 32]);
        let mut any = guard != 0;
        for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
            let total = u64::from(mem.bytes * mem.elements);
            if let Ok(place) = locate(g, w, mem.space, at[l as usize], l, total, false) {
                let place = place.plus(u64::from(e * mem.bytes));
                let mut bits = undefined(g, b, w, place, mem.bytes);
                if bits != 0 {
                    from[l as usize] = origin::of(b, w, pc, l, place, bits);
                }
                if mem.signed && bits != 0 && bits >> (8 * mem.bytes - 1) & 1 != 0 {
                    bits |= ALL << (8 * mem.bytes - 1);
                }
                if guard >> l & 1 != 0 {
                    (bits, from[l as usize]) = (ALL, guards[l as usize]);
                }
                out[l as usize] = bits;
                any |= bits != 0;
            }
        }
        if any || w.shadow.is_dirty(class, d) {
            w.shadow.set_from(class, d, &out, &from, mask, w.live);
        }
    }
}

/// A store was executed.
pub(crate) fn stored(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32, at: &[u64; 32]) {
    let mem = &g.code.mems[inst.x as usize];
    let class = if mem.wide { Class::W64 } else { Class::W32 };
    let (mut bad, mut first) = (0, None);
    for e in 0..u32::from(inst.len) {
        let s = g.code.list[(inst.list + e) as usize];
        let is_dirty = w.shadow.is_dirty(class, s);
        let shadow = if is_dirty { w.shadow.get(class, s) } else { [0; 32] };
        let from = if is_dirty { w.shadow.from(class, s) } else { [0; 32] };
        for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
            let total = u64::from(mem.bytes * mem.elements);
            if let Ok(place) = locate(g, w, mem.space, at[l as usize], l, total, true) {
                let place = place.plus(u64::from(e * mem.bytes));
                let keep = if mem.bytes == 8 { ALL } else { (1 << (8 * mem.bytes)) - 1 };
                let bits = shadow[l as usize] & keep;
                if bits != 0 {
                    let from = from[l as usize];
                    origin::written(b, w, place, mem.bytes, from);
                    if let Place::Global(at) = place {
                        bad |= 1 << l;
                        let byte = at + u64::from(bits.trailing_zeros() / 8);
                        first = first.or(Some((from, byte)));
                    }
                }
                define(g, b, w, place, mem.bytes, bits);
            }
        }
    }
    if let Some((from, byte)) = first {
        let what = "an uninitialised value is stored to global memory";
        let written = Some((Space::Global, byte, u64::from(mem.bytes)));
        origin::finding(g, b, w, pc, bad, &Decides { what, from, written });
    }
}

/// A lane of an atomic is about to be executed.
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(crate) fn atomic(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, lane: u32, place: Place) {
    let info = &g.code.atoms[inst.x as usize];
    let mem = &info.mem;
    let class = if mem.wide { Class::W64 } else { Class::W32 };
    let list = g.code.listed(inst);
    let (defs, uses) = list.split_at(usize::from(inst.defs));
    let used = uses.iter().find(|r| w.shadow.is_dirty(class, **r) && w.shadow.get(class, **r)[lane as usize] != 0);
    let mut bad = used.map(|r| w.shadow.from(class, *r)[lane as usize]);
    let replaces = info.op == AtomOp::Exch;
    for e in 0..mem.elements {
        let place = place.plus(u64::from(e * mem.bytes));
        let old = undefined(g, b, w, place, mem.bytes);
        let mut from = [0; 32];
        if old != 0 {
            from[lane as usize] = origin::of(b, w, pc, lane, place, old);
            bad = bad.or((!replaces).then_some(from[lane as usize]));
        }
        define(g, b, w, place, mem.bytes, 0);
        if let Some(d) = defs.get(e as usize) {
            let mut out = [0; 32];
            out[lane as usize] = old;
            w.shadow.set_from(class, *d, &out, &from, 1 << lane, w.live);
        }
    }
    if let Some(from) = bad {
        let what = "an atomic on an uninitialised value";
        origin::finding(g, b, w, pc, 1 << lane, &Decides { what, from, written: None });
    }
}

/// A copy arrived: notes its undefined bytes, and their origins.
pub(crate) fn copied(b: &mut Block, at: u64, bytes: u32, undefined: u32, from: u32) {
    if undefined != 0 {
        b.origins.written(at, bytes, from);
    }
    for i in 0..bytes {
        if let Some(cell) = b.shared_written.get_mut(at as usize + i as usize) {
            *cell = u8::from(undefined >> i & 1 == 0);
        }
    }
}

/// Whether all bytes of all lanes in one room are initialised.
///
/// # Safety
/// The lanes were found by `places::find`.
#[inline(always)]
unsafe fn all_written(memory: &Memory, room: Room, at: &[u64; 32], total: u64) -> bool {
    match room {
        Room::Near { written, .. } => {
            macro_rules! windows {
                ($t:ty) => {{
                    let ones = <$t>::from_ne_bytes([1; size_of::<$t>()]);
                    let window = |at: u64| {
                        // SAFETY: there is a byte in this table for each of the room.
                        unsafe { written.add(at as usize).cast::<$t>().read_unaligned() }
                    };
                    at.iter().fold(ones, |all, at| all & window(*at)) == ones
                }};
            }
            match total {
                1 => windows!(u8),
                2 => windows!(u16),
                4 => windows!(u32),
                8 => windows!(u64),
                16 => windows!(u128),
                _ => false,
            }
        }
        Room::Global { known: true, .. } => true,
        Room::Global { .. } => {
            let words = total.div_ceil(4);
            at.iter().fold(0xf, |all, at| {
                // SAFETY: the caller says so.
                (0..words).fold(all, |all, i| all & unsafe { memory.flags(at + 4 * i) })
            }) == 0xf
        }
    }
}

/// [`loaded`], for lanes that lie in one room.
///
/// # Safety
/// The lanes were found by `places::find`.
#[inline(always)]
pub(crate) unsafe fn loaded_together(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>, places: &Places) {
    let Issue { inst, pc, mask, .. } = issue;
    let (mem, room, at) = (&g.code.mems[inst.x as usize], places.room, &places.addresses());
    let guard = inst.guard != NONE && w.shadow.pred(inst.guard >> 1) & mask != 0;
    // SAFETY: the caller says so.
    if !guard && unsafe { all_written(g.memory, room, at, u64::from(mem.bytes * mem.elements)) } {
        let class = if mem.wide { Class::W64 } else { Class::W32 };
        for d in g.code.listed(inst) {
            w.shadow.clean(class, *d, mask, w.live);
        }
        return;
    }
    loaded(g, b, w, inst, pc, mask, &room.generic(g, at));
}

/// [`stored`], for lanes that lie in one room.
///
/// # Safety
/// The lanes were found by `places::find`.
#[inline(always)]
pub(crate) unsafe fn stored_together(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>, places: &Places) {
    let Issue { inst, pc, mask, .. } = issue;
    let (mem, room, at) = (&g.code.mems[inst.x as usize], places.room, &places.addresses());
    let list = g.code.listed(inst);
    let total = u64::from(mem.bytes * mem.elements);
    if w.shadow.any_of(list) {
        return stored(g, b, w, inst, pc, mask, &room.generic(g, at));
    }
    match room {
        Room::Near { written, .. } => {
            for at in at {
                // SAFETY: there is a byte in this table for each of the room.
                unsafe { written.add(*at as usize).write_bytes(1, total as usize) };
            }
        }
        Room::Global { .. } => at.iter().for_each(|at| g.memory.define(*at, total as u32, 0)),
    }
}
