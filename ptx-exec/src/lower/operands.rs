//! Operands: registers, numbers, addresses of variables, special registers.

use super::alu::class;
use super::special::{SPECIAL, is_unset_special, is_wide_special};
use super::{Binding, Lower, Result, VariablePlace};
use crate::ast::{Instruction, Operand, Value, Variable};
use crate::code::{Base, Class, GlobalVariable, InitialAddress, Inst, Op};
use crate::error::{Error, ErrorKind};
use crate::machine::LOCAL_WINDOW;
use crate::num::format::{BF16, F16};
use crate::parse::clip;
use crate::types::{Space, Ty};

/// A name with an operand's meaning.
pub(super) enum Meaning {
    Register(u32),
    Variable(VariablePlace),
    Special(u32),
    /// A function, by its address.
    Function(u64),
}

impl<'a> Lower<'a, '_> {
    pub(super) fn meaning(&self, name: &str, component: Option<&str>) -> Result<Meaning> {
        if let Some(found) = self.find(name) {
            return match found {
                Binding::Registers { first, count: None, lanes } => match component {
                    None if *lanes == 1 => Ok(Meaning::Register(*first)),
                    Some(c) if *lanes > 1 => {
                        let at = ["x", "y", "z", "w"].iter().position(|n| *n == c).map(|i| i as u32);
                        let at = at.or_else(|| ["r", "g", "b", "a"].iter().position(|n| *n == c).map(|i| i as u32));
                        match at.filter(|i| i < lanes) {
                            Some(i) => Ok(Meaning::Register(first + i)),
                            None => Err(self.error(ErrorKind::Name, "a vector has no such component").found(clip(c))),
                        }
                    }
                    _ => Err(self
                        .error(ErrorKind::Unsupported, "a whole vector register as an operand")
                        .found(clip(name))),
                },
                Binding::Variable(place) => Ok(Meaning::Variable(*place)),
                _ => Err(self.error(ErrorKind::Name, "a name is no operand").found(clip(name))),
            };
        }
        if let (Some(register), None) = (self.numbered(name), component) {
            return Ok(Meaning::Register(register));
        }
        if let (Some(address), None) = (self.function_address(name), component) {
            return Ok(Meaning::Function(address));
        }
        let full = match component {
            Some(c) => format!("{name}.{c}"),
            None => name.to_owned(),
        };
        match SPECIAL.iter().position(|s| *s == full) {
            Some(i) => Ok(Meaning::Special(i as u32)),
            None if is_unset_special(name) => Err(self
                .error(ErrorKind::Unsupported, "a special register that is not run here")
                .found(clip(&full))
                .required("registers whose value the launch determines: %envreg1 and %envreg2 are those of cooperative launches")),
            None => {
                let kind =
                    if name.starts_with('%') && component.is_some() { ErrorKind::Unsupported } else { ErrorKind::Name };
                Err(self.error(kind, "an undeclared name").found(clip(&full)))
            }
        }
    }

    /// `%r57` of `.reg .b32 %r<100>`.
    fn numbered(&self, name: &str) -> Option<u32> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // A prefix may itself end in digits: try every split.
        (1..=digits.min(10)).find_map(|n| {
            let (prefix, number) = name.split_at(name.len() - n);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            match self.find(prefix)? {
                Binding::Registers { first, count: Some(count), lanes: 1 } => {
                    number.parse::<u32>().ok().filter(|i| i < count).map(|i| first + i)
                }
                _ => None,
            }
        })
    }

    /// Elements of a vector register.
    pub(super) fn lanes_of(&self, name: &str) -> Option<u32> {
        match self.find(name)? {
            Binding::Registers { count: None, lanes, .. } => Some(*lanes),
            _ => None,
        }
    }

    pub(super) fn class_of(&self, register: u32) -> Class {
        self.registers[register as usize].class
    }

    pub(super) fn bits_of(&self, register: u32) -> u32 {
        self.registers[register as usize].bits
    }

    pub(super) fn predicate(&self, name: &str) -> Result<u32> {
        match self.meaning(name, None)? {
            Meaning::Register(r) if self.class_of(r) == Class::Pred => Ok(r),
            _ => Err(self.error(ErrorKind::Name, "an operand is not a predicate").found(clip(name))),
        }
    }

    /// A predicate that is read, and whether it is negated.
    pub(super) fn predicate_operand(&self, operand: &Operand<'_>) -> Result<(u32, bool)> {
        match operand {
            Operand::Name(name, None) => Ok((self.predicate(name)?, false)),
            Operand::Not(inner) => match &**inner {
                Operand::Name(name, None) => Ok((self.predicate(name)?, true)),
                _ => Err(self.error(ErrorKind::Syntax, "an operand is not a predicate")),
            },
            _ => {
                Err(self.error(ErrorKind::Syntax, "an operand is not a predicate").required("a register of type .pred"))
            }
        }
    }

    /// A register that is written. `_` is refused: see [`Lower::sink`].
    pub(super) fn destination(&self, operand: &Operand<'_>, class: Class) -> Result<u32> {
        match operand {
            Operand::Name("_", None) => Err(self.discarded(class_text(class))),
            Operand::Name(name, component) => match self.meaning(name, *component)? {
                Meaning::Register(r) if self.constant_of.contains_key(&r) => {
                    Err(self.error(ErrorKind::Syntax, "a constant is written"))
                }
                Meaning::Register(r) if self.class_of(r) == class => Ok(r),
                Meaning::Register(_) => Err(self
                    .error(ErrorKind::Name, "a register does not fit the instruction's type")
                    .found(clip(name))
                    .required(class_text(class))),
                _ => Err(self.error(ErrorKind::Syntax, "the destination is not a register").found(clip(name))),
            },
            _ => Err(self.error(ErrorKind::Syntax, "the destination is not a register")),
        }
    }

    /// The same of a type, for which the register is wide enough.
    pub(super) fn destination_of(&self, operand: &Operand<'_>, ty: Ty) -> Result<u32> {
        let register = self.destination(operand, class(ty))?;
        self.is_as_wide_as(operand, register, ty.bits())?;
        Ok(register)
    }

    /// ptxas takes a register of 16 bits for no type of 32, nor the other way round; of 8 bits it takes both.
    pub(super) fn is_as_wide_as(&self, operand: &Operand<'_>, register: u32, bits: u32) -> Result<()> {
        let Operand::Name(name, component) = operand else { return Ok(()) };
        let has = self.bits_of(register);
        let fits = self.class_of(register) == Class::Pred || has == bits || bits < 16 && has > bits;
        if fits || is_sink(operand) || !matches!(self.meaning(name, *component), Ok(Meaning::Register(_))) {
            return Ok(());
        }
        Err(self
            .error(ErrorKind::Name, "a register does not fit the instruction's type")
            .found(format!("{}, a register of {has} bits", clip(name)))
            .required(format!("a register of {bits} bits")))
    }

    fn discarded(&self, required: &str) -> Error {
        self.error(ErrorKind::Syntax, "the instruction does not discard this result").found("_").required(required)
    }

    /// A destination that the instruction may discard: for `_`, an unused register.
    pub(super) fn sink(&mut self, operand: &Operand<'_>, class: Class) -> Result<u32> {
        if !is_sink(operand) {
            return self.destination(operand, class);
        }
        let bits = match class {
            Class::Pred => 1,
            Class::W32 => 32,
            Class::W64 => 64,
        };
        self.register(class, bits)
    }

    /// The same of a type, for which the register is wide enough.
    pub(super) fn sink_of(&mut self, operand: &Operand<'_>, ty: Ty) -> Result<u32> {
        if is_sink(operand) { self.sink(operand, class(ty)) } else { self.destination_of(operand, ty) }
    }

    /// The registers of a destination vector: `_` for some of them, but not for all.
    pub(super) fn sinks(&mut self, all: &[Operand<'_>], class: Class) -> Result<Vec<u32>> {
        if all.iter().all(is_sink) {
            return Err(self.discarded("a register among the elements"));
        }
        all.iter().map(|operand| self.sink(operand, class)).collect()
    }

    /// A register that is written, of 32 or of 64 bits.
    pub(super) fn any_destination(&self, operand: &Operand<'_>) -> Result<u32> {
        match operand {
            Operand::Name("_", None) => Err(self.discarded("a register")),
            Operand::Name(name, component) => match self.meaning(name, *component)? {
                Meaning::Register(r) if self.class_of(r) == Class::Pred => Err(self
                    .error(ErrorKind::Name, "a register does not fit the instruction's type")
                    .found(clip(name))
                    .required("a register of 32 or 64 bits, not a predicate")),
                Meaning::Register(r) if !self.constant_of.contains_key(&r) => Ok(r),
                _ => Err(self.error(ErrorKind::Syntax, "the destination is not a register").found(clip(name))),
            },
            _ => Err(self.error(ErrorKind::Syntax, "the destination is not a register")),
        }
    }

    /// An operand of a type, as a register; its class is that of the type.
    pub(super) fn source(&mut self, operand: &Operand<'_>, ty: Ty) -> Result<u32> {
        let class = if ty.bits() > 32 { Class::W64 } else { Class::W32 };
        let register = self.any_source(operand, ty)?;
        if self.class_of(register) == class {
            self.is_as_wide_as(operand, register, ty.bits())?;
            return Ok(register);
        }
        Err(self
            .error(ErrorKind::Name, "a register does not fit the instruction's type")
            .found(match operand {
                Operand::Name(name, _) => clip(name),
                _ => "an operand".to_owned(),
            })
            .required(class_text(class)))
    }

    /// An operand whose register may be wider than the type.
    pub(super) fn any_source(&mut self, operand: &Operand<'_>, ty: Ty) -> Result<u32> {
        let wide = ty.bits() > 32;
        match operand {
            Operand::Int(v) => self.constant(number(*v, ty), Base::Zero, wide),
            Operand::Float(bits) => match ty {
                Ty::F64 | Ty::B64 => self.number64(*bits),
                Ty::F32 | Ty::B32 => {
                    self.constant(u64::from((f64::from_bits(*bits) as f32).to_bits()), Base::Zero, false)
                }
                Ty::F16 => self.number(F16.from_f64(f64::from_bits(*bits), 0, false)),
                Ty::Bf16 => self.number(BF16.from_f64(f64::from_bits(*bits), 0, false)),
                _ => Err(self.error(ErrorKind::Syntax, "a floating-point number for an integer type")),
            },
            Operand::Name(name, component) => match self.meaning(name, *component)? {
                Meaning::Register(r) => Ok(r),
                Meaning::Variable(place) => self.address_of(place, 0, wide, false),
                Meaning::Special(number) => self.special(number),
                Meaning::Function(address) => self.constant(address, Base::Zero, wide),
            },
            Operand::Offset(name, offset) => match self.meaning(name, None)? {
                Meaning::Variable(place) => self.address_of(place, *offset, wide, false),
                _ => Err(self
                    .error(ErrorKind::Syntax, "a sum of a register and a number as an operand")
                    .found(clip(name))),
            },
            _ => Err(self.error(ErrorKind::Syntax, "an operand cannot be read").required("a register or a number")),
        }
    }

    pub(super) fn special(&mut self, number: u32) -> Result<u32> {
        let wide = is_wide_special(number) == Some(true);
        let register = self.register(if wide { Class::W64 } else { Class::W32 }, if wide { 64 } else { 32 })?;
        self.emit_always(Inst { d: register, x: number, ..Inst::new(Op::Sreg) })?;
        Ok(register)
    }

    /// The address of a variable, in its own space or generic.
    pub(super) fn address_of(&mut self, place: VariablePlace, offset: i64, wide: bool, generic: bool) -> Result<u32> {
        let (value, base) = match place {
            VariablePlace::Global(i, _) => (offset as u64, Base::Global(i)),
            VariablePlace::Shared(i) if generic => (offset as u64, Base::SharedGeneric(i)),
            VariablePlace::Shared(i) => (offset as u64, Base::Shared(i)),
            VariablePlace::Local(at, _) => {
                let at = at.wrapping_add(offset as u64);
                (if generic { at.wrapping_add(LOCAL_WINDOW) } else { at }, Base::Zero)
            }
            VariablePlace::Param(at) => (at.wrapping_add(offset as u64), Base::Param),
        };
        self.constant(value, base, wide)
    }

    /// An address operand: its register, its offset, and the space of the variable that it names.
    pub(super) fn address(&mut self, operand: &Operand<'_>) -> Result<(u32, i64, Option<VariablePlace>)> {
        let Operand::Address(base, offset, more) = operand else {
            return Err(self.error(ErrorKind::Syntax, "an operand is not an address").required("[register + offset]"));
        };
        if !more.is_empty() {
            return Err(self.error(ErrorKind::Unsupported, "a tensor address is not run here"));
        }
        match base {
            None => Ok((self.number64(*offset as u64)?, 0, None)),
            Some(name) => match self.meaning(name, None)? {
                Meaning::Register(r) if self.class_of(r) != Class::Pred => Ok((r, *offset, None)),
                Meaning::Variable(place) => Ok((self.address_of(place, *offset, true, false)?, 0, Some(place))),
                _ => Err(self
                    .error(ErrorKind::Syntax, "an address is neither a register nor a variable")
                    .found(clip(name))),
            },
        }
    }

    pub(super) fn list(&mut self, operands: &[u32]) -> u32 {
        let at = self.code.list.len() as u32;
        self.code.list.extend_from_slice(operands);
        at
    }

    pub(super) fn operand<'i>(&self, i: &'i Instruction<'a>, at: usize) -> Result<&'i Operand<'a>> {
        i.operands.get(at).ok_or_else(|| self.malformed(i, &format!("at least {} operands", at + 1)))
    }

    pub(super) fn expect_operands(&self, i: &Instruction<'_>, n: usize) -> Result<()> {
        if i.operands.len() == n { Ok(()) } else { Err(self.malformed(i, &format!("{n} operands"))) }
    }

    /// The value of an address in an initialiser. Notes its place in the variable.
    fn initial_address(
        &self,
        v: &Variable<'_>,
        name: &str,
        offset: i64,
        byte: Option<u32>,
        at: u64,
        into: &mut GlobalVariable,
    ) -> Result<u64> {
        let width = v.ty.bytes();
        if width > 8 || byte.is_none() && width < 4 {
            return Err(Error::syntax(v.at, "an address does not fit the elements of its variable")
                .found(format!("{} in elements of {width} B", clip(name)))
                .required("elements of 4 or 8 B, or a mask that names one byte of the address: 0xff(name)"));
        }
        if let Some(function) = self.function_address(name) {
            return Ok(InitialAddress { at, bytes: width, of: 0, offset, byte }.value(function));
        }
        let Some(Binding::Variable(VariablePlace::Global(index, Space::Global | Space::Const))) = self.find(name)
        else {
            let what = "an initialiser is neither the address of a variable in global memory nor of a function";
            return Err(Error::unsupported(v.at, what).found(clip(name)));
        };
        into.addresses.push(InitialAddress { at, bytes: width, of: *index, offset, byte });
        Ok(0)
    }

    /// Puts the values of an initialiser into the variable's bytes.
    pub(super) fn initialise(&self, v: &Variable<'_>, into: &mut GlobalVariable) -> Result<()> {
        let width = v.ty.bytes() as usize;
        for (i, value) in v.init.iter().enumerate() {
            let bits = match value {
                Value::Int(n) => *n as u64,
                Value::Float(bits) => match v.ty {
                    Ty::F32 => u64::from((f64::from_bits(*bits) as f32).to_bits()),
                    Ty::F64 => *bits,
                    Ty::F16 => F16.from_f64(f64::from_bits(*bits), 0, false),
                    Ty::Bf16 => BF16.from_f64(f64::from_bits(*bits), 0, false),
                    _ => {
                        return Err(
                            Error::syntax(v.at, "a floating-point number initialises an integer").found(clip(v.name))
                        );
                    }
                },
                Value::Address(name, offset, byte) => {
                    self.initial_address(v, name, *offset, *byte, i as u64 * width as u64, into)?
                }
            };
            let at = i * width;
            let bytes = bits.to_le_bytes();
            match into.bytes.get_mut(at..at + width) {
                Some(room) if width <= 8 => room.copy_from_slice(&bytes[..width]),
                _ => {
                    return Err(
                        Error::unsupported(v.at, "an initialiser does not fit its variable").found(clip(v.name))
                    );
                }
            }
        }
        Ok(())
    }
}

/// Whether a result is discarded.
pub(super) fn is_sink(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Name("_", None))
}

pub(super) fn class_text(class: Class) -> &'static str {
    match class {
        Class::Pred => "a predicate",
        Class::W32 => "a register of at most 32 bits",
        Class::W64 => "a register of 64 bits",
    }
}

/// An integer as the bits of a type.
fn number(v: i128, ty: Ty) -> u64 {
    match ty.bits() {
        8 => v as u8 as u64,
        16 => u64::from(v as u16),
        32 => u64::from(v as u32),
        _ => v as u64,
    }
}
