//! Uninitialised values: undefined bits travel through registers and memory, and are reported where they decide something.

use super::origin;
use super::origin::{Decides, From};
use super::shadow::{pair, widen};
use crate::code::{Class, Inst, NONE, Op, ShflMode, VoteMode};
use crate::machine::Grid;
use crate::machine::asynchronous::hopper;
use crate::machine::threads::lanes::shfl_source;
use crate::machine::threads::warp::{Block, Warp};
use crate::proof::classes;

pub(crate) const ALL: u64 = u64::MAX;

/// Values of an operand.
pub(crate) fn value(w: &Warp, class: Class, at: u32) -> [u64; 32] {
    let i = at as usize;
    match class {
        _ if at == NONE => [0; 32],
        Class::Pred => core::array::from_fn(|l| u64::from(w.preds[i] >> l & 1)),
        Class::W32 => widen(&w.rows[i]),
        Class::W64 => pair(&w.rows[i..]),
    }
}

/// Reports lanes that use an uninitialised register.
pub(crate) fn finding(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, lanes: u32, what: &str, of: (Class, u32)) {
    let from = w.shadow.from(of.0, of.1)[lanes.trailing_zeros() as usize & 31];
    origin::finding(g, b, w, pc, lanes, &Decides { what, from, written: None });
}

/// Reports an uninitialised guard.
pub(crate) fn guard(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, all: u32) {
    let undefined = w.shadow.pred(inst.guard >> 1) & all;
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
            | Op::Discard
            | Op::Mbarrier
            | Op::Bulk
            | Op::StAsync
            | Op::Map
            | Op::Wgmma
    );
    if undefined != 0 && decides {
        let of = (Class::Pred, inst.guard >> 1);
        finding(g, b, w, pc, undefined, "an uninitialised predicate decides whether it is executed", of);
        w.shadow.set_pred(inst.guard >> 1, w.shadow.pred(inst.guard >> 1) & !undefined);
    }
}

fn addresses(g: &Grid<'_>, b: &mut Block, w: &mut Warp, at: u32, wide: bool, pc: u32, mask: u32) {
    let class = if wide { Class::W64 } else { Class::W32 };
    if !w.shadow.is_dirty(class, at) {
        return;
    }
    let shadow = w.shadow.get(class, at);
    let lanes = (0..32).filter(|l| mask >> l & 1 != 0 && shadow[*l] != 0).fold(0, |m, l| m | 1 << l);
    if lanes != 0 {
        finding(g, b, w, pc, lanes, "the address is uninitialised", (class, at));
        w.shadow.clean(class, at, lanes, w.live);
    }
}

/// Propagates undefined bits from operands to results.
pub(crate) fn propagate(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, pc: u32, mask: u32) {
    let code = g.code;
    match inst.op {
        Op::Nop
        | Op::Bra
        | Op::Exit
        | Op::Trap
        | Op::CpCommit
        | Op::CpWait
        | Op::Fence
        | Op::WarpSync
        | Op::Sleep
        | Op::Converge
        | Op::GridWait => {
            return;
        }
        Op::Ld | Op::St | Op::Discard => {
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
                w.shadow.clean(class, code.list[(inst.list + e) as usize], mask, w.live);
            }
            return;
        }
        Op::Mma => return mma(g, w, inst, mask),
        Op::Mbarrier | Op::Bulk | Op::StAsync | Op::Map | Op::Wgmma => {
            return hopper::undefined(g, b, w, inst, pc, mask);
        }
        _ => {}
    }
    let [cd, ce, ca, cb, cc] = classes(code, inst);
    let guard = if inst.guard == NONE { 0 } else { w.shadow.pred(inst.guard >> 1) & mask };
    let dirty =
        guard != 0 || w.shadow.is_dirty(ca, inst.a) || w.shadow.is_dirty(cb, inst.b) || w.shadow.is_dirty(cc, inst.c);
    if !dirty {
        for (class, at) in [(cd, inst.d), (ce, inst.e)] {
            w.shadow.clean(class, at, mask, w.live);
        }
        return;
    }
    let (sa, sb, sc) = (w.shadow.get(ca, inst.a), w.shadow.get(cb, inst.b), w.shadow.get(cc, inst.c));
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
        // Each lane has a bit of its own.
        Op::Vote if inst.x == VoteMode::Ballot as u32 && sb == [0; 32] => {
            let bits = (0..32).filter(|l| mask >> l & 1 != 0 && sa[*l] != 0).fold(0, |m, l| m | 1 << l);
            core::array::from_fn(|l| bits & vb[l])
        }
        Op::Vote | Op::Match | Op::Redux if sb == [0; 32] => {
            let one = |l: usize| (0..32).any(|m| (vb[l] as u32 & mask) >> m & 1 != 0 && sa[m] != 0);
            core::array::from_fn(|l| if one(l) { ALL } else { 0 })
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
    let from = sources(w, inst, [(ca, inst.a, &sa), (cb, inst.b, &sb), (cc, inst.c, &sc)], guard, &out);
    w.shadow.set_from(cd, inst.d, &out, &from, mask, w.live);
    w.shadow.set_from(ce, inst.e, &second.unwrap_or(out), &from, mask, w.live);
}

/// The origins of the lanes' results: an operand of the lane, otherwise of another lane.
fn sources(w: &Warp, inst: &Inst, operands: [(Class, u32, &[u64; 32]); 3], guard: u32, out: &[u64; 32]) -> From {
    let mut from = origin::of_operands(&w.shadow, operands);
    let (_, _, others) = operands[1];
    if inst.op == Op::Shfl && *others == [0; 32] {
        let values = value(w, operands[1].0, operands[1].1);
        let modes = value(w, operands[2].0, operands[2].1);
        let of = w.shadow.from(operands[0].0, operands[0].1);
        from =
            core::array::from_fn(|l| of[shfl_source(inst.x, values[l] as u32, modes[l] as u32, l as u32).0 as usize]);
    }
    let guards = if guard == 0 { [0; 32] } else { w.shadow.from(Class::Pred, inst.guard >> 1) };
    let any = from.iter().copied().find(|from| *from != 0).unwrap_or(0);
    let crosses = matches!(inst.op, Op::Vote | Op::Match | Op::Redux | Op::BarRed | Op::Elect);
    core::array::from_fn(|l| match (out[l], from[l]) {
        (0, _) => 0,
        (_, 0) if guard >> l & 1 != 0 => guards[l],
        (_, 0) if crosses => any,
        (_, from) => from,
    })
}

/// An element of D depends on its row of A, its column of B and its element of C.
fn mma(g: &Grid<'_>, w: &mut Warp, inst: &Inst, mask: u32) {
    let list = g.code.listed(inst);
    if !w.shadow.any_of(list) {
        return;
    }
    let info = &g.code.mmas[inst.x as usize];
    let counts = crate::machine::products::mma::registers(info);
    let class = |ty: crate::types::Ty| if ty.bits() == 64 { Class::W64 } else { Class::W32 };
    let of = [class(info.d), class(info.a), class(info.b), class(info.c)];
    let mut lists: [Vec<u32>; 4] = Default::default();
    let mut at = inst.list as usize;
    for (n, count) in counts.iter().enumerate() {
        lists[n] = g.code.list[at..at + *count as usize].to_vec();
        at += *count as usize;
    }
    if !(1..4).any(|n| w.shadow.any_of(&lists[n])) {
        for d in &lists[0] {
            w.shadow.clean(of[0], *d, mask, w.live);
        }
        return;
    }
    // For each lane, the origin of its first undefined operand.
    let bad = |w: &Warp, n: usize, keep: &dyn Fn(usize) -> bool| -> [Option<u32>; 32] {
        let mut bad = [None; 32];
        for (_, r) in lists[n].iter().enumerate().filter(|(i, _)| keep(*i)) {
            let undefined = w.shadow.get(of[n], *r);
            if undefined != [0; 32] {
                let from = w.shadow.from(of[n], *r);
                (0..32).filter(|l| undefined[*l] != 0).for_each(|l| bad[l] = bad[l].or(Some(from[l])));
            }
        }
        bad
    };
    let two_rows = info.m == 16;
    let a = [bad(w, 1, &|i| !two_rows || i % 2 == 0), bad(w, 1, &|i| two_rows && i % 2 == 1)];
    let b = bad(w, 2, &|_| true);
    let quad = |bad: &[Option<u32>; 32], group: usize| (0..4).find_map(|t| bad[group * 4 + t]);
    let results: Vec<[Option<u32>; 32]> = (0..lists[0].len())
        .map(|i| {
            let half = usize::from(two_rows && i * 2 >= lists[0].len());
            let c = lists[3].get(i).map_or([None; 32], |r| {
                let (undefined, from) = (w.shadow.get(of[3], *r), w.shadow.from(of[3], *r));
                core::array::from_fn(|l| (undefined[l] != 0).then_some(from[l]))
            });
            core::array::from_fn(|l| {
                let column = l % 4 * 2;
                c[l].or(quad(&a[half], l / 4)).or(quad(&b, column)).or(quad(&b, column + 1))
            })
        })
        .collect();
    for (d, result) in lists[0].iter().zip(&results) {
        let undefined = result.map(|bad| if bad.is_some() { ALL } else { 0 });
        w.shadow.set_from(of[0], *d, &undefined, &result.map(|from| from.unwrap_or(0)), mask, w.live);
    }
}
