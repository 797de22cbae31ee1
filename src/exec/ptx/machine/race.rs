//! The order of accesses: happens-before, by vector clocks of warps.
//!
//! An access has the epoch of its warp. Barriers of the block join the clocks of the warps that meet; `bar.warp.sync` orders lanes of
//! a warp; a release (a fence and a strong write, or a releasing one) publishes a clock at an address, an acquire takes it from
//! there. What threads of one warp learn from another block, all lanes of the warp know: the one thing that this is too generous in.

use std::collections::HashMap;

use super::access::{Place, locate};
use super::warp::{Block, Warp};
use super::{Grid, report};
use crate::exec::ptx::code::{MemInfo, Order, Scope};
use crate::exec::ptx::finding::Other;
use crate::exec::ptx::types::Space;

/// What a warp knows of the others: the last epoch of each that happened before.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    near: Vec<u32>,
    far: HashMap<u32, u32>,
}

impl Clock {
    fn join(&mut self, other: &Clock) {
        if self.near.len() < other.near.len() {
            self.near.resize(other.near.len(), 0);
        }
        for (a, b) in self.near.iter_mut().zip(&other.near) {
            *a = (*a).max(*b);
        }
        for (warp, epoch) in &other.far {
            let known = self.far.entry(*warp).or_default();
            *known = (*known).max(*epoch);
        }
    }
}

/// The clock of a warp.
pub(super) struct WarpClock {
    on: bool,
    /// Of the grid: 32 a block.
    id: u32,
    own: u32,
    seen: Clock,
    /// `after[l][m]`: accesses of lane m up to this epoch happened before what lane l does now.
    after: Vec<[u32; 32]>,
    /// What was known at the last fence.
    fenced: Clock,
    /// What strong reads have found, for the next fence.
    pending: Clock,
}

impl WarpClock {
    pub(super) fn new(g: &Grid<'_>, block: u64, warp: u32) -> WarpClock {
        let on = g.checks.races;
        let near = if on { vec![0; 32] } else { Vec::new() };
        WarpClock {
            on,
            id: (block as u32).wrapping_mul(32) + warp,
            own: 1,
            seen: Clock { near, far: HashMap::new() },
            after: if on { vec![[0; 32]; 32] } else { Vec::new() },
            fenced: Clock::default(),
            pending: Clock::default(),
        }
    }

    /// What others may learn of this warp now.
    fn publish(&self) -> Clock {
        let mut clock = self.seen.clone();
        clock.near[(self.id % 32) as usize] = self.own;
        clock
    }

    /// The same for other blocks.
    fn publish_far(&self, clock: &Clock) -> HashMap<u32, u32> {
        let base = self.id / 32 * 32;
        let mut far = clock.far.clone();
        for (w, epoch) in clock.near.iter().enumerate() {
            if *epoch > 0 {
                far.insert(base + w as u32, *epoch);
            }
        }
        far
    }

    fn learn(clock: &mut Clock, id: u32, found: &HashMap<u32, u32>) {
        let base = id / 32 * 32;
        clock.near.resize(32, 0);
        for (warp, epoch) in found {
            let known = if warp / 32 * 32 == base {
                &mut clock.near[(warp % 32) as usize]
            } else {
                clock.far.entry(*warp).or_default()
            };
            *known = (*known).max(*epoch);
        }
    }
}

/// One access of a word by lanes of a warp.
#[derive(Clone, Copy, Debug)]
struct Access {
    warp: u32,
    lanes: u32,
    epoch: u32,
    pc: u32,
    /// Bytes of the word.
    bytes: u8,
    write: bool,
    strong: Option<Scope>,
    in_flight: bool,
}

/// The accesses of memory that later ones have to be ordered after.
#[derive(Debug, Default)]
pub(in super::super) struct Races {
    words: HashMap<u64, Vec<Access>>,
    /// What releases have left at an address.
    released: HashMap<u64, HashMap<u32, u32>>,
    /// What barriers have collected.
    barriers: HashMap<u32, Clock>,
}

fn is_before(w: &WarpClock, lane: u32, a: &Access) -> bool {
    if a.in_flight {
        return false;
    }
    if a.warp == w.id {
        let others = a.lanes & !(1 << lane);
        return (0..32).filter(|m| others >> m & 1 != 0).all(|m| w.after[lane as usize][m] >= a.epoch);
    }
    if a.warp / 32 == w.id / 32 {
        return w.seen.near[(a.warp % 32) as usize] >= a.epoch;
    }
    w.seen.far.get(&a.warp).is_some_and(|epoch| *epoch >= a.epoch)
}

fn both_strong(w: &WarpClock, a: &Access, mine: Option<Scope>) -> bool {
    match (a.strong, mine) {
        (Some(x), Some(y)) => a.warp / 32 == w.id / 32 || x.min(y) >= Scope::Gpu,
        _ => false,
    }
}

impl Races {
    /// Notes an access; the result is an earlier one that nothing orders before it.
    fn touch(&mut self, w: &WarpClock, lane: u32, word: u64, new: Access, check: bool) -> Option<Access> {
        let all = self.words.entry(word).or_default();
        let mut conflict = None;
        let mut merged = false;
        all.retain_mut(|a| {
            let overlaps = a.bytes & new.bytes != 0;
            let same = a.warp == new.warp
                && a.epoch == new.epoch
                && a.pc == new.pc
                && a.write == new.write
                && a.in_flight == new.in_flight;
            let before = is_before(w, lane, a);
            if check && overlaps && (a.write || new.write) && !before && !both_strong(w, a, new.strong) {
                conflict = conflict.or(Some(*a));
            }
            if same && a.bytes == new.bytes && !merged {
                a.lanes |= new.lanes;
                merged = true;
                return true;
            }
            // What this one covers: a write hides all before it, a read only earlier reads.
            let covered = a.bytes & !new.bytes == 0;
            !(covered && !a.in_flight && (new.write || (!a.write && before)))
        });
        if !merged {
            all.push(new);
        }
        conflict
    }
}

/// Runs `f` on the accesses of a place: those of the block's shared memory, or of the device's.
fn with<T>(g: &Grid<'_>, b: &mut Block, place: Place, f: impl FnOnce(&mut Races, u64) -> T) -> Option<T> {
    match place {
        Place::Shared(at) => b.races.as_deref_mut().map(|races| f(races, at)),
        Place::Global(at) => {
            let mut races = g.races.as_ref()?.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            Some(f(&mut races, at))
        }
        Place::Local(_) => None,
    }
}

#[allow(clippy::too_many_arguments, reason = "what a finding says")]
fn note(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    pc: u32,
    lane: u32,
    place: Place,
    bytes: u32,
    access: Access,
    check: bool,
) {
    let (start, rebuild): (u64, fn(u64) -> Place) = match place {
        Place::Shared(at) => (at, Place::Shared),
        Place::Global(at) => (at, Place::Global),
        Place::Local(_) => return,
    };
    let end = start + u64::from(bytes);
    let mut at = start;
    while at < end {
        let word = at / 4 * 4;
        let next = (word + 4).min(end);
        let mask = ((1_u16 << (next - word)) - 1) as u8 & !(((1_u16 << (at - word)) - 1) as u8);
        let new = Access { bytes: mask, ..access };
        let conflict = with(g, b, rebuild(word), |races, word| races.touch(&w.clock, lane, word, new, check)).flatten();
        if let Some(a) = conflict {
            let (space, address) = match place {
                Place::Global(_) => (Space::Global, at),
                _ => (Space::Shared, at),
            };
            let block = u64::from(a.warp / 32);
            let [x, y, _] = g.grid.map(u64::from);
            let index = [(block % x) as u32, (block / x % y) as u32, (block / x / y) as u32];
            let other = Other {
                who: report::who(g, index, a.warp % 32, a.lanes),
                write: a.write,
                in_flight: a.in_flight,
                site: report::site(g.code, a.pc),
            };
            report::race(g, b, w, pc, lane, report::target(g, space, address), u64::from(bytes), access.write, other);
            return;
        }
        at = next;
    }
}

/// The lanes of a load or store.
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
        if let Place::Global(_) = place
            && !g.memory.allocations[w.near_index].writable
        {
            continue;
        }
        // Lanes of one store that write one value to one place: any of them is the last.
        if let Some(rows) = values {
            let twin = (0..l).find(|m| mask >> m & 1 != 0 && at[*m as usize] == at[l as usize]);
            let same = |m: u32| {
                rows.iter().all(|r| {
                    let value = |l: u32| {
                        let (r, l) = (*r as usize, l as usize);
                        if mem.wide {
                            let row = &w.rows[r + l / 16].0;
                            (row[l % 16 * 2], row[l % 16 * 2 + 1])
                        } else {
                            (w.rows[r].0[l], 0)
                        }
                    };
                    value(m) == value(l)
                })
            };
            if twin.is_some_and(same) {
                continue;
            }
        }
        if strong.is_some() {
            synchronise(g, b, w, place, mem.order, write, !write, false);
        }
        let access = Access {
            warp: w.clock.id,
            lanes: 1 << l,
            epoch: w.clock.own,
            pc,
            bytes: 0,
            write,
            strong,
            in_flight: false,
        };
        note(g, b, w, pc, l, place, bytes, access, true);
    }
}

/// A strong access: what it publishes, what it learns.
#[allow(clippy::too_many_arguments, reason = "the parts of an access")]
fn synchronise(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    place: Place,
    order: Order,
    writes: bool,
    reads: bool,
    keeps: bool,
) {
    let id = w.clock.id;
    if reads {
        let found = with(g, b, place, |races, at| races.released.get(&at).cloned()).flatten();
        if let Some(found) = found {
            let into = if order.acquires() { &mut w.clock.seen } else { &mut w.clock.pending };
            WarpClock::learn(into, id, &found);
        }
    }
    if writes {
        let clock = if order.releases() { w.clock.publish() } else { w.clock.fenced.clone() };
        let far = w.clock.publish_far(&clock);
        with(g, b, place, |races, at| {
            let left = races.released.entry(at).or_default();
            if !keeps {
                left.clear();
            }
            for (warp, epoch) in far {
                let known = left.entry(warp).or_default();
                *known = (*known).max(epoch);
            }
        });
        if order.releases() {
            w.clock.own += 1;
        }
    }
}

/// A lane of an atomic.
pub(super) fn atomic(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, lane: u32, place: Place, mem: &MemInfo) {
    synchronise(g, b, w, place, mem.order, true, true, true);
    let access = Access {
        warp: w.clock.id,
        lanes: 1 << lane,
        epoch: w.clock.own,
        pc,
        bytes: 0,
        write: true,
        strong: Some(mem.scope),
        in_flight: false,
    };
    note(g, b, w, pc, lane, place, mem.bytes * mem.elements, access, true);
}

/// Asynchronous copies are issued: from now on their targets belong to them.
pub(super) fn issue(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, mask: u32, at: &[u64; 32], mem: &MemInfo) {
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let access = Access {
            warp: w.clock.id,
            lanes: 1 << l,
            epoch: w.clock.own,
            pc,
            bytes: 0,
            write: true,
            strong: None,
            in_flight: true,
        };
        note(g, b, w, pc, l, Place::Shared(at[l as usize]), mem.bytes, access, true);
    }
}

/// Copies have arrived, and their threads know it.
pub(super) fn complete(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, mask: u32, at: &[u64; 32], bytes: u32) {
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        if let Some(races) = b.races.as_deref_mut() {
            for word in (at[l as usize] / 4 * 4..at[l as usize] + u64::from(bytes)).step_by(4) {
                if let Some(all) = races.words.get_mut(&word) {
                    all.retain_mut(|a| {
                        if a.in_flight && a.warp == w.clock.id && a.pc == pc {
                            a.lanes &= !(1 << l);
                        }
                        a.lanes != 0
                    });
                }
            }
        }
        let access = Access {
            warp: w.clock.id,
            lanes: 1 << l,
            epoch: w.clock.own,
            pc,
            bytes: 0,
            write: true,
            strong: None,
            in_flight: false,
        };
        note(g, b, w, pc, l, Place::Shared(at[l as usize]), bytes, access, false);
    }
}

/// A fence: later strong writes publish what is known now, and what strong reads found is known.
pub(super) fn fence(b: &Block, w: &mut Warp, scope: u32) {
    let _ = (b, scope);
    if !w.clock.on {
        return;
    }
    let pending = core::mem::take(&mut w.clock.pending);
    w.clock.seen.join(&pending);
    w.clock.fenced = w.clock.publish();
    w.clock.own += 1;
}

/// Lanes of a warp meet.
pub(super) fn warp_sync(_: &Block, w: &mut Warp, mask: u32) {
    warp_sync_lanes(w, mask);
}

/// The same.
pub(super) fn warp_sync_lanes(w: &mut Warp, mask: u32) {
    if !w.clock.on {
        return;
    }
    let own = w.clock.own;
    for (l, after) in w.clock.after.iter_mut().enumerate().filter(|(l, _)| mask >> l & 1 != 0) {
        let _ = l;
        for (m, epoch) in after.iter_mut().enumerate() {
            if mask >> m & 1 != 0 {
                *epoch = own;
            }
        }
    }
    w.clock.own += 1;
}

/// Lanes arrive at a barrier of the block.
pub(super) fn arrive(b: &mut Block, w: &mut Warp, number: u32) {
    if !w.clock.on {
        return;
    }
    let clock = w.clock.publish();
    if let Some(races) = b.races.as_deref_mut() {
        races.barriers.entry(number).or_default().join(&clock);
    }
}

/// A barrier opens: what it has collected, for those who waited.
pub(super) fn opened(b: &mut Block, number: u32) -> Option<Clock> {
    b.races.as_deref_mut()?.barriers.remove(&number)
}

/// Lanes leave a barrier that has opened.
pub(super) fn leave(b: &Block, w: &mut Warp, lanes: u32, clock: &Clock) {
    if w.clock.on {
        w.clock.seen.join(clock);
        warp_sync(b, w, lanes);
    }
}
