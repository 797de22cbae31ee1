//! What nobody wrote: undefined bits travel through registers and memory, and are reported where they decide something.

use super::access::{Place, locate};
use super::lanes::shfl_source;
use super::warp::{Block, Warp};
use super::{Grid, report};
use crate::exec::ptx::code::{Class, Inst, NONE, Op, ShflMode};
use crate::exec::ptx::finding::FindingKind;

const ALL: u64 = u64::MAX;

/// Undefined bits of an operand.
fn get(w: &Warp, class: Class, at: u32) -> [u64; 32] {
    let i = at as usize;
    match class {
        _ if at == NONE => [0; 32],
        Class::Pred => core::array::from_fn(|l| u64::from(w.shadow_preds[i] >> l & 1)),
        Class::W32 => w.shadow[i].0.map(u64::from),
        Class::W64 => core::array::from_fn(|l| {
            let row = &w.shadow[i + l / 16].0;
            u64::from(row[l % 16 * 2]) | u64::from(row[l % 16 * 2 + 1]) << 32
        }),
    }
}

fn is_dirty(w: &Warp, class: Class, at: u32) -> bool {
    let i = at as usize;
    match class {
        _ if at == NONE => false,
        Class::Pred => w.shadow_preds[i] != 0,
        Class::W32 => w.dirty[i],
        Class::W64 => w.dirty[i] || w.dirty[i + 1],
    }
}

fn set(w: &mut Warp, class: Class, at: u32, value: &[u64; 32], mask: u32) {
    let i = at as usize;
    if at == NONE {
        return;
    }
    let lanes = (0..32).filter(|l| mask >> l & 1 != 0);
    match class {
        Class::Pred => {
            let bits = lanes.fold(0, |m, l| m | u32::from(value[l] & 1 != 0) << l);
            w.shadow_preds[i] = w.shadow_preds[i] & !mask | bits;
        }
        Class::W32 => {
            for l in lanes {
                w.shadow[i].0[l] = value[l] as u32;
            }
            w.dirty[i] = w.shadow[i].0.iter().any(|v| *v != 0);
        }
        Class::W64 => {
            for l in lanes {
                let row = &mut w.shadow[i + l / 16].0;
                row[l % 16 * 2] = value[l] as u32;
                row[l % 16 * 2 + 1] = (value[l] >> 32) as u32;
            }
            for row in i..i + 2 {
                w.dirty[row] = w.shadow[row].0.iter().any(|v| *v != 0);
            }
        }
    }
}

/// Values of an operand.
fn value(w: &Warp, class: Class, at: u32) -> [u64; 32] {
    let i = at as usize;
    match class {
        _ if at == NONE => [0; 32],
        Class::Pred => core::array::from_fn(|l| u64::from(w.preds[i] >> l & 1)),
        Class::W32 => w.rows[i].0.map(u64::from),
        Class::W64 => core::array::from_fn(|l| {
            let row = &w.rows[i + l / 16].0;
            u64::from(row[l % 16 * 2]) | u64::from(row[l % 16 * 2 + 1]) << 32
        }),
    }
}

/// Classes of d, e, a, b, c.
fn classes(g: &Grid<'_>, inst: &Inst) -> [Class; 5] {
    use Class::{Pred, W32, W64};
    let code = g.code;
    match inst.op {
        Op::Mov64 | Op::Add64 | Op::Sub64 | Op::Mul64 | Op::And64 | Op::Or64 | Op::Xor64 => [W64, W64, W64, W64, W64],
        Op::Shl64 | Op::ShrU64 | Op::ShrS64 => [W64, W32, W64, W32, W32],
        Op::Selp64 => [W64, W32, W64, W64, Pred],
        Op::Selp32 => [W32, W32, W32, W32, Pred],
        Op::MulWideU32 | Op::MulWideS32 | Op::Widen | Op::WidenS | Op::Pack64 => [W64, W32, W32, W32, W32],
        Op::MadWideU32 | Op::MadWideS32 => [W64, W32, W32, W32, W64],
        Op::Narrow | Op::Unpack64 => [W32, W32, W64, W32, W32],
        Op::SetpS32 | Op::SetpU32 | Op::SetpF32 => [Pred, Pred, W32, W32, Pred],
        Op::SetpS64 | Op::SetpU64 => [Pred, Pred, W64, W64, Pred],
        Op::SetpLane => {
            let c = if code.setps[inst.x as usize].wide { W64 } else { W32 };
            [Pred, Pred, c, c, Pred]
        }
        Op::PMov | Op::PAnd | Op::POr | Op::PXor | Op::PNot | Op::PImm => [Pred; 5],
        Op::Lane => {
            let i = &code.lanes[inst.x as usize];
            [i.d, W32, i.a, i.b, i.c]
        }
        Op::Carry => {
            let c = if inst.x & 2 != 0 { W64 } else { W32 };
            [c, Pred, c, c, Pred]
        }
        Op::Sreg => {
            let wide = matches!(
                crate::exec::ptx::lower::operands::SPECIAL[inst.x as usize],
                "%clock64" | "%globaltimer" | "%gridid"
            );
            [if wide { W64 } else { W32 }, W32, W32, W32, W32]
        }
        Op::IsSpace => [Pred, W32, W64, W32, W32],
        Op::Shfl => [W32, Pred, W32, W32, W32],
        Op::Vote => [if inst.x == 3 { W32 } else { Pred }, W32, Pred, W32, W32],
        Op::Match => [W32, Pred, if inst.x & 2 != 0 { W64 } else { W32 }, W32, W32],
        Op::Elect => [W32, Pred, W32, W32, W32],
        Op::BarRed => {
            let red = code.bars[inst.x as usize].red;
            let d = if red == crate::exec::ptx::code::RedMode::Popc { W32 } else { Pred };
            [d, W32, W32, W32, Pred]
        }
        _ => [W32; 5],
    }
}

fn finding(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, lanes: u32, what: &str) {
    report::simple(g, b, w, FindingKind::Uninitialized, pc, lanes, what.to_owned());
}

/// A guard that nobody wrote decides whether something happens.
pub(super) fn guard(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, all: u32) {
    let undefined = w.shadow_preds[(inst.guard >> 1) as usize] & all;
    let decides = matches!(
        inst.op,
        Op::Bra
            | Op::Brx
            | Op::Exit
            | Op::Trap
            | Op::St
            | Op::Atom
            | Op::CpAsync
            | Op::Bar
            | Op::BarArrive
            | Op::BarRed
            | Op::AssertFail
            | Op::Vprintf
            | Op::StMatrix
    );
    if undefined != 0 && decides {
        finding(g, b, w, pc, undefined, "a predicate that nobody wrote decides whether it is executed");
        w.shadow_preds[(inst.guard >> 1) as usize] &= !undefined;
    }
}

fn addresses(g: &Grid<'_>, b: &mut Block, w: &mut Warp, at: u32, wide: bool, pc: u32, mask: u32) {
    let class = if wide { Class::W64 } else { Class::W32 };
    if !is_dirty(w, class, at) {
        return;
    }
    let shadow = get(w, class, at);
    let lanes = (0..32).filter(|l| mask >> l & 1 != 0 && shadow[*l] != 0).fold(0, |m, l| m | 1 << l);
    if lanes != 0 {
        finding(g, b, w, pc, lanes, "an address that nobody wrote");
        set(w, class, at, &[0; 32], lanes);
    }
}

/// Undefined bits of the operands become those of the results.
pub(super) fn propagate(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let code = g.code;
    match inst.op {
        Op::Nop | Op::Bra | Op::Exit | Op::Trap | Op::CpCommit | Op::CpWait | Op::Fence | Op::WarpSync | Op::Sleep => {
            return;
        }
        Op::Ld | Op::St => {
            let mem = &code.mems[inst.x as usize];
            return addresses(g, b, w, inst.a, mem.address64, pc, mask);
        }
        Op::Atom => return addresses(g, b, w, inst.a, code.atoms[inst.x as usize].mem.address64, pc, mask),
        Op::CpAsync => {
            addresses(g, b, w, inst.a, code.copies[inst.x as usize].to64, pc, mask);
            return addresses(g, b, w, inst.b, true, pc, mask);
        }
        Op::LdMatrix | Op::StMatrix => {
            return addresses(g, b, w, inst.a, code.matrices[inst.x as usize].mem.address64, pc, mask);
        }
        Op::Brx => return addresses(g, b, w, inst.a, false, pc, mask),
        Op::LdParam => {
            let mem = &code.mems[inst.x as usize];
            let class = if mem.wide { Class::W64 } else { Class::W32 };
            for e in 0..u32::from(inst.len) {
                set(w, class, code.list[(inst.list + e) as usize], &[0; 32], mask);
            }
            return;
        }
        Op::Mma => return mma(g, w, inst, mask),
        _ => {}
    }
    let [cd, ce, ca, cb, cc] = classes(g, inst);
    let guard = if inst.guard == NONE { 0 } else { w.shadow_preds[(inst.guard >> 1) as usize] & mask };
    let dirty = guard != 0 || is_dirty(w, ca, inst.a) || is_dirty(w, cb, inst.b) || is_dirty(w, cc, inst.c);
    if !dirty {
        for (class, at) in [(cd, inst.d), (ce, inst.e)] {
            if is_dirty(w, class, at) {
                set(w, class, at, &[0; 32], mask);
            }
        }
        return;
    }
    let (sa, sb, sc) = (get(w, ca, inst.a), get(w, cb, inst.b), get(w, cc, inst.c));
    let (va, vb, vc) = (value(w, ca, inst.a), value(w, cb, inst.b), value(w, cc, inst.c));
    let any = |l: usize| if sa[l] | sb[l] | sc[l] != 0 { ALL } else { 0 };
    let mut second = None;
    let mut out: [u64; 32] = match inst.op {
        Op::Mov32 | Op::Mov64 | Op::Widen | Op::Not32 | Op::PMov | Op::PNot | Op::Narrow => sa,
        Op::WidenS => sa.map(|s| s as u32 as i32 as u64),
        Op::And32 | Op::And64 | Op::PAnd => {
            core::array::from_fn(|l| (sa[l] | sb[l]) & (sa[l] | va[l]) & (sb[l] | vb[l]))
        }
        Op::Or32 | Op::Or64 | Op::POr => {
            core::array::from_fn(|l| (sa[l] | sb[l]) & (sa[l] | !va[l]) & (sb[l] | !vb[l]))
        }
        Op::Xor32 | Op::Xor64 | Op::PXor => core::array::from_fn(|l| sa[l] | sb[l]),
        Op::Shl32 | Op::Shl64 if sb == [0; 32] => core::array::from_fn(|l| if vb[l] < 64 { sa[l] << vb[l] } else { 0 }),
        Op::ShrU32 | Op::ShrU64 if sb == [0; 32] => {
            core::array::from_fn(|l| if vb[l] < 64 { sa[l] >> vb[l] } else { 0 })
        }
        Op::Pack64 => core::array::from_fn(|l| sa[l] | sb[l] << 32),
        Op::Unpack64 => {
            second = Some(sa.map(|s| s >> 32));
            sa
        }
        Op::Selp32 | Op::Selp64 => core::array::from_fn(|l| match (sc[l], vc[l] & 1) {
            (0, 1) => sa[l],
            (0, _) => sb[l],
            _ if va[l] == vb[l] => sa[l] | sb[l],
            _ => ALL,
        }),
        Op::Shfl => {
            let from = |l: usize| shfl_source(inst.x, vb[l] as u32, vc[l] as u32, l as u32).0 as usize;
            second = Some(core::array::from_fn(|l| sb[l] | sc[l]));
            debug_assert!(ShflMode::Up as u32 == 0);
            core::array::from_fn(|l| if sb[l] | sc[l] != 0 { ALL } else { sa[from(l)] })
        }
        Op::Vote | Op::Match | Op::Redux | Op::BarRed | Op::Elect => {
            let one = (0..32).any(|l| mask >> l & 1 != 0 && any(l) != 0);
            [if one { ALL } else { 0 }; 32]
        }
        Op::Lane => {
            let info = &code.lanes[inst.x as usize];
            let moves = match info.moves {
                0 => false,
                1 => sb == [0; 32] && sc == [0; 32],
                _ => sc == [0; 32],
            };
            core::array::from_fn(|l| match any(l) {
                0 => 0,
                _ if moves => (info.f)(sa[l], if info.moves > 1 { sb[l] } else { vb[l] }, vc[l], info.ctl),
                all => all,
            })
        }
        _ => core::array::from_fn(any),
    };
    for l in (0..32).filter(|l| guard >> l & 1 != 0) {
        out[l] = ALL;
    }
    set(w, cd, inst.d, &out, mask);
    set(w, ce, inst.e, &second.unwrap_or(out), mask);
}

/// An element of D depends on its row of A, its column of B and its element of C.
fn mma(g: &Grid<'_>, w: &mut Warp, inst: &Inst, mask: u32) {
    let info = &g.code.mmas[inst.x as usize];
    let counts = super::mma::registers(info);
    let class = |ty: crate::exec::ptx::types::Ty| if ty.bits() == 64 { Class::W64 } else { Class::W32 };
    let of = [class(info.d), class(info.a), class(info.b), class(info.c)];
    let mut lists: [Vec<u32>; 4] = Default::default();
    let mut at = inst.list as usize;
    for (n, count) in counts.iter().enumerate() {
        lists[n] = g.code.list[at..at + *count as usize].to_vec();
        at += *count as usize;
    }
    let dirty = (1..4).any(|n| lists[n].iter().any(|r| is_dirty(w, of[n], *r)));
    if !dirty {
        for d in &lists[0] {
            if is_dirty(w, of[0], *d) {
                set(w, of[0], *d, &[0; 32], mask);
            }
        }
        return;
    }
    let bad = |w: &Warp, n: usize, keep: &dyn Fn(usize) -> bool| -> [bool; 32] {
        let mut bad = [false; 32];
        for (i, r) in lists[n].iter().enumerate().filter(|(i, _)| keep(*i)) {
            let _ = i;
            for (l, s) in get(w, of[n], *r).iter().enumerate() {
                bad[l] |= *s != 0;
            }
        }
        bad
    };
    let two_rows = info.m == 16;
    let a = [bad(w, 1, &|i| !two_rows || i % 2 == 0), bad(w, 1, &|i| two_rows && i % 2 == 1)];
    let b = bad(w, 2, &|_| true);
    let quad = |bad: &[bool; 32], group: usize| (0..4).any(|t| bad[group * 4 + t]);
    let results: Vec<[u64; 32]> = (0..lists[0].len())
        .map(|i| {
            let half = usize::from(two_rows && i * 2 >= lists[0].len());
            let c = lists[3].get(i).map_or([0; 32], |r| get(w, of[3], *r));
            core::array::from_fn(|l| {
                let column = l % 4 * 2;
                let is_bad = c[l] != 0 || quad(&a[half], l / 4) || quad(&b, column) || quad(&b, column + 1);
                if is_bad { ALL } else { 0 }
            })
        })
        .collect();
    for (d, result) in lists[0].iter().zip(&results) {
        set(w, of[0], *d, result, mask);
    }
}

/// Undefined bits of memory.
fn undefined(g: &Grid<'_>, b: &Block, w: &Warp, place: Place, bytes: u32) -> u64 {
    let of = |written: &[bool], at: u64| {
        (0..u64::from(bytes))
            .filter(|i| !written.get((at + i) as usize).copied().unwrap_or(true))
            .fold(0, |m, i| m | 0xff << (8 * i))
    };
    match place {
        Place::Global(at) => g.memory.undefined(at, bytes),
        Place::Shared(at) => of(&b.shared_written, at),
        Place::Local(at) => of(&w.local_written, at),
    }
}

fn define(g: &Grid<'_>, b: &mut Block, w: &mut Warp, place: Place, bytes: u32, undefined: u64) {
    let written = match place {
        Place::Global(at) => return g.memory.define(at, bytes, undefined),
        Place::Shared(at) => b.shared_written.get_mut(at as usize..at as usize + bytes as usize),
        Place::Local(at) => w.local_written.get_mut(at as usize..at as usize + bytes as usize),
    };
    for (i, cell) in written.into_iter().flatten().enumerate() {
        *cell = undefined >> (8 * i) & 0xff == 0;
    }
}

/// A load was executed.
pub(super) fn loaded(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32, at: &[u64; 32]) {
    let mem = &g.code.mems[inst.x as usize];
    let class = if mem.wide { Class::W64 } else { Class::W32 };
    let guard = if inst.guard == NONE { 0 } else { w.shadow_preds[(inst.guard >> 1) as usize] & mask };
    let _ = pc;
    for e in 0..u32::from(inst.len) {
        let d = g.code.list[(inst.list + e) as usize];
        if d == NONE {
            continue;
        }
        let mut out = [0; 32];
        let mut any = guard != 0;
        for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
            let total = u64::from(mem.bytes * mem.elements);
            if let Ok(place) = locate(g, w, mem.space, at[l as usize], l, total, false) {
                let mut bits = undefined(g, b, w, place.plus(u64::from(e * mem.bytes)), mem.bytes);
                if mem.signed && bits != 0 && bits >> (8 * mem.bytes - 1) & 1 != 0 {
                    bits |= ALL << (8 * mem.bytes - 1);
                }
                out[l as usize] = if guard >> l & 1 != 0 { ALL } else { bits };
                any |= bits != 0;
            }
        }
        if any || is_dirty(w, class, d) {
            set(w, class, d, &out, mask);
        }
    }
}

/// A store was executed.
pub(super) fn stored(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32, at: &[u64; 32]) {
    let mem = &g.code.mems[inst.x as usize];
    let class = if mem.wide { Class::W64 } else { Class::W32 };
    let mut bad = 0;
    for e in 0..u32::from(inst.len) {
        let s = g.code.list[(inst.list + e) as usize];
        let shadow = if is_dirty(w, class, s) { get(w, class, s) } else { [0; 32] };
        for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
            let total = u64::from(mem.bytes * mem.elements);
            if let Ok(place) = locate(g, w, mem.space, at[l as usize], l, total, true) {
                let keep = if mem.bytes == 8 { ALL } else { (1 << (8 * mem.bytes)) - 1 };
                let bits = shadow[l as usize] & keep;
                if bits != 0 && matches!(place, Place::Global(_)) {
                    bad |= 1 << l;
                }
                define(g, b, w, place.plus(u64::from(e * mem.bytes)), mem.bytes, bits);
            }
        }
    }
    if bad != 0 {
        finding(g, b, w, pc, bad, "a value that depends on what nobody wrote is stored to global memory");
    }
}

/// A lane of an atomic is about to be executed.
#[allow(clippy::too_many_arguments, reason = "the state of the loop")]
pub(super) fn atomic(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    inst: &Inst,
    pc: u32,
    lane: u32,
    place: Place,
    address: u64,
) {
    let info = &g.code.atoms[inst.x as usize];
    let mem = &info.mem;
    let class = if mem.wide { Class::W64 } else { Class::W32 };
    let _ = address;
    let list = &g.code.list[inst.list as usize..(inst.list + u32::from(inst.len)) as usize];
    let (defs, uses) = list.split_at(usize::from(inst.defs));
    let mut bad = uses.iter().any(|r| is_dirty(w, class, *r) && get(w, class, *r)[lane as usize] != 0);
    let replaces = info.op == crate::exec::ptx::code::AtomOp::Exch;
    for e in 0..mem.elements {
        let place = place.plus(u64::from(e * mem.bytes));
        let old = undefined(g, b, w, place, mem.bytes);
        bad |= old != 0 && !replaces;
        define(g, b, w, place, mem.bytes, 0);
        if let Some(d) = defs.get(e as usize) {
            let mut out = [0; 32];
            out[lane as usize] = old;
            set(w, class, *d, &out, 1 << lane);
        }
    }
    if bad {
        finding(g, b, w, pc, 1 << lane, "an atomic of what nobody wrote");
    }
}

/// A copy arrived: which of its bytes are undefined.
pub(super) fn copied(b: &mut Block, at: u64, bytes: u32, undefined: u32) {
    for i in 0..bytes {
        if let Some(cell) = b.shared_written.get_mut(at as usize + i as usize) {
            *cell = undefined >> i & 1 == 0;
        }
    }
}

/// `ldmatrix` was executed.
pub(super) fn matrix_loaded(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    inst: &Inst,
    pc: u32,
    mask: u32,
    rows: &[Option<u64>],
) {
    let info = g.code.matrices[inst.x as usize];
    let _ = pc;
    for m in 0..info.count {
        let d = g.code.list[(inst.list + m) as usize];
        let element = |row: usize, column: u64| {
            rows[m as usize * 8 + row].map_or(0, |at| undefined(g, b, w, Place::Shared(at + 2 * column), 2))
        };
        let out: [u64; 32] = core::array::from_fn(|l| {
            let (i, j) = (l / 4, 2 * (l as u64 % 4));
            if info.transposed {
                element(j as usize, i as u64) | element(j as usize + 1, i as u64) << 16
            } else {
                element(i, j) | element(i, j + 1) << 16
            }
        });
        set(w, Class::W32, d, &out, mask);
    }
}

/// `stmatrix` was executed.
pub(super) fn matrix_stored(b: &mut Block, w: &Warp, g: &Grid<'_>, inst: &Inst, rows: &[Option<u64>]) {
    let info = g.code.matrices[inst.x as usize];
    for m in 0..info.count {
        let shadow = get(w, Class::W32, g.code.list[(inst.list + m) as usize]);
        for (l, bits) in shadow.iter().enumerate() {
            for half in 0..2 {
                let (i, j) = (l / 4, 2 * (l % 4) + half);
                let (row, column) = if info.transposed { (j, i) } else { (i, j) };
                if let Some(at) = rows[m as usize * 8 + row] {
                    let bits = bits >> (16 * half);
                    copied(
                        b,
                        at + 2 * column as u64,
                        2,
                        u32::from(bits & 0xff != 0) | u32::from(bits & 0xff00 != 0) << 1,
                    );
                }
            }
        }
    }
}
