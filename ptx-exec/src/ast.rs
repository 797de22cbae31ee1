//! A PTX module as it is written: names, not yet resolved.

use super::error::Position;
use super::types::{Space, Ty};

/// A module: one `.ptx` text.
#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    /// `.version`: major, minor.
    pub(super) version: (u32, u32),
    /// The first name of `.target`: `sm_90a`.
    pub(super) target: &'a str,
    /// `.file` names by number.
    pub(super) files: Vec<(u32, &'a str)>,
    pub(super) variables: Vec<Variable<'a>>,
    pub(super) functions: Vec<Function<'a>>,
    pub(super) locs: Vec<Loc>,
}

/// A line of the source, by `.loc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loc {
    pub(crate) file: u32,
    pub(crate) line: u32,
    /// The line that the function was inlined at, as an index into the module's places.
    pub(crate) inlined_at: Option<u32>,
}

/// What an initialiser puts into a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Int(i128),
    Float(u64),
    /// The address of a name, plus an offset. A mask such as `0xff00` selects one byte of the sum.
    Address(&'a str, i64, Option<u32>),
}

/// A variable in memory, or a parameter.
#[derive(Clone, Debug)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    pub(super) at: Position,
    pub(super) space: Space,
    pub(super) ty: Ty,
    /// Number of elements: the length of the vector times each dimension; `None` for `[]`.
    pub(super) elements: Option<u64>,
    /// Declared or natural alignment in bytes.
    pub(super) align: u64,
    pub(super) is_extern: bool,
    pub(super) init: Vec<Value<'a>>,
    /// A parameter that is declared as a pointer: `.ptr .global .align 16`.
    pub(super) pointee: Option<(Space, u64)>,
    /// Whether it was declared with an array suffix or more than one element.
    pub(super) is_array: bool,
}

impl Variable<'_> {
    pub(super) fn bytes(&self) -> u64 {
        self.elements.unwrap_or(0).saturating_mul(self.ty.bytes())
    }
}

/// An entry or a device function.
#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) at: Position,
    pub(super) is_entry: bool,
    pub(super) results: Vec<Variable<'a>>,
    pub(super) params: Vec<Variable<'a>>,
    pub(super) reqntid: Option<[u32; 3]>,
    pub(super) maxntid: Option<[u32; 3]>,
    pub(super) reqnctapercluster: Option<[u32; 3]>,
    pub(super) maxnreg: Option<u32>,
    pub(super) minnctapersm: u32,
    /// `None` for a declaration.
    pub(super) body: Option<Vec<Statement<'a>>>,
}

/// One statement of a body.
#[derive(Debug)]
pub(super) enum Statement<'a> {
    Open,
    Close,
    Label(&'a str, Position),
    /// `.reg .b32 %r<10>;`: a prefix and how many, or one name.
    Reg {
        ty: Ty,
        lanes: u32,
        name: &'a str,
        count: Option<u32>,
        at: Position,
    },
    Variable(Variable<'a>),
    /// `p: .callprototype (.param .b32 _) _ (.param .b64 _);`: results and parameters.
    Prototype(&'a str, Vec<Variable<'a>>, Vec<Variable<'a>>, Position),
    /// `ts: .branchtargets L1, L2;`, and `.calltargets` with functions.
    Targets(&'a str, Vec<&'a str>, Position),
    Instruction(Box<Instruction<'a>>),
}

/// One instruction.
#[derive(Debug)]
pub(super) struct Instruction<'a> {
    pub(super) at: Position,
    /// The predicate, and whether it is negated.
    pub(super) guard: Option<(&'a str, bool)>,
    pub(super) name: &'a str,
    pub(super) modifiers: Vec<&'a str>,
    pub(super) operands: Vec<Operand<'a>>,
    /// Index into the module's places, or none.
    pub(super) loc: Option<u32>,
}

impl Instruction<'_> {
    /// The opcode as it is written.
    pub(super) fn opcode(&self) -> String {
        let mut text = self.name.to_owned();
        for m in &self.modifiers {
            text.push('.');
            text.push_str(m);
        }
        text
    }
}

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand<'a> {
    /// A register, variable, label or special register; with `.x` where one follows.
    Name(&'a str, Option<&'a str>),
    Int(i128),
    /// Bits of an f64.
    Float(u64),
    /// `!p`
    Not(Box<Operand<'a>>),
    /// `-%r1`, of a video instruction.
    Negated(Box<Operand<'a>>),
    /// `p|q`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `[a+4]`; further operands of a tensor address in the list.
    Address(Option<&'a str>, i64, Vec<Operand<'a>>),
    /// `(a, b)` of a call.
    List(Vec<Operand<'a>>),
    /// A name plus an offset, outside of brackets.
    Offset(&'a str, i64),
}

impl<'a> Operand<'a> {
    /// The operands of a vector, or the operand alone.
    pub(super) fn elements(&self) -> &[Operand<'a>] {
        match self {
            Operand::Vector(all) => all,
            one => core::slice::from_ref(one),
        }
    }
}
