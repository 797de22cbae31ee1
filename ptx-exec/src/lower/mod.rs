//! Lowers one entry: names become rows of registers, and calls are inlined.

mod alu;
mod compare;
mod control;
mod data;
mod flow;
mod hints;
mod hopper;
mod indirect;
mod integer;
mod memory;
mod mma;
mod operands;
pub(super) mod regs;
pub(super) mod special;
mod sync;
mod tensormap;
pub(super) mod variables;
mod video;
pub(super) mod wgmma;
mod wmma;
mod wmma_access;

use std::collections::HashMap;

use super::ast::{Function, Instruction, Module, Statement, Variable};
use super::code::{Base, Class, Code, Constant, Draft, Inst, NONE, Op};
use super::error::{Error, ErrorKind, Position};
use super::parse::clip;
use super::types::{Space, Ty};

/// Instructions of an entry with its callees.
const MAX_CODE: usize = 4 << 20;
/// Calls of an entry and of its callees; each call is lowered separately.
const MAX_CALLS: usize = 1 << 16;
/// Registers of an entry before they share rows.
const MAX_REGISTERS: usize = 16 << 20;
/// Calls in calls.
const MAX_DEPTH: usize = 64;

/// The meaning of a name.
#[derive(Clone, Debug)]
enum Binding {
    /// Registers by number: the first, how many, whether the name is a prefix; lanes of a vector.
    Registers {
        first: u32,
        count: Option<u32>,
        lanes: u32,
    },
    Variable(VariablePlace),
    Targets(Vec<String>),
    /// Bytes of the results, and of the parameters, of a call through a pointer.
    Prototype(Vec<u64>, Vec<u64>),
}

/// The place of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariablePlace {
    /// A variable of the module, by index.
    Global(u32, Space),
    Shared(u32),
    /// Bytes from the start of the thread's local memory.
    Local(u64, Space),
    /// Bytes from the start of the entry's parameters.
    Param(u64),
}

#[derive(Clone, Copy, Debug)]
struct Register {
    class: Class,
    bits: u32,
}

/// A branch whose target is not known yet.
struct Fixup {
    at: usize,
    /// Entry of a table, instead of the branch itself.
    entry: Option<(usize, usize)>,
    label: String,
    scope: u32,
    position: Position,
}

struct Lower<'a, 'm> {
    module: &'m Module<'a>,
    functions: HashMap<&'a str, usize>,
    code: Draft,
    registers: Vec<Register>,
    /// By value, base and width.
    constants: HashMap<(u64, Base, bool), u32>,
    /// Registers that are constants: which.
    constant_of: HashMap<u32, usize>,
    /// Names of the module, then of the scopes that are open.
    names: Vec<HashMap<String, Binding>>,
    /// Numbers of the open scopes, and the parent of each scope ever opened.
    scopes: Vec<u32>,
    parents: Vec<u32>,
    labels: HashMap<(u32, String), u32>,
    fixups: Vec<Fixup>,
    opcode_names: HashMap<String, u32>,
    /// Where `ret` goes: the fixup label of the function in place, or the end of the entry.
    returns: Vec<Option<String>>,
    calls: Vec<&'a str>,
    /// Calls so far.
    inlined: usize,
    /// The instruction that is being lowered.
    position: Position,
    loc: Option<u32>,
    guard: u32,
    opcode: u32,
    carry: Option<u32>,
    /// Bytes of each variable in the thread's local memory, by its place.
    frames: HashMap<u64, u64>,
    /// Bytes of the module's variables so far.
    global_bytes: u64,
}

/// Calls `f` with the rows that an instruction reads, and with those that it writes.
pub(super) fn operands_of(code: &Draft, inst: &Inst, classes: [Class; 5], mut f: impl FnMut(u32, bool)) {
    // The number of a predicate is not a row.
    let mut inst = Inst { guard: NONE, ..*inst };
    let fields = [&mut inst.d, &mut inst.e, &mut inst.a, &mut inst.b, &mut inst.c];
    for (operand, class) in fields.into_iter().zip(classes) {
        if class == Class::Pred {
            *operand = NONE;
        }
    }
    let mut list = code.listed(&inst).to_vec();
    inst.list = 0;
    regs::operands(&mut inst, &mut list, |r, writes| f(*r, writes));
}

type Result<T> = core::result::Result<T, Error>;

/// Adds an entry to a table. Returns its index.
fn push<T>(table: &mut Vec<T>, entry: T) -> u32 {
    table.push(entry);
    table.len() as u32 - 1
}

/// Lowers one entry of a module.
///
/// Registers that are not needed at the same time share a row.
pub(super) fn lower<'a>(module: &Module<'a>, entry: &Function<'a>) -> Result<Code> {
    let code = Draft {
        name: entry.name.to_owned(),
        reqntid: entry.reqntid,
        maxntid: entry.maxntid,
        cluster: entry.reqnctapercluster,
        maxnreg: entry.maxnreg,
        minnctapersm: entry.minnctapersm,
        files: module.files.iter().map(|(n, name)| (*n, (*name).to_owned())).collect(),
        locs: module.locs.clone(),
        ..Draft::default()
    };
    let mut lower = Lower {
        module,
        functions: HashMap::new(),
        code,
        registers: Vec::new(),
        constants: HashMap::new(),
        constant_of: HashMap::new(),
        names: vec![HashMap::new()],
        scopes: vec![0],
        parents: vec![0],
        labels: HashMap::new(),
        fixups: Vec::new(),
        opcode_names: HashMap::new(),
        returns: Vec::new(),
        calls: Vec::new(),
        inlined: 0,
        position: entry.at,
        loc: None,
        guard: NONE,
        opcode: 0,
        carry: None,
        frames: HashMap::new(),
        global_bytes: 0,
    };
    lower.run(entry)?;
    lower.code.partings = flow::partings(&lower.code);
    let classes: Vec<Class> = lower.registers.iter().map(|r| r.class).collect();
    Code::prove(lower.code, &classes, &lower.constant_of)
}

impl<'a> Lower<'a, '_> {
    fn run(&mut self, entry: &Function<'a>) -> Result<()> {
        for (i, f) in self.module.functions.iter().enumerate() {
            // A definition wins over declarations.
            if f.body.is_some() || !self.functions.contains_key(f.name) {
                self.functions.insert(f.name, i);
            }
        }
        self.module_variables()?;
        let of_module = self.code.shared.len();
        self.parameters(entry)?;
        let Some(body) = &entry.body else {
            return Err(Error::name(entry.at, "the entry is declared, but not defined").found(clip(entry.name)));
        };
        self.returns.push(None);
        self.calls.push(entry.name);
        self.open();
        self.statements(body)?;
        self.close();
        self.guard = NONE;
        self.emit(Inst::new(Op::Exit))?;
        self.resolve()?;
        self.drop_unused(of_module);
        Ok(())
    }

    fn error(&self, kind: ErrorKind, what: impl Into<String>) -> Error {
        Error::new(kind, what).at(self.position)
    }

    fn too_long(&self) -> Error {
        self.error(ErrorKind::Unsupported, "the entry is too long with its callees")
            .required(format!("at most {MAX_CODE} instructions, and {MAX_CALLS} calls"))
    }

    fn unsupported(&self, i: &Instruction<'_>) -> Error {
        Error::unsupported(i.at, "an instruction that this executor does not run").found(clip(&i.opcode()))
    }

    fn malformed(&self, i: &Instruction<'_>, required: &str) -> Error {
        Error::syntax(i.at, "the operands do not fit the instruction")
            .found(format!("{} with {} operands", clip(&i.opcode()), i.operands.len()))
            .required(required)
    }

    fn open(&mut self) {
        let parent = self.scopes.last().copied().unwrap_or(0);
        let number = self.parents.len() as u32;
        self.parents.push(parent);
        self.scopes.push(number);
        self.names.push(HashMap::new());
    }

    fn close(&mut self) {
        self.scopes.pop();
        self.names.pop();
    }

    fn bind(&mut self, name: &str, binding: Binding, at: Position) -> Result<()> {
        let names = self.names.last_mut();
        if names.is_none_or(|n| n.insert(name.to_owned(), binding).is_some()) {
            return Err(Error::name(at, "a name is declared twice in one scope").found(clip(name)));
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Binding> {
        self.names.iter().rev().find_map(|n| n.get(name))
    }

    fn emit(&mut self, inst: Inst) -> Result<()> {
        self.emit_at(inst).map(drop)
    }

    /// Without the guard of the instruction that is being lowered.
    fn emit_always(&mut self, inst: Inst) -> Result<()> {
        let guard = core::mem::replace(&mut self.guard, NONE);
        self.emit(inst)?;
        self.guard = guard;
        Ok(())
    }

    /// Returns the number of the instruction.
    fn emit_at(&mut self, mut inst: Inst) -> Result<usize> {
        if self.code.insts.len() >= MAX_CODE {
            return Err(self.too_long());
        }
        inst.guard = self.guard;
        self.code.insts.push(inst);
        self.code.places.push((self.position, self.loc));
        self.code.opcodes.push(self.opcode);
        Ok(self.code.insts.len() - 1)
    }

    fn register(&mut self, class: Class, bits: u32) -> Result<u32> {
        if self.registers.len() >= MAX_REGISTERS {
            return Err(self
                .error(ErrorKind::Unsupported, "the entry has too many registers")
                .required(format!("at most {MAX_REGISTERS}")));
        }
        self.registers.push(Register { class, bits });
        Ok(self.registers.len() as u32 - 1)
    }

    /// A register with a number of 32 bits.
    fn number(&mut self, value: u64) -> Result<u32> {
        self.constant(value, Base::Zero, false)
    }

    /// The same of 64 bits.
    fn number64(&mut self, value: u64) -> Result<u32> {
        self.constant(value, Base::Zero, true)
    }

    fn constant(&mut self, value: u64, base: Base, wide: bool) -> Result<u32> {
        let value = if wide { value } else { value & 0xffff_ffff };
        if let Some(register) = self.constants.get(&(value, base, wide)) {
            return Ok(*register);
        }
        let (class, bits) = if wide { (Class::W64, 64) } else { (Class::W32, 32) };
        let register = self.register(class, bits)?;
        self.constants.insert((value, base, wide), register);
        self.constant_of.insert(register, self.code.constants.len());
        self.code.constants.push(Constant { row: 0, wide, value, base });
        Ok(register)
    }

    fn statements(&mut self, body: &[Statement<'a>]) -> Result<()> {
        let mut depth = 0;
        for statement in body {
            match statement {
                Statement::Open => {
                    depth += 1;
                    self.open();
                }
                Statement::Close => {
                    depth -= 1;
                    self.close();
                }
                Statement::Label(name, at) => {
                    let scope = self.scopes.last().copied().unwrap_or(0);
                    let here = self.code.insts.len() as u32;
                    if self.labels.insert((scope, (*name).to_owned()), here).is_some() {
                        return Err(Error::name(*at, "a label is defined twice in one scope").found(clip(name)));
                    }
                }
                Statement::Reg { ty, lanes, name, count, at } => self.declare(*ty, *lanes, name, *count, *at)?,
                Statement::Variable(v) => self.variable(v)?,
                Statement::Targets(name, targets, at) => {
                    let targets = targets.iter().map(|t| (*t).to_owned()).collect();
                    self.bind(name, Binding::Targets(targets), *at)?;
                }
                Statement::Prototype(name, results, params, at) => {
                    let bytes = |all: &[Variable<'_>]| all.iter().map(Variable::bytes).collect();
                    self.bind(name, Binding::Prototype(bytes(results), bytes(params)), *at)?;
                }
                Statement::Instruction(i) => self.instruction(i)?,
            }
        }
        debug_assert_eq!(depth, 0, "the parser pairs scopes");
        Ok(())
    }

    fn declare(&mut self, ty: Ty, lanes: u32, name: &str, count: Option<u32>, at: Position) -> Result<()> {
        let class = match ty {
            Ty::Pred => Class::Pred,
            _ if ty.bits() <= 32 => Class::W32,
            _ if ty.bits() == 64 => Class::W64,
            _ => {
                return Err(Error::unsupported(at, "registers of 128 bits are not run here").found(clip(name)));
            }
        };
        let n = count.unwrap_or(1) as usize * lanes as usize;
        if self.registers.len() + n > MAX_REGISTERS {
            return Err(Error::unsupported(at, "the entry has too many registers").found(clip(name)));
        }
        let first = self.registers.len() as u32;
        self.registers.resize(self.registers.len() + n, Register { class, bits: ty.bits() });
        self.bind(name, Binding::Registers { first, count, lanes }, at)
    }

    /// Gives every branch its target.
    fn resolve(&mut self) -> Result<()> {
        for fixup in core::mem::take(&mut self.fixups) {
            let mut scope = fixup.scope;
            let target = loop {
                if let Some(target) = self.labels.get(&(scope, fixup.label.clone())) {
                    break Some(*target);
                }
                if scope == 0 {
                    break None;
                }
                scope = self.parents[scope as usize];
            };
            let target = target
                .ok_or_else(|| Error::name(fixup.position, "a label stands nowhere").found(clip(&fixup.label)))?;
            match fixup.entry {
                None => self.code.insts[fixup.at].x = target,
                Some((table, entry)) => self.code.tables[table][entry] = target,
            }
        }
        Ok(())
    }

    fn instruction(&mut self, i: &Instruction<'a>) -> Result<()> {
        self.position = i.at;
        self.loc = i.loc;
        let opcode = i.opcode();
        let next = self.opcode_names.len() as u32;
        self.opcode = *self.opcode_names.entry(opcode).or_insert_with_key(|name| {
            self.code.names.push(name.clone());
            next
        });
        self.guard = match i.guard {
            None => NONE,
            Some((name, negated)) => self.predicate(name)? << 1 | u32::from(negated),
        };
        self.dispatch(i)
    }

    fn dispatch(&mut self, i: &Instruction<'a>) -> Result<()> {
        if tensormap::is_one(i) {
            return self.tensormap(i);
        }
        if hopper::is_one(i) {
            return self.hopper(i);
        }
        match i.name {
            "bra" | "brx" | "ret" | "exit" | "call" | "trap" | "brkpt" | "pmevent" | "nanosleep" => self.control(i),
            "ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" | "applypriority" | "discard"
            | "createpolicy" | "cvta" | "isspacep" | "membar" | "fence" | "cp" => self.memory(i),
            "bar" | "barrier" | "shfl" | "vote" | "match" | "redux" | "elect" | "activemask" | "griddepcontrol" => {
                self.sync(i)
            }
            "ldmatrix" | "stmatrix" | "movmatrix" | "mma" => self.matrix(i),
            "wmma" => self.wmma(i),
            "mov" | "cvt" | "selp" | "slct" | "set" | "setp" | "prmt" => self.data(i),
            _ if Self::is_video(i) => self.video(i),
            _ => self.alu(i),
        }
    }
}
