//! Accesses of words by asynchronous operations: products that read their operands, copies that write a box.
//!
//! Such an operation accesses thousands of words at once, all in the same way. So words with the same accesses share one list, their
//! tail, and the operation checks each kind of word only once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cell::{Cell, Word};
use super::order::WarpClock;
use super::paths::Paths;
use super::touch::touch;
use super::word::{Access, Flaw, ordered};

/// The number of the tail without accesses.
pub(crate) const NO_TAIL: u32 = 0;
/// Number of accesses in all tails before unused tails are collected.
const MOST: usize = 1 << 16;

/// The tails of a memory, each with a number.
pub(crate) struct Tails {
    all: Vec<Arc<[Access]>>,
    numbers: FxHashMap<Arc<[Access]>, u32>,
    free: Vec<u32>,
    /// Number of accesses in all tails, and the number that starts a collection.
    accesses: usize,
    most: usize,
}

impl Default for Tails {
    fn default() -> Tails {
        let none: Arc<[Access]> = Arc::new([]);
        let numbers = FxHashMap::from_iter([(none.clone(), NO_TAIL)]);
        Tails { all: vec![none], numbers, free: Vec::new(), accesses: 0, most: MOST }
    }
}

impl Tails {
    pub(crate) fn of(&self, number: u32) -> &[Access] {
        &self.all[number as usize]
    }

    /// The number of a tail: one number for each.
    pub(crate) fn number(&mut self, tail: &[Access]) -> u32 {
        if let Some(number) = self.numbers.get(tail) {
            return *number;
        }
        let tail: Arc<[Access]> = tail.into();
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(tail.clone());
            self.all.len() as u32 - 1
        });
        self.all[number as usize] = tail.clone();
        self.accesses += tail.len();
        self.numbers.insert(tail, number);
        number
    }

    /// The tail after a thread's access; `None` if there is a conflict, or a write in the tail is not over.
    pub(crate) fn left(&mut self, tail: u32, w: &WarpClock, writes: bool, is_nc: bool) -> Option<u32> {
        let all = self.of(tail);
        if all.iter().any(|a| (writes || a.write) && !a.is_over(w) || is_nc && a.write) {
            return None;
        }
        let left: Cell = all.iter().copied().filter(|a| !writes && (a.write || !a.is_over(w))).collect();
        Some(self.number(&left))
    }

    /// A list as a word with a tail, if it is one.
    pub(crate) fn word(&mut self, cell: &[Access]) -> Option<Word> {
        let (first, last) = (cell.first()?, cell.last()?);
        let (bare, tail) = match () {
            () if first.actor == 0 => cell.split_at(1),
            () if last.actor == 0 => cell.split_last_chunk::<1>().map(|(tail, bare)| (&bare[..], tail))?,
            () => (&cell[..0], cell),
        };
        if !tail.iter().all(Access::is_wide) || first.actor != 0 && bare.iter().any(|a| !a.is_plain_read()) {
            return None;
        }
        let word = Word::of(bare).filter(|word| first.actor != 0 || word.is_written())?;
        word.tailed(self.number(tail))
    }

    /// Whether it is time to collect unused tails.
    pub(crate) fn are_many(&self) -> bool {
        self.accesses > self.most
    }

    /// Keeps those of these words.
    pub(crate) fn keep<'w>(&mut self, words: impl Iterator<Item = &'w Word>) {
        let mut is_used = vec![false; self.all.len()];
        is_used[NO_TAIL as usize] = true;
        let mut count = 0;
        for word in words {
            is_used[word.tail().unwrap_or(NO_TAIL) as usize] = true;
            count += 1;
        }
        self.numbers.retain(|_, number| is_used[*number as usize]);
        self.free.clear();
        let none = self.all[NO_TAIL as usize].clone();
        for ((number, tail), _) in (0..).zip(&mut self.all).zip(is_used).filter(|(_, is_used)| !is_used) {
            *tail = none.clone();
            self.free.push(number);
        }
        self.accesses = self.all.iter().map(|tail| tail.len()).sum();
        self.most = MOST.max(2 * self.accesses).max(count / 4);
    }
}

/// The effect of an access on words of one kind: their new tail, and whether their write stays.
type Effect = (u32, bool);

/// Kinds of words that are remembered.
const KINDS: usize = 8;

/// An access by an asynchronous operation, with its effect on each kind of word that it has met.
pub(crate) struct WideAccess<'w> {
    clock: &'w WarpClock,
    access: Access,
    /// The effect by word, for any lanes; `None` if the word is checked by itself.
    met: [(Word, Option<Effect>); KINDS],
    last: usize,
    next: usize,
}

impl<'w> WideAccess<'w> {
    pub(crate) fn new(clock: &'w WarpClock, access: &Access) -> WideAccess<'w> {
        debug_assert!(
            access.actor != 0 && clock.lessons.is_none(),
            "an access of a thread, or one whose paths are asked for"
        );
        // No word is that of a list without accesses.
        let nothing = (Word::of_list(u32::MAX), None);
        let access = Access { bytes: 0xf, ..*access };
        WideAccess { clock, access, met: [nothing; KINDS], last: 0, next: 0 }
    }

    /// Its effect on a word, if all words of that kind have the same effect.
    #[inline(always)]
    pub(crate) fn step(&mut self, word: &Word, tails: &mut Tails) -> Option<Effect> {
        if word.list().is_some() {
            return None;
        }
        let kind = word.of_any_lanes();
        if self.met[self.last].0 != kind {
            self.meet(kind, tails);
        }
        self.met[self.last].1
    }

    #[inline(never)]
    fn meet(&mut self, kind: Word, tails: &mut Tails) {
        if let Some(met) = self.met.iter().position(|(met, _)| *met == kind) {
            self.last = met;
            return;
        }
        self.met[self.next] = (kind, self.first(&kind, tails));
        self.last = self.next;
        self.next = (self.next + 1) % KINDS;
    }

    /// An access ordered after all lanes is ordered after each lane.
    fn first(&self, kind: &Word, tails: &mut Tails) -> Option<Effect> {
        let is_fine = |a: &Access| !a.in_flight && ordered(self.clock, a, &self.access).0.is_ok();
        if !kind.of_all_lanes().accesses().iter().all(is_fine) {
            return None;
        }
        let mut tail: Cell = tails.of(kind.tail().unwrap_or(NO_TAIL)).into();
        if self.touch(&mut tail, &mut Paths::default()).is_some() {
            return None;
        }
        Some((tails.number(&tail), kind.is_written() && !self.access.write))
    }

    /// Its effect on a word's list.
    pub(crate) fn touch(&self, cell: &mut Cell, paths: &mut Paths) -> Option<(Access, Flaw)> {
        touch(cell, paths, self.clock, self.access, true)
    }
}
