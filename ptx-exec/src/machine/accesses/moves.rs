//! Moves the elements of a whole warp between registers and one room.

use super::access::{extend, few};
use super::places::{Pattern, Places, Room};
use crate::code::MemInfo;
use crate::machine::vectors::vector::{Rows, store as store_row};
use crate::memory::Memory;

/// Loads for all lanes of a mask.
///
/// # Safety
/// The list has rows of the warp, for this access, whose lanes have these places.
#[inline(always)]
pub(crate) unsafe fn load(memory: &Memory, r: Rows, mem: &MemInfo, list: &[u32], lanes: &Places, mask: u32) {
    let bytes = lanes.room.bytes().map(|bytes| bytes.wrapping_add(lanes.start as usize));
    if let (Some(bytes), 4, 4, false, u32::MAX, [d, e, f, h]) = (bytes, mem.bytes, mem.elements, mem.wide, mask, list)
        && lanes.pattern != Pattern::One
    {
        // SAFETY: the caller says so of the rows; the lanes lie in the room.
        unsafe { quads(bytes, &lanes.at, [r.lanes(*d), r.lanes(*e), r.lanes(*f), r.lanes(*h)]) };
        return;
    }
    if let (Some(bytes), 8, 2, true, u32::MAX, [d, e]) = (bytes, mem.bytes, mem.elements, mem.wide, mask, list)
        && lanes.pattern != Pattern::One
    {
        // SAFETY: as above.
        unsafe { pairs(bytes, &lanes.at, [r.lanes(*d), r.lanes(*e)]) };
        return;
    }
    for (e, d) in list.iter().enumerate() {
        let offset = e * mem.bytes as usize;
        macro_rules! lanes {
            ($t:ty, $one:expr) => {
                gather::<$t>(r.lanes(*d), lanes, offset, mask, $one)
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
                    gather_any(memory, bytes, &at, mem, r.lanes(*d), mask);
                }
            }
        }
    }
}

/// Loads one element of each lane.
///
/// # Safety
/// `d` is a row of 32 lanes.
#[inline(always)]
unsafe fn gather<T: Copy>(d: *mut T, lanes: &Places, offset: usize, mask: u32, one: impl Fn(usize) -> T) {
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

/// Stores for all lanes of a mask.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(crate) unsafe fn store(memory: &Memory, r: Rows, mem: &MemInfo, list: &[u32], lanes: &Places, mask: u32) {
    let is_row = lanes.pattern == Pattern::Row && mask == u32::MAX && mem.elements == 1;
    for (e, s) in list.iter().enumerate() {
        let offset = e * mem.bytes as usize;
        macro_rules! lanes {
            ($t:ty, $one:expr) => {
                scatter::<$t>(r.lanes(*s), &lanes.at, offset, mask, $one)
            };
        }
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

/// Loads one element of any width of each lane of the mask, from the bytes that are given or from memory that others write.
///
/// # Safety
/// `d` is a row of the warp, of two registers where the element is wide; the elements are there.
#[inline(never)]
unsafe fn gather_any(memory: &Memory, bytes: Option<*const u8>, at: &[u64; 32], mem: &MemInfo, d: *mut u32, mask: u32) {
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
unsafe fn scatter_any(
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
