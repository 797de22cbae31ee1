//! Loads, stores, atomics, asynchronous copies, fences, addresses.

use super::alu::class;
use super::operands::is_sink;
use super::{Lower, Result, VariablePlace, push};
use crate::ast::{Instruction, Operand};
use crate::code::{AtomInfo, AtomOp, Class, CopyInfo, FenceInfo, Inst, MemInfo, NONE, Op, Order, Scope};
use crate::error::ErrorKind;
use crate::machine::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::memory::BASE;
use crate::types::{Space, Ty};

/// The modifiers of an access.
struct Modifiers {
    space: Space,
    order: Order,
    scope: Scope,
    lanes: u32,
    ty: Option<Ty>,
    rest: Vec<String>,
}

fn order(word: &str) -> Option<Order> {
    Some(match word {
        "weak" | "nc" => Order::Weak,
        "relaxed" => Order::Relaxed,
        "acquire" => Order::Acquire,
        "release" => Order::Release,
        "acq_rel" => Order::AcqRel,
        "sc" => Order::Sc,
        _ => return None,
    })
}

/// Hints about caches, which change no result.
fn is_hint(word: &str) -> bool {
    matches!(word, "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "unified")
        || word.starts_with("L1::")
        || word.starts_with("L2::")
}

fn access(i: &Instruction<'_>) -> Modifiers {
    let mut a = Modifiers {
        space: Space::Generic,
        order: Order::Weak,
        scope: Scope::Sys,
        lanes: 1,
        ty: None,
        rest: Vec::new(),
    };
    let mut scoped = false;
    for word in &i.modifiers {
        if let Some(space) = Space::parse(word) {
            a.space = space;
        } else if let Some(s) = Scope::parse(word) {
            (a.scope, scoped) = (s, true);
        } else if let Some(o) = order(word) {
            a.order = o;
        } else if *word == "volatile" || *word == "mmio" {
            a.order = Order::Relaxed;
        } else if let Some(ty) = Ty::parse(word) {
            a.ty = Some(ty);
        } else if matches!(*word, "v2" | "v4" | "v8") {
            a.lanes = u32::from(word.as_bytes()[1] - b'0');
        } else if !is_hint(word) {
            a.rest.push((*word).to_owned());
        }
    }
    if !scoped && a.order == Order::Weak {
        a.scope = Scope::Cta;
    }
    a
}

impl<'a> Lower<'a, '_> {
    pub(super) fn memory(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.name {
            "ld" | "ldu" => self.load(i),
            "st" => self.store(i),
            "atom" | "red" => self.atom(i),
            "prefetch" | "prefetchu" | "applypriority" | "discard" => self.prefetch(i),
            "cvta" => self.cvta(i),
            "isspacep" => self.isspacep(i),
            "membar" | "fence" => self.fence(i),
            "cp" => self.copy(i),
            "createpolicy" => self.create_policy(i),
            _ => Err(self.unsupported(i)),
        }
    }

    /// The space of an access, where its address names a variable.
    pub(super) fn space_of(&self, space: Space, place: Option<VariablePlace>, is_store: bool) -> Result<Space> {
        let named = match place {
            None => return Ok(space),
            Some(VariablePlace::Global(_, s)) => s,
            Some(VariablePlace::Shared(_)) => Space::Shared,
            Some(VariablePlace::Local(..)) => Space::Local,
            Some(VariablePlace::Param(_)) => Space::Param,
        };
        let fits = space == named
            || named == Space::Local && space == Space::Param
            || named == Space::Shared && space == Space::SharedCluster
            || space == Space::Generic && matches!(named, Space::Global | Space::Const);
        if !fits || (is_store && matches!(named, Space::Const | Space::Param)) {
            return Err(self
                .error(ErrorKind::Name, "the variable is in a different state space from the instruction's")
                .found(named.as_str())
                .required(space.as_str()));
        }
        Ok(named)
    }

    fn mem(
        &mut self,
        i: &Instruction<'a>,
        a: &Modifiers,
        address: &Operand<'a>,
    ) -> Result<(u32, MemInfo, Option<VariablePlace>)> {
        let ty = a.ty.ok_or_else(|| self.unsupported(i))?;
        if !a.rest.is_empty() || !matches!(ty.bits(), 8 | 16 | 32 | 64) || ty.bytes() * u64::from(a.lanes) > 32 {
            return Err(self.unsupported(i));
        }
        let (register, offset, place) = self.address(address)?;
        let is_store = i.name == "st";
        let space = self.space_of(a.space, place, is_store)?;
        let strong = a.order != Order::Weak;
        if strong && matches!(space, Space::Generic | Space::Global) {
            self.code.communicates = true;
        }
        let mem = MemInfo {
            elements: a.lanes,
            signed: ty.is_signed(),
            wide: class(ty) == Class::W64,
            bits: 0,
            order: a.order,
            scope: a.scope,
            nc: i.modifiers.contains(&"nc"),
            ..MemInfo::weak(space, ty.bytes() as u32, self.class_of(register) == Class::W64, offset)
        };
        Ok((register, mem, place))
    }

    fn elements<'i>(&self, i: &Instruction<'a>, operand: &'i Operand<'a>, lanes: u32) -> Result<&'i [Operand<'a>]> {
        let all = operand.elements();
        if all.len() == lanes as usize { Ok(all) } else { Err(self.malformed(i, "as many registers as elements")) }
    }

    fn load(&mut self, i: &Instruction<'a>) -> Result<()> {
        let a = access(i);
        if self.without_policy(i)?.len() != 2 {
            return Err(self.malformed(i, "a register and an address"));
        }
        let (address, mut mem, place) = self.mem(i, &a, &i.operands[1])?;
        let elements = self.elements(i, &i.operands[0], a.lanes)?;
        // All elements have the width of the first that is not discarded.
        let first = elements.iter().find(|e| !is_sink(e)).unwrap_or(&elements[0]);
        let first = self.any_destination(first)?;
        (mem.bits, mem.wide) = (self.bits_of(first), self.class_of(first) == Class::W64);
        let registers = self.sinks(elements, self.class_of(first))?;
        let fits = |(e, r): (&Operand<'_>, &u32)| is_sink(e) || self.bits_of(*r) == mem.bits;
        if !elements.iter().zip(&registers).all(fits) || mem.bits < mem.bytes * 8 {
            return Err(self.malformed(i, "registers of one width, as wide as the type or wider"));
        }
        // A parameter by its name is the same for all: no addresses.
        let (op, address) = match (place, &i.operands[1]) {
            (Some(VariablePlace::Param(at)), Operand::Address(_, offset, _)) => {
                mem.offset = (at as i64).wrapping_add(*offset);
                let end = mem.offset.checked_add(i64::from(mem.bytes * mem.elements));
                if mem.offset < 0 || end.is_none_or(|end| end as u64 > self.code.param_bytes) {
                    return Err(self.error(ErrorKind::Syntax, "a load from beyond the parameters"));
                }
                (Op::LdParam, NONE)
            }
            _ => (Op::Ld, address),
        };
        let x = push(&mut self.code.mems, mem);
        let list = self.list(&registers);
        let len = registers.len() as u8;
        self.emit(Inst { a: address, list, len, defs: len, x, ..Inst::new(op) })
    }

    fn store(&mut self, i: &Instruction<'a>) -> Result<()> {
        let a = access(i);
        if self.without_policy(i)?.len() != 2 {
            return Err(self.malformed(i, "an address and a register"));
        }
        let (address, mut mem, _) = self.mem(i, &a, &i.operands[0])?;
        let ty = a.ty.unwrap_or(Ty::B32);
        let elements = self.elements(i, &i.operands[1], a.lanes)?;
        let mut registers = Vec::new();
        for e in elements {
            registers.push(self.any_source(e, ty)?);
        }
        let wide = registers.first().is_some_and(|r| self.class_of(*r) == Class::W64);
        if registers.iter().any(|r| self.class_of(*r) == Class::Pred || (self.class_of(*r) == Class::W64) != wide) {
            return Err(self.malformed(i, "registers of one width"));
        }
        if registers.iter().any(|r| self.bits_of(*r) < mem.bytes * 8) {
            return Err(self.malformed(i, "registers as wide as the type or wider"));
        }
        mem.wide = wide;
        let x = push(&mut self.code.mems, mem);
        let list = self.list(&registers);
        self.emit(Inst { a: address, list, len: registers.len() as u8, x, ..Inst::new(Op::St) })
    }

    fn atom(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut a = access(i);
        if a.order == Order::Weak {
            a.order = Order::Relaxed;
            if !i.modifiers.iter().any(|m| Scope::parse(m).is_some()) {
                a.scope = Scope::Gpu;
            }
        }
        let is_red = i.name == "red";
        let mut rest = core::mem::take(&mut a.rest);
        rest.retain(|w| w != "noftz");
        let [word] = &rest[..] else { return Err(self.unsupported(i)) };
        let op = AtomOp::parse(word).ok_or_else(|| self.unsupported(i))?;
        let ty = a.ty.ok_or_else(|| self.unsupported(i))?;
        let float = ty.is_float();
        let fits = match op {
            AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, Ty::B32 | Ty::B64),
            AtomOp::Cas => matches!(ty, Ty::B16 | Ty::B32 | Ty::B64 | Ty::U32 | Ty::U64 | Ty::S32 | Ty::S64),
            AtomOp::Exch => matches!(ty, Ty::B32 | Ty::B64 | Ty::U32 | Ty::U64 | Ty::S32 | Ty::S64),
            AtomOp::Add => {
                float && ty != Ty::Tf32 && ty != Ty::F32x2 || matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64)
            }
            AtomOp::Inc | AtomOp::Dec => ty == Ty::U32,
            AtomOp::Min | AtomOp::Max => {
                matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64 | Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2)
            }
        };
        if !fits {
            return Err(self.unsupported(i));
        }
        let at = usize::from(!is_red);
        let (address, mut mem, _) = self.mem(i, &a, self.operand(i, at)?)?;
        mem.wide = class(ty) == Class::W64;
        if matches!(mem.space, Space::Generic | Space::Global) {
            self.code.communicates = true;
        }
        let count = if op == AtomOp::Cas { 2 } else { 1 };
        if self.without_policy(i)?.len() != at + 1 + count {
            return Err(self.malformed(i, &format!("{} operands", at + 1 + count)));
        }
        if a.lanes > 1 && (op == AtomOp::Cas || mem.space != Space::Global) {
            return Err(self.unsupported(i));
        }
        let mut registers = Vec::new();
        // An atomic that discards its result is a reduction.
        if !is_red && !is_sink(&i.operands[0]) {
            let results = self.elements(i, &i.operands[0], a.lanes)?;
            registers = self.sinks(results, class(ty))?;
            for (result, register) in results.iter().zip(&registers) {
                self.is_as_wide_as(result, *register, ty.bits())?;
            }
        }
        let defs = registers.len() as u8;
        for operand in &i.operands[at + 1..at + 1 + count] {
            for e in self.elements(i, operand, a.lanes)? {
                registers.push(self.source(e, ty)?);
            }
        }
        let x = push(&mut self.code.atoms, AtomInfo { mem, op, ty });
        let list = self.list(&registers);
        self.emit(Inst { a: address, list, len: registers.len() as u8, defs, x, ..Inst::new(Op::Atom) })
    }

    fn cvta(&mut self, i: &Instruction<'a>) -> Result<()> {
        self.expect_operands(i, 2)?;
        let (to, word, ty) = match i.modifiers[..] {
            ["to", space, ty] => (true, space, ty),
            [space, ty] => (false, space, ty),
            _ => return Err(self.unsupported(i)),
        };
        let space = Space::parse(word).ok_or_else(|| self.unsupported(i))?;
        let wide = match ty {
            "u64" => true,
            "u32" => false,
            _ => return Err(self.unsupported(i)),
        };
        if !wide {
            return Err(self.unsupported(i));
        }
        let d = self.destination(&i.operands[0], Class::W64)?;
        let base = match space {
            Space::Shared | Space::SharedCluster => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            _ => 0,
        };
        let a = self.source(&i.operands[1], Ty::U64)?;
        if !to && matches!(space, Space::Param | Space::Const) {
            // The address of a name is already generic, except for the bits that 32 bits cut off.
            let [low, high] = [(1 << 32) - 1, BASE].map(|v| self.number64(v));
            self.fast(Op::And64, d, &[a, low?])?;
            return self.fast(Op::Or64, d, &[d, high?]);
        }
        if base == 0 {
            return self.fast(Op::Mov64, d, &[a]);
        }
        let base = self.number64(base)?;
        self.fast(if to { Op::Sub64 } else { Op::Add64 }, d, &[a, base])
    }

    fn isspacep(&mut self, i: &Instruction<'a>) -> Result<()> {
        self.expect_operands(i, 2)?;
        let [word] = i.modifiers[..] else { return Err(self.unsupported(i)) };
        let space = Space::parse(word).ok_or_else(|| self.unsupported(i))?;
        let d = self.destination(&i.operands[0], Class::Pred)?;
        let a = self.source(&i.operands[1], Ty::U64)?;
        self.emit(Inst { d, a, x: space as u32, ..Inst::new(Op::IsSpace) })
    }

    fn fence(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.modifiers == ["proxy", "alias"] {
            // Other names of one place are not what is run here.
            self.expect_operands(i, 0)?;
            return self.emit(Inst::new(Op::Nop));
        }
        let mut found = (Order::AcqRel, Scope::Sys);
        for word in &i.modifiers {
            found = match (*word, order(word), Scope::parse(word)) {
                ("gl", ..) => (Order::Sc, Scope::Gpu),
                (_, Some(o), _) => (o, found.1),
                (_, _, Some(s)) => (found.0, s),
                _ => return Err(self.unsupported(i)),
            };
        }
        if found.1 > Scope::Cta {
            self.code.communicates = true;
        }
        let x = FenceInfo { order: found.0, scope: found.1 }.bits();
        self.emit(Inst { x, ..Inst::new(Op::Fence) })
    }

    fn copy(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers.clone();
        words.retain(|w| !w.starts_with("L2::") && *w != "sync");
        match &words[..] {
            ["async", "commit_group"] => {
                self.expect_operands(i, 0)?;
                self.emit(Inst::new(Op::CpCommit))
            }
            ["async", "wait_all"] => {
                self.expect_operands(i, 0)?;
                self.emit(Inst { x: NONE, ..Inst::new(Op::CpWait) })
            }
            ["async", "wait_group"] => {
                let [Operand::Int(n)] = i.operands[..] else { return Err(self.malformed(i, "a number of groups")) };
                let x = u32::try_from(n)
                    .ok()
                    .filter(|n| *n < 1 << 20)
                    .ok_or_else(|| self.malformed(i, "a number of groups"))?;
                self.emit(Inst { x, ..Inst::new(Op::CpWait) })
            }
            ["async", cache @ ("ca" | "cg"), "shared" | "shared::cta", "global"] => {
                let cg = *cache == "cg";
                self.copy_async(i, cg)
            }
            _ => Err(self.unsupported(i)),
        }
    }

    fn copy_async(&mut self, i: &Instruction<'a>, cg: bool) -> Result<()> {
        let n = self.without_policy(i)?.len();
        if !(3..=4).contains(&n) {
            return Err(self.malformed(i, "two addresses, a number of bytes and at most one more"));
        }
        let Operand::Int(bytes) = i.operands[2] else { return Err(self.malformed(i, "a number of bytes")) };
        if !matches!(bytes, 4 | 8 | 16) || cg && bytes != 16 {
            return Err(self.malformed(i, "4, 8 or 16 bytes; 16 for .cg"));
        }
        let (to, to_offset, _) = self.address(&i.operands[0])?;
        let (from, from_offset, _) = self.address(&i.operands[1])?;
        if self.class_of(from) != Class::W64 {
            return Err(self.malformed(i, "a source address of 64 bits"));
        }
        let mut source = NONE;
        let mut ignore = NONE;
        if n == 4 {
            match &i.operands[3] {
                Operand::Name(name, None) if self.predicate(name).is_ok() => ignore = self.predicate(name)?,
                Operand::Not(_) => ignore = self.pred_value(&i.operands[3])?,
                operand => source = self.source(operand, Ty::U32)?,
            }
        }
        let (bytes, to64, ignore_src) = (bytes as u32, self.class_of(to) == Class::W64, ignore != NONE);
        let info = CopyInfo { bytes, to: to_offset, from: from_offset, to64, ignore_src };
        let x = push(&mut self.code.copies, info);
        let c = if ignore != NONE { ignore } else { source };
        self.emit(Inst { a: to, b: from, c, x, ..Inst::new(Op::CpAsync) })
    }
}
