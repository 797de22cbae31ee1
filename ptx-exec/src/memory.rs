//! The memory of the device: one arena of 32-bit words, in which every allocation has an address.
//!
//! The words are atomic, with relaxed accesses. So a race of the kernel reads one value or the other, and is no race of the host. An
//! access of 8 bytes or more is several words; an access of 1 or 2 bytes changes a part of a word. Only blocks that run in parallel could
//! observe this. An entry with atomics, fences or strong accesses runs its blocks on one thread, in turns.

use core::ops::Range;
use std::alloc::{Layout, alloc_zeroed};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use super::error::Error;
use super::tensor::Elements;
use crate::Target;

/// The address of the arena's first byte.
pub(super) const BASE: u64 = 0x7f00_0000_0000;
/// Unused bytes around allocations.
const GAP: u64 = 512;
/// The most that a launch may take, in bytes.
const MOST: u64 = 64 << 30;

/// Memory in one piece.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    pub(super) name: String,
    /// First address, and the one after the last.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) writable: bool,
    /// Its tensors; `None` where all of its bytes count.
    pub(super) elements: Option<Elements>,
    pub(super) is_param: bool,
    /// Whether it is initialised before the launch and read-only.
    pub(super) known: bool,
}

impl Allocation {
    /// Whether it is a variable in constant memory.
    pub(super) fn is_constant(&self) -> bool {
        !self.writable && !self.is_param && self.name.starts_with("const ")
    }
}

/// Types that may be all zeros.
trait Zeros {}
impl Zeros for AtomicU32 {}
impl Zeros for AtomicU8 {}

/// Memory that the system has cleared, which is not touched before its use; `None` if there is too little.
fn zeros<T: Zeros>(n: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(n).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout is not empty.
    let at = unsafe { alloc_zeroed(layout) }.cast::<T>();
    // SAFETY: memory of this allocator, for `n` values, all of them zeros.
    (!at.is_null()).then(|| unsafe { Vec::from_raw_parts(at, n, n) })
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    words: Vec<AtomicU32>,
    /// By ascending address.
    pub(super) allocations: Vec<Allocation>,
    end: u64,
    /// The initialised bytes of each word, as a mask.
    written: Vec<AtomicU8>,
}

impl Memory {
    /// Places an allocation: its address is `modulo` an odd multiple of the alignment where `exact`.
    pub(super) fn place(
        &mut self,
        name: &str,
        bytes: u64,
        align: u64,
        exact: bool,
        writable: bool,
    ) -> Result<usize, Error> {
        let align = align.max(1);
        let unit = if exact { align.checked_mul(2) } else { Some(align) };
        let from = unit.and_then(|unit| self.end.saturating_add(GAP).checked_next_multiple_of(unit.max(4)));
        let start = from.and_then(|f| if exact { f.checked_add(align) } else { Some(f) });
        let end = start.and_then(|s| s.checked_add(bytes)).filter(|e| *e <= MOST);
        let (Some(start), Some(end)) = (start, end) else {
            return Err(Error::launch("the launch needs too much memory")
                .found(format!("{bytes} B for {name}"))
                .required(format!("at most {MOST} B in all")));
        };
        self.end = end;
        self.allocations.push(Allocation {
            name: name.to_owned(),
            start: BASE + start,
            end: BASE + end,
            writable,
            elements: None,
            is_param: false,
            known: false,
        });
        Ok(self.allocations.len() - 1)
    }

    /// Places what follows at this distance from the arena's begin, or behind.
    pub(super) fn skip_to(&mut self, distance: u64) {
        self.end = self.end.max(distance);
    }

    /// Allocates the words, after all placements.
    pub(super) fn allocate(&mut self, checked: bool) -> Result<(), Error> {
        let words = (self.end.saturating_add(GAP) / 4 + 4) as usize;
        let refuse =
            || Error::launch("this machine has too little memory").found(format!("{} B are needed", words * 4));
        self.words = zeros(words).ok_or_else(refuse)?;
        if checked {
            self.written = zeros(words).ok_or_else(refuse)?;
        }
        Ok(())
    }

    pub(super) fn fill(&mut self, allocation: usize, bytes: &[u8], written: bool) {
        self.fill_at(self.allocations[allocation].start, bytes, written);
        let a = &mut self.allocations[allocation];
        a.known = written && !a.writable && bytes.len() as u64 == a.end - a.start;
    }

    /// Bytes of an allocation.
    pub(super) fn fill_at(&mut self, start: u64, bytes: &[u8], written: bool) {
        // Whole words first, where the bytes begin at one.
        let whole = if start.is_multiple_of(4) { bytes.len() / 4 * 4 } else { 0 };
        let first = ((start - BASE) / 4) as usize;
        for (word, value) in self.words[first..].iter_mut().zip(bytes[..whole].chunks_exact(4)) {
            *word.get_mut() = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
        }
        for (i, byte) in bytes.iter().enumerate().skip(whole) {
            let at = start - BASE + i as u64;
            let word = self.words[(at / 4) as usize].get_mut();
            let shift = at % 4 * 8;
            *word = *word & !(0xff << shift) | u32::from(*byte) << shift;
        }
        if written {
            self.mark(start, bytes.len() as u64);
        }
    }

    /// Marks bytes as initialised.
    pub(super) fn mark(&self, address: u64, bytes: u64) {
        if self.written.is_empty() {
            return;
        }
        let (start, end) = (address - BASE, address - BASE + bytes);
        let (first, last) = (start.next_multiple_of(4).min(end), (end / 4 * 4).max(start));
        for word in first / 4..last / 4 {
            self.written[word as usize].store(0xf, Relaxed);
        }
        for at in (start..first).chain(last.max(first)..end) {
            self.written[(at / 4) as usize].fetch_or(1 << (at % 4), Relaxed);
        }
    }

    /// Marks the bytes of an allocation outside of these ranges as initialised.
    pub(super) fn mark_all_but(&self, allocation: usize, unwritten: &[Range<u64>]) {
        let Allocation { start, end, .. } = self.allocations[allocation];
        let mut from = start;
        for range in unwritten {
            self.mark(from, start + range.start - from);
            from = start + range.end;
        }
        self.mark(from, end - from);
    }

    /// The uninitialised bytes of an allocation; none where nobody asked to know them.
    pub(super) fn unwritten(&self, allocation: usize) -> Vec<Range<u64>> {
        let Allocation { start, end, .. } = self.allocations[allocation];
        let mut all: Vec<Range<u64>> = Vec::new();
        let (mut byte, bytes) = (0, if self.written.is_empty() { 0 } else { end - start });
        while byte < bytes {
            // Whole words at once, where all of a word is initialised.
            if (start + byte).is_multiple_of(4) && byte + 4 <= bytes && self.undefined(start + byte, 4) == 0 {
                byte += 4;
                continue;
            }
            if self.undefined(start + byte, 1) != 0 {
                match all.last_mut().filter(|range| range.end == byte) {
                    Some(range) => range.end += 1,
                    None => all.push(byte..byte + 1),
                }
            }
            byte += 1;
        }
        all
    }

    pub(super) fn copy_out(&self, allocation: usize, into: &mut [u8]) {
        let start = self.allocations[allocation].start - BASE;
        let whole = if start.is_multiple_of(4) { into.len() / 4 * 4 } else { 0 };
        for (word, value) in self.words[(start / 4) as usize..].iter().zip(into[..whole].chunks_exact_mut(4)) {
            value.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        for (i, byte) in into.iter_mut().enumerate().skip(whole) {
            let at = start + i as u64;
            *byte = (self.words[(at / 4) as usize].load(Relaxed) >> (at % 4 * 8)) as u8;
        }
    }

    /// Whether bytes of an allocation belong to elements.
    #[inline]
    pub(super) fn inside(&self, allocation: usize, address: u64, bytes: u64) -> bool {
        let a = &self.allocations[allocation];
        a.elements.as_ref().is_none_or(|elements| elements.inside(address - a.start, bytes))
    }

    /// Whether some bytes of an allocation are outside all elements.
    #[inline]
    pub(super) fn has_gaps(&self, allocation: usize) -> bool {
        self.allocations[allocation].elements.as_ref().is_some_and(Elements::has_gaps)
    }

    /// The allocation that an address lies in.
    #[inline]
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let after = self.allocations.partition_point(|a| a.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.allocations[index].end).then_some(index)
    }

    /// The allocation nearest to an address.
    pub(super) fn describe(&self, address: u64) -> Target {
        let distance =
            |a: &&Allocation| if address < a.start { a.start - address } else { address.saturating_sub(a.end - 1) };
        match self.allocations.iter().min_by_key(distance) {
            Some(a) if (BASE..BASE + self.end + (1 << 30)).contains(&address) => {
                let offset = address.wrapping_sub(a.start).cast_signed();
                let buffer = || Target::Buffer { name: a.name.clone(), offset, size: a.end - a.start };
                a.elements.as_ref().and_then(|elements| elements.name(offset)).unwrap_or_else(buffer)
            }
            _ => Target::Address(address),
        }
    }

    /// One word, whose index the caller has checked.
    ///
    /// # Safety
    /// The address lies in an allocation.
    #[inline(always)]
    pub(super) unsafe fn word(&self, address: u64) -> &AtomicU32 {
        debug_assert!(((address - BASE) / 4) < self.words.len() as u64);
        // SAFETY: allocations lie inside of the arena.
        unsafe { self.words.get_unchecked(((address - BASE) >> 2) as usize) }
    }

    /// Reads 1, 2, 4 or 8 bytes at an address that is a multiple of that.
    ///
    /// # Safety
    /// The bytes lie in an allocation.
    #[inline(always)]
    pub(super) unsafe fn read(&self, address: u64, bytes: u32) -> u64 {
        // SAFETY: the caller says so.
        unsafe {
            match bytes {
                4 => u64::from(self.word(address).load(Relaxed)),
                8 => {
                    u64::from(self.word(address).load(Relaxed)) | u64::from(self.word(address + 4).load(Relaxed)) << 32
                }
                _ => {
                    let value = self.word(address).load(Relaxed) >> (address % 4 * 8);
                    u64::from(if bytes == 1 { value & 0xff } else { value & 0xffff })
                }
            }
        }
    }

    /// Writes as [`Memory::read`] reads.
    ///
    /// # Safety
    /// As for [`Memory::read`].
    #[inline(always)]
    pub(super) unsafe fn write(&self, address: u64, bytes: u32, value: u64) {
        // SAFETY: the caller says so.
        unsafe {
            match bytes {
                4 => self.word(address).store(value as u32, Relaxed),
                8 => {
                    self.word(address).store(value as u32, Relaxed);
                    self.word(address + 4).store((value >> 32) as u32, Relaxed);
                }
                _ => {
                    let shift = address % 4 * 8;
                    let mask = (if bytes == 1 { 0xff } else { 0xffff }) << shift;
                    let new = (value as u32) << shift & mask;
                    let update = |old: u32| Some(old & !mask | new);
                    // The neighbours in the word may be another block's.
                    let _ = self.word(address).fetch_update(Relaxed, Relaxed, update);
                }
            }
        }
    }

    /// The base pointer of a read-only allocation, which addresses are added to.
    #[inline(always)]
    pub(super) fn fixed(&self, a: &Allocation) -> Option<*const u8> {
        self.bytes().filter(|_| !a.writable)
    }

    /// The base pointer of all bytes.
    #[inline(always)]
    pub(super) fn bytes(&self) -> Option<*const u8> {
        cfg!(target_endian = "little").then(|| self.words.as_ptr().cast::<u8>().wrapping_sub(BASE as usize))
    }

    /// The initialised bytes of a word.
    ///
    /// # Safety
    /// The address lies in an allocation, and what is written is kept.
    #[inline(always)]
    pub(super) unsafe fn flags(&self, address: u64) -> u8 {
        // SAFETY: as for `word`.
        unsafe { self.written.get_unchecked(((address - BASE) >> 2) as usize).load(Relaxed) }
    }

    /// The uninitialised bytes among these, as a mask of bits.
    pub(super) fn undefined(&self, address: u64, bytes: u32) -> u64 {
        let mut mask = 0;
        if self.written.is_empty() {
            return 0;
        }
        for i in 0..u64::from(bytes) {
            let at = address + i - BASE;
            if self.written[(at / 4) as usize].load(Relaxed) >> (at % 4) & 1 == 0 {
                mask |= 0xff << (8 * i);
            }
        }
        mask
    }

    /// Marks as written the bytes whose bits are all defined, the others as not.
    pub(super) fn define(&self, address: u64, bytes: u32, undefined: u64) {
        if self.written.is_empty() {
            return;
        }
        if undefined == 0 && bytes >= 4 {
            for i in 0..u64::from(bytes / 4) {
                self.written[((address - BASE) / 4 + i) as usize].store(0xf, Relaxed);
            }
            return;
        }
        for i in 0..u64::from(bytes) {
            let at = address + i - BASE;
            let (cell, bit) = (&self.written[(at / 4) as usize], 1 << (at % 4));
            if undefined >> (8 * i) & 0xff == 0 {
                cell.fetch_or(bit, Relaxed);
            } else {
                cell.fetch_and(!bit, Relaxed);
            }
        }
    }
}
