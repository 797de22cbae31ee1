//! The accesses of a memory, and their update by a new access.
//!
//! Each word keeps the accesses that later ones must be ordered after, with the epochs of their warps: the last write, and the reads
//! since. Most words need no list: see [`Word`](super::cell::Word).

use rustc_hash::FxHashMap;

use super::cell::{Cell, New};
use super::order::{Met, WarpClock};
use super::pages::{Form, Pages};
use super::paths::Paths;
use super::release::Released;
use super::tails::WideAccess;
use super::word::{Access, Flaw, both_strong, ordered, stands_for};
use crate::machine::threads::warp::Warp;

/// The accesses of a memory.
#[derive(Debug, Default)]
pub(crate) struct Races {
    pub(crate) pages: Pages,
    pub(crate) paths: Paths,
    /// The knowledge that releases have left at addresses.
    pub(crate) released: Released,
    /// The knowledge that barriers have collected.
    pub(crate) barriers: FxHashMap<u32, Met>,
}

/// The most accesses that a word keeps. A counter of all blocks has an unordered one for each warp.
const MOST: usize = 64;

/// Drops the oldest strong access of a word with too many.
#[cold]
fn forget_one(cell: &mut Cell) {
    if let Some(oldest) = cell.iter().position(|a| a.strong.is_some()) {
        cell.remove(oldest);
    }
}

/// An earlier access that is unordered with one of these lanes.
pub(crate) struct Conflict {
    pub(crate) lanes: u32,
    pub(crate) address: u64,
    pub(crate) with: Access,
    pub(crate) flaw: Flaw,
}

impl Conflict {
    /// Whether the other access is a plain store of another instruction. Two stores of the same value do not conflict.
    pub(crate) fn is_with_store(&self, w: &Warp) -> bool {
        let a = &self.with;
        let here = a.warp == w.clock.id && a.epoch == w.clock.own;
        a.write && !here && self.flaw == Flaw::Unordered && !a.in_flight && a.actor == 0 && a.strong.is_none()
    }
}

/// Notes an access; the result is an earlier one that nothing orders before it.
pub(crate) fn touch(
    cell: &mut Cell,
    paths: &mut Paths,
    w: &WarpClock,
    new: Access,
    check: bool,
) -> Option<(Access, Flaw)> {
    debug_assert!(new.lanes != 0, "an access without lanes is one that is gone");
    let (mut conflict, mut merged, mut hidden) = (None, false, false);
    // As a slice: a list's own index looks each time whether it lies on the heap.
    let (all, mut i) = (cell.as_mut_slice(), 0);
    while i < all.len() {
        let a = &mut all[i];
        i += 1;
        let overlaps = a.bytes & new.bytes != 0;
        if a.is_plain_read() && new.is_plain_read() {
            // Reads do not conflict. One stands for those of its warp before it.
            if !merged && a.takes(&new) {
                merged = true;
            } else if a.is_of(new.warp)
                && a.bytes & !new.bytes == 0
                && w.knows(new.warp, a.lanes, a.epoch, new.lanes)
                && !a.leave(new.warp)
            {
                (a.lanes, hidden) = (0, true);
            }
            continue;
        }
        let same = a.warp == new.warp
            && a.epoch == new.epoch
            && a.pc == new.pc
            && a.write == new.write
            && a.in_flight == new.in_flight
            && a.actor == new.actor
            && a.strong == new.strong
            && a.bytes == new.bytes;
        let both_strong = both_strong(w, a, &new);
        if both_strong && w.lessons.is_none() {
            // They are no race, whatever orders them.
            if same && !merged {
                a.lanes |= new.lanes;
                merged = true;
                continue;
            }
            if !stands_for(&new, a) {
                continue;
            }
        }
        let (before, flaw) = ordered(w, a, &new);
        if let Err(by) = before
            && check
            && overlaps
            && (a.write || new.write)
            && !both_strong
        {
            conflict = conflict.or(Some((Access { warp: by, ..*a }, flaw)));
        } else if check && overlaps && (a.write || new.write) {
            paths.note(a, new.pc, w);
        }
        if same && !merged {
            a.lanes |= new.lanes;
            merged = true;
            continue;
        }
        // The new access may hide earlier ones: a write hides all, a read hides only reads. A strong access hides only strong accesses that
        // are ordered before it. Other strong accesses do not race with it, but may race with a later access.
        let covered = a.bytes & !new.bytes == 0 && stands_for(&new, a);
        let is_before = before.is_ok() || new.strong.is_none() && new.write;
        if covered && !a.in_flight && is_before && (new.write || !a.write) {
            (a.lanes, hidden) = (0, true);
        }
    }
    if hidden {
        cell.retain(|a| a.lanes != 0);
    }
    if !merged {
        if cell.len() >= MOST {
            forget_one(cell);
        }
        cell.push(new);
    }
    conflict
}

impl Races {
    /// Nobody has accessed anything; the memory stays, for what will.
    pub(crate) fn forget(&mut self) {
        self.pages.forget();
        self.released.clear();
        self.barriers.clear();
    }

    /// Accesses of a region by other blocks than `number`, with their places.
    pub(crate) fn of_others(&mut self, start: u64, bytes: u64, number: u32) -> impl Iterator<Item = (u64, Access)> {
        self.pages.of_bytes(start, bytes).filter(move |(_, a)| a.warp / 32 != number)
    }

    /// Notes an access by lanes from `first` on, whose bytes lie in one form, if nothing has to be said of it: whether it did.
    #[inline(always)]
    pub(crate) fn note_row(
        &mut self,
        w: &WarpClock,
        new: &mut New<'_>,
        start: u64,
        form: Form,
        first: usize,
        access: &Access,
    ) -> bool {
        let access = Access { lanes: 1 << first, bytes: 0xf, ..*access };
        let Some((row, lists)) = self.pages.row(start / 4, form) else { return false };
        if new.note(row, access.lanes) {
            return true;
        }
        // A lane of the same warp accesses the same place.
        let is_fine = |a: &Access| !a.write && !access.write || ordered(w, a, &access).0.is_ok();
        lists.edit(row, |row| {
            let all = row.iter().all(is_fine);
            if all {
                touch(row, &mut self.paths, w, access, false);
            }
            all
        })
    }

    /// Notes an access by lanes of bytes that may lie in several words.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the parts of an access")]
    pub(crate) fn note(
        &mut self,
        w: &WarpClock,
        new: Option<&mut New<'_>>,
        start: u64,
        bytes: u32,
        lanes: u32,
        access: &Access,
        check: bool,
    ) -> Option<Conflict> {
        let mut done = 0;
        // No page ends in the midst of so many bytes.
        if let Some(new) = new
            && start.is_multiple_of(u64::from(bytes))
        {
            done = match bytes {
                4 => self.pages.note::<1>(new, start / 4, lanes),
                8 => self.pages.note::<2>(new, start / 4, lanes),
                16 => self.pages.note::<4>(new, start / 4, lanes),
                _ => 0,
            };
            if done as u32 * 4 == bytes {
                return None;
            }
        }
        self.note_rest(w, start + 4 * done as u64, start + u64::from(bytes), Access { lanes, ..*access }, check)
    }

    /// Notes an access by asynchronous operations of pieces, each up to its first word that conflicts: these conflicts, each with the
    /// bytes of its piece.
    pub(crate) fn note_wide(
        &mut self,
        w: &WarpClock,
        pieces: impl Iterator<Item = (u64, u32)>,
        access: &Access,
    ) -> Vec<(u32, Conflict)> {
        self.pages.tidy();
        let mut wide = w.lessons.is_none().then(|| WideAccess::new(w, access));
        let mut conflicts = Vec::new();
        for (start, bytes) in pieces {
            let end = start + u64::from(bytes);
            let found = match &mut wide {
                Some(wide) if start % 4 == 0 && end.is_multiple_of(4) => {
                    let found = self.pages.note_wide(wide, &mut self.paths, start / 4..end / 4);
                    let conflict =
                        |(word, (with, flaw))| Conflict { lanes: access.lanes, address: word * 4, with, flaw };
                    found.map(conflict)
                }
                _ => self.note_rest(w, start, end, *access, true),
            };
            conflicts.extend(found.map(|conflict| (bytes, conflict)));
        }
        conflicts
    }

    /// The same, word by word, and as lists.
    #[inline(never)]
    fn note_rest(&mut self, w: &WarpClock, start: u64, end: u64, access: Access, check: bool) -> Option<Conflict> {
        let mut at = start;
        while at < end {
            let word = at / 4 * 4;
            let next = (word + 4).min(end);
            let mask = ((1_u16 << (next - word)) - 1) as u8 & !(((1_u16 << (at - word)) - 1) as u8);
            let (words, lists) = self.pages.words(word / 4, 1);
            let part = Access { bytes: mask, ..access };
            let found = lists.edit(&mut words[0], |cell| touch(cell, &mut self.paths, w, part, check));
            if let Some((with, flaw)) = found {
                return Some(Conflict { lanes: access.lanes, address: at, with, flaw });
            }
            at = next;
        }
        None
    }

    /// Copies of a lane have arrived, from now on they are writes: of the row of asynchronous operations that is given, or of the warp.
    pub(crate) fn arrive(&mut self, w: &WarpClock, new: Option<&New<'_>>, start: u64, bytes: u32, access: Access) {
        for word in start / 4..(start + u64::from(bytes)).div_ceil(4) {
            let (words, lists) = self.pages.words(word, 1);
            if new.is_some_and(|new| new.arrive(&mut words[0], access.lanes)) {
                continue;
            }
            lists.edit(&mut words[0], |cell| {
                for a in cell.iter_mut().filter(|a| a.in_flight && a.warp == w.id && a.pc == access.pc) {
                    a.lanes &= !access.lanes;
                }
                cell.retain(|a| a.lanes != 0);
                touch(cell, &mut self.paths, w, Access { bytes: 0xf, ..access }, false);
            });
        }
    }
}

#[cfg(test)]
mod tests;
