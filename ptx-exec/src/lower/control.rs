//! Branches, calls, and the end of a thread.

use super::alu::class;
use super::operands::{Meaning, is_sink};
use super::{Binding, Fixup, Lower, MAX_CALLS, MAX_DEPTH, Result, VariablePlace};
use crate::ast::{Instruction, Operand, Variable};
use crate::code::{Inst, MemInfo, NONE, Op, Order, Scope};
use crate::error::{Error, ErrorKind};
use crate::parse::clip;
use crate::types::{Space, Ty};

impl<'a> Lower<'a, '_> {
    pub(super) fn control(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.name {
            "bra" => {
                let [Operand::Name(label, None)] = &i.operands[..] else { return Err(self.malformed(i, "a label")) };
                self.branch(label)
            }
            "brx" => self.brx(i),
            "ret" => match self.returns.last().cloned().flatten() {
                None => self.emit(Inst::new(Op::Exit)).map(|_| ()),
                Some(label) => self.branch(&label),
            },
            "exit" => self.emit(Inst::new(Op::Exit)).map(|_| ()),
            "trap" => self.emit(Inst::new(Op::Trap)).map(|_| ()),
            "brkpt" | "pmevent" => self.emit(Inst::new(Op::Nop)).map(|_| ()),
            "nanosleep" => {
                self.expect_operands(i, 1)?;
                self.source(&i.operands[0], Ty::U32)?;
                self.emit(Inst::new(Op::Sleep)).map(|_| ())
            }
            _ => self.call(i),
        }
    }

    pub(super) fn branch(&mut self, label: &str) -> Result<()> {
        let at = self.emit_at(Inst::new(Op::Bra))?;
        self.fix(at, None, label);
        Ok(())
    }

    fn fix(&mut self, at: usize, entry: Option<(usize, usize)>, label: &str) {
        let scope = self.scopes.last().copied().unwrap_or(0);
        self.fixups.push(Fixup { at, entry, label: label.to_owned(), scope, position: self.position });
    }

    fn brx(&mut self, i: &Instruction<'a>) -> Result<()> {
        if i.modifiers.first() != Some(&"idx") {
            return Err(self.unsupported(i));
        }
        self.expect_operands(i, 2)?;
        let index = self.source(&i.operands[0], Ty::U32)?;
        let Operand::Name(name, None) = &i.operands[1] else { return Err(self.malformed(i, "a list of labels")) };
        let Some(Binding::Targets(targets)) = self.find(name) else {
            return Err(self.error(ErrorKind::Name, "the list of labels is not declared before it").found(clip(name)));
        };
        let targets = targets.clone();
        let table = self.code.tables.len();
        self.code.tables.push(vec![0; targets.len()]);
        let at = self.emit_at(Inst { a: index, x: table as u32, ..Inst::new(Op::Brx) })?;
        for (n, target) in targets.iter().enumerate() {
            self.fix(at, Some((table, n)), target);
        }
        Ok(())
    }

    fn call(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut operands = &i.operands[..];
        let mut results: &[Operand<'a>] = &[];
        if let Some((Operand::List(list), rest)) = operands.split_first() {
            (results, operands) = (list, rest);
        }
        let Some((Operand::Name(name, None), rest)) = operands.split_first() else {
            return Err(self.malformed(i, "the name of a function"));
        };
        let (args, rest): (&[Operand<'a>], _) = match rest.split_first() {
            Some((Operand::List(list), rest)) => (list, rest),
            _ => (&[], rest),
        };
        let pointer = match self.meaning(name, None) {
            Ok(Meaning::Register(register)) => Some(register),
            _ => None,
        };
        let index = self.functions.get(name).copied();
        if pointer.is_none() && index.is_none() {
            return Err(Error::name(i.at, "an undeclared function").found(clip(name)));
        };
        if pointer.is_none() && !rest.is_empty() {
            return Err(self.malformed(i, "results, the name of a function, and arguments"));
        }
        // A guarded call branches around the inlined body.
        let around = (self.guard != NONE).then(|| format!("call{}\0around", self.code.insts.len()));
        if let Some(label) = &around {
            self.guard ^= 1;
            self.branch(label)?;
            self.guard = NONE;
        }
        let module = self.module;
        match (pointer, index) {
            (Some(pointer), _) => self.indirect(i, pointer, results, args, rest)?,
            (None, Some(index)) if module.functions[index].body.is_some() => self.inline(i, index, results, args)?,
            _ => self.system_call(i, name, results, args)?,
        }
        if let Some(label) = around {
            self.label_here(label);
        }
        Ok(())
    }

    pub(super) fn label_here(&mut self, label: String) {
        let scope = self.scopes.last().copied().unwrap_or(0);
        self.labels.insert((scope, label), self.code.insts.len() as u32);
    }

    /// The caller's variable that an argument or a result names, of the same size as the function's; `None` for a register or a number.
    fn passed(&self, operand: &Operand<'a>, name: &str, bytes: u64) -> Result<Option<u64>> {
        let Operand::Name(passed, None) = operand else { return Ok(None) };
        let Some(Binding::Variable(place)) = self.find(passed) else { return Ok(None) };
        let wrong = |what: &str, found: String, required: String| {
            Err(self.error(ErrorKind::Name, what).found(found).required(required))
        };
        let VariablePlace::Local(at, Space::Param) = *place else {
            let required = "a variable of .param that the caller declares, a register or a number";
            return wrong("a call passes a variable of another state space", clip(passed), required.to_owned());
        };
        match self.frames.get(&at) {
            Some(found) if *found == bytes => Ok(Some(at)),
            found => {
                let found = format!("{} of {} B", clip(passed), found.copied().unwrap_or(0));
                wrong("a call passes a variable of another size", found, format!("{bytes} B for {}", clip(name)))
            }
        }
    }

    /// A register that is passed has the width of the function's variable.
    fn fits(&self, register: u32, of: &Variable<'_>) -> Result<()> {
        let in_register = matches!(of.ty.bits(), 8 | 16 | 32 | 64) && !of.is_array && of.elements == Some(1);
        if in_register && self.class_of(register) == class(of.ty) && self.bits_of(register) == of.ty.bits() {
            return Ok(());
        }
        let found = format!("a register of {} bits", self.bits_of(register));
        let required = format!("{} B for {}", of.bytes(), clip(of.name));
        Err(self.error(ErrorKind::Name, "a call passes a register that does not fit").found(found).required(required))
    }

    /// The thread's memory behind an argument.
    fn argument(&mut self, operand: &Operand<'a>, of: &Variable<'a>) -> Result<VariablePlace> {
        if let Some(at) = self.passed(operand, of.name, of.bytes())? {
            return Ok(VariablePlace::Local(at, Space::Param));
        }
        let value = self.any_source(operand, of.ty)?;
        // A number has the width of its type.
        if matches!(operand, Operand::Name(..)) || of.ty.bits() > 64 || of.ty == Ty::Pred || of.is_array {
            self.fits(value, of)?;
        }
        let at = self.frame(of)?;
        self.local_access(Op::St, at, of.ty, value)?;
        Ok(VariablePlace::Local(at, Space::Param))
    }

    /// The thread's memory of a result, and the register that it goes to; `_` discards it.
    fn result(
        &mut self,
        i: &Instruction<'a>,
        operand: &Operand<'a>,
        of: &Variable<'a>,
    ) -> Result<(VariablePlace, Option<u32>)> {
        let Operand::Name(..) = operand else {
            return Err(self.malformed(i, "a variable, a register or `_` for each result"));
        };
        if let Some(at) = self.passed(operand, of.name, of.bytes())? {
            return Ok((VariablePlace::Local(at, Space::Param), None));
        }
        let register = if is_sink(operand) { None } else { Some(self.any_destination(operand)?) };
        if let Some(register) = register {
            self.fits(register, of)?;
        }
        Ok((VariablePlace::Local(self.frame(of)?, Space::Param), register))
    }

    fn local_access(&mut self, op: Op, at: u64, ty: Ty, register: u32) -> Result<()> {
        let address = self.number64(at)?;
        let mem = MemInfo {
            space: Space::Local,
            bytes: ty.bytes() as u32,
            elements: 1,
            signed: ty.is_signed(),
            wide: ty.bits() > 32,
            bits: self.bits_of(register),
            address64: true,
            offset: 0,
            order: Order::Weak,
            scope: Scope::Cta,
            nc: false,
        };
        self.code.mems.push(mem);
        let list = self.list(&[register]);
        let defs = u8::from(op == Op::Ld);
        let x = self.code.mems.len() as u32 - 1;
        self.emit(Inst { a: address, list, len: 1, defs, x, ..Inst::new(op) })
    }

    /// Inlines a function at its call.
    pub(super) fn inline(
        &mut self,
        i: &Instruction<'a>,
        index: usize,
        results: &[Operand<'a>],
        args: &[Operand<'a>],
    ) -> Result<()> {
        let module = self.module;
        let f = &module.functions[index];
        if self.calls.contains(&f.name) || self.calls.len() >= MAX_DEPTH {
            return Err(Error::unsupported(i.at, "a function that calls itself is not run here").found(clip(f.name)));
        }
        self.inlined += 1;
        if self.inlined > MAX_CALLS {
            return Err(self.too_long());
        }
        if args.len() != f.params.len() || results.len() != f.results.len() {
            return Err(self.malformed(i, &format!("{} results and {} arguments", f.results.len(), f.params.len())));
        }
        let mut bound = Vec::new();
        for (operand, v) in args.iter().zip(&f.params) {
            bound.push((v, self.argument(operand, v)?));
        }
        let mut back = Vec::new();
        for (operand, v) in results.iter().zip(&f.results) {
            let (place, register) = self.result(i, operand, v)?;
            if let (Some(register), VariablePlace::Local(at, _)) = (register, place) {
                back.push((register, at, v.ty));
            }
            bound.push((v, place));
        }
        // The function sees the module's names and its own, not its caller's.
        let outer = self.names.split_off(1);
        let scopes = self.scopes.split_off(1);
        self.open();
        for (v, place) in bound {
            self.bind(v.name, Binding::Variable(place), v.at)?;
        }
        let end = "\0return".to_owned();
        let scope = self.scopes.last().copied().unwrap_or(0);
        self.returns.push(Some(end.clone()));
        self.calls.push(f.name);
        let carry = self.carry.take();
        if let Some(body) = &f.body {
            self.statements(body)?;
        }
        self.carry = carry;
        self.calls.pop();
        self.returns.pop();
        self.labels.insert((scope, end), self.code.insts.len() as u32);
        self.close();
        self.names.extend(outer);
        self.scopes.extend(scopes);
        (self.position, self.loc, self.guard) = (i.at, i.loc, NONE);
        for (register, at, ty) in back {
            self.local_access(Op::Ld, at, ty, register)?;
        }
        Ok(())
    }

    /// Functions of CUDA's device runtime.
    fn system_call(
        &mut self,
        i: &Instruction<'a>,
        name: &str,
        results: &[Operand<'a>],
        args: &[Operand<'a>],
    ) -> Result<()> {
        const POINTERS: [Ty; 2] = [Ty::U64; 2];
        let (op, types, returns): (Op, &[Ty], usize) = match name {
            "vprintf" => (Op::Vprintf, &POINTERS, 1),
            "__assertfail" => (Op::AssertFail, &[Ty::U64, Ty::U64, Ty::U32, Ty::U64, Ty::U64], 0),
            _ => return Err(Error::unsupported(i.at, "a function that this executor does not have").found(clip(name))),
        };
        if args.len() != types.len() || results.len() != returns {
            return Err(self.malformed(i, &format!("{returns} results and {} arguments", types.len())));
        }
        let mut registers = Vec::new();
        for (operand, ty) in args.iter().zip(types) {
            registers.push(match self.passed(operand, name, ty.bytes())? {
                None => self.source(operand, *ty)?,
                Some(at) => {
                    let register = self.register(class(*ty), ty.bits())?;
                    self.local_access(Op::Ld, at, *ty, register)?;
                    register
                }
            });
        }
        let list = self.list(&registers);
        self.emit(Inst { list, len: registers.len() as u8, ..Inst::new(op) })?;
        // The result of `vprintf` is not modelled: it is 0.
        for operand in results {
            let zero = self.number(0)?;
            if let Some(at) = self.passed(operand, name, Ty::U32.bytes())? {
                self.local_access(Op::St, at, Ty::U32, zero)?;
            } else if !is_sink(operand) {
                let register = self.destination(operand, class(Ty::U32))?;
                self.fast(Op::Mov32, register, &[zero])?;
            }
        }
        Ok(())
    }
}
