//! Arithmetic and logic: the vector loop where there is one, else a lane function.

use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{Class, Inst, LaneInfo, NONE, Op};
use crate::num::{self, LaneFn, OWN, approx, by_float, float, int};
use crate::types::Ty;
use crate::vector_loop::VectorLoop;

/// The modifiers of an instruction, sorted.
pub(super) struct Mods<'i> {
    pub(super) ctl: u32,
    pub(super) types: Vec<Ty>,
    /// The other modifiers: neither a rounding, nor a flag, nor a type.
    pub(super) words: Vec<&'i str>,
    /// Whether a rounding was given.
    pub(super) rounded: bool,
    /// Rounding to an integral value.
    pub(super) integral: bool,
}

pub(super) fn mods<'i>(i: &'i Instruction<'_>) -> Mods<'i> {
    let mut m = Mods { ctl: 0, types: Vec::new(), words: Vec::new(), rounded: false, integral: false };
    for word in &i.modifiers {
        let (flag, rounds) = match *word {
            "rn" => (num::RN, true),
            "rz" => (num::RZ, true),
            "rm" => (num::RM, true),
            "rp" => (num::RP, true),
            "rna" => (num::RNA, true),
            "rni" => (num::RN, true),
            "rzi" => (num::RZ, true),
            "rmi" => (num::RM, true),
            "rpi" => (num::RP, true),
            "ftz" => (num::FTZ, false),
            "sat" => (num::SAT, false),
            "relu" => (num::RELU, false),
            "satfinite" => (num::SATFINITE, false),
            "NaN" => (num::NAN, false),
            "abs" => (num::ABS, false),
            other => {
                match Ty::parse(other) {
                    Some(ty) => m.types.push(ty),
                    None => m.words.push(other),
                }
                continue;
            }
        };
        m.ctl |= flag;
        m.rounded |= rounds;
        m.integral |= rounds && word.len() == 3 && word.ends_with('i');
    }
    m
}

pub(super) fn class(ty: Ty) -> Class {
    match ty {
        Ty::Pred => Class::Pred,
        _ if ty.bits() > 32 => Class::W64,
        _ => Class::W32,
    }
}

impl<'a> Lower<'a, '_> {
    /// A lane function with its operands: of these types, into this type.
    pub(super) fn lane(&mut self, f: LaneFn, ctl: u32, d: u32, operands: &[u32]) -> Result<()> {
        let row = VectorLoop::of(&self.code.names[self.opcode as usize]);
        self.lane_as(row, f, ctl, d, operands)
    }

    /// The same, and what it is as a loop.
    pub(super) fn lane_as(
        &mut self,
        row: Option<VectorLoop>,
        f: LaneFn,
        ctl: u32,
        d: u32,
        operands: &[u32],
    ) -> Result<()> {
        let class = |n: usize| operands.get(n).map_or(Class::W32, |r| self.class_of(*r));
        let at = |n: usize| operands.get(n).copied().unwrap_or(NONE);
        let fits = |row: &VectorLoop| {
            let (to, from) = row.classes();
            self.class_of(d) == to
                && operands.len() == from.len()
                && operands.iter().zip(from).all(|(r, c)| self.class_of(*r) == *c)
        };
        let name = &self.code.names[self.opcode as usize];
        let info = LaneInfo {
            row: row.filter(fits),
            f,
            ctl,
            d: self.class_of(d),
            a: class(0),
            b: class(1),
            c: class(2),
            bits: self.bits_of(d),
            moves: match name.split('.').next() {
                Some("prmt" | "shf" | "bfi") => 2,
                Some("bfe" | "shr" | "shl" | "mov") => 1,
                // A saturating conversion does more than move bits.
                Some("cvt") if !name.contains(['f', 'e']) && !name.contains("sat") => 1,
                _ => 0,
            },
        };
        let x = push(&mut self.code.lanes, info);
        self.emit(Inst { d, a: at(0), b: at(1), c: at(2), x, ..Inst::new(Op::Lane) })
    }

    pub(super) fn fast(&mut self, op: Op, d: u32, operands: &[u32]) -> Result<()> {
        let at = |n: usize| operands.get(n).copied().unwrap_or(NONE);
        self.emit(Inst { d, a: at(0), b: at(1), c: at(2), ..Inst::new(op) })
    }

    /// All operands of one type.
    pub(super) fn uniform(&mut self, i: &Instruction<'a>, f: LaneFn, ctl: u32, ty: Ty, n: usize) -> Result<()> {
        self.typed(i, f, ctl, ty, &vec![ty; n])
    }

    pub(super) fn typed(&mut self, i: &Instruction<'a>, f: LaneFn, ctl: u32, to: Ty, from: &[Ty]) -> Result<()> {
        self.expect_operands(i, from.len() + 1)?;
        let d = self.destination_of(&i.operands[0], to)?;
        let operands = self.sources(i, from)?;
        self.lane(f, ctl, d, &operands)
    }

    pub(super) fn sources(&mut self, i: &Instruction<'a>, from: &[Ty]) -> Result<Vec<u32>> {
        i.operands[1..].iter().zip(from).map(|(operand, ty)| self.source(operand, *ty)).collect()
    }

    pub(super) fn quick(&mut self, i: &Instruction<'a>, op: Op, to: Ty, from: &[Ty]) -> Result<()> {
        self.expect_operands(i, from.len() + 1)?;
        let d = self.destination_of(&i.operands[0], to)?;
        let operands = self.sources(i, from)?;
        self.fast(op, d, &operands)
    }

    pub(super) fn alu(&mut self, i: &Instruction<'a>) -> Result<()> {
        let m = mods(i);
        let ty = *m.types.last().ok_or_else(|| self.unsupported(i))?;
        if matches!(i.name, "and" | "or" | "xor" | "not") {
            return self.logic(i, &m, ty);
        }
        let is_bits = matches!(ty, Ty::B16 | Ty::B32 | Ty::B64);
        let adds =
            matches!(i.name, "add" | "sub" | "mul" | "mad" | "div" | "rem" | "min" | "max" | "abs" | "neg" | "sad");
        if is_bits && adds {
            return Err(self.unsupported(i));
        }
        if ty.is_float() { self.float(i, &m, ty) } else { self.integer(i, &m, ty) }
    }

    fn logic(&mut self, i: &Instruction<'a>, m: &Mods<'_>, ty: Ty) -> Result<()> {
        if !m.words.is_empty() || m.ctl != 0 {
            return Err(self.unsupported(i));
        }
        if ty == Ty::Pred {
            return self.logic_of_predicates(i);
        }
        let n = if i.name == "not" { 1 } else { 2 };
        let wide = ty.bits() > 32;
        let op = match (i.name, wide) {
            ("and", false) => Op::And32,
            ("or", false) => Op::Or32,
            ("xor", false) => Op::Xor32,
            ("and", true) => Op::And64,
            ("or", true) => Op::Or64,
            ("xor", true) => Op::Xor64,
            ("not", false) if ty.bits() == 32 => Op::Not32,
            _ => return self.uniform(i, int::not, ty.bits() << OWN, ty, 1),
        };
        self.quick(i, op, ty, &vec![ty; n])
    }

    fn logic_of_predicates(&mut self, i: &Instruction<'a>) -> Result<()> {
        let n = if i.name == "not" { 2 } else { 3 };
        self.expect_operands(i, n)?;
        let d = self.destination(&i.operands[0], Class::Pred)?;
        let a = self.pred_value(&i.operands[1])?;
        let b = if n == 3 { self.pred_value(&i.operands[2])? } else { NONE };
        let op = match i.name {
            "and" => Op::PAnd,
            "or" => Op::POr,
            "xor" => Op::PXor,
            _ => Op::PNot,
        };
        self.emit(Inst { d, a, b, ..Inst::new(op) })
    }

    /// A predicate or 0 or 1, as a predicate register.
    pub(super) fn pred_value(&mut self, operand: &Operand<'_>) -> Result<u32> {
        if let Operand::Int(v) = operand {
            let register = self.register(Class::Pred, 1)?;
            self.emit_always(Inst { d: register, x: u32::from(*v != 0), ..Inst::new(Op::PImm) })?;
            return Ok(register);
        }
        let (p, negated) = self.predicate_operand(operand)?;
        if !negated {
            return Ok(p);
        }
        let register = self.register(Class::Pred, 1)?;
        self.emit_always(Inst { d: register, a: p, ..Inst::new(Op::PNot) })?;
        Ok(register)
    }

    fn float(&mut self, i: &Instruction<'a>, m: &Mods<'_>, ty: Ty) -> Result<()> {
        let approx = m.words == ["approx"];
        let plain = m.words.is_empty();
        let rn = m.ctl & num::ROUND == num::RN;
        let bare = plain && m.ctl == 0 && ty == Ty::F32;
        match i.name {
            "add" if bare => return self.quick(i, Op::AddF32, ty, &[ty; 2]),
            "sub" if bare => return self.quick(i, Op::SubF32, ty, &[ty; 2]),
            "mul" if bare => return self.quick(i, Op::MulF32, ty, &[ty; 2]),
            "fma" | "mad" if bare => return self.quick(i, Op::FmaF32, ty, &[ty; 3]),
            _ => {}
        }
        let (f, n): (Option<LaneFn>, usize) = match i.name {
            "add" if plain => (by_float!(ty, add), 2),
            "sub" if plain => (by_float!(ty, sub), 2),
            "mul" if plain => (by_float!(ty, mul), 2),
            "fma" | "mad" if plain => (by_float!(ty, fma), 3),
            "min" | "max" if plain || m.words == ["xorsign"] => return self.float_minmax(i, m, ty),
            "neg" if plain && rn => (by_float!(ty, neg), 1),
            // `.abs` is a flag of other instructions; here it is the instruction.
            "abs" if plain && rn => (by_float!(ty, abs), 1),
            "div" if plain && m.rounded => {
                (if ty == Ty::F32 { Some(float::div_f32) } else { f64_only(ty, float::f64::div) }, 2)
            }
            "div" if approx || m.words == ["full"] => (f32_only(ty, approx::div_f32), 2),
            "rcp" if plain && m.rounded => {
                (if ty == Ty::F32 { Some(float::rcp_f32) } else { f64_only(ty, float::f64::rcp) }, 1)
            }
            "sqrt" if plain && m.rounded => {
                (if ty == Ty::F32 { Some(float::sqrt_f32) } else { f64_only(ty, float::f64::sqrt) }, 1)
            }
            "rcp" if approx => (if ty == Ty::F64 { Some(approx::rcp_f64) } else { f32_only(ty, approx::rcp_f32) }, 1),
            "sqrt" if approx => (f32_only(ty, approx::sqrt_f32), 1),
            "rsqrt" if approx => {
                (if ty == Ty::F64 { Some(approx::rsqrt_f64) } else { f32_only(ty, approx::rsqrt_f32) }, 1)
            }
            "sin" if approx => (f32_only(ty, approx::sin_f32), 1),
            "cos" if approx => (f32_only(ty, approx::cos_f32), 1),
            "lg2" if approx => (f32_only(ty, approx::lg2_f32), 1),
            "ex2" if approx => (
                by_width(ty, approx::ex2_f32, approx::ex2_f16, approx::ex2_f16x2, approx::ex2_bf16, approx::ex2_bf16x2),
                1,
            ),
            "tanh" if approx => (
                by_width(
                    ty,
                    approx::tanh_f32,
                    approx::tanh_f16,
                    approx::tanh_f16x2,
                    approx::tanh_bf16,
                    approx::tanh_bf16x2,
                ),
                1,
            ),
            "copysign" if plain => {
                (if ty == Ty::F32 { Some(float::copysign_f32) } else { f64_only(ty, float::copysign_f64) }, 2)
            }
            "testp" => return self.testp(i, m, ty),
            _ => (None, 0),
        };
        let f = f.ok_or_else(|| self.unsupported(i))?;
        self.uniform(i, f, m.ctl, ty, n)
    }

    fn float_minmax(&mut self, i: &Instruction<'a>, m: &Mods<'_>, ty: Ty) -> Result<()> {
        let ctl = m.ctl | if m.words.is_empty() { 0 } else { num::XORSIGN };
        let f = if i.name == "min" { by_float!(ty, min) } else { by_float!(ty, max) };
        let f = f.ok_or_else(|| self.unsupported(i))?;
        if i.operands.len() != 4 {
            return self.uniform(i, f, ctl, ty, 2);
        }
        // Three operands: the third against the result of the first two.
        let d = self.destination_of(&i.operands[0], ty)?;
        let operands = self.sources(i, &[ty; 3])?;
        let between = self.register(class(ty), ty.bits())?;
        self.lane(f, ctl, between, &operands[..2])?;
        self.lane(f, ctl, d, &[between, operands[2]])
    }

    fn testp(&mut self, i: &Instruction<'a>, m: &Mods<'_>, ty: Ty) -> Result<()> {
        let names = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
        let [word] = m.words[..] else { return Err(self.unsupported(i)) };
        let number = names.iter().position(|n| *n == word).ok_or_else(|| self.unsupported(i))? as u32;
        let f: LaneFn = match ty {
            Ty::F32 => float::testp_f32,
            Ty::F64 => float::testp_f64,
            _ => return Err(self.unsupported(i)),
        };
        self.typed(i, f, number << OWN, Ty::Pred, &[ty])
    }
}

fn f32_only(ty: Ty, f: LaneFn) -> Option<LaneFn> {
    (ty == Ty::F32).then_some(f)
}

fn f64_only(ty: Ty, f: LaneFn) -> Option<LaneFn> {
    (ty == Ty::F64).then_some(f)
}

fn by_width(ty: Ty, f32: LaneFn, f16: LaneFn, f16x2: LaneFn, bf16: LaneFn, bf16x2: LaneFn) -> Option<LaneFn> {
    Some(match ty {
        Ty::F32 => f32,
        Ty::F16 => f16,
        Ty::F16x2 => f16x2,
        Ty::Bf16 => bf16,
        Ty::Bf16x2 => bf16x2,
        _ => return None,
    })
}
