//! Where accesses are kept: word by word, and row by row where whole warps access bytes that lie one after the other.
//!
//! All words of a row have seen the same, each by a lane of its own, so that one entry stands for them. An access of another form
//! makes words of a row, which they stay: what is accessed in two forms would go from one to the other again and again.

use smallvec::SmallVec;

use super::word::Access;

/// Words of a page.
const PAGE: u64 = 64;

/// The accesses of a word, or of each word of a row.
pub(super) type Cell = SmallVec<[Access; 3]>;

struct Row {
    /// Its first word, in the page.
    first: u8,
    /// Bytes of a lane.
    unit: u8,
    cell: Cell,
}

#[derive(Default)]
struct Page {
    /// Which word of a row a word is, from 1 on; 0 where it is of none.
    of_row: PerWord<u8>,
    /// The rows that begin here.
    rows: SmallVec<[Row; 2]>,
    cells: Option<Box<PerWord<Cell>>>,
}

struct PerWord<T>([T; PAGE as usize]);

impl<T: Default> Default for PerWord<T> {
    fn default() -> Self {
        PerWord(core::array::from_fn(|_| T::default()))
    }
}

/// The accesses of a memory.
#[derive(Default)]
pub(super) struct Pages(Vec<Option<Box<Page>>>);

/// The words of a row that lanes of a warp access with so many bytes each.
fn words(unit: u32) -> u64 {
    u64::from(8 * unit)
}

/// What a row's entry says of one of its words, lane by lane.
fn of_word(all: &Access, unit: u32, word: u64) -> impl Iterator<Item = Access> {
    let each = (4 / unit).max(1);
    let all = *all;
    (0..each).map(move |part| {
        let lane = if unit >= 4 { word as u32 * 4 / unit } else { word as u32 * each + part };
        let bytes = if unit >= 4 { 0xf } else { ((1 << unit) - 1) << (part * unit) };
        Access { lanes: 1 << lane, bytes, ..all }
    })
}

impl Pages {
    #[inline(always)]
    fn page(&mut self, word: u64) -> &mut Page {
        let number = (word / PAGE) as usize;
        if !matches!(self.0.get(number), Some(Some(_))) {
            self.add(number);
        }
        self.0[number].get_or_insert_with(Box::default)
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, number: usize) {
        if number >= self.0.len() {
            self.0.resize_with(number + 1, || None);
        }
        self.0[number] = Some(Box::default());
    }

    /// The accesses of a word, by its number.
    #[inline(always)]
    pub(super) fn cell(&mut self, word: u64) -> &mut Cell {
        let at = (word % PAGE) as usize;
        let place = self.page(word).of_row.0[at];
        if place != 0 {
            self.part(word - u64::from(place - 1));
        }
        &mut self.page(word).cells.get_or_insert_with(Box::default).0[at]
    }

    /// The accesses of the row that begins at a word: one that is there, or one of words that nobody has accessed.
    pub(super) fn row(&mut self, first: u64, unit: u32) -> Option<&mut Cell> {
        let at = first % PAGE;
        let place = self.page(first).of_row.0[at as usize];
        if place == 0 && self.is_untouched(first, words(unit)) {
            self.begin(first, unit);
        } else if place != 1 {
            return None;
        }
        let is_it = |row: &&mut Row| u64::from(row.first) == at && u32::from(row.unit) == unit;
        self.page(first).rows.iter_mut().find(is_it).map(|row| &mut row.cell)
    }

    fn is_untouched(&self, first: u64, n: u64) -> bool {
        (first / PAGE..(first + n).div_ceil(PAGE)).all(|number| {
            let Some(Some(page)) = self.0.get(number as usize) else { return true };
            let (from, to) = (first.max(number * PAGE) % PAGE, (first + n - number * PAGE).min(PAGE));
            let part = from as usize..to as usize;
            page.of_row.0[part.clone()].iter().all(|place| *place == 0)
                && page.cells.as_ref().is_none_or(|cells| cells.0[part].iter().all(|cell| cell.is_empty()))
        })
    }

    fn begin(&mut self, first: u64, unit: u32) {
        let mut word = first;
        while word < first + words(unit) {
            let end = ((word / PAGE + 1) * PAGE).min(first + words(unit));
            let part = (word % PAGE) as usize..(word % PAGE + end - word) as usize;
            for (place, i) in self.page(word).of_row.0[part].iter_mut().zip(word - first..) {
                *place = i as u8 + 1;
            }
            word = end;
        }
        let row = Row { first: (first % PAGE) as u8, unit: unit as u8, cell: Cell::new() };
        self.page(first).rows.push(row);
    }

    /// Makes words of a row.
    #[inline(never)]
    fn part(&mut self, first: u64) {
        let rows = &mut self.page(first).rows;
        let Some(i) = rows.iter().position(|row| u64::from(row.first) == first % PAGE) else { return };
        let Row { unit, cell, .. } = rows.swap_remove(i);
        for word in 0..words(unit.into()) {
            let page = self.page(first + word);
            let at = ((first + word) % PAGE) as usize;
            page.of_row.0[at] = 0;
            let words = &mut page.cells.get_or_insert_with(Box::default).0[at];
            words.extend(cell.iter().flat_map(|all| of_word(all, unit.into(), word)));
        }
    }

    /// The accesses of bytes, with their places.
    pub(super) fn of_bytes(&mut self, start: u64, bytes: u64) -> impl Iterator<Item = (u64, &Access)> {
        let pages = start / 4 / PAGE..(start + bytes).div_ceil(4).div_ceil(PAGE);
        for number in pages.clone() {
            while let Some(first) = self.0.get(number as usize).and_then(|p| Some(p.as_ref()?.rows.first()?.first)) {
                self.part(number * PAGE + u64::from(first));
            }
        }
        let cells = pages.filter_map(|page| Some((page, self.0.get(page as usize)?.as_ref()?.cells.as_ref()?)));
        let cells = cells.flat_map(|(page, cells)| (page * PAGE..).zip(&cells.0));
        cells.flat_map(|(word, cell)| cell.iter().map(move |a| (word * 4, a)))
    }
}

impl core::fmt::Debug for Pages {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} pages", self.0.iter().flatten().count())
    }
}
