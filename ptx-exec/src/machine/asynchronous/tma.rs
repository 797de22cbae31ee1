//! Issues bulk and tensor copies, with their checks, and notes their accesses.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

use super::flight::{self, finding};
use super::{maps, mbarrier, tma_move};
use crate::code::{Inst, Scope};
use crate::code_async::{BulkInfo, BulkWay};
use crate::machine::accesses::access::{Place, addresses, locate, shared};
use crate::machine::races::race_async::Operation;
use crate::machine::races::{race, race_async, word};
use crate::machine::reports::report;
use crate::machine::threads::cluster;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::vectors::vector::Rows;
use crate::machine::{Grid, SHARED_STRIDE, SHARED_WINDOW};
use crate::map_image::Map;
use crate::tensor_map::MapSwizzle;
use crate::types::Space;
use crate::{Rule, Target, Who};

/// A copy that was issued.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) info: BulkInfo,
    pub(crate) pc: u32,
    pub(crate) who: Who,
    /// The warp that issued it, by number in the cluster, and the lane.
    pub(crate) warp: usize,
    pub(crate) lane: u32,
    /// The map of a tensor copy, and the coordinates of its box.
    pub(crate) map: Option<Arc<Map>>,
    pub(crate) coordinates: [i32; 5],
    /// Address in shared memory; the other address of plain copies.
    pub(crate) near: u64,
    pub(crate) far: u64,
    pub(crate) bytes: u32,
    /// The `mbarrier` that it completes.
    pub(crate) mbarrier: Option<u64>,
    /// The bulk group of its lane.
    pub(crate) group: u32,
    /// The bytes that it has read and not yet written, each with whether it is initialised.
    pub(crate) data: Option<Vec<(u8, bool)>>,
    /// The origin of its uninitialised bytes, if they come from registers.
    pub(crate) from: u32,
    /// When it was issued.
    pub(crate) born: u64,
}

impl Flight {
    /// Whether it writes to shared memory of a block.
    pub(crate) fn writes_to(&self, g: &Grid<'_>, rank: u32) -> bool {
        matches!(self.info.way, BulkWay::Load | BulkWay::Peer | BulkWay::Registers)
            && self.near / g.shared_stride.max(1) == u64::from(rank)
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn issue(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.asyncs.bulks[inst.x as usize];
    if info.way == BulkWay::Prefetch {
        return;
    }
    // SAFETY: the caller says so.
    let (near, far, values) = unsafe {
        let list = g.code.listed(inst);
        let values: Vec<[u32; 32]> = list.iter().map(|row| *r.lanes::<[u32; 32]>(*row)).collect();
        let near = addresses(r, inst.a, info.near64[0], info.near_offset[0], mask);
        (near, addresses(r, inst.b, true, info.far_offset, mask), values)
    };
    let told = (!info.grouped).then(|| {
        // SAFETY: the caller says so.
        unsafe { addresses(r, inst.c, info.near64[1], info.near_offset[1], mask) }
    });
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let i = l as usize;
        let mut flight = Flight {
            info,
            pc,
            who: report::who(g, w.ctaid, w.index, 1 << l),
            warp: (w.rank * g.warps() + w.index) as usize,
            lane: l,
            map: None,
            coordinates: core::array::from_fn(|m| if m < info.modes as usize { values[m][i] as i32 } else { 0 }),
            near: near[i] & 0xffff_ffff,
            far: far[i],
            bytes: 0,
            mbarrier: None,
            group: w.flying.committed[i],
            data: None,
            from: 0,
            born: 0,
        };
        if info.grouped {
            w.flying.grouped[i] = (pc, w.flying.committed[i] + 1);
        }
        let plain = (info.modes == 0).then(|| values[0][i]);
        if !fits(g, b, w, &mut flight, plain) {
            continue;
        }
        let everywhere = if info.multicast { values.last().map(|v| v[i] & 0xffff) } else { None };
        let told = told.as_ref().map(|t| t[i] & 0xffff_ffff);
        for (near, told) in targets(g, b, w, &flight, told, everywhere) {
            let mut flight = Flight { near, mbarrier: told, ..flight.clone() };
            if lands(g, b, w, &mut flight) {
                if let Some(count) = b.profile.get_mut(pc as usize) {
                    count.bulk_bytes += u64::from(flight.bytes);
                }
                flight::issued(g, b, flight);
            }
        }
    }
}

fn map_flaw(g: &Grid<'_>, b: &mut Block, f: &Flight, detail: String) -> bool {
    finding(g, b, Rule::TensorMap, f.pc, f.who, None, detail);
    false
}

/// Whether the copy fits its map, or its size is valid. Fills in the number of bytes.
fn fits(g: &Grid<'_>, b: &mut Block, w: &mut Warp, f: &mut Flight, plain: Option<u32>) -> bool {
    let aligned = if plain.is_some() { 16 } else { 128 };
    if !f.near.is_multiple_of(aligned) {
        let rule = if plain.is_some() { Rule::Aligned } else { Rule::TensorMap };
        let target = Some(report::target(g, Space::Shared, f.near));
        let detail = format!("the copy asks for a multiple of {aligned} bytes in shared memory");
        finding(g, b, rule, f.pc, f.who, target, detail);
        return false;
    }
    let Some(bytes) = plain else {
        let Some(map) = maps::of(g, b, w, f) else { return false };
        let spec = &map;
        if spec.rank != f.info.modes {
            let detail = format!("the copy has {} coordinates, the map is {spec}", f.info.modes);
            return map_flaw(g, b, f, detail);
        }
        if let Some((required, found)) = spec.flaw() {
            return map_flaw(g, b, f, format!("the map has to have {required}, it has {found}: {spec}"));
        }
        if spec.interleave != 0 {
            return map_flaw(g, b, f, format!("a map with an interleaved layout is not run here: {spec}"));
        }
        let inner = spec.row_bytes();
        if spec.swizzle.span().is_some_and(|span| span != inner) {
            let detail = format!("a box whose rows are shorter than its swizzle is not run here: {spec}");
            return map_flaw(g, b, f, detail);
        }
        if spec.box_bytes() > SHARED_STRIDE {
            let detail = format!("a box of {} B fits into no shared memory: {spec}", spec.box_bytes());
            return map_flaw(g, b, f, detail);
        }
        debug_assert!(spec.swizzle != MapSwizzle::None || inner.is_multiple_of(16), "it has no flaw");
        (f.bytes, f.map) = (spec.box_bytes() as u32, Some(map));
        return true;
    };
    f.bytes = bytes;
    if !bytes.is_multiple_of(16) || !f.far.is_multiple_of(16) {
        let target = Some(report::target(g, Space::Global, f.far));
        let detail = format!("{bytes} B are copied by 16 at a time, from and to multiples of 16 bytes");
        finding(g, b, Rule::Aligned, f.pc, f.who, target, detail);
        return false;
    }
    if f.info.way == BulkWay::Peer {
        f.far &= 0xffff_ffff;
        return in_shared(g, b, f, f.far, Some(w.rank));
    }
    let write = f.info.way == BulkWay::Store;
    for at in (0..u64::from(bytes)).step_by(16).map(|i| f.far.wrapping_add(i)) {
        if let Err(kind) = locate(g, w, Space::Global, at, f.lane, 16, write) {
            report::access(g, b, w, kind, f.pc, f.lane, Space::Global, at, 16, write);
            return false;
        }
    }
    true
}

/// Whether all bytes lie in one variable of shared memory, of that block where one is named.
fn in_shared(g: &Grid<'_>, b: &mut Block, f: &Flight, at: u64, rank: Option<u32>) -> bool {
    match shared(g, at, u64::from(f.bytes), rank) {
        Ok(_) => true,
        Err(kind) => {
            let target: Option<Target> = Some(report::target(g, Space::Shared, at));
            finding(g, b, kind, f.pc, f.who, target, format!("{} B are copied", f.bytes));
            false
        }
    }
}

/// The destinations of a copy, each with its `mbarrier`: one block, or each block of a mask.
fn targets(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    f: &Flight,
    told: Option<u64>,
    everywhere: Option<u32>,
) -> Vec<(u64, Option<u64>)> {
    // Addresses of 64 bits are generic; the window of shared memory begins with zeros.
    debug_assert!(SHARED_WINDOW.is_multiple_of(1 << 32));
    let Some(mask) = everywhere else { return vec![(f.near, told)] };
    let stride = g.shared_stride.max(1);
    let mut all = Vec::new();
    for rank in (0..16).filter(|rank| mask >> rank & 1 != 0) {
        if rank >= g.ranks() {
            let detail = format!("the mask {mask:#x} names blocks that the cluster of {} does not have", g.ranks());
            report::simple(g, b, w, Rule::MulticastMask, f.pc, 1 << f.lane, detail);
            break;
        }
        let there = |at: u64| at % stride + u64::from(rank) * stride;
        all.push((there(f.near), told.map(there)));
    }
    all
}

/// Whether the destination of a copy is valid. Notes its accesses.
pub(crate) fn lands(g: &Grid<'_>, b: &mut Block, w: &mut Warp, f: &mut Flight) -> bool {
    let own = (f.info.way == BulkWay::Store).then_some(w.rank);
    if !in_shared(g, b, f, f.near, own) {
        return false;
    }
    let rank = (f.near / g.shared_stride.max(1)) as usize;
    if b.flying.gone[rank] {
        let detail = "it copies to shared memory of a block whose threads have all exited".to_owned();
        finding(g, b, Rule::CopyEnd, f.pc, f.who, None, detail);
        return false;
    }
    if let Some(at) = f.mbarrier {
        if at / g.shared_stride.max(1) != rank as u64 {
            let detail = "the barrier lies in another block than the bytes".to_owned();
            finding(g, b, Rule::MbarrierPlace, f.pc, f.who, None, detail);
            return false;
        }
        if !at.is_multiple_of(8) || !mbarrier::is_there(g, b, w, f.pc, f.lane, at) {
            return false;
        }
    }
    if g.checks.races {
        cluster::is_there(g, b, w, f.pc, f.lane, Place::Shared(f.near));
        note(g, b, w, f);
    }
    true
}

/// Notes the reads and writes of a copy for the race check.
fn note(g: &Grid<'_>, b: &mut Block, w: &mut Warp, f: &Flight) {
    let row = match f.mbarrier.and_then(|at| b.flying.mbarriers.get(&at)) {
        Some(m) => [m.row(); 2],
        None => {
            let rows = w.flying.actors.entry(f.lane).or_insert_with(|| [g.actor(), g.actor()]);
            rows.map(|row| (row, f.group + 1))
        }
    };
    let lanes = 1 << f.lane;
    let near = Place::Shared(f.near);
    if f.info.way == BulkWay::Registers {
        // Reductions are atomic towards each other.
        let strong = f.info.red.map(|_| Scope::Cluster);
        return race_async::late_store(g, b, w, f.pc, lanes, near, f.bytes, strong, row[0]);
    }
    if f.info.way != BulkWay::Peer {
        race::not_early(g, b, w, f.pc, lanes);
    }
    let stores = f.info.way == BulkWay::Store;
    let rank = |at: u64| at / g.shared_stride.max(1);
    let of = Operation { pc: f.pc, lanes, write: !stores, row: row[0] };
    race_async::near(g, b, w, of, rank(f.near), iter::once((f.near, f.bytes)));
    if f.info.way == BulkWay::Peer {
        let of = Operation { write: false, ..of };
        return race_async::near(g, b, w, of, rank(f.far), iter::once((f.far, f.bytes)));
    }
    // Read-only memory needs no order.
    let written = |at: u64| g.memory.find(at).is_some_and(|i| g.memory.allocations[i].writable);
    if let Some(map) = &f.map {
        maps::note(g, b, w, f, row[0]);
        if !written(map.address) {
            return;
        }
    }
    let of = Operation { write: stores, row: row[usize::from(stores)], ..of };
    match &f.map {
        None if written(f.far) => race_async::far(g, b, w, of, iter::once((f.far, f.bytes))),
        Some(map) => {
            let rows = tma_move::rows(map, &f.coordinates);
            race_async::far(g, b, w, of, rows.filter_map(|row| if stores { row.stored() } else { row.inside }));
        }
        None => {}
    }
}

/// The copies that lanes have issued since become one group of each lane.
pub(crate) fn commit(g: &Grid<'_>, b: &mut Block, w: &mut Warp, mask: u32) {
    let _ = (g, b);
    for l in (0..32).filter(|l| mask >> l & 1 != 0) {
        w.flying.committed[l] += 1;
    }
}

/// Completes all but the last groups of each lane, or at least their reads.
pub(crate) fn wait(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let (n, reads) = (inst.x >> 1, inst.x & 1 != 0);
    let number = (w.rank * g.warps() + w.index) as usize;
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let before = w.flying.committed[l as usize].saturating_sub(n);
        flight::wait(g, b, number, l, before, reads);
        if let Some(rows) = w.flying.actors.get(&l).copied().filter(|_| before > 0) {
            let known = &rows[..if reads { 1 } else { 2 }];
            w.clock.learn_rows(known, before, pc);
        }
    }
}

/// Lanes exit: their copies must have read their source.
pub(crate) fn exit(g: &Grid<'_>, b: &mut Block, w: &mut Warp, mask: u32) {
    let number = (w.rank * g.warps() + w.index) as usize;
    let is_unknown =
        |l: u32, rows: &[u32; 2]| !w.clock.knows(rows[0] | word::ACTOR, 0, w.flying.grouped[l as usize].1, 0);
    let unknown = w.flying.actors.iter().filter(|(l, rows)| mask >> **l & 1 != 0 && is_unknown(**l, rows));
    let flying = b.flying.flights.iter().filter(|f| f.warp == number && mask >> f.lane & 1 != 0 && unread(f));
    let lanes: BTreeSet<u32> = unknown.map(|(l, _)| *l).chain(flying.map(|f| f.lane)).collect();
    for l in lanes {
        let (at, _) = w.flying.grouped[l as usize];
        let detail = "its thread exits before the copy has read its source: cp.async.bulk.wait_group is missing";
        report::simple(g, b, w, Rule::BulkEnd, at, 1 << l, detail.to_owned());
    }
}

fn unread(f: &Flight) -> bool {
    f.info.grouped && f.data.is_none()
}

/// Reads what a store copies, without writing it.
pub(crate) fn take(b: &Block, f: &mut Flight) {
    f.data = Some(tma_move::read_near(b, f));
}
