//! Finds the places of a whole warp's access. One pass over the addresses shows that all lanes are aligned and in one variable or
//! allocation, and finds their pattern.

use super::access::local_variable;
use crate::code::{CopyInfo, Inst, MemInfo};
use crate::machine::Grid;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::vectors::vector::Rows;
use crate::types::Space;

/// The memory that holds all lanes of an access.
#[derive(Clone, Copy)]
pub(crate) enum Room {
    /// Shared memory of the block, or local memory of the warp: its bytes, and whether each is initialised.
    Near { bytes: *mut u8, written: *mut u8, is_local: bool },
    /// An allocation. `known`: it is initialised and read-only. `fixed`: the base pointer of a read-only allocation, which addresses are
    /// added to.
    Global { known: bool, fixed: Option<*const u8> },
}

impl Room {
    /// The instruction's addresses. Here, local memory has the lanes one after the other.
    pub(crate) fn generic(self, g: &Grid<'_>, at: &[u64; 32]) -> [u64; 32] {
        match self {
            Room::Near { is_local: true, .. } => core::array::from_fn(|l| at[l] - l as u64 * g.code.local_bytes),
            _ => *at,
        }
    }

    /// Its bytes, if no other thread writes them.
    #[inline(always)]
    pub(crate) fn bytes(self) -> Option<*const u8> {
        match self {
            Room::Near { bytes, .. } => Some(bytes.cast_const()),
            Room::Global { fixed, .. } => fixed,
        }
    }
}

/// The pattern of the lanes' addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// One address.
    One,
    /// Each lane's bytes follow those of the lane before.
    Row,
    Any,
}

impl Pattern {
    /// `apart` is 0 where all addresses are one; `gaps` is 0 where they follow each other.
    #[inline(always)]
    fn of(apart: u32, gaps: u32) -> Pattern {
        match (apart, gaps) {
            (0, _) => Pattern::One,
            (_, 0) => Pattern::Row,
            _ => Pattern::Any,
        }
    }
}

/// Where an address lies that all lanes are near: first byte, the one after the last, and what it is. In global memory it is the
/// allocation of the last access, or becomes that.
#[inline(always)]
pub(crate) fn room(
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

/// Where the lanes of an access lie: distances from a byte of a room.
pub(crate) struct Places {
    pub(crate) room: Room,
    pub(crate) start: u64,
    pub(crate) at: [u32; 32],
    pub(crate) pattern: Pattern,
}

impl Places {
    /// The address of each lane in its room.
    pub(crate) fn addresses(&self) -> [u64; 32] {
        self.at.map(|at| self.start + u64::from(at))
    }
}

/// The request of an access.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    space: Space,
    /// The row of addresses, whether they have 64 bits, and their offset.
    row: u32,
    wide: bool,
    offset: i64,
    /// Bytes of a lane.
    bytes: u32,
    /// The number of the instruction, among those of its kind.
    number: u32,
    write: bool,
}

impl Asked {
    pub(crate) fn new(inst: &Inst, mem: &MemInfo, write: bool) -> Asked {
        let MemInfo { space, address64: wide, offset, .. } = *mem;
        Asked { space, row: inst.a, wide, offset, bytes: mem.bytes * mem.elements, number: inst.x, write }
    }
}

/// Finds the places of an access, if all are in one room, which is not local memory. Lanes outside the mask get the place of the first
/// lane in it. Gaps of tensors do not count.
///
/// # Safety
/// It asks for a row of the warp that holds addresses.
#[inline(always)]
pub(crate) unsafe fn find(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    asked: Asked,
    mask: u32,
) -> Option<Places> {
    let Asked { space, row, wide, offset, bytes: total, number, write } = asked;
    let mut at = [0_u32; 32];
    macro_rules! look {
        ($t:ty) => {{
            // SAFETY: the caller says so.
            let row = unsafe { &*r.lanes::<[$t; 32]>(row) };
            let own = row[mask.trailing_zeros() as usize & 31];
            let first = own.wrapping_add(offset as $t);
            let (mut start, end, room) = room(g, b, w, space, number, u64::from(first), write)?;
            let mut last = (end - start).checked_sub(u64::from(total))?;
            if last >> 31 != 0 {
                // Distances have 31 bits. Lanes farther from each other are served one by one.
                start = start.max(u64::from(first).saturating_sub(1 << 30));
                last = (end - start).checked_sub(u64::from(total))?.min((1 << 31) - 1);
            }
            let last = last as u32;
            let away = (offset as $t).wrapping_sub(start as $t);
            let mut far = 0;
            for (l, at) in at.iter_mut().enumerate() {
                let address = if mask == u32::MAX || mask >> l & 1 != 0 { row[l] } else { own };
                let distance = address.wrapping_add(away);
                far |= distance;
                *at = distance as u32;
            }
            if far >> 31 != 0 {
                return None;
            }
            (room, start, last)
        }};
    }
    let (room, start, last) = if wide { look!(u64) } else { look!(u32) };
    let first = at[0];
    let (mut past, mut low, mut apart, mut gaps) = (0, 0, 0, 0);
    for (l, at) in at.iter().enumerate() {
        past |= last.wrapping_sub(*at);
        low |= at.wrapping_add(start as u32);
        apart |= at ^ first;
        gaps |= at ^ first.wrapping_add(l as u32 * total);
    }
    if past >> 31 != 0 || low & (total - 1) != 0 {
        return None;
    }
    Some(Places { room, start, at, pattern: Pattern::of(apart, gaps) })
}

/// The same in local memory, where each lane has its own, and where lanes may lie in gaps of tensors.
///
/// # Safety
/// As for [`find`].
#[inline(always)]
pub(crate) unsafe fn find_any(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    asked: Asked,
    mask: u32,
) -> Option<Places> {
    // SAFETY: the caller says so.
    let mut places = unsafe { find(g, b, w, r, asked, mask) }?;
    if asked.space == Space::Local {
        places.pattern = Pattern::Any;
        for (l, at) in places.at.iter_mut().enumerate() {
            *at += l as u32 * g.code.local_bytes as u32;
        }
    } else if g.checks.bounds && matches!(places.room, Room::Global { .. }) && g.memory.has_gaps(w.near.index) {
        let total = u64::from(asked.bytes);
        let inside = |at: &u64| g.memory.inside(w.near.index, *at, total);
        return places.addresses().iter().all(inside).then_some(places);
    }
    Some(places)
}

/// The addresses of a copy from global to shared memory: destinations of the lanes in `mask`, sources of the lanes in `read`. The last
/// result tells whether the source is read-only. `None` unless the sources lie in one room, and the destinations too.
///
/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(crate) unsafe fn copied(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    inst: &Inst,
    info: &CopyInfo,
    [mask, read]: [u32; 2],
) -> Option<([u32; 32], [u64; 32], bool)> {
    let CopyInfo { bytes, to, from, to64, .. } = *info;
    let number = inst.x;
    let to = Asked { space: Space::Shared, row: inst.a, wide: to64, offset: to, bytes, number, write: true };
    let from = Asked { space: Space::Global, row: inst.b, wide: true, offset: from, bytes, number, write: false };
    // SAFETY: the caller says so.
    let to = unsafe { find(g, b, w, r, to, mask) }?;
    if read == 0 {
        return Some((to.at.map(|at| at + to.start as u32), [0; 32], false));
    }
    // SAFETY: as above.
    let from = unsafe { find(g, b, w, r, from, read) }?;
    let is_fixed = from.room.bytes().is_some();
    Some((to.at.map(|at| at + to.start as u32), from.at.map(|at| u64::from(at) + from.start), is_fixed))
}
