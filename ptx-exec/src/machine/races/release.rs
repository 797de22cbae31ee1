//! Releases and acquires: a strong write publishes the released knowledge of its thread at an address, and a strong read takes it.
//!
//! A fence or a strong access does not order accesses of threads outside its scope. PTX ISA, "Release and Acquire Patterns", requires
//! that the first operation of one pattern and the last of the other are morally strong. So clocks are kept by level: unfenced, block,
//! cluster and device.

use rustc_hash::FxHashMap;

use super::order::{Clock, Far, WarpClock};
use super::race::with;
use super::word::Access;
use crate::Rule;
use crate::code::{Order, Scope};
use crate::machine::Grid;
use crate::machine::accesses::access::Place;
use crate::machine::threads::warp::{Block, Warp};

/// Levels: no fence, and fences of scope block, cluster and device.
const LEVELS: usize = 4;
const UNFENCED: usize = 0;
pub(crate) const CTA: usize = 1;
pub(crate) const CLUSTER: usize = 2;
pub(crate) const DEVICE: usize = 3;
/// Threads whose releases an address remembers.
const THREADS: usize = 8;

pub(crate) fn level(scope: Scope) -> usize {
    match scope {
        Scope::Cta => CTA,
        Scope::Cluster => CLUSTER,
        Scope::Gpu | Scope::Sys => DEVICE,
    }
}

/// The state of a warp's fences.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    /// The knowledge at the last fence of each level or a higher one.
    fenced: [Clock; LEVELS],
    /// The same for other blocks.
    fenced_far: [Far; LEVELS],
    /// Knowledge that strong reads have found, by level. The next fence of that level or a higher one learns it.
    pending: [Clock; LEVELS],
    flags: Flags,
}

/// Knowledge from flags that the warp, or one that it has met, has read. It does not order accesses; it explains what is missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    /// The last read with a result.
    read: Option<u32>,
    /// Whether a writer, and a reader, used a fence of block or cluster scope only.
    is_narrow: [bool; 2],
    /// The knowledge of the writers, and its released part.
    known: Clock,
    released: Clock,
}

impl Flags {
    pub(crate) fn join(&mut self, other: &Flags) {
        if other.read.is_none() {
            return;
        }
        self.read = other.read;
        self.is_narrow.iter_mut().zip(other.is_narrow).for_each(|(narrow, other)| *narrow |= other);
        self.known.join(&other.known);
        self.released.join(&other.released);
    }
}

impl Fences {
    /// The flags that this warp has read, for other warps.
    pub(crate) fn flags(&self) -> &Flags {
        &self.flags
    }

    pub(crate) fn meet(&mut self, flags: &Flags) {
        self.flags.join(flags);
    }

    /// The knowledge at the last fence of cluster scope or wider.
    pub(crate) fn of_cluster(&self) -> &Clock {
        &self.fenced[CLUSTER]
    }

    /// Whether a write to a flag shows that a block has begun.
    fn knows_of(&self, block: u32) -> bool {
        (block * 32..block * 32 + 32).any(|warp| self.flags.known.of_warp(warp, u32::MAX) > 0)
    }

    /// The broken rule if a flag announces an access, and the read of that flag.
    pub(crate) fn broken(&self, first: &Access, block: u32) -> Option<(Rule, u32)> {
        let knows = |clock: &Clock| clock.of_warp(first.warp, block) >= first.epoch;
        let [writer, reader] = self.flags.is_narrow;
        let (rule, is_narrow) = match () {
            () if knows(&self.flags.released) => (Rule::AcquireFence, reader),
            () if knows(&self.flags.known) => (Rule::ReleaseFence, writer),
            () => return None,
        };
        Some((if is_narrow { Rule::Scope } else { rule }, self.flags.read?))
    }
}

/// The knowledge that strong writes have left at an address.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Number of writes that have ended a release sequence here.
    chain: u64,
    unfenced: Far,
    device: Far,
    /// Whether one of the writes had only a fence of block or cluster scope before it.
    is_narrow: bool,
    /// The released knowledge of each thread, by warp and lane, at its last release here. Its later strong writes keep it.
    by: Vec<((u32, u32), [Far; LEVELS])>,
}

/// The same within the cluster, and within each of its blocks.
#[derive(Debug, Default)]
pub(crate) struct LeftNearby {
    chain: u64,
    cluster: Far,
    blocks: FxHashMap<u32, Far>,
}

/// The knowledge left at the addresses of a memory.
#[derive(Debug, Default)]
pub(crate) struct Released {
    of: FxHashMap<u64, Left>,
    /// By memory (`true` for global) and address.
    near: FxHashMap<(bool, u64), LeftNearby>,
    /// All addresses of the first lie between.
    bounds: Option<(u64, u64)>,
}

impl Released {
    pub(crate) fn clear(&mut self) {
        *self = Released::default();
    }

    fn at(&mut self, at: u64) -> &mut Left {
        let (low, high) = self.bounds.unwrap_or((at, at));
        self.bounds = Some((low.min(at), high.max(at)));
        self.of.entry(at).or_default()
    }

    /// A plain store to an address: it ends the release sequences there.
    #[inline]
    pub(crate) fn overwrite(&mut self, at: u64, bytes: u64) {
        if self.bounds.is_some_and(|(low, high)| at <= high && at + bytes > low) {
            self.end(at, bytes);
        }
    }

    #[inline(never)]
    fn end(&mut self, at: u64, bytes: u64) {
        for at in at..at + bytes {
            if let Some(left) = self.of.get_mut(&at) {
                *left = Left { chain: left.chain + 1, ..Left::default() };
            }
        }
    }
}

/// A strong access of a lane.
#[derive(Clone, Copy)]
pub(crate) struct Strong {
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    pub(crate) writes: bool,
    pub(crate) reads: bool,
    pub(crate) lane: u32,
    /// Whether no lane below it executes the instruction.
    pub(crate) is_first: bool,
    pub(crate) pc: u32,
}

/// A strong access publishes and learns.
pub(crate) fn synchronise(g: &Grid<'_>, b: &mut Block, w: &mut Warp, place: Place, a: Strong) {
    if a.reads {
        acquire(g, b, w, place, a);
    }
    if a.writes {
        release(g, b, w, place, a);
    }
}

fn acquire(g: &Grid<'_>, b: &mut Block, w: &mut Warp, place: Place, a: Strong) {
    let block = w.clock.id / 32;
    let reach = if a.order.acquires() { level(a.scope) } else { UNFENCED };
    let chain = with(g, b, place, |races, at| {
        let left = races.released.of.get(&at)?;
        if !left.unfenced.of.is_empty() || !left.device.of.is_empty() {
            let flags = &mut w.clock.fences.flags;
            flags.read = Some(a.pc);
            flags.is_narrow = [left.is_narrow, a.order.acquires() && reach < DEVICE];
            WarpClock::learn(&mut flags.known, block * 32, &left.unfenced);
            WarpClock::learn(&mut flags.released, block * 32, &left.device);
        }
        take(&mut w.clock, &left.device, DEVICE, reach, a.pc);
        Some(left.chain)
    });
    let (Some(Some(chain)), Some(races)) = (chain, b.races.as_deref()) else { return };
    let Some(near) = races.released.near.get(&key(place)).filter(|near| near.chain == chain) else { return };
    take(&mut w.clock, &near.cluster, CLUSTER, reach, a.pc);
    if let Some(found) = near.blocks.get(&block) {
        take(&mut w.clock, found, CTA, reach, a.pc);
    }
}

/// Learns knowledge of a level now if the access reaches that level; otherwise a later fence learns it.
fn take(clock: &mut WarpClock, found: &Far, level: usize, reach: usize, pc: u32) {
    if found.of.is_empty() {
        return;
    }
    let id = clock.id;
    if level <= reach {
        clock.remember(&Clock::of(found), pc);
        WarpClock::learn(&mut clock.seen, id, found);
    } else {
        WarpClock::learn(&mut clock.fences.pending[level], id, found);
        WarpClock::learn(&mut clock.fences.flags.released, id, found);
    }
}

fn key(place: Place) -> (bool, u64) {
    match place {
        Place::Global(at) => (true, at),
        Place::Shared(at) | Place::Local(at) => (false, at),
    }
}

fn release(g: &Grid<'_>, b: &mut Block, w: &mut Warp, place: Place, a: Strong) {
    let reach = if a.order.releases() { level(a.scope) } else { UNFENCED };
    let thread = (w.clock.id, a.lane);
    let now = (reach > UNFENCED || a.is_first).then(|| w.clock.publish_now());
    let fenced = &w.clock.fences.fenced_far;
    if now.is_none() && a.reads && fenced.iter().all(Far::is_empty) {
        // It leaves nothing, and what was left before stays.
        return;
    }
    let mut levels: [Far; LEVELS] = core::array::from_fn(|l| match &now {
        Some(now) if l <= reach => now.clone(),
        _ => fenced[l].clone(),
    });
    let is_global = matches!(place, Place::Global(_));
    if is_global {
        // Blocks of other clusters read it.
        levels.iter_mut().for_each(|far| far.begun = 0);
    }
    let is_narrow = reach < DEVICE
        && !(levels[CTA].of.is_empty() && levels[CLUSTER].of.is_empty())
        && !covers(&levels[DEVICE], &levels[CTA]);
    let chain = with(g, b, place, |races, at| {
        let left = races.released.at(at);
        if !a.reads {
            left.by.retain(|(by, _)| *by == thread);
            *left = Left { chain: left.chain + 1, by: core::mem::take(&mut left.by), ..Left::default() };
            if let Some((_, kept)) = left.by.first() {
                levels.iter_mut().zip(kept).for_each(|(far, kept)| far.join(kept));
            }
        }
        left.unfenced.join(&levels[UNFENCED]);
        left.device.join(&levels[DEVICE]);
        left.is_narrow |= is_narrow;
        if reach > UNFENCED {
            left.by.retain(|(by, _)| *by != thread);
            left.by.truncate(THREADS - 1);
            left.by.insert(0, (thread, levels.clone()));
        }
        left.chain
    });
    if let (Some(chain), Some(races)) = (chain, b.races.as_deref_mut()) {
        let near = races.released.near.entry(key(place)).or_default();
        if near.chain != chain {
            *near = LeftNearby { chain, ..LeftNearby::default() };
        }
        if g.ranks() > 1 {
            near.cluster.join(&levels[CLUSTER]);
        }
        near.blocks.entry(thread.0 / 32).or_default().join(&levels[CTA]);
    }
    if reach > UNFENCED {
        w.clock.own += 1;
    }
}

/// Whether one clock knows all that another does.
fn covers(far: &Far, other: &Far) -> bool {
    far.of.covers(&other.of)
}

/// A fence: later strong writes publish the present knowledge, and the warp learns the results of earlier strong reads.
pub(crate) fn fence(w: &mut Warp, order: Order, scope: Scope, pc: u32) {
    if !w.clock.on {
        return;
    }
    let reach = level(scope);
    w.clock.fences.flags.is_narrow[1] |= reach < DEVICE && order.acquires();
    if order.acquires() {
        for l in CTA..=reach {
            let pending = core::mem::take(&mut w.clock.fences.pending[l]);
            w.clock.remember(&pending, pc);
            w.clock.seen.join(&pending);
        }
    }
    if order.releases() {
        let now = w.clock.publish();
        let far = w.clock.publish_far(&now);
        w.clock.fences.fenced_far[CTA..=reach].fill(far);
        w.clock.fences.fenced[CTA..=reach].fill(now);
    }
    w.clock.own += 1;
}

/// Whether a block of the warp's cluster is known to have begun.
pub(crate) fn has_begun(w: &mut Warp, rank: u32) -> bool {
    let clock = &mut w.clock;
    if clock.seen.begun >> rank & 1 == 0 {
        let block = clock.id / 32 / clock.cluster * clock.cluster + rank;
        let is_known = |warp: u32| clock.seen.of_warp(warp, u32::MAX) > 0;
        if !(block * 32..block * 32 + 32).any(is_known) && !clock.fences.knows_of(block) {
            return false;
        }
        clock.seen.begun |= 1 << rank;
    }
    true
}
