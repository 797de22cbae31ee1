//! The instruction loop: runs one group of lanes until it must wait, or another group has its turn.

use super::run::Event;
use super::warp::{Block, Group, Wait, Warp};
use super::{barrier, lanes, meeting, parting};
use crate::Rule;
use crate::code::{FenceInfo, Inst, NONE, Op};
use crate::machine::accesses::{access, atomics, bulk};
use crate::machine::asynchronous::copies;
use crate::machine::asynchronous::hopper::{self, Issue, Next};
use crate::machine::products::{matrix, mma, wgmma};
use crate::machine::races::{order, release};
use crate::machine::reports::{profile, report};
use crate::machine::undefined::check;
use crate::machine::vectors::predicates::{blend, set_predicates};
use crate::machine::vectors::vector::{Rows, map1, map2, map3, select, store, test};
use crate::machine::{BEFORE, Grid};

/// The NaN of f32 arithmetic on the GPU.
#[inline(always)]
fn nan(v: f32) -> f32 {
    if v.is_nan() { f32::from_bits(0x7fff_ffff) } else { v }
}

/// The loop itself.
///
/// # Safety
/// `g.code` was proved: what [`Code`](crate::code::Code) lists holds. The warp has as many rows and predicates as it says,
/// and the group stands at one of its instructions. With `V3` the processor has AVX2.
#[inline(always)]
#[allow(clippy::undocumented_unsafe_blocks, reason = "one reason for all arms, which stands above the match")]
pub(crate) unsafe fn body<const CHECKED: bool, const V3: bool>(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    fuel: &mut u64,
    limit: u32,
    group: &mut Group,
) -> Event {
    let code = g.code;
    let insts = code.insts.as_ptr();
    let r: Rows = w.rows();
    let preds = w.preds.as_mut_ptr();
    let start = *fuel;
    let mut left = start;
    let mut lane_steps = 0_u64;
    let mut pc = group.pc;
    let all = group.mask;
    macro_rules! leave {
        ($event:expr) => {{
            group.pc = pc;
            *fuel = left;
            w.steps += start - left;
            w.lane_steps += lane_steps;
            return $event;
        }};
    }
    loop {
        if pc >= limit {
            leave!(Event::Switch);
        }
        if left == 0 {
            leave!(Event::Turn);
        }
        left -= 1;
        debug_assert!((pc as usize) < code.insts.len());
        // SAFETY: in a `Code` the last instruction is an exit without a guard, and targets are instructions (1).
        let inst: &Inst = unsafe { &*insts.add(pc as usize) };
        let mut mask = all;
        // SAFETY: `sides` made one for each instruction of this code, where it made any.
        let soiled = CHECKED && !g.sides.is_empty() && unsafe { w.shadow.any(g.sides.get_unchecked(pc as usize)) };
        if soiled && inst.guard != NONE {
            check::guard(g, b, w, inst, pc, all);
        }
        if inst.guard != NONE {
            // SAFETY: the guards of a `Code` are predicates of the warp (2, 3).
            let p = unsafe { *preds.add((inst.guard >> 1) as usize) };
            mask &= p ^ 0_u32.wrapping_sub(inst.guard & 1);
        }
        if CHECKED && let Some(count) = b.profile.get_mut(pc as usize) {
            count.executions += 1;
            count.lanes += u64::from(mask.count_ones());
            if mask != 0 {
                unsafe { profile::memory(g, r, inst, mask, count) };
            }
        }
        if mask == 0 {
            pc += 1;
            continue;
        }
        lane_steps += u64::from(mask.count_ones());
        if CHECKED && code.asyncs.touches.get(pc as usize).is_some_and(|t| *t != 0) {
            wgmma::touched(g, b, w, inst, pc, mask);
        }
        if soiled && !inst.op.meets() {
            check::propagate(g, b, w, inst, pc, mask);
        }
        macro_rules! p1 {
            ($a:ty => $d:ty, $f:expr) => {
                unsafe { map1::<$a, $d>(r.lanes(inst.d), r.lanes(inst.a), mask, $f) }
            };
        }
        macro_rules! p2 {
            ($a:ty, $b:ty => $d:ty, $f:expr) => {
                unsafe { map2::<$a, $b, $d>(r.lanes(inst.d), r.lanes(inst.a), r.lanes(inst.b), mask, $f) }
            };
        }
        macro_rules! p3 {
            ($a:ty, $b:ty, $c:ty => $d:ty, $f:expr) => {
                unsafe {
                    map3::<$a, $b, $c, $d>(r.lanes(inst.d), r.lanes(inst.a), r.lanes(inst.b), r.lanes(inst.c), mask, $f)
                }
            };
        }
        macro_rules! compare {
            ($t:ty) => {{
                // SAFETY: the operands are rows of this type.
                let result = unsafe {
                    let (x, y) = (r.lanes::<$t>(inst.a), r.lanes::<$t>(inst.b));
                    let (less, equal) = (test(x, y, |x, y| x < y), test(x, y, |x, y| x == y));
                    let greater = test(x, y, |x, y| x > y);
                    compared(code.setps.get_unchecked(inst.x as usize).cmp, less, equal, greater)
                };
                // SAFETY: as above.
                unsafe { set_predicates(g, preds, inst, result, mask) };
            }};
        }
        // SAFETY, for every access to rows and predicates below: a `Code` has every operand (2), and operands are rows and predicates of
        // the warp, two rows for 64 bits (3). Functions below get operands under the same promise.
        match inst.op {
            Op::Nop => {}
            Op::GridWait => w.clock.learn_rows(&[BEFORE], 1, pc),
            Op::FmaF32 => p3!(f32, f32, f32 => f32, |x, y, z| nan(x.mul_add(y, z))),
            Op::AddF32 => p2!(f32, f32 => f32, |x, y| nan(x + y)),
            Op::SubF32 => p2!(f32, f32 => f32, |x, y| nan(x - y)),
            Op::MulF32 => p2!(f32, f32 => f32, |x, y| nan(x * y)),
            Op::Mov32 => p1!(u32 => u32, |x| x),
            Op::Add32 => p2!(u32, u32 => u32, u32::wrapping_add),
            Op::Sub32 => p2!(u32, u32 => u32, u32::wrapping_sub),
            Op::Mul32 => p2!(u32, u32 => u32, u32::wrapping_mul),
            Op::Mad32 => p3!(u32, u32, u32 => u32, |x, y, z| x.wrapping_mul(y).wrapping_add(z)),
            Op::And32 => p2!(u32, u32 => u32, |x, y| x & y),
            Op::Or32 => p2!(u32, u32 => u32, |x, y| x | y),
            Op::Xor32 => p2!(u32, u32 => u32, |x, y| x ^ y),
            Op::Not32 => p1!(u32 => u32, |x| !x),
            Op::Shl32 => p2!(u32, u32 => u32, |x, n| if n < 32 { x << (n & 31) } else { 0 }),
            Op::ShrU32 => p2!(u32, u32 => u32, |x, n| if n < 32 { x >> (n & 31) } else { 0 }),
            Op::ShrS32 => p2!(i32, u32 => i32, |x, n| x >> n.min(31)),
            Op::MinS32 => p2!(i32, i32 => i32, |x, y| if x < y { x } else { y }),
            Op::MaxS32 => p2!(i32, i32 => i32, |x, y| if x > y { x } else { y }),
            Op::MinU32 => p2!(u32, u32 => u32, |x, y| if x < y { x } else { y }),
            Op::MaxU32 => p2!(u32, u32 => u32, |x, y| if x > y { x } else { y }),
            Op::Selp32 => unsafe {
                select::<u32>(r.lanes(inst.d), r.lanes(inst.a), r.lanes(inst.b), *preds.add(inst.c as usize), mask);
            },
            Op::Lop3 => {
                let t = inst.x;
                let bit = |i: u32| 0_u32.wrapping_sub(t >> i & 1);
                let m = [bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7)];
                p3!(u32, u32, u32 => u32, |x, y, z| {
                    let low = !x & (!y & (!z & m[0] | z & m[1]) | y & (!z & m[2] | z & m[3]));
                    low | x & (!y & (!z & m[4] | z & m[5]) | y & (!z & m[6] | z & m[7]))
                });
            }
            Op::Mov64 => p1!(u64 => u64, |x| x),
            Op::Add64 => p2!(u64, u64 => u64, u64::wrapping_add),
            Op::Sub64 => p2!(u64, u64 => u64, u64::wrapping_sub),
            Op::Mul64 => p2!(u64, u64 => u64, u64::wrapping_mul),
            Op::And64 => p2!(u64, u64 => u64, |x, y| x & y),
            Op::Or64 => p2!(u64, u64 => u64, |x, y| x | y),
            Op::Xor64 => p2!(u64, u64 => u64, |x, y| x ^ y),
            Op::Shl64 => p2!(u64, u32 => u64, |x, n| if n < 64 { x << (n & 63) } else { 0 }),
            Op::ShrU64 => p2!(u64, u32 => u64, |x, n| if n < 64 { x >> (n & 63) } else { 0 }),
            Op::ShrS64 => p2!(i64, u32 => i64, |x, n| x >> n.min(63)),
            Op::Selp64 => unsafe {
                select::<u64>(r.lanes(inst.d), r.lanes(inst.a), r.lanes(inst.b), *preds.add(inst.c as usize), mask);
            },
            Op::MulWideU32 => p2!(u32, u32 => u64, |x, y| u64::from(x) * u64::from(y)),
            Op::MulWideS32 => p2!(i32, i32 => i64, |x, y| i64::from(x) * i64::from(y)),
            Op::MadWideU32 => p3!(u32, u32, u64 => u64, |x, y, z| (u64::from(x) * u64::from(y)).wrapping_add(z)),
            Op::MadWideS32 => p3!(i32, i32, i64 => i64, |x, y, z| (i64::from(x) * i64::from(y)).wrapping_add(z)),
            Op::Widen => p1!(u32 => u64, u64::from),
            Op::WidenS => p1!(i32 => i64, i64::from),
            Op::Narrow => p1!(u64 => u32, |x| x as u32),
            Op::Pack64 => p2!(u32, u32 => u64, |x, y| u64::from(x) | u64::from(y) << 32),
            Op::Unpack64 => unsafe {
                let from = *r.lanes::<[u64; 32]>(inst.a);
                map1::<u64, u32>(r.lanes(inst.d), from.as_ptr(), mask, |x| x as u32);
                map1::<u64, u32>(r.lanes(inst.e), from.as_ptr(), mask, |x| (x >> 32) as u32);
            },
            Op::SetpS32 => compare!(i32),
            Op::SetpU32 => compare!(u32),
            Op::SetpS64 => compare!(i64),
            Op::SetpU64 => compare!(u64),
            Op::SetpF32 => compare!(f32),
            Op::SetpLane => unsafe {
                let result = lanes::compare(&code.setps[inst.x as usize], r, preds, inst, mask);
                set_predicates(g, preds, inst, result, mask);
            },
            Op::PMov => unsafe { blend(preds, inst.d, *preds.add(inst.a as usize), mask) },
            Op::PAnd => unsafe {
                blend(preds, inst.d, *preds.add(inst.a as usize) & *preds.add(inst.b as usize), mask);
            },
            Op::POr => unsafe {
                blend(preds, inst.d, *preds.add(inst.a as usize) | *preds.add(inst.b as usize), mask);
            },
            Op::PXor => unsafe {
                blend(preds, inst.d, *preds.add(inst.a as usize) ^ *preds.add(inst.b as usize), mask);
            },
            Op::PNot => unsafe { blend(preds, inst.d, !*preds.add(inst.a as usize), mask) },
            Op::PImm => unsafe { blend(preds, inst.d, 0_u32.wrapping_sub(inst.x), mask) },
            Op::Lane => unsafe { lanes::lane::<V3>(g, r, preds, inst, mask) },
            Op::Carry => unsafe { lanes::carry(r, preds, inst, mask) },
            Op::LdParam => unsafe { access::load_param(g, r, inst, mask) },
            Op::Sreg => unsafe { lanes::special(g, b, w, w.steps + (start - left), r, inst, mask) },
            Op::Ld => unsafe { bulk::load::<CHECKED>(g, b, w, Issue { r, preds, inst, pc, mask }) },
            Op::St => unsafe { bulk::store::<CHECKED>(g, b, w, Issue { r, preds, inst, pc, mask }) },
            Op::Atom => unsafe { atomics::atomic(g, b, w, r, inst, pc, mask) },
            Op::CpAsync => unsafe { copies::issue(g, b, w, r, inst, pc, mask) },
            Op::CpCommit => copies::commit(b, w, pc, mask),
            Op::CpWait => copies::wait(g, b, w, pc, inst.x, mask),
            Op::Fence => {
                let FenceInfo { order, scope } = FenceInfo::of(inst.x);
                release::fence(w, order, scope, pc);
            }
            Op::IsSpace => unsafe {
                let addresses = *r.lanes::<[u64; 32]>(inst.a);
                let result = access::is_space(g, w.rank, &addresses, inst.x);
                blend(preds, inst.d, result, mask);
            },
            Op::LdMatrix | Op::StMatrix | Op::MovMatrix | Op::Mma => {
                if mask != u32::MAX && !meeting::whole(g, b, w, group, pc, mask) {
                    leave!(Event::Wait);
                }
                unsafe {
                    match inst.op {
                        Op::LdMatrix => matrix::ldmatrix(g, b, w, r, inst, pc, mask),
                        Op::StMatrix => matrix::stmatrix(g, b, w, r, inst, pc, mask),
                        Op::Mma => mma::mma::<V3>(g, r, inst, mask),
                        _ => matrix::transpose(r, inst, mask),
                    }
                }
            }
            Op::Shfl | Op::Vote | Op::Match | Op::Redux | Op::Elect => {
                let issue = Issue { r, preds, inst, pc, mask };
                let Some(same) = (unsafe { meeting::arrive(g, b, w, group, issue, all) }) else { leave!(Event::Wait) };
                unsafe {
                    if CHECKED && g.checks.init {
                        meeting::undefined(g, b, w, issue, same, soiled);
                    }
                    match inst.op {
                        Op::Shfl => lanes::shfl(r, preds, inst, same),
                        Op::Vote => lanes::vote(r, preds, inst, same),
                        Op::Match => lanes::matching(r, preds, inst, same),
                        Op::Redux => lanes::redux(r, inst, same),
                        _ => lanes::elect(r, preds, inst, same),
                    }
                }
                if CHECKED {
                    order::gather(w, same);
                }
                if same != mask {
                    pc += 1;
                    leave!(Event::Switch);
                }
            }
            Op::ActiveMask => unsafe { store(r.lanes(inst.d), &[mask; 32], mask) },
            Op::WarpSync => {
                let issue = Issue { r, preds, inst, pc, mask };
                let same = unsafe { meeting::arrive(g, b, w, group, issue, all) };
                pc += 1;
                let Some(same) = same else { leave!(Event::Wait) };
                order::warp_sync(w, same, pc - 1);
                if same != mask {
                    leave!(Event::Switch);
                }
                continue;
            }
            Op::Bar | Op::BarArrive | Op::BarRed => {
                // Lanes that have branched elsewhere may still arrive. Lanes here with a false guard never do.
                if mask == all && mask != w.live && code.bars[inst.x as usize].aligned {
                    group.wait = Wait::Lanes(w.live);
                    leave!(Event::Wait);
                }
                let event = unsafe { barrier::arrive(g, b, w, Issue { r, preds, inst, pc, mask }, group) };
                pc += 1;
                split(w, all, mask, pc);
                leave!(event);
            }
            Op::Bra => {
                let target = inst.x;
                if mask == all {
                    let back = target <= pc;
                    pc = target;
                    if back && !w.groups.is_empty() {
                        leave!(Event::Switch);
                    }
                    continue;
                }
                if !code.partings.is_empty() {
                    parting::part(g, w, pc, all);
                }
                w.groups.push(Group::ready(pc + 1, all & !mask));
                group.mask = mask;
                pc = target;
                leave!(Event::Switch);
            }
            Op::Brx => {
                split(w, all, mask, pc + 1);
                // SAFETY: as above.
                let index = unsafe { *r.lanes::<[u32; 32]>(inst.a) };
                let table = &code.tables[inst.x as usize];
                let first = index[mask.trailing_zeros() as usize];
                let Some(target) = table.get(first as usize) else {
                    let detail = format!("the index is {first}, the list has {} labels", table.len());
                    report::simple(g, b, w, Rule::BranchIndex, pc, mask, detail);
                    b.stopped = true;
                    leave!(Event::Stop);
                };
                let same = (0..32).filter(|l| mask >> l & 1 != 0 && index[*l] == first).fold(0, |m, l| m | 1 << l);
                // The others come here again.
                if mask & !same != 0 {
                    parting::part(g, w, pc, mask);
                    w.groups.push(Group::ready(pc, mask & !same));
                }
                group.mask = same;
                pc = *target;
                leave!(Event::Switch);
            }
            Op::Exit => {
                copies::finish(g, b, w, pc, mask);
                hopper::exit(g, b, w, mask);
                w.live &= !mask;
                if !w.groups.is_empty() {
                    meeting::left(g, b, w, mask);
                }
                group.mask = all & !mask;
                pc += 1;
                leave!(Event::Exit);
            }
            Op::Trap => {
                let detail = "the pointer is the address of no function that fits the call, or of one that is being called: \
                              recursion is not run here";
                match inst.x {
                    0 => report::trap(g, b, w, pc, mask),
                    _ => report::simple(g, b, w, Rule::NoTrap, pc, mask, detail.to_owned()),
                }
                b.stopped = true;
                leave!(Event::Stop);
            }
            Op::AssertFail => {
                // SAFETY: as above.
                let text = unsafe { report::assertion(g, b, w, inst, mask) };
                report::simple(g, b, w, Rule::Assertion, pc, mask, text);
                b.stopped = true;
                leave!(Event::Stop);
            }
            // SAFETY: as above.
            Op::Vprintf => unsafe { report::print(g, b, w, inst, mask) },
            Op::Sleep => {
                pc += 1;
                leave!(Event::Sleep);
            }
            _ => match unsafe { hopper::step(g, b, w, Issue { r, preds, inst, pc, mask }) } {
                Next::On => {}
                Next::Again(wait) => {
                    split(w, all, mask, pc + 1);
                    (group.mask, group.wait) = (mask, wait);
                    leave!(Event::Wait);
                }
                Next::Then(event, wait) => {
                    pc += 1;
                    split(w, all, mask, pc);
                    (group.mask, group.wait) = (mask, wait);
                    leave!(event);
                }
            },
        }
        pc += 1;
    }
}

/// The lanes for which a comparison holds, from the masks of lanes that compare less, equal and greater. With NaN a lane is in none of
/// the three. Comparisons are numbered as in `COMPARISONS` of `lower/data.rs`.
#[inline(always)]
fn compared(cmp: u32, less: u32, equal: u32, greater: u32) -> u32 {
    match cmp {
        0 => equal,
        1 => less | greater,
        2 => less,
        3 => less | equal,
        4 => greater,
        5 => greater | equal,
        6 => !(less | greater),
        7 => !equal,
        8 => !(greater | equal),
        9 => !greater,
        10 => !(less | equal),
        11 => !less,
        12 => less | equal | greater,
        _ => !(less | equal | greater),
    }
}

/// Lanes that do not take part go on alone.
fn split(w: &mut Warp, all: u32, mask: u32, pc: u32) {
    if all & !mask != 0 {
        w.groups.push(Group::ready(pc, all & !mask));
    }
}
