//! Loads of whole warps from one address, or from one row: as most are, and without an address for each lane.

use super::Grid;
use super::access::extend;
use super::bulk::{Pattern, Room, few, room};
use super::vector::{Rows, store};
use super::warp::{Block, Warp};
use crate::exec::ptx::code::{MemInfo, NONE};
use crate::exec::ptx::types::Space;

/// The first lane's address, and how the others follow.
///
/// # Safety
/// `a` is a row of the warp that holds addresses.
#[inline(always)]
unsafe fn pattern(r: Rows, a: u32, mem: &MemInfo, total: u64) -> (u64, Pattern) {
    macro_rules! look {
        ($t:ty) => {{
            // SAFETY: the caller says so.
            let row = unsafe { &*r.lanes::<[$t; 32]>(a) };
            let (first, mut apart, mut gaps) = (row[0], 0, 0);
            for (l, at) in row.iter().enumerate() {
                apart |= at ^ first;
                gaps |= at ^ first.wrapping_add(l as $t * total as $t);
            }
            let pattern = match (apart, gaps) {
                (0, _) => Pattern::One,
                (_, 0) => Pattern::Row,
                _ => Pattern::Any,
            };
            (u64::from(first.wrapping_add(mem.offset as $t)), pattern)
        }};
    }
    if mem.address64 { look!(u64) } else { look!(u32) }
}

/// Loads what all 32 lanes ask for, where they ask for one place, or for a row of single elements, that lies in one variable or
/// allocation; whether they do.
///
/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(super) unsafe fn load(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    a: u32,
    mem: &MemInfo,
    list: &[u32],
) -> bool {
    let (bytes, total) = (u64::from(mem.bytes), u64::from(mem.bytes * mem.elements));
    // SAFETY: the caller says so.
    let (first, pattern) = unsafe { pattern(r, a, mem, total) };
    if pattern == Pattern::Any || pattern == Pattern::Row && mem.elements != 1 || mem.space == Space::Local {
        return false;
    }
    let span = if pattern == Pattern::One { total } else { 32 * total };
    let Some((start, end, room)) = room(g, b, w, mem.space, first, false) else { return false };
    if first < start || first & (total - 1) != 0 || end - first.min(end) < span {
        return false;
    }
    let read = |at: u64| {
        // SAFETY: it lies in the room.
        let value = unsafe {
            match room {
                Room::Near { bytes, .. } => few(bytes.add(at as usize), mem.bytes),
                Room::Global { .. } => g.memory.read(at, mem.bytes),
            }
        };
        extend(value, mem)
    };
    for (e, d) in list.iter().enumerate().filter(|(_, d)| **d != NONE) {
        // SAFETY: the caller says so of the row; the lanes lie in the room.
        unsafe {
            match (pattern, mem.wide) {
                (Pattern::One, true) => store(r.lanes(*d), &[read(first + e as u64 * bytes); 32], u32::MAX),
                (Pattern::One, false) => store(r.lanes(*d), &[read(first + e as u64 * bytes) as u32; 32], u32::MAX),
                (_, wide) => match (room, bytes) {
                    (Room::Near { bytes, .. }, 4) if !wide => {
                        store(r.lanes(*d), &bytes.add(first as usize).cast::<[u32; 32]>().read_unaligned(), u32::MAX);
                    }
                    (Room::Near { bytes, .. }, 8) if wide => {
                        store(r.lanes(*d), &bytes.add(first as usize).cast::<[u64; 32]>().read_unaligned(), u32::MAX);
                    }
                    (Room::Global { .. }, 4) if !wide => {
                        row(r.lanes(*d), |l| g.memory.read(first + 4 * l, 4) as u32);
                    }
                    (Room::Global { .. }, 8) if wide => row(r.lanes(*d), |l| g.memory.read(first + 8 * l, 8)),
                    (_, n) if wide => row(r.lanes(*d), |l| read(first + n * l)),
                    (_, n) => row(r.lanes(*d), |l| read(first + n * l) as u32),
                },
            }
        }
    }
    true
}

/// # Safety
/// 32 lanes lie at `d`.
#[inline(always)]
unsafe fn row<T>(d: *mut T, value: impl Fn(u64) -> T) {
    for l in 0..32 {
        // SAFETY: the caller says so.
        unsafe { d.add(l).write(value(l as u64)) };
    }
}
