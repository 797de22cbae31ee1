//! Barriers of a block: lanes arrive, and all continue when the expected number has arrived.

use super::block::Running;
use super::cluster;
use super::run::Event;
use super::warp::{Block, Group, Wait, Warp};
use crate::Rule;
use crate::code::{NONE, Op, RedMode};
use crate::machine::Grid;
use crate::machine::asynchronous::hopper::Issue;
use crate::machine::races::order;
use crate::machine::reports::report;
use crate::machine::vectors::vector::store;

/// Lanes arrive at a barrier of the block.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn arrive(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    Issue { r, preds, inst, pc, mask }: Issue<'_>,
    group: &mut Group,
) -> Event {
    let first = mask.trailing_zeros() as usize;
    // SAFETY: the caller says so.
    let number = unsafe { *r.lanes::<u32>(inst.a).add(first) };
    // SAFETY: as above.
    let count = (inst.b != NONE).then(|| unsafe { *r.lanes::<u32>(inst.b).add(first) });
    let info = g.code.bars[inst.x as usize];
    if number > 15 || count.is_some_and(|c| c == 0 || c % 32 != 0 || c > g.threads().next_multiple_of(32)) {
        let detail = format!("barrier {number}, {} threads", count.map_or("all".to_owned(), |c| c.to_string()));
        report::simple(g, b, w, Rule::BarrierNumber, pc, mask, detail);
        b.stopped = true;
        return Event::Stop;
    }
    if info.aligned && mask != w.live {
        parted(g, b, w, pc, mask);
    }
    let slot = (w.rank * 16 + number) as usize;
    let barrier = &mut b.barriers[slot];
    if barrier.in_use && barrier.count != count {
        let text = |c: Option<u32>| c.map_or("all".to_owned(), |c| c.to_string());
        let detail = format!(
            "barrier {number} already waits for {} threads, and this instruction names {}",
            text(barrier.count),
            text(count)
        );
        report::simple(g, b, w, Rule::OneCount, pc, mask, detail);
    }
    let barrier = &mut b.barriers[slot];
    (barrier.in_use, barrier.count) = (true, count);
    // With a count, a warp counts as 32 threads.
    barrier.arrived += if count.is_some() && mask == w.live { 32 } else { mask.count_ones() };
    if inst.op == Op::BarRed {
        // SAFETY: as above.
        let p = unsafe { *preds.add(inst.c as usize) } ^ 0_u32.wrapping_sub(u32::from(info.negate));
        barrier.holds += (p & mask).count_ones();
        barrier.of += mask.count_ones();
        barrier.results.push((w.index, pc, mask));
        debug_assert!(info.red != RedMode::Sync);
    }
    order::arrive(b, w, slot as u32, mask);
    if inst.op == Op::BarArrive {
        group.mask = mask;
        return Event::Arrived;
    }
    group.mask = mask;
    group.wait = Wait::Barrier(number);
    Event::Wait
}

/// Reports a barrier of the whole warp that only some lanes execute.
fn parted(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, mask: u32) {
    let detail = format!("{} of the warp's {} threads are here", mask.count_ones(), w.live.count_ones());
    report::simple(g, b, w, Rule::WholeWarp, pc, mask, detail);
}

/// In a deadlock: reports lanes that wait at a barrier for other lanes of their warp. Returns whether there are any.
pub(crate) fn tell_parted(g: &Grid<'_>, r: &mut Running) -> bool {
    let is_barrier = |pc: u32| matches!(g.code.insts[pc as usize].op, Op::Bar | Op::BarArrive | Op::BarRed);
    let mut any = false;
    for w in &r.warps {
        for group in w.groups.iter().filter(|group| matches!(group.wait, Wait::Lanes(_)) && is_barrier(group.pc)) {
            parted(g, &mut r.block, w, group.pc, group.mask);
            any = true;
        }
    }
    r.block.stopped |= any;
    any
}

/// Lanes of a block that have exited when one of its barriers opens.
#[derive(Debug)]
pub(crate) struct Absent {
    /// The barrier's instruction.
    pub(crate) pc: u32,
    /// The exited lanes of each warp.
    pub(crate) lanes: Vec<u32>,
}

fn absent(r: &Running, rank: u32, number: u32) -> Option<Absent> {
    let warps = || r.warps.iter().filter(|w| w.rank == rank);
    let is_here = |group: &&Group| group.wait == Wait::Barrier(number);
    let pc = warps().find_map(|w| w.groups.iter().find(is_here))?.pc.saturating_sub(1);
    let lanes: Vec<u32> = warps().map(|w| w.clock.members & !w.live).collect();
    lanes.iter().any(|l| *l != 0).then_some(Absent { pc, lanes })
}

/// Opens the barriers that are complete.
pub(crate) fn open(g: &Grid<'_>, r: &mut Running) {
    cluster::open(g, r);
    for slot in 0..r.block.barriers.len() {
        let (number, rank) = (slot % 16, (slot / 16) as u32);
        let barrier = &r.block.barriers[slot];
        if !barrier.in_use {
            continue;
        }
        let expected = barrier
            .count
            .unwrap_or_else(|| r.warps.iter().filter(|w| w.rank == rank).map(|w| w.live.count_ones()).sum());
        if barrier.arrived < expected || (barrier.arrived == 0 && expected == 0) {
            continue;
        }
        let barrier = core::mem::take(&mut r.block.barriers[slot]);
        for (warp, pc, mask) in &barrier.results {
            let w = &mut r.warps[(rank * g.warps() + *warp) as usize];
            let inst = g.code.insts[*pc as usize];
            if inst.d == NONE {
                continue;
            }
            let result = match g.code.bars[inst.x as usize].red {
                RedMode::And => u32::from(barrier.holds == barrier.of),
                RedMode::Or => u32::from(barrier.holds > 0),
                _ => barrier.holds,
            };
            if g.code.bars[inst.x as usize].red == RedMode::Popc {
                let rows = w.rows();
                // SAFETY: `.red.popc` of a `Code` has a row of 32 bits as its result (2, 3); these are the warp's rows.
                unsafe { store(rows.lanes(inst.d), &[result; 32], *mask) };
            } else {
                let p = &mut w.preds[inst.d as usize];
                *p = *p & !mask | if result != 0 { *mask } else { 0 };
            }
        }
        let clock = order::opened(&mut r.block, slot as u32);
        if clock.is_some() {
            r.block.absent[rank as usize] = absent(r, rank, number as u32);
        }
        r.block.flying.progress += 1;
        for w in r.warps.iter_mut().filter(|w| w.rank == rank) {
            let (mut lanes, mut pc) = (0, 0);
            for group in w.groups.iter_mut().filter(|g| g.wait == Wait::Barrier(number as u32)) {
                group.wait = Wait::Ready;
                lanes |= group.mask;
                pc = group.pc.saturating_sub(1);
            }
            if let Some(clock) = clock.as_ref().filter(|_| lanes != 0) {
                order::leave(w, lanes, clock, pc);
            }
        }
    }
}
