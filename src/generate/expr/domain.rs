//! One loop over a function's operations, for every kind of value that they are done on.

use core::marker::PhantomData;

use super::helpers::expansion;
use super::op::{Binary, Comparison, Id, Node, Unary};
use super::real::{self, Real};
use super::round::{self, Values, values};
use super::tape::Nodes;
use super::{Checked, Compute};
use crate::dtype::DType;

/// Values, conditions, and the effect of the operations on them.
pub(super) trait Domain {
    type Number: Copy;
    type Truth: Copy;

    /// Any condition.
    fn truth(&mut self) -> Self::Truth;
    /// An input, a scalar or a constant.
    fn number(&mut self, x: f64) -> Self::Number;
    fn unary(&mut self, op: Unary, x: Self::Number) -> Self::Number;
    fn binary(&mut self, op: Binary, x: Self::Number, y: Self::Number) -> Self::Number;
    fn fma(&mut self, operands: [Self::Number; 3]) -> Self::Number;
    /// To the element type and back.
    fn cast(&mut self, dtype: DType, x: Self::Number) -> Self::Number;
    /// To the range of values between two limits.
    fn clamp(&mut self, x: Self::Number, limits: (f64, f64)) -> Self::Number;
    fn compare(&mut self, op: Comparison, x: Self::Number, y: Self::Number) -> Self::Truth;
    fn and(&mut self, a: Self::Truth, b: Self::Truth) -> Self::Truth;
    fn or(&mut self, a: Self::Truth, b: Self::Truth) -> Self::Truth;
    fn not(&mut self, a: Self::Truth) -> Self::Truth;
    fn select(&mut self, condition: Self::Truth, yes: Self::Number, no: Self::Number) -> Self::Number;
}

/// A function in operations that devices have.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    pub(super) outputs: Vec<Id>,
    pub(super) compute: Compute,
    /// Whether every operation is one that IEEE 754, or integer arithmetic, gives one result.
    pub(super) exact: bool,
}

impl Program {
    pub(super) fn new(checked: &Checked) -> Program {
        let function = checked.function();
        let mut nodes = Nodes::default();
        let mut places: Vec<Id> = Vec::new();
        for node in function.nodes() {
            let id = match node {
                Node::Unary(op, [x]) => match expansion(*op) {
                    Some(expansion) => {
                        let (expansion, _) = expansion.on(checked.compute());
                        let x = places[x.index()];
                        let mut inner: Vec<Id> = Vec::new();
                        for node in expansion.nodes() {
                            let id = match node {
                                Node::Input(_) => x,
                                node => nodes.add(node.moved(|id| inner[id.index()])),
                            };
                            inner.push(id);
                        }
                        inner[expansion.output_ids()[0].index()]
                    }
                    None => nodes.add(node.moved(|id| places[id.index()])),
                },
                node => nodes.add(node.moved(|id| places[id.index()])),
            };
            places.push(id);
        }
        let outputs = function.output_ids().iter().map(|id| places[id.index()]).collect();
        let exact = nodes.list.iter().all(|node| match node {
            Node::Unary(op, _) => !real::is_approximate(*op),
            Node::Binary(op, _) => *op != Binary::Pow,
            _ => true,
        });
        Program { nodes: nodes.list, outputs, compute: checked.compute(), exact }
    }
}

/// What [`saturate`](super::Expr::saturate) confines values to before the cast; nothing where the cast does it.
pub(super) fn saturation(dtype: DType, compute: Compute) -> Option<(f64, f64)> {
    match (values(dtype), compute) {
        (Values::Integer { lowest, highest }, Compute::I32) if lowest > i32::MIN => {
            Some((f64::from(lowest), f64::from(highest)))
        }
        (Values::Float(format), _) if !format.saturates => Some((-format.highest, format.highest)),
        (Values::F64, Compute::F64) => Some((f64::MIN, f64::MAX)),
        _ => None,
    }
}

/// The values of every operation, kept between elements so that none is allocated twice.
#[derive(Clone, Debug)]
pub(super) struct Registers<D: Domain> {
    numbers: Vec<D::Number>,
    truths: Vec<D::Truth>,
}

impl<D: Domain> Registers<D> {
    pub(super) fn new(domain: &mut D, program: &Program) -> Registers<D> {
        let count = program.nodes.len();
        Registers { numbers: vec![domain.number(0.0); count], truths: vec![domain.truth(); count] }
    }

    pub(super) fn number(&self, id: Id) -> D::Number {
        self.numbers[id.index()]
    }

    pub(super) fn truth(&self, id: Id) -> D::Truth {
        self.truths[id.index()]
    }

    /// Does every operation for one element, whose inputs are given by number.
    pub(super) fn run(
        &mut self,
        domain: &mut D,
        program: &Program,
        input: impl Fn(&mut D, usize) -> D::Number,
        scalars: &[f64],
    ) {
        for (at, node) in program.nodes.iter().enumerate() {
            let number = |id: &Id| self.numbers[id.index()];
            let truth = |id: &Id| self.truths[id.index()];
            let result = match node {
                Node::Input(index) => input(domain, usize::from(*index)),
                Node::Scalar(index) => domain.number(scalars[usize::from(*index)]),
                Node::Constant(constant) => domain.number(constant.value()),
                Node::Unary(op, [x]) => domain.unary(*op, number(x)),
                Node::Binary(op, [x, y]) => domain.binary(*op, number(x), number(y)),
                Node::Fma([a, b, c]) => domain.fma([number(a), number(b), number(c)]),
                Node::Cast(dtype, [x]) => domain.cast(*dtype, number(x)),
                Node::Saturate(dtype, [x]) => {
                    let limits = saturation(*dtype, program.compute);
                    let x = limits.map_or(number(x), |limits| domain.clamp(number(x), limits));
                    domain.cast(*dtype, x)
                }
                Node::Select([c, x, y]) => domain.select(truth(c), number(x), number(y)),
                // A checked function has none of these.
                Node::Reduce(..) | Node::Column | Node::Width(_) => continue,
                Node::Compare(..) | Node::And(_) | Node::Or(_) | Node::Not(_) => {
                    self.truths[at] = match node {
                        Node::Compare(op, [x, y]) => domain.compare(*op, number(x), number(y)),
                        Node::And([a, b]) => domain.and(truth(a), truth(b)),
                        Node::Or([a, b]) => domain.or(truth(a), truth(b)),
                        Node::Not([a]) => domain.not(truth(a)),
                        _ => continue,
                    };
                    continue;
                }
            };
            self.numbers[at] = result;
        }
    }
}

fn holds<T: PartialOrd>(op: Comparison, x: T, y: T) -> bool {
    match op {
        Comparison::Lt => x < y,
        Comparison::Le => x <= y,
        Comparison::Gt => x > y,
        Comparison::Ge => x >= y,
        Comparison::Eq => x == y,
        Comparison::Ne => x != y,
    }
}

macro_rules! truths_are_bools {
    () => {
        fn truth(&mut self) -> bool {
            false
        }
        fn compare(&mut self, op: Comparison, x: Self::Number, y: Self::Number) -> bool {
            holds(op, x, y)
        }
        fn and(&mut self, a: bool, b: bool) -> bool {
            a && b
        }
        fn or(&mut self, a: bool, b: bool) -> bool {
            a || b
        }
        fn not(&mut self, a: bool) -> bool {
            !a
        }
        fn select(&mut self, condition: bool, yes: Self::Number, no: Self::Number) -> Self::Number {
            if condition { yes } else { no }
        }
    };
}

/// Plain floats: what every device computes, as long as nothing is left open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<T> {
    /// Whether devices may differ.
    pub(super) open: bool,
    kind: PhantomData<T>,
}

impl<T> Plain<T> {
    pub(super) fn new() -> Plain<T> {
        Plain { open: false, kind: PhantomData }
    }
}

impl<T: Real> Domain for Plain<T> {
    type Number = T;
    type Truth = bool;

    truths_are_bools!();

    fn number(&mut self, x: f64) -> T {
        T::of(x)
    }

    fn unary(&mut self, op: Unary, x: T) -> T {
        match op {
            Unary::Neg => -x,
            Unary::Abs => x.abs(),
            Unary::Sqrt => x.sqrt(),
            Unary::Relu if x <= T::of(0.0) => T::of(0.0),
            Unary::Relu => x,
            _ => {
                self.open = true;
                x
            }
        }
    }

    fn binary(&mut self, op: Binary, x: T, y: T) -> T {
        match op {
            Binary::Add => x + y,
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            Binary::Min | Binary::Max => {
                let first = if op == Binary::Min { x < y } else { x > y };
                let chosen = if first || y.is_nan() { x } else { y };
                // Zeros of two signs are equal, and either may be taken; 0 may be given for -0 even where both are.
                self.open |= (x == y && !x.same(y)) || chosen.same(T::of(-0.0));
                chosen
            }
            Binary::Pow => {
                self.open = true;
                x
            }
        }
    }

    fn fma(&mut self, [a, b, c]: [T; 3]) -> T {
        a.mul_add(b, c)
    }

    fn cast(&mut self, dtype: DType, x: T) -> T {
        T::of(round::round_to(dtype, x.wide()))
    }

    fn clamp(&mut self, x: T, (lowest, highest): (f64, f64)) -> T {
        let (lowest, highest) = (T::of(lowest), T::of(highest));
        if x > highest {
            highest
        } else if x < lowest {
            lowest
        } else {
            x
        }
    }
}

/// Integers that wrap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integers;

impl Domain for Integers {
    type Number = i32;
    type Truth = bool;

    truths_are_bools!();

    fn number(&mut self, x: f64) -> i32 {
        x as i32
    }

    /// Nothing else is left by [`Function::check`](super::Function::check).
    fn unary(&mut self, op: Unary, x: i32) -> i32 {
        match op {
            Unary::Neg => x.wrapping_neg(),
            Unary::Abs => x.wrapping_abs(),
            _ => x.max(0),
        }
    }

    fn binary(&mut self, op: Binary, x: i32, y: i32) -> i32 {
        match op {
            Binary::Add => x.wrapping_add(y),
            Binary::Sub => x.wrapping_sub(y),
            Binary::Min => x.min(y),
            Binary::Max => x.max(y),
            _ => x.wrapping_mul(y),
        }
    }

    fn fma(&mut self, [a, b, c]: [i32; 3]) -> i32 {
        a.wrapping_mul(b).wrapping_add(c)
    }

    fn cast(&mut self, dtype: DType, x: i32) -> i32 {
        round::stored(dtype, Compute::I32, f64::from(x)) as i32
    }

    fn clamp(&mut self, x: i32, (lowest, highest): (f64, f64)) -> i32 {
        x.clamp(lowest as i32, highest as i32)
    }
}
