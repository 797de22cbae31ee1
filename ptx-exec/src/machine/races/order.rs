//! Clocks: the knowledge of a warp about other warps, and how barriers, fences and strong accesses pass it on.
//!
//! Barriers of the block join the clocks of the warps that meet; `bar.warp.sync` orders lanes of a warp; releases and acquires are in
//! `release`. If a thread learns from another block, all lanes of its warp know it. This is the only place where the model is too
//! generous.

use super::known::Known;
use super::paths::Lessons;
use super::proxy::Proxy;
use super::release::{Fences, Flags};
use super::word::ACTOR;
use crate::machine::Grid;
use crate::machine::threads::warp::{Block, Warp};

/// The knowledge of a warp about others: the last epoch of each that happened before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    near: Vec<u32>,
    far: Known<u32, u32>,
    /// What it has learnt last, which it knows.
    learnt: Known<u32, u32>,
    /// For warps with only some lanes known: the last epoch of each lane.
    parts: Parts,
    /// The part that is visible to the asynchronous proxy.
    pub(crate) proxy: Proxy,
    /// Blocks of its cluster that are known to have begun.
    pub(crate) begun: u32,
}

/// Epochs of lanes, by warp.
type Parts = Known<u32, [u32; 32]>;

/// A clock as all blocks read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Far {
    pub(crate) of: Known<u32, u32>,
    parts: Parts,
    pub(crate) proxy: Proxy,
    pub(crate) begun: u32,
}

impl Far {
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.parts.is_empty()
    }

    pub(crate) fn join(&mut self, other: &Far) {
        self.of.join(&other.of);
        self.parts.join(&other.parts);
        self.proxy.join(&other.proxy);
        self.begun |= other.begun;
    }
}

impl Clock {
    pub(crate) fn join(&mut self, other: &Clock) {
        if self.near.len() < other.near.len() {
            self.near.resize(other.near.len(), 0);
        }
        for (a, b) in self.near.iter_mut().zip(&other.near) {
            *a = (*a).max(*b);
        }
        self.far.join(&other.far);
        self.parts.join(&other.parts);
        self.proxy.join(&other.proxy);
        self.begun |= other.begun;
    }

    /// Published knowledge as a clock.
    pub(crate) fn of(far: &Far) -> Clock {
        Clock { far: far.of.clone(), parts: far.parts.clone(), ..Clock::default() }
    }

    /// Up to which epoch the accesses of a warp are known, to a warp of a block.
    pub(crate) fn of_warp(&self, warp: u32, block: u32) -> u32 {
        let near = if warp / 32 == block { self.near.get((warp % 32) as usize) } else { None };
        near.or_else(|| self.far.get(&warp)).copied().unwrap_or(0)
    }

    /// Every warp and what is known of it.
    pub(crate) fn all(&self, base: u32) -> impl Iterator<Item = (u32, u32)> {
        let near = self.near.iter().enumerate().map(move |(w, epoch)| (base + w as u32, *epoch));
        near.chain(self.far.iter().map(|(w, e)| (*w, *e))).filter(|(_, e)| *e > 0)
    }

    /// Whether both are one. Where they are not, they may say the same all the same.
    fn is(&self, other: &Clock) -> bool {
        self.near == other.near
            && self.far.is(&other.far)
            && self.parts.is(&other.parts)
            && self.proxy.is(&other.proxy)
            && self.begun == other.begun
    }

    /// Whether accesses of these lanes of a warp are known up to an epoch, where not all of its lanes told.
    fn knows_part(&self, warp: u32, lanes: u32, epoch: u32) -> bool {
        let told = |of: &[u32; 32]| (0..32).all(|l| lanes >> l & 1 == 0 || of[l] >= epoch);
        !self.parts.is_empty() && self.parts.get(&warp).is_some_and(told)
    }
}

/// The knowledge that a barrier of the block collects from arriving warps.
#[derive(Debug, Default)]
pub(crate) struct Met {
    clock: Clock,
    flags: Flags,
}

/// The clock of a warp.
pub(crate) struct WarpClock {
    pub(crate) on: bool,
    /// Its index in the grid, counting 32 warps a block.
    pub(crate) id: u32,
    /// Blocks of a cluster.
    pub(crate) cluster: u32,
    pub(crate) own: u32,
    pub(crate) seen: Clock,
    /// LaneEpochs of the warp when it began, and the epoch up to which all their accesses happened before what any of them does now.
    pub(crate) members: u32,
    pub(crate) common: u32,
    /// `after[l][m]`: accesses of lane m up to this epoch happened before what lane l does now.
    pub(crate) after: Vec<[u32; 32]>,
    /// `met[l][m]`: operations of lane m on barriers in shared memory up to this epoch came before what lane l does now, as both have
    /// executed an instruction of the whole warp since.
    met: Vec<[u32; 32]>,
    /// Whether lanes have touched barriers in shared memory since.
    touched: bool,
    pub(crate) fences: Fences,
    /// What it published last, and what it knew, and its epoch then.
    published: Option<(Clock, u32, Far)>,
    /// The instructions where it learnt each fact, for happens-before paths.
    pub(crate) lessons: Option<Lessons>,
}

impl WarpClock {
    pub(crate) fn new(g: &Grid<'_>, block: u64, warp: u32, members: u32) -> WarpClock {
        let id = (block as u32).wrapping_mul(32) + warp;
        WarpClock::of(g.checks.races, id, g.cluster.iter().product(), members, g.checks.paths)
    }

    /// A clock without knowledge.
    pub(crate) fn of(on: bool, id: u32, cluster: u32, members: u32, paths: bool) -> WarpClock {
        let near = if on { vec![0; 32] } else { Vec::new() };
        WarpClock {
            on,
            id,
            cluster,
            own: 1,
            members,
            common: 0,
            seen: Clock { near, ..Clock::default() },
            after: if on { vec![[0; 32]; 32] } else { Vec::new() },
            met: Vec::new(),
            touched: false,
            fences: Fences::default(),
            published: None,
            lessons: paths.then(Lessons::default),
        }
    }

    /// For each warp of its block, the epoch up to which its accesses happened before now. For this warp itself, accesses of all lanes.
    #[inline(always)]
    pub(crate) fn known(&self) -> Option<[u32; 32]> {
        let mut known: [u32; 32] = self.seen.near.get(..32)?.try_into().ok()?;
        known[(self.id % 32) as usize] = self.common;
        Some(known)
    }

    /// Whether accesses of a warp's `lanes` at an epoch happened before accesses of each lane in `mine` now.
    #[inline(always)]
    pub(crate) fn knows(&self, warp: u32, lanes: u32, epoch: u32, mine: u32) -> bool {
        if warp == self.id {
            return epoch <= self.common
                || lanes == mine && lanes.is_power_of_two()
                || self.lanes_know(lanes, epoch, mine);
        }
        if warp / 32 == self.id / 32 {
            return self.seen.near[(warp % 32) as usize] >= epoch || self.seen.knows_part(warp, lanes, epoch);
        }
        self.seen.far.get(&warp).is_some_and(|known| *known >= epoch) || self.seen.knows_part(warp, lanes, epoch)
    }

    /// The same of the warp's own lanes.
    #[inline(never)]
    fn lanes_know(&self, lanes: u32, epoch: u32, mine: u32) -> bool {
        Self::each_knows(&self.after, lanes, epoch, mine)
    }

    /// Whether `mbarrier` operations of this warp's `lanes` came before accesses of each lane in `mine` now.
    pub(crate) fn have_met(&self, lanes: u32, epoch: u32, mine: u32) -> bool {
        !self.met.is_empty() && Self::each_knows(&self.met, lanes, epoch, mine)
    }

    fn each_knows(after: &[[u32; 32]], lanes: u32, epoch: u32, mine: u32) -> bool {
        let ordered = |l: usize, m: usize| l == m || after[l][m] >= epoch;
        let mut left = mine;
        while left != 0 {
            let (l, mut others) = (left.trailing_zeros() as usize, lanes);
            while others != 0 {
                if !ordered(l, others.trailing_zeros() as usize) {
                    return false;
                }
                others &= others - 1;
            }
            left &= left - 1;
        }
        true
    }

    /// Notes that it learns a clock's knowledge at `pc`.
    pub(crate) fn remember(&mut self, clock: &Clock, pc: u32) {
        let Some(lessons) = &mut self.lessons else { return };
        for (warp, epoch) in clock.all(self.id / 32 * 32) {
            if warp != self.id {
                lessons.learn(warp, epoch, pc);
            }
        }
        for (warp, epochs) in clock.parts.iter().filter(|(warp, _)| **warp != self.id) {
            lessons.learn(*warp, epochs.iter().copied().filter(|e| *e != u32::MAX).max().unwrap_or(0), pc);
        }
    }

    /// At `pc` it learns that rows of asynchronous operations are over up to an epoch.
    pub(crate) fn learn_rows(&mut self, rows: &[u32], epoch: u32, pc: u32) {
        if !self.on {
            return;
        }
        for row in rows.iter().map(|row| row | ACTOR) {
            self.seen.far.learn(row, epoch);
            if let Some(lessons) = &mut self.lessons {
                lessons.learn(row, epoch, pc);
            }
        }
    }

    /// LaneEpochs meet: all their earlier accesses happened before their later ones.
    pub(crate) fn meet(&mut self, mask: u32, pc: u32) {
        if let Some(lessons) = &mut self.lessons {
            lessons.learn(self.id, self.own, pc);
        }
        if mask == self.members {
            self.common = self.own;
        } else {
            for (_, after) in self.after.iter_mut().enumerate().filter(|(l, _)| mask >> l & 1 != 0) {
                for (_, epoch) in after.iter_mut().enumerate().filter(|(m, _)| mask >> m & 1 != 0) {
                    *epoch = self.own;
                }
            }
        }
        self.own += 1;
    }

    /// The knowledge that this warp publishes now.
    pub(crate) fn publish(&self) -> Clock {
        let mut clock = self.seen.clone();
        clock.near[(self.id % 32) as usize] = self.own;
        clock.begun |= 1 << self.rank();
        clock
    }

    /// The knowledge that these lanes publish: their own accesses, and accesses of other lanes that they know of. Those may have exited.
    pub(crate) fn publish_of(&self, mask: u32) -> Clock {
        let mut clock = self.publish();
        if mask == self.members {
            return clock;
        }
        let epochs: [u32; 32] = core::array::from_fn(|m| match () {
            () if self.members >> m & 1 == 0 => u32::MAX,
            () if mask >> m & 1 != 0 => self.own,
            () => (0..32).filter(|l| mask >> l & 1 != 0).fold(self.common, |known, l| known.max(self.after[l][m])),
        });
        clock.near[(self.id % 32) as usize] = epochs.iter().copied().min().unwrap_or(0);
        clock.parts.learn(self.id, epochs);
        clock
    }

    /// What all blocks may learn of it now. As long as it neither learns nor tells anything, it is what it was.
    pub(crate) fn publish_now(&mut self) -> Far {
        if let Some((clock, own, far)) = &self.published
            && *own == self.own
            && clock.is(&self.seen)
        {
            return far.clone();
        }
        let far = self.publish_far(&self.publish());
        self.published = Some((self.seen.clone(), self.own, far.clone()));
        far
    }

    /// The same for other blocks.
    pub(crate) fn publish_far(&self, clock: &Clock) -> Far {
        Far {
            of: clock.all(self.id / 32 * 32).collect(),
            parts: clock.parts.clone(),
            proxy: clock.proxy.clone(),
            begun: clock.begun,
        }
    }

    /// Its block among those of the cluster.
    pub(crate) fn rank(&self) -> u32 {
        self.id / 32 % self.cluster.max(1)
    }

    pub(crate) fn learn(clock: &mut Clock, id: u32, found: &Far) {
        let base = id / 32 * 32;
        clock.near.resize(32, 0);
        clock.parts.join(&found.parts);
        clock.proxy.join(&found.proxy);
        clock.begun |= found.begun;
        if clock.learnt.is(&found.of) {
            return;
        }
        for (warp, epoch) in found.of.iter() {
            if warp / 32 * 32 == base {
                let known = &mut clock.near[(warp % 32) as usize];
                *known = (*known).max(*epoch);
            } else {
                clock.far.learn(*warp, *epoch);
            }
        }
        clock.learnt = found.of.clone();
    }
}

/// LaneEpochs touch barriers in shared memory.
pub(crate) fn touched(w: &mut Warp) {
    w.clock.touched = true;
}

/// LaneEpochs execute a warp-wide instruction, such as a shuffle. It does not order memory, but their earlier `mbarrier` operations are over.
pub(crate) fn gather(w: &mut Warp, mask: u32) {
    let clock = &mut w.clock;
    if !clock.on || !clock.touched {
        return;
    }
    clock.met.resize(32, [0; 32]);
    for (_, met) in clock.met.iter_mut().enumerate().filter(|(l, _)| mask >> l & 1 != 0) {
        for (_, epoch) in met.iter_mut().enumerate().filter(|(m, _)| mask >> m & 1 != 0) {
            *epoch = clock.own;
        }
    }
    clock.own += 1;
}

/// LaneEpochs of a warp meet.
pub(crate) fn warp_sync(w: &mut Warp, mask: u32, pc: u32) {
    if w.clock.on {
        w.clock.meet(mask, pc);
    }
}

/// LaneEpochs arrive at a barrier of the block.
pub(crate) fn arrive(b: &mut Block, w: &mut Warp, number: u32, mask: u32) {
    if !w.clock.on {
        return;
    }
    let clock = w.clock.publish_of(mask);
    if let Some(races) = b.races.as_deref_mut() {
        let met = races.barriers.entry(number).or_default();
        met.clock.join(&clock);
        met.flags.join(w.clock.fences.flags());
    }
}

/// A barrier opens: returns the collected knowledge for the waiting warps.
pub(crate) fn opened(b: &mut Block, number: u32) -> Option<Met> {
    b.races.as_deref_mut()?.barriers.remove(&number)
}

/// LaneEpochs leave a barrier that has opened.
pub(crate) fn leave(w: &mut Warp, lanes: u32, Met { clock, flags }: &Met, pc: u32) {
    if w.clock.on {
        w.clock.fences.meet(flags);
        w.clock.remember(clock, pc);
        w.clock.seen.join(clock);
        warp_sync(w, lanes, pc);
    }
}
