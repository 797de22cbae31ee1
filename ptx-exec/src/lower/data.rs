//! Moves, conversions, selections, comparisons.

use super::alu::{class, mods};
use super::operands::{Meaning, is_sink};
use super::special::{IS_CLUSTER, SPECIAL};
use super::{Lower, Result};
use crate::ast::{Instruction, Operand};
use crate::code::{Base, Class, Inst, Op};
use crate::error::ErrorKind;
use crate::num::{LaneFn, OWN, convert, int};
use crate::types::Ty;
use crate::vector_loop::VectorLoop;

impl<'a> Lower<'a, '_> {
    pub(super) fn data(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.name {
            "mov" => self.mov(i),
            "cvt" if i.modifiers.first() == Some(&"pack") => self.cvt_pack(i),
            "cvt" => self.cvt(i),
            "selp" => self.selp(i),
            "slct" => self.slct(i),
            "setp" => self.setp(i),
            "set" => self.set(i),
            _ => self.prmt(i),
        }
    }

    fn mov(&mut self, i: &Instruction<'a>) -> Result<()> {
        self.expect_operands(i, 2)?;
        let word = match i.modifiers[..] {
            [word] => word,
            ["v2", word] => return self.mov_vector(i, 2, word),
            ["v4", word] => return self.mov_vector(i, 4, word),
            _ => return Err(self.unsupported(i)),
        };
        let ty = Ty::parse(word).filter(|t| t.bits() <= 64).ok_or_else(|| self.unsupported(i))?;
        match (&i.operands[0], &i.operands[1]) {
            (Operand::Vector(parts), from) => self.unpack(i, ty, parts, from),
            (to, Operand::Vector(parts)) => self.pack(i, ty, to, parts),
            (to, from) if ty == Ty::Pred => {
                let d = self.destination(to, Class::Pred)?;
                let a = match from {
                    Operand::Name(IS_CLUSTER, None) => self.has_clusters()?,
                    _ => self.pred_value(from)?,
                };
                self.emit(Inst { d, a, ..Inst::new(Op::PMov) })
            }
            (_, Operand::Name(IS_CLUSTER, None)) => Err(self.malformed(i, "a predicate: the special register is one")),
            (to, from) => {
                let d = self.destination_of(to, ty)?;
                let a = match self.source(from, ty) {
                    Ok(a) => a,
                    // `mov.b64 %rd, %tid.x` and `mov.u32 %r, %clock64` keep what fits.
                    Err(e) => match from {
                        Operand::Name(name, part) if matches!(self.meaning(name, *part), Ok(Meaning::Special(_))) => {
                            let a = self.any_source(from, ty)?;
                            return self.lane(int::mov, 0, d, &[a]);
                        }
                        _ => return Err(e),
                    },
                };
                self.fast(if class(ty) == Class::W64 { Op::Mov64 } else { Op::Mov32 }, d, &[a])
            }
        }
    }

    /// `mov.v4.u32 a, %tid`, and of vectors.
    fn mov_vector(&mut self, i: &Instruction<'a>, n: usize, word: &str) -> Result<()> {
        let ty = Ty::parse(word).filter(|t| matches!(t.bits(), 8..=64)).ok_or_else(|| self.unsupported(i))?;
        let (to, from) = (self.components(i, &i.operands[0], n)?, self.components(i, &i.operands[1], n)?);
        let is_special = matches!(&i.operands[1], Operand::Name(name, None) if is_vector_special(name));
        if ty.bits() * n as u32 > 128 || is_special && (n, ty.bits(), ty.is_float()) != (4, 32, false) {
            return Err(self.unsupported(i));
        }
        // An element may be overwritten by one before it: all are read first.
        let mut read = Vec::new();
        for element in &from {
            let (a, copy) = (self.source(element, ty)?, self.register(class(ty), ty.bits())?);
            self.fast(if class(ty) == Class::W64 { Op::Mov64 } else { Op::Mov32 }, copy, &[a])?;
            read.push(copy);
        }
        for (element, a) in to.iter().zip(read).filter(|(element, _)| !is_sink(element)) {
            let d = self.destination_of(element, ty)?;
            self.fast(if class(ty) == Class::W64 { Op::Mov64 } else { Op::Mov32 }, d, &[a])?;
        }
        Ok(())
    }

    /// The `n` elements of a vector: a list in braces, or the components of a register or special register.
    fn components(&self, i: &Instruction<'a>, operand: &Operand<'a>, n: usize) -> Result<Vec<Operand<'a>>> {
        const NAMES: [&str; 4] = ["x", "y", "z", "w"];
        match operand {
            Operand::Vector(all) if all.len() == n => Ok(all.clone()),
            Operand::Name(name, None) if is_vector_special(name) && self.find(name).is_none() => {
                // The fourth is reserved, and 0.
                let all = NAMES[..3].iter().map(|part| Operand::Name(name, Some(part)));
                Ok(all.chain([Operand::Int(0)]).take(n).collect())
            }
            Operand::Name(name, None) if self.lanes_of(name) == Some(n as u32) => {
                Ok(NAMES[..n].iter().map(|part| Operand::Name(name, Some(part))).collect())
            }
            _ => Err(self.malformed(i, "vectors of as many elements")),
        }
    }

    /// `mov.b32 {a, b}, c`
    fn unpack(&mut self, i: &Instruction<'a>, ty: Ty, parts: &[Operand<'a>], from: &Operand<'a>) -> Result<()> {
        let from = self.source(from, ty)?;
        let bits = ty.bits() / parts.len().max(1) as u32;
        if !matches!(parts.len(), 2 | 4) || bits < 8 {
            return Err(self.unsupported(i));
        }
        let results = self.sinks(parts, Class::W32)?;
        for (part, register) in parts.iter().zip(&results) {
            self.is_as_wide_as(part, *register, bits)?;
        }
        if ty.bits() == 64 && bits == 32 {
            let (d, e) = (results[0], results[1]);
            self.emit(Inst { d, e, a: from, ..Inst::new(Op::Unpack64) })?;
            return Ok(());
        }
        // A part may be the register itself: it is read before any is written.
        let mut shifts = Vec::new();
        for (n, d) in results.into_iter().enumerate().filter(|(n, _)| !is_sink(&parts[*n])) {
            let shift = self.number(u64::from(bits) * n as u64)?;
            let shifted = self.register(class(ty), ty.bits())?;
            self.fast(if ty.bits() == 64 { Op::ShrU64 } else { Op::ShrU32 }, shifted, &[from, shift])?;
            shifts.push((d, shifted, bits));
        }
        for (d, shifted, mask) in shifts {
            if mask == 8 {
                let keep = self.constant(0xff, Base::Zero, self.class_of(shifted) == Class::W64)?;
                self.lane(int::and, 0, d, &[shifted, keep])?;
            } else {
                let row = if ty.bits() == 64 { VectorLoop::Low16Of64 } else { VectorLoop::Low16 };
                self.lane_as(Some(row), int::mov, 16 << OWN, d, &[shifted])?;
            }
        }
        Ok(())
    }

    /// `mov.b32 c, {a, b}`
    fn pack(&mut self, i: &Instruction<'a>, ty: Ty, to: &Operand<'a>, parts: &[Operand<'a>]) -> Result<()> {
        let d = self.destination_of(to, ty)?;
        let bits = ty.bits() / parts.len().max(1) as u32;
        let part = match bits {
            8 => Ty::B8,
            16 => Ty::B16,
            32 => Ty::B32,
            _ => return Err(self.unsupported(i)),
        };
        let mut from = Vec::new();
        for operand in parts {
            from.push(self.source(operand, part)?);
        }
        match (ty.bits(), &from[..]) {
            (64, [a, b]) => self.fast(Op::Pack64, d, &[*a, *b]),
            (32 | 16, [a, b]) => self.join(d, *a, *b, bits),
            (64 | 32, [a, b, c, e]) => {
                let half = ty.bits() / 2;
                let (low, high) = (self.register(Class::W32, half)?, self.register(Class::W32, half)?);
                self.join(low, *a, *b, bits)?;
                self.join(high, *c, *e, bits)?;
                if ty.bits() == 64 { self.fast(Op::Pack64, d, &[low, high]) } else { self.join(d, low, high, 2 * bits) }
            }
            _ => Err(self.unsupported(i)),
        }
    }

    /// d = a | b << bits, for parts of at most 16 bits.
    pub(super) fn join(&mut self, d: u32, a: u32, b: u32, bits: u32) -> Result<()> {
        let both = self.register(Class::W64, 64)?;
        self.fast(Op::Pack64, both, &[a, b])?;
        let (row, f): (_, LaneFn) = if bits == 16 { (Some(VectorLoop::Join16), join16) } else { (None, join8) };
        self.lane_as(row, f, 0, d, &[both])
    }

    fn selp(&mut self, i: &Instruction<'a>) -> Result<()> {
        self.expect_operands(i, 4)?;
        let [word] = i.modifiers[..] else { return Err(self.unsupported(i)) };
        let ty = Ty::parse(word).filter(|t| t.bits() <= 64).ok_or_else(|| self.unsupported(i))?;
        let d = self.destination_of(&i.operands[0], ty)?;
        let (a, b) = (self.source(&i.operands[1], ty)?, self.source(&i.operands[2], ty)?);
        let c = self.pred_value(&i.operands[3])?;
        self.fast(if class(ty) == Class::W64 { Op::Selp64 } else { Op::Selp32 }, d, &[a, b, c])
    }

    fn slct(&mut self, i: &Instruction<'a>) -> Result<()> {
        let m = mods(i);
        self.expect_operands(i, 4)?;
        let ([ty, by], []) = (&m.types[..], &m.words[..]) else { return Err(self.unsupported(i)) };
        let f: LaneFn = match by {
            Ty::S32 => int::slct_s32,
            Ty::F32 => int::slct_f32,
            _ => return Err(self.unsupported(i)),
        };
        let d = self.destination_of(&i.operands[0], *ty)?;
        let from =
            [self.source(&i.operands[1], *ty)?, self.source(&i.operands[2], *ty)?, self.source(&i.operands[3], *by)?];
        self.lane(f, m.ctl, d, &from)
    }

    fn prmt(&mut self, i: &Instruction<'a>) -> Result<()> {
        self.expect_operands(i, 4)?;
        let mode = match i.modifiers[..] {
            ["b32"] => 0,
            ["b32", mode] => {
                let modes = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
                1 + modes.iter().position(|m| *m == mode).ok_or_else(|| self.unsupported(i))? as u32
            }
            _ => return Err(self.unsupported(i)),
        };
        let d = self.destination_of(&i.operands[0], Ty::B32)?;
        let mut from = Vec::new();
        for operand in &i.operands[1..] {
            from.push(self.source(operand, Ty::B32)?);
        }
        self.lane(int::prmt, mode << OWN, d, &from)
    }

    fn cvt(&mut self, i: &Instruction<'a>) -> Result<()> {
        let m = mods(i);
        let ([to, from], []) = (&m.types[..], &m.words[..]) else { return Err(self.unsupported(i)) };
        let (to, from) = (*to, *from);
        let pair: Option<LaneFn> = match (to, from) {
            (Ty::F16x2, Ty::F32) => Some(convert::pair_f16),
            (Ty::Bf16x2, Ty::F32) => Some(convert::pair_bf16),
            (Ty::E4m3x2, Ty::F32) => Some(convert::pair_e4m3),
            (Ty::E5m2x2, Ty::F32) => Some(convert::pair_e5m2),
            _ => None,
        };
        if let Some(f) = pair {
            self.expect_operands(i, 3)?;
            let d = self.any_destination(&i.operands[0])?;
            self.is_as_wide(d, to)?;
            let (a, b) = (self.source(&i.operands[1], Ty::F32)?, self.source(&i.operands[2], Ty::F32)?);
            return self.lane(f, m.ctl, d, &[a, b]);
        }
        self.expect_operands(i, 2)?;
        let d = self.any_destination(&i.operands[0])?;
        self.is_as_wide(d, to)?;
        let single: Option<LaneFn> = match (to, from) {
            (Ty::Tf32, Ty::F32) => Some(convert::tf32),
            (Ty::E4m3x2, Ty::F16x2) => Some(convert::e4m3x2_f16x2),
            (Ty::E5m2x2, Ty::F16x2) => Some(convert::e5m2x2_f16x2),
            (Ty::F16x2, Ty::E4m3x2) => Some(convert::f16x2_e4m3x2),
            (Ty::F16x2, Ty::E5m2x2) => Some(convert::f16x2_e5m2x2),
            _ => None,
        };
        let a = self.any_source(&i.operands[1], from)?;
        self.is_as_wide(a, from)?;
        if let Some(f) = single {
            return self.lane(f, m.ctl, d, &[a]);
        }
        let exact = m.ctl == 0 && self.bits_of(d) == to.bits();
        match (to, from, self.class_of(a)) {
            (Ty::U64 | Ty::S64, Ty::U32, Class::W32) if exact => return self.fast(Op::Widen, d, &[a]),
            (Ty::U64 | Ty::S64, Ty::S32, Class::W32) if exact => return self.fast(Op::WidenS, d, &[a]),
            (Ty::U32 | Ty::S32, Ty::U64 | Ty::S64, Class::W64) if exact => return self.fast(Op::Narrow, d, &[a]),
            (Ty::U32 | Ty::S32, Ty::U32 | Ty::S32, Class::W32) if exact => return self.fast(Op::Mov32, d, &[a]),
            _ => {}
        }
        let own = convert::ctl(to, from, m.integral).ok_or_else(|| self.unsupported(i))?;
        // Rounding to the float's own type is to an integral value, also where it is written as `.rn`.
        self.lane(convert::scalar, m.ctl | own, d, &[a])
    }
}

impl Lower<'_, '_> {
    /// A register of a conversion may be wider than its type, but not narrower.
    fn is_as_wide(&self, register: u32, ty: Ty) -> Result<()> {
        if self.class_of(register) != Class::Pred && self.bits_of(register) >= ty.bits() {
            return Ok(());
        }
        Err(self
            .error(ErrorKind::Name, "a register does not fit the instruction's type")
            .found(format!("{} bits", self.bits_of(register)))
            .required(format!("a register of {} bits or more", ty.bits())))
    }
}

/// Whether a special register has components.
fn is_vector_special(name: &str) -> bool {
    let x = SPECIAL.iter().filter_map(|special| special.strip_suffix(".x"));
    x.into_iter().any(|special| special == name)
}

fn join16(a: u64, _: u64, _: u64, _: u32) -> u64 {
    a & 0xffff | (a >> 16) & 0xffff_0000
}

fn join8(a: u64, _: u64, _: u64, _: u32) -> u64 {
    a & 0xff | (a >> 24) & 0xff00
}
