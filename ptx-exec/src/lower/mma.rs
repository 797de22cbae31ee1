//! Matrix instructions of a warp.

use super::alu::class;
use super::{Lower, Result, push};
use crate::ast::Instruction;
use crate::code::{Class, Inst, MatrixInfo, MemInfo, MmaInfo, Op};
use crate::num;
use crate::types::{Space, Ty};

impl<'a> Lower<'a, '_> {
    pub(super) fn matrix(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.name {
            "ldmatrix" | "stmatrix" => self.ldmatrix(i),
            "movmatrix" => {
                if i.modifiers != ["sync", "aligned", "m8n8", "trans", "b16"] {
                    return Err(self.unsupported(i));
                }
                self.expect_operands(i, 2)?;
                let d = self.destination_of(&i.operands[0], Ty::B32)?;
                let a = self.source(&i.operands[1], Ty::B32)?;
                self.emit(Inst { d, a, ..Inst::new(Op::MovMatrix) })
            }
            _ => self.mma(i),
        }
    }

    fn ldmatrix(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers.clone();
        let before = words.len();
        words.retain(|w| *w != "trans");
        let transposed = words.len() != before;
        // CUTLASS writes the number first, and ptxas takes it.
        if words.get(3) == Some(&"m8n8") {
            words.swap(2, 3);
        }
        let (number, space) = match &words[..] {
            ["sync", "aligned", "m8n8", number, "shared" | "shared::cta", "b16"] => (*number, Space::Shared),
            ["sync", "aligned", "m8n8", number, "b16"] => (*number, Space::Generic),
            _ => return Err(self.unsupported(i)),
        };
        let count = match number {
            "x1" => 1,
            "x2" => 2,
            "x4" => 4,
            _ => return Err(self.unsupported(i)),
        };
        self.expect_operands(i, 2)?;
        let is_load = i.name == "ldmatrix";
        let (registers, address) =
            if is_load { (&i.operands[0], &i.operands[1]) } else { (&i.operands[1], &i.operands[0]) };
        let (a, offset, _) = self.address(address)?;
        let all = registers.elements();
        if all.len() != count as usize {
            return Err(self.malformed(i, "as many registers as matrices"));
        }
        let list: Vec<u32> = if is_load {
            let list = self.sinks(all, Class::W32)?;
            for (operand, register) in all.iter().zip(&list) {
                self.is_as_wide_as(operand, *register, 32)?;
            }
            list
        } else {
            all.iter().map(|operand| self.source(operand, Ty::B32)).collect::<Result<_>>()?
        };
        let mem = MemInfo::weak(space, 16, self.class_of(a) == Class::W64, offset);
        let x = push(&mut self.code.matrices, MatrixInfo { count, transposed, mem });
        let at = self.list(&list);
        let (op, defs) = if is_load { (Op::LdMatrix, count as u8) } else { (Op::StMatrix, 0) };
        self.emit(Inst { a, list: at, len: count as u8, defs, x, ..Inst::new(op) })
    }

    fn mma(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers.clone();
        let saturate = words.contains(&"satfinite");
        let (is_xor, is_and) = (words.contains(&"xor"), words.contains(&"and"));
        words.retain(|w| !matches!(*w, "satfinite" | "xor" | "and" | "popc"));
        let mut round = num::RN;
        if let Some(at) = words.iter().position(|w| matches!(*w, "rn" | "rz" | "rm" | "rp")) {
            round = match words.remove(at) {
                "rz" => num::RZ,
                "rm" => num::RM,
                "rp" => num::RP,
                _ => num::RN,
            };
            if at != 5 || words.last() != Some(&"f64") {
                return Err(self.unsupported(i));
            }
        }
        let ["sync", "aligned", shape, a_layout @ ("row" | "col"), b_layout @ ("row" | "col"), d, a, b, c] = words[..]
        else {
            return Err(self.unsupported(i));
        };
        let ty = |l: &Self, word: &str| Ty::parse(word).ok_or_else(|| l.unsupported(i));
        let (d, a, b, c) = (ty(self, d)?, ty(self, a)?, ty(self, b)?, ty(self, c)?);
        let numbers: Vec<u32> = shape.split(['m', 'n', 'k']).filter_map(|n| n.parse().ok()).collect();
        let [m, n, k] = numbers[..] else { return Err(self.unsupported(i)) };
        let info = MmaInfo {
            m,
            n,
            k,
            d,
            a,
            b,
            c,
            a_column: a_layout == "col",
            b_column: b_layout == "col",
            saturate,
            is_and,
            round,
        };
        if !crate::machine::products::mma::is_known(&info) || (is_xor || is_and) != (a == Ty::B1) {
            return Err(self.unsupported(i));
        }
        self.expect_operands(i, 4)?;
        // 32 lanes share each matrix; packed types fill registers.
        let counts = crate::machine::products::mma::registers(&info);
        let mut list = Vec::new();
        for (n, operand) in i.operands.iter().enumerate() {
            let all = operand.elements();
            if all.len() != counts[n] as usize {
                return Err(self.malformed(i, &format!("{} registers in operand {}", counts[n], n + 1)));
            }
            let of = [d, a, b, c][n];
            // Elements of less than 32 bits come packed.
            let of = match of {
                Ty::F64 => Ty::F64,
                Ty::F32 if n == 0 || n == 3 => Ty::F32,
                _ => Ty::B32,
            };
            if n == 0 {
                list = self.sinks(all, class(of))?;
                for (e, register) in all.iter().zip(&list) {
                    self.is_as_wide_as(e, *register, of.bits())?;
                }
                continue;
            }
            for e in all {
                list.push(self.source(e, of)?);
            }
        }
        let x = push(&mut self.code.mmas, info);
        let at = self.list(&list);
        self.emit(Inst { list: at, len: list.len() as u8, defs: counts[0] as u8, x, ..Inst::new(Op::Mma) })
    }
}
