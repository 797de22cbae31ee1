//! Tensor maps in memory: `tensormap.replace`, its publication, fences of the tensormap proxy, `prefetch.tensormap`.

use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{Class, Inst, Op, Scope};
use crate::code_async::{MapInfo, MapOp};
use crate::map_image::{Field, MAP_BYTES};
use crate::types::{Space, Ty};

/// Whether an instruction is one of this file's.
pub(super) fn is_one(i: &Instruction<'_>) -> bool {
    match i.name {
        "tensormap" => true,
        "fence" => i.modifiers.first() == Some(&"proxy") && i.modifiers.contains(&"tensormap::generic"),
        "prefetch" => i.modifiers.contains(&"tensormap"),
        _ => false,
    }
}

impl<'a> Lower<'a, '_> {
    pub(super) fn tensormap(&mut self, i: &Instruction<'a>) -> Result<()> {
        match (i.name, &i.modifiers[..]) {
            ("prefetch", ["tensormap"] | ["param" | "const", "tensormap"]) => {
                self.expect_operands(i, 1)?;
                self.map_fence(i, MapOp::Prefetch)
            }
            ("fence", ["proxy", "tensormap::generic", "release", word]) => {
                self.expect_operands(i, 0)?;
                let scope = self.map_scope(i, word)?;
                self.map_fence(i, MapOp::Release(scope))
            }
            ("fence", ["proxy", "tensormap::generic", "acquire", word]) => {
                self.expect_operands(i, 2)?;
                let scope = self.map_scope(i, word)?;
                self.map_size(i, 1)?;
                self.map_fence(i, MapOp::Acquire(scope))
            }
            ("tensormap", ["cp_fenceproxy", rest @ ..]) => self.map_copy(i, rest),
            ("tensormap", ["replace", rest @ ..]) => self.map_replace(i, rest),
            _ => Err(self.unsupported(i)),
        }
    }

    fn map_scope(&self, i: &Instruction<'a>, word: &str) -> Result<Scope> {
        Scope::parse(word).ok_or_else(|| self.unsupported(i))
    }

    /// The size of a map, which has to stand there.
    fn map_size(&self, i: &Instruction<'a>, at: usize) -> Result<()> {
        match i.operands.get(at) {
            Some(Operand::Int(n)) if *n == i128::from(MAP_BYTES) => Ok(()),
            _ => Err(self.malformed(i, "128 as the size of the map")),
        }
    }

    /// A fence of the tensormap proxy, with or without an address.
    fn map_fence(&mut self, i: &Instruction<'a>, op: MapOp) -> Result<()> {
        let (mut inst, mut info) = (Inst::new(Op::Map), MapInfo::new(op));
        if let Some(address) = i.operands.first() {
            (inst.a, info.offset, _) = self.address(address)?;
            info.address64 = self.class_of(inst.a) == Class::W64;
        }
        self.emit_map(inst, info)
    }

    fn emit_map(&mut self, mut inst: Inst, info: MapInfo) -> Result<()> {
        inst.x = push(&mut self.code.asyncs.maps, info);
        self.emit(inst)
    }

    fn map_copy(&mut self, i: &Instruction<'a>, words: &[&str]) -> Result<()> {
        let ["global", "shared::cta", "tensormap::generic", "release", word, "sync", "aligned"] = words[..] else {
            return Err(self.unsupported(i));
        };
        self.expect_operands(i, 3)?;
        let scope = self.map_scope(i, word)?;
        self.map_size(i, 2)?;
        let (mut inst, mut info) = (Inst::new(Op::Map), MapInfo::new(MapOp::Copy(scope)));
        (inst.a, info.offset, _) = self.address(&i.operands[0])?;
        (inst.b, info.from_offset, _) = self.address(&i.operands[1])?;
        info.address64 = self.class_of(inst.a) == Class::W64;
        info.b64 = self.class_of(inst.b) == Class::W64;
        self.emit_map(inst, info)
    }

    fn map_replace(&mut self, i: &Instruction<'a>, words: &[&str]) -> Result<()> {
        let (mut field, mut space, mut ty, mut modes, mut sizes) = (None, Space::Generic, None, 0, 0);
        for word in words {
            match *word {
                "tile" => modes += 1,
                "b1024" => sizes += 1,
                "global" => space = Space::Global,
                "shared::cta" => space = Space::Shared,
                "b32" => ty = Some(Ty::B32),
                "b64" => ty = Some(Ty::B64),
                word if field.is_none() => field = Field::parse(word),
                _ => return Err(self.unsupported(i)),
            }
        }
        let (Some(field), Some(ty)) = (field, ty) else { return Err(self.unsupported(i)) };
        let n = 3 + usize::from(space != Space::Generic) + 1;
        if (ty == Ty::B64) != field.is_wide() || (modes, sizes, words.len()) != (1, 1, n) {
            return Err(self.unsupported(i));
        }
        let has_mode = field.modes() > 0;
        self.expect_operands(i, 2 + usize::from(has_mode))?;
        let mode = match i.operands[1] {
            _ if !has_mode => 0,
            Operand::Int(n) if (0..i128::from(field.modes())).contains(&n) => n as u32,
            _ => return Err(self.malformed(i, "the number of a mode, 0 to 4")),
        };
        let value = &i.operands[1 + usize::from(has_mode)];
        if let Some(most) = field.most_literal()
            && !matches!(value, Operand::Int(n) if (0..=i128::from(most)).contains(n))
        {
            return Err(self.malformed(i, &format!("a number from 0 to {most} as the value")));
        }
        let (mut inst, mut info) = (Inst::new(Op::Map), MapInfo::new(MapOp::Replace { field, mode, space }));
        (inst.a, info.offset, _) = self.address(&i.operands[0])?;
        inst.b = self.source(value, ty)?;
        (info.address64, info.b64) = (self.class_of(inst.a) == Class::W64, ty == Ty::B64);
        self.emit_map(inst, info)
    }
}
