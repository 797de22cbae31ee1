//! `cp.async`. A copy arrives as late as PTX allows: when its thread waits for its group, or exits.

use super::tracked;
use crate::code::{Inst, NONE};
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, addresses, locate, read, write};
use crate::machine::accesses::places;
use crate::machine::races::order::WarpClock;
use crate::machine::races::{race, race_async};
use crate::machine::reports::report;
use crate::machine::threads::warp::{Block, Copy, Warp};
use crate::machine::undefined::defined;
use crate::machine::vectors::vector::Rows;
use crate::types::Space;
use crate::{FindingKind, Rule};

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn issue(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.copies[inst.x as usize];
    // SAFETY: the caller says so.
    let (to, from) =
        unsafe { (addresses(r, inst.a, info.to64, info.to, mask), addresses(r, inst.b, true, info.from, mask)) };
    let mut bytes = [info.bytes; 32];
    if inst.c != NONE {
        bytes = if info.ignore_src {
            let ignored = w.preds[inst.c as usize];
            core::array::from_fn(|l| if ignored >> l & 1 != 0 { 0 } else { info.bytes })
        } else {
            // SAFETY: the caller says so.
            unsafe { *r.lanes::<[u32; 32]>(inst.c) }.map(|n| n.min(info.bytes))
        };
    }
    let mut copy = Copy {
        mask: 0,
        pc,
        number: w.flying.issued,
        bytes: info.bytes,
        to: [0; 32],
        from: [0; 32],
        read: [0; 32],
        group: [u32::MAX; 32],
        tracked: [0; 32],
        done: 0,
        is_fixed: false,
    };
    let wants = |n: u32| bytes.iter().enumerate().fold(0, |m, (l, b)| m | u32::from(*b == n) << l) & mask;
    let (whole, none) = (wants(info.bytes), wants(0));
    let aligned = from.iter().fold(0, |all, at| all | at) & (u64::from(info.bytes) - 1) == 0;
    let simple = whole | none == mask && aligned && !g.checks.bounds;
    // SAFETY: the caller says so.
    match if simple { unsafe { places::copied(g, b, w, r, inst, &info, [mask, whole]) } } else { None } {
        Some((to, from, is_fixed)) => {
            (copy.mask, copy.to, copy.from, copy.is_fixed) = (mask, to, from, is_fixed);
            copy.read = core::array::from_fn(|l| if whole >> l & 1 != 0 { info.bytes as u8 } else { 0 });
        }
        None => each(g, b, w, &mut copy, [&to, &from], &bytes, mask),
    }
    if copy.mask == 0 || !has_room(g, b, w, &copy) {
        return;
    }
    if g.checks.races {
        lacks(b, &w.clock, pc, Rule::CopyCommit);
        race::not_early(g, b, w, pc, copy.mask);
        race_async::issue(g, b, w, pc, copy.mask, &copy.to, info.bytes);
    }
    w.flying.issued += 1;
    w.copies.push_back(copy);
}

/// Whether the copies in flight fit the block's shared memory. If not, two copies write the same bytes in any order. This ends a loop
/// that never waits.
fn has_room(g: &Grid<'_>, b: &mut Block, w: &Warp, copy: &Copy) -> bool {
    let all = &mut b.flying.copying[w.rank as usize];
    *all += copy.all_bytes();
    if *all <= g.shared_stride {
        return true;
    }
    let detail = format!("copies of {all} B are in flight to {} B of shared memory, without a wait", g.shared_stride);
    report::simple(g, b, w, Rule::CopyRoom, copy.pc, copy.mask, detail);
    b.stopped = true;
    false
}

/// The slow path, lane by lane, which reports faults.
fn each(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    copy: &mut Copy,
    [to, from]: [&[u64; 32]; 2],
    bytes: &[u32; 32],
    mask: u32,
) {
    let (n, pc) = (u64::from(copy.bytes), copy.pc);
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        let (target, source) = (to[l as usize], from[l as usize]);
        let place = match locate(g, w, Space::Shared, target, l, n, true) {
            Ok(Place::Shared(place)) => place,
            Ok(_) => continue,
            Err(kind) => {
                report::access(g, b, w, kind, pc, l, Space::Shared, target, n, true);
                continue;
            }
        };
        let wanted = u64::from(bytes[l as usize]);
        let fine = match readable(g, w, source, l, n, wanted) {
            Ok(()) => true,
            Err(kind) => {
                report::access(g, b, w, kind, pc, l, Space::Global, source, wanted, false);
                false
            }
        };
        copy.to[l as usize] = place as u32;
        copy.from[l as usize] = source;
        copy.read[l as usize] = if fine { wanted as u8 } else { 0 };
        copy.mask |= 1 << l;
    }
}

/// Whether a lane may copy `wanted` bytes of `n`. The address must fit all `n` bytes.
#[inline(always)]
fn readable(g: &Grid<'_>, w: &mut Warp, source: u64, lane: u32, n: u64, wanted: u64) -> Result<(), FindingKind> {
    if source & (n - 1) != 0 {
        return Err(FindingKind::Misaligned);
    }
    if wanted == n {
        return locate(g, w, Space::Global, source, lane, n, false).map(|_| ());
    }
    (0..wanted).try_for_each(|i| locate(g, w, Space::Global, source + i, lane, 1, false).map(|_| ()))
}

/// The copies that lanes have issued since become one group.
pub(crate) fn commit(b: &mut Block, w: &mut Warp, pc: u32, mask: u32) {
    for copy in w.copies.iter_mut().rev() {
        let lanes = copy.mask & mask & !copy.done;
        for l in (0..32).filter(|l| lanes >> l & 1 != 0) {
            if copy.group[l] == u32::MAX {
                copy.group[l] = w.committed[l];
                lacks(b, &w.clock, copy.pc, Rule::CopyWait);
                note(b, w.clock.lessons.is_some(), copy.pc, pc);
            }
        }
    }
    for l in (0..32).filter(|l| mask >> l & 1 != 0) {
        w.committed[l] += 1;
    }
}

/// Notes for the race check which wait or commit a copy still lacks.
fn lacks(b: &mut Block, clock: &WarpClock, copy: u32, rule: Rule) {
    if clock.on {
        b.flying.lacks.insert((clock.id, copy), rule);
    }
}

/// From now on, an `mbarrier` tracks the copies that the warp has issued.
pub(crate) fn track(b: &mut Block, w: &Warp, mask: u32) {
    for copy in w.copies.iter().filter(|copy| copy.mask & mask & !copy.done != 0) {
        lacks(b, &w.clock, copy.pc, Rule::CopyArrival);
    }
}

/// Notes for the happens-before paths that an instruction commits a copy or waits for it.
fn note(b: &mut Block, on: bool, copy: u32, pc: u32) {
    if let Some(races) = b.races.as_deref_mut().filter(|_| on) {
        races.paths.note_copy(copy, pc);
    }
}

/// All but the last `n` groups of each lane arrive; with `NONE`, all copies do.
pub(crate) fn wait(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, n: u32, mask: u32) {
    let committed = w.committed;
    w.flying.waited |= arrive(g, b, w, pc, mask, &Learns::Thread, |copy, l| {
        n == NONE || copy.group[l] != u32::MAX && u64::from(copy.group[l]) + u64::from(n) < u64::from(committed[l])
    });
}

/// The first `issued` copies arrive. Threads that know a lane's row of asynchronous operations learn of them. `first` is lane 0's row.
pub(crate) fn tell(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, mask: u32, issued: u64, first: u32) {
    arrive(g, b, w, pc, mask, &Learns::Rows(first), |copy, _| copy.number < issued);
}

/// Lanes exit: their copies arrive at some time.
pub(crate) fn finish(g: &Grid<'_>, b: &mut Block, w: &mut Warp, pc: u32, mask: u32) {
    if !w.flying.tracked.is_empty() {
        tracked::exit(g, b, w, mask);
    }
    if !w.copies.is_empty() {
        arrive(g, b, w, pc, mask, &Learns::Nobody, |_, _| true);
    }
}

/// Copies 4, 8 or 16 bytes.
///
/// # Safety
/// They are there.
#[inline(always)]
unsafe fn few_to(to: &mut [u8], from: *const u8) {
    // SAFETY: the caller says so.
    unsafe {
        match to.len() {
            16 => to.copy_from_slice(&from.cast::<[u8; 16]>().read()),
            8 => to.copy_from_slice(&from.cast::<[u8; 8]>().read()),
            _ => from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()),
        }
    }
}

/// The threads that learn that copies have arrived.
enum Learns {
    /// None: the threads of the copies have exited without a wait.
    Nobody,
    Thread,
    /// Threads that know the lane's row of asynchronous operations; the number is lane 0's row.
    Rows(u32),
}

/// Copies that are due arrive. Returns the lanes with at least one.
fn arrive(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    pc: u32,
    mask: u32,
    learns: &Learns,
    due: impl Fn(&Copy, usize) -> bool,
) -> u32 {
    let mut all = 0;
    let mut copies = core::mem::take(&mut w.copies);
    let fixed = g.memory.bytes();
    for copy in &mut copies {
        let lanes = copy.mask & mask & !copy.done;
        for l in (0..32_usize).filter(|l| lanes >> l & 1 != 0) {
            if !due(copy, l) {
                continue;
            }
            copy.done |= 1 << l;
            let (to, from) = (Place::Shared(u64::from(copy.to[l])), copy.from[l]);
            let mut undefined = 0_u32;
            let start = copy.to[l] as usize;
            if !g.checks.init
                && copy.bytes >= 4
                && u32::from(copy.read[l]) == copy.bytes
                && let Some(into) = b.shared.get_mut(start..start + copy.bytes as usize)
            {
                if let Some(bytes) = fixed.filter(|_| copy.is_fixed) {
                    let from = bytes.wrapping_add(from as usize);
                    // SAFETY: it was found when the copy was issued, and nobody writes it.
                    unsafe { few_to(into, from) };
                    continue;
                }
                for (word, at) in into.chunks_exact_mut(4).zip((from..).step_by(4)) {
                    // SAFETY: it was found when the copy was issued.
                    word.copy_from_slice(&(unsafe { g.memory.read(at, 4) } as u32).to_le_bytes());
                }
                continue;
            }
            // Words, as far as they are read, and then bytes.
            let words = if from % 4 == 0 { u64::from(copy.read[l] / 4) } else { 0 };
            for i in 0..words {
                let value = read(g, b, w, Place::Global(from + 4 * i), 4);
                if g.checks.init {
                    let bits = g.memory.undefined(from + 4 * i, 4);
                    undefined |= (0..4).fold(0, |m, e| m | u32::from(bits >> (8 * e) & 0xff != 0) << e) << (4 * i);
                }
                write(g, b, w, to.plus(4 * i), 4, value);
            }
            for i in 4 * words..u64::from(copy.bytes) {
                let inside = i < u64::from(copy.read[l]);
                let value = if inside { read(g, b, w, Place::Global(from + i), 1) } else { 0 };
                if inside && g.checks.init && g.memory.undefined(from + i, 1) != 0 {
                    undefined |= 1 << i;
                }
                write(g, b, w, to.plus(i), 1, value);
            }
            if g.checks.init {
                let from = match undefined {
                    0 => 0,
                    _ => {
                        let place = Place::Global(from + u64::from(undefined.trailing_zeros()));
                        b.origins.number(copy.pc, (w.ctaid, w.index), l as u32, place)
                    }
                };
                defined::copied(b, u64::from(copy.to[l]), copy.bytes, undefined, from);
            }
        }
        all |= lanes & copy.done;
        let arrived = u64::from((lanes & copy.done).count_ones()) * u64::from(copy.bytes);
        let left = &mut b.flying.copying[w.rank as usize];
        *left = left.saturating_sub(arrived);
        if g.checks.races && lanes & copy.done != 0 {
            note(b, w.clock.lessons.is_some(), copy.pc, pc);
            let rows = match learns {
                Learns::Nobody => continue,
                Learns::Thread => None,
                Learns::Rows(first) => Some(core::array::from_fn(|l| (first + l as u32, copy.tracked[l]))),
            };
            race_async::complete(b, w, copy.pc, lanes & copy.done, &copy.to, copy.bytes, rows.as_ref());
        }
    }
    copies.retain(|copy| copy.done != copy.mask);
    w.copies = copies;
    all
}
