//! The store of accesses: word by word, and row by row for whole warps with consecutive bytes.
//!
//! All words of a row have the same accesses, each by its own lane. One entry serves them all; its lanes are those of the first word.
//! There may be gaps between the bytes of lanes, as in a store of one half of each vector. An access of another form splits a row into
//! words. They stay words, since memory with two forms would switch again and again.

use core::ops::Range;

use smallvec::SmallVec;

use super::cell::{Cell, New, Word};
use super::paths::Paths;
use super::tails::{NO_TAIL, Tails, WideAccess};
use super::word::{Access, Flaw};

/// Words of a page.
const PAGE: u64 = 64;

struct WordRow {
    /// Its first word, in the page.
    first: u8,
    form: Form,
    word: Word,
}

/// The pattern of lanes: their number, the bytes of each, and the stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) lanes: u8,
    pub(crate) unit: u8,
    pub(crate) stride: u8,
}

impl Form {
    /// The words of a row, in parts in which they follow each other.
    fn parts(self, first: u64) -> impl Iterator<Item = Range<u64>> {
        let (unit, stride) = (u64::from(self.unit), u64::from(self.stride));
        let lanes = u64::from(self.lanes);
        let (n, words) = if unit == stride { (1, lanes * unit / 4) } else { (lanes, unit / 4) };
        (0..n).map(move |i| first + i * stride / 4).map(move |at| at..at + words)
    }
}

#[derive(Default)]
struct Page {
    /// Which word of a row a word is, from 1 on; 0 where it is of none.
    of_row: PerWord<u8>,
    /// The rows that begin here.
    rows: SmallVec<[WordRow; 2]>,
    words: Option<Box<PerWord<Word>>>,
}

struct PerWord<T>([T; PAGE as usize]);

impl<T: Default + Copy> Default for PerWord<T> {
    fn default() -> Self {
        PerWord([T::default(); PAGE as usize])
    }
}

impl Page {
    #[inline(always)]
    fn words(&mut self) -> &mut [Word; PAGE as usize] {
        &mut self.words.get_or_insert_with(Box::default).0
    }
}

/// Lists of accesses, for words with more than a [`Word`] can hold.
#[derive(Default)]
pub(crate) struct Lists {
    all: Vec<Cell>,
    free: Vec<u32>,
    tails: Tails,
}

impl Lists {
    /// Changes the accesses of a word as a list.
    #[inline(never)]
    pub(crate) fn edit<T>(&mut self, word: &mut Word, f: impl FnOnce(&mut Cell) -> T) -> T {
        let Some(number) = word.list() else {
            let mut cell = self.of(word);
            let result = f(&mut cell);
            *word = Word::of(&cell).unwrap_or_else(|| self.keep(cell));
            return result;
        };
        let cell = &mut self.all[number as usize];
        let result = f(cell);
        if let Some(short) = Word::of(cell) {
            cell.clear();
            self.free.push(number);
            *word = short;
        }
        result
    }

    fn keep(&mut self, cell: Cell) -> Word {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(Cell::new());
            self.all.len() as u32 - 1
        });
        self.all[number as usize] = cell;
        Word::of_list(number)
    }

    /// The accesses of a word.
    fn of(&self, word: &Word) -> Cell {
        if let Some(number) = word.list() {
            return self.all[number as usize].clone();
        }
        let mut cell = word.accesses();
        let at = usize::from(word.is_written());
        cell.insert_many(at, self.tails.of(word.tail().unwrap_or(NO_TAIL)).iter().copied());
        cell
    }

    /// Makes of a word's list a tail, if it is one.
    fn share(&mut self, word: &mut Word) {
        let Some(number) = word.list() else { return };
        let cell = &mut self.all[number as usize];
        if let Some(shared) = self.tails.word(cell) {
            cell.clear();
            self.free.push(number);
            *word = shared;
        }
    }
}

/// The accesses of a memory.
#[derive(Default)]
pub(crate) struct Pages {
    all: Vec<Option<Box<Page>>>,
    lists: Lists,
}

/// The accesses of one word of a row, from the row's entry and the number of the word.
fn of_word(all: &Access, unit: u32, word: u32) -> impl Iterator<Item = Access> {
    let each = (4 / unit).max(1);
    let all = *all;
    (0..each).map(move |part| {
        let lane = if unit >= 4 { word * 4 / unit } else { word * each + part };
        let bytes = if unit >= 4 { 0xf } else { ((1 << unit) - 1) << (part * unit) };
        Access { lanes: all.lanes << lane, bytes, ..all }
    })
}

#[inline(always)]
fn page(all: &mut Vec<Option<Box<Page>>>, word: u64) -> &mut Page {
    let number = (word / PAGE) as usize;
    if !matches!(all.get(number), Some(Some(_))) {
        add(all, number);
    }
    all[number].get_or_insert_with(Box::default)
}

#[cold]
#[inline(never)]
fn add(all: &mut Vec<Option<Box<Page>>>, number: usize) {
    if number >= all.len() {
        all.resize_with(number + 1, || None);
    }
    all[number] = Some(Box::default());
}

impl Pages {
    /// Clears all accesses, and keeps the memory.
    pub(crate) fn forget(&mut self) {
        for page in self.all.iter_mut().flatten() {
            page.of_row = PerWord::default();
            page.rows.clear();
            if let Some(words) = &mut page.words {
                **words = PerWord::default();
            }
        }
        self.lists = Lists::default();
    }

    /// So many words from one on, all of one page, and the lists of those that have one.
    #[inline(always)]
    pub(crate) fn words(&mut self, first: u64, n: usize) -> (&mut [Word], &mut Lists) {
        let at = (first % PAGE) as usize;
        if page(&mut self.all, first).of_row.0[at..at + n].iter().any(|place| *place != 0) {
            self.part_all(first, n);
        }
        (&mut page(&mut self.all, first).words()[at..at + n], &mut self.lists)
    }

    /// Notes an access of so many whole words, all of one page: how many of them, from the first on, need no list and have nothing said
    /// of them.
    #[inline(always)]
    pub(crate) fn note<const N: usize>(&mut self, new: &mut New<'_>, first: u64, lanes: u32) -> usize {
        let at = (first % PAGE) as usize;
        let of_row = &page(&mut self.all, first).of_row.0[at..at + N];
        if of_row.iter().fold(0, |any, place| any | place) != 0 {
            self.part_all(first, N);
        }
        let words = &mut page(&mut self.all, first).words()[at..at + N];
        for (i, word) in words.iter_mut().enumerate() {
            if !new.note(word, lanes) && !new.note_tailed(word, lanes, &mut self.lists.tails) {
                return i;
            }
        }
        N
    }

    /// Notes an access by an asynchronous operation of so many whole words, up to one that conflicts: that word, and with what.
    pub(crate) fn note_wide(
        &mut self,
        new: &mut WideAccess<'_>,
        paths: &mut Paths,
        words: Range<u64>,
    ) -> Option<(u64, (Access, Flaw))> {
        let mut first = words.start;
        while first < words.end {
            let at = (first % PAGE) as usize;
            let n = (PAGE as usize - at).min((words.end - first) as usize);
            if page(&mut self.all, first).of_row.0[at..at + n].iter().fold(0, |any, place| any | place) != 0 {
                self.part_all(first, n);
            }
            let lists = &mut self.lists;
            for (number, word) in (first..).zip(&mut page(&mut self.all, first).words()[at..at + n]) {
                if let Some((tail, keeps_write)) = new.step(word, &mut lists.tails) {
                    *word = word.after(tail, keeps_write);
                    continue;
                }
                if let Some(found) = lists.edit(word, |cell| new.touch(cell, paths)) {
                    return Some((number, found));
                }
                lists.share(word);
            }
            first += n as u64;
        }
        None
    }

    /// Forgets tails that no word has any more, where there are many.
    pub(crate) fn tidy(&mut self) {
        if self.lists.tails.are_many() {
            let words = self.all.iter().flatten().filter_map(|page| page.words.as_ref());
            self.lists.tails.keep(words.flat_map(|words| &words.0));
        }
    }

    #[inline(never)]
    fn part_all(&mut self, first: u64, n: usize) {
        for word in first..first + n as u64 {
            let place = page(&mut self.all, word).of_row.0[(word % PAGE) as usize];
            if place != 0 {
                self.part(word - u64::from(place - 1));
            }
        }
    }

    /// The accesses of the row that begins at a word: one that is there, or one of words that nobody has accessed.
    pub(crate) fn row(&mut self, first: u64, form: Form) -> Option<(&mut Word, &mut Lists)> {
        let at = first % PAGE;
        let place = page(&mut self.all, first).of_row.0[at as usize];
        if place == 0 && form.parts(first).all(|words| self.is_untouched(words)) {
            self.begin(first, form);
        } else if place != 1 {
            return None;
        }
        let is_it = |row: &&mut WordRow| u64::from(row.first) == at && row.form == form;
        let row = page(&mut self.all, first).rows.iter_mut().find(is_it)?;
        Some((&mut row.word, &mut self.lists))
    }

    fn is_untouched(&self, words: Range<u64>) -> bool {
        (words.start / PAGE..words.end.div_ceil(PAGE)).all(|number| {
            let Some(Some(page)) = self.all.get(number as usize) else { return true };
            let (from, to) = (words.start.max(number * PAGE) % PAGE, (words.end - number * PAGE).min(PAGE));
            let part = from as usize..to as usize;
            page.of_row.0[part.clone()].iter().all(|place| *place == 0)
                && page.words.as_ref().is_none_or(|words| words.0[part].iter().all(Word::is_untouched))
        })
    }

    fn begin(&mut self, first: u64, form: Form) {
        for words in form.parts(first) {
            let mut word = words.start;
            while word < words.end {
                let end = ((word / PAGE + 1) * PAGE).min(words.end);
                let part = (word % PAGE) as usize..(word % PAGE + end - word) as usize;
                for (place, i) in page(&mut self.all, word).of_row.0[part].iter_mut().zip(word - first..) {
                    *place = i as u8 + 1;
                }
                word = end;
            }
        }
        let row = WordRow { first: (first % PAGE) as u8, form, word: Word::default() };
        page(&mut self.all, first).rows.push(row);
    }

    /// Splits a row into words.
    #[inline(never)]
    fn part(&mut self, first: u64) {
        let rows = &mut page(&mut self.all, first).rows;
        let Some(i) = rows.iter().position(|row| u64::from(row.first) == first % PAGE) else { return };
        let WordRow { form, word: mut row, .. } = rows.swap_remove(i);
        let unit = u32::from(form.unit);
        let list = (row.list().is_some() || unit < 4).then(|| self.lists.edit(&mut row, core::mem::take));
        for (number, word) in (0..).zip(form.parts(first).flatten()) {
            let page = page(&mut self.all, word);
            let at = (word % PAGE) as usize;
            page.of_row.0[at] = 0;
            match &list {
                None => page.words()[at] = row.of_place(number * 4 / unit),
                Some(all) => self.lists.edit(&mut page.words()[at], |cell| {
                    cell.extend(all.iter().flat_map(|all| of_word(all, unit, number)));
                }),
            }
        }
    }

    /// The accesses of bytes, with their places.
    pub(crate) fn of_bytes(&mut self, start: u64, bytes: u64) -> impl Iterator<Item = (u64, Access)> {
        let pages = start / 4 / PAGE..(start + bytes).div_ceil(4).div_ceil(PAGE);
        for number in pages.clone() {
            while let Some(first) = self.all.get(number as usize).and_then(|p| Some(p.as_ref()?.rows.first()?.first)) {
                self.part(number * PAGE + u64::from(first));
            }
        }
        let (all, lists) = (&self.all, &self.lists);
        let words = pages.filter_map(|page| Some((page, all.get(page as usize)?.as_ref()?.words.as_ref()?)));
        let words = words.flat_map(|(page, words)| (page * PAGE..).zip(&words.0));
        let touched = words.filter(|(_, word)| !word.is_untouched());
        touched.flat_map(|(at, word)| lists.of(word).into_iter().map(move |a| (at * 4, a)))
    }
}

impl core::fmt::Debug for Pages {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} pages", self.all.iter().flatten().count())
    }
}
