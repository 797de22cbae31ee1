//! Asynchronous work in flight, and the moment when it happens.
//!
//! The seed decides: as late as the rules allow, at once, or at any moment. Late work happens when all warps wait, when a wait needs it,
//! or after some turns, so that a polling loop ends too.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use super::mbarrier::{self, Mbarrier};
use super::tma::Flight;
use super::tracked::{self, Tracked};
use super::{mbarrier_wait, tma, tma_move};
use crate::machine::products::wgmma_groups;
use crate::machine::products::wgmma_groups::Queue;
use crate::machine::products::wgmma_sums::Cache;
use crate::machine::reports::causes::Broken;
use crate::machine::reports::report;
use crate::machine::threads::block::Running;
use crate::machine::threads::cluster;
use crate::machine::threads::cluster::ClusterBarrier;
use crate::machine::threads::warp::{Block, Wait};
use crate::machine::{Grid, Random};
use crate::{Finding, Rule, Stages, Target, Who};

/// When asynchronous work happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Late,
    Early,
    Any,
}

/// Turns of each warp after which late work happens even without a wait.
const PATIENCE: u64 = 16;
/// The most bulk copies and asynchronous stores that a cluster keeps in flight. Beyond that, the oldest happens, as it may at any
/// moment. This bounds the memory of an endless loop.
const MOST_FLIGHTS: usize = 4096;
/// Times that all waiting groups try again before a deadlock is reported.
const TRIES: u32 = 64;
/// The same if another block may end the wait.
const TRIES_FOR_BLOCKS: u32 = 1 << 20;

/// The asynchronous work in flight in a cluster.
pub(crate) struct Flying {
    pub(crate) moment: Moment,
    pub(crate) random: Random,
    pub(crate) mbarriers: BTreeMap<u64, Mbarrier>,
    pub(crate) flights: VecDeque<Flight>,
    /// Bytes of `cp.async` in flight, by block.
    pub(crate) copying: Vec<u64>,
    /// Arrivals that wait for copies of all warps.
    pub(crate) tracked: usize,
    /// The wait or commit that `cp.async` copies lack, by warp and instruction, for the race check.
    pub(crate) lacks: BTreeMap<(u32, u32), Rule>,
    pub(crate) columns: Cache,
    pub(crate) cluster: ClusterBarrier,
    /// Blocks whose threads have all exited.
    pub(crate) gone: Vec<bool>,
    /// Registers that warps have given back, by block.
    pub(crate) registers: Vec<u32>,
    /// Number of events that may end a wait.
    pub(crate) progress: u64,
    pub(crate) turns: u64,
    /// For the profile, in the first cluster: turns of its warps, and the work in flight by turn.
    watched: u64,
    pub(crate) stages: Option<Vec<Stages>>,
    tried: (u64, u32),
}

impl Flying {
    pub(crate) fn new(g: &Grid<'_>, number: u64) -> Flying {
        let ranks = g.ranks() as usize;
        Flying {
            moment: [Moment::Late, Moment::Early, Moment::Any][(g.seed % 3) as usize],
            random: Random(g.seed ^ 0x7a3b),
            mbarriers: BTreeMap::new(),
            flights: VecDeque::new(),
            copying: vec![0; ranks],
            tracked: 0,
            lacks: BTreeMap::new(),
            columns: Cache::default(),
            cluster: ClusterBarrier::default(),
            gone: vec![false; ranks],
            registers: vec![0; ranks],
            progress: 0,
            turns: 0,
            watched: 0,
            stages: (number == 0 && g.checks.profile).then(Vec::new),
            tried: (0, 0),
        }
    }
}

/// The asynchronous work of a warp.
#[derive(Default)]
pub(crate) struct WarpFlying {
    /// Whether its next wait times out.
    pub(crate) expired: bool,
    /// Bulk groups that each lane has committed, and the rows of its reads and writes.
    pub(crate) committed: [u32; 32],
    pub(crate) actors: FxHashMap<u32, [u32; 2]>,
    /// The last grouped copy of each lane, and the epoch at which it is over.
    pub(crate) grouped: [(u32, u32); 32],
    pub(crate) wgmma: Queue,
    /// Copies by `cp.async` that it has issued, lanes that have waited for theirs, and arrivals that wait for some.
    pub(crate) issued: u64,
    pub(crate) waited: u32,
    pub(crate) tracked: Vec<Tracked>,
    /// Number of such arrivals, and the row of lane 0's tracked copies; the rows of other lanes follow it.
    pub(crate) asked: u32,
    pub(crate) copies_actor: Option<u32>,
    /// The phase of the cluster's barrier that it has arrived at.
    pub(crate) arrived: Option<u64>,
    /// Registers of a thread.
    pub(crate) registers: u32,
}

impl WarpFlying {
    pub(crate) fn new(g: &Grid<'_>) -> WarpFlying {
        WarpFlying { registers: cluster::registers(g), ..WarpFlying::default() }
    }
}

/// Before a warp's turn: its waits may be over.
pub(crate) fn wake(g: &Grid<'_>, r: &mut Running, index: usize) {
    for i in 0..r.warps[index].groups.len() {
        let (b, w) = (&r.block, &mut r.warps[index]);
        let group = w.groups[i];
        let ready = match group.wait {
            Wait::Mbarrier => mbarrier_wait::is_over(g, b, w, &group),
            Wait::Registers => cluster::has_registers(g, b, w, &group),
            Wait::Warpgroup => wgmma_groups::is_over(g, r, index),
            _ => false,
        };
        if ready {
            r.warps[index].groups[i].wait = Wait::Ready;
        }
    }
}

/// After a turn: completes work that is due.
pub(crate) fn after_turn(g: &Grid<'_>, r: &mut Running) {
    let flying = &mut r.block.flying;
    if flying.flights.is_empty() && flying.tracked == 0 {
        return;
    }
    flying.turns += 1;
    let oldest = flying.turns.saturating_sub(PATIENCE * r.warps.len() as u64);
    let mut i = 0;
    while i < r.block.flying.flights.len() {
        let flying = &mut r.block.flying;
        let due = flying.flights[i].born < oldest || flying.moment == Moment::Any && flying.random.below(4) == 0;
        if !due || !happen(g, &mut r.block, i) {
            i += 1;
        }
    }
    if r.block.flying.tracked > 0 {
        tracked::after_turn(g, r, oldest);
    }
}

/// After a turn: notes the work in flight, for the profile.
pub(crate) fn watch(r: &mut Running) {
    let flying = &mut r.block.flying;
    let Some(stages) = &mut flying.stages else { return };
    let filling = flying.mbarriers.values().filter(|m| m.tx > 0).count() as u32;
    let products = r.warps.iter().map(|w| w.flying.wgmma.pending()).max().unwrap_or(0);
    let last = stages.last().map_or((0, 0), |s| (s.filling, s.products));
    if last != (filling, products) {
        stages.push(Stages { turn: flying.watched, filling, products });
    }
    flying.watched += 1;
}

/// Completes one flight. Returns whether it exists.
pub(crate) fn happen(g: &Grid<'_>, b: &mut Block, index: usize) -> bool {
    let Some(flight) = b.flying.flights.remove(index) else { return false };
    tma_move::run(g, b, flight);
    b.flying.progress += 1;
    true
}

/// No warp can continue: completes work in flight, or times out the waits. Returns `false` if there is neither.
pub(crate) fn stir(g: &Grid<'_>, r: &mut Running) -> bool {
    let (n, tracked) = (r.block.flying.flights.len(), r.block.flying.tracked);
    if n + tracked > 0 {
        match r.block.flying.random.below(n + tracked) {
            index if index < n => {
                happen(g, &mut r.block, index);
            }
            index => tracked::one(g, r, index - n),
        }
        return true;
    }
    let flying = &mut r.block.flying;
    flying.tried =
        if flying.tried.0 == flying.progress { (flying.progress, flying.tried.1 + 1) } else { (flying.progress, 0) };
    let most = if g.code.communicates { TRIES_FOR_BLOCKS } else { TRIES };
    if flying.tried.1 > most {
        return false;
    }
    let mut any = false;
    for w in &mut r.warps {
        for group in w.groups.iter_mut().filter(|group| group.wait == Wait::Mbarrier) {
            group.wait = Wait::Ready;
            (w.flying.expired, any) = (true, true);
        }
    }
    any
}

/// All threads of a block have exited: asynchronous work on its shared memory must be over.
pub(crate) fn block_ended(g: &Grid<'_>, r: &mut Running, rank: u32) {
    r.block.flying.gone[rank as usize] = true;
    r.block.flying.progress += 1;
    for flight in r.block.flying.flights.iter().filter(|f| f.writes_to(g, rank)).cloned().collect::<Vec<Flight>>() {
        let what = "a copy is in flight to shared memory of a block whose threads have all exited".to_owned();
        finding(g, &mut r.block, Rule::CopyEnd, flight.pc, flight.who, None, what);
    }
    mbarrier::ended(g, r, rank);
    if g.checks.races {
        cluster::left_alone(g, r, rank);
    }
    if r.warps.iter().all(|w| w.is_done()) {
        while !r.block.flying.flights.is_empty() {
            happen(g, &mut r.block, 0);
        }
    }
}

/// A thread breaks a rule at an instruction.
pub(crate) fn finding(
    g: &Grid<'_>,
    b: &mut Block,
    rule: impl Into<Rule>,
    pc: u32,
    who: Who,
    target: Option<Target>,
    detail: String,
) {
    let at = Broken::by_whom(&who, rule.into(), pc);
    b.findings.keep(g, &at, || Finding { target, detail, ..report::broken(g, &at) });
}

/// Issues work; early work happens at once.
pub(crate) fn issued(g: &Grid<'_>, b: &mut Block, flight: Flight) {
    if b.flying.moment == Moment::Early {
        tma_move::run(g, b, flight);
        b.flying.progress += 1;
    } else {
        b.flying.flights.push_back(Flight { born: b.flying.turns, ..flight });
        if b.flying.flights.len() > MOST_FLIGHTS {
            happen(g, b, 0);
        }
    }
}

/// Completes the first `before` groups of a lane, or with `reads` at least their reads.
pub(crate) fn wait(g: &Grid<'_>, b: &mut Block, number: usize, lane: u32, before: u32, reads: bool) {
    let mut i = 0;
    while i < b.flying.flights.len() {
        let f = &mut b.flying.flights[i];
        if !(f.warp == number && f.lane == lane && f.info.grouped && f.group < before) {
            i += 1;
        } else if reads && b.flying.moment == Moment::Late {
            if b.flying.flights[i].data.is_none()
                && let Some(mut flight) = b.flying.flights.remove(i)
            {
                tma::take(b, &mut flight);
                b.flying.flights.insert(i, flight);
            }
            i += 1;
        } else {
            happen(g, b, i);
        }
    }
}
