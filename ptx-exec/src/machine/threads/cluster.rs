//! Blocks of a cluster: their barrier, each other's shared memory, and the registers that warps pass on.

use super::block::Running;
use super::run::Event;
use super::warp::{Block, Group, Wait, Warp};
use crate::code::{Inst, Op};
use crate::machine::accesses::access::Place;
use crate::machine::asynchronous::flight;
use crate::machine::asynchronous::hopper::Next;
use crate::machine::asynchronous::mbarrier_wait;
use crate::machine::races::order::Far;
use crate::machine::races::paths::Paths;
use crate::machine::races::{order, release, word};
use crate::machine::reports::causes::Broken;
use crate::machine::reports::report;
use crate::machine::vectors::vector::{Rows, store};
use crate::machine::{Grid, SHARED_WINDOW};
use crate::types::Space;
use crate::{Finding, Rule};

/// Registers of a multiprocessor, and the most that a thread has (CUDA C++ Programming Guide, "Compute Capabilities").
const REGISTERS: u32 = 65536;
const MOST: u32 = 255;

/// The barrier of a cluster.
#[derive(Default)]
pub(crate) struct ClusterBarrier {
    /// Phases that are over.
    phase: u64,
    arrived: u32,
    /// The knowledge published in this phase, and in the last.
    arriving: Far,
    done: Far,
}

pub(crate) fn arrive(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) -> Next {
    if w.flying.arrived.is_some() {
        let detail = "it arrives at the cluster's barrier again without a wait between".to_owned();
        report::simple(g, b, w, Rule::ClusterTurns, pc, mask, detail);
    }
    let barrier = &mut b.flying.cluster;
    w.flying.arrived = Some(barrier.phase);
    barrier.arrived += mask.count_ones();
    b.flying.progress += 1;
    if w.clock.on {
        let relaxed = inst.x & 1 != 0;
        let clock = if relaxed { w.clock.fences.of_cluster().clone() } else { w.clock.publish_of(mask) };
        let mut far = w.clock.publish_far(&clock);
        if relaxed {
            far.proxy.join(&w.clock.seen.proxy.inits_alone());
        }
        b.flying.cluster.arriving.join(&far);
        w.clock.own += 1;
    }
    Next::Then(Event::Arrived, Wait::Ready)
}

pub(crate) fn wait(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, mask: u32) -> Next {
    let Some(phase) = w.flying.arrived else {
        let detail = "it waits at the cluster's barrier without having arrived".to_owned();
        report::simple(g, b, w, Rule::ClusterTurns, pc, mask, detail);
        return Next::On;
    };
    if b.flying.cluster.phase == phase {
        return Next::Again(Wait::Cluster);
    }
    w.flying.arrived = None;
    if w.clock.on {
        // All threads of all blocks have arrived, or exited.
        w.clock.seen.begun = u32::MAX;
        mbarrier_wait::learn(w, &b.flying.cluster.done, pc);
        order::warp_sync(w, mask, pc);
    }
    Next::On
}

/// Ends the phase of the cluster's barrier when all threads have arrived or exited.
pub(crate) fn open(g: &Grid<'_>, r: &mut Running) {
    let barrier = &mut r.block.flying.cluster;
    if barrier.arrived == 0 {
        return;
    }
    // `arrived` still counts threads that have arrived and then exited.
    let phase = barrier.phase;
    let missing = r.warps.iter().any(|w| w.live != 0 && w.flying.arrived != Some(phase));
    if missing {
        return;
    }
    debug_assert!(barrier.arrived <= g.threads().next_multiple_of(32) * g.ranks());
    barrier.phase += 1;
    barrier.arrived = 0;
    barrier.done = core::mem::take(&mut barrier.arriving);
    for w in &mut r.warps {
        for group in w.groups.iter_mut().filter(|group| group.wait == Wait::Cluster) {
            group.wait = Wait::Ready;
        }
    }
    r.block.flying.progress += 1;
}

/// Lanes access shared memory of a block of the cluster, which has to have begun.
pub(crate) fn is_there(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, lane: u32, place: Place) {
    let Place::Shared(at) = place else { return };
    let rank = (at / g.shared_stride.max(1)) as u32;
    if g.ranks() == 1 || rank == w.rank || !w.clock.on || release::has_begun(w, rank) {
        return;
    }
    let who = report::who(g, w.ctaid, w.index, 1 << lane);
    let peer = g.index(b.number * u64::from(g.ranks()) + u64::from(rank));
    let target = Some(report::target(g, Space::Shared, at));
    let detail = format!("block {peer:?} of the cluster may not have started");
    let (at, write) = (Broken::by_whom(&who, Rule::PeerStart, pc), g.code.insts[pc as usize].op != Op::Ld);
    b.findings.keep(g, &at, || Finding { target, write, detail, ..report::broken(g, &at) });
}

/// `mapa` and `getctarank`.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn mapa(g: &Grid<'_>, r: Rows, inst: &Inst, mask: u32) {
    let (wide, is_rank, generic) = (inst.x & 1 != 0, inst.x & 2 != 0, inst.x & 4 != 0);
    let base = if generic { SHARED_WINDOW } else { 0 };
    // SAFETY: the caller says so.
    unsafe {
        let a = if wide { *r.lanes::<[u64; 32]>(inst.a) } else { (*r.lanes::<[u32; 32]>(inst.a)).map(u64::from) };
        let inside = a.map(|a| a.wrapping_sub(base));
        let stride = g.shared_stride.max(1);
        if is_rank {
            return store(r.lanes(inst.d), &inside.map(|a| (a / stride) as u32), mask);
        }
        let rank = *r.lanes::<[u32; 32]>(inst.b);
        let to: [u64; 32] = core::array::from_fn(|l| inside[l] % stride + u64::from(rank[l]) * stride + base);
        if wide {
            store(r.lanes(inst.d), &to, mask);
        } else {
            store(r.lanes(inst.d), &to.map(|a| a as u32), mask);
        }
    }
}

/// Registers of a thread when the entry begins.
pub(crate) fn registers(g: &Grid<'_>) -> u32 {
    let bound = g
        .code
        .maxntid
        .or(g.code.reqntid)
        .map_or(g.threads(), |n| n.iter().fold(1, |all: u32, n| all.saturating_mul(*n)));
    // A block has no more threads, whatever the entry says.
    let bound = bound.min(1024);
    let share = REGISTERS / bound.next_multiple_of(32).max(32) / g.code.minnctapersm.max(1);
    g.code.maxnreg.unwrap_or(share).min(MOST) / 8 * 8
}

/// `setmaxnreg`: other warps of the block may take the registers that a warp gives back.
pub(crate) fn set_registers(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) -> Next {
    let (wanted, up) = (inst.x >> 1, inst.x & 1 != 0);
    let has = w.flying.registers;
    if up == (wanted < has) && wanted != has {
        let detail = format!("a thread has {has} registers, and requests {wanted}");
        report::simple(g, b, w, Rule::RegisterRequest, pc, mask, detail);
        return Next::On;
    }
    let pool = &mut b.flying.registers[w.rank as usize];
    if up {
        let needed = (wanted - has) * 32;
        if *pool < needed {
            return Next::Again(Wait::Registers);
        }
        *pool -= needed;
    } else {
        *pool += (has - wanted) * 32;
        b.flying.progress += 1;
    }
    w.flying.registers = wanted;
    Next::On
}

pub(crate) fn has_registers(g: &Grid<'_>, b: &Block, w: &Warp, group: &Group) -> bool {
    let wanted = g.code.insts[group.pc as usize].x >> 1;
    wanted.saturating_sub(w.flying.registers) * 32 <= b.flying.registers[w.rank as usize]
}

/// The wait of a group, in words.
pub(crate) fn waiting(g: &Grid<'_>, r: &Running, w: &Warp, group: &Group) -> String {
    let at = report::site(g.code, group.pc);
    if g.code.insts[group.pc as usize].op == Op::SetMaxRegisters {
        let wanted = g.code.insts[group.pc as usize].x >> 1;
        let free = r.block.flying.registers[w.rank as usize];
        let needs = (wanted - w.flying.registers) * 32;
        return format!("for {needs} registers, with {free} given back so far, {at}");
    }
    let barrier = &r.block.flying.cluster;
    let missing: Vec<String> = r
        .warps
        .iter()
        .filter(|w| w.live != 0 && w.flying.arrived != Some(barrier.phase))
        .map(|w| format!("block {:?} warp {}", w.ctaid, w.index))
        .take(8)
        .collect();
    format!("at the cluster's barrier for {}, {at}", missing.join(", "))
}

/// A block has ended: accesses of its peers to its shared memory must be complete, and ordered before its end.
pub(crate) fn left_alone(g: &Grid<'_>, r: &mut Running, rank: u32) {
    if g.ranks() == 1 {
        return;
    }
    let number = r.block.number * u64::from(g.ranks()) + u64::from(rank);
    let start = u64::from(rank) * g.shared_stride;
    let clocks: Vec<&order::WarpClock> = r.warps.iter().filter(|w| w.rank == rank).map(|w| &w.clock).collect();
    let Some(races) = r.block.races.as_deref_mut() else { return };
    // The last instruction is an exit, and stands for the exits of all warps.
    let end = g.code.insts.len() as u32 - 1;
    let mut paths = Paths::default();
    let mut found: Vec<(u64, word::Access)> = Vec::new();
    for (at, access) in races.of_others(start, g.shared_stride, number as u32) {
        if !clocks.iter().any(|c| access.is_known(c)) {
            if !found.iter().any(|(_, other)| other.pc == access.pc) {
                found.push((at, access));
            }
        } else if g.checks.paths {
            clocks.iter().for_each(|c| paths.note(&access, end, c));
        }
    }
    races.paths.join(paths);
    for (at, by) in found {
        let who = report::who(g, g.index(u64::from(by.warp / 32)), by.warp % 32, by.lanes);
        let target = Some(report::target(g, Space::Shared, at));
        let what =
            format!("block {:?} may have exited by then: this access is not ordered before its end", g.index(number));
        flight::finding(g, &mut r.block, Rule::PeerEnd, by.pc, who, target, what);
    }
}
