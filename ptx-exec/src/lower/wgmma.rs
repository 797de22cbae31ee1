//! Products of a warpgroup.

use super::{Lower, Result, operands_of, push};
use crate::ast::{Instruction, Operand};
use crate::code::{Draft, Inst, Op};
use crate::code_async::WgmmaInfo;
use crate::types::Ty;

/// Marks the instructions that read or write a register that `wgmma` works on.
pub(in super::super) fn touches(code: &mut Draft) {
    let mut works_on = vec![false; code.rows as usize];
    for inst in code.insts.iter().filter(|i| i.op == Op::Wgmma) {
        for r in code.listed(inst) {
            works_on[*r as usize] = true;
        }
    }
    if !works_on.contains(&true) {
        return;
    }
    let mut touches = vec![0; code.insts.len()];
    for (inst, touches) in code.insts.iter().zip(&mut touches) {
        let classes = crate::proof::classes(code, inst);
        operands_of(code, inst, classes, |r, writes| {
            if works_on.get(r as usize) == Some(&true) {
                *touches |= if writes { 2 } else { 1 };
            }
        });
    }
    code.asyncs.touches = touches;
}

/// Elements of K that one instruction takes, if its types go together.
pub(in super::super) fn depth(d: Ty, a: Ty, b: Ty) -> Option<u32> {
    use Ty::{Bf16, E4m3, E5m2, F16, F32, S8, S32, Tf32, U8};
    match (d, a, b) {
        (F16 | F32, F16, F16) | (F32, Bf16, Bf16) => Some(16),
        (F32, Tf32, Tf32) => Some(8),
        (F16 | F32, E4m3 | E5m2, E4m3 | E5m2) | (S32, S8 | U8, S8 | U8) => Some(32),
        _ => None,
    }
}

impl<'a> Lower<'a, '_> {
    pub(super) fn wgmma(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.modifiers[..] {
            ["fence", "sync", "aligned"] => self.emit(Inst::new(Op::WgmmaFence)),
            ["commit_group", "sync", "aligned"] => self.emit(Inst::new(Op::WgmmaCommit)),
            ["wait_group", "sync", "aligned"] => {
                let [Operand::Int(n)] = i.operands[..] else { return Err(self.malformed(i, "a number of groups")) };
                let x = u32::try_from(n).ok().filter(|n| *n <= 7);
                let x = x.ok_or_else(|| self.malformed(i, "0 to 7 groups"))?;
                self.emit(Inst { x, ..Inst::new(Op::WgmmaWait) })
            }
            ["mma_async", "sync", "aligned", shape, d, a, b] => self.mma_async(i, [shape, d, a, b], false),
            ["mma_async", "sync", "aligned", shape, "satfinite", d, a, b] => self.mma_async(i, [shape, d, a, b], true),
            ["mma_async", "sync", "aligned", shape, d, a, b, "satfinite"] => self.mma_async(i, [shape, d, a, b], true),
            _ => Err(self.unsupported(i)),
        }
    }

    fn mma_async(&mut self, i: &Instruction<'a>, [shape, d, a, b]: [&str; 4], saturate: bool) -> Result<()> {
        let ty = |l: &Self, word: &str| Ty::parse(word).ok_or_else(|| l.unsupported(i));
        let (d, a, b) = (ty(self, d)?, ty(self, a)?, ty(self, b)?);
        let numbers: Vec<u32> = shape.split(['m', 'n', 'k']).filter_map(|n| n.parse().ok()).collect();
        let [64, n, k] = numbers[..] else { return Err(self.unsupported(i)) };
        let integers = d == Ty::S32;
        // PTX ISA, "Register Fragments and Shared Memory Matrix Layouts": integers have no n of 40, 56, 72 and so on.
        let has_n = n % 8 == 0 && (8..=256).contains(&n) && (!integers || n <= 32 || n % 16 == 0);
        if depth(d, a, b) != Some(k) || !has_n || saturate && !integers {
            return Err(self.unsupported(i));
        }
        let [to, from_a, from_b, rest @ ..] = &i.operands[..] else { return Err(self.malformed(i, "D, A and B")) };
        let mut inst = Inst::new(Op::Wgmma);
        let mut list = Vec::new();
        let Operand::Vector(to) = to else { return Err(self.malformed(i, "registers of D")) };
        let d_registers = if d == Ty::F16 { n / 4 } else { n / 2 };
        if to.len() != d_registers as usize {
            return Err(self.malformed(i, &format!("{d_registers} registers of D")));
        }
        for e in to {
            list.push(self.destination_of(e, Ty::B32)?);
        }
        let mut a_registers = 0;
        if let Operand::Vector(from) = from_a {
            a_registers = 4;
            if from.len() != 4 {
                return Err(self.malformed(i, "4 registers of A"));
            }
            for e in from {
                list.push(self.source(e, Ty::B32)?);
            }
        } else {
            inst.a = self.source(from_a, Ty::B64)?;
        }
        inst.b = self.source(from_b, Ty::B64)?;
        let numbers = match rest.split_first() {
            None => Vec::new(),
            Some((scale, rest)) => {
                inst.c = self.pred_value(scale)?;
                let number = |o: &Operand<'a>| match o {
                    Operand::Int(n @ -1..=1) => Ok(*n),
                    _ => Err(self.malformed(i, "-1, 0 or 1")),
                };
                rest.iter().map(number).collect::<Result<Vec<i128>>>()?
            }
        };
        let halves = a.bits() == 16;
        let of_a = usize::from(a_registers == 0);
        let expected = if integers { 0 } else { 2 + if halves { 1 + of_a } else { 0 } };
        if numbers.len() != expected && !(numbers.is_empty() && rest.len() <= 1) {
            return Err(self.malformed(i, "the signs of A and B, and their majors"));
        }
        let number = |at: usize| numbers.get(at).copied();
        let transposed = |at: usize| halves && number(at) == Some(1);
        let info = WgmmaInfo {
            n,
            k,
            d,
            a,
            b,
            a_mn: of_a == 1 && transposed(2),
            b_mn: transposed(2 + of_a),
            negate_a: number(0) == Some(-1),
            negate_b: number(1) == Some(-1),
            saturate,
            d_registers,
            a_registers,
        };
        inst.x = push(&mut self.code.asyncs.wgmmas, info);
        (inst.list, inst.len) = (self.list(&list), list.len() as u8);
        self.emit(inst)
    }
}
