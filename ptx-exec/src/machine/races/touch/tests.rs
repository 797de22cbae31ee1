//! Laws of the access history. Each faster form keeps and reports the same as lists for each word. It reports a conflict exactly if the
//! full history of each byte has one.

use super::super::cell::{Cell, New};
use super::super::order::{Clock, WarpClock};
use super::super::pages::Form;
use super::super::paths::Paths;
use super::super::proxy::{self, ProxySpace};
use super::super::word::{Access, Flaw, both_strong, ordered};
use super::{Conflict, Races, touch};
use crate::code::Scope;
use crate::machine::Random;

/// Words of the memory: more than a page, so that rows lie in two.
const WORDS: u64 = 160;

/// The reference: lists of accesses, word by word.
struct Plain(Vec<Cell>);

impl Plain {
    /// The result of `Races::note`, up to the first word that conflicts.
    fn note(&mut self, w: &WarpClock, start: u64, bytes: u32, a: Access, check: bool) -> Option<(u64, Access, Flaw)> {
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

/// All accesses of each byte.
struct Bytes(Vec<Vec<Access>>);

impl Bytes {
    fn of(&mut self, start: u64, bytes: u32) -> &mut [Vec<Access>] {
        &mut self.0[start as usize..start as usize + bytes as usize]
    }

    /// The first word with a conflict in one of its bytes.
    fn note(&mut self, w: &WarpClock, start: u64, bytes: u32, a: &Access, check: bool) -> Option<u64> {
        let is_wrong = |b: &Access| (a.write || b.write) && ordered(w, b, a).0.is_err() && !both_strong(w, b, a);
        let all = self.of(start, bytes);
        let found = all.iter().position(|of| check && of.iter().any(is_wrong));
        all.iter_mut().for_each(|of| of.push(*a));
        found.map(|i| (start + i as u64) / 4)
    }

    fn arrive(&mut self, w: &WarpClock, start: u64, bytes: u32, a: &Access) {
        for of in self.of(start, bytes) {
            of.retain(|b| !(b.in_flight && b.warp == w.id && b.pc == a.pc && b.lanes == a.lanes));
        }
        self.note(w, start, bytes, a, false);
    }
}

/// Asynchronous operations that complete together.
struct Row {
    epoch: u32,
    /// The knowledge of the threads that issued some.
    issued: Clock,
    /// The last epoch that is over, with the knowledge then.
    over: Option<(u32, Clock)>,
}

/// Number of judged accesses in a history, and of conflicts.
#[derive(Default)]
struct Judged {
    all: usize,
    wrong: usize,
}

/// The verdict on an access, with the fields of the other access that words keep.
fn said((at, with, flaw): (u64, Access, Flaw)) -> (u64, Access, Flaw) {
    (at, Access { also: 0, is_nc: false, ..with }, flaw)
}

struct Both {
    fast: Races,
    plain: Plain,
    /// Runs up to the first conflict.
    bytes: Option<Bytes>,
    judged: Judged,
    clocks: Vec<WarpClock>,
    rows: Vec<Row>,
    /// Copies that have not arrived: warp, instruction, lane, place, bytes.
    flying: Vec<(usize, u32, u32, u64, u32)>,
}

impl Both {
    fn new() -> Both {
        // Three warps of one block, one of another.
        let clocks = [0, 1, 2, 32].map(|id| WarpClock::of(true, id, 1, u32::MAX, false));
        Both {
            fast: Races::default(),
            plain: Plain(vec![Cell::new(); WORDS as usize]),
            bytes: Some(Bytes(vec![Vec::new(); 4 * WORDS as usize])),
            judged: Judged::default(),
            clocks: clocks.into(),
            rows: (0..3).map(|_| Row { epoch: 1, issued: Clock::default(), over: None }).collect(),
            flying: Vec::new(),
        }
    }

    /// Whether an access conflicts by the history of its bytes, with the first such word.
    fn judge(&mut self, warp: usize, start: u64, bytes: u32, a: &Access, found: Option<u64>) {
        let Some(all) = &mut self.bytes else { return };
        assert_eq!(found, all.note(&self.clocks[warp], start, bytes, a, true), "{a:?}");
        self.judged.all += 1;
        if found.is_some() {
            self.judged.wrong += 1;
            self.bytes = None;
        }
    }

    /// A warp issues an operation of a row, which accesses pieces.
    fn note_wide(&mut self, warp: usize, row: usize, pieces: &[(u64, u32)], a: Access) {
        let a = Access { actor: row as u32 + 1, epoch: self.rows[row].epoch, room: ProxySpace::Shared(0), ..a };
        let mut found = self.fast.note_wide(&self.clocks[warp], pieces.iter().copied(), &a).into_iter().peekable();
        for (start, bytes) in pieces {
            let is_here = |c: &(u32, Conflict)| (*start..start + u64::from(*bytes)).contains(&c.1.address);
            let found = found.next_if(is_here).map(|(_, c)| said((c.address, c.with, c.flaw)));
            let plain = self.plain.note(&self.clocks[warp], *start, *bytes, a, true).map(said);
            assert_eq!(found, plain, "{a:?}");
            self.judge(warp, *start, *bytes, &a, found.map(|(at, ..)| at / 4));
        }
        assert!(found.next().is_none(), "a conflict in none of the pieces");
        let w = &mut self.clocks[warp];
        self.rows[row].issued.join(&w.publish());
        w.own += 1;
    }

    /// The operations of a row so far are over.
    fn end_epoch(&mut self, row: usize) {
        let row = &mut self.rows[row];
        row.over = Some((row.epoch, row.issued.clone()));
        row.epoch += 1;
    }

    /// A warp learns that they are over, and learns the knowledge of the threads that issued them.
    fn learn(&mut self, warp: usize, row: usize) {
        let Some((epoch, clock)) = &self.rows[row].over else { return };
        let far = WarpClock::of(true, 0, 1, u32::MAX, false).publish_far(clock);
        let w = &mut self.clocks[warp];
        let id = w.id;
        WarpClock::learn(&mut w.seen, id, &far);
        w.learn_rows(&[row as u32 + 1], *epoch, 0);
    }

    /// The warps of the first block meet.
    fn meet(&mut self) {
        let mut all = Clock::default();
        self.clocks[..3].iter().for_each(|w| all.join(&w.publish()));
        for w in &mut self.clocks[..3] {
            w.seen.join(&all);
            w.meet(u32::MAX, 0);
        }
    }

    fn note(&mut self, warp: usize, start: u64, bytes: u32, a: Access) {
        let w = &self.clocks[warp];
        let mut new = New::of(w, &a);
        let found = self.fast.note(w, new.as_mut(), start, bytes, a.lanes, &a, true);
        let found = found.map(|c| said((c.address, c.with, c.flaw)));
        assert_eq!(found, self.plain.note(w, start, bytes, a, true).map(said), "{a:?}");
        self.judge(warp, start, bytes, &a, found.map(|(at, ..)| at / 4));
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
                self.judge(warp, at, unit, &a, None);
            } else {
                self.note(warp, at, unit, a);
            }
        }
    }

    /// Warps of the block meet, or lanes of one.
    fn order(&mut self, warp: usize, random: &mut Random) {
        match random.below(6) {
            4 => {
                proxy::fence_of(&mut self.clocks[warp], [u32::MAX, 1][random.below(2)], ProxySpace::Shared(0));
                self.clocks[warp].own += 1;
            }
            5 => {
                let row = random.below(self.rows.len());
                if random.below(2) == 0 {
                    self.end_epoch(row);
                }
                self.learn(warp, row);
            }
            0 | 1 => self.meet(),
            2 => self.clocks[warp].meet(u32::MAX, 0),
            _ => self.clocks[warp].meet(0xff, 0),
        }
    }

    /// An operation on some pieces of a size, in rows that lie one behind the other, or on one range.
    fn step_wide(&mut self, warp: usize, a: Access, random: &mut Random) {
        let (unit, step, n) =
            [(16, 16, 4), (32, 128, 4), (16, 128, 3), (256, 0, 1), (640, 0, 1), (100, 0, 1)][random.below(6)];
        let most = 4 * WORDS - u64::from(unit) - step * (n - 1);
        let start = random.below(most as usize / 16 + 1) as u64 * 16 + if random.below(16) == 0 { 2 } else { 0 };
        let start = start.min(most);
        let pieces: Vec<(u64, u32)> = (0..n).map(|i| (start + i * step, unit)).collect();
        self.note_wide(warp, random.below(self.rows.len()), &pieces, Access { lanes: 1, ..a });
    }

    fn step(&mut self, random: &mut Random) {
        let warp = [0, 0, 1, 1, 2, 3][random.below(6)];
        let (id, epoch, pc) = (self.clocks[warp].id, self.clocks[warp].own, random.below(3) as u32);
        let a = Access { lanes: 1 << random.below(3), ..Access::at(id, epoch, pc, random.below(3) == 0) };
        let bytes = [4, 4, 4, 8, 16, 16, 2, 1][random.below(8)];
        let start = (200 + random.below(64) as u64) / u64::from(bytes) * u64::from(bytes);
        match random.below(16) {
            12 | 13 => self.step_wide(warp, Access { write: random.below(2) == 0, ..a }, random),
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
                if let Some(all) = &mut self.bytes {
                    all.arrive(w, at, bytes, &a);
                }
            }
            9 => match random.below(8) {
                0 => self.note(warp, 208, 4, Access { strong: Some(Scope::Cta), ..a }),
                1 => self.note(warp, 208, 4, Access { is_nc: !a.write, ..a }),
                2 => self.note(warp, 208, 4, Access { pc: 1 << 24, ..a }),
                _ => {}
            },
            _ => self.order(warp, random),
        }
    }

    /// Both have the same accesses of each word, each list in an order of its own where halves of words are in it.
    fn check(&mut self) {
        let key = |a: &Access| (a.warp, a.also, a.lanes, a.epoch, a.pc, a.bytes, a.write, a.in_flight, a.actor);
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
    Access { warp: a.warp / 32 * 32 + readers.trailing_zeros(), also: readers & (readers - 1), is_nc: false, ..a }
}

#[test]
fn words_say_what_lists_and_bytes_say() {
    let (mut random, mut judged) = (Random(1), Judged::default());
    for _ in 0..4000 {
        let mut both = Both::new();
        for _ in 0..1 + random.below(80) {
            both.step(&mut random);
        }
        both.check();
        (judged.all, judged.wrong) = (judged.all + both.judged.all, judged.wrong + both.judged.wrong);
        both.fast.forget();
        assert_eq!(both.fast.pages.of_bytes(0, 4 * WORDS).count(), 0);
    }
    assert!(judged.all > 10_000 && judged.wrong > 1000, "{} of {} are wrong", judged.wrong, judged.all);
}

/// A ring of stages, as pipelines have it: a copy fills one, products of some warps read it, and it is filled again when they are over. Threads
/// write what a copy then reads. Each access comes in its turn, and now and then one comes too early.
#[test]
fn pipelines_are_judged_as_byte_by_byte() {
    let (mut random, mut judged) = (Random(3), Judged::default());
    for round in 0..600 {
        let mut both = Both::new();
        let early = round % 3 != 0;
        for turn in 0..12 {
            let (stage, row) = ([0, 256][turn % 2], turn % 2);
            let of = |both: &Both, warp: usize, write| Access {
                lanes: 1,
                ..Access::at(both.clocks[warp].id, both.clocks[warp].own, turn as u32 % 2, write)
            };
            if !early || random.below(12) != 0 {
                both.meet();
            }
            let a = of(&both, 0, true);
            if turn % 4 == 3 {
                // Threads fill it, each lane a word, and the fence tells the asynchronous proxy.
                both.note_row(0, stage, Form { lanes: 32, unit: 4, stride: 4 }, 0, a);
                both.note_row(1, stage + 128, Form { lanes: 32, unit: 4, stride: 4 }, 0, of(&both, 1, true));
                (0..2).for_each(|warp| both.clocks[warp].meet(u32::MAX, 0));
                for warp in 0..2 {
                    if !early || random.below(12) != 0 {
                        proxy::fence_of(&mut both.clocks[warp], u32::MAX, ProxySpace::Shared(0));
                    }
                }
                both.meet();
            } else {
                both.note_wide(0, row, &[(stage, 256)], a);
                both.end_epoch(row);
                for warp in 0..3 {
                    if !early || random.below(12) != 0 {
                        both.learn(warp, row);
                    }
                }
            }
            for warp in 0..3 {
                for part in 0..2 {
                    let pieces: Vec<(u64, u32)> = (0..4).map(|i| (stage + 64 * i + 32 * part, 32)).collect();
                    let a = of(&both, warp, false);
                    both.note_wide(warp, 2, &pieces, Access { pc: 2 + part as u32, ..a });
                }
            }
            both.end_epoch(2);
            for warp in 0..3 {
                if !early || random.below(12) != 0 {
                    both.learn(warp, 2);
                }
            }
            both.check();
        }
        assert!(early || both.judged.wrong == 0);
        (judged.all, judged.wrong) = (judged.all + both.judged.all, judged.wrong + both.judged.wrong);
    }
    assert!(judged.all > 10_000 && judged.wrong > 300, "{} of {} are wrong", judged.wrong, judged.all);
}
