//! Lanes of a warp that meet at an instruction with a mask: the lanes that continue, and the lanes that wait.
//!
//! A lane waits until all lanes that its mask names, and that have not exited, are at the instruction with the same mask.

use smallvec::SmallVec;

use super::block::Running;
use super::lanes::shfl_source;
use super::warp::{Block, Group, Stray, Wait, Warp};
use crate::Rule;
use crate::code::{Class, Code, Inst, Op};
use crate::machine::Grid;
use crate::machine::asynchronous::hopper::Issue;
use crate::machine::races::order;
use crate::machine::reports::report;
use crate::machine::undefined::check::{self, ALL};
use crate::machine::vectors::vector::Rows;

/// Lanes at one instruction that name the same members.
#[derive(Clone, Copy)]
struct Party {
    members: u32,
    lanes: u32,
}

/// The register of the mask.
fn mask_row(code: &Code, inst: &Inst) -> u32 {
    match inst.op {
        Op::Shfl => code.list[inst.list as usize],
        Op::Elect | Op::WarpSync => inst.a,
        _ => inst.b,
    }
}

/// Lanes arrive at an instruction with a mask. Returns the lanes that execute it now, all with one mask; the others wait. `None` if all
/// wait.
///
/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(crate) unsafe fn arrive(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    group: &mut Group,
    issue: Issue<'_>,
    all: u32,
) -> Option<u32> {
    let Issue { r, inst, pc, mask, .. } = issue;
    // SAFETY: the caller says so.
    let named = unsafe { &*r.lanes::<[u32; 32]>(mask_row(g.code, inst)) };
    let first = named[mask.trailing_zeros() as usize & 31];
    // Most often all lanes name each other.
    let is_one = named.iter().fold(0, |all, m| all | (m ^ first)) == 0;
    if is_one && first & w.live & !mask == 0 && mask & !first == 0 {
        if !w.groups.is_empty() {
            cross(w, inst.op, pc, first, mask);
        }
        return Some(mask);
    }
    let named = *named;
    sort_out(g, b, w, group, issue, all, &named)
}

#[inline(never)]
fn sort_out(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    group: &mut Group,
    Issue { inst, pc, mask, .. }: Issue<'_>,
    all: u32,
    named: &[u32; 32],
) -> Option<u32> {
    let strangers: u32 = (0..32).filter(|l| mask >> l & 1 != 0 && named[*l] >> l & 1 == 0).fold(0, |m, l| m | 1 << l);
    if strangers != 0 {
        let l = strangers.trailing_zeros();
        let detail =
            format!("lane {l} executes it with mask {:#010x}, which does not name lane {l}", named[l as usize]);
        report::simple(g, b, w, Rule::OwnMask, pc, strangers, detail);
    }
    let parties = parties(named, mask);
    let goes = parties.iter().position(|p| p.members & w.live & !p.lanes == 0);
    let crossed = core::mem::take(&mut group.crossed);
    let is_warp_sync = inst.op == Op::WarpSync;
    let waits = |p: &Party| Group {
        pc: pc + u32::from(is_warp_sync),
        mask: p.lanes,
        wait: if is_warp_sync { Wait::WarpSync(p.members) } else { Wait::Lanes(p.members) },
        crossed: p.members & (crossed | mask & !p.lanes),
    };
    if let Some(goes) = goes {
        let Party { members, lanes } = parties[goes];
        cross(w, inst.op, pc, members, lanes);
        w.groups.extend(parties.iter().enumerate().filter(|(i, _)| *i != goes).map(|(_, p)| waits(p)));
        group.mask &= !(mask & !lanes);
        return Some(lanes);
    }
    // Lanes whose guard is false go on.
    if all & !mask != 0 {
        w.groups.push(Group::ready(pc + 1, all & !mask));
    }
    let (first, others) = parties.split_first()?;
    w.groups.extend(others.iter().map(waits));
    *group = waits(first);
    None
}

fn parties(named: &[u32; 32], mask: u32) -> SmallVec<[Party; 4]> {
    let mut parties = SmallVec::new();
    let mut rest = mask;
    while rest != 0 {
        let members = named[rest.trailing_zeros() as usize];
        let same = named.iter().enumerate().fold(0, |all, (l, m)| all | u32::from(*m == members) << l);
        parties.push(Party { members, lanes: same & rest });
        rest &= !same;
    }
    parties
}

/// Lanes execute an instruction with a mask. Groups that wait there with another mask remember these lanes.
fn cross(w: &mut Warp, op: Op, pc: u32, members: u32, lanes: u32) {
    for group in &mut w.groups {
        let others = match group.wait {
            Wait::Lanes(others) if op != Op::WarpSync && pc == group.pc => others,
            // Any `bar.warp.sync` may meet any other.
            Wait::WarpSync(others) if op == Op::WarpSync => others,
            _ => continue,
        };
        if others != members {
            group.crossed |= others & lanes;
        }
    }
}

/// Merges groups at one instruction, unless they wait for different lanes.
pub(crate) fn join(w: &mut Warp) {
    let live = w.live;
    let mut i = 0;
    while i < w.groups.len() {
        let mut j = i + 1;
        while j < w.groups.len() {
            let (a, b) = (w.groups[i], w.groups[j]);
            let wait = match (a.wait, b.wait) {
                _ if a.pc != b.pc => None,
                (Wait::Ready, Wait::Ready | Wait::Lanes(_)) | (Wait::Lanes(_), Wait::Ready) => Some(Wait::Ready),
                (Wait::Lanes(m), Wait::Lanes(n)) if (m ^ n) & live == 0 => Some(a.wait),
                _ => None,
            };
            match wait {
                Some(wait) => {
                    w.groups[i] = Group { pc: a.pc, mask: a.mask | b.mask, wait, crossed: a.crossed | b.crossed };
                    w.groups.swap_remove(j);
                }
                None => j += 1,
            }
        }
        i += 1;
    }
    open(w);
    // Lanes that wait for lanes that have exited wait no longer.
    for group in &mut w.groups {
        if let Wait::Lanes(members) = group.wait
            && members & w.live & !group.mask == 0
        {
            group.wait = Wait::Ready;
        }
    }
}

/// `bar.warp.sync`: lanes that wait with one mask, at whatever instruction, go on together.
fn open(w: &mut Warp) {
    for i in 0..w.groups.len() {
        let Wait::WarpSync(members) = w.groups[i].wait else { continue };
        let is_one = |g: &&mut Group| g.wait == Wait::WarpSync(members);
        let here = w.groups.iter_mut().filter(is_one).fold(0, |m, g| m | g.mask);
        if members & w.live & !here != 0 {
            continue;
        }
        let pc = w.groups[i].pc.saturating_sub(1);
        for group in w.groups.iter_mut().filter(is_one) {
            (group.wait, group.crossed) = (Wait::Ready, 0);
        }
        order::warp_sync(w, here, pc);
        cross(w, Op::WarpSync, pc, members, here);
    }
}

/// Lanes exit: other lanes may wait for them.
pub(crate) fn left(g: &Grid<'_>, b: &mut Block, w: &mut Warp, mask: u32) {
    for i in 0..w.groups.len() {
        if w.groups[i].crossed & mask != 0 {
            tell(g, b, w, w.groups[i]);
            w.groups[i].crossed = 0;
        }
    }
}

fn tell(g: &Grid<'_>, b: &mut Block, w: &Warp, group: Group) {
    let (members, pc) = match group.wait {
        Wait::Lanes(members) => (members, group.pc),
        Wait::WarpSync(members) => (members, group.pc.saturating_sub(1)),
        _ => return,
    };
    let detail =
        format!("they name mask {members:#010x}; lanes {:#010x} of it execute it with another mask", group.crossed);
    report::simple(g, b, w, Rule::OneMask, pc, group.mask, detail);
}

/// In a deadlock: reports lanes with different masks. Returns whether there are any.
pub(crate) fn tell_crossed(g: &Grid<'_>, r: &mut Running) -> bool {
    let mut any = false;
    for w in &r.warps {
        for group in w.groups.iter().filter(|group| group.crossed & w.live != 0) {
            tell(g, &mut r.block, w, *group);
            any = true;
        }
    }
    r.block.stopped |= any;
    any
}

/// Before an instruction with a mask: propagates undefined bits from operands to results. A value from an absent lane is undefined.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn undefined(g: &Grid<'_>, b: &mut Block, w: &mut Warp, issue: Issue<'_>, same: u32, soiled: bool) {
    let Issue { r, inst, pc, .. } = issue;
    // SAFETY: the caller says so.
    let stray = if inst.op == Op::Shfl { unsafe { strays(r, inst, same) } } else { None };
    if soiled || stray.is_some() {
        check::propagate(g, b, w, inst, pc, same);
    }
    if let Some((lanes, lane, from)) = stray {
        w.shadow.set(Class::W32, inst.d, &[ALL; 32], lanes, w.live);
        w.stray = Some(Stray { pc, lane, from });
    }
}

/// Lanes whose source lane does not execute the instruction; the first of them, and its source.
///
/// # Safety
/// The operands are those of the warp.
unsafe fn strays(r: Rows, inst: &Inst, same: u32) -> Option<(u32, u32, u32)> {
    if same == u32::MAX {
        return None;
    }
    // SAFETY: the caller says so.
    let (b, c) = unsafe { (&*r.lanes::<[u32; 32]>(inst.b), &*r.lanes::<[u32; 32]>(inst.c)) };
    let source = |l: u32| shfl_source(inst.x, b[l as usize], c[l as usize], l).0;
    let is_stray = |l: &u32| same >> l & 1 != 0 && same >> source(*l) & 1 == 0;
    let first = (0..32).find(is_stray)?;
    Some(((first..32).filter(is_stray).fold(0, |m, l| m | 1 << l), first, source(first)))
}

/// Lanes arrive at an instruction of the whole warp. Returns whether they continue; otherwise they wait for the others.
pub(crate) fn whole(g: &Grid<'_>, b: &mut Block, w: &Warp, group: &mut Group, pc: u32, mask: u32) -> bool {
    if mask != w.live && mask == group.mask {
        group.wait = Wait::Lanes(w.live);
        return false;
    }
    if mask != u32::MAX {
        let detail = format!("{} of the warp's 32 threads execute it", mask.count_ones());
        report::simple(g, b, w, Rule::WarpMatrix, pc, mask, detail);
    }
    true
}
