//! Loads and stores of whole warps. If all lanes are in one variable or allocation, no lane is checked by itself.

use super::access::{addresses, extend, fault, few, local_variable, locate, read, write};
use super::vector::{Rows, store as store_row};
use super::warp::{Block, Warp};
use super::{Grid, defined, plain, race};
use crate::code::{Inst, MemInfo};
use crate::memory::Memory;
use crate::types::Space;

/// The memory that holds all lanes of an access.
#[derive(Clone, Copy)]
pub(super) enum Room {
    /// Shared memory of the block, or local memory of the warp: its bytes, and whether each is initialised.
    Near { bytes: *mut u8, written: *mut u8, is_local: bool },
    /// An allocation. `known`: it is initialised and read-only. `fixed`: the base pointer of a read-only allocation, which addresses are
    /// added to.
    Global { known: bool, fixed: Option<*const u8> },
}

impl Room {
    /// The instruction's addresses. Here, local memory has the lanes one after the other.
    pub(super) fn generic(self, g: &Grid<'_>, at: &[u64; 32]) -> [u64; 32] {
        match self {
            Room::Near { is_local: true, .. } => core::array::from_fn(|l| at[l] - l as u64 * g.code.local_bytes),
            _ => *at,
        }
    }
}

impl Room {
    /// Its bytes, if no other thread writes them.
    #[inline(always)]
    pub(super) fn bytes(self) -> Option<*const u8> {
        match self {
            Room::Near { bytes, .. } => Some(bytes.cast_const()),
            Room::Global { fixed, .. } => fixed,
        }
    }
}

/// The pattern of the lanes' addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// One address.
    One,
    /// Each lane's bytes follow those of the lane before.
    Row,
    Any,
}

/// Where an address lies that all lanes are near: first byte, the one after the last, and what it is. In global memory it is the
/// allocation of the last access, or becomes that.
#[inline(always)]
pub(super) fn room(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    space: Space,
    number: u32,
    first: u64,
    write: bool,
) -> Option<(u64, u64, Room)> {
    Some(match space {
        Space::Shared => {
            let v = g.shared.iter().find(|v| first >= v.start && first < v.start + v.bytes && v.rank == w.rank)?;
            let (bytes, written) = (b.shared.as_mut_ptr(), b.shared_written.as_mut_ptr());
            (v.start, v.start + v.bytes, Room::Near { bytes, written, is_local: false })
        }
        Space::Local => {
            let (bytes, written) = (w.local.as_mut_ptr(), w.local_written.as_mut_ptr());
            let v = local_variable(g, first).filter(|v| first - v.start < v.bytes)?;
            (v.start, v.start + v.bytes, Room::Near { bytes, written, is_local: true })
        }
        _ => {
            let near = w.approach(g.memory, first, number)?;
            // SAFETY: it was found there.
            let a = unsafe { g.memory.allocations.get_unchecked(near.index) };
            let fits = match space {
                Space::Global | Space::Generic => !write || a.writable,
                Space::Const => !a.writable && !write,
                Space::Param => a.is_param && !write,
                _ => false,
            };
            if !fits {
                return None;
            }
            (near.start, near.end, Room::Global { known: a.known, fixed: g.memory.fixed(a) })
        }
    })
}

/// Whether all lanes are aligned and in one shared variable, one local variable, or the allocation of the last access.
#[inline(always)]
fn together(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    mem: &MemInfo,
    number: u32,
    at: &mut [u64; 32],
    write: bool,
) -> Option<(Room, Pattern)> {
    let total = u64::from(mem.bytes * mem.elements);
    let first = at[0];
    let (start, end, room) = room(g, b, w, mem.space, number, first, write)?;
    let last = (end - start).checked_sub(total)?;
    // The upper bit of `out` tells that an offset is past the last, which is far from it.
    let (mut out, mut low, mut apart, mut gaps) = (0, 0, 0, 0);
    for (l, at) in at.iter().enumerate() {
        let offset = at.wrapping_sub(start);
        out |= last.wrapping_sub(offset) | offset;
        low |= *at;
        apart |= at ^ first;
        gaps |= at ^ first.wrapping_add(l as u64 * total);
    }
    if out >> 63 != 0 || low & (total - 1) != 0 {
        return None;
    }
    if g.checks.bounds && matches!(room, Room::Global { .. }) && g.memory.has_gaps(w.near.index) {
        let inside = |at: &u64| g.memory.inside(w.near.index, *at, total);
        if !at.iter().all(inside) {
            return None;
        }
    }
    if mem.space == Space::Local {
        for (l, at) in at.iter_mut().enumerate() {
            *at += l as u64 * g.code.local_bytes;
        }
        return Some((room, Pattern::Any));
    }
    let pattern = match (apart, gaps) {
        (0, _) => Pattern::One,
        (_, 0) => Pattern::Row,
        _ => Pattern::Any,
    };
    Some((room, pattern))
}

/// Loads one element of each lane.
///
/// # Safety
/// `d` is a row of the warp; the lanes were found by [`together`].
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
unsafe fn gather(
    memory: &Memory,
    r: Rows,
    (room, pattern): (Room, Pattern),
    at: &[u64; 32],
    offset: u64,
    mem: &MemInfo,
    d: u32,
    mask: u32,
) {
    macro_rules! lanes {
        ($t:ty, $load:expr) => {{
            // SAFETY: the caller says so, of this and of all reads.
            unsafe {
                let d = r.lanes::<$t>(d);
                if pattern == Pattern::One {
                    store_row(d, &[$load(at[0] + offset); 32], mask);
                } else if mask == u32::MAX {
                    for (l, at) in at.iter().enumerate() {
                        *d.add(l) = $load(at + offset);
                    }
                } else {
                    for (l, at) in at.iter().enumerate() {
                        if mask >> l & 1 != 0 {
                            *d.add(l) = $load(at + offset);
                        }
                    }
                }
            }
        }};
    }
    match (room.bytes(), mem.bytes, mem.wide) {
        (Some(bytes), 4, false) => {
            if pattern == Pattern::Row && mem.elements == 1 {
                // SAFETY: as above.
                return unsafe {
                    let row = bytes.wrapping_add(at[0] as usize).cast::<[u32; 32]>();
                    store_row(r.lanes(d), &row.read_unaligned(), mask);
                };
            }
            lanes!(u32, |a: u64| bytes.wrapping_add(a as usize).cast::<u32>().read_unaligned());
        }
        (Some(bytes), 8, true) => {
            lanes!(u64, |a: u64| bytes.wrapping_add(a as usize).cast::<u64>().read_unaligned())
        }
        // SAFETY: as above.
        (bytes, ..) => unsafe { gather_any(memory, bytes, &at.map(|at| at + offset), mem, r.lanes(d), mask) },
    }
}

/// Loads one element of any width of each lane of the mask, from the bytes that are given or from memory that others write.
///
/// # Safety
/// `d` is a row of the warp, of two registers where the element is wide; the elements are there.
#[inline(never)]
pub(super) unsafe fn gather_any(
    memory: &Memory,
    bytes: Option<*const u8>,
    at: &[u64; 32],
    mem: &MemInfo,
    d: *mut u32,
    mask: u32,
) {
    for l in (0..32).filter(|l| mask >> l & 1 != 0) {
        // SAFETY: the caller says so.
        unsafe {
            let value = match bytes {
                Some(bytes) => few(bytes.wrapping_add(at[l] as usize), mem.bytes),
                None => memory.read(at[l], mem.bytes),
            };
            match mem.wide {
                true => *d.cast::<u64>().add(l) = extend(value, mem),
                false => *d.add(l) = extend(value, mem) as u32,
            }
        }
    }
}

/// Stores one element of any width of each lane of the mask.
///
/// # Safety
/// `s` is a row of the warp, of two registers where the element is wide; the elements are there.
#[inline(never)]
pub(super) unsafe fn scatter_any(
    memory: &Memory,
    bytes: Option<*mut u8>,
    at: &[u64; 32],
    mem: &MemInfo,
    s: *const u32,
    mask: u32,
) {
    for l in (0..32).filter(|l| mask >> l & 1 != 0) {
        // SAFETY: the caller says so.
        unsafe {
            let value = if mem.wide { *s.cast::<u64>().add(l) } else { u64::from(*s.add(l)) };
            match bytes {
                Some(bytes) => {
                    let value = value.to_le_bytes();
                    bytes.add(at[l] as usize).copy_from_nonoverlapping(value.as_ptr(), mem.bytes as usize);
                }
                None => memory.write(at[l], mem.bytes, value),
            }
        }
    }
}

/// Stores one element of each lane of the mask.
///
/// # Safety
/// `s` is a row of the warp; the lanes were found by [`together`].
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
unsafe fn scatter(
    memory: &Memory,
    r: Rows,
    (room, pattern): (Room, Pattern),
    at: &[u64; 32],
    offset: u64,
    mem: &MemInfo,
    s: u32,
    mask: u32,
) {
    macro_rules! lanes {
        ($t:ty, $store:expr) => {{
            // SAFETY: the caller says so, of this and of all writes.
            unsafe {
                let s = r.lanes::<$t>(s);
                for (l, at) in at.iter().enumerate() {
                    if mask >> l & 1 != 0 {
                        $store(at + offset, *s.add(l));
                    }
                }
            }
        }};
    }
    match (room, mem.bytes, mem.wide) {
        (Room::Near { bytes, .. }, 4, false) => {
            if pattern == Pattern::Row && mem.elements == 1 && mask == u32::MAX {
                // SAFETY: as above.
                return unsafe {
                    bytes.add(at[0] as usize).cast::<[u32; 32]>().write_unaligned(*r.lanes::<[u32; 32]>(s));
                };
            }
            lanes!(u32, |a: u64, v: u32| bytes.add(a as usize).cast::<u32>().write_unaligned(v));
        }
        (Room::Near { bytes, .. }, 8, true) => {
            lanes!(u64, |a: u64, v: u64| bytes.add(a as usize).cast::<u64>().write_unaligned(v));
        }
        (room, ..) => {
            let bytes = match room {
                Room::Near { bytes, .. } => Some(bytes),
                Room::Global { .. } => None,
            };
            // SAFETY: as above.
            unsafe { scatter_any(memory, bytes, &at.map(|at| at + offset), mem, r.lanes(s), mask) }
        }
    }
}

/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(super) unsafe fn load<const CHECKED: bool>(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    inst: &Inst,
    pc: u32,
    mask: u32,
) {
    // SAFETY: in a `Code` the entry lies in its table (5), and the registers in the list (4).
    let (mem, list) = unsafe {
        let mem = g.code.mems.get_unchecked(inst.x as usize);
        (mem, g.code.list.get_unchecked(inst.list as usize..(inst.list + u32::from(inst.len)) as usize))
    };
    // SAFETY: the caller says so.
    if !(CHECKED || g.checks.bounds) && unsafe { plain::load(g, b, w, r, inst, mem, list, mask) } {
        return;
    }
    // SAFETY: as above.
    let mut at = unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
    let Some((room, pattern)) = together(g, b, w, mem, inst.x, &mut at, false) else {
        // SAFETY: the caller says so.
        return unsafe { load_each(g, b, w, r, inst, pc, mask, &at) };
    };
    for (e, d) in list.iter().enumerate() {
        // SAFETY: the caller says so for the rows, and the lanes lie in the room.
        unsafe { gather(g.memory, r, (room, pattern), &at, e as u64 * u64::from(mem.bytes), mem, *d, mask) };
    }
    if CHECKED && g.checks.init {
        // SAFETY: the lanes lie in the room.
        unsafe { defined::loaded_together(g, b, w, inst, mem, room, pc, mask, &at) };
    }
    if CHECKED && g.checks.races && !matches!(mem.space, Space::Local | Space::Const | Space::Param) {
        let is_global = matches!(room, Room::Global { .. });
        race::together(g, b, w, pc, mask, &at, mem, is_global, pattern, None);
    }
}

/// The slow path, lane by lane, which reports faults.
///
/// # Safety
/// The operands are those of the warp.
#[inline(never)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
unsafe fn load_each(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    inst: &Inst,
    pc: u32,
    mask: u32,
    at: &[u64; 32],
) {
    let mem = &g.code.mems[inst.x as usize];
    let total = u64::from(mem.bytes * mem.elements);
    let list = &g.code.list[inst.list as usize..(inst.list + u32::from(inst.len)) as usize];
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
pub(super) unsafe fn store<const CHECKED: bool>(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    inst: &Inst,
    pc: u32,
    mask: u32,
) {
    // SAFETY: in a `Code` the entry lies in its table (5), and the registers in the list (4).
    let (mem, list) = unsafe {
        let mem = g.code.mems.get_unchecked(inst.x as usize);
        (mem, g.code.list.get_unchecked(inst.list as usize..(inst.list + u32::from(inst.len)) as usize))
    };
    // SAFETY: the caller says so.
    if !(CHECKED || g.checks.bounds) && unsafe { plain::store(g, b, w, r, inst, mem, list, mask) } {
        return;
    }
    // SAFETY: as above.
    let mut at = unsafe { addresses(r, inst.a, mem.address64, mem.offset, mask) };
    let Some((room, pattern)) = together(g, b, w, mem, inst.x, &mut at, true) else {
        // SAFETY: the caller says so.
        return unsafe { store_each(g, b, w, r, inst, pc, mask, &at) };
    };
    if CHECKED && g.checks.races && mem.space != Space::Local {
        let is_global = matches!(room, Room::Global { .. });
        race::together(g, b, w, pc, mask, &at, mem, is_global, pattern, Some(list));
    }
    for (e, s) in list.iter().enumerate() {
        // SAFETY: the caller says so for the rows, and the lanes lie in the room.
        unsafe { scatter(g.memory, r, (room, pattern), &at, e as u64 * u64::from(mem.bytes), mem, *s, mask) };
    }
    if CHECKED && g.checks.init {
        // SAFETY: the lanes lie in the room.
        unsafe { defined::stored_together(g, b, w, inst, mem, room, pc, mask, &at) };
    }
}

/// The slow path, lane by lane, which reports faults.
///
/// # Safety
/// The operands are those of the warp.
#[inline(never)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
unsafe fn store_each(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    inst: &Inst,
    pc: u32,
    mask: u32,
    at: &[u64; 32],
) {
    let mem = &g.code.mems[inst.x as usize];
    let total = u64::from(mem.bytes * mem.elements);
    let list = &g.code.list[inst.list as usize..(inst.list + u32::from(inst.len)) as usize];
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
