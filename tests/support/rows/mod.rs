//! Random row programs, each as a text, as a closure, and computed directly in Rust.
#![allow(dead_code, reason = "each test file uses a part of it")]

mod direct;
mod trace;

use cutemplate::dtype::DType;
use cutemplate::expr::rows::Level;

pub(crate) use direct::{Defect, Order, direct};

pub(crate) const INPUTS: [&str; 3] = ["x", "y", "z"];
pub(crate) const SCALARS: [&str; 2] = ["alpha", "beta"];

/// An operation on nodes before it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Input(usize),
    Scalar(usize),
    Constant(f64),
    Column,
    Width(Option<u32>),
    Unary(&'static str, usize),
    Binary(&'static str, [usize; 2]),
    Fma([usize; 3]),
    Cast(DType, bool, usize),
    Compare(u8, [usize; 2]),
    Join(bool, [usize; 2]),
    Not(usize),
    Select([usize; 3]),
    /// Along the row, or along groups of so many.
    Reduce(&'static str, Option<u32>, usize),
}

impl Op {
    pub(crate) fn operands(&self) -> &[usize] {
        match self {
            Op::Input(_) | Op::Scalar(_) | Op::Constant(_) | Op::Column | Op::Width(_) => &[],
            Op::Unary(_, x) | Op::Cast(_, _, x) | Op::Not(x) | Op::Reduce(_, _, x) => core::slice::from_ref(x),
            Op::Binary(_, ids) | Op::Compare(_, ids) | Op::Join(_, ids) => ids,
            Op::Fma(ids) | Op::Select(ids) => ids,
        }
    }

    fn is_condition(&self) -> bool {
        matches!(self, Op::Compare(..) | Op::Join(..) | Op::Not(_) | Op::Reduce("any" | "all", ..))
    }
}

/// A program of the inputs x, y and z and the scalars alpha and beta.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The levels of the inputs; x is of elements.
    pub(crate) inputs: [Level; 3],
    pub(crate) ops: Vec<Op>,
    /// The level of each node.
    pub(crate) levels: Vec<Level>,
    /// One to three, all numbers.
    pub(crate) outputs: Vec<usize>,
    /// How outputs of elements are reduced over rows, but for the first; none is, where this is none.
    pub(crate) columns: Option<&'static str>,
}

/// Operations that IEEE 754 determines, then those with an error.
const UNARY: [&str; 16] = [
    "neg",
    "abs",
    "relu",
    "sqrt",
    "exp",
    "exp",
    "exp2",
    "log",
    "rsqrt",
    "sin",
    "tanh",
    "erf",
    "sigmoid",
    "silu",
    "gelu",
    "gelu_tanh",
];
const EXACT_UNARY: usize = 4;
const BINARY: [&str; 10] = ["+", "-", "*", "*", "+", "-", "/", "min", "max", "pow"];
const EXACT_BINARY: usize = 9;
const REDUCTIONS: [&str; 10] = ["sum", "sum", "mean", "max", "max", "min", "prod", "argmax", "argmin", "sum"];
const GROUPS: [u32; 6] = [2, 4, 8, 16, 32, 128];
const CONSTANTS: [f64; 12] =
    [0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 0.1, 448.0, -0.0, 1e-30, f64::INFINITY, f64::NEG_INFINITY];
const DTYPES: [DType; 6] = [DType::F16, DType::Bf16, DType::E4m3, DType::I8, DType::F32, DType::U8];

/// One drawn from random words: the first says what inputs and outputs are, each other one is a step. `exact`: of operations that IEEE 754
/// determines.
pub(crate) fn program(words: &[u64], exact: bool) -> Program {
    let (first, steps) = words.split_first().unwrap_or((&0, &[]));
    let [y, z, outputs, earlier, ..] = first.to_le_bytes();
    let level = |byte: u8| match byte % 8 {
        0 => Level::Row,
        1 => Level::Group(GROUPS[usize::from(byte / 8) % GROUPS.len()]),
        2 => Level::Scalar,
        _ => Level::Element,
    };
    let mut program = Program {
        inputs: [Level::Element, level(y), level(z)],
        ops: (0..INPUTS.len()).map(Op::Input).chain((0..SCALARS.len()).map(Op::Scalar)).collect(),
        levels: Vec::new(),
        outputs: Vec::new(),
        columns: None,
    };
    program.levels = program.inputs.into_iter().chain([Level::Scalar; 2]).collect();
    for word in steps {
        program.step(*word, exact);
    }
    let numbers: Vec<usize> = (0..program.ops.len()).filter(|at| !program.ops[*at].is_condition()).collect();
    let count = 1 + usize::from(outputs) % 3;
    program.outputs = numbers.iter().rev().take(count).rev().copied().collect();
    if earlier.is_multiple_of(4) {
        program.outputs[0] = numbers[usize::from(earlier / 4) % numbers.len()];
    }
    program
}

impl Program {
    /// The node's place; what tracing finds to be another node is that one here.
    fn add(&mut self, op: Op) -> usize {
        match op {
            Op::Select([_, x, y]) if x == y => return x,
            Op::Unary("neg", x) => match self.ops[x] {
                Op::Unary("neg", y) => return y,
                Op::Constant(x) if x.is_sign_positive() => return self.add(Op::Constant(-x)),
                _ => {}
            },
            Op::Not(x) => {
                if let Op::Not(y) = self.ops[x] {
                    return y;
                }
            }
            _ => {}
        }
        let same = |other: &Op| format!("{other:?}") == format!("{op:?}");
        if let Some(at) = self.ops.iter().position(same) {
            return at;
        }
        let level = match op {
            Op::Input(index) => self.inputs[index],
            Op::Column => Level::Element,
            Op::Width(Some(size)) | Op::Reduce(_, Some(size), _) => Level::Group(size),
            Op::Reduce(_, None, _) => Level::Row,
            _ => op.operands().iter().map(|id| self.levels[*id]).max().unwrap_or(Level::Scalar),
        };
        self.ops.push(op);
        self.levels.push(level);
        self.ops.len() - 1
    }

    /// A number for a byte: a constant, or a node, the later the likelier.
    fn number(&mut self, byte: u8) -> usize {
        if byte % 8 == 7 {
            return self.add(Op::Constant(CONSTANTS[usize::from(byte / 8) % CONSTANTS.len()]));
        }
        let numbers: Vec<usize> = (0..self.ops.len()).filter(|at| !self.ops[*at].is_condition()).collect();
        let back = usize::from(byte / 8).pow(2) * numbers.len() / (32 * 32);
        numbers[numbers.len() - 1 - back]
    }

    /// A condition for two bytes: one that there is, or a comparison.
    fn condition(&mut self, which: u8, byte: u8) -> usize {
        let conditions: Vec<usize> = (0..self.ops.len()).filter(|at| self.ops[*at].is_condition()).collect();
        if !conditions.is_empty() && byte.is_multiple_of(2) {
            return conditions[usize::from(byte / 2) % conditions.len()];
        }
        let operands = [self.number(which), self.number(byte)];
        self.add(Op::Compare(byte / 2 % 6, operands))
    }

    /// A node of elements, made of any.
    fn of_elements(&mut self, id: usize) -> usize {
        match self.levels[id] {
            Level::Element => id,
            _ if self.ops[id].is_condition() => {
                let own = self.add(Op::Compare(0, [0, 3]));
                self.add(Op::Join(true, [id, own]))
            }
            _ => self.add(Op::Binary("+", [id, 0])),
        }
    }

    fn step(&mut self, word: u64, exact: bool) {
        let [kind, op, a, b, c, detail, along, _] = word.to_le_bytes();
        let group = (along % 4 == 0).then(|| GROUPS[usize::from(along / 4) % GROUPS.len()]);
        match kind % 16 {
            0..5 => {
                let x = self.number(a);
                let x = self.of_elements(x);
                self.add(Op::Reduce(REDUCTIONS[usize::from(op) % REDUCTIONS.len()], group, x));
            }
            5 => {
                let x = self.condition(a, b);
                let x = self.of_elements(x);
                self.add(Op::Reduce(if op % 2 == 0 { "any" } else { "all" }, group, x));
            }
            6 => {
                self.add(if op % 2 == 0 { Op::Column } else { Op::Width(group) });
            }
            7 | 8 => {
                let x = self.number(a);
                let count = if exact { EXACT_UNARY } else { UNARY.len() };
                self.add(Op::Unary(UNARY[usize::from(op) % count], x));
            }
            9 => {
                let x = self.number(a);
                self.add(Op::Cast(DTYPES[usize::from(op) % DTYPES.len()], detail % 2 == 0, x));
            }
            10 => {
                let ids = [self.number(a), self.number(b), self.number(c)];
                self.add(Op::Fma(ids));
            }
            11 | 12 => {
                let condition = self.condition(detail, op);
                let condition = match c % 4 {
                    0 => self.add(Op::Not(condition)),
                    1 => {
                        let other = self.condition(op, detail);
                        self.add(Op::Join(c / 4 % 2 == 0, [condition, other]))
                    }
                    _ => condition,
                };
                let ids = [condition, self.number(a), self.number(b)];
                self.add(Op::Select(ids));
            }
            13 => self.pair(a, op, group, exact),
            _ => {
                let ids = [self.number(a), self.number(b)];
                let count = if exact { EXACT_BINARY } else { BINARY.len() };
                self.add(Op::Binary(BINARY[usize::from(op) % count], ids));
            }
        }
    }

    /// Two reductions that one traversal can make.
    fn pair(&mut self, which: u8, op: u8, group: Option<u32>, exact: bool) {
        let x = self.number(which);
        let x = self.of_elements(x);
        if exact || op.is_multiple_of(2) {
            let mean = self.add(Op::Reduce("mean", group, x));
            let difference = self.add(Op::Binary("-", [x, mean]));
            let square = self.add(Op::Binary("*", [difference, difference]));
            self.add(Op::Reduce("sum", group, square));
        } else {
            let largest = self.add(Op::Reduce("max", group, x));
            let below = self.add(Op::Binary("-", [x, largest]));
            let exponential = self.add(Op::Unary(if op % 4 == 1 { "exp" } else { "exp2" }, below));
            self.add(Op::Reduce("sum", group, exponential));
        }
    }

    /// How an output is reduced over rows, by number.
    pub(crate) fn of_columns(&self, output: usize) -> Option<&'static str> {
        self.columns.filter(|_| output > 0 && self.levels[self.outputs[output]] == Level::Element)
    }

    /// The nodes that outputs depend on.
    fn used(&self) -> Vec<u32> {
        let mut used = vec![0; self.ops.len()];
        self.outputs.iter().for_each(|id| used[*id] += 1);
        for at in (0..self.ops.len()).rev() {
            if used[at] > 0 {
                self.ops[at].operands().iter().for_each(|id| used[*id] += 1);
            }
        }
        used
    }

    /// The text: parts by `let`, but for those that are used once, every second of which stands where it is used.
    pub(crate) fn text(&self) -> String {
        let used = self.used();
        let mut pieces: Vec<String> = Vec::new();
        let mut parts = String::new();
        for (at, op) in self.ops.iter().enumerate() {
            let piece = self.piece(op, &pieces);
            let inline = op.operands().is_empty() || (used[at] == 1 && at % 2 == 0 && piece.len() < 60);
            if used[at] == 0 || inline {
                pieces.push(piece);
            } else {
                parts += &format!("let p{at} = {piece}; ");
                pieces.push(format!("p{at}"));
            }
        }
        let output = |(number, id): (usize, &usize)| match self.of_columns(number) {
            Some(name) => format!("{name}_column({})", pieces[*id]),
            None => pieces[*id].clone(),
        };
        let outputs: Vec<String> = self.outputs.iter().enumerate().map(output).collect();
        let outputs = match outputs.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        };
        format!("|{}; {}| {{ {parts}{outputs} }}", INPUTS.join(", "), SCALARS.join(", "))
    }

    fn piece(&self, op: &Op, pieces: &[String]) -> String {
        let suffix = |group: Option<u32>| group.map_or_else(String::new, |size| format!("_group{size}"));
        match *op {
            Op::Input(index) => INPUTS[index].to_owned(),
            Op::Scalar(index) => SCALARS[index].to_owned(),
            Op::Constant(x) if x.is_infinite() => (if x > 0.0 { "inf" } else { "(-inf)" }).to_owned(),
            Op::Constant(x) if x.is_sign_negative() => format!("(-{:?})", -x),
            Op::Constant(x) => format!("{x:?}"),
            Op::Column => "col()".to_owned(),
            Op::Width(group) => format!("width{}()", suffix(group)),
            Op::Unary("neg", x) => format!("(-{})", pieces[x]),
            Op::Unary(name, x) => format!("{name}({})", pieces[x]),
            Op::Binary(name @ ("min" | "max" | "pow"), [x, y]) => format!("{name}({}, {})", pieces[x], pieces[y]),
            Op::Binary(name, [x, y]) => format!("({} {name} {})", pieces[x], pieces[y]),
            Op::Fma([x, y, z]) => format!("fma({}, {}, {})", pieces[x], pieces[y], pieces[z]),
            Op::Cast(dtype, true, x) => format!("saturate({dtype}, {})", pieces[x]),
            Op::Cast(dtype, false, x) => format!("cast({dtype}, {})", pieces[x]),
            Op::Compare(5, [x, y]) => format!("(!({} == {}))", pieces[x], pieces[y]),
            Op::Compare(op, [x, y]) => {
                format!("({} {} {})", pieces[x], ["<", "<=", ">", ">=", "=="][usize::from(op)], pieces[y])
            }
            Op::Join(and, [x, y]) => format!("({} {} {})", pieces[x], if and { "&&" } else { "||" }, pieces[y]),
            Op::Not(x) => format!("(!{})", pieces[x]),
            Op::Select([c, x, y]) => format!("select({}, {}, {})", pieces[c], pieces[x], pieces[y]),
            Op::Reduce(name, group, x) => format!("{name}{}({})", suffix(group), pieces[x]),
        }
    }
}
