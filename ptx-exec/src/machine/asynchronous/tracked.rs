//! `cp.async.mbarrier.arrive`: an arrival at an `mbarrier` after all earlier copies of a thread.
//!
//! A thread that waits on the `mbarrier` learns of these copies, but not of other accesses of the issuing thread. The issuing thread
//! learns nothing. The copies of each thread are a row of asynchronous operations. A copy is over after the first arrival that tracks
//! it, or a later one.

use super::copies;
use super::flight::{Moment, finding};
use super::mbarrier;
use crate::Rule;
use crate::machine::Grid;
use crate::machine::reports::report;
use crate::machine::threads::block::Running;
use crate::machine::threads::warp::{Block, Warp};
use crate::types::Space;

/// The most pending arrivals of a warp.
const MOST_TRACKED: usize = 64;

/// Arrivals of lanes, each after the copies of its lane.
#[derive(Clone, Debug)]
pub(crate) struct Tracked {
    pc: u32,
    mask: u32,
    /// The address of each lane's `mbarrier`.
    at: [u64; 32],
    /// Number of copies that the warp had issued, and of such arrivals up to this one.
    issued: u64,
    number: u32,
    born: u64,
}

/// Lanes request arrivals; early asynchronous work arrives at once.
pub(crate) fn issue(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, mask: u32, at: [u64; 32]) {
    copies::track(b, w, mask);
    if w.flying.copies_actor.is_none() && w.clock.on {
        w.flying.copies_actor = Some(g.actors_of_warp());
    }
    w.flying.asked += 1;
    let tracked = Tracked { pc, mask, at, issued: w.flying.issued, number: w.flying.asked, born: b.flying.turns };
    w.copies.iter_mut().for_each(|copy| copy.track(mask, tracked.number));
    if b.flying.moment == Moment::Early {
        happen(g, b, w, &tracked);
    } else {
        b.flying.tracked += 1;
        w.flying.tracked.push(tracked);
        // Copies and their arrivals may come at any moment. This bounds the memory of an endless loop.
        if w.flying.tracked.len() > MOST_TRACKED {
            let oldest = w.flying.tracked.remove(0);
            b.flying.tracked -= 1;
            happen(g, b, w, &oldest);
        }
    }
}

/// Copies arrive, and then their threads' arrivals do.
fn happen(g: &Grid<'_>, b: &mut Block, w: &mut Warp, t: &Tracked) {
    let first = w.flying.copies_actor.unwrap_or(0);
    copies::tell(g, b, w, t.pc, t.mask, t.issued, first);
    let number = (w.rank * g.warps() + w.index) as usize;
    for l in (0..32).filter(|l| t.mask >> l & 1 != 0) {
        let at = t.at[l as usize];
        let flaw = match b.flying.mbarriers.get_mut(&at) {
            Some(m) => mbarrier::arrive_for_copies(m, number, t.pc, (first + l, t.number)),
            None => Some("copies arrive, but their mbarrier no longer exists".to_owned()),
        };
        if let Some(detail) = flaw {
            let who = report::who(g, w.ctaid, w.index, 1 << l);
            let target = Some(report::target(g, Space::Shared, at));
            finding(g, b, Rule::MbarrierCount, t.pc, who, target, detail);
        }
    }
    b.flying.progress += 1;
}

/// The arrivals of a warp for which `due` holds.
fn all_due(g: &Grid<'_>, b: &mut Block, w: &mut Warp, mut due: impl FnMut(&mut Block, &Tracked) -> bool) {
    let mut i = 0;
    while i < w.flying.tracked.len() {
        if due(b, &w.flying.tracked[i]) {
            let tracked = w.flying.tracked.remove(i);
            b.flying.tracked -= 1;
            happen(g, b, w, &tracked);
        } else {
            i += 1;
        }
    }
}

/// After a turn: completes arrivals requested before `oldest`, and some others if the moment is random.
pub(crate) fn after_turn(g: &Grid<'_>, r: &mut Running, oldest: u64) {
    for w in &mut r.warps {
        all_due(g, &mut r.block, w, |b, t| {
            t.born < oldest || b.flying.moment == Moment::Any && b.flying.random.below(4) == 0
        });
    }
}

/// Completes one pending arrival, by number.
pub(crate) fn one(g: &Grid<'_>, r: &mut Running, number: usize) {
    let mut left = number;
    for w in &mut r.warps {
        let n = w.flying.tracked.len();
        if left < n {
            let tracked = w.flying.tracked.remove(left);
            r.block.flying.tracked -= 1;
            return happen(g, &mut r.block, w, &tracked);
        }
        left -= n;
    }
}

/// Lanes exit: their copies arrive, and then their arrivals.
pub(crate) fn exit(g: &Grid<'_>, b: &mut Block, w: &mut Warp, mask: u32) {
    let leaving: Vec<Tracked> = w.flying.tracked.iter().filter(|t| t.mask & mask != 0).cloned().collect();
    for mut t in leaving {
        t.mask &= mask;
        happen(g, b, w, &t);
    }
    w.flying.tracked.retain_mut(|t| {
        t.mask &= !mask;
        b.flying.tracked -= usize::from(t.mask == 0);
        t.mask != 0
    });
}
