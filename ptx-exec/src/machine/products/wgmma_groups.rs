//! Groups of `wgmma`: the committed products of a warp, and the completion of the warpgroup's products.

use std::collections::BTreeSet;

use super::wgmma::happen;
use crate::Rule;
use crate::machine::Grid;
use crate::machine::asynchronous::hopper::Next;
use crate::machine::reports::report;
use crate::machine::threads::block::Running;
use crate::machine::threads::warp::{Block, Wait, Warp};

/// A product in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) pc: u32,
    pub(crate) a: u64,
    pub(crate) b: u64,
    /// Whether the product is added to D.
    pub(crate) adds: bool,
    /// Its group; `None` before it is committed.
    pub(crate) group: Option<u32>,
    pub(crate) done: bool,
}

/// The products of a warp.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) all: Vec<Product>,
    pub(crate) committed: u32,
    /// The row of their reads of shared memory.
    pub(crate) actor: u32,
    /// Number of groups that its wait needs, and of groups that are over for all four warps.
    awaited: u32,
    over: u32,
    /// The rows of the other warps' reads.
    peers: Vec<u32>,
    /// Registers that were written since the last `wgmma.fence`.
    pub(crate) unfenced: BTreeSet<u32>,
}

impl Queue {
    /// Number of products in flight.
    pub(crate) fn pending(&self) -> u32 {
        self.all.len() as u32
    }

    /// Drops completed products, except the last one of each instruction, which still marks its registers as in use.
    pub(crate) fn shorten(&mut self) {
        let mut seen = BTreeSet::new();
        let mut kept: Vec<Product> = self.all.drain(..).rev().filter(|p| !p.done || seen.insert(p.pc)).collect();
        kept.reverse();
        self.all = kept;
    }

    /// How many products are of the first `before` groups.
    fn due(&self, before: u32) -> usize {
        self.all.iter().take_while(|p| p.group.is_some_and(|group| group < before)).count()
    }
}

pub(crate) fn commit(w: &mut Warp) {
    let queue = &mut w.flying.wgmma;
    let group = Some(queue.committed);
    queue.all.iter_mut().filter(|p| p.group.is_none()).for_each(|p| p.group = group);
    queue.committed += 1;
}

/// Waits until all but the last `n` groups are over, in all four warps: a group belongs to the warpgroup (PTX ISA,
/// `wgmma.commit_group`).
pub(crate) fn wait(g: &Grid<'_>, b: &mut Block, w: &mut Warp, n: u32, pc: u32) -> Next {
    let queue = &mut w.flying.wgmma;
    let before = queue.committed.saturating_sub(n);
    if queue.over < before {
        queue.awaited = before;
        return Next::Again(Wait::Warpgroup);
    }
    let due = queue.due(before);
    happen(g, b, w, due);
    let queue = &mut w.flying.wgmma;
    queue.all.drain(..due);
    if before > 0 {
        w.clock.learn_rows(&queue.peers, before, pc);
    }
    Next::On
}

/// The warps of a warpgroup, by their numbers in the cluster.
fn warpgroup(g: &Grid<'_>, w: &Warp) -> core::ops::Range<usize> {
    let first = w.rank * g.warps() + w.index / 4 * 4;
    first as usize..((w.rank + 1) * g.warps()).min(first + 4) as usize
}

/// Whether all four warps have committed the groups that one of them waits for, which are then over.
pub(crate) fn is_over(g: &Grid<'_>, r: &mut Running, index: usize) -> bool {
    let before = r.warps[index].flying.wgmma.awaited;
    let all = warpgroup(g, &r.warps[index]);
    if r.warps[all.clone()].iter().any(|w| w.flying.wgmma.committed < before) {
        return false;
    }
    for w in &mut r.warps[all.clone()] {
        let due = w.flying.wgmma.due(before);
        happen(g, &mut r.block, w, due);
    }
    let actors = r.warps[all].iter().map(|w| w.flying.wgmma.actor).filter(|actor| *actor != 0).collect();
    let queue = &mut r.warps[index].flying.wgmma;
    (queue.over, queue.peers) = (before, actors);
    true
}

/// A wait in words.
pub(crate) fn waiting(g: &Grid<'_>, r: &Running, w: &Warp) -> String {
    let before = w.flying.wgmma.awaited;
    let missing = r.warps[warpgroup(g, w)].iter().filter(|o| o.flying.wgmma.committed < before);
    let missing: Vec<String> = missing
        .map(|o| {
            format!(
                "warp {}, which has committed {}{}",
                o.index,
                o.flying.wgmma.committed,
                if o.live == 0 { " and exited" } else { "" }
            )
        })
        .collect();
    format!("for group {before} of its warpgroup's products, without {}", missing.join(", "))
}

/// A warp exits: its products must be over.
pub(crate) fn exit(g: &Grid<'_>, b: &mut Block, w: &mut Warp) {
    if let Some(first) = w.flying.wgmma.all.first() {
        let detail = "its warp exits before it has waited for the product: wgmma.wait_group is missing".to_owned();
        report::simple(g, b, w, Rule::ProductEnd, first.pc, w.live, detail);
        w.flying.wgmma.all.clear();
    }
}
