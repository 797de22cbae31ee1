//! Blocks: their warps take turns, in an order that the seed decides; blocks run on all cores, or in turns where they may see
//! each other.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use smallvec::SmallVec;

use super::budget::{Budget, Purse};
use super::run::{Event, run};
use super::warp::{Barrier, Block, Group, Wait, Warp, refill};
use super::{barrier, meeting, parting, polls};
use crate::machine::asynchronous::flight::Flying;
use crate::machine::asynchronous::{flight, hopper};
use crate::machine::races::paths::Paths;
use crate::machine::reports::causes::{Broken, Findings};
use crate::machine::reports::profile::Count;
use crate::machine::reports::report;
use crate::machine::undefined::origin::Origins;
use crate::machine::{Grid, Outcome, RESERVED, Random};
use crate::{Finding, Rule, Stages};

/// Warp instructions of a turn, if other warps are ready.
const TURN: u64 = 20_000;
/// Warp instructions between checks whether another block has stopped the launch.
const SLICE: u64 = 1 << 20;
/// Blocks with findings after which a launch ends.
const ENOUGH: usize = 64;
/// Stack size of a thread that runs blocks. The calls take 300 KB in builds without optimisation.
const STACK: usize = 4 << 20;
/// Bytes of registers that blocks in turns may take.
const RESIDENT: u64 = 1 << 30;

pub(crate) struct Running {
    pub(crate) block: Block,
    pub(crate) warps: Vec<Warp>,
}

/// Begins a block, in the memory of one that has ended.
fn start(g: &Grid<'_>, number: u64, old: Option<Running>) -> Running {
    let (mut shared, mut shared_written, mut races, old) =
        old.map(|r| (r.block.shared, r.block.shared_written, r.block.races, r.warps)).unwrap_or_default();
    if let Some(races) = &mut races {
        races.forget();
    }
    // A block does not find the shared memory as it leaves it.
    refill(&mut shared, 0xcd, g.shared_bytes as usize);
    refill(&mut shared_written, 0, if g.checks.init { g.shared_bytes as usize } else { 0 });
    if let Some(start) = g.reserved {
        for rank in 0..u64::from(g.ranks()) {
            let at = (start + rank * g.shared_stride) as usize;
            shared[at..at + RESERVED as usize].fill(0);
            shared_written.iter_mut().skip(at).take(RESERVED as usize).for_each(|cell| *cell = 1);
        }
    }
    let block = Block {
        number,
        shared,
        shared_written,
        barriers: vec![Barrier::default(); 16 * g.ranks() as usize],
        random: Random(g.seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d)),
        findings: Findings::default(),
        origins: Origins::default(),
        printed: String::new(),
        absent: (0..g.ranks()).map(|_| None).collect(),
        stopped: false,
        races: races.or_else(|| g.checks.races.then(Box::default)),
        profile: vec![Count::default(); if g.checks.profile { g.code.insts.len() } else { 0 }],
        flying: Flying::new(g, number),
    };
    let mut old = old.into_iter();
    let mut warps = Vec::with_capacity((g.ranks() * g.warps()) as usize);
    for rank in 0..g.ranks() {
        warps.extend((0..g.warps()).map(|w| Warp::new(g, number, rank, w, old.next())));
    }
    Running { block, warps }
}

/// The group to run: the ready group at the lowest instruction, or another with `other`.
fn choose(w: &mut Warp, other: usize) -> Option<usize> {
    if let [Group { wait: Wait::Ready, .. }] = w.groups[..] {
        return Some(0);
    }
    meeting::join(w);
    let mut ready: Vec<usize> = (0..w.groups.len()).filter(|i| w.groups[*i].wait == Wait::Ready).collect();
    ready.sort_by_key(|i| w.groups[*i].pc);
    let n = ready.len();
    (n > 0).then(|| ready[other % n])
}

/// Runs a group until it leaves the loop, or the launch's budget is exhausted. The split of the budget between workers does not affect a
/// turn: a group continues with the worker's next part.
fn group_turn(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    group: &mut Group,
    limit: u32,
    turn: &mut Turn<'_, '_>,
) -> Event {
    loop {
        let offered = turn.purse.offers(turn.left);
        let mut fuel = offered;
        if offered == 0 {
            return Event::Turn;
        }
        let event = run(g, b, w, &mut fuel, limit, group);
        turn.purse.spend(offered - fuel);
        turn.left -= offered - fuel;
        if event != Event::Turn || turn.left == 0 {
            return event;
        }
    }
}

/// The instructions that a turn may still use.
struct Turn<'p, 'b> {
    left: u64,
    purse: &'p mut Purse<'b>,
}

/// Runs a warp until it waits, exits, or its turn is over. Returns the number of instructions.
fn turn(g: &Grid<'_>, r: &mut Running, index: usize, fuel: u64, purse: &mut Purse<'_>) -> u64 {
    let (b, w) = (&mut r.block, &mut r.warps[index]);
    let mut turn = Turn { left: fuel, purse };
    // After a turn that ended in a loop, the next begins with another group: lanes may wait for each other's memory.
    let mut other = if w.groups.len() > 1 { b.random.below(w.groups.len()) } else { 0 };
    while turn.left > 0 && !b.stopped && !turn.purse.is_empty {
        let Some(i) = choose(w, other) else { break };
        let mut group = w.groups.swap_remove(i);
        let limit = w.groups.iter().map(|o| o.pc).filter(|pc| *pc > group.pc).min().unwrap_or(u32::MAX);
        other = 0;
        let event = if w.partings.is_empty() {
            group_turn(g, b, w, &mut group, limit, &mut turn)
        } else {
            if parting::look(g, b, w, &group) {
                break;
            }
            let mut step = Turn { left: 1, purse: &mut *turn.purse };
            let event = group_turn(g, b, w, &mut group, limit, &mut step);
            turn.left -= 1 - step.left;
            if event == Event::Turn { Event::Switch } else { event }
        };
        match event {
            Event::Stop => break,
            Event::Exit if group.mask == 0 => {}
            _ => w.groups.push(group),
        }
        if matches!(event, Event::Wait | Event::Arrived | Event::Exit) {
            if event == Event::Exit {
                hopper::block_exit(g, r, index);
            }
            barrier::open(g, r);
            return fuel - turn.left;
        }
        if matches!(event, Event::Turn | Event::Sleep) {
            break;
        }
    }
    fuel - turn.left
}

/// The wait of each warp, in words.
fn waiting(g: &Grid<'_>, r: &Running) -> String {
    let mut lines = Vec::new();
    for w in &r.warps {
        for group in &w.groups {
            let at = report::site(g.code, group.pc.min(g.code.insts.len() as u32 - 1));
            let before = report::site(g.code, group.pc.saturating_sub(1));
            let block = if g.clusters() > 1 || g.ranks() > 1 { format!("block {:?} ", w.ctaid) } else { String::new() };
            let lanes = format!("{block}warp {} lanes {:#010x}", w.index, group.mask);
            lines.push(match group.wait {
                Wait::Mbarrier | Wait::Cluster | Wait::Registers | Wait::Warpgroup => {
                    format!("{lanes} waits {}", hopper::waiting(g, r, w, group))
                }
                Wait::Ready => format!("{lanes} is at {at}{}", polls::text(g, r, w, group)),
                Wait::Barrier(n) => {
                    let barrier = &r.block.barriers[(w.rank * 16 + n) as usize];
                    let live: u32 = r.warps.iter().filter(|o| o.rank == w.rank).map(|w| w.live.count_ones()).sum();
                    let of = barrier.count.unwrap_or(live);
                    format!("{lanes} waits at barrier {n} with {} of {of} threads, {before}", barrier.arrived)
                }
                Wait::Lanes(members) => {
                    format!("{lanes} waits for lanes {:#010x} at {at}", members & w.live & !group.mask)
                }
                Wait::WarpSync(members) => {
                    format!(
                        "{lanes} waits for lanes {:#010x} of bar.warp.sync, {before}",
                        members & w.live & !group.mask
                    )
                }
            });
        }
    }
    let more = lines.len().saturating_sub(8);
    lines.truncate(8);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

fn stuck(g: &Grid<'_>, r: &mut Running, rule: Rule) {
    let detail = waiting(g, r);
    let first = r.warps.iter().find_map(|w| w.groups.first().map(|group| (w.ctaid, w.index, *group)));
    let (ctaid, warp, group) = first.unwrap_or(([0; 3], 0, Group::ready(0, 1)));
    let pc =
        if matches!(group.wait, Wait::Barrier(_) | Wait::WarpSync(_)) { group.pc.saturating_sub(1) } else { group.pc };
    let at = Broken { rule, pc, other: None, block: ctaid, warp, lanes: group.mask };
    r.block.findings.keep(g, &at, || Finding { detail, ..report::broken(g, &at) });
    r.block.stopped = true;
}

/// One round: each warp that is ready has a turn. Returns whether the block goes on.
fn round(g: &Grid<'_>, r: &mut Running, fuel: u64, used: &mut u64, purse: &mut Purse<'_>) -> bool {
    let mut order: SmallVec<[usize; 32]> = (0..r.warps.len()).filter(|i| !r.warps[*i].is_done()).collect();
    if order.is_empty() || r.block.stopped {
        return false;
    }
    for i in (1..order.len()).rev() {
        let j = r.block.random.below(i + 1);
        order.swap(i, j);
    }
    let mut any = false;
    for i in order {
        flight::wake(g, r, i);
        let ready =
            !r.warps[i].groups.iter().all(|group| group.wait != Wait::Ready) || choose(&mut r.warps[i], 0).is_some();
        if ready {
            any = true;
            *used += turn(g, r, i, fuel, purse);
            if purse.is_empty {
                stuck(g, r, Rule::End);
                return false;
            }
            r.block.stopped |= r.block.findings.is_enough();
            flight::after_turn(g, r);
            flight::watch(r);
        }
        if r.block.stopped {
            return false;
        }
    }
    if !any {
        // The last exit may have opened a barrier.
        barrier::open(g, r);
        let waits = flight::stir(g, r) || r.warps.iter_mut().any(|w| choose(w, 0).is_some());
        if !waits && r.warps.iter().any(|w| !w.is_done()) {
            if !meeting::tell_crossed(g, r) && !barrier::tell_parted(g, r) {
                stuck(g, r, Rule::Arrival);
            }
            return false;
        }
    }
    true
}

/// The results of a block.
struct Ended {
    number: u64,
    is_whole: bool,
    findings: Findings,
    printed: String,
    paths: Paths,
    stages: Vec<Stages>,
    instructions: u64,
    lane_instructions: u64,
}

struct Work {
    next: AtomicU64,
    budget: Budget,
    /// The last block that counts. Later blocks are skipped or ignored, so that results do not depend on the host's threads.
    last: AtomicU64,
    /// Blocks with findings.
    found: Mutex<BTreeSet<u64>>,
    done: Mutex<Vec<Ended>>,
    profile: Mutex<Vec<Count>>,
}

/// Keeps the results of a block; the next block may reuse its memory.
fn retire(g: &Grid<'_>, shared: &Work, mut r: Running) -> Running {
    // Allowed findings do not end the launch.
    let is_strict = g.allow.is_empty();
    let b = &mut r.block;
    let ended = Ended {
        number: b.number,
        is_whole: !b.stopped && r.warps.iter().all(Warp::is_done),
        findings: core::mem::take(&mut b.findings),
        printed: core::mem::take(&mut b.printed),
        paths: b.races.as_mut().map(|races| core::mem::take(&mut races.paths)).unwrap_or_default(),
        stages: b.flying.stages.take().unwrap_or_default(),
        instructions: r.warps.iter().map(|w| w.steps).sum(),
        lane_instructions: r.warps.iter().map(|w| w.lane_steps).sum(),
    };
    if !b.profile.is_empty() {
        let mut profile = shared.profile.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (all, count) in profile.iter_mut().zip(core::mem::take(&mut b.profile)) {
            all.join(&count);
        }
    }
    if b.stopped {
        shared.last.fetch_min(b.number, Relaxed);
    }
    if is_strict && !ended.findings.is_empty() {
        let mut found = shared.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.insert(b.number);
        // If every block has findings, the first blocks show all of them.
        if let Some(last) = found.iter().nth(ENOUGH - 1) {
            shared.last.fetch_min(*last, Relaxed);
        }
    }
    shared.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(ended);
    r
}

/// Blocks one after the other.
fn worker(g: &Grid<'_>, shared: &Work) {
    let mut old = None;
    let mut purse = Purse::new(&shared.budget);
    loop {
        let number = shared.next.fetch_add(1, Relaxed);
        if number >= g.clusters() || number > shared.last.load(Relaxed) {
            return;
        }
        let mut r = start(g, number, old.take());
        let mut since = 0;
        while round(g, &mut r, TURN, &mut since, &mut purse) {
            if since >= SLICE {
                since = 0;
                if number > shared.last.load(Relaxed) {
                    break;
                }
            }
        }
        old = Some(retire(g, shared, r));
    }
}

/// Blocks in turns: as many at once as fit.
fn in_turns(g: &Grid<'_>, shared: &Work) {
    let bytes = (u64::from(g.code.rows) * 128 + g.code.local_bytes * 32 + 4096) * u64::from(g.warps() * g.ranks())
        + g.shared_bytes;
    // Blocks of a cooperative launch wait for all others.
    let most = if g.workspace != 0 { usize::MAX } else { (RESIDENT / bytes.max(1)).clamp(1, 1024) as usize };
    let mut random = Random(g.seed);
    let mut resident: Vec<Running> = Vec::new();
    let mut next = 0;
    let mut old = None;
    let mut purse = Purse::new(&shared.budget);
    loop {
        while resident.len() < most && next < g.clusters() {
            resident.push(start(g, next, old.take()));
            next += 1;
        }
        if resident.is_empty() {
            break;
        }
        let i = random.below(resident.len());
        let goes_on = round(g, &mut resident[i], TURN / 4, &mut 0, &mut purse);
        if !goes_on || resident[i].block.stopped {
            old = Some(retire(g, shared, resident.swap_remove(i)));
            if shared.last.load(Relaxed) != u64::MAX {
                break;
            }
        }
    }
    for r in resident {
        retire(g, shared, r);
    }
}

/// Runs all blocks of a launch.
pub(crate) fn run_blocks(g: &Grid<'_>) -> Outcome {
    let workers = g.workers.min(g.clusters().min(1 << 16) as usize).max(1);
    let one = g.code.communicates || g.workspace != 0 || workers == 1 || g.checks.races;
    let shared = Work {
        next: AtomicU64::new(0),
        budget: Budget::new(g.budget, if one { 1 } else { workers }),
        last: AtomicU64::new(u64::MAX),
        found: Mutex::new(BTreeSet::new()),
        done: Mutex::new(Vec::new()),
        profile: Mutex::new(vec![Count::default(); if g.checks.profile { g.code.insts.len() } else { 0 }]),
    };
    if g.code.communicates || g.workspace != 0 {
        in_turns(g, &shared);
    } else if one {
        worker(g, &shared);
    } else {
        std::thread::scope(|scope| {
            let begin = || std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || worker(g, &shared));
            let begun = (0..workers).filter(|_| begin().is_ok()).count();
            // If the system has no thread left, this one runs the blocks.
            if begun == 0 {
                worker(g, &shared);
            }
        });
    }
    let mut done = shared.done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|ended| ended.number);
    if !g.code.communicates {
        let last = shared.last.load(Relaxed);
        done.retain(|ended| ended.number <= last);
    }
    let profile = shared.profile.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut outcome = Outcome { profile, ..Outcome::default() };
    let mut all = Findings::default();
    for ended in done {
        outcome.printed.push_str(&ended.printed);
        outcome.finished += if ended.is_whole { u64::from(g.ranks()) } else { 0 };
        outcome.paths.join(ended.paths);
        outcome.stages.extend(ended.stages);
        outcome.instructions += ended.instructions;
        outcome.lane_instructions += ended.lane_instructions;
        all.join(ended.findings);
    }
    if let Some(races) = &g.races {
        let mut races = races.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        outcome.paths.join(core::mem::take(&mut races.paths));
    }
    // If a block stopped, the rest of the launch is unchecked.
    let is_whole = outcome.finished == g.clusters() * u64::from(g.ranks());
    if is_whole {
        outcome.allowed = all.take_allowed(g.code, g.allow).into_findings(g.code).0;
    }
    (outcome.findings, outcome.dropped) = all.into_findings(g.code);
    outcome
}
