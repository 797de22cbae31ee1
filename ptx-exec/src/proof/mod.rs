//! The proof that an entry can be run. It is made once for every entry, in every build, before the entry runs.
//!
//! The machine reads and writes registers without a check. This is sound because only this module makes a [`Code`]. A failed proof is a
//! bug of the lowering; mistakes in the text are reported earlier, with their lines.

mod operands;
mod tables;
#[cfg(test)]
mod tests;

use core::ops::Deref;
use std::collections::HashMap;

use super::code::{Class, Draft, Inst, NONE, Op};
use super::error::{Error, ErrorKind};
use super::lower::{regs, wgmma};
pub(super) use operands::classes;
use operands::{Shape, Slot, shape};

/// A proved entry. Each `Code` has these properties:
///
/// 1. There are instructions. The last one is an exit without a guard, and every target of a branch is an instruction. A thread that
///    has not exited is therefore at an instruction.
/// 2. Every instruction has exactly the operands that its operation needs, each of the right class.
/// 3. A value of 32 bits is one row of the warp, a value of 64 bits two consecutive rows, a predicate one predicate of the warp. Values of
///    different widths share no row.
/// 4. The slice of the list that an instruction names lies in the list, and has the right number of registers.
/// 5. Every index into a table lies in the table, and the machine can run every table entry. Accesses have 1, 2, 4 or 8 bytes and at most
///    32 in all. Products have known shapes. Parameters lie among the entry's parameters.
/// 6. The rows from the first constant on are constants, and no instruction writes one.
#[derive(Clone, Debug)]
pub(super) struct Code(Draft, Vec<RowKind>);

impl Deref for Code {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.0
    }
}

impl Code {
    /// Gives the registers of an entry their rows. Proves the entry twice: with registers of known classes, and again with rows.
    ///
    /// # Errors
    /// [`ErrorKind::Defect`]: the lowering made a mistake.
    pub(super) fn prove(mut draft: Draft, classes: &[Class], constants: &HashMap<u32, usize>) -> Result<Code, Error> {
        prove_instructions(&draft, &ByRegister { classes, constants })?;
        let kinds = regs::assign(&mut draft, classes, constants);
        wgmma::touches(&mut draft);
        Code(draft, kinds).proved()
    }

    /// Proves the entry as it stands.
    fn proved(self) -> Result<Code, Error> {
        let Code(draft, kinds) = &self;
        let first_constant = draft.constants.iter().map(|c| c.row).min().unwrap_or(draft.rows);
        prove_instructions(draft, &ByRow { kinds, preds: draft.preds, first_constant })?;
        tables::prove(draft, kinds, first_constant)?;
        Ok(self)
    }
}

/// The contents of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A value of 32 bits.
    Single,
    /// The first and the second row of a value of 64 bits.
    First,
    Second,
}

/// The meaning of operand numbers.
trait Numbering {
    /// Whether the number is a value of the class.
    fn has(&self, number: u32, class: Class) -> bool;

    /// Whether it is a constant.
    fn is_constant(&self, number: u32, class: Class) -> bool;
}

/// Numbers are registers.
struct ByRegister<'a> {
    classes: &'a [Class],
    constants: &'a HashMap<u32, usize>,
}

impl Numbering for ByRegister<'_> {
    fn has(&self, number: u32, class: Class) -> bool {
        self.classes.get(number as usize) == Some(&class)
    }

    fn is_constant(&self, number: u32, _: Class) -> bool {
        self.constants.contains_key(&number)
    }
}

/// Numbers are rows and predicates.
struct ByRow<'a> {
    kinds: &'a [RowKind],
    preds: u32,
    first_constant: u32,
}

impl Numbering for ByRow<'_> {
    fn has(&self, number: u32, class: Class) -> bool {
        let kind = self.kinds.get(number as usize);
        match class {
            Class::Pred => number < self.preds,
            Class::W32 => kind == Some(&RowKind::Single),
            Class::W64 => {
                kind == Some(&RowKind::First) && self.kinds.get(number as usize + 1) == Some(&RowKind::Second)
            }
        }
    }

    fn is_constant(&self, number: u32, class: Class) -> bool {
        class != Class::Pred && number >= self.first_constant
    }
}

/// A bug of the lowering.
fn defect(draft: &Draft, pc: usize, found: impl Into<String>, required: &str) -> Error {
    const HELP: &str = concat!("report it with the text: ", env!("CARGO_PKG_REPOSITORY"), "/issues");
    let opcode = draft.opcodes.get(pc).and_then(|name| draft.names.get(*name as usize));
    let what = match opcode {
        Some(name) => {
            format!("`{name}` was lowered to code that cannot run: this is a bug of ptx-exec, not of the text")
        }
        None => "the entry was lowered to code that cannot run: this is a bug of ptx-exec, not of the text".to_owned(),
    };
    let mut error = Error::new(ErrorKind::Defect, what).found(found).required(required);
    error.position = draft.places.get(pc).map(|(at, _)| *at);
    error.help = HELP.into();
    error
}

fn prove_instructions(draft: &Draft, meaning: &impl Numbering) -> Result<(), Error> {
    let ends = draft.insts.last().is_some_and(|last| last.op == Op::Exit && last.guard == NONE);
    if !ends {
        return Err(defect(
            draft,
            draft.insts.len(),
            "an entry that goes on after its last instruction",
            "an exit at the end",
        ));
    }
    for (pc, inst) in draft.insts.iter().enumerate() {
        let shape = shape(draft, inst).filter(|_| tables::has_sound_entry(draft, inst));
        let Some(shape) = shape else {
            let found = format!("{:?} with table entry {}", inst.op, inst.x);
            return Err(defect(draft, pc, found, "an entry of its table that the operation can run with"));
        };
        prove_operands(draft, pc, inst, &shape, meaning)?;
    }
    Ok(())
}

fn prove_operands(draft: &Draft, pc: usize, inst: &Inst, shape: &Shape, meaning: &impl Numbering) -> Result<(), Error> {
    let fails = |name: &str, number: u32, class: Option<Class>| {
        let number = if number == NONE { "none".to_owned() } else { number.to_string() };
        let required = class.map_or("no such operand".to_owned(), |class| format!("{class:?}"));
        defect(draft, pc, format!("{:?}, operand {name}: {number}", inst.op), &required)
    };
    let fits = |number: u32, class: Class, is_written: bool| {
        meaning.has(number, class) && !(is_written && meaning.is_constant(number, class))
    };
    if inst.guard != NONE && !fits(inst.guard >> 1, Class::Pred, false) {
        return Err(fails("guard", inst.guard >> 1, Some(Class::Pred)));
    }
    let fields = [
        ("d", inst.d, shape.d, true),
        ("e", inst.e, shape.e, true),
        ("a", inst.a, shape.a, false),
        ("b", inst.b, shape.b, false),
        ("c", inst.c, shape.c, false),
    ];
    for (name, number, slot, is_written) in fields {
        match slot {
            Slot::No if number != NONE => return Err(fails(name, number, None)),
            Slot::Must(class) if !fits(number, class, is_written) => return Err(fails(name, number, Some(class))),
            Slot::May(class) if number != NONE && !fits(number, class, is_written) => {
                return Err(fails(name, number, Some(class)));
            }
            _ => {}
        }
    }
    let (start, end) = (inst.list as usize, inst.list as usize + usize::from(inst.len));
    let Some(list) = draft.list.get(start..end) else {
        return Err(defect(draft, pc, format!("places {start} to {end}"), "places of the list"));
    };
    let wanted: u32 = shape.list.iter().map(|(n, _)| n).sum();
    if u32::from(inst.len) != wanted || u32::from(inst.defs) != shape.defs {
        let found = format!("{:?} with {} registers, of which {} are written", inst.op, inst.len, inst.defs);
        return Err(defect(draft, pc, found, &format!("{wanted} registers, of which {} are written", shape.defs)));
    }
    let classes = shape.list.iter().flat_map(|(n, class)| (0..*n).map(|_| *class));
    for (i, (number, class)) in list.iter().zip(classes).enumerate() {
        // `wgmma` reads and writes the registers of D, which come first.
        let is_written =
            i < usize::from(inst.defs) || inst.op == Op::Wgmma && i < tables::written_by_wgmma(draft, inst);
        if !fits(*number, class, is_written) {
            return Err(fails(&format!("{i} of the list"), *number, Some(class)));
        }
    }
    Ok(())
}
