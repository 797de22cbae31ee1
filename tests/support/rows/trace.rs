//! A program as the crate traces it.

use cutemplate::expr::{Cond, Expr, Function, Tape};

use super::{INPUTS, Op, Program, SCALARS};
use crate::expr::{Traced, Values};

#[derive(Clone, Copy)]
enum Node<'t> {
    Number(Expr<'t>),
    Truth(Cond<'t>),
}

impl Program {
    /// The function that a closure makes.
    pub(crate) fn trace(&self) -> Function {
        let traced = match self.outputs.len() {
            1 => Function::nary(INPUTS.len(), |t, x| self.outputs_of::<1>(t, x)),
            2 => Function::nary(INPUTS.len(), |t, x| self.outputs_of::<2>(t, x)),
            _ => Function::nary(INPUTS.len(), |t, x| self.outputs_of::<3>(t, x)),
        };
        traced.and_then(|function| function.named(&INPUTS)).expect("the signature is fine")
    }

    fn outputs_of<'t, const N: usize>(&self, t: Tape<'t>, x: &[Expr<'t>]) -> [Expr<'t>; N] {
        let scalars = SCALARS.map(|name| t.scalar(name));
        let mut nodes: Vec<Node<'t>> = Vec::new();
        for op in &self.ops {
            nodes.push(node(op, &nodes, t, x, &scalars));
        }
        core::array::from_fn(|i| match nodes[self.outputs[i]] {
            Node::Number(x) => match self.of_columns(i) {
                Some("sum") => x.column().sum(),
                Some("max") => x.column().max(),
                Some(_) => x.column().min(),
                None => x,
            },
            Node::Truth(_) => unreachable!("outputs are numbers"),
        })
    }
}

fn node<'t>(op: &Op, nodes: &[Node<'t>], t: Tape<'t>, inputs: &[Expr<'t>], scalars: &[Expr<'t>]) -> Node<'t> {
    let number = |id: usize| match nodes[id] {
        Node::Number(x) => x,
        Node::Truth(_) => unreachable!("a number"),
    };
    let truth = |id: usize| match nodes[id] {
        Node::Truth(c) => c,
        Node::Number(_) => unreachable!("a condition"),
    };
    let mut v = Traced(t);
    Node::Number(match *op {
        Op::Input(index) => inputs[index],
        Op::Scalar(index) => scalars[index],
        Op::Constant(x) => t.constant(x),
        Op::Column => t.col(),
        Op::Width(None) => t.width(),
        Op::Width(Some(size)) => t.width_of_group(size),
        Op::Unary(name, x) => v.unary(name, number(x)),
        Op::Binary(name, [x, y]) => v.binary(name, number(x), number(y)),
        Op::Fma(ids) => v.fma(ids.map(number)),
        Op::Cast(dtype, saturate, x) => v.cast(dtype, saturate, number(x)),
        Op::Select([c, x, y]) => v.select(truth(c), number(x), number(y)),
        Op::Compare(op, [x, y]) => return Node::Truth(v.compare(op, number(x), number(y))),
        Op::Join(and, [x, y]) => return Node::Truth(v.join(and, truth(x), truth(y))),
        Op::Not(x) => return Node::Truth(truth(x).not()),
        Op::Reduce(name @ ("any" | "all"), along, x) => {
            let all = along.map_or(truth(x).row(), |size| truth(x).group(size));
            return Node::Truth(if name == "any" { all.any() } else { all.all() });
        }
        Op::Reduce(name, along, x) => {
            let all = along.map_or(number(x).row(), |size| number(x).group(size));
            match name {
                "sum" => all.sum(),
                "mean" => all.mean(),
                "prod" => all.prod(),
                "max" => all.max(),
                "min" => all.min(),
                "argmax" => all.argmax(),
                _ => all.argmin(),
            }
        }
    })
}
