//! Barriers, and warp-wide instructions.

use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{BarInfo, Class, Inst, NONE, Op, RedMode, ShflMode, VoteMode};
use crate::types::Ty;

impl<'a> Lower<'a, '_> {
    pub(super) fn sync(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.name {
            "bar" | "barrier" => self.barrier(i),
            "shfl" => self.shfl(i),
            "vote" => self.vote(i),
            "match" => self.match_any(i),
            "redux" => self.redux(i),
            "activemask" => {
                self.expect_operands(i, 1)?;
                let d = self.destination_of(&i.operands[0], Ty::B32)?;
                self.emit(Inst { d, ..Inst::new(Op::ActiveMask) })
            }
            "elect" => {
                self.expect_operands(i, 2)?;
                let Operand::Pair(d, p) = &i.operands[0] else { return Err(self.malformed(i, "d|p and a mask")) };
                let (d, e) = (self.sink_of(d, Ty::B32)?, self.destination(p, Class::Pred)?);
                let a = self.source(&i.operands[1], Ty::B32)?;
                self.emit(Inst { d, e, a, ..Inst::new(Op::Elect) })
            }
            // Dependent launches run one after the other here.
            "griddepcontrol" => match i.modifiers[..] {
                ["wait"] => self.emit(Inst::new(Op::GridWait)),
                ["launch_dependents"] => self.emit(Inst::new(Op::Nop)),
                _ => Err(self.unsupported(i)),
            },
            _ => Err(self.unsupported(i)),
        }
    }

    fn barrier(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers.clone();
        words.retain(|w| *w != "cta");
        if words == ["warp", "sync"] {
            self.expect_operands(i, 1)?;
            let a = self.source(&i.operands[0], Ty::B32)?;
            self.emit(Inst { a, ..Inst::new(Op::WarpSync) })?;
            return Ok(());
        }
        let aligned = i.name == "bar" || words.contains(&"aligned");
        words.retain(|w| *w != "aligned");
        let (op, red) = match &words[..] {
            ["sync"] => (Op::Bar, RedMode::Sync),
            ["arrive"] => (Op::BarArrive, RedMode::Sync),
            ["red", "popc", "u32"] => (Op::BarRed, RedMode::Popc),
            ["red", "and", "pred"] => (Op::BarRed, RedMode::And),
            ["red", "or", "pred"] => (Op::BarRed, RedMode::Or),
            _ => return Err(self.unsupported(i)),
        };
        let mut operands = &i.operands[..];
        let mut inst = Inst::new(op);
        if op == Op::BarRed {
            let Some((d, rest)) = operands.split_first() else { return Err(self.malformed(i, "a result")) };
            inst.d = self.destination(d, if red == RedMode::Popc { Class::W32 } else { Class::Pred })?;
            operands = rest;
        }
        let mut negate = false;
        if op == Op::BarRed {
            let Some((p, rest)) = operands.split_last() else { return Err(self.malformed(i, "a predicate")) };
            (inst.c, negate) = match p {
                Operand::Int(_) => (self.pred_value(p)?, false),
                _ => self.predicate_operand(p)?,
            };
            operands = rest;
        }
        let Some(number) = operands.first() else { return Err(self.malformed(i, "the barrier's number")) };
        inst.a = self.source(number, Ty::U32)?;
        match operands.get(1) {
            Some(count) => inst.b = self.source(count, Ty::U32)?,
            None if op == Op::BarArrive => return Err(self.malformed(i, "a number of threads")),
            None => {}
        }
        if operands.len() > 2 {
            return Err(self.malformed(i, "at most a number and a count"));
        }
        inst.x = push(&mut self.code.bars, BarInfo { aligned, red, negate });
        self.emit(inst)
    }

    fn shfl(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mode = match i.modifiers[..] {
            ["sync", mode, "b32" | "u32" | "s32" | "f32"] | [mode, "sync", "b32"] => mode,
            _ => return Err(self.unsupported(i)),
        };
        let mode = ShflMode::parse(mode).ok_or_else(|| self.unsupported(i))?;
        self.expect_operands(i, 5)?;
        let (d, e) = match &i.operands[0] {
            Operand::Pair(d, p) => (self.destination_of(d, Ty::B32)?, self.sink(p, Class::Pred)?),
            d => (self.destination_of(d, Ty::B32)?, NONE),
        };
        let mut from = Vec::new();
        for operand in &i.operands[1..] {
            from.push(self.source(operand, Ty::B32)?);
        }
        let list = self.list(&from[3..]);
        self.emit(Inst {
            d,
            e,
            a: from[0],
            b: from[1],
            c: from[2],
            list,
            len: 1,
            x: mode as u32,
            ..Inst::new(Op::Shfl)
        })
    }

    fn vote(&mut self, i: &Instruction<'a>) -> Result<()> {
        // ptxas takes `vote.ballot.sync`, which CUB writes, as well as `vote.sync.ballot`.
        let mut words = i.modifiers.clone();
        if words.get(1) == Some(&"sync") {
            words.swap(0, 1);
        }
        let ["sync", mode, ty] = words[..] else { return Err(self.unsupported(i)) };
        let mode = VoteMode::parse(mode).filter(|mode| (*mode == VoteMode::Ballot) == (ty == "b32"));
        let mode = mode.filter(|_| matches!(ty, "pred" | "b32")).ok_or_else(|| self.unsupported(i))?;
        let to = if mode == VoteMode::Ballot { Class::W32 } else { Class::Pred };
        self.expect_operands(i, 3)?;
        let d = self.destination(&i.operands[0], to)?;
        self.is_as_wide_as(&i.operands[0], d, 32)?;
        let a = self.pred_value(&i.operands[1])?;
        let b = self.source(&i.operands[2], Ty::B32)?;
        self.emit(Inst { d, a, b, x: mode as u32, ..Inst::new(Op::Vote) })
    }

    fn match_any(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers.clone();
        if words.first() == Some(&"sync") && words.len() > 1 {
            words.swap(0, 1);
        }
        let (all, ty) = match words[..] {
            ["any", "sync", "b32"] => (false, Ty::B32),
            ["any", "sync", "b64"] => (false, Ty::B64),
            ["all", "sync", "b32"] => (true, Ty::B32),
            ["all", "sync", "b64"] => (true, Ty::B64),
            _ => return Err(self.unsupported(i)),
        };
        self.expect_operands(i, 3)?;
        let (d, e) = match &i.operands[0] {
            Operand::Pair(d, p) if all => (self.sink_of(d, Ty::B32)?, self.sink(p, Class::Pred)?),
            d if all => (self.sink_of(d, Ty::B32)?, NONE),
            d => (self.destination_of(d, Ty::B32)?, NONE),
        };
        let a = self.source(&i.operands[1], ty)?;
        let b = self.source(&i.operands[2], Ty::B32)?;
        let x = u32::from(all) | u32::from(ty == Ty::B64) << 1;
        self.emit(Inst { d, e, a, b, x, ..Inst::new(Op::Match) })
    }

    fn redux(&mut self, i: &Instruction<'a>) -> Result<()> {
        let x = match i.modifiers[..] {
            ["sync", "add", "u32" | "s32"] => 0,
            ["sync", "min", "u32"] => 1,
            ["sync", "max", "u32"] => 2,
            ["sync", "min", "s32"] => 3,
            ["sync", "max", "s32"] => 4,
            ["sync", "and", "b32"] => 5,
            ["sync", "or", "b32"] => 6,
            ["sync", "xor", "b32"] => 7,
            _ => return Err(self.unsupported(i)),
        };
        self.expect_operands(i, 3)?;
        let d = self.destination_of(&i.operands[0], Ty::B32)?;
        let (a, b) = (self.source(&i.operands[1], Ty::B32)?, self.source(&i.operands[2], Ty::B32)?);
        self.emit(Inst { d, a, b, x, ..Inst::new(Op::Redux) })
    }
}
