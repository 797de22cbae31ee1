//! The accesses of a word in 32 bytes: the last write, and one read of each of some warps, all of one block and of the whole word.
//!
//! This fast path serves most accesses of most words without a list of [`Access`]es. Each function either has the same effect as `touch`
//! on the equivalent list, or does nothing and says so. Tests compare the two, access by access.

use smallvec::SmallVec;

use super::order::WarpClock;
use super::tails::{NO_TAIL, Tails};
use super::word::Access;

/// The accesses of a word, or of each word of a row, as a list.
pub(crate) type Cell = SmallVec<[Access; 3]>;

/// Bits of an instruction's number, and of a warp's in its block.
const PC: u32 = 24;
const WARP: u32 = 5;
/// The write is that of a copy in flight. Without a write: a tail comes before the reads.
const FLYING: u32 = 1 << 29;
/// A list has the accesses. With a write: a tail comes behind it.
const LIST: u32 = 1 << 30;
/// There is a write.
const WRITTEN: u32 = 1 << 31;

/// The accesses of a word. All zeros where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub(crate) struct Word {
    /// The block whose warps they are; the number of the list, where one has them.
    block: u32,
    /// The write: its instruction, its warp, what it is; its epoch and its lanes. All zeros where there is none. With a tail and no
    /// write, the epoch is the number of the tail.
    write: u32,
    write_epoch: u32,
    write_lanes: u32,
    /// Warps that have read the word since, with one instruction, at one epoch, by the same lanes. With a write and a tail there are
    /// none, and the epoch is the number of the tail.
    readers: u32,
    read_pc: u32,
    read_epoch: u32,
    read_lanes: u32,
}

impl Word {
    /// A word that refers to a list.
    pub(crate) fn of_list(number: u32) -> Word {
        Word { block: number, write: LIST, ..Word::default() }
    }

    /// The number of the list that has its accesses.
    #[inline(always)]
    pub(crate) fn list(&self) -> Option<u32> {
        (self.write & (LIST | WRITTEN) == LIST).then_some(self.block)
    }

    /// The number of its tail: accesses by asynchronous operations, after its write and before its reads.
    #[inline(always)]
    pub(crate) fn tail(&self) -> Option<u32> {
        match self.write {
            FLYING => Some(self.write_epoch),
            write if write & (LIST | WRITTEN) == LIST | WRITTEN => Some(self.read_epoch),
            _ => None,
        }
    }

    /// The same without its tail.
    pub(crate) fn bare(&self) -> Word {
        match self.tail() {
            None => *self,
            Some(_) if self.write == FLYING => Word { write: 0, write_epoch: 0, ..*self },
            Some(_) => Word { write: self.write & !LIST, read_epoch: 0, ..*self },
        }
    }

    /// A word that has no tail with one, which may be empty. `None` where it has a write and reads.
    pub(crate) fn tailed(&self, tail: u32) -> Option<Word> {
        match (tail, self.write, self.readers) {
            (NO_TAIL, ..) => Some(*self),
            (_, 0, _) => Some(Word { write: FLYING, write_epoch: tail, ..*self }),
            (_, write, 0) => Some(Word { write: write | LIST, read_epoch: tail, ..*self }),
            _ => None,
        }
    }

    /// The same by any lanes: words of which all else is one differ by lane in what threads have done.
    #[inline(always)]
    pub(crate) fn of_any_lanes(&self) -> Word {
        Word { write_lanes: 0, read_lanes: 0, ..*self }
    }

    /// The same by all lanes, without its tail.
    pub(crate) fn of_all_lanes(&self) -> Word {
        Word { write_lanes: u32::MAX, read_lanes: u32::MAX, ..self.bare() }
    }

    /// The word after an access by asynchronous operations that leaves this tail, and its write, or nothing else.
    #[inline(always)]
    pub(crate) fn after(&self, tail: u32, keeps_write: bool) -> Word {
        if keeps_write {
            let (readers, read_pc, read_lanes) = (0, 0, 0);
            Word { write: self.write | LIST, readers, read_pc, read_epoch: tail, read_lanes, ..*self }
        } else {
            Word { write: FLYING, write_epoch: tail, ..Word::default() }
        }
    }

    #[inline(always)]
    pub(crate) fn is_untouched(&self) -> bool {
        self.write | self.readers == 0
    }

    /// A list as a word, if it is no longer than that, and of no other kind.
    pub(crate) fn of(cell: &[Access]) -> Option<Word> {
        let is_whole =
            |a: &Access| a.bytes == 0xf && a.strong.is_none() && a.actor == 0 && !a.is_barrier && a.pc < 1 << PC;
        let (write, read) = match cell {
            [] => (None, None),
            [a] if a.is_plain_read() => (None, Some(a)),
            [a] => (Some(a), None),
            [a, b] if b.is_plain_read() && a.warp / 32 == b.warp / 32 => (Some(a), Some(b)),
            _ => return None,
        };
        if !cell.iter().all(is_whole) || write.is_some_and(|a| !a.write) {
            return None;
        }
        let mut word = Word { block: cell.first().map_or(0, |a| a.warp / 32), ..Word::default() };
        if let Some(a) = write {
            let flying = if a.in_flight { FLYING } else { 0 };
            word.write = a.pc | (a.warp % 32) << PC | flying | WRITTEN;
            (word.write_epoch, word.write_lanes) = (a.epoch, a.lanes);
        }
        if let Some(a) = read {
            word.readers = a.also | 1 << (a.warp % 32);
            (word.read_pc, word.read_epoch, word.read_lanes) = (a.pc, a.epoch, a.lanes);
        }
        Some(word)
    }

    /// Whether a thread has written it last.
    pub(crate) fn is_written(&self) -> bool {
        self.write & WRITTEN != 0
    }

    /// Its accesses but those of its tail, where no list has them.
    pub(crate) fn accesses(&self) -> Cell {
        let mut cell = Cell::new();
        let one = |warp: u32, pc, epoch, lanes, write| Access {
            bytes: 0xf,
            lanes,
            ..Access::at(self.block.wrapping_mul(32) + warp, epoch, pc, write)
        };
        if self.is_written() {
            let (pc, warp) = (self.write & ((1 << PC) - 1), self.writer());
            let write = one(warp as u32, pc, self.write_epoch, self.write_lanes, true);
            cell.push(Access { in_flight: self.write & FLYING != 0, ..write });
        }
        if self.readers != 0 {
            let also = self.readers & (self.readers - 1);
            let read = one(self.readers.trailing_zeros(), self.read_pc, self.read_epoch, self.read_lanes, false);
            cell.push(Access { also, ..read });
        }
        cell
    }

    /// What a row's word, whose lanes are those of the first place, says of the words of another.
    pub(crate) fn of_place(&self, place: u32) -> Word {
        Word { write_lanes: self.write_lanes << place, read_lanes: self.read_lanes << place, ..*self }
    }

    /// The warp that wrote, in its block.
    #[inline(always)]
    fn writer(&self) -> usize {
        (self.write >> PC & ((1 << WARP) - 1)) as usize
    }

    /// Whether the write happened before what lanes of a warp do now, and is over.
    #[inline(always)]
    fn follows_write(&mut self, new: &New<'_>, lanes: u32) -> bool {
        if self.write & (LIST | FLYING) != 0 || self.block != new.block && !self.is_untouched() {
            return false;
        }
        self.write_epoch <= new.known[self.writer()]
            || self.writer() == new.own() && new.knows(self.write_lanes, self.write_epoch, lanes)
    }

    /// Lanes read the word.
    #[inline(always)]
    fn read(&mut self, new: &New<'_>, lanes: u32) -> bool {
        if !self.follows_write(new, lanes) || new.is_nc && self.write != 0 {
            return false;
        }
        if self.readers != 0 {
            if (self.read_epoch, self.read_pc) == (new.epoch, new.pc) {
                if self.readers == new.bit {
                    self.read_lanes |= lanes;
                    return true;
                }
                if self.read_lanes == lanes {
                    self.readers |= new.bit;
                    return true;
                }
            }
            // One read stands for those of its warp before it.
            if self.readers != new.bit || !new.knows(self.read_lanes, self.read_epoch, lanes) {
                return false;
            }
        }
        self.block = new.block;
        (self.readers, self.read_pc) = (new.bit, new.pc);
        (self.read_epoch, self.read_lanes) = (new.epoch, lanes);
        true
    }

    /// Lanes write the word, or issue a copy into it: this hides what was before.
    #[inline(always)]
    fn write(&mut self, new: &mut New<'_>, lanes: u32) -> bool {
        if !self.follows_write(new, lanes) || self.readers != 0 && !new.follows_reads(self, lanes) {
            return false;
        }
        *self = new.written(lanes);
        true
    }
}

/// An access of whole words that a warp makes now, of the kind that words can say, and what the warp knows.
pub(crate) struct New<'w> {
    clock: &'w WarpClock,
    /// Up to which epoch what each warp of the block did happened before; of the warp itself, what all of its lanes did.
    known: [u32; 32],
    block: u32,
    /// The warp among those of its block.
    bit: u32,
    pc: u32,
    epoch: u32,
    is_write: bool,
    in_flight: bool,
    is_nc: bool,
    /// Warps whose reads at an epoch happened before.
    before: (u32, u32),
    /// What a tail becomes: `None` where more has to be looked at.
    tail: (u32, Option<u32>),
}

impl<'w> New<'w> {
    /// `None` where words cannot say it, or where each access is to be looked at.
    #[inline(always)]
    pub(crate) fn of(clock: &'w WarpClock, a: &Access) -> Option<New<'w>> {
        if a.strong.is_some() || a.actor != 0 || a.is_barrier || a.pc >= 1 << PC || clock.lessons.is_some() {
            return None;
        }
        Some(New {
            clock,
            known: clock.known()?,
            block: a.warp / 32,
            bit: 1 << (a.warp % 32),
            pc: a.pc,
            epoch: a.epoch,
            is_write: a.write,
            in_flight: a.in_flight,
            is_nc: a.is_nc,
            before: (0, u32::MAX),
            tail: (NO_TAIL, Some(NO_TAIL)),
        })
    }

    #[inline(always)]
    fn own(&self) -> usize {
        self.bit.trailing_zeros() as usize
    }

    /// Whether what lanes of its own warp did at an epoch happened before what lanes do now.
    #[inline(always)]
    fn knows(&self, lanes: u32, epoch: u32, mine: u32) -> bool {
        self.clock.knows(self.clock.id, lanes, epoch, mine)
    }

    /// Whether all reads of a word happened before what lanes do now.
    #[inline(always)]
    fn follows_reads(&mut self, word: &Word, lanes: u32) -> bool {
        if self.before.0 != word.read_epoch {
            let known = |m, (w, known): (u32, &u32)| m | u32::from(*known >= word.read_epoch) << w;
            self.before = (word.read_epoch, (0..).zip(&self.known).fold(0, known));
        }
        let unknown = word.readers & !self.before.1;
        unknown == 0 || unknown == self.bit && self.knows(word.read_lanes, word.read_epoch, lanes)
    }

    /// A word that lanes have written.
    #[inline(always)]
    fn written(&self, lanes: u32) -> Word {
        let write = self.pc | (self.own() as u32) << PC | if self.in_flight { FLYING } else { 0 } | WRITTEN;
        Word { block: self.block, write, write_epoch: self.epoch, write_lanes: lanes, ..Word::default() }
    }

    /// Notes the access by lanes, if that needs no list, and nothing has to be said of it: whether it did.
    #[inline(always)]
    pub(crate) fn note(&mut self, word: &mut Word, lanes: u32) -> bool {
        if self.is_write { word.write(self, lanes) } else { word.read(self, lanes) }
    }

    /// The same of a word with a tail.
    #[inline(never)]
    pub(crate) fn note_tailed(&mut self, word: &mut Word, lanes: u32, tails: &mut Tails) -> bool {
        let Some(tail) = word.tail() else { return false };
        if self.tail.0 != tail {
            self.tail = (tail, tails.left(tail, self.clock, self.is_write, self.is_nc));
        }
        let (Some(left), mut bare) = (self.tail.1, word.bare()) else { return false };
        let after = if self.note(&mut bare, lanes) { bare.tailed(left) } else { None };
        if let Some(after) = after {
            *word = after;
        }
        after.is_some()
    }

    /// A lane's copy has arrived, whose write this is: nothing has happened to the word since it was issued.
    #[inline(always)]
    pub(crate) fn arrive(&self, word: &mut Word, lanes: u32) -> bool {
        let now = self.written(lanes);
        let is_its = word.write == now.write | FLYING && word.block == now.block && word.write_lanes == lanes;
        if is_its && word.readers == 0 {
            *word = now;
        }
        is_its && word.readers == 0
    }
}
