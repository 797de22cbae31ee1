//! Lane functions, special registers, and warp-wide instructions.

use super::warp::{Block, Warp};
use crate::code::{Class, Inst, LaneInfo, NONE, SetpInfo, ShflMode, VoteMode};
use crate::lower::special::{SPECIAL, is_wide_special};
use crate::machine::vectors::predicates::blend;
use crate::machine::vectors::rows;
use crate::machine::vectors::vector::{Rows, store};
use crate::machine::{Grid, MULTIPROCESSORS, RESERVED};
use crate::num::video;

/// An operand's lanes, zero-extended.
///
/// # Safety
/// The operand is one of the warp's, of the class.
#[inline(always)]
pub(crate) unsafe fn read(r: Rows, preds: *mut u32, class: Class, at: u32) -> [u64; 32] {
    if at == NONE {
        return [0; 32];
    }
    // SAFETY: the caller says so.
    unsafe {
        match class {
            Class::W32 => (*r.lanes::<[u32; 32]>(at)).map(u64::from),
            Class::W64 => *r.lanes::<[u64; 32]>(at),
            Class::Pred => {
                let p = *preds.add(at as usize);
                core::array::from_fn(|l| u64::from(p >> l & 1))
            }
        }
    }
}

/// Writes the lanes of a mask.
///
/// # Safety
/// The operand is one of the warp's, of the class.
#[inline(always)]
pub(crate) unsafe fn write(r: Rows, preds: *mut u32, class: Class, at: u32, out: &[u64; 32], mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        match class {
            Class::W32 => store(r.lanes(at), &out.map(|v| v as u32), mask),
            Class::W64 => store(r.lanes(at), out, mask),
            Class::Pred => {
                let bits = out.iter().enumerate().fold(0, |m, (l, v)| m | (*v as u32 & 1) << l);
                blend(preds, at, bits, mask);
            }
        }
    }
}

/// # Safety
/// The operands are those of the warp; with `V3` the processor has AVX2.
#[inline(always)]
pub(crate) unsafe fn lane<const V3: bool>(g: &Grid<'_>, r: Rows, preds: *mut u32, inst: &Inst, mask: u32) {
    let info = &g.code.lanes[inst.x as usize];
    // SAFETY: the caller says so; in a `Code` the operands have the classes of the table's entry (2), and of its loop.
    unsafe {
        match info.row {
            Some(row) => rows::run::<V3>(row, r, inst, mask),
            None => each_lane(info, r, preds, inst, mask),
        }
    }
}

/// Runs a lane function without a vector loop.
///
/// # Safety
/// The operands are those of the warp.
#[inline(never)]
unsafe fn each_lane(info: &LaneInfo, r: Rows, preds: *mut u32, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        let a = read(r, preds, info.a, inst.a);
        let b = read(r, preds, info.b, inst.b);
        let c = read(r, preds, info.c, inst.c);
        let keep = if info.bits >= 64 { u64::MAX } else { (1 << info.bits) - 1 };
        let mut out = [0; 32];
        let mut left = mask;
        while left != 0 {
            let l = left.trailing_zeros() as usize;
            left &= left - 1;
            out[l] = (info.f)(a[l], b[l], c[l], info.ctl) & keep;
        }
        write(r, preds, info.d, inst.d, &out, mask);
    }
}

/// The lanes of a mask for which a comparison without a vector loop holds.
///
/// # Safety
/// The operands are those of the warp.
#[inline(never)]
pub(crate) unsafe fn compare(info: &SetpInfo, r: Rows, preds: *mut u32, inst: &Inst, mask: u32) -> u32 {
    let class = if info.wide { Class::W64 } else { Class::W32 };
    // SAFETY: the caller says so.
    let (x, y) = unsafe { (read(r, preds, class, inst.a), read(r, preds, class, inst.b)) };
    let holds = |l: &usize| (info.f)(x[*l], y[*l], 0, info.ctl) & 1 != 0;
    (0..32).filter(|l| mask >> l & 1 != 0).filter(holds).fold(0, |all, l| all | 1 << l)
}

/// A sum or a difference with a carry.
///
/// # Safety
/// The operands are those of the warp.
#[inline(never)]
pub(crate) unsafe fn carry(r: Rows, preds: *mut u32, inst: &Inst, mask: u32) {
    let wide = inst.x & 2 != 0;
    let class = if wide { Class::W64 } else { Class::W32 };
    let f = if inst.x & 1 != 0 { video::sub_borrow } else { video::add_carry };
    // SAFETY: the caller says so.
    unsafe {
        let (x, y) = (read(r, preds, class, inst.a), read(r, preds, class, inst.b));
        let carry = if inst.c == NONE { 0 } else { *preds.add(inst.c as usize) };
        let (mut out, mut carries) = ([0_u64; 32], 0);
        for l in 0..32 {
            let (value, carried) = f(x[l], y[l], carry >> l & 1 != 0, wide);
            out[l] = value;
            carries |= u32::from(carried) << l;
        }
        write(r, preds, class, inst.d, &out, mask);
        if inst.e != NONE {
            blend(preds, inst.e, carries, mask);
        }
    }
}

/// The indices of 32 threads from one on.
fn threads(block: [u32; 3], first: u32) -> [[u32; 32]; 3] {
    let [x, y, z] = block;
    if y * z == 1 {
        return [core::array::from_fn(|l| first + l as u32), [0; 32], [0; 32]];
    }
    let mut at = [first % x, first / x % y, first / x / y];
    let mut all = [[0; 32]; 3];
    for l in 0..32 {
        for (row, at) in all.iter_mut().zip(at) {
            row[l] = at;
        }
        at[0] += 1;
        if at[0] == x {
            (at[0], at[1]) = (0, at[1] + 1);
        }
        if at[1] == y {
            (at[1], at[2]) = (0, at[2] + 1);
        }
    }
    all
}

/// An offset in the shared memory that the system reserves.
fn reserved(g: &Grid<'_>, rank: u32, at: u64) -> u32 {
    g.reserved.map_or(0, |start| (start + u64::from(rank) * g.shared_stride + at) as u32)
}

/// Reads a special register.
///
/// # Safety
/// The operands are those of the warp.
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(crate) unsafe fn special(g: &Grid<'_>, b: &Block, w: &Warp, clock: u64, r: Rows, inst: &Inst, mask: u32) {
    let (warp, rank) = (w.index, w.rank);
    if let Some(d) = (inst.x as usize).checked_sub(3).filter(|x| *x < 9) {
        let value = [g.block, w.ctaid, g.grid][d / 3][d % 3];
        // SAFETY: the caller says so.
        return unsafe { store(r.lanes(inst.d), &[value; 32], mask) };
    }
    if inst.x < 3 {
        // SAFETY: the caller says so.
        return unsafe { store(r.lanes(inst.d), &threads(g.block, warp * 32)[inst.x as usize], mask) };
    }
    let warps = g.threads().div_ceil(32);
    let shared = g.shared_stride as u32;
    let name = SPECIAL[inst.x as usize];
    let each = |f: &dyn Fn(u32) -> u32| core::array::from_fn(|l| u64::from(f(l as u32)));
    let one = |v: u32| [u64::from(v); 32];
    let out: [u64; 32] = match name {
        "%laneid" => each(&|l| l),
        "%warpid" => one(warp),
        "%nwarpid" => one(warps),
        "%smid" => one(((b.number * u64::from(g.ranks()) + u64::from(rank)) % u64::from(MULTIPROCESSORS)) as u32),
        "%nsmid" => one(MULTIPROCESSORS),
        "%lanemask_eq" => each(&|l| 1 << l),
        "%lanemask_lt" => each(&|l| (1 << l) - 1),
        "%lanemask_le" => each(&|l| (1_u32 << l) | ((1 << l) - 1)),
        "%lanemask_gt" => each(&|l| !((1_u32 << l) | ((1 << l) - 1))),
        "%lanemask_ge" => each(&|l| !((1 << l) - 1)),
        "%envreg1" => one((g.workspace >> 32) as u32),
        "%envreg2" => one(g.workspace as u32),
        "%reserved_smem_offset_begin" | "%reserved_smem_offset_0" => one(reserved(g, rank, 0)),
        "%reserved_smem_offset_1" => one(reserved(g, rank, RESERVED / 2)),
        "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => one(reserved(g, rank, RESERVED)),
        "%dynamic_smem_size" => one(g.dynamic_smem),
        "%total_smem_size" | "%aggr_smem_size" => one(shared),
        "%cluster_ctarank" => one(rank),
        "%cluster_nctarank" => one(g.ranks()),
        "%is_explicit_cluster" => one(u32::from(g.ranks() > 1)),
        name if name.contains("cluster") => {
            let i = usize::from(name.as_bytes()[name.len() - 1] - b'x').min(2);
            one(match &name[..name.len() - 2] {
                "%clusterid" => w.ctaid[i] / g.cluster[i],
                "%nclusterid" => g.grid[i] / g.cluster[i],
                "%cluster_ctaid" => w.ctaid[i] % g.cluster[i],
                _ => g.cluster[i],
            })
        }
        "%clock" | "%globaltimer_lo" => one(clock as u32),
        "%clock64" | "%globaltimer" => [clock; 32],
        "%gridid" => [1; 32],
        _ => one(0),
    };
    // SAFETY: the caller says so.
    unsafe {
        if is_wide_special(inst.x) == Some(true) {
            store(r.lanes(inst.d), &out, mask);
        } else {
            store(r.lanes(inst.d), &out.map(|v| v as u32), mask);
        }
    }
}

/// The source lane of a lane of `shfl`, and whether it is in the segment. Outside the segment, the source is the lane itself.
pub(crate) fn shfl_source(mode: u32, b: u32, c: u32, l: u32) -> (u32, bool) {
    let (bound, segment, by) = (c & 31, c >> 8 & 31, b & 31);
    let max = l & segment | bound & !segment;
    let (from, ok) = match mode {
        m if m == ShflMode::Up as u32 => (l.wrapping_sub(by), l as i32 - by as i32 >= max as i32),
        m if m == ShflMode::Down as u32 => (l + by, l + by <= max),
        m if m == ShflMode::Bfly as u32 => (l ^ by, (l ^ by) <= max),
        _ => (l & segment | by & !segment, (l & segment | by & !segment) <= max),
    };
    if ok { (from & 31, true) } else { (l, false) }
}

/// # Safety
/// The operands are those of the warp.
#[inline(always)]
pub(crate) unsafe fn shfl(r: Rows, preds: *mut u32, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        let value = *r.lanes::<[u32; 32]>(inst.a);
        let (b, c) = (*r.lanes::<[u32; 32]>(inst.b), *r.lanes::<[u32; 32]>(inst.c));
        let (mut out, mut inside) = ([0; 32], 0);
        for l in 0..32_u32 {
            let (from, ok) = shfl_source(inst.x, b[l as usize], c[l as usize], l);
            out[l as usize] = value[from as usize & 31];
            inside |= u32::from(ok) << l;
        }
        store(r.lanes(inst.d), &out, mask);
        if inst.e != NONE {
            blend(preds, inst.e, inside, mask);
        }
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn matching(r: Rows, preds: *mut u32, inst: &Inst, mask: u32) {
    let class = if inst.x & 2 != 0 { Class::W64 } else { Class::W32 };
    // SAFETY: the caller says so.
    unsafe {
        let value = read(r, preds, class, inst.a);
        let equal =
            |l: usize| (0..32).filter(|m| mask >> m & 1 != 0 && value[*m] == value[l]).fold(0_u32, |a, m| a | 1 << m);
        let mut out = [0; 32];
        let mut same = false;
        for (l, o) in out.iter_mut().enumerate() {
            if mask >> l & 1 != 0 {
                *o = equal(l);
                same = *o == mask;
            }
        }
        if inst.x & 1 != 0 {
            out = [if same { mask } else { 0 }; 32];
            if inst.e != NONE {
                blend(preds, inst.e, if same { u32::MAX } else { 0 }, mask);
            }
        }
        store(r.lanes(inst.d), &out, mask);
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn redux(r: Rows, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        let value = *r.lanes::<[u32; 32]>(inst.a);
        let lanes = (0..32).filter(|l| mask >> l & 1 != 0).map(|l| value[l]);
        let f: fn(u32, u32) -> u32 = match inst.x {
            0 => u32::wrapping_add,
            1 => u32::min,
            2 => u32::max,
            3 => |a, b| (a as i32).min(b as i32) as u32,
            4 => |a, b| (a as i32).max(b as i32) as u32,
            5 => |a, b| a & b,
            6 => |a, b| a | b,
            _ => |a, b| a ^ b,
        };
        let result = lanes.reduce(f).unwrap_or(0);
        store(r.lanes(inst.d), &[result; 32], mask);
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn elect(r: Rows, preds: *mut u32, inst: &Inst, mask: u32) {
    let leader = mask.trailing_zeros();
    // SAFETY: the caller says so.
    unsafe {
        store(r.lanes(inst.d), &[leader; 32], mask);
        blend(preds, inst.e, 1 << leader, mask);
    }
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn vote(r: Rows, preds: *mut u32, inst: &Inst, mask: u32) {
    // SAFETY: the caller says so.
    unsafe {
        let ballot = *preds.add(inst.a as usize) & mask;
        let yes = match inst.x {
            x if x == VoteMode::Ballot as u32 => {
                store(r.lanes(inst.d), &[ballot; 32], mask);
                return;
            }
            x if x == VoteMode::All as u32 => ballot == mask,
            x if x == VoteMode::Any as u32 => ballot != 0,
            _ => ballot == 0 || ballot == mask,
        };
        blend(preds, inst.d, if yes { u32::MAX } else { 0 }, mask);
    }
}
