//! The rule that two unordered accesses break.

use super::proxy::ProxySpace;
use super::word::{ACTOR, Access, Flaw};
use crate::Rule;
use crate::code::Op;
use crate::code_async::BulkWay;
use crate::machine::Grid;
use crate::machine::threads::warp::{Block, Warp};

/// The rule that an access of this warp breaks with an earlier one.
pub(crate) fn rule(g: &Grid<'_>, b: &Block, w: &Warp, first: &Access, then: &Access, flaw: Flaw) -> Rule {
    match flaw {
        Flaw::Unfenced => return Rule::ProxyFence,
        Flaw::Incoherent => return Rule::ReadOnlyPath,
        Flaw::Unordered => {}
    }
    if first.in_flight {
        return b.flying.lacks.get(&(first.warp, first.pc)).copied().unwrap_or(Rule::CopyWait);
    }
    if first.actor != 0 && first.room == ProxySpace::Map {
        return Rule::MapInUse;
    }
    if first.actor != 0 {
        return wait(g, w, first);
    }
    if then.actor != 0 && !then.is_generic {
        return match (first.write, then.write) {
            (_, false) => Rule::WriteBeforeAsync,
            // A reader without any wait may come before or after the copy by chance.
            (false, true) if is_unseen(b, then.actor) => Rule::CopyArrival,
            _ => Rule::UseBeforeOverwrite,
        };
    }
    if let Some((rule, _)) = flag(w, first, then) {
        return rule;
    }
    match (first.strong, then.strong) {
        (Some(_), Some(_)) if first.unit != then.unit => Rule::OneWidth,
        (Some(_), Some(_)) => Rule::Scope,
        (None, None) if absent(b, w, first).is_some() => Rule::LeftEarly,
        (None, None) => order(g, w, first, then),
        _ => Rule::AtomicOnBothSides,
    }
}

/// The last barrier of the block, if the threads of an access had exited before it opened.
pub(crate) fn absent(b: &Block, w: &Warp, first: &Access) -> Option<u32> {
    let absent = b.absent.get(w.rank as usize)?.as_ref().filter(|_| first.warp / 32 == w.clock.id / 32)?;
    (first.lanes & !absent.lanes.get((first.warp % 32) as usize)? == 0).then_some(absent.pc)
}

/// Whether no thread has seen a phase of an `mbarrier` end yet.
fn is_unseen(b: &Block, actor: u32) -> bool {
    b.flying.mbarriers.values().find(|m| m.actor == actor).is_some_and(|m| m.seen == 0)
}

/// The broken fence rule if this warp has read the flag that announces the earlier access, with that read.
pub(crate) fn flag(w: &Warp, first: &Access, then: &Access) -> Option<(Rule, u32)> {
    let is_plain = |a: &Access| !a.in_flight && a.actor == 0 && !a.is_barrier && a.strong.is_none();
    let is_flag = is_plain(first) && is_plain(then) && first.warp != then.warp;
    is_flag.then(|| w.clock.fences.broken(first, then.warp / 32)).flatten()
}

/// The wait that is missing after asynchronous work.
fn wait(g: &Grid<'_>, w: &Warp, first: &Access) -> Rule {
    let inst = &g.code.insts[first.pc as usize];
    match inst.op {
        Op::Wgmma => Rule::ProductWait,
        Op::Bulk if is_grouped(g, inst.x) => Rule::BulkWait,
        Op::CpAsync => Rule::CopyArrival,
        // The copy of the next phase overtakes a thread that has waited for an earlier phase.
        _ if w.clock.knows(first.actor | ACTOR, 0, 1, 0) => Rule::UseBeforeOverwrite,
        _ => Rule::CopyArrival,
    }
}

fn is_grouped(g: &Grid<'_>, bulk: u32) -> bool {
    let info = &g.code.asyncs.bulks[bulk as usize];
    info.grouped && info.way != BulkWay::Registers
}

/// The barrier that is missing between two plain accesses, by the distance of the two threads.
fn order(g: &Grid<'_>, w: &Warp, first: &Access, then: &Access) -> Rule {
    let one_line = first.write && then.write && first.pc == then.pc;
    if first.warp == then.warp {
        return if one_line && first.epoch == w.clock.own { Rule::OneStore } else { Rule::WarpOrder };
    }
    let (block, other) = (then.warp / 32, first.warp / 32);
    match () {
        () if one_line => Rule::OneWriter,
        () if block == other => Rule::BlockOrder,
        () if block / g.ranks() == other / g.ranks() => Rule::ClusterOrder,
        () => Rule::GridOrder,
    }
}
