//! Races: accesses of one place that nothing orders, by happens-before.
//!
//! Each word keeps the accesses that later ones have to be ordered after, an access with the epoch of its warp: the last write,
//! and who has read since. Lanes of an instruction that access one address are noted together. What orders is in `order`.

use std::collections::HashMap;

use super::access::{Place, locate, read};
use super::order::{Clock, Far, WarpClock, synchronise};
use super::pages::{Cell, Pages};
use super::paths::Paths;
use super::warp::{Block, Warp};
use super::word::{Access, both_strong, ordered};
use super::{Grid, report};
use crate::exec::ptx::code::{MemInfo, Order};
use crate::exec::ptx::memory::BASE;
use crate::exec::ptx::types::Space;
use crate::exec::{FindingKind, Other};

/// The accesses of a memory.
#[derive(Debug, Default)]
pub(in super::super) struct Races {
    pub(super) pages: Pages,
    pub(super) paths: Paths,
    /// What releases have left at an address.
    pub(super) released: HashMap<u64, Far>,
    /// What barriers have collected.
    pub(super) barriers: HashMap<u32, Clock>,
}

/// An earlier access that nothing orders before one of these lanes.
struct Conflict {
    lanes: u32,
    address: u64,
    with: Access,
    /// Whether they are ordered, and only a proxy fence is missing.
    unfenced: bool,
}

impl Conflict {
    /// Whether it is with a plain store of another instruction: of two that store one value, it does not matter which is the last.
    fn is_with_store(&self, w: &Warp) -> bool {
        let a = &self.with;
        let here = a.warp == w.clock.id && a.epoch == w.clock.own;
        a.write && !here && !self.unfenced && !a.in_flight && a.actor == 0 && a.strong.is_none()
    }
}

/// Notes an access; the result is an earlier one that nothing orders before it.
#[inline(always)]
fn touch(cell: &mut Cell, paths: &mut Paths, w: &WarpClock, new: Access, check: bool) -> Option<(Access, bool)> {
    let (mut conflict, mut merged, mut i) = (None, false, 0);
    while i < cell.len() {
        let a = &mut cell[i];
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
                cell.remove(i);
                continue;
            }
            i += 1;
            continue;
        }
        let (before, unfenced) = ordered(w, a, &new);
        if let Err(by) = before
            && check
            && overlaps
            && (a.write || new.write)
            && !both_strong(w, a, new.strong)
        {
            conflict = conflict.or(Some((Access { warp: by, ..*a }, unfenced)));
        } else if w.lessons.is_some() && check && overlaps && (a.write || new.write) {
            paths.note(a.pc, new.pc, a.known_by(w));
        }
        let same = a.warp == new.warp
            && a.epoch == new.epoch
            && a.pc == new.pc
            && a.write == new.write
            && a.in_flight == new.in_flight
            && a.actor == new.actor
            && a.bytes == new.bytes;
        if same && !merged {
            a.lanes |= new.lanes;
            merged = true;
            i += 1;
            continue;
        }
        // What this one covers: a write hides all before it, a read only earlier reads.
        let covered = a.bytes & !new.bytes == 0;
        if covered && !a.in_flight && (new.write || (!a.write && before.is_ok())) {
            cell.remove(i);
        } else {
            i += 1;
        }
    }
    if !merged {
        cell.push(new);
    }
    conflict
}

impl Races {
    /// Accesses of a region by other blocks than `number`, with their places.
    pub(super) fn of_others(&mut self, start: u64, bytes: u64, number: u32) -> impl Iterator<Item = (u64, &Access)> {
        self.pages.of_bytes(start, bytes).filter(move |(_, a)| a.warp / 32 != number)
    }

    /// Notes an access by all lanes of bytes that lie one after the other, if nothing has to be said of it: whether it did.
    #[inline(always)]
    fn note_row(&mut self, w: &WarpClock, start: u64, unit: u32, new: Access) -> bool {
        let new = Access { lanes: 1, bytes: 0xf, ..new };
        let Some(row) = self.pages.row(start / 4, unit) else { return false };
        // A lane of the same warp accesses the same place.
        let is_fine = |a: &Access| !a.write && !new.write || ordered(w, a, &new).0.is_ok();
        if !row.iter().all(is_fine) {
            return false;
        }
        touch(row, &mut self.paths, w, new, false);
        true
    }

    /// Notes an access of bytes that may lie in several words.
    #[inline(always)]
    fn note(&mut self, w: &WarpClock, start: u64, bytes: u32, new: Access, check: bool, found: &mut Vec<Conflict>) {
        let end = start + u64::from(bytes);
        let mut at = start;
        while at < end {
            let word = at / 4 * 4;
            let next = (word + 4).min(end);
            let mask = ((1_u16 << (next - word)) - 1) as u8 & !(((1_u16 << (at - word)) - 1) as u8);
            if let Some((with, unfenced)) =
                touch(self.pages.cell(word / 4), &mut self.paths, w, Access { bytes: mask, ..new }, check)
            {
                found.push(Conflict { lanes: new.lanes, address: at, with, unfenced });
                return;
            }
            at = next;
        }
    }
}

/// Runs `f` on the accesses of a place, and where it lies in them: those of the block's shared memory, or of the device's.
pub(super) fn with<T>(g: &Grid<'_>, b: &mut Block, place: Place, f: impl FnOnce(&mut Races, u64) -> T) -> Option<T> {
    match place {
        Place::Shared(at) => b.races.as_deref_mut().map(|races| f(races, at)),
        Place::Global(at) => {
            let mut races = g.races.as_ref()?.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            Some(f(&mut races, at - BASE))
        }
        Place::Local(_) => None,
    }
}

#[inline(never)]
#[allow(clippy::too_many_arguments, reason = "what a finding says")]
fn report_all(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    pc: u32,
    is_global: bool,
    write: bool,
    bytes: u32,
    found: Vec<Conflict>,
) {
    for Conflict { lanes, address, with: a, unfenced } in found {
        let (space, address) = if is_global { (Space::Global, address + BASE) } else { (Space::Shared, address) };
        let index = g.index(u64::from(a.warp / 32));
        for lane in (0..32).filter(|l| lanes >> l & 1 != 0) {
            let other = Other {
                who: report::who(g, index, a.warp % 32, a.lanes),
                write: a.write,
                in_flight: a.in_flight || a.actor != 0,
                site: Some(report::site(g.code, a.pc)),
            };
            report::race(
                g,
                b,
                w,
                pc,
                lane,
                report::target(g, space, address),
                u64::from(bytes),
                write,
                other,
                unfenced,
            );
        }
    }
}

/// Lanes that access bytes at a place, all at one.
pub(super) fn note(g: &Grid<'_>, b: &mut Block, w: &Warp, place: Place, bytes: u32, new: Access, check: bool) {
    note_store(g, b, w, place, bytes, new, check, false);
}

/// The same, which may repeat what lies there.
#[allow(clippy::too_many_arguments, reason = "the parts of an access")]
fn note_store(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    place: Place,
    bytes: u32,
    new: Access,
    check: bool,
    repeats: bool,
) {
    let mut found = Vec::new();
    with(g, b, place, |races, at| races.note(&w.clock, at, bytes, new, check, &mut found));
    found.retain(|c| !(repeats && c.is_with_store(w)));
    if !found.is_empty() {
        report_all(g, b, w, new.pc, matches!(place, Place::Global(_)), new.write, bytes, found);
    }
}

/// What a lane stores of a register.
fn stored(w: &Warp, mem: &MemInfo, row: u32, l: usize) -> u64 {
    let r = row as usize;
    if mem.wide {
        let row = &w.rows[r + l / 16].0;
        u64::from(row[l % 16 * 2]) | u64::from(row[l % 16 * 2 + 1]) << 32
    } else {
        u64::from(w.rows[r].0[l])
    }
}

/// Whether lanes store one value.
fn is_same(w: &Warp, mem: &MemInfo, rows: &[u32], l: usize, m: usize) -> bool {
    rows.iter().all(|r| stored(w, mem, *r, l) == stored(w, mem, *r, m))
}

/// Whether a lane stores what lies there.
fn repeats(g: &Grid<'_>, b: &Block, w: &Warp, mem: &MemInfo, rows: &[u32], l: usize, place: Place) -> bool {
    let mask = u64::MAX >> (64 - 8 * mem.bytes.clamp(1, 8));
    let at = |i: usize| place.plus(i as u64 * u64::from(mem.bytes));
    let same = |(i, r): (usize, &u32)| (read(g, b, w, at(i), mem.bytes) ^ stored(w, mem, *r, l)) & mask == 0;
    rows.iter().enumerate().all(same)
}

/// Lanes access the device's memory: the kernel before has to have ended.
#[inline]
pub(super) fn not_early(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, lanes: u32) {
    if !b.waited {
        let detail =
            "before griddepcontrol.wait, where the kernel before may still write or read that memory".to_owned();
        report::simple(g, b, w, FindingKind::Asynchrony, pc, lanes, detail);
    }
}

/// The lanes of a load or store that lie in one memory: those of one address together.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(super) fn together(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    pc: u32,
    mask: u32,
    at: &[u64; 32],
    mem: &MemInfo,
    is_global: bool,
    is_row: bool,
    values: Option<&[u32]>,
) {
    if mem.order != Order::Weak {
        return accesses(g, b, w, pc, mask, at, mem, values.is_some(), values);
    }
    if is_global {
        not_early(g, b, w, pc, mask);
        if !g.memory.allocations[w.near.index].writable {
            return;
        }
    }
    let new = Access::new(w, pc, values.is_some());
    let bytes = mem.bytes * mem.elements;
    let mut found = Vec::new();
    let mut guard;
    let (races, base) = if is_global {
        let Some(races) = &g.races else { return };
        guard = races.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (&mut *guard, BASE)
    } else {
        let Some(races) = b.races.as_deref_mut() else { return };
        (races, 0)
    };
    // Where paths are asked for, each word has its own.
    let whole = is_row && mask == u32::MAX && bytes <= 16 && at[0].is_multiple_of(4) && w.clock.lessons.is_none();
    if whole && races.note_row(&w.clock, at[0] - base, bytes, new) {
        return;
    }
    let mut left = mask;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let address = at[first];
        let mut group = 1 << first;
        if !is_row {
            for (l, at) in at.iter().enumerate() {
                group |= u32::from(*at == address) << l;
            }
            group &= left;
        }
        left &= !group;
        let Some(rows) = values else {
            races.note(&w.clock, address - base, bytes, Access { lanes: group, ..new }, true, &mut found);
            continue;
        };
        // Lanes of one store that write one value to one place: any of them is the last.
        races.note(&w.clock, address - base, bytes, Access { lanes: 1 << first, ..new }, true, &mut found);
        let mut others = group & (group - 1);
        while others != 0 {
            let l = others.trailing_zeros() as usize;
            others &= others - 1;
            if !is_same(w, mem, rows, first, l) {
                races.note(&w.clock, address - base, bytes, Access { lanes: 1 << l, ..new }, true, &mut found);
            }
        }
    }
    if let Some(rows) = values {
        found.retain(|c| {
            let l = c.lanes.trailing_zeros() as usize & 31;
            let place = if is_global { Place::Global(at[l]) } else { Place::Shared(at[l]) };
            !(c.is_with_store(w) && repeats(g, b, w, mem, rows, l, place))
        });
    }
    if !found.is_empty() {
        report_all(g, b, w, pc, is_global, new.write, bytes, found);
    }
}

/// The lanes of a load or store, one by one.
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(super) fn accesses(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    pc: u32,
    mask: u32,
    at: &[u64; 32],
    mem: &MemInfo,
    write: bool,
    values: Option<&[u32]>,
) {
    if matches!(mem.space, Space::Local | Space::Const | Space::Param) {
        return;
    }
    let bytes = mem.bytes * mem.elements;
    let strong = (mem.order != Order::Weak).then_some(mem.scope);
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let Ok(place) = locate(g, w, mem.space, at[l as usize], l, u64::from(bytes), write) else { continue };
        if let Place::Global(_) = place {
            not_early(g, b, w, pc, 1 << l);
            if !g.memory.allocations[w.near.index].writable {
                continue;
            }
        }
        if let Some(rows) = values {
            let twin = (0..l).find(|m| mask >> m & 1 != 0 && at[*m as usize] == at[l as usize]);
            if twin.is_some_and(|m| is_same(w, mem, rows, m as usize, l as usize)) {
                continue;
            }
        }
        if strong.is_some() {
            synchronise(g, b, w, place, mem.order, write, !write, false, pc);
        }
        let access = Access { lanes: 1 << l, strong, ..Access::new(w, pc, write) };
        let again = values.is_some_and(|rows| strong.is_none() && repeats(g, b, w, mem, rows, l as usize, place));
        note_store(g, b, w, place, bytes, access, true, again);
    }
}

/// A lane of an atomic.
pub(super) fn atomic(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, lane: u32, place: Place, mem: &MemInfo) {
    synchronise(g, b, w, place, mem.order, true, true, true, pc);
    if let Place::Global(_) = place {
        not_early(g, b, w, pc, 1 << lane);
    }
    let access = Access { lanes: 1 << lane, strong: Some(mem.scope), ..Access::new(w, pc, true) };
    note(g, b, w, place, mem.bytes * mem.elements, access, true);
}
