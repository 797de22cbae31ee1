//! The operands of each operation. This table is separate from the lowering and the machine on purpose: it checks both.

use crate::code::{AtomOp, Class, Draft, Inst, Op, RedMode, VoteMode};
use crate::code_async::{BulkWay, MapOp, MbarrierOp, WgmmaInfo};
use crate::lower::special::is_wide_special;
use crate::machine::products::mma;
use crate::types::Ty;

/// Whether an operand is there, and its class.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    No,
    May(Class),
    Must(Class),
}

/// The operands of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) d: Slot,
    pub(super) e: Slot,
    pub(super) a: Slot,
    pub(super) b: Slot,
    pub(super) c: Slot,
    /// How many registers of the list are written.
    pub(super) defs: u32,
    /// The registers in the list: counts and classes, in order.
    pub(super) list: [(u32, Class); 4],
}

impl Slot {
    /// The class; operands that are not there have any.
    fn class(self) -> Class {
        match self {
            Slot::No => Class::W32,
            Slot::May(class) | Slot::Must(class) => class,
        }
    }
}

/// Classes of d, e, a, b, c of an instruction of a [`Code`](super::Code).
pub(in super::super) fn classes(code: &Draft, inst: &Inst) -> [Class; 5] {
    shape(code, inst).map_or([Class::W32; 5], |s| [s.d, s.e, s.a, s.b, s.c].map(Slot::class))
}

const NO_LIST: [(u32, Class); 4] = [(0, Class::W32); 4];

/// Operands in the fields alone.
fn fields(d: Slot, e: Slot, [a, b, c]: [Slot; 3]) -> Shape {
    Shape { d, e, a, b, c, defs: 0, list: NO_LIST }
}

/// An operation with a list.
fn listed([a, b, c]: [Slot; 3], defs: u32, parts: &[(u32, Class)]) -> Shape {
    let mut list = NO_LIST;
    list[..parts.len()].copy_from_slice(parts);
    Shape { defs, list, ..fields(Slot::No, Slot::No, [a, b, c]) }
}

pub(super) fn wide(yes: bool) -> Class {
    if yes { Class::W64 } else { Class::W32 }
}

/// The operands of an instruction; `None` if it names a missing table entry.
pub(super) fn shape(code: &Draft, inst: &Inst) -> Option<Shape> {
    use Class::{Pred, W32, W64};
    use Slot::{May, Must, No};
    let x = inst.x as usize;
    let one = |d: Class, a: Class| fields(Must(d), No, [Must(a), No, No]);
    let two = |d: Class, a: Class, b: Class| fields(Must(d), No, [Must(a), Must(b), No]);
    let three = |d: Class, a: Class, b: Class, c: Class| fields(Must(d), No, [Must(a), Must(b), Must(c)]);
    Some(match inst.op {
        Op::Nop
        | Op::Bra
        | Op::Exit
        | Op::Trap
        | Op::Sleep
        | Op::GridWait
        | Op::CpCommit
        | Op::CpWait
        | Op::Fence
        | Op::BulkCommit
        | Op::BulkWait
        | Op::ProxyFence
        | Op::InitFence
        | Op::WgmmaFence
        | Op::WgmmaCommit
        | Op::WgmmaWait
        | Op::ClusterArrive
        | Op::ClusterWait
        | Op::SetMaxRegisters
        | Op::Converge => fields(No, No, [No; 3]),
        Op::Brx | Op::WarpSync => fields(No, No, [Must(W32), No, No]),
        Op::Mov32 | Op::Not32 | Op::MovMatrix => one(W32, W32),
        Op::Add32
        | Op::Sub32
        | Op::Mul32
        | Op::And32
        | Op::Or32
        | Op::Xor32
        | Op::Shl32
        | Op::ShrU32
        | Op::ShrS32
        | Op::MinS32
        | Op::MaxS32
        | Op::MinU32
        | Op::MaxU32
        | Op::AddF32
        | Op::SubF32
        | Op::MulF32
        | Op::Redux => two(W32, W32, W32),
        Op::Mad32 | Op::FmaF32 | Op::Lop3 => three(W32, W32, W32, W32),
        Op::Selp32 => three(W32, W32, W32, Pred),
        Op::Mov64 => one(W64, W64),
        Op::Add64 | Op::Sub64 | Op::Mul64 | Op::And64 | Op::Or64 | Op::Xor64 => two(W64, W64, W64),
        Op::Shl64 | Op::ShrU64 | Op::ShrS64 => two(W64, W64, W32),
        Op::Selp64 => three(W64, W64, W64, Pred),
        Op::MulWideU32 | Op::MulWideS32 | Op::Pack64 => two(W64, W32, W32),
        Op::MadWideU32 | Op::MadWideS32 => three(W64, W32, W32, W64),
        Op::Widen | Op::WidenS => one(W64, W32),
        Op::Narrow => one(W32, W64),
        Op::Unpack64 => fields(Must(W32), Must(W32), [Must(W64), No, No]),
        Op::SetpS32 | Op::SetpU32 | Op::SetpS64 | Op::SetpU64 | Op::SetpF32 | Op::SetpLane => {
            let info = code.setps.get(x)?;
            let (of, with) = (Must(wide(info.wide)), if info.combine.is_some() { Must(Pred) } else { No });
            fields(Must(Pred), May(Pred), [of, of, with])
        }
        Op::PMov | Op::PNot => one(Pred, Pred),
        Op::PAnd | Op::POr | Op::PXor => two(Pred, Pred, Pred),
        Op::PImm => fields(Must(Pred), No, [No; 3]),
        Op::Lane => {
            let info = code.lanes.get(x)?;
            match info.row {
                None => fields(Must(info.d), No, [May(info.a), May(info.b), May(info.c)]),
                Some(row) => {
                    let (d, from) = row.classes();
                    let at = |n: usize| from.get(n).map_or(No, |class| Must(*class));
                    fields(Must(d), No, [at(0), at(1), at(2)])
                }
            }
        }
        Op::Carry => {
            let of = wide(inst.x & 2 != 0);
            fields(Must(of), May(Pred), [Must(of), Must(of), May(Pred)])
        }
        Op::Sreg => fields(Must(wide(is_wide_special(inst.x)?)), No, [No; 3]),
        Op::Ld | Op::LdParam => {
            let mem = code.mems.get(x)?;
            let address = if inst.op == Op::Ld { Must(wide(mem.address64)) } else { No };
            listed([address, No, No], mem.elements, &[(mem.elements, wide(mem.wide))])
        }
        Op::Discard => fields(No, No, [Must(wide(code.mems.get(x)?.address64)), No, No]),
        Op::St => {
            let mem = code.mems.get(x)?;
            listed([Must(wide(mem.address64)), No, No], 0, &[(mem.elements, wide(mem.wide))])
        }
        Op::Atom => {
            let info = code.atoms.get(x)?;
            let uses = if info.op == AtomOp::Cas { 2 } else { 1 } * info.mem.elements;
            // A reduction returns nothing.
            let defs = if inst.defs == 0 { 0 } else { info.mem.elements };
            let address = Must(wide(info.mem.address64));
            listed([address, No, No], defs, &[(defs.checked_add(uses)?, wide(info.mem.wide))])
        }
        Op::CpAsync => {
            let info = code.copies.get(x)?;
            let last = if info.ignore_src { Must(Pred) } else { May(W32) };
            fields(No, No, [Must(wide(info.to64)), Must(W64), last])
        }
        Op::Bar => fields(No, No, [Must(W32), May(W32), No]),
        Op::BarArrive => fields(No, No, [Must(W32), Must(W32), No]),
        Op::BarRed => {
            let d = if code.bars.get(x)?.red == RedMode::Popc { W32 } else { Pred };
            fields(Must(d), No, [Must(W32), May(W32), Must(Pred)])
        }
        Op::Shfl => Shape {
            list: listed([No; 3], 0, &[(1, W32)]).list,
            ..fields(Must(W32), May(Pred), [Must(W32), Must(W32), Must(W32)])
        },
        Op::Vote => two(if inst.x == VoteMode::Ballot as u32 { W32 } else { Pred }, Pred, W32),
        Op::Match => fields(Must(W32), May(Pred), [Must(wide(inst.x & 2 != 0)), Must(W32), No]),
        Op::Elect => fields(Must(W32), Must(Pred), [Must(W32), No, No]),
        Op::ActiveMask => fields(Must(W32), No, [No; 3]),
        Op::LdMatrix | Op::StMatrix => {
            let info = code.matrices.get(x)?;
            let defs = if inst.op == Op::LdMatrix { info.count } else { 0 };
            listed([Must(wide(info.mem.address64)), No, No], defs, &[(info.count, W32)])
        }
        Op::Mma => {
            let info = code.mmas.get(x)?;
            let counts = mma::registers(info);
            let of = wide(info.d == Ty::F64);
            listed([No; 3], counts[0], &counts.map(|n| (n, of)))
        }
        Op::IsSpace => one(Pred, W64),
        Op::Vprintf => listed([No; 3], 0, &[(2, W64)]),
        Op::AssertFail => listed([No; 3], 0, &[(2, W64), (1, W32), (2, W64)]),
        Op::Mbarrier => {
            let info = code.asyncs.mbarriers.get(x)?;
            let address = wide(info.address64);
            match info.op {
                MbarrierOp::Pending => one(W32, W64),
                MbarrierOp::Test { parity, .. } => two(Pred, address, wide(!parity)),
                MbarrierOp::Inval | MbarrierOp::ArriveCopies { .. } => fields(No, No, [Must(address), No, No]),
                MbarrierOp::Arrive { .. } => fields(May(W64), No, [Must(address), May(W32), No]),
                MbarrierOp::ArriveExpect { .. } => fields(May(W64), No, [Must(address), Must(W32), No]),
                MbarrierOp::Init | MbarrierOp::ExpectTx | MbarrierOp::CompleteTx => {
                    fields(No, No, [Must(address), Must(W32), No])
                }
            }
        }
        Op::Bulk => {
            let info = code.asyncs.bulks.get(x)?;
            let [near, told] = info.near64.map(|w| Must(wide(w)));
            let (near, told) = match info.way {
                BulkWay::Prefetch => (No, No),
                BulkWay::Store => (near, No),
                BulkWay::Load | BulkWay::Peer | BulkWay::Registers => (near, told),
            };
            listed([near, Must(W64), told], 0, &[(info.modes.max(1), W32), (u32::from(info.multicast), W32)])
        }
        Op::StAsync => {
            let info = code.asyncs.stores.get(x)?;
            let [near, told] = info.near64.map(|w| Must(wide(w)));
            // One, two or four elements, by the length of the list.
            listed([near, No, told], 0, &[(u32::from(inst.len), wide(info.bytes == 8))])
        }
        Op::Map => {
            let info = code.asyncs.maps.get(x)?;
            let address = Must(wide(info.address64));
            match info.op {
                MapOp::Replace { .. } | MapOp::Copy(_) => fields(No, No, [address, Must(wide(info.b64)), No]),
                MapOp::Acquire(_) | MapOp::Prefetch => fields(No, No, [address, No, No]),
                MapOp::Release(_) => fields(No, No, [No; 3]),
            }
        }
        Op::Wgmma => {
            let WgmmaInfo { d_registers, a_registers, .. } = *code.asyncs.wgmmas.get(x)?;
            let a = if a_registers == 0 { Must(W64) } else { No };
            listed([a, Must(W64), May(Pred)], 0, &[(d_registers, W32), (a_registers, W32)])
        }
        Op::Mapa => {
            let (of, is_rank) = (wide(inst.x & 1 != 0), inst.x & 2 != 0);
            let (d, b) = if is_rank { (W32, No) } else { (of, Must(W32)) };
            fields(Must(d), No, [Must(of), b, No])
        }
    })
}
