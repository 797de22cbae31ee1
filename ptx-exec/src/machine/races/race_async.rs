//! Races of asynchronous work: copies, products, `mbarrier`s.

use super::cell::New;
use super::order;
use super::proxy::ProxySpace;
use super::race::{self, note, note_lanes};
use super::word::Access;
use crate::code::Scope;
use crate::machine::Grid;
use crate::machine::accesses::access::Place;
use crate::machine::threads::cluster;
use crate::machine::threads::warp::{Block, Warp};

/// An asynchronous operation of a row, which a thread of this warp issues now.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) write: bool,
    /// The row, and its epoch.
    pub(crate) row: (u32, u32),
}

/// Notes future accesses of an operation to pieces of shared memory of one block.
pub(crate) fn near(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    of: Operation,
    rank: u64,
    pieces: impl Iterator<Item = (u64, u32)>,
) {
    race::note_wide(g, b, w, false, pieces, of.access(w, ProxySpace::Shared(rank as u8)));
}

/// Notes future accesses of an operation to pieces of global memory.
pub(crate) fn far(g: &Grid<'_>, b: &mut Block, w: &Warp, of: Operation, pieces: impl Iterator<Item = (u64, u32)>) {
    race::note_wide(g, b, w, true, pieces, of.access(w, ProxySpace::Global));
}

impl Operation {
    fn access(self, w: &Warp, room: ProxySpace) -> Access {
        let Operation { pc, lanes, write, row: (actor, epoch) } = self;
        Access { lanes, actor, epoch, room, ..Access::new(w, pc, write) }
    }
}

/// A thread issues an asynchronous store, which will access bytes through the generic proxy.
#[allow(clippy::too_many_arguments, reason = "the parts of an access")]
pub(crate) fn late_store(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    pc: u32,
    lanes: u32,
    place: Place,
    bytes: u32,
    strong: Option<Scope>,
    (actor, epoch): (u32, u32),
) {
    let unit = if strong.is_some() { bytes as u8 } else { 0 };
    let access = Access { lanes, actor, epoch, strong, unit, is_generic: true, ..Access::new(w, pc, true) };
    note(g, b, w, place, bytes, access, true);
}

/// A lane initialises an `mbarrier`, or with `strong` operates on one.
pub(crate) fn mbarrier(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, lane: u32, at: u64, strong: bool) {
    cluster::is_there(g, b, w, pc, lane, Place::Shared(at));
    order::touched(w);
    let strong = strong.then_some(Scope::Cluster);
    let access = Access { lanes: 1 << lane, strong, unit: 8, is_barrier: true, ..Access::new(w, pc, true) };
    note(g, b, w, Place::Shared(at), 8, access, strong.is_none());
}

/// Asynchronous copies are issued: from now on their targets belong to them.
pub(crate) fn issue(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, mask: u32, at: &[u32; 32], bytes: u32) {
    let access = Access { in_flight: true, ..Access::new(w, pc, true) };
    note_lanes(g, b, w, mask, at, bytes, access);
}

/// Copies have arrived. Their own threads learn it, or with `rows` the threads that know each lane's row of asynchronous operations.
#[allow(clippy::too_many_arguments, reason = "the parts of an access")]
pub(crate) fn complete(
    b: &mut Block,
    w: &mut Warp,
    pc: u32,
    mask: u32,
    at: &[u32; 32],
    bytes: u32,
    rows: Option<&[(u32, u32); 32]>,
) {
    let Some(races) = b.races.as_deref_mut() else { return };
    let mut access = Access::new(w, pc, true);
    let new = New::of(&w.clock, &access).filter(|_| rows.is_none());
    for l in (0..32_usize).filter(|l| mask >> l & 1 != 0) {
        if let Some(rows) = rows {
            (access.actor, access.epoch) = rows[l];
        }
        access.lanes = 1 << l;
        races.arrive(&w.clock, new.as_ref(), u64::from(at[l]), bytes, access);
    }
}
