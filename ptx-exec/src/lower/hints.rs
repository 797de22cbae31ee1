//! Cache hints: policies, prefetches, priorities. Only `discard` changes a result.

use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{Class, Inst, MemInfo, Op};
use crate::types::{Space, Ty};

/// Eviction priorities of an access: primary and secondary.
const PRIMARY: [&str; 4] = ["L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"];
const SECONDARY: [&str; 2] = ["L2::evict_first", "L2::evict_unchanged"];
/// Bytes that `discard` and `applypriority` take at once.
const LINE: u32 = 128;

impl<'a> Lower<'a, '_> {
    /// `createpolicy`: a value that accesses with `.L2::cache_hint` take, and that nothing else may look into.
    pub(super) fn create_policy(&mut self, i: &Instruction<'a>) -> Result<()> {
        let (kind, rest) = match &i.modifiers[..] {
            ["cvt", "L2", "b64"] => ("cvt", &[][..]),
            [kind, rest @ .., "b64"] => (*kind, rest),
            _ => return Err(self.unsupported(i)),
        };
        let rest = if kind == "range" { rest.strip_prefix(&["global"]).unwrap_or(rest) } else { rest };
        let is_known = match rest {
            [] => kind == "cvt",
            [first] => PRIMARY.contains(first),
            [first, second] => PRIMARY.contains(first) && SECONDARY.contains(second),
            _ => false,
        };
        if !is_known {
            return Err(self.unsupported(i));
        }
        let d = self.destination(self.operand(i, 0)?, Class::W64)?;
        let policy = match (kind, &i.operands[1..]) {
            ("fractional", []) => self.number64(0)?,
            ("fractional", [fraction]) => {
                self.source(fraction, Ty::F32)?;
                self.number64(0)?
            }
            ("range", [address, primary, total]) => {
                self.address(address)?;
                self.source(primary, Ty::U32)?;
                self.source(total, Ty::U32)?;
                self.number64(0)?
            }
            ("cvt", [property]) => self.source(property, Ty::B64)?,
            ("fractional" | "range" | "cvt", _) => {
                return Err(self.malformed(i, "a register and the operands of the policy"));
            }
            _ => return Err(self.unsupported(i)),
        };
        self.fast(Op::Mov64, d, &[policy])
    }

    /// The operands without the policy that `.L2::cache_hint` asks for.
    pub(super) fn without_policy<'i>(&mut self, i: &'i Instruction<'a>) -> Result<&'i [Operand<'a>]> {
        if !i.modifiers.contains(&"L2::cache_hint") {
            return Ok(&i.operands);
        }
        let Some((policy, rest)) = i.operands.split_last() else {
            return Err(self.malformed(i, "a cache policy as the last operand"));
        };
        self.source(policy, Ty::B64)?;
        Ok(rest)
    }

    pub(super) fn prefetch(&mut self, i: &Instruction<'a>) -> Result<()> {
        let of_line = match (i.name, &i.modifiers[..]) {
            ("prefetch", ["global" | "local", "L1" | "L2"] | ["L1" | "L2"])
            | ("prefetch", ["global", "L2::evict_last" | "L2::evict_normal"])
            | ("prefetchu", ["L1"]) => false,
            ("applypriority", ["global", "L2::evict_normal"] | ["L2::evict_normal"])
            | ("discard", ["global", "L2"] | ["L2"]) => true,
            _ => return Err(self.unsupported(i)),
        };
        match (of_line, i.operands.get(1..).unwrap_or_default()) {
            (false, []) => {}
            (true, [Operand::Int(bytes)]) if *bytes == i128::from(LINE) => {}
            (false, _) => return Err(self.malformed(i, "an address")),
            (true, _) => return Err(self.malformed(i, "an address and 128 bytes")),
        }
        // Its operand is still a name that has to be declared.
        let (a, offset, _) = self.address(self.operand(i, 0)?)?;
        if i.name != "discard" {
            return self.emit(Inst::new(Op::Nop));
        }
        let space = if i.modifiers.len() == 2 { Space::Global } else { Space::Generic };
        let mem = MemInfo::weak(space, LINE, self.class_of(a) == Class::W64, offset);
        let x = push(&mut self.code.mems, mem);
        self.emit(Inst { a, x, ..Inst::new(Op::Discard) })
    }
}
