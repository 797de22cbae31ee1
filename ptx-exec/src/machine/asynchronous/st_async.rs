//! `st.async` and `red.async`: stores and reductions to shared memory of the cluster that happen some time, and of whose bytes a barrier there is told.

use super::flight;
use super::tma::{self, Flight};
use crate::FindingKind;
use crate::code::{Class, Inst};
use crate::code_async::{BulkInfo, BulkWay};
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, addresses, locate};
use crate::machine::reports::report;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::vectors::vector::Rows;
use crate::types::Space;

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn issue(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.asyncs.stores[inst.x as usize];
    let list = g.code.listed(inst);
    let class = if info.bytes == 8 { Class::W64 } else { Class::W32 };
    // SAFETY: the caller says so.
    let [near, told] = unsafe {
        [
            addresses(r, inst.a, info.near64[0], info.near_offset[0], mask),
            addresses(r, inst.c, info.near64[1], info.near_offset[1], mask),
        ]
    };
    let bytes = info.bytes * list.len() as u32;
    let way = BulkInfo {
        way: BulkWay::Registers,
        modes: 0,
        red: info.red,
        multicast: false,
        grouped: false,
        near64: info.near64,
        near_offset: info.near_offset,
        far_offset: 0,
    };
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let i = l as usize;
        // Generic addresses of shared memory are its own in their lower half.
        let at = near[i] & 0xffff_ffff;
        let kind = match locate(g, w, Space::SharedCluster, at, l, u64::from(bytes), true) {
            Ok(Place::Shared(_)) => None,
            Ok(_) => Some(FindingKind::OutOfBounds),
            Err(kind) => Some(kind),
        };
        if let Some(kind) = kind {
            report::access(g, b, w, kind, pc, l, Space::SharedCluster, near[i], u64::from(bytes), true);
            continue;
        }
        let mut data = Vec::with_capacity(bytes as usize);
        let mut from = 0;
        for row in list {
            // SAFETY: the caller says so.
            let value = unsafe {
                if class == Class::W64 { *r.lanes::<u64>(*row).add(i) } else { u64::from(*r.lanes::<u32>(*row).add(i)) }
            };
            let undefined = if g.checks.init { w.shadow.get(class, *row)[i] } else { 0 };
            if undefined != 0 && from == 0 {
                from = w.shadow.from(class, *row)[i];
            }
            let bytes = value.to_le_bytes().into_iter().zip(undefined.to_le_bytes());
            data.extend(bytes.take(info.bytes as usize).map(|(byte, undefined)| (byte, undefined == 0)));
        }
        let mut flight = Flight {
            info: way,
            pc,
            who: report::who(g, w.ctaid, w.index, 1 << l),
            warp: (w.rank * g.warps() + w.index) as usize,
            lane: l,
            map: None,
            coordinates: [0; 5],
            near: at,
            far: 0,
            bytes,
            mbarrier: Some(told[i] & 0xffff_ffff),
            group: 0,
            data: Some(data),
            from,
            born: 0,
        };
        if tma::lands(g, b, w, &mut flight) {
            flight::issued(g, b, flight);
        }
    }
}
