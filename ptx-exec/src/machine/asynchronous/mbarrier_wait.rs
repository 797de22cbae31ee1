//! Waits on `mbarrier`s, and which threads wait for which.

use super::hopper::{Issue, Next};
use super::mbarrier::{Mbarrier, at, is_there, space};
use crate::FindingKind;
use crate::code::{Inst, Order};
use crate::code_async::{MbarrierInfo, MbarrierOp};
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, locate};
use crate::machine::races::order::{Clock, Far, WarpClock};
use crate::machine::races::race_async;
use crate::machine::reports::report;
use crate::machine::threads::block::Running;
use crate::machine::threads::warp::{Block, Group, Wait, Warp};
use crate::machine::vectors::predicates::blend;
use crate::machine::vectors::vector::Rows;
use crate::types::Space;

/// Whether the phase that a lane asks for is over.
fn over(m: &Mbarrier, parity: bool, of: u64) -> bool {
    if parity { m.phase & 1 != of & 1 } else { m.phase != of >> 32 }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn test(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    Issue { r, preds, inst, pc, mask }: Issue<'_>,
    (at, parity, tries): (&[u64; 32], bool, bool),
) -> Next {
    let info = g.code.asyncs.mbarriers[inst.x as usize];
    // SAFETY: the caller says so.
    let of =
        unsafe { if parity { (*r.lanes::<[u32; 32]>(inst.b)).map(u64::from) } else { *r.lanes::<[u64; 32]>(inst.b) } };
    // Lanes of a warp learn together: what one has read in a barrier, the next one need not.
    let (mut result, mut learnt) = (0, None);
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let address = at[l as usize];
        let place = match locate(g, w, space(&info), address, l, 8, false) {
            Ok(Place::Shared(place)) => place,
            Ok(_) | Err(_) => {
                report::access(g, b, w, FindingKind::OutOfBounds, pc, l, space(&info), address, 8, false);
                result |= 1 << l;
                continue;
            }
        };
        if !is_there(g, b, w, pc, l, place) {
            // After a finding the wait returns at once.
            result |= 1 << l;
            continue;
        }
        if g.checks.races {
            race_async::mbarrier(g, b, w, pc, l, place, true);
        }
        let Some(m) = b.flying.mbarriers.get_mut(&place) else { continue };
        if over(m, parity, of[l as usize]) {
            result |= 1 << l;
            m.seen = m.seen.max(m.phase);
            if w.clock.on && info.order != Order::Relaxed && learnt != Some(place) {
                learn(w, &m.done, pc);
                learnt = Some(place);
            }
        }
    }
    if result == 0 && tries && !w.flying.expired {
        return Next::Again(Wait::Mbarrier);
    }
    w.flying.expired &= result != 0;
    // SAFETY: the caller says so.
    unsafe { blend(preds, inst.d, result, mask) };
    Next::On
}

/// A warp learns published knowledge.
pub(crate) fn learn(w: &mut Warp, found: &Far, pc: u32) {
    if w.clock.lessons.is_some() {
        w.clock.remember(&Clock::of(found), pc);
    }
    WarpClock::learn(&mut w.clock.seen, w.clock.id, found);
}

/// Whether waiting lanes should test again.
pub(crate) fn is_over(g: &Grid<'_>, b: &Block, w: &mut Warp, group: &Group) -> bool {
    let inst = g.code.insts[group.pc as usize];
    let info = g.code.asyncs.mbarriers[inst.x as usize];
    let MbarrierOp::Test { parity, .. } = info.op else { return true };
    each(g, w, &inst, &info, group.mask)
        .iter()
        .any(|(at, of)| b.flying.mbarriers.get(at).is_none_or(|m| over(m, parity, *of)))
}

/// The barriers that lanes wait for, and for which phase.
fn each(g: &Grid<'_>, w: &mut Warp, inst: &Inst, info: &MbarrierInfo, mask: u32) -> Vec<(u64, u64)> {
    let r = w.rows();
    let parity = matches!(info.op, MbarrierOp::Test { parity: true, .. });
    // SAFETY: the operands of a `Code` are rows of the warp (2, 3), and these are its rows.
    let (at, of) = unsafe {
        let of = if parity { (*r.lanes::<[u32; 32]>(inst.b)).map(u64::from) } else { *r.lanes::<[u64; 32]>(inst.b) };
        (at(r, inst, info, mask), of)
    };
    let mut all = Vec::new();
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        if let Ok(Place::Shared(place)) = locate(g, w, space(info), at[l as usize], l, 8, false)
            && !all.contains(&(place, of[l as usize]))
        {
            all.push((place, of[l as usize]));
        }
    }
    all
}

/// The wait of lanes, in words, with earlier arrivals.
pub(crate) fn waiting(g: &Grid<'_>, r: &Running, number: usize, group: &Group) -> String {
    let inst = g.code.insts[group.pc as usize];
    let info = g.code.asyncs.mbarriers[inst.x as usize];
    let mut rows = r.warps[number].rows.clone();
    let rows = Rows::new(&mut rows);
    // SAFETY: the operands of a `Code` are rows of the warp (2, 3), and this is a copy of its rows.
    let address = unsafe { at(rows, &inst, &info, group.mask) }[group.mask.trailing_zeros() as usize & 31];
    let place = if info.generic { address.wrapping_sub(crate::machine::SHARED_WINDOW) } else { address & 0xffff_ffff };
    let Some(m) = r.block.flying.mbarriers.get(&place) else { return "for an mbarrier that does not exist".to_owned() };
    let mut words = format!("for {}, {}", report::target(g, Space::Shared, place), m.in_words());
    for (number, pc) in m.arrivers.iter().take(8) {
        let w = &r.warps[*number];
        let now = match w.groups.first() {
            None => "has exited".to_owned(),
            Some(group) => format!("is at {}", report::site(g.code, group.pc.min(g.code.insts.len() as u32 - 1))),
        };
        words.push_str(&format!(
            "\n    warp {} has arrived there by {}, and {now}",
            w.index,
            report::site(g.code, *pc)
        ));
    }
    words
}
