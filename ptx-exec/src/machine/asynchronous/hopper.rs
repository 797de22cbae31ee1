//! The instructions of Hopper chips that the loop hands over.

use super::{flight, maps, mbarrier, mbarrier_wait, st_async, tma};
use crate::code::{Class, Inst, NONE, Op};
use crate::code_async::MapOp;
use crate::machine::Grid;
use crate::machine::products::{wgmma, wgmma_groups};
use crate::machine::races::proxy;
use crate::machine::threads::block::Running;
use crate::machine::threads::cluster;
use crate::machine::threads::run::Event;
use crate::machine::threads::warp::{Block, Group, Wait, Warp};
use crate::machine::undefined::discard;
use crate::machine::vectors::vector::Rows;
use crate::proof::classes;

/// How the loop continues.
pub(crate) enum Next {
    /// With the next instruction.
    On,
    /// With the same one, after the wait.
    Again(Wait),
    /// With the next one, after an event.
    Then(Event, Wait),
}

/// An instruction that lanes of a warp execute: their registers and predicates, and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Issue<'a> {
    pub(crate) r: Rows,
    pub(crate) preds: *mut u32,
    pub(crate) inst: &'a Inst,
    pub(crate) pc: u32,
    pub(crate) mask: u32,
}

/// # Safety
/// The operands are those of the warp.
#[inline(never)]
pub(crate) unsafe fn step(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>) -> Next {
    let Issue { r, preds, inst, pc, mask } = issue;
    let aligned = match inst.op {
        Op::Converge | Op::Wgmma | Op::WgmmaFence | Op::WgmmaCommit | Op::WgmmaWait | Op::SetMaxRegisters => true,
        Op::ClusterArrive | Op::ClusterWait => inst.x & 2 != 0,
        Op::Map => matches!(g.code.asyncs.maps[inst.x as usize].op, MapOp::Copy(_)),
        _ => false,
    };
    if aligned && mask != w.live {
        return Next::Again(Wait::Lanes(w.live));
    }
    // SAFETY: the caller says so, of all arms.
    unsafe {
        match inst.op {
            Op::Mbarrier => return mbarrier::step(g, b, w, issue),
            Op::Bulk => tma::issue(g, b, w, r, inst, pc, mask),
            Op::Converge => {}
            Op::Discard => discard::discard(g, b, w, r, inst, pc, mask),
            Op::StAsync => st_async::issue(g, b, w, r, inst, pc, mask),
            Op::Map => maps::step(g, b, w, r, inst, pc, mask),
            Op::BulkCommit => tma::commit(g, b, w, mask),
            Op::BulkWait => tma::wait(g, b, w, inst, pc, mask),
            Op::ProxyFence => proxy::fence(w, mask, inst.x),
            Op::InitFence => proxy::publish_inits(w),
            Op::ClusterArrive => return cluster::arrive(g, b, w, inst, pc, mask),
            Op::ClusterWait => return cluster::wait(g, b, w, pc, mask),
            Op::Mapa => cluster::mapa(g, r, inst, mask),
            Op::SetMaxRegisters => return cluster::set_registers(g, b, w, inst, pc, mask),
            Op::Wgmma => wgmma::issue(g, b, w, r, preds, inst, pc),
            Op::WgmmaFence => wgmma::fence(w),
            Op::WgmmaCommit => wgmma_groups::commit(w),
            Op::WgmmaWait => return wgmma_groups::wait(g, b, w, inst.x, pc),
            _ => debug_assert!(false, "the loop runs the others"),
        }
    }
    Next::On
}

/// Lanes exit: their own asynchronous work must be over.
pub(crate) fn exit(g: &Grid<'_>, b: &mut Block, w: &mut Warp, mask: u32) {
    tma::exit(g, b, w, mask);
    if mask == w.live {
        wgmma_groups::exit(g, b, w);
    }
}

/// After lanes of a warp have exited.
pub(crate) fn block_exit(g: &Grid<'_>, r: &mut Running, index: usize) {
    let rank = r.warps[index].rank;
    if r.warps.iter().all(|w| w.rank != rank || w.live == 0) {
        flight::block_ended(g, r, rank);
    }
}

/// The wait of lanes, in words.
pub(crate) fn waiting(g: &Grid<'_>, r: &Running, w: &Warp, group: &Group) -> String {
    if group.wait == Wait::Mbarrier {
        let at = crate::machine::reports::report::site(g.code, group.pc);
        let number = (w.rank * g.warps() + w.index) as usize;
        return format!("{}, {at}", mbarrier_wait::waiting(g, r, number, group));
    }
    if group.wait == Wait::Warpgroup {
        return format!(
            "{}, {}",
            wgmma_groups::waiting(g, r, w),
            crate::machine::reports::report::site(g.code, group.pc)
        );
    }
    cluster::waiting(g, r, w, group)
}

/// Reports uninitialised operands of these instructions.
pub(crate) fn undefined(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let [d, _, a, b_class, c] = classes(g.code, inst);
    let mut operands = vec![(a, inst.a), (b_class, inst.b), (c, inst.c)];
    if inst.op == Op::Bulk {
        let list = g.code.listed(inst);
        operands.extend(list.iter().map(|r| (Class::W32, *r)));
    }
    for (class, at) in operands {
        if !w.shadow.is_dirty(class, at) {
            continue;
        }
        let shadow = w.shadow.get(class, at);
        let lanes = (0..32).filter(|l| mask >> l & 1 != 0 && shadow[*l] != 0).fold(0, |m, l| m | 1 << l);
        if lanes != 0 {
            crate::machine::undefined::check::finding(
                g,
                b,
                w,
                pc,
                lanes,
                "an operand of it is uninitialised",
                (class, at),
            );
            w.shadow.clean(class, at, lanes, w.live);
        }
    }
    if inst.d != NONE {
        w.shadow.clean(d, inst.d, mask, w.live);
    }
}
