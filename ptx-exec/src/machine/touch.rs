//! The accesses of a memory, and what an access does to them.
//!
//! Each word keeps the accesses that later ones have to be ordered after, an access with the epoch of its warp: the last write,
//! and who has read since. Most words say that without a list: see [`Word`](super::cell::Word).

use rustc_hash::FxHashMap;

use super::cell::{Cell, New};
use super::order::{Met, WarpClock};
use super::pages::{Form, Pages};
use super::paths::Paths;
use super::release::Released;
use super::warp::Warp;
use super::word::{Access, Flaw, both_strong, ordered, stands_for};

/// The accesses of a memory.
#[derive(Debug, Default)]
pub(in super::super) struct Races {
    pub(super) pages: Pages,
    pub(super) paths: Paths,
    /// What releases have left at an address.
    pub(super) released: Released,
    /// What barriers have collected.
    pub(super) barriers: FxHashMap<u32, Met>,
}

/// Accesses of a word that are kept: a counter of all blocks has one of each warp that nothing orders.
const MOST: usize = 64;

/// The oldest strong access goes where a word has very many.
#[cold]
fn forget_one(cell: &mut Cell) {
    if let Some(oldest) = cell.iter().position(|a| a.strong.is_some()) {
        cell.remove(oldest);
    }
}

/// An earlier access that nothing orders before one of these lanes.
pub(super) struct Conflict {
    pub(super) lanes: u32,
    pub(super) address: u64,
    pub(super) with: Access,
    pub(super) flaw: Flaw,
}

impl Conflict {
    /// Whether it is with a plain store of another instruction: of two that store one value, it does not matter which is the last.
    pub(super) fn is_with_store(&self, w: &Warp) -> bool {
        let a = &self.with;
        let here = a.warp == w.clock.id && a.epoch == w.clock.own;
        a.write && !here && self.flaw == Flaw::Unordered && !a.in_flight && a.actor == 0 && a.strong.is_none()
    }
}

/// Notes an access; the result is an earlier one that nothing orders before it.
pub(super) fn touch(
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
        let (before, flaw) = ordered(w, a, &new);
        if let Err(by) = before
            && check
            && overlaps
            && (a.write || new.write)
            && !both_strong(w, a, &new)
        {
            conflict = conflict.or(Some((Access { warp: by, ..*a }, flaw)));
        } else if check && overlaps && (a.write || new.write) {
            paths.note(a, new.pc, w);
        }
        let same = a.warp == new.warp
            && a.epoch == new.epoch
            && a.pc == new.pc
            && a.write == new.write
            && a.in_flight == new.in_flight
            && a.actor == new.actor
            && a.strong == new.strong
            && a.bytes == new.bytes;
        if same && !merged {
            a.lanes |= new.lanes;
            merged = true;
            continue;
        }
        // What this one covers: a write hides all before it, a read only earlier reads. A strong access hides strong ones alone that are
        // ordered before it: others are no race with it, and may be one with what is ordered before or after neither.
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
    pub(super) fn forget(&mut self) {
        self.pages.forget();
        self.released.clear();
        self.barriers.clear();
    }

    /// Accesses of a region by other blocks than `number`, with their places.
    pub(super) fn of_others(&mut self, start: u64, bytes: u64, number: u32) -> impl Iterator<Item = (u64, Access)> {
        self.pages.of_bytes(start, bytes).filter(move |(_, a)| a.warp / 32 != number)
    }

    /// Notes an access by lanes from `first` on, whose bytes lie in one form, if nothing has to be said of it: whether it did.
    #[inline(always)]
    pub(super) fn note_row(
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
    pub(super) fn note(
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
    pub(super) fn arrive(&mut self, w: &WarpClock, new: Option<&New<'_>>, start: u64, bytes: u32, access: Access) {
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
mod tests {
    use super::super::Random;
    use super::super::cell::{Cell, New};
    use super::super::order::{Clock, WarpClock};
    use super::super::pages::Form;
    use super::super::paths::Paths;
    use super::super::word::{Access, Flaw};
    use super::{Races, touch};
    use crate::code::Scope;

    /// Words of the memory: more than a page, so that rows lie in two.
    const WORDS: u64 = 160;

    /// What is kept as lists alone, word by word: what the other is to stand for.
    struct Plain(Vec<Cell>);

    impl Plain {
        /// What `Races::note` says, by the first word that conflicts.
        fn note(
            &mut self,
            w: &WarpClock,
            start: u64,
            bytes: u32,
            a: Access,
            check: bool,
        ) -> Option<(u64, Access, Flaw)> {
            let (mut at, end) = (start, start + u64::from(bytes));
            while at < end {
                let next = (at / 4 * 4 + 4).min(end);
                let part = (at..next).fold(0, |mask, byte| mask | 1 << (byte % 4));
                let cell = &mut self.0[(at / 4) as usize];
                let found = touch(cell, &mut Paths::default(), w, Access { bytes: part, ..a }, check);
                if let Some((with, flaw)) = found {
                    return Some((at, with, flaw));
                }
                at = next;
            }
            None
        }

        fn arrive(&mut self, w: &WarpClock, start: u64, bytes: u32, a: Access) {
            for cell in &mut self.0[(start / 4) as usize..((start + u64::from(bytes)) / 4) as usize] {
                for other in cell.iter_mut().filter(|o| o.in_flight && o.warp == w.id && o.pc == a.pc) {
                    other.lanes &= !a.lanes;
                }
                cell.retain(|a| a.lanes != 0);
            }
            self.note(w, start, bytes, a, false);
        }
    }

    struct Both {
        fast: Races,
        plain: Plain,
        clocks: Vec<WarpClock>,
        /// Copies that have not arrived: warp, instruction, lane, place, bytes.
        flying: Vec<(usize, u32, u32, u64, u32)>,
    }

    impl Both {
        fn new() -> Both {
            // Three warps of one block, one of another.
            let clocks = [0, 1, 2, 32].map(|id| WarpClock::of(true, id, 1, u32::MAX, false));
            let plain = Plain(vec![Cell::new(); WORDS as usize]);
            Both { fast: Races::default(), plain, clocks: clocks.into(), flying: Vec::new() }
        }

        fn note(&mut self, warp: usize, start: u64, bytes: u32, a: Access) {
            let w = &self.clocks[warp];
            let mut new = New::of(w, &a);
            let found = self.fast.note(w, new.as_mut(), start, bytes, a.lanes, &a, true);
            let said = |(at, with, flaw): (u64, Access, Flaw)| (at, Access { also: 0, ..with }, flaw);
            let found = found.map(|c| said((c.address, c.with, c.flaw)));
            assert_eq!(found, self.plain.note(w, start, bytes, a, true).map(said), "{a:?}");
        }

        /// All lanes, one after the other.
        fn note_row(&mut self, warp: usize, start: u64, form: Form, first: usize, a: Access) {
            let w = &self.clocks[warp];
            let mut new = New::of(w, &a).expect("a plain access");
            let is_whole = self.fast.note_row(w, &mut new, start, form, first, &a);
            for l in 0..u64::from(form.lanes) {
                let (a, at) = (Access { lanes: 1 << first << l, ..a }, start + l * u64::from(form.stride));
                let unit = form.unit.into();
                if is_whole {
                    assert_eq!(self.plain.note(&self.clocks[warp], at, unit, a, true), None);
                } else {
                    self.note(warp, at, unit, a);
                }
            }
        }

        /// Warps of the block meet, or lanes of one.
        fn order(&mut self, warp: usize, random: &mut Random) {
            match random.below(4) {
                0 | 1 => {
                    let mut all = Clock::default();
                    self.clocks[..3].iter().for_each(|w| all.join(&w.publish()));
                    for w in &mut self.clocks[..3] {
                        w.seen.join(&all);
                        w.meet(u32::MAX, 0);
                    }
                }
                2 => self.clocks[warp].meet(u32::MAX, 0),
                _ => self.clocks[warp].meet(0xff, 0),
            }
        }

        fn step(&mut self, random: &mut Random) {
            let warp = [0, 0, 1, 1, 2, 3][random.below(6)];
            let (id, epoch, pc) = (self.clocks[warp].id, self.clocks[warp].own, random.below(3) as u32);
            let a = Access { lanes: 1 << random.below(3), ..Access::at(id, epoch, pc, random.below(3) == 0) };
            let bytes = [4, 4, 4, 8, 16, 16, 2, 1][random.below(8)];
            let start = (200 + random.below(64) as u64) / u64::from(bytes) * u64::from(bytes);
            match random.below(12) {
                0..4 => self.note(warp, start, bytes, a),
                4 => self.note(warp, 208, 16, Access { lanes: 0b11, write: false, ..a }),
                5 | 6 => {
                    let forms = [(4, 4), (4, 4), (8, 8), (16, 16), (2, 2), (4, 8), (8, 16), (8, 16), (4, 16)];
                    let (unit, stride) = forms[random.below(forms.len())];
                    let lanes = [8, 16, 32, 32][random.below(4)];
                    let first = random.below(32 / usize::from(lanes)) * usize::from(lanes);
                    self.note_row(warp, [0, 8, 64, 128][random.below(4)], Form { lanes, unit, stride }, first, a);
                }
                7 => {
                    self.flying.push((warp, pc, a.lanes, 208, 16));
                    self.note(warp, 208, 16, Access { write: true, in_flight: true, ..a });
                }
                8 if !self.flying.is_empty() => {
                    let (warp, pc, lanes, at, bytes) = self.flying.swap_remove(random.below(self.flying.len()));
                    let w = &self.clocks[warp];
                    let a = Access { lanes, ..Access::at(w.id, w.own, pc, true) };
                    self.fast.arrive(w, New::of(w, &a).as_ref(), at, bytes, a);
                    self.plain.arrive(w, at, bytes, a);
                }
                9 => match random.below(8) {
                    0 => self.note(warp, 208, 4, Access { strong: Some(Scope::Cta), ..a }),
                    1 => self.note(warp, 208, 4, Access { actor: 7, epoch: 1, ..a }),
                    2 => self.note(warp, 208, 4, Access { pc: 1 << 24, ..a }),
                    _ => {}
                },
                _ => self.order(warp, random),
            }
        }

        /// Both have the same accesses of each word, each list in an order of its own where halves of words are in it.
        fn check(&mut self) {
            let key = |a: &Access| (a.warp, a.also, a.lanes, a.epoch, a.pc, a.bytes, a.write, a.in_flight);
            let mut fast = vec![Vec::new(); WORDS as usize];
            for (at, a) in self.fast.pages.of_bytes(0, 4 * WORDS) {
                fast[(at / 4) as usize].push(with_first(a));
            }
            for (word, (fast, plain)) in fast.iter_mut().zip(&self.plain.0).enumerate() {
                let mut plain: Vec<Access> = plain.iter().copied().map(with_first).collect();
                plain.sort_by_key(key);
                fast.sort_by_key(key);
                assert_eq!(*fast, plain, "word {word}");
            }
        }
    }

    /// The same, its readers with the first of them apart, which a list may have otherwise.
    fn with_first(a: Access) -> Access {
        let readers = a.also | 1 << (a.warp % 32);
        Access { warp: a.warp / 32 * 32 + readers.trailing_zeros(), also: readers & (readers - 1), ..a }
    }

    #[test]
    fn words_say_what_lists_say() {
        let mut random = Random(1);
        for _ in 0..2000 {
            let mut both = Both::new();
            for _ in 0..1 + random.below(80) {
                both.step(&mut random);
            }
            both.check();
            both.fast.forget();
            assert_eq!(both.fast.pages.of_bytes(0, 4 * WORDS).count(), 0);
        }
    }
}
