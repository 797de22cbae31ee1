//! Loads and stores of whole warps when only addresses are checked. One pass over the addresses shows that all lanes are aligned and in
//! one variable or allocation, and finds their pattern.

use super::Grid;
use super::bulk::{Pattern, Room, gather_any, room, scatter_any};
use super::vector::{Rows, store as store_row};
use super::warp::{Block, Warp};
use crate::code::{CopyInfo, Inst, MemInfo};
use crate::memory::Memory;
use crate::types::Space;

/// Where the lanes of an access lie: distances from the first byte of a room.
struct Lanes {
    room: Room,
    start: u64,
    at: [u32; 32],
    pattern: Pattern,
}

/// The request of an access.
#[derive(Clone, Copy)]
struct Asked {
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
    fn new(inst: &Inst, mem: &MemInfo, write: bool) -> Asked {
        let MemInfo { space, address64: wide, offset, .. } = *mem;
        Asked { space, row: inst.a, wide, offset, bytes: mem.bytes * mem.elements, number: inst.x, write }
    }
}

/// Finds the places of an access, if all are in one room. Lanes outside the mask get the place of the first lane in it.
///
/// # Safety
/// It asks for a row of the warp that holds addresses.
#[inline(always)]
unsafe fn find(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, asked: Asked, mask: u32) -> Option<Lanes> {
    let Asked { space, row, wide, offset, bytes: total, number, write } = asked;
    if space == Space::Local {
        return None;
    }
    let mut at = [0_u32; 32];
    macro_rules! look {
        ($t:ty) => {{
            // SAFETY: the caller says so.
            let row = unsafe { &*r.lanes::<[$t; 32]>(row) };
            let own = row[mask.trailing_zeros() as usize & 31];
            let first = own.wrapping_add(offset as $t);
            let (start, end, room) = room(g, b, w, space, number, u64::from(first), write)?;
            let last = (end - start).checked_sub(u64::from(total)).filter(|last| last >> 31 == 0)? as u32;
            let away = (offset as $t).wrapping_sub(start as $t);
            let mut far = 0;
            for (l, at) in at.iter_mut().enumerate() {
                let address = if mask >> l & 1 != 0 { row[l] } else { own };
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
    let pattern = match (apart, gaps) {
        (0, _) => Pattern::One,
        (_, 0) => Pattern::Row,
        _ => Pattern::Any,
    };
    Some(Lanes { room, start, at, pattern })
}

/// Loads for all lanes of a mask if they are in one room. Returns whether they are.
///
/// # Safety
/// The operands are those of the warp.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(super) unsafe fn load(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    inst: &Inst,
    mem: &MemInfo,
    list: &[u32],
    mask: u32,
) -> bool {
    // SAFETY: the caller says so.
    let Some(lanes) = (unsafe { find(g, b, w, r, Asked::new(inst, mem, false), mask) }) else { return false };
    let bytes = lanes.room.bytes().map(|bytes| bytes.wrapping_add(lanes.start as usize));
    if let (Some(bytes), 4, 4, false, u32::MAX, [d, e, f, h]) = (bytes, mem.bytes, mem.elements, mem.wide, mask, list)
        && lanes.pattern != Pattern::One
    {
        // SAFETY: the caller says so of the rows; the lanes lie in the room.
        unsafe { quads(bytes, &lanes.at, [r.lanes(*d), r.lanes(*e), r.lanes(*f), r.lanes(*h)]) };
        return true;
    }
    if let (Some(bytes), 8, 2, true, u32::MAX, [d, e]) = (bytes, mem.bytes, mem.elements, mem.wide, mask, list)
        && lanes.pattern != Pattern::One
    {
        // SAFETY: as above.
        unsafe { pairs(bytes, &lanes.at, [r.lanes(*d), r.lanes(*e)]) };
        return true;
    }
    for (e, d) in list.iter().enumerate() {
        let offset = e * mem.bytes as usize;
        macro_rules! lanes {
            ($t:ty, $one:expr) => {
                gather::<$t>(r.lanes(*d), &lanes, offset, mask, $one)
            };
        }
        // SAFETY: the caller says so of the rows; all of these lie in the room.
        unsafe {
            match (bytes, mem.bytes, mem.wide) {
                (Some(bytes), 4, false) => match lanes.pattern {
                    Pattern::Row if mem.elements == 1 => {
                        let row = bytes.add(lanes.at[0] as usize).cast::<[u32; 32]>();
                        store_row(r.lanes(*d), &row.read_unaligned(), mask);
                    }
                    _ => lanes!(u32, |at: usize| bytes.add(at).cast::<u32>().read_unaligned()),
                },
                (Some(bytes), 8, true) => match lanes.pattern {
                    Pattern::Row if mem.elements == 1 => {
                        let row = bytes.add(lanes.at[0] as usize).cast::<[u64; 32]>();
                        store_row(r.lanes(*d), &row.read_unaligned(), mask);
                    }
                    _ => lanes!(u64, |at: usize| bytes.add(at).cast::<u64>().read_unaligned()),
                },
                (Some(bytes), 2, false) if !mem.signed => match lanes.pattern {
                    Pattern::Row if mem.elements == 1 => {
                        let row = bytes.add(lanes.at[0] as usize).cast::<[u16; 32]>().read_unaligned();
                        store_row(r.lanes(*d), &row.map(u32::from), mask);
                    }
                    _ => lanes!(u32, |at: usize| u32::from(bytes.add(at).cast::<u16>().read_unaligned())),
                },
                (bytes, ..) => {
                    let at = lanes
                        .at
                        .map(|at| u64::from(at) + offset as u64 + if bytes.is_some() { 0 } else { lanes.start });
                    gather_any(g.memory, bytes, &at, mem, r.lanes(*d), mask);
                }
            }
        }
    }
    true
}

/// Loads one element of each lane.
///
/// # Safety
/// `d` is a row of 32 lanes.
#[inline(always)]
unsafe fn gather<T: Copy>(d: *mut T, lanes: &Lanes, offset: usize, mask: u32, one: impl Fn(usize) -> T) {
    // SAFETY: the caller says so.
    unsafe {
        if lanes.pattern == Pattern::One {
            store_row(d, &[one(lanes.at[0] as usize + offset); 32], mask);
        } else if mask == u32::MAX {
            for (l, at) in lanes.at.iter().enumerate() {
                *d.add(l) = one(*at as usize + offset);
            }
        } else {
            store_row(d, &lanes.at.map(|at| one(at as usize + offset)), mask);
        }
    }
}

/// Loads four words of each lane: four lanes are a square, which is turned.
///
/// # Safety
/// The words of each lane are there, and 32 lanes at each `d`.
#[inline(always)]
unsafe fn quads(bytes: *const u8, at: &[u32; 32], d: [*mut u32; 4]) {
    for first in (0..32).step_by(4) {
        // SAFETY: the caller says so.
        let of: [[u32; 4]; 4] =
            core::array::from_fn(|l| unsafe { bytes.add(at[first + l] as usize).cast::<[u32; 4]>().read_unaligned() });
        for (e, d) in d.iter().enumerate() {
            // SAFETY: as above.
            unsafe { d.add(first).cast::<[u32; 4]>().write_unaligned([of[0][e], of[1][e], of[2][e], of[3][e]]) };
        }
    }
}

/// Loads two words of 64 bits of each lane: two lanes are a square, which is turned.
///
/// # Safety
/// The words of each lane are there, and 32 lanes at each `d`.
#[inline(always)]
unsafe fn pairs(bytes: *const u8, at: &[u32; 32], d: [*mut u64; 2]) {
    for first in (0..32).step_by(2) {
        // SAFETY: the caller says so.
        let of: [[u64; 2]; 2] =
            core::array::from_fn(|l| unsafe { bytes.add(at[first + l] as usize).cast::<[u64; 2]>().read_unaligned() });
        for (e, d) in d.iter().enumerate() {
            // SAFETY: as above.
            unsafe { d.add(first).cast::<[u64; 2]>().write_unaligned([of[0][e], of[1][e]]) };
        }
    }
}

/// The addresses of a copy from global to shared memory: destinations of the lanes in `mask`, sources of the lanes in `read`. The last
/// result tells whether the source is read-only. `None` unless the sources lie in one room, and the destinations too.
///
/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(super) unsafe fn copied(
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

/// Stores for all lanes of a mask if they are in one room. Returns whether they are.
///
/// # Safety
/// The operands are those of the warp.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(super) unsafe fn store(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    r: Rows,
    inst: &Inst,
    mem: &MemInfo,
    list: &[u32],
    mask: u32,
) -> bool {
    // SAFETY: the caller says so.
    let Some(lanes) = (unsafe { find(g, b, w, r, Asked::new(inst, mem, true), mask) }) else { return false };
    let is_row = lanes.pattern == Pattern::Row && mask == u32::MAX && mem.elements == 1;
    for (e, s) in list.iter().enumerate() {
        let offset = e * mem.bytes as usize;
        macro_rules! lanes {
            ($t:ty, $one:expr) => {
                scatter::<$t>(r.lanes(*s), &lanes.at, offset, mask, $one)
            };
        }
        let memory = g.memory;
        // SAFETY: the caller says so of the rows; all of these lie in the room.
        unsafe {
            match (lanes.room, mem.bytes, mem.wide) {
                (Room::Near { bytes, .. }, n, wide) => {
                    let bytes = bytes.add(lanes.start as usize);
                    match (n, wide) {
                        (4, false) if is_row => {
                            let row = *r.lanes::<[u32; 32]>(*s);
                            bytes.add(lanes.at[0] as usize).cast::<[u32; 32]>().write_unaligned(row);
                        }
                        (4, false) => lanes!(u32, |at, v| bytes.add(at).cast::<u32>().write_unaligned(v)),
                        (8, true) => lanes!(u64, |at, v| bytes.add(at).cast::<u64>().write_unaligned(v)),
                        (2, false) => lanes!(u32, |at, v| bytes.add(at).cast::<u16>().write_unaligned(v as u16)),
                        _ => {
                            let at = lanes.at.map(|at| (at as usize + offset) as u64);
                            scatter_any(memory, Some(bytes), &at, mem, r.lanes(*s), mask);
                        }
                    }
                }
                (_, 2, false) if is_row => halves(memory, lanes.start + u64::from(lanes.at[0]), &*r.lanes(*s)),
                (_, 4, false) => lanes!(u32, |at, v| memory.write(lanes.start + at as u64, 4, u64::from(v))),
                _ => {
                    let at = lanes.at.map(|at| lanes.start + u64::from(at) + offset as u64);
                    scatter_any(memory, None, &at, mem, r.lanes(*s), mask);
                }
            }
        }
    }
    true
}

/// Stores one element of each lane of a mask.
///
/// # Safety
/// `s` is a row of 32 lanes.
#[inline(always)]
unsafe fn scatter<T: Copy>(s: *const T, at: &[u32; 32], offset: usize, mask: u32, one: impl Fn(usize, T)) {
    // SAFETY: the caller says so.
    unsafe {
        if mask == u32::MAX {
            for (l, at) in at.iter().enumerate() {
                one(*at as usize + offset, *s.add(l));
            }
            return;
        }
        let mut left = mask;
        while left != 0 {
            let l = left.trailing_zeros() as usize;
            left &= left - 1;
            one(at[l] as usize + offset, *s.add(l));
        }
    }
}

/// Stores 32 values of 16 bits, one after the other: both halves of a word at once.
///
/// # Safety
/// They lie in an allocation.
#[inline(always)]
unsafe fn halves(memory: &Memory, start: u64, values: &[u32; 32]) {
    // SAFETY: the caller says so.
    unsafe {
        let inner = if start.is_multiple_of(4) {
            &values[..]
        } else {
            memory.write(start, 2, u64::from(values[0]));
            memory.write(start + 62, 2, u64::from(values[31]));
            &values[1..31]
        };
        for (at, pair) in (start.next_multiple_of(4)..).step_by(4).zip(inner.chunks_exact(2)) {
            memory.write(at, 4, u64::from(pair[0] & 0xffff | pair[1] << 16));
        }
    }
}
