//! Races: unordered accesses of one place, by happens-before.
//!
//! Lanes of an instruction with one address are noted together. `touch` keeps the accesses, `order` their order.

use super::broken;
use super::cell::New;
use super::pages::Form;
use super::release::{Strong, synchronise};
use super::touch::Conflict;
pub(crate) use super::touch::Races;
use super::word::{ACTOR, Access};
use crate::code::{MemInfo, Order};
use crate::machine::accesses::access::{Place, locate, read};
use crate::machine::accesses::addresses::{by_address, form};
use crate::machine::accesses::places::Pattern;
use crate::machine::reports::causes::Broken;
use crate::machine::reports::report;
use crate::machine::threads::cluster;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::{BEFORE, Grid, RESERVED};
use crate::memory::BASE;
use crate::types::Space;
use crate::{Finding, Other, Rule};

/// Runs `f` on the accesses of the memory of a place (shared or global), with the offset of the place.
pub(crate) fn with<T>(g: &Grid<'_>, b: &mut Block, place: Place, f: impl FnOnce(&mut Races, u64) -> T) -> Option<T> {
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
fn report_all(g: &Grid<'_>, b: &mut Block, w: &Warp, new: &Access, is_global: bool, bytes: u32, found: Vec<Conflict>) {
    // Reserved shared memory belongs to the compiler: cooperative groups rely on more order there than PTX guarantees.
    let is_reserved = |at: u64| {
        let inside = g.reserved.map_or(u64::MAX, |start| (at % g.shared_stride.max(1)).wrapping_sub(start));
        !is_global && inside < RESERVED
    };
    for Conflict { lanes, address, with: a, flaw } in found.into_iter().filter(|c| !is_reserved(c.address)) {
        let (space, address) = if is_global { (Space::Global, address + BASE) } else { (Space::Shared, address) };
        let rule = broken::rule(g, b, w, &a, new, flaw);
        let read = broken::flag(w, &a, new).filter(|(of, _)| *of == rule).map(|(_, read)| report::site(g.code, read));
        let detail = read.map_or_else(String::new, |read| format!("the flag that announces it is read at {read}"));
        let absent = broken::absent(b, w, &a).filter(|_| rule == Rule::LeftEarly).map(|barrier| {
            let lanes = if a.lanes == u32::MAX { String::new() } else { format!(" lanes {:#010x}", a.lanes) };
            format!("warp {}{lanes} had exited before the barrier at {}", a.warp % 32, report::site(g.code, barrier))
        });
        let detail = absent.unwrap_or(detail);
        let make = |at: &Broken| {
            let index = g.index(u64::from(a.warp / 32));
            let other = Other {
                who: report::who(g, index, a.warp % 32, a.lanes),
                write: a.write,
                in_flight: a.in_flight || a.actor != 0,
                site: Some(report::site(g.code, a.pc)),
            };
            Finding {
                target: Some(report::target(g, space, address)),
                write: new.write,
                bytes: u64::from(bytes),
                other: Some(Box::new(other)),
                detail: detail.clone(),
                ..report::broken(g, at)
            }
        };
        for lane in (0..32).filter(|l| lanes >> l & 1 != 0) {
            let at = Broken { other: Some(a.pc), ..Broken::by(w, rule, new.pc, 1 << lane) };
            b.findings.keep(g, &at, || make(&at));
        }
    }
}

/// Lanes that access bytes at a place, all at one.
pub(crate) fn note(g: &Grid<'_>, b: &mut Block, w: &Warp, place: Place, bytes: u32, new: Access, check: bool) {
    note_store(g, b, w, place, bytes, new, check, false);
}

/// An asynchronous operation accesses pieces of shared memory, or of the device's.
pub(crate) fn note_wide(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    is_global: bool,
    pieces: impl Iterator<Item = (u64, u32)>,
    new: Access,
) {
    let place = if is_global { Place::Global(BASE) } else { Place::Shared(0) };
    let pieces = pieces.map(|(at, bytes)| (if is_global { at - BASE } else { at }, bytes));
    let found = with(g, b, place, |races, _| races.note_wide(&w.clock, pieces, &new));
    for (bytes, conflict) in found.into_iter().flatten() {
        report_all(g, b, w, &new, is_global, bytes, vec![conflict]);
    }
}

/// Lanes that access bytes of shared memory, each at its place.
pub(crate) fn note_lanes(g: &Grid<'_>, b: &mut Block, w: &Warp, mask: u32, at: &[u32; 32], bytes: u32, new: Access) {
    let Some(races) = b.races.as_deref_mut() else { return };
    let (mut fast, mut found) = (New::of(&w.clock, &new), Vec::new());
    for l in (0..32_usize).filter(|l| mask >> l & 1 != 0) {
        if let Some(conflict) = races.note(&w.clock, fast.as_mut(), u64::from(at[l]), bytes, 1 << l, &new, true) {
            found.push(conflict);
        }
    }
    if !found.is_empty() {
        report_all(g, b, w, &new, false, bytes, found);
    }
}

/// The same, for stores that may repeat the present value.
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
    let mut fast = New::of(&w.clock, &new);
    let found = with(g, b, place, |races, at| races.note(&w.clock, fast.as_mut(), at, bytes, new.lanes, &new, check));
    let found = found.flatten();
    if let Some(conflict) = found.filter(|c| !(repeats && c.is_with_store(w))) {
        report_all(g, b, w, &new, matches!(place, Place::Global(_)), bytes, vec![conflict]);
    }
}

/// The value that a lane stores from a register.
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

/// Whether a lane stores the present value.
fn repeats(g: &Grid<'_>, b: &Block, w: &Warp, mem: &MemInfo, rows: &[u32], l: usize, place: Place) -> bool {
    let mask = u64::MAX >> (64 - 8 * mem.bytes.clamp(1, 8));
    let at = |i: usize| place.plus(i as u64 * u64::from(mem.bytes));
    let same = |(i, r): (usize, &u32)| (read(g, b, w, at(i), mem.bytes) ^ stored(w, mem, *r, l)) & mask == 0;
    rows.iter().enumerate().all(same)
}

/// Lanes access global memory: the previous kernel must have ended.
#[inline]
pub(crate) fn not_early(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, lanes: u32) {
    if g.checks.early && !w.clock.knows(BEFORE | ACTOR, 0, 1, 0) {
        let detail =
            "before griddepcontrol.wait, while the previous kernel may still write or read that memory".to_owned();
        report::simple(g, b, w, Rule::GridDependency, pc, lanes, detail);
    }
}

/// The lanes of a mask.
#[inline(always)]
fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(lane)
    })
}

/// Notes the lanes of a form as rows. Returns the lanes that need more.
#[inline(always)]
fn note_rows(
    races: &mut Races,
    w: &Warp,
    fast: &mut New<'_>,
    at: &[u64; 32],
    base: u64,
    form: Form,
    new: &Access,
) -> u32 {
    let (mut left, lanes) = (u32::MAX, usize::from(form.lanes));
    for first in (0..32).step_by(lanes) {
        if races.note_row(&w.clock, fast, at[first] - base, form, first, new) {
            left &= !(u32::MAX >> (32 - lanes) << first);
        }
    }
    left
}

/// Notes the lanes of a load or store in one memory, with lanes of one address together.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(crate) fn together(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    pc: u32,
    mask: u32,
    at: &[u64; 32],
    mem: &MemInfo,
    is_global: bool,
    pattern: Pattern,
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
    let new = Access { is_nc: mem.nc, ..Access::new(w, pc, values.is_some()) };
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
    if values.is_some() {
        lanes_of(mask).for_each(|l| races.released.overwrite(at[l] - base, u64::from(bytes)));
    }
    let mut fast = New::of(&w.clock, &new);
    // For happens-before paths each word is noted by itself.
    let form = if mask == u32::MAX && fast.is_some() { form(at, bytes, pattern, is_global) } else { None };
    let left = match (&mut fast, form) {
        (Some(fast), Some(form)) => note_rows(races, w, fast, at, base, form, &new),
        _ => mask,
    };
    if left == 0 {
        return;
    }
    let mut groups = [left; 32];
    let firsts = match pattern {
        Pattern::One => 1 << left.trailing_zeros(),
        _ => by_address(at, bytes, left, &mut groups),
    };
    let mut note = |l: usize, lanes: u32| {
        let conflict = races.note(&w.clock, fast.as_mut(), at[l] - base, bytes, lanes, &new, true);
        if let Some(conflict) = conflict {
            found.push(conflict);
        }
    };
    for first in lanes_of(firsts) {
        let Some(rows) = values else {
            note(first, groups[first]);
            continue;
        };
        // Lanes of one store write the same value to one place: any of them may be the last.
        note(first, 1 << first);
        for l in lanes_of(groups[first] & (groups[first] - 1)) {
            if !is_same(w, mem, rows, first, l) {
                note(l, 1 << l);
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
        report_all(g, b, w, &new, is_global, bytes, found);
    }
}

/// The lanes of a load or store, one by one.
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(crate) fn accesses(
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
        cluster::is_there(g, b, w, pc, l, place);
        for place in (0..mem.elements).map(|e| place.plus(u64::from(e * mem.bytes))) {
            if strong.is_none() {
                let end = |races: &mut Races, at| races.released.overwrite(at, u64::from(mem.bytes));
                _ = write.then(|| with(g, b, place, end));
                continue;
            }
            let is_first = l == mask.trailing_zeros();
            let (order, scope) = (mem.order, mem.scope);
            synchronise(g, b, w, place, Strong { order, scope, writes: write, reads: !write, lane: l, is_first, pc });
        }
        let unit = if strong.is_some() { mem.bytes as u8 } else { 0 };
        let access = Access { lanes: 1 << l, strong, unit, is_nc: mem.nc, ..Access::new(w, pc, write) };
        let again = values.is_some_and(|rows| strong.is_none() && repeats(g, b, w, mem, rows, l as usize, place));
        note_store(g, b, w, place, bytes, access, true, again);
    }
}

/// Notes one lane of an atomic.
#[allow(clippy::too_many_arguments, reason = "the parts of an access")]
pub(crate) fn atomic(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    pc: u32,
    lane: u32,
    place: Place,
    mem: &MemInfo,
    mask: u32,
) {
    cluster::is_there(g, b, w, pc, lane, place);
    let is_first = lane == mask.trailing_zeros();
    let (order, scope) = (mem.order, mem.scope);
    for place in (0..mem.elements).map(|e| place.plus(u64::from(e * mem.bytes))) {
        synchronise(g, b, w, place, Strong { order, scope, writes: true, reads: true, lane, is_first, pc });
    }
    if let Place::Global(_) = place {
        not_early(g, b, w, pc, 1 << lane);
    }
    let (strong, unit) = (Some(mem.scope), mem.bytes as u8);
    let access = Access { lanes: 1 << lane, strong, unit, ..Access::new(w, pc, true) };
    note(g, b, w, place, mem.bytes * mem.elements, access, true);
}
