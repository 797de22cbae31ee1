//! Barriers in shared memory, bulk and tensor copies, proxies, clusters.

use super::operands::is_sink;
use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{AtomOp, Class, Inst, NONE, Op, Order, PROXY_CLUSTER, PROXY_CTA, PROXY_GLOBAL, Scope};
use crate::code_async::{BulkInfo, BulkWay, MbarrierInfo, MbarrierOp, StoreInfo};
use crate::types::Ty;

/// Whether an instruction is one of this file's, or `wgmma`.
pub(super) fn is_one(i: &Instruction<'_>) -> bool {
    let first = i.modifiers.first().copied().unwrap_or_default();
    match i.name {
        "mbarrier" | "mapa" | "getctarank" | "setmaxnreg" | "wgmma" => true,
        "cp" => i.modifiers.contains(&"bulk") || tracks(i),
        "st" | "red" => first == "async",
        "barrier" => first == "cluster",
        "fence" => matches!(first, "proxy" | "mbarrier_init"),
        _ => false,
    }
}

/// Whether a barrier is asked to track `cp.async`.
fn tracks(i: &Instruction<'_>) -> bool {
    i.modifiers.get(1) == Some(&"mbarrier")
}

/// Whether a bulk copy reduces with an operation and a type: PTX ISA, "cp.reduce.async.bulk", to global memory or to a peer.
fn reduces(op: AtomOp, ty: Ty, to_peer: bool) -> bool {
    use AtomOp::{Add, And, Cas, Dec, Exch, Inc, Max, Min, Or, Xor};
    let to_global = match op {
        Add => matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64),
        Min | Max => matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64 | Ty::F16 | Ty::Bf16),
        Inc | Dec => ty == Ty::U32,
        And | Or | Xor => matches!(ty, Ty::B32 | Ty::B64),
        Cas | Exch => false,
    };
    let to_cluster = match op {
        Add => matches!(ty, Ty::U32 | Ty::S32 | Ty::U64),
        Min | Max => matches!(ty, Ty::U32 | Ty::S32),
        Inc | Dec => ty == Ty::U32,
        And | Or | Xor => ty == Ty::B32,
        Cas | Exch => false,
    };
    if to_peer { to_cluster } else { to_global }
}

/// Whether `red.async` reduces with an operation and a type, as ptxas has it.
fn reduces_async(op: AtomOp, ty: Ty) -> bool {
    reduces(op, ty, true) || op == AtomOp::Add && ty == Ty::S64
}

impl<'a> Lower<'a, '_> {
    pub(super) fn hopper(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.name {
            "mbarrier" => self.mbarrier(i),
            "wgmma" => self.wgmma(i),
            "cp" if tracks(i) => self.mbarrier(i),
            "cp" => self.bulk(i),
            "st" | "red" => self.store_async(i),
            "barrier" => self.cluster_barrier(i),
            "fence" => self.proxy_fence(i),
            "setmaxnreg" => self.set_max_registers(i),
            _ => self.mapa(i),
        }
    }

    fn mbarrier(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut info = MbarrierInfo {
            op: MbarrierOp::Init,
            address64: false,
            generic: true,
            cluster: false,
            offset: 0,
            order: Order::AcqRel,
            scope: Scope::Cta,
        };
        let mut words = Vec::new();
        for word in &i.modifiers {
            match *word {
                "shared" | "shared::cta" => info.generic = false,
                "shared::cluster" => (info.generic, info.cluster) = (false, true),
                "acquire" | "release" => {}
                "relaxed" => info.order = Order::Relaxed,
                "cta" => info.scope = Scope::Cta,
                "cluster" => info.scope = Scope::Cluster,
                word => words.push(word),
            }
        }
        info.op = match words[..] {
            ["init", "b64"] => MbarrierOp::Init,
            ["inval", "b64"] => MbarrierOp::Inval,
            ["arrive", "b64"] | ["arrive", "noComplete", "b64"] => MbarrierOp::Arrive { drop: false },
            ["arrive_drop", "b64"] | ["arrive_drop", "noComplete", "b64"] => MbarrierOp::Arrive { drop: true },
            ["arrive", "expect_tx", "b64"] => MbarrierOp::ArriveExpect { drop: false },
            ["arrive_drop", "expect_tx", "b64"] => MbarrierOp::ArriveExpect { drop: true },
            ["async", "mbarrier", "arrive", "b64"] if !info.cluster => MbarrierOp::ArriveCopies { counted: false },
            ["async", "mbarrier", "arrive", "noinc", "b64"] if !info.cluster => {
                MbarrierOp::ArriveCopies { counted: true }
            }
            ["expect_tx", "b64"] => MbarrierOp::ExpectTx,
            ["complete_tx", "b64"] => MbarrierOp::CompleteTx,
            ["test_wait", "b64"] => MbarrierOp::Test { parity: false, tries: false },
            ["test_wait", "parity", "b64"] => MbarrierOp::Test { parity: true, tries: false },
            ["try_wait", "b64"] => MbarrierOp::Test { parity: false, tries: true },
            ["try_wait", "parity", "b64"] => MbarrierOp::Test { parity: true, tries: true },
            ["pending_count", "b64"] => MbarrierOp::Pending,
            _ => return Err(self.unsupported(i)),
        };
        self.mbarrier_operands(i, info)
    }

    fn mbarrier_operands(&mut self, i: &Instruction<'a>, mut info: MbarrierInfo) -> Result<()> {
        let mut operands = &i.operands[..];
        let mut inst = Inst::new(Op::Mbarrier);
        if info.op == MbarrierOp::Pending {
            self.expect_operands(i, 2)?;
            inst.d = self.destination_of(&operands[0], Ty::B32)?;
            inst.a = self.source(&operands[1], Ty::B64)?;
            return self.emit_mbarrier(inst, info);
        }
        let first = operands.first();
        let returns = matches!(info.op, MbarrierOp::Arrive { .. } | MbarrierOp::ArriveExpect { .. });
        let tests = matches!(info.op, MbarrierOp::Test { .. });
        if tests || returns && !matches!(first, Some(Operand::Address(..))) {
            let Some((d, rest)) = operands.split_first() else { return Err(self.malformed(i, "an address")) };
            if tests {
                inst.d = self.destination(d, Class::Pred)?;
            } else if !is_sink(d) {
                inst.d = self.destination(d, Class::W64)?;
            }
            operands = rest;
        }
        let Some((address, rest)) = operands.split_first() else { return Err(self.malformed(i, "an address")) };
        let (a, offset, _) = self.address(address)?;
        (inst.a, info.offset, info.address64) = (a, offset, self.class_of(a) == Class::W64);
        let (least, most, ty) = match info.op {
            MbarrierOp::Inval | MbarrierOp::ArriveCopies { .. } => (0, 0, Ty::U32),
            MbarrierOp::Arrive { .. } => (0, 1, Ty::U32),
            MbarrierOp::Test { parity: true, tries } => (1, 1 + usize::from(tries), Ty::U32),
            MbarrierOp::Test { parity: false, tries } => (1, 1 + usize::from(tries), Ty::B64),
            _ => (1, 1, Ty::U32),
        };
        if rest.len() < least || rest.len() > most {
            return Err(self.malformed(i, "an address and the operands of the operation"));
        }
        if let Some(b) = rest.first() {
            inst.b = self.source(b, ty)?;
        }
        // How long to try: here until nothing else can be done.
        if let Some(hint) = rest.get(1) {
            self.source(hint, Ty::U32)?;
        }
        self.emit_mbarrier(inst, info)
    }

    fn emit_mbarrier(&mut self, mut inst: Inst, info: MbarrierInfo) -> Result<()> {
        inst.x = push(&mut self.code.asyncs.mbarriers, info);
        self.emit(inst)
    }

    fn bulk(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers.clone();
        // Hints about caches, and the mode that there is.
        words.retain(|w| !w.starts_with("L2::") && !matches!(*w, "tile" | "noftz"));
        match words[..] {
            ["async", "bulk", "commit_group"] => {
                self.expect_operands(i, 0)?;
                return self.emit(Inst::new(Op::BulkCommit));
            }
            ["async", "bulk", "wait_group", ref read @ ..] if matches!(read, [] | ["read"]) => {
                let [Operand::Int(n)] = i.operands[..] else { return Err(self.malformed(i, "a number of groups")) };
                let n = u32::try_from(n).ok().filter(|n| *n < 1 << 20);
                let n = n.ok_or_else(|| self.malformed(i, "a number of groups"))?;
                let x = n << 1 | u32::from(!read.is_empty());
                return self.emit(Inst { x, ..Inst::new(Op::BulkWait) });
            }
            _ => {}
        }
        let mut info = BulkInfo {
            way: BulkWay::Load,
            modes: 0,
            red: None,
            multicast: false,
            grouped: false,
            near64: [false; 2],
            near_offset: [0; 2],
            far_offset: 0,
        };
        let reduces = words.first() == Some(&"reduce");
        words.retain(|w| !matches!(*w, "reduce" | "async" | "bulk" | "tensor" | "L2"));
        if let Some(modes) = words.first().and_then(|w| w.strip_suffix('d')).and_then(|n| n.parse().ok()) {
            info.modes = modes;
            words.remove(0);
        }
        let prefetches = words.first() == Some(&"prefetch");
        if prefetches {
            words.remove(0);
            if let Some(modes) = words.first().and_then(|w| w.strip_suffix('d')).and_then(|n| n.parse().ok()) {
                info.modes = modes;
                words.remove(0);
            }
        }
        let tensor = i.modifiers.contains(&"tensor");
        if tensor != (1..=5).contains(&info.modes) {
            return Err(self.unsupported(i));
        }
        if let Some(at) = words.iter().position(|w| *w == "multicast::cluster") {
            info.multicast = true;
            words.remove(at);
        }
        if reduces {
            info.red = Some(self.reduction(i, &mut words, tensor)?);
        }
        (info.way, info.grouped) = match words[..] {
            ["shared::cluster" | "shared::cta", "global", "mbarrier::complete_tx::bytes"] if !reduces => {
                (BulkWay::Load, false)
            }
            ["shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes"] if !tensor => (BulkWay::Peer, false),
            ["global", "shared::cta", "bulk_group"] => (BulkWay::Store, true),
            ["global"] if prefetches => (BulkWay::Prefetch, false),
            _ => return Err(self.unsupported(i)),
        };
        self.bulk_operands(i, info)
    }

    /// `.add.f32` of a reduction; that of a tensor has no type of its own.
    fn reduction(&self, i: &Instruction<'a>, words: &mut Vec<&'a str>, tensor: bool) -> Result<(AtomOp, Ty)> {
        let op_of = |word: &str| AtomOp::parse(word).filter(|op| !matches!(op, AtomOp::Cas | AtomOp::Exch));
        let found = words.iter().enumerate().find_map(|(at, word)| Some((at, op_of(word)?)));
        let (at, op) = found.ok_or_else(|| self.unsupported(i))?;
        words.remove(at);
        let ty = if tensor {
            Ty::B8
        } else {
            let word = words.pop().ok_or_else(|| self.unsupported(i))?;
            let ty = Ty::parse(word).ok_or_else(|| self.unsupported(i))?;
            let to_peer = words.contains(&"shared::cluster");
            // Sums of halves have to say that they keep subnormals, and nothing else may.
            let keeps = op == AtomOp::Add && ty.bits() == 16;
            if !reduces(op, ty, to_peer) || keeps != i.modifiers.contains(&"noftz") {
                return Err(self.unsupported(i));
            }
            ty
        };
        Ok((op, ty))
    }

    fn bulk_operands(&mut self, i: &Instruction<'a>, mut info: BulkInfo) -> Result<()> {
        let mut inst = Inst::new(Op::Bulk);
        let mut list = Vec::new();
        let mut operands = i.operands.iter();
        let mut next =
            |l: &Self| operands.next().ok_or_else(|| l.malformed(i, "addresses, and the operands of the copy"));
        let stores = info.way == BulkWay::Store;
        let (mut near, mut far) = (None, None);
        if stores {
            far = Some(next(self)?);
        } else if info.way != BulkWay::Prefetch {
            near = Some(next(self)?);
        }
        match (stores, info.way) {
            (true, _) => near = Some(next(self)?),
            (false, _) => far = Some(next(self)?),
        }
        if let Some(near) = near {
            let (a, offset, _) = self.address(near)?;
            (inst.a, info.near_offset[0], info.near64[0]) = (a, offset, self.class_of(a) == Class::W64);
        }
        if let Some(Operand::Address(base, offset, more)) = far {
            let (b, offset, _) = self.address(&Operand::Address(*base, *offset, Vec::new()))?;
            // The source in shared memory of a copy to a peer may have 32 bits.
            inst.b = if self.class_of(b) == Class::W32 { self.widened(b)? } else { b };
            info.far_offset = offset;
            match (info.modes, &more[..]) {
                (0, []) => {}
                (n, [Operand::Vector(all)]) if all.len() == n as usize => {
                    for e in all {
                        list.push(self.source(e, Ty::S32)?);
                    }
                }
                (1, [one @ Operand::Name(..)]) => list.push(self.source(one, Ty::S32)?),
                _ => return Err(self.malformed(i, "as many coordinates as modes")),
            }
        } else {
            return Err(self.malformed(i, "an address"));
        }
        if info.modes == 0 {
            let size = next(self)?;
            list.push(self.source(size, Ty::U32)?);
        }
        if matches!(info.way, BulkWay::Load | BulkWay::Peer) {
            let (c, offset, _) = self.address(next(self)?)?;
            (inst.c, info.near_offset[1], info.near64[1]) = (c, offset, self.class_of(c) == Class::W64);
        }
        if info.multicast {
            let mask = next(self)?;
            list.push(self.source(mask, Ty::U16)?);
        }
        if i.modifiers.contains(&"L2::cache_hint") {
            let policy = next(self)?;
            self.source(policy, Ty::B64)?;
        }
        if operands.next().is_some() {
            return Err(self.malformed(i, "fewer operands"));
        }
        self.code.communicates |= info.red.is_some();
        inst.x = push(&mut self.code.asyncs.bulks, info);
        (inst.list, inst.len) = (self.list(&list), list.len() as u8);
        self.emit(inst)
    }

    fn store_async(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers[1..].to_vec();
        words.retain(|w| !matches!(*w, "weak" | "shared::cluster"));
        let mut red = None;
        if let ("red", ["relaxed", "cluster", rest @ ..]) = (i.name, &words[..]) {
            let (op, ty) = match rest {
                ["mbarrier::complete_tx::bytes", op, ty] => (AtomOp::parse(op), Ty::parse(ty)),
                _ => (None, None),
            };
            red = op.zip(ty).filter(|(op, ty)| reduces_async(*op, *ty));
            words = match rest {
                [told, .., ty] => vec![*told, *ty],
                _ => Vec::new(),
            };
        }
        if i.name == "red" && (red.is_none() || i.modifiers.contains(&"weak")) {
            return Err(self.unsupported(i));
        }
        let (count, ty) = match words[..] {
            ["mbarrier::complete_tx::bytes", ty] => (1, ty),
            ["mbarrier::complete_tx::bytes", "v2", ty] => (2, ty),
            ["mbarrier::complete_tx::bytes", "v4", ty] => (4, ty),
            _ => return Err(self.unsupported(i)),
        };
        let ty = Ty::parse(ty).filter(|ty| matches!(ty.bits(), 32 | 64) && ty.bits() * count <= 128);
        let ty = ty.ok_or_else(|| self.unsupported(i))?;
        let [to, from, told] = &i.operands[..] else {
            return Err(self.malformed(i, "an address, the elements to store, and the address of an mbarrier"));
        };
        let mut info = StoreInfo { bytes: ty.bits() / 8, red, near64: [false; 2], near_offset: [0; 2] };
        let mut inst = Inst::new(Op::StAsync);
        for (n, (operand, register)) in [(to, &mut inst.a), (told, &mut inst.c)].into_iter().enumerate() {
            let (row, offset, _) = self.address(operand)?;
            (*register, info.near_offset[n], info.near64[n]) = (row, offset, self.class_of(row) == Class::W64);
        }
        let from = from.elements();
        if from.len() != count as usize {
            return Err(self.malformed(i, "as many registers as elements"));
        }
        let list = from.iter().map(|e| self.source(e, ty)).collect::<Result<Vec<u32>>>()?;
        inst.x = push(&mut self.code.asyncs.stores, info);
        (inst.list, inst.len) = (self.list(&list), list.len() as u8);
        self.emit(inst)
    }

    fn widened(&mut self, register: u32) -> Result<u32> {
        let wide = self.register(Class::W64, 64)?;
        self.emit_always(Inst { d: wide, a: register, ..Inst::new(Op::Widen) })?;
        Ok(wide)
    }

    fn proxy_fence(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.modifiers[..] {
            ["mbarrier_init", "release", "cluster"] => {
                self.expect_operands(i, 0)?;
                self.emit(Inst::new(Op::InitFence))
            }
            ["proxy", "async"] => self.proxy_fence_of(i, PROXY_GLOBAL | PROXY_CTA | PROXY_CLUSTER),
            ["proxy", "async", "global"] => self.proxy_fence_of(i, PROXY_GLOBAL),
            ["proxy", "async", "shared::cta" | "shared"] => self.proxy_fence_of(i, PROXY_CTA),
            ["proxy", "async", "shared::cluster"]
            | [
                "proxy",
                "async::generic",
                "acquire" | "release",
                "sync_restrict::shared::cluster" | "sync_restrict::shared::cta",
                "cluster" | "cta",
            ] => self.proxy_fence_of(i, PROXY_CTA | PROXY_CLUSTER),
            // Other names of one place are not what is run here.
            ["proxy", "alias"] => self.emit(Inst::new(Op::Nop)),
            _ => Err(self.unsupported(i)),
        }
    }

    fn proxy_fence_of(&mut self, i: &Instruction<'a>, spaces: u32) -> Result<()> {
        self.expect_operands(i, 0)?;
        self.emit(Inst { x: spaces, ..Inst::new(Op::ProxyFence) })
    }

    fn cluster_barrier(&mut self, i: &Instruction<'a>) -> Result<()> {
        let aligned = u32::from(i.modifiers.contains(&"aligned"));
        let mut words = i.modifiers.clone();
        words.retain(|w| *w != "aligned");
        let (op, relaxed) = match words[..] {
            ["cluster", "arrive"] | ["cluster", "arrive", "release"] => (Op::ClusterArrive, 0),
            ["cluster", "arrive", "relaxed"] => (Op::ClusterArrive, 1),
            ["cluster", "wait"] | ["cluster", "wait", "acquire"] => (Op::ClusterWait, 0),
            _ => return Err(self.unsupported(i)),
        };
        self.expect_operands(i, 0)?;
        self.emit(Inst { x: aligned << 1 | relaxed, ..Inst::new(op) })
    }

    fn set_max_registers(&mut self, i: &Instruction<'a>) -> Result<()> {
        let ([up @ ("inc" | "dec"), "sync", "aligned", "u32"], [Operand::Int(n)]) = (&i.modifiers[..], &i.operands[..])
        else {
            return Err(self.unsupported(i));
        };
        let n = u32::try_from(*n).ok().filter(|n| (24..=256).contains(n) && n % 8 == 0);
        let n = n.ok_or_else(|| self.malformed(i, "24 to 256 registers, a multiple of 8"))?;
        self.emit(Inst { x: n << 1 | u32::from(*up == "inc"), ..Inst::new(Op::SetMaxRegisters) })
    }

    fn mapa(&mut self, i: &Instruction<'a>) -> Result<()> {
        let is_map = i.name == "mapa";
        let (generic, ty) = match i.modifiers[..] {
            ["shared::cluster", ty] => (false, ty),
            [ty] => (true, ty),
            _ => return Err(self.unsupported(i)),
        };
        let ty = match ty {
            "u32" => Ty::U32,
            "u64" => Ty::U64,
            _ => return Err(self.unsupported(i)),
        };
        let class = if ty == Ty::U64 { Class::W64 } else { Class::W32 };
        self.expect_operands(i, if is_map { 3 } else { 2 })?;
        let d = self.destination(&i.operands[0], if is_map { class } else { Class::W32 })?;
        let a = self.source(&i.operands[1], ty)?;
        let b = if is_map { self.source(&i.operands[2], Ty::U32)? } else { NONE };
        let x = u32::from(class == Class::W64) | u32::from(!is_map) << 1 | u32::from(generic) << 2;
        self.emit(Inst { d, a, b, x, ..Inst::new(Op::Mapa) })
    }
}
