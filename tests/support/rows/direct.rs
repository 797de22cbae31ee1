//! A program computed in Rust, row by row, node after node, as any device might: reductions in any order.

use core::ops::Range;

use cutemplate::expr::rows::Level;

use super::{Op, Program};
use crate::expr::Values;

/// A defect of reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The last term is left out.
    LastTerm,
    /// The first term counts twice.
    FirstTwice,
    /// Of equal ones, the last is taken.
    LastOfEqual,
    /// The largest number is taken where there is NaN.
    NanDropped,
    /// Groups begin one element later.
    GroupsMoved,
}

/// In which order terms are reduced, and what is wrong with that.
pub(crate) struct Order(pub(crate) u64, pub(crate) Option<Defect>);

impl Order {
    fn has(&self, defect: Defect) -> bool {
        self.1 == Some(defect)
    }

    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % count.max(1)
    }

    /// Terms in any order, in some chains, whose results are joined.
    fn reduced<T: Copy>(&mut self, mut terms: Vec<T>, join: &mut impl FnMut(T, T) -> T) -> Option<T> {
        for at in (1..terms.len()).rev() {
            let other = self.below(at + 1);
            terms.swap(at, other);
        }
        let length = 1 + self.below(terms.len());
        let chains: Vec<T> =
            terms.chunks(length).filter_map(|chain| chain.iter().copied().reduce(&mut *join)).collect();
        chains.into_iter().reduce(join)
    }
}

enum Node<T> {
    Numbers(Vec<T>),
    Truths(Vec<bool>),
}

fn count(level: Level, n: usize) -> usize {
    match level {
        Level::Element => n,
        Level::Group(size) => n.div_ceil(size as usize),
        Level::Row | Level::Scalar | Level::Column => 1,
    }
}

/// The columns of one value of that level.
fn columns(level: Level, at: usize, n: usize) -> Range<usize> {
    match level {
        Level::Element => at..at + 1,
        Level::Group(size) => at * size as usize..((at + 1) * size as usize).min(n),
        Level::Row | Level::Scalar | Level::Column => 0..n,
    }
}

/// Where the value of that level is that a column reads.
fn place(level: Level, column: usize) -> usize {
    match level {
        Level::Element => column,
        Level::Group(size) => column / size as usize,
        Level::Row | Level::Scalar | Level::Column => 0,
    }
}

/// The outputs of one row of `n` elements; `inputs` are the row's.
pub(crate) fn direct<V>(
    program: &Program,
    v: &mut V,
    n: usize,
    inputs: &[Vec<f64>],
    scalars: &[f64],
    order: &mut Order,
) -> Vec<Vec<f64>>
where
    V: Values<Truth = bool>,
    V::Number: Into<f64> + PartialOrd,
{
    let mut nodes: Vec<Node<V::Number>> = Vec::new();
    for (op, level) in program.ops.iter().zip(&program.levels) {
        let node = match *op {
            Op::Reduce(name, group, x) => reduced(&nodes[x], v, name, group.map_or(Level::Row, Level::Group), n, order),
            _ if op.is_condition() => Node::Truths(
                (0..count(*level, n)).map(|at| truth(program, &nodes, v, op, columns(*level, at, n).start)).collect(),
            ),
            _ => {
                let one = |at| number(program, &nodes, v, op, columns(*level, at, n), n, inputs, scalars);
                Node::Numbers((0..count(*level, n)).map(one).collect())
            }
        };
        nodes.push(node);
    }
    let output = |id: &usize| match &nodes[*id] {
        Node::Numbers(numbers) => numbers.iter().map(|x| (*x).into()).collect(),
        Node::Truths(_) => unreachable!("outputs are numbers"),
    };
    program.outputs.iter().map(output).collect()
}

fn read<T: Copy>(program: &Program, nodes: &[Node<T>], id: usize, column: usize) -> T {
    match &nodes[id] {
        Node::Numbers(numbers) => numbers[place(program.levels[id], column)],
        Node::Truths(_) => unreachable!("a number"),
    }
}

fn holds<T>(program: &Program, nodes: &[Node<T>], id: usize, column: usize) -> bool {
    match &nodes[id] {
        Node::Truths(truths) => truths[place(program.levels[id], column)],
        Node::Numbers(_) => unreachable!("a condition"),
    }
}

#[allow(clippy::too_many_arguments, reason = "all that a node may read")]
fn number<V: Values<Truth = bool>>(
    program: &Program,
    nodes: &[Node<V::Number>],
    v: &mut V,
    op: &Op,
    columns: Range<usize>,
    n: usize,
    inputs: &[Vec<f64>],
    scalars: &[f64],
) -> V::Number {
    let column = columns.start;
    let x = |id: usize| read(program, nodes, id, column);
    match *op {
        Op::Input(index) => v.constant(inputs[index][place(program.inputs[index], column)]),
        Op::Scalar(index) => v.constant(scalars[index]),
        Op::Constant(x) => v.constant(x),
        Op::Column => v.constant(column as f64),
        Op::Width(None) => v.constant(n as f64),
        Op::Width(Some(_)) => v.constant(columns.len() as f64),
        Op::Unary(name, id) => v.unary(name, x(id)),
        Op::Binary(name, [a, b]) => v.binary(name, x(a), x(b)),
        Op::Fma(ids) => v.fma(ids.map(x)),
        Op::Cast(dtype, saturate, id) => v.cast(dtype, saturate, x(id)),
        Op::Select([c, a, b]) => v.select(holds(program, nodes, c, column), x(a), x(b)),
        _ => unreachable!("conditions and reductions are others"),
    }
}

fn truth<V: Values<Truth = bool>>(
    program: &Program,
    nodes: &[Node<V::Number>],
    v: &mut V,
    op: &Op,
    column: usize,
) -> bool {
    match *op {
        Op::Compare(op, [a, b]) => v.compare(op, read(program, nodes, a, column), read(program, nodes, b, column)),
        Op::Join(and, [a, b]) => v.join(and, holds(program, nodes, a, column), holds(program, nodes, b, column)),
        Op::Not(id) => !holds(program, nodes, id, column),
        _ => unreachable!("a condition"),
    }
}

fn reduced<V>(of: &Node<V::Number>, v: &mut V, name: &str, level: Level, n: usize, order: &mut Order) -> Node<V::Number>
where
    V: Values<Truth = bool>,
    V::Number: Into<f64> + PartialOrd,
{
    let moved = usize::from(order.has(Defect::GroupsMoved) && matches!(level, Level::Group(_)));
    let parts = (0..count(level, n))
        .map(|at| columns(level, at, n))
        .map(|part| (part.start + moved).min(n)..(part.end + moved).min(n));
    match of {
        Node::Truths(truths) => {
            let holds = |part: Range<usize>| match name {
                "any" => truths[part].iter().any(|c| *c),
                _ => truths[part].iter().all(|c| *c),
            };
            Node::Truths(parts.map(holds).collect())
        }
        Node::Numbers(numbers) => {
            Node::Numbers(parts.map(|part| of_numbers(v, name, &numbers[part.clone()], part.start, order)).collect())
        }
    }
}

fn of_numbers<V>(v: &mut V, name: &str, terms: &[V::Number], first: usize, order: &mut Order) -> V::Number
where
    V: Values<Truth = bool>,
    V::Number: Into<f64> + PartialOrd,
{
    let (dropped, of_equal) = (order.has(Defect::NanDropped), order.has(Defect::LastOfEqual));
    let is_nan = |x: V::Number| x.into().is_nan() && !dropped;
    let last = usize::from(order.has(Defect::LastTerm));
    let terms = &terms[..terms.len().saturating_sub(last)];
    let mut all = terms.to_vec();
    if order.has(Defect::FirstTwice) {
        all.extend(terms.first());
    }
    match name {
        "sum" => {
            // What began with 0 is never -0.
            let zero = v.constant(0.0);
            order.reduced(all, &mut |x, y| v.binary("+", x, y)).map_or(zero, |x| v.binary("+", zero, x))
        }
        "mean" => {
            let sum = of_numbers(v, "sum", terms, first, order);
            let count = v.constant(terms.len() as f64);
            v.binary("/", sum, count)
        }
        "prod" => order.reduced(all, &mut |x, y| v.binary("*", x, y)).unwrap_or_else(|| v.constant(1.0)),
        "max" | "min" => {
            let mut join = |x, y| if is_nan(x) || is_nan(y) { v.constant(f64::NAN) } else { v.binary(name, x, y) };
            let found = order.reduced(all, &mut join);
            found.unwrap_or_else(|| v.constant(if name == "max" { f64::NEG_INFINITY } else { f64::INFINITY }))
        }
        _ => {
            let beats = |x: V::Number, y: V::Number| match (is_nan(x), is_nan(y)) {
                (false, true) => false,
                (true, false) => true,
                (true, true) => false,
                _ if of_equal && x == y => true,
                _ if name == "argmax" => x > y,
                _ => x < y,
            };
            let mut best = 0;
            for at in 1..terms.len() {
                if beats(terms[at], terms[best]) {
                    best = at;
                }
            }
            v.constant(if terms.is_empty() { 0 } else { first + best } as f64)
        }
    }
}
