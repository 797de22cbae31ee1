//! The memory that an endless loop polls, with the instruction and the value.

use super::block::Running;
use super::warp::{Group, Warp};
use crate::code::{Class, Code, Inst, MemInfo, NONE, Op};
use crate::machine::accesses::access::from_bytes;
use crate::machine::reports::report;
use crate::machine::undefined::check;
use crate::machine::{Grid, SHARED_WINDOW, WINDOW};
use crate::proof::classes;
use crate::types::Space;

/// Accesses of a loop that are listed.
const MOST: usize = 3;

/// The reads of a group's loop, in words; empty without a loop or a read.
pub(crate) fn text(g: &Grid<'_>, r: &Running, w: &Warp, group: &Group) -> String {
    let Some((first, last)) = around(g.code, group.pc) else { return String::new() };
    let reads = (first..=last).filter_map(|pc| Some((pc, read(g.code, &g.code.insts[pc as usize])?)));
    let lines = reads.take(MOST).map(|(pc, mem)| {
        let site = report::site(g.code, pc);
        let inst = &g.code.insts[pc as usize];
        let place = address(g.code, w, group, inst, mem, (first, last)).map(|at| {
            let holds = value(g, r, mem, at).map_or_else(String::new, |v| format!(", which holds {v:#x},"));
            format!(" {}{holds}", report::target(g, mem.space, at))
        });
        format!("\n  its loop reads{} at {site}", place.unwrap_or_else(|| " memory".to_owned()))
    });
    lines.collect()
}

/// The smallest loop around an instruction: where it begins, and the branch back to there.
fn around(code: &Code, pc: u32) -> Option<(u32, u32)> {
    let branches = code.insts.iter().enumerate().filter(|(_, i)| i.op == Op::Bra);
    let loops = branches.map(|(at, i)| (i.x, at as u32)).filter(|(first, last)| (*first..=*last).contains(&pc));
    loops.min_by_key(|(first, last)| last - first)
}

fn read<'c>(code: &'c Code, inst: &Inst) -> Option<&'c MemInfo> {
    let mem = match inst.op {
        Op::Ld => &code.mems[inst.x as usize],
        Op::Atom => &code.atoms[inst.x as usize].mem,
        _ => return None,
    };
    matches!(mem.space, Space::Global | Space::Generic | Space::Shared | Space::SharedCluster).then_some(mem)
}

/// The address of the group's first lane, unless the loop changes it.
fn address(code: &Code, w: &Warp, group: &Group, inst: &Inst, mem: &MemInfo, of: (u32, u32)) -> Option<u64> {
    let rows = inst.a..inst.a + if mem.address64 { 2 } else { 1 };
    let hits = |class: Class, d: u32| match class {
        _ if d == NONE => false,
        Class::Pred => false,
        Class::W32 => rows.contains(&d),
        Class::W64 => rows.contains(&d) || rows.contains(&(d + 1)),
    };
    let changes = |i: &Inst| {
        let [d, e, ..] = classes(code, i);
        let list = &code.list[i.list as usize..(i.list + u32::from(i.defs)) as usize];
        let one = match i.op {
            Op::Ld if !code.mems[i.x as usize].wide => Class::W32,
            Op::Atom if !code.atoms[i.x as usize].mem.wide => Class::W32,
            _ => Class::W64,
        };
        hits(d, i.d) || hits(e, i.e) || list.iter().any(|d| hits(one, *d))
    };
    if code.insts[of.0 as usize..=of.1 as usize].iter().any(changes) {
        return None;
    }
    let class = if mem.address64 { Class::W64 } else { Class::W32 };
    let lane = group.mask.trailing_zeros().min(31) as usize;
    Some(check::value(w, class, inst.a)[lane].wrapping_add(mem.offset as u64))
}

/// The value there.
fn value(g: &Grid<'_>, r: &Running, mem: &MemInfo, at: u64) -> Option<u64> {
    let shared = match mem.space {
        Space::Shared | Space::SharedCluster => Some(at & 0xffff_ffff),
        Space::Generic if at.wrapping_sub(SHARED_WINDOW) < WINDOW => Some(at - SHARED_WINDOW),
        _ => None,
    };
    if let Some(at) = shared {
        let is_inside = at.checked_add(u64::from(mem.bytes)).is_some_and(|end| end <= r.block.shared.len() as u64);
        return is_inside.then(|| from_bytes(&r.block.shared, at, mem.bytes));
    }
    let end = at.checked_add(u64::from(mem.bytes))?;
    let is_aligned = at.is_multiple_of(u64::from(mem.bytes));
    let allocation = g.memory.find(at).map(|i| &g.memory.allocations[i]);
    allocation.filter(|a| is_aligned && end <= a.end)?;
    // SAFETY: the bytes lie in an allocation, at a multiple of their number.
    Some(unsafe { g.memory.read(at, mem.bytes) })
}
