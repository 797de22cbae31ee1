//! Arithmetic of integers: the vector loop where there is one, else a lane function.

use super::alu::{Mods, class};
use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{Class, Inst, NONE, Op, SetpInfo};
use crate::num::{self, LaneFn, OWN, by_integer, half2, int};
use crate::types::Ty;

impl<'a> Lower<'a, '_> {
    pub(super) fn integer(&mut self, i: &Instruction<'a>, m: &Mods<'_>, ty: Ty) -> Result<()> {
        let word = m.words.first().copied().unwrap_or("");
        if matches!(i.name, "addc" | "subc" | "madc") || m.words.contains(&"cc") {
            return self.carry_chain(i, m, ty);
        }
        if m.words.len() > 1 || m.ctl & !(num::SAT | num::RELU) != 0 {
            return self.integer_rest(i, m, ty);
        }
        let wide_ty = match ty {
            Ty::U16 => Some(Ty::U32),
            Ty::S16 => Some(Ty::S32),
            Ty::U32 => Some(Ty::U64),
            Ty::S32 => Some(Ty::S64),
            _ => None,
        };
        if m.ctl == 0
            && !packed(ty)
            && let Some((op, to, from)) = loop_of(i.name, word, ty)
        {
            return self.quick(i, op, to, &from);
        }
        let any: (Option<LaneFn>, usize) = match (i.name, word) {
            ("add", "") if packed(ty) => (Some(half2::i16x2::add), 2),
            ("min", "") if packed(ty) => {
                (Some(if ty == Ty::S16x2 { half2::i16x2::min_s } else { half2::i16x2::min_u }), 2)
            }
            ("max", "") if packed(ty) => {
                (Some(if ty == Ty::S16x2 { half2::i16x2::max_s } else { half2::i16x2::max_u }), 2)
            }
            ("add", "") => (by_integer!(ty, add), 2),
            ("sub", "") => (by_integer!(ty, sub), 2),
            ("mul", "lo") => (by_integer!(ty, mul), 2),
            ("mul", "hi") => (by_integer!(ty, mul_hi), 2),
            ("mad", "lo") => (by_integer!(ty, mad), 3),
            ("mad", "hi") => (by_integer!(ty, mad_hi), 3),
            ("div", "") => (by_integer!(ty, div), 2),
            ("rem", "") => (by_integer!(ty, rem), 2),
            ("min", "") => (by_integer!(ty, min), 2),
            ("max", "") => (by_integer!(ty, max), 2),
            ("abs", "") => (by_integer!(ty, abs), 1),
            ("neg", "") => (by_integer!(ty, neg), 1),
            ("sad", "") => (by_integer!(ty, sad), 3),
            ("brev", "") => (by_integer!(ty, brev), 1),
            ("cnot", "") => (Some(int::cnot), 1),
            _ => (None, 0),
        };
        if let (Some(f), n) = any {
            return self.uniform(i, f, m.ctl, ty, n);
        }
        if let Some(to) = wide_ty {
            match (i.name, word) {
                ("mul", "wide") => {
                    let f = by_integer!(ty, mul_wide).ok_or_else(|| self.unsupported(i))?;
                    return self.typed(i, f, 0, to, &[ty; 2]);
                }
                ("mad", "wide") => {
                    let f = by_integer!(ty, mad_wide).ok_or_else(|| self.unsupported(i))?;
                    return self.typed(i, f, 0, to, &[ty, ty, to]);
                }
                _ => {}
            }
        }
        self.integer_rest(i, m, ty)
    }

    fn integer_rest(&mut self, i: &Instruction<'a>, m: &Mods<'_>, ty: Ty) -> Result<()> {
        let words = &m.words[..];
        let missing = |l: &Self| l.unsupported(i);
        let of = |l: &Self, f: Option<LaneFn>| f.ok_or_else(|| l.unsupported(i));
        match (i.name, words) {
            ("shl", []) => self.typed(i, of(self, by_integer!(ty, shl))?, 0, ty, &[ty, Ty::U32]),
            ("shr", []) => self.typed(i, of(self, by_integer!(ty, shr))?, 0, ty, &[ty, Ty::U32]),
            ("popc", []) => self.typed(i, of(self, by_integer!(ty, popc))?, 0, Ty::U32, &[ty]),
            ("clz", []) => self.typed(i, of(self, by_integer!(ty, clz))?, 0, Ty::U32, &[ty]),
            ("bfind", [] | ["shiftamt"]) => {
                self.typed(i, of(self, by_integer!(ty, bfind))?, u32::from(!words.is_empty()) << OWN, Ty::U32, &[ty])
            }
            ("bfe", []) => self.typed(i, of(self, by_integer!(ty, bfe))?, 0, ty, &[ty, Ty::U32, Ty::U32]),
            ("bfi", []) => self.bfi(i, ty),
            ("fns", []) => self.typed(i, int::fns, 0, Ty::U32, &[Ty::U32, Ty::U32, Ty::S32]),
            ("bmsk", ["clamp" | "wrap"]) => self.uniform(i, int::bmsk, u32::from(words[0] == "wrap") << OWN, ty, 2),
            ("szext", ["clamp" | "wrap"]) => {
                let own = u32::from(words[0] == "wrap") | u32::from(ty.is_signed()) << 1;
                self.typed(i, int::szext, own << OWN, ty, &[ty, Ty::U32])
            }
            ("lop3", []) => self.lop3(i),
            ("lop3", ["and" | "or"]) => self.lop3_with_predicate(i, words[0] == "and"),
            ("shf", [direction @ ("l" | "r"), mode @ ("clamp" | "wrap")]) => {
                let own = u32::from(*direction == "r") | u32::from(*mode == "wrap") << 1;
                self.typed(i, int::shf, own << OWN, ty, &[Ty::B32, Ty::B32, Ty::U32])
            }
            ("dp4a", []) => {
                let [a, b] = m.types[..] else { return Err(missing(self)) };
                let own = u32::from(a == Ty::S32) | u32::from(b == Ty::S32) << 1;
                self.typed(i, int::dp4a, own << OWN, Ty::S32, &[Ty::B32, Ty::B32, Ty::B32])
            }
            ("dp2a", ["lo" | "hi"]) => {
                let [a, b] = m.types[..] else { return Err(missing(self)) };
                let own = u32::from(a == Ty::S32) | u32::from(b == Ty::S32) << 1 | u32::from(words[0] == "hi") << 2;
                self.typed(i, int::dp2a, own << OWN, Ty::S32, &[Ty::B32, Ty::B32, Ty::B32])
            }
            ("mul24" | "mad24", ["lo" | "hi"])
                if m.ctl == 0 || m.ctl == num::SAT && i.name == "mad24" && words[0] == "hi" && ty == Ty::S32 =>
            {
                let own = u32::from(ty == Ty::S32) | u32::from(words[0] == "hi") << 1;
                let n = if i.name == "mad24" { 3 } else { 2 };
                self.uniform(i, int::mul24, m.ctl | own << OWN, ty, n)
            }
            _ => Err(missing(self)),
        }
    }

    fn bfi(&mut self, i: &Instruction<'a>, ty: Ty) -> Result<()> {
        self.expect_operands(i, 5)?;
        let d = self.destination_of(&i.operands[0], ty)?;
        let a = self.source(&i.operands[1], ty)?;
        let b = self.source(&i.operands[2], ty)?;
        let (position, length) = (&i.operands[3], &i.operands[4]);
        // Both numbers, as compilers write them, or two registers: packed into one operand.
        let packed = if let (Operand::Int(p), Operand::Int(l)) = (position, length) {
            self.number64((*p as u64 & 0xffff_ffff) | (*l as u64 & 0xffff_ffff) << 32)?
        } else {
            let (p, l) = (self.source(position, Ty::U32)?, self.source(length, Ty::U32)?);
            let packed = self.register(Class::W64, 64)?;
            self.fast(Op::Pack64, packed, &[p, l])?;
            packed
        };
        let f: LaneFn = if ty.bits() == 64 { int::bfi64 } else { int::bfi32 };
        self.lane(f, 0, d, &[a, b, packed])
    }

    pub(super) fn lop3(&mut self, i: &Instruction<'a>) -> Result<()> {
        let Some(Operand::Int(table)) = i.operands.get(4).filter(|_| i.operands.len() == 5) else {
            return Err(self.unsupported(i));
        };
        let table = *table as u32 & 0xff;
        let d = self.sink(&i.operands[0], Class::W32)?;
        let mut from = Vec::new();
        for operand in &i.operands[1..4] {
            from.push(self.source(operand, Ty::B32)?);
        }
        self.emit(Inst { d, a: from[0], b: from[1], c: from[2], x: table, ..Inst::new(Op::Lop3) })
    }

    /// `lop3.or.b32 d|p, a, b, c, table, q`: the predicate tells whether the result is other than 0, combined with another.
    fn lop3_with_predicate(&mut self, i: &Instruction<'a>, is_and: bool) -> Result<()> {
        let [Operand::Pair(d, p), from @ .., Operand::Int(table), q] = &i.operands[..] else {
            return Err(self.malformed(i, "d|p, three registers, a table and a predicate"));
        };
        let [a, b, c] = from else { return Err(self.malformed(i, "d|p, three registers, a table and a predicate")) };
        let (a, b, c) = (self.source(a, Ty::B32)?, self.source(b, Ty::B32)?, self.source(c, Ty::B32)?);
        let q = self.pred_value(q)?;
        let (to, p) = (self.sink(d, Class::W32)?, self.destination(p, Class::Pred)?);
        let result = self.register(Class::W32, 32)?;
        self.emit(Inst { d: result, a, b, c, x: *table as u32 & 0xff, ..Inst::new(Op::Lop3) })?;
        let (zero, is_some) = (self.number(0)?, self.register(Class::Pred, 1)?);
        self.compare_integers(Op::SetpU32, int::u32::set, [is_some, NONE], [result, zero], 1)?;
        self.emit(Inst { d: p, a: is_some, b: q, ..Inst::new(if is_and { Op::PAnd } else { Op::POr }) })?;
        self.fast(Op::Mov32, to, &[result])
    }

    /// A comparison by its number, of integers.
    pub(super) fn compare_integers(&mut self, op: Op, f: LaneFn, d: [u32; 2], from: [u32; 2], cmp: u32) -> Result<()> {
        let wide = self.class_of(from[0]) == Class::W64;
        let x = push(&mut self.code.setps, SetpInfo { f, ctl: cmp << OWN, wide, cmp, combine: None, negate_c: false });
        self.emit(Inst { d: d[0], e: d[1], a: from[0], b: from[1], x, ..Inst::new(op) })
    }

    /// `add.cc` and its like: the carry is a predicate of its own.
    fn carry_chain(&mut self, i: &Instruction<'a>, m: &Mods<'_>, ty: Ty) -> Result<()> {
        // PTX ISA, "Extended-Precision Integer Arithmetic Instructions".
        if !matches!(ty, Ty::U32 | Ty::S32 | Ty::B32 | Ty::U64 | Ty::S64 | Ty::B64) {
            return Err(self.unsupported(i));
        }
        let takes = i.name.len() == 4 && i.name.ends_with('c');
        let gives = m.words.contains(&"cc");
        let name = &i.name[..3];
        let carry = match self.carry {
            Some(register) => register,
            None => self.register(Class::Pred, 1)?,
        };
        self.carry = Some(carry);
        let is_mad = name == "mad";
        self.expect_operands(i, if is_mad { 4 } else { 3 })?;
        let d = self.destination_of(&i.operands[0], ty)?;
        let mut from = self.sources(i, &vec![ty; if is_mad { 3 } else { 2 }])?;
        if is_mad {
            let f = match m.words.iter().find(|w| **w != "cc") {
                Some(&"lo") => by_integer!(ty, mul),
                Some(&"hi") => by_integer!(ty, mul_hi),
                _ => None,
            };
            let f = f.ok_or_else(|| self.unsupported(i))?;
            let product = self.register(class(ty), ty.bits())?;
            self.lane(f, 0, product, &from[..2])?;
            from = vec![product, from[2]];
        } else if m.words.iter().any(|w| *w != "cc") {
            return Err(self.unsupported(i));
        }
        let x = u32::from(name == "sub") | u32::from(ty.bits() == 64) << 1;
        let e = if gives { carry } else { NONE };
        let c = if takes { carry } else { NONE };
        self.emit(Inst { d, e, a: from[0], b: from[1], c, x, ..Inst::new(Op::Carry) })
    }
}

/// The vector loop of an instruction, with the types of its result and operands.
fn loop_of(name: &str, word: &str, ty: Ty) -> Option<(Op, Ty, Vec<Ty>)> {
    let signed = |yes, no| if ty.is_signed() { yes } else { no };
    let op = match (name, word, ty.bits()) {
        ("add", "", 32) => Op::Add32,
        ("add", "", 64) => Op::Add64,
        ("sub", "", 32) => Op::Sub32,
        ("sub", "", 64) => Op::Sub64,
        ("mul", "lo", 32) => Op::Mul32,
        ("mul", "lo", 64) => Op::Mul64,
        ("mad", "lo", 32) => Op::Mad32,
        ("mul", "wide", 32) => signed(Op::MulWideS32, Op::MulWideU32),
        ("mad", "wide", 32) => signed(Op::MadWideS32, Op::MadWideU32),
        ("shl", "", 32) => Op::Shl32,
        ("shl", "", 64) => Op::Shl64,
        ("shr", "", 32) => signed(Op::ShrS32, Op::ShrU32),
        ("shr", "", 64) => signed(Op::ShrS64, Op::ShrU64),
        ("min", "", 32) => signed(Op::MinS32, Op::MinU32),
        ("max", "", 32) => signed(Op::MaxS32, Op::MaxU32),
        _ => return None,
    };
    let to = if word == "wide" { Ty::U64 } else { ty };
    let second = if name.starts_with("sh") { Ty::U32 } else { ty };
    Some((op, to, if name == "mad" { vec![ty, ty, to] } else { vec![ty, second] }))
}

fn packed(ty: Ty) -> bool {
    matches!(ty, Ty::U16x2 | Ty::S16x2)
}
