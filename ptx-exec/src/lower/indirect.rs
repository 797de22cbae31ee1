//! Calls through pointers: every possible function is inlined, each after a comparison of its address.

use std::collections::HashSet;

use super::{Binding, Lower, MAX_DEPTH, Result};
use crate::ast::{Instruction, Operand, Statement, Value};
use crate::code::{Class, Inst, NONE, Op};
use crate::error::{Error, ErrorKind};
use crate::num::int;
use crate::parse::clip;

/// The addresses of functions, outside all memory.
const FUNCTIONS: u64 = 0x0300_0000_0000;
/// Bytes from a function to the next.
const STEP: u64 = 256;

impl<'a> Lower<'a, '_> {
    /// The address of a function, where the name is one's.
    pub(super) fn function_address(&self, name: &str) -> Option<u64> {
        self.functions.get(name).map(|index| FUNCTIONS + STEP * (*index as u64 + 1))
    }

    /// Functions whose address the module takes: in the order in which they stand.
    fn addressed(&self) -> Vec<usize> {
        let mut names: HashSet<&str> = HashSet::new();
        for value in self.module.variables.iter().flat_map(|v| &v.init) {
            if let Value::Address(name, ..) = value {
                names.insert(name);
            }
        }
        for statement in self.module.functions.iter().filter_map(|f| f.body.as_ref()).flatten() {
            if let Statement::Instruction(i) = statement
                && i.name == "mov"
                && let Some(Operand::Name(name, None) | Operand::Offset(name, _)) = i.operands.get(1)
            {
                names.insert(name);
            }
        }
        let mut all: Vec<usize> = names.iter().filter_map(|name| self.functions.get(name).copied()).collect();
        all.sort_unstable();
        all
    }

    /// The possible targets of a call through a pointer.
    fn targets(&self, i: &Instruction<'a>, list: &Operand<'a>) -> Result<Vec<usize>> {
        let Operand::Name(name, None) = list else {
            return Err(self.malformed(i, "a prototype or a list of functions"));
        };
        let functions = &self.module.functions;
        match self.find(name) {
            Some(Binding::Targets(targets)) => {
                let index = |target: &String| {
                    let known = self.functions.get(target.as_str()).copied();
                    known.ok_or_else(|| Error::name(i.at, "an undeclared function").found(clip(target)))
                };
                targets.iter().map(index).collect()
            }
            Some(Binding::Prototype(results, params)) => {
                let fits = |index: &usize| {
                    let f = &functions[*index];
                    f.results.iter().map(|v| v.bytes()).eq(results.iter().copied())
                        && f.params.iter().map(|v| v.bytes()).eq(params.iter().copied())
                };
                Ok(self.addressed().into_iter().filter(fits).collect())
            }
            _ => Err(self
                .error(ErrorKind::Name, "the prototype or list of functions is not declared before it")
                .found(clip(name))),
        }
    }

    pub(super) fn indirect(
        &mut self,
        i: &Instruction<'a>,
        pointer: u32,
        results: &[Operand<'a>],
        args: &[Operand<'a>],
        list: &[Operand<'a>],
    ) -> Result<()> {
        let [list] = list else {
            return Err(self.malformed(i, "a prototype or a list of functions as the last operand"));
        };
        if self.class_of(pointer) != Class::W64 {
            return Err(self.malformed(i, "the address of a function in a register of 64 bits"));
        }
        let number = self.code.insts.len();
        let done = format!("call{number}\0done");
        for index in self.targets(i, list)? {
            let f = &self.module.functions[index];
            // A function that is already being called would recurse. The trap reports it when it happens.
            if f.body.is_none() || self.calls.contains(&f.name) || self.calls.len() >= MAX_DEPTH {
                continue;
            }
            let next = format!("call{number}\0{index}");
            let (a, b) = (pointer, self.number64(FUNCTIONS + STEP * (index as u64 + 1))?);
            let is_it = self.register(Class::Pred, 1)?;
            self.compare_integers(Op::SetpU64, int::u64::set, [is_it, NONE], [a, b], 0)?;
            self.guard = is_it << 1 | 1;
            self.branch(&next)?;
            self.guard = NONE;
            self.inline(i, index, results, args)?;
            self.branch(&done)?;
            self.label_here(next);
        }
        self.emit(Inst { x: 1, ..Inst::new(Op::Trap) })?;
        self.label_here(done);
        Ok(())
    }
}
