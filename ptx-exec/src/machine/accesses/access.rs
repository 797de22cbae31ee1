//! Address checks, lane by lane, in every mode. Accesses of whole warps are in `bulk`.

use crate::FindingKind;
use crate::code::{Inst, LocalVariable, MemInfo};
use crate::machine::reports::report;
use crate::machine::threads::warp::{Allocated, Block, Warp};
use crate::machine::vectors::vector::{Rows, store as store_row};
use crate::machine::{Grid, LOCAL_WINDOW, SHARED_WINDOW, WINDOW};
use crate::memory::BASE;
use crate::types::Space;

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An address of the arena.
    Global(u64),
    /// Bytes from the start of the block's shared memory.
    Shared(u64),
    /// Bytes from the start of the warp's local memory.
    Local(u64),
}

/// Finds the place of an access, or reports its fault.
#[inline(always)]
pub(crate) fn locate(
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
    if matches!(space, Space::Global | Space::Generic) && w.near.has(address) && end <= w.near.end {
        let allocation = &g.memory.allocations[w.near.index];
        if (allocation.writable || !write) && !(g.checks.bounds && g.memory.has_gaps(w.near.index)) {
            return Ok(Place::Global(address));
        }
    }
    if space == Space::Shared {
        let at = address & 0xffff_ffff;
        return shared(g, at, bytes, Some(w.rank));
    }
    elsewhere(g, w, space, address, lane, bytes, write)
}

#[inline(always)]
pub(crate) fn shared(g: &Grid<'_>, at: u64, bytes: u64, rank: Option<u32>) -> Result<Place, FindingKind> {
    let end = at + bytes;
    for v in &g.shared {
        if at >= v.start && end <= v.start + v.bytes && rank.is_none_or(|rank| rank == v.rank) {
            return Ok(Place::Shared(at));
        }
    }
    Err(FindingKind::OutOfBounds)
}

/// The last variable of local memory that begins at this byte or ahead of it.
pub(crate) fn local_variable<'g>(g: &'g Grid<'_>, at: u64) -> Option<&'g LocalVariable> {
    let locals = &g.code.locals;
    locals.get(locals.partition_point(|v| v.start <= at).checked_sub(1)?)
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
        let end = offset.checked_add(bytes).ok_or(FindingKind::OutOfBounds)?;
        match local_variable(g, offset) {
            Some(v) if end <= v.start + v.bytes => Ok(Place::Local(u64::from(lane) * g.code.local_bytes + offset)),
            _ => Err(FindingKind::OutOfBounds),
        }
    };
    match space {
        Space::Local => return local(address),
        Space::Generic if address.wrapping_sub(SHARED_WINDOW) < WINDOW => {
            return shared(g, address - SHARED_WINDOW, bytes, None);
        }
        Space::SharedCluster => return shared(g, address & 0xffff_ffff, bytes, None),
        Space::Generic if address.wrapping_sub(LOCAL_WINDOW) < WINDOW => return local(address - LOCAL_WINDOW),
        _ => {}
    }
    // Parameters and constants are named by 32 bits, too.
    let short = matches!(space, Space::Const | Space::Param) && address >> 32 == 0;
    let address = if short { address | BASE } else { address };
    let index = g.memory.find(address).ok_or(FindingKind::OutOfBounds)?;
    let a = &g.memory.allocations[index];
    address.checked_add(bytes).filter(|end| *end <= a.end).ok_or(FindingKind::OutOfBounds)?;
    let fits = match space {
        Space::Const => !a.writable,
        Space::Param => a.is_param,
        // A parameter has a generic address, and constant memory one that reads alone may use.
        _ => true,
    };
    if !fits {
        return Err(FindingKind::OutOfBounds);
    }
    if g.checks.bounds && !g.memory.inside(index, address, bytes) {
        return Err(FindingKind::OutOfBounds);
    }
    if write && !a.writable {
        return Err(FindingKind::WriteToInput);
    }
    w.near = Allocated { start: a.start, end: a.end, index };
    Ok(Place::Global(address))
}

/// Reads 1, 2, 4 or 8 bytes of a place that was located.
#[inline(always)]
pub(crate) fn read(g: &Grid<'_>, b: &Block, w: &Warp, place: Place, bytes: u32) -> u64 {
    match place {
        // SAFETY: `locate` found it in an allocation.
        Place::Global(address) => unsafe { g.memory.read(address, bytes) },
        Place::Shared(at) => from_bytes(&b.shared, at, bytes),
        Place::Local(at) => from_bytes(&w.local, at, bytes),
    }
}

#[inline(always)]
pub(crate) fn from_bytes(of: &[u8], at: u64, bytes: u32) -> u64 {
    let at = at as usize;
    match bytes {
        4 => of.get(at..at + 4).and_then(|s| s.try_into().ok()).map_or(0, |s| u64::from(u32::from_le_bytes(s))),
        8 => of.get(at..at + 8).and_then(|s| s.try_into().ok()).map_or(0, u64::from_le_bytes),
        2 => of.get(at..at + 2).and_then(|s| s.try_into().ok()).map_or(0, |s| u64::from(u16::from_le_bytes(s))),
        _ => of.get(at).map_or(0, |s| u64::from(*s)),
    }
}

/// Reads 1, 2, 4 or 8 bytes.
///
/// # Safety
/// They are there.
#[inline(always)]
pub(crate) unsafe fn few(at: *const u8, bytes: u32) -> u64 {
    // SAFETY: the caller says so.
    unsafe {
        match bytes {
            1 => u64::from(at.read()),
            2 => u64::from(at.cast::<u16>().read_unaligned()),
            4 => u64::from(at.cast::<u32>().read_unaligned()),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// Writes as [`read`] reads.
#[inline(always)]
pub(crate) fn write(g: &Grid<'_>, b: &mut Block, w: &mut Warp, place: Place, bytes: u32, value: u64) {
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
    pub(crate) fn plus(self, bytes: u64) -> Place {
        match self {
            Place::Global(at) => Place::Global(at + bytes),
            Place::Shared(at) => Place::Shared(at + bytes),
            Place::Local(at) => Place::Local(at + bytes),
        }
    }
}

/// The addresses of an access by lane. Lanes outside the mask get the address of the first lane in it.
///
/// # Safety
/// `a` is a row of the warp, of 64 bits or 32.
#[inline(always)]
pub(crate) unsafe fn addresses(r: Rows, a: u32, wide: bool, offset: i64, mask: u32) -> [u64; 32] {
    let mut at = [0; 32];
    // SAFETY: the caller says so.
    unsafe {
        if wide {
            let row = r.lanes::<u64>(a);
            for (l, at) in at.iter_mut().enumerate() {
                *at = (*row.add(l)).wrapping_add(offset as u64);
            }
        } else {
            let row = r.lanes::<u32>(a);
            for (l, at) in at.iter_mut().enumerate() {
                *at = u64::from((*row.add(l)).wrapping_add(offset as u32));
            }
        }
    }
    if mask != u32::MAX {
        let first = at[mask.trailing_zeros() as usize & 31];
        for (l, at) in at.iter_mut().enumerate() {
            *at = if mask >> l & 1 != 0 { *at } else { first };
        }
    }
    at
}

/// `ld.param` of an entry: the same for all lanes.
///
/// # Safety
/// The operands are those of the warp; the offset was checked.
#[inline(always)]
pub(crate) unsafe fn load_param(g: &Grid<'_>, r: Rows, inst: &Inst, mask: u32) {
    let mem = &g.code.mems[inst.x as usize];
    for e in 0..u32::from(inst.len) {
        let d = g.code.list[(inst.list + e) as usize];
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
pub(crate) fn extend(value: u64, mem: &MemInfo) -> u64 {
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

#[inline(never)]
#[allow(clippy::too_many_arguments, reason = "what the finding says")]
pub(crate) fn fault(
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

/// The lanes with generic addresses in a space.
pub(crate) fn is_space(g: &Grid<'_>, rank: u32, addresses: &[u64; 32], space: u32) -> u32 {
    let inside = |address: u64| {
        let shared = address.wrapping_sub(SHARED_WINDOW) < WINDOW;
        let local = address.wrapping_sub(LOCAL_WINDOW) < WINDOW;
        let allocation = g.memory.find(address).map(|i| &g.memory.allocations[i]);
        match space {
            s if s == Space::Shared as u32 => {
                let own = SHARED_WINDOW + u64::from(rank) * g.shared_stride;
                shared && address.wrapping_sub(own) < g.shared_stride.max(1)
            }
            s if s == Space::SharedCluster as u32 => shared,
            s if s == Space::Local as u32 => local,
            s if s == Space::Param as u32 => allocation.is_some_and(|a| a.is_param),
            s if s == Space::Const as u32 => allocation.is_some_and(|a| a.is_constant()),
            _ => !shared && !local && address >= BASE,
        }
    };
    addresses.iter().enumerate().fold(0, |m, (l, a)| m | u32::from(inside(*a)) << l)
}
