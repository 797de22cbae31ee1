//! Comparisons: `setp` gives predicates, `set` gives numbers. PTX ISA, "Comparison and Selection Instructions".

use super::alu::{class, mods};
use super::operands::is_sink;
use super::special::{IS_CLUSTER, SPECIAL};
use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{Class, Combine, Inst, NONE, Op, SetpInfo};
use crate::num::{FTZ, LaneFn, OWN, by_integer, float, half2, int};
use crate::types::Ty;

const COMPARISONS: [&str; 14] =
    ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

/// A comparison.
struct Comparison {
    ty: Ty,
    cmp: u32,
    ctl: u32,
    combine: Option<Combine>,
    /// Registers; the predicate that the result is combined with, and whether that is negated.
    from: [u32; 3],
    negate_c: bool,
}

/// The value that `set` writes for true, by type; `None` for types that `set` does not have.
fn holds(to: Ty, ty: Ty) -> Option<u64> {
    let is_half = matches!(ty, Ty::F16 | Ty::Bf16);
    Some(match to {
        Ty::U32 | Ty::S32 if packed(ty) => 0xffff,
        Ty::F16x2 if ty == to => 0x3c00,
        Ty::Bf16x2 if ty == to => 0x3f80,
        _ if packed(ty) => return None,
        Ty::U32 | Ty::S32 => 0xffff_ffff,
        Ty::U16 | Ty::S16 if is_half => 0xffff,
        Ty::F32 if !is_half => 0x3f80_0000,
        Ty::F16 if ty != Ty::Bf16 => 0x3c00,
        Ty::Bf16 => 0x3f80,
        _ => return None,
    })
}

fn packed(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::Bf16x2)
}

impl<'a> Lower<'a, '_> {
    pub(super) fn setp(&mut self, i: &Instruction<'a>) -> Result<()> {
        let (of, types) = self.comparison(i)?;
        if types != 1 {
            return Err(self.unsupported(i));
        }
        let (d, e) = match &i.operands[0] {
            Operand::Pair(p, q) if is_sink(p) && is_sink(q) => {
                return Err(self.malformed(i, "at most one result that is discarded"));
            }
            Operand::Pair(p, q) => (self.sink(p, Class::Pred)?, self.sink(q, Class::Pred)?),
            p => (self.sink(p, Class::Pred)?, NONE),
        };
        if !packed(of.ty) {
            return self.emit_comparison(i, &of, [d, e]);
        }
        // The predicate that they are combined with may be one of the results.
        let both = self.compare_halves(&of)?;
        for (d, a) in [d, e].into_iter().zip(both).filter(|(d, _)| *d != NONE) {
            self.emit(Inst { d, a, ..Inst::new(Op::PMov) })?;
        }
        Ok(())
    }

    pub(super) fn set(&mut self, i: &Instruction<'a>) -> Result<()> {
        let (of, types) = self.comparison(i)?;
        let to = mods(i).types.first().copied().filter(|_| types == 2).ok_or_else(|| self.unsupported(i))?;
        let one = holds(to, of.ty).ok_or_else(|| self.unsupported(i))?;
        let d = self.destination_of(&i.operands[0], to)?;
        let zero = self.number(0)?;
        let high = self.number(one << 16)?;
        let one = self.number(one)?;
        if !packed(of.ty) {
            let p = self.register(Class::Pred, 1)?;
            self.emit_comparison(i, &of, [p, NONE])?;
            return self.fast(Op::Selp32, d, &[one, zero, p]);
        }
        let [p, q] = self.compare_halves(&of)?;
        let (a, b) = (self.register(Class::W32, 32)?, self.register(Class::W32, 32)?);
        self.fast(Op::Selp32, a, &[one, zero, p])?;
        self.fast(Op::Selp32, b, &[high, zero, q])?;
        self.fast(Op::Or32, d, &[a, b])
    }

    /// The comparison of an instruction, and the number of types in its name.
    fn comparison(&mut self, i: &Instruction<'a>) -> Result<(Comparison, usize)> {
        let m = mods(i);
        let (Some(ty), Some(word)) = (m.types.last().copied(), m.words.first()) else {
            return Err(self.unsupported(i));
        };
        let unsigned = ["lo", "ls", "hi", "hs"].iter().position(|n| n == word).map(|n| [2, 3, 4, 5][n]);
        let cmp = unsigned.or_else(|| COMPARISONS.iter().position(|n| n == word));
        let cmp = cmp.ok_or_else(|| self.unsupported(i))? as u32;
        let combine = match m.words.get(1) {
            None => None,
            Some(&"and") => Some(Combine::And),
            Some(&"or") => Some(Combine::Or),
            Some(&"xor") => Some(Combine::Xor),
            Some(_) => return Err(self.unsupported(i)),
        };
        self.expect_operands(i, if combine.is_some() { 4 } else { 3 })?;
        let only_unsigned = unsigned.is_some() && !matches!(ty, Ty::U16 | Ty::U32 | Ty::U64);
        let only_equality = matches!(ty, Ty::B16 | Ty::B32 | Ty::B64) && cmp > 1;
        let may_flush = matches!(ty, Ty::F32 | Ty::F16 | Ty::F16x2);
        if m.words.len() > 2
            || !ty.is_float() && cmp > 5
            || only_unsigned
            || only_equality
            || m.rounded
            || m.ctl & !FTZ != 0
            || m.ctl & FTZ != 0 && !may_flush
        {
            return Err(self.unsupported(i));
        }
        let (a, b) = (self.source(&i.operands[1], ty)?, self.source(&i.operands[2], ty)?);
        let (c, negate_c) = match (combine, i.operands.get(3)) {
            (Some(_), Some(operand @ Operand::Int(_))) => (self.pred_value(operand)?, false),
            (Some(_), Some(operand)) => self.predicate_operand(operand)?,
            _ => (NONE, false),
        };
        Ok((Comparison { ty, cmp, ctl: m.ctl, combine, from: [a, b, c], negate_c }, m.types.len()))
    }

    fn emit_comparison(&mut self, i: &Instruction<'a>, of: &Comparison, d: [u32; 2]) -> Result<()> {
        let f: Option<LaneFn> = match of.ty {
            Ty::F32 => Some(float::f32::set),
            Ty::F16 => Some(float::f16::set),
            Ty::Bf16 => Some(float::bf16::set),
            Ty::F64 => Some(float::f64::set),
            _ => by_integer!(of.ty, set),
        };
        let f = f.ok_or_else(|| self.unsupported(i))?;
        let op = match of.ty {
            Ty::S32 => Op::SetpS32,
            Ty::U32 | Ty::B32 => Op::SetpU32,
            Ty::S64 => Op::SetpS64,
            Ty::U64 | Ty::B64 => Op::SetpU64,
            Ty::F32 if of.ctl == 0 => Op::SetpF32,
            _ => Op::SetpLane,
        };
        self.compared(of, op, f, d)
    }

    /// Predicates of the low and of the high halves.
    fn compare_halves(&mut self, of: &Comparison) -> Result<[u32; 2]> {
        let by: [LaneFn; 2] = match of.ty {
            Ty::F16x2 => [half2::f16x2::set_low, half2::f16x2::set_high],
            _ => [half2::bf16x2::set_low, half2::bf16x2::set_high],
        };
        let both = [self.register(Class::Pred, 1)?, self.register(Class::Pred, 1)?];
        for (f, d) in by.into_iter().zip(both) {
            self.compared(of, Op::SetpLane, f, [d, NONE])?;
        }
        Ok(both)
    }

    /// Whether the launch has clusters, as a predicate.
    pub(super) fn has_clusters(&mut self) -> Result<u32> {
        let number = SPECIAL.iter().position(|name| *name == IS_CLUSTER).unwrap_or_default();
        let (value, zero) = (self.special(number as u32)?, self.number(0)?);
        let is_not =
            Comparison { ty: Ty::U32, cmp: 1, ctl: 0, combine: None, from: [value, zero, NONE], negate_c: false };
        let register = self.register(Class::Pred, 1)?;
        self.compared(&is_not, Op::SetpU32, int::u32::set, [register, NONE])?;
        Ok(register)
    }

    fn compared(&mut self, of: &Comparison, op: Op, f: LaneFn, [d, e]: [u32; 2]) -> Result<()> {
        let Comparison { ty, cmp, ctl, combine, from: [a, b, c], negate_c } = *of;
        let wide = class(ty) == Class::W64;
        let x = push(&mut self.code.setps, SetpInfo { f, ctl: ctl | cmp << OWN, wide, cmp, combine, negate_c });
        self.emit(Inst { d, e, a, b, c, x, ..Inst::new(op) })
    }
}
