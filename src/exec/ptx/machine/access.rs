//! Loads and stores: addresses are checked, always; then bytes move.

use super::vector::{Rows, store as store_row};
use super::warp::{Block, Warp};
use super::{Grid, LOCAL_WINDOW, SHARED_WINDOW, WINDOW, check, race, report};
use crate::exec::ptx::code::{Inst, MatrixInfo, MemInfo, NONE};
use crate::exec::ptx::finding::FindingKind;
use crate::exec::ptx::memory::BASE;
use crate::exec::ptx::types::Space;

/// Where bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An address of the arena.
    Global(u64),
    /// Bytes from the start of the block's shared memory.
    Shared(u64),
    /// Bytes from the start of the warp's local memory.
    Local(u64),
}

/// Finds the bytes of an access, or says what is wrong with it.
#[inline(always)]
pub(super) fn locate(
    g: &Grid<'_>,
    w: &mut Warp,
    space: Space,
    address: u64,
    lane: u32,
    bytes: u64,
    write: bool,
) -> Result<Place, FindingKind> {
    if address & (bytes - 1) != 0 {
        return Err(FindingKind::Misaligned);
    }
    let end = address.wrapping_add(bytes);
    if matches!(space, Space::Global | Space::Generic) && address >= w.near.0 && end <= w.near.1 && end > address {
        let allocation = &g.memory.allocations[w.near_index];
        if (allocation.writable || !write) && !(g.checks.bounds && allocation.elements.is_some()) {
            return Ok(Place::Global(address));
        }
    }
    if space == Space::Shared {
        let at = address & 0xffff_ffff;
        return shared(g, at, bytes);
    }
    elsewhere(g, w, space, address, lane, bytes, write)
}

#[inline(always)]
fn shared(g: &Grid<'_>, at: u64, bytes: u64) -> Result<Place, FindingKind> {
    let end = at + bytes;
    for v in &g.shared {
        if at >= v.start && end <= v.start + v.bytes {
            return Ok(Place::Shared(at));
        }
    }
    Err(FindingKind::OutOfBounds)
}

#[inline(never)]
fn elsewhere(
    g: &Grid<'_>,
    w: &mut Warp,
    space: Space,
    address: u64,
    lane: u32,
    bytes: u64,
    write: bool,
) -> Result<Place, FindingKind> {
    let local = |offset: u64| {
        let room = g.code.local_bytes;
        match offset.checked_add(bytes) {
            Some(end) if end <= room => Ok(Place::Local(u64::from(lane) * room + offset)),
            _ => Err(FindingKind::OutOfBounds),
        }
    };
    match space {
        Space::Local => return local(address),
        Space::Generic if address.wrapping_sub(SHARED_WINDOW) < WINDOW => {
            return shared(g, address - SHARED_WINDOW, bytes);
        }
        Space::Generic if address.wrapping_sub(LOCAL_WINDOW) < WINDOW => return local(address - LOCAL_WINDOW),
        _ => {}
    }
    let index = g.memory.find(address).ok_or(FindingKind::OutOfBounds)?;
    let a = &g.memory.allocations[index];
    let end = address.checked_add(bytes).filter(|end| *end <= a.end).ok_or(FindingKind::OutOfBounds)?;
    let fits = match space {
        Space::Const => !a.writable,
        Space::Param => a.is_param,
        // A parameter has a generic address, and constant memory one that reads alone may use.
        _ => true,
    };
    if !fits {
        return Err(FindingKind::OutOfBounds);
    }
    if g.checks.bounds
        && let Some(elements) = &a.elements
    {
        let inside = |at: u64| elements[((at - a.start) / 64) as usize] >> ((at - a.start) % 64) & 1 != 0;
        if !(address..end).all(inside) {
            return Err(FindingKind::OutOfBounds);
        }
    }
    if write && !a.writable {
        return Err(FindingKind::WriteToInput);
    }
    (w.near, w.near_index) = ((a.start, a.end), index);
    Ok(Place::Global(address))
}

/// Reads 1, 2, 4 or 8 bytes of a place that was located.
#[inline(always)]
pub(super) fn read(g: &Grid<'_>, b: &Block, w: &Warp, place: Place, bytes: u32) -> u64 {
    match place {
        // SAFETY: `locate` found it in an allocation.
        Place::Global(address) => unsafe { g.memory.read(address, bytes) },
        Place::Shared(at) => from_bytes(&b.shared, at, bytes),
        Place::Local(at) => from_bytes(&w.local, at, bytes),
    }
}

#[inline(always)]
fn from_bytes(of: &[u8], at: u64, bytes: u32) -> u64 {
    let at = at as usize;
    match bytes {
        4 => of.get(at..at + 4).and_then(|s| s.try_into().ok()).map_or(0, |s| u64::from(u32::from_le_bytes(s))),
        8 => of.get(at..at + 8).and_then(|s| s.try_into().ok()).map_or(0, u64::from_le_bytes),
        2 => of.get(at..at + 2).and_then(|s| s.try_into().ok()).map_or(0, |s| u64::from(u16::from_le_bytes(s))),
        _ => of.get(at).map_or(0, |s| u64::from(*s)),
    }
}

/// Writes as [`read`] reads.
#[inline(always)]
pub(super) fn write(g: &Grid<'_>, b: &mut Block, w: &mut Warp, place: Place, bytes: u32, value: u64) {
    let into = match place {
        // SAFETY: `locate` found it in an allocation.
        Place::Global(address) => return unsafe { g.memory.write(address, bytes, value) },
        Place::Shared(at) => b.shared.get_mut(at as usize..at as usize + bytes as usize),
        Place::Local(at) => w.local.get_mut(at as usize..at as usize + bytes as usize),
    };
    if let Some(into) = into {
        into.copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
    }
}

impl Place {
    #[inline(always)]
    pub(super) fn plus(self, bytes: u64) -> Place {
        match self {
            Place::Global(at) => Place::Global(at + bytes),
            Place::Shared(at) => Place::Shared(at + bytes),
            Place::Local(at) => Place::Local(at + bytes),
        }
    }
}

/// The addresses of an access, a lane each.
///
/// # Safety
/// `a` is a row of the warp, of 64 bits or 32.
#[inline(always)]
pub(super) unsafe fn addresses(r: Rows, a: u32, wide: bool, offset: i64) -> [u64; 32] {
    // SAFETY: the caller says so.
    unsafe {
        if wide {
            (*r.lanes::<[u64; 32]>(a)).map(|v| v.wrapping_add(offset as u64))
        } else {
            (*r.lanes::<[u32; 32]>(a)).map(|v| u64::from(v.wrapping_add(offset as u32)))
        }
    }
}

/// `ld.param` of an entry: the same for all lanes.
///
/// # Safety
/// The operands are those of the warp; the offset was checked.
pub(super) unsafe fn load_param(g: &Grid<'_>, r: Rows, inst: &Inst, mask: u32) {
    let mem = &g.code.mems[inst.x as usize];
    for e in 0..u32::from(inst.len) {
        let d = g.code.list[(inst.list + e) as usize];
        if d == NONE {
            continue;
        }
        let value = extend(from_bytes(&g.params, mem.offset as u64 + u64::from(e * mem.bytes), mem.bytes), mem);
        // SAFETY: the caller says so.
        unsafe {
            if mem.wide {
                store_row(r.lanes(d), &[value; 32], mask);
            } else {
                store_row(r.lanes(d), &[value as u32; 32], mask);
            }
        }
    }
}

/// A value in its register: sign-extended or zero-extended to the register's width.
#[inline(always)]
fn extend(value: u64, mem: &MemInfo) -> u64 {
    if !mem.signed {
        return value;
    }
    let value = match mem.bytes {
        1 => value as i8 as u64,
        2 => value as i16 as u64,
        4 => value as i32 as u64,
        _ => value,
    };
    if mem.bits >= 64 { value } else { value & ((1 << mem.bits) - 1) }
}

/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(super) unsafe fn load(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let mem = &g.code.mems[inst.x as usize];
    let r = w.rows();
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, mem.address64, mem.offset) };
    let total = u64::from(mem.bytes * mem.elements);
    // SAFETY: lowering made the list.
    let list = unsafe { g.code.list.get_unchecked(inst.list as usize..(inst.list + u32::from(inst.len)) as usize) };
    if let Some(room) = together(g, w, mem, &at, mask, total, false) {
        for (e, d) in list.iter().enumerate().filter(|(_, d)| **d != NONE) {
            // SAFETY: the caller says so for the rows; all active lanes lie in one variable or allocation.
            unsafe { gather(g, b, r, room, &at, e as u64 * u64::from(mem.bytes), mem, *d, mask) };
        }
        after_load(g, b, w, inst, pc, mask, &at);
        return;
    }
    let mut left = mask;
    let plain = mem.bytes == 4 && !mem.wide;
    while left != 0 {
        let l = left.trailing_zeros();
        left &= left - 1;
        let place = match locate(g, w, mem.space, at[l as usize], l, total, false) {
            Ok(place) => place,
            Err(kind) => {
                fault(g, b, w, kind, pc, l, at[l as usize], mem, false);
                continue;
            }
        };
        for (e, d) in list.iter().enumerate() {
            if *d == NONE {
                continue;
            }
            let value = read(g, b, w, place.plus(e as u64 * u64::from(mem.bytes)), mem.bytes);
            // SAFETY: the caller says so.
            unsafe {
                if plain {
                    *r.lanes::<u32>(*d).add(l as usize) = value as u32;
                } else if mem.wide {
                    *r.lanes::<u64>(*d).add(l as usize) = extend(value, mem);
                } else {
                    *r.lanes::<u32>(*d).add(l as usize) = extend(value, mem) as u32;
                }
            }
        }
    }
    after_load(g, b, w, inst, pc, mask, &at);
}

/// What the checks want to know of a load.
#[inline(always)]
fn after_load(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32, at: &[u64; 32]) {
    if g.checks.init {
        check::loaded(g, b, w, inst, pc, mask, at);
    }
    if g.checks.races {
        race::accesses(g, b, w, pc, mask, at, &g.code.mems[inst.x as usize], false, None);
    }
}

/// Where all lanes of an access lie.
#[derive(Clone, Copy)]
enum Room {
    Shared,
    Global,
}

/// Whether all active lanes lie, aligned, in one variable of shared memory or in the allocation of the last access: then no
/// lane has to be looked at on its own.
#[inline(always)]
fn together(g: &Grid<'_>, w: &Warp, mem: &MemInfo, at: &[u64; 32], mask: u32, total: u64, write: bool) -> Option<Room> {
    let first = at[mask.trailing_zeros() as usize & 31];
    let (start, end, room) = match mem.space {
        Space::Shared => {
            let v = g.shared.iter().find(|v| first >= v.start && first < v.start + v.bytes)?;
            (v.start, v.start + v.bytes, Room::Shared)
        }
        Space::Global | Space::Generic if first >= w.near.0 && first < w.near.1 => {
            let a = &g.memory.allocations[w.near_index];
            if write && !a.writable || g.checks.bounds && a.elements.is_some() {
                return None;
            }
            (w.near.0, w.near.1, Room::Global)
        }
        _ => return None,
    };
    let last = (end - start).checked_sub(total)?;
    let mut bad = 0_u32;
    for (l, address) in at.iter().enumerate() {
        let out = address.wrapping_sub(start) > last || address & (total - 1) != 0;
        bad |= u32::from(out) << l;
    }
    (bad & mask == 0).then_some(room)
}

/// Loads one element of each active lane.
///
/// # Safety
/// `d` is a row of the warp; the lanes of the mask were found by [`together`].
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
unsafe fn gather(
    g: &Grid<'_>,
    b: &Block,
    r: Rows,
    room: Room,
    at: &[u64; 32],
    offset: u64,
    mem: &MemInfo,
    d: u32,
    mask: u32,
) {
    let shared = b.shared.as_ptr();
    macro_rules! lanes {
        ($t:ty, $load:expr) => {
            for l in 0..32 {
                if mask >> l & 1 != 0 {
                    // SAFETY: the caller says so.
                    unsafe { *r.lanes::<$t>(d).add(l) = $load(at[l] + offset) };
                }
            }
        };
    }
    // SAFETY of all reads: the caller says so; variables lie inside of the block's shared memory.
    match (room, mem.bytes, mem.wide) {
        (Room::Shared, 4, false) => lanes!(u32, |a: u64| shared.add(a as usize).cast::<u32>().read_unaligned()),
        (Room::Shared, 8, true) => lanes!(u64, |a: u64| shared.add(a as usize).cast::<u64>().read_unaligned()),
        (Room::Global, 4, false) => lanes!(u32, |a: u64| g.memory.read(a, 4) as u32),
        (Room::Global, 8, true) => lanes!(u64, |a: u64| g.memory.read(a, 8)),
        (Room::Shared, bytes, true) => lanes!(u64, |a: u64| extend(from_bytes(&b.shared, a, bytes), mem)),
        (Room::Shared, bytes, false) => lanes!(u32, |a: u64| extend(from_bytes(&b.shared, a, bytes), mem) as u32),
        (Room::Global, bytes, true) => lanes!(u64, |a: u64| extend(g.memory.read(a, bytes), mem)),
        (Room::Global, bytes, false) => lanes!(u32, |a: u64| extend(g.memory.read(a, bytes), mem) as u32),
    }
}

/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(super) unsafe fn store(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let mem = &g.code.mems[inst.x as usize];
    let r = w.rows();
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, mem.address64, mem.offset) };
    let total = u64::from(mem.bytes * mem.elements);
    // SAFETY: lowering made the list.
    let list = unsafe { g.code.list.get_unchecked(inst.list as usize..(inst.list + u32::from(inst.len)) as usize) };
    if g.checks.races {
        race::accesses(g, b, w, pc, mask, &at, mem, true, Some(list));
    }
    if let Some(room) = together(g, w, mem, &at, mask, total, true) {
        for (e, s) in list.iter().enumerate() {
            let offset = e as u64 * u64::from(mem.bytes);
            for l in (0..32).filter(|l| mask >> l & 1 != 0) {
                // SAFETY: the caller says so.
                let value = unsafe {
                    if mem.wide { *r.lanes::<u64>(*s).add(l) } else { u64::from(*r.lanes::<u32>(*s).add(l)) }
                };
                let place = match room {
                    Room::Shared => Place::Shared(at[l] + offset),
                    Room::Global => Place::Global(at[l] + offset),
                };
                write(g, b, w, place, mem.bytes, value);
            }
        }
        if g.checks.init {
            check::stored(g, b, w, inst, pc, mask, &at);
        }
        return;
    }
    let mut left = mask;
    while left != 0 {
        let l = left.trailing_zeros();
        left &= left - 1;
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
        check::stored(g, b, w, inst, pc, mask, &at);
    }
}

#[inline(never)]
#[allow(clippy::too_many_arguments, reason = "what the finding says")]
pub(super) fn fault(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    kind: FindingKind,
    pc: u32,
    lane: u32,
    address: u64,
    mem: &MemInfo,
    write: bool,
) {
    let bytes = u64::from(mem.bytes * mem.elements);
    report::access(g, b, w, kind, pc, lane, mem.space, address, bytes, write);
}

/// Which lanes' generic addresses lie in a space.
pub(super) fn is_space(g: &Grid<'_>, addresses: &[u64; 32], space: u32) -> u32 {
    let inside = |address: u64| {
        let shared = address.wrapping_sub(SHARED_WINDOW) < WINDOW;
        let local = address.wrapping_sub(LOCAL_WINDOW) < WINDOW;
        let allocation = g.memory.find(address).map(|i| &g.memory.allocations[i]);
        match space {
            s if s == Space::Shared as u32 => shared,
            s if s == Space::Local as u32 => local,
            s if s == Space::Param as u32 => allocation.is_some_and(|a| a.is_param),
            s if s == Space::Const as u32 => {
                allocation.is_some_and(|a| !a.writable && !a.is_param && a.name.starts_with("const "))
            }
            _ => !shared && !local && address >= BASE,
        }
    };
    addresses.iter().enumerate().fold(0, |m, (l, a)| m | u32::from(inside(*a)) << l)
}

/// The rows of 16 bytes that the matrices of `ldmatrix` and `stmatrix` lie in: lane 8 m + i has the address of row i of matrix m.
fn matrix_rows(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    info: &MatrixInfo,
    pc: u32,
    at: &[u64; 32],
    write: bool,
) -> Vec<Option<u64>> {
    (0..info.count * 8)
        .map(|l| {
            let address = at[l as usize];
            match locate(g, w, Space::Shared, address, l, 16, write) {
                Ok(Place::Shared(place)) => Some(place),
                Ok(_) => None,
                Err(kind) => {
                    fault(g, b, w, kind, pc, l, address, &info.mem, write);
                    None
                }
            }
        })
        .collect()
}

/// # Safety
/// The operands are those of the warp.
pub(super) unsafe fn ldmatrix(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.matrices[inst.x as usize];
    let r = w.rows();
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, info.mem.address64, info.mem.offset) };
    let rows = matrix_rows(g, b, w, &info, pc, &at, false);
    for m in 0..info.count {
        let d = g.code.list[(inst.list + m) as usize];
        let element = |row: usize, column: u64| {
            rows[m as usize * 8 + row].map_or(0, |at| from_bytes(&b.shared, at + 2 * column, 2)) as u32
        };
        // Lane l holds columns 2(l%4) and the next of row l/4.
        let out: [u32; 32] = core::array::from_fn(|l| {
            let (i, j) = (l / 4, 2 * (l as u64 % 4));
            if info.transposed {
                element(j as usize, i as u64) | element(j as usize + 1, i as u64) << 16
            } else {
                element(i, j) | element(i, j + 1) << 16
            }
        });
        if d != NONE {
            // SAFETY: the caller says so.
            unsafe { store_row(r.lanes(d), &out, mask) };
        }
    }
    let lanes = if info.count == 4 { mask } else { mask & ((1 << (8 * info.count)) - 1) };
    if g.checks.init {
        check::matrix_loaded(g, b, w, inst, pc, mask, &rows);
    }
    if g.checks.races {
        race::accesses(g, b, w, pc, lanes, &at, &info.mem, false, None);
    }
}

/// # Safety
/// The operands are those of the warp.
pub(super) unsafe fn stmatrix(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.matrices[inst.x as usize];
    let r = w.rows();
    // SAFETY: the caller says so.
    let at = unsafe { addresses(r, inst.a, info.mem.address64, info.mem.offset) };
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
        check::matrix_stored(b, w, g, inst, &rows);
    }
}
