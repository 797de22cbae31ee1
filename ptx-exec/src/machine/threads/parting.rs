//! Lanes of a warp that diverge at a branch around a barrier, so that some lanes skip the barrier.
//!
//! Either all lanes of a warp execute the barrier or none. Lanes on the other path skip it if they reach the end of the branch while the
//! barrier still waits for them.

use super::warp::{Block, Group, Wait, Warp};
use crate::Rule;
use crate::code::Op;
use crate::machine::Grid;
use crate::machine::reports::report;

/// Lanes that have diverged, and not all reconverged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parting {
    /// The branch, and where its ways meet.
    branch: u32,
    meets: u32,
    /// Lanes that are on their way there, and those that have arrived.
    under_way: u32,
    arrived: u32,
}

/// Lanes diverge at a branch.
#[inline(never)]
pub(crate) fn part(g: &Grid<'_>, w: &mut Warp, branch: u32, lanes: u32) {
    let all = &g.code.partings;
    if let Ok(i) = all.binary_search_by_key(&branch, |(branch, _)| *branch) {
        w.partings.push(Parting { branch, meets: all[i].1, under_way: lanes, arrived: 0 });
    }
}

/// Before each instruction of a group: reports a skipped barrier, and returns whether there is one.
pub(crate) fn look(g: &Grid<'_>, b: &mut Block, w: &mut Warp, group: &Group) -> bool {
    let live = w.live;
    w.partings.retain(|p| p.under_way & live != 0);
    let is_barrier = |pc: u32| {
        let inst = &g.code.insts[pc as usize];
        matches!(inst.op, Op::Bar | Op::BarArrive | Op::BarRed) && g.code.bars[inst.x as usize].aligned
    };
    for i in 0..w.partings.len() {
        let p = &mut w.partings[i];
        if group.pc == p.meets {
            p.arrived |= p.under_way & group.mask;
            p.under_way &= !group.mask;
        }
        let p = *p;
        let waits = w.groups.iter().filter(|o| matches!(o.wait, Wait::Lanes(_))).chain([group]);
        let at = waits.filter(|o| is_barrier(o.pc)).find(|o| o.mask & p.under_way != 0);
        if let Some(at) = at.copied().filter(|_| p.arrived != 0) {
            let branch = report::site(g.code, p.branch);
            let detail = format!(
                "lanes {:#010x} skip it: they take the other path at {branch}, and are past it",
                p.arrived & !at.mask
            );
            report::simple(g, b, w, Rule::WholeWarp, at.pc, at.mask & p.under_way, detail);
            b.stopped = true;
            return true;
        }
    }
    false
}
