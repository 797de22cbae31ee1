//! Two reductions of which the second needs the first, made in one traversal.

use super::{Along, Reduction};
use crate::expr::Function;
use crate::expr::op::{Binary, Id, Node, Unary};

/// The second value of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Online {
    /// The first is the largest term, the second the sum of `exp(term - largest)`.
    Exp,
    /// The same with `exp2`.
    Exp2,
    /// The same with `exp2((term - largest) * scale)`, of the positive number that has these bits.
    ScaledExp2(u64),
    /// The first is the sum of the terms, the second the sum of `(term - mean)^2`.
    Squares,
}

/// Two values that one traversal makes of the same terms.
///
/// Two sums of exponentials are joined after the one with the smaller maximum is multiplied by the exponential of the difference. Two
/// sums of squares are joined by Chan's formula, with means that are quotients of partial sums. A row of -inf gives NaN, as in two
/// traversals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// How the second value is made.
    pub online: Online,
    /// The value that is the reduction of the terms.
    pub first: usize,
    /// The value that is made with it. No traversal computes terms of it.
    pub second: usize,
}

impl Online {
    /// The function of the difference of a term and the first value whose sum is the second one, if that is one of exponentials.
    pub fn exponential(self) -> Option<Function> {
        match self {
            Online::Exp => Some(Function::unary(|x| x.exp())),
            Online::Exp2 => Some(Function::unary(|x| x.exp2())),
            Online::ScaledExp2(scale) => Some(Function::unary(|x| (x * f64::from_bits(scale)).exp2())),
            Online::Squares => None,
        }
    }
}

/// The reduction that this one can be made with, in one traversal.
pub(super) fn first_of(nodes: &[Node], second: &Node) -> Option<(Id, Online)> {
    let Node::Reduce(Reduction::Sum, along, [term]) = *second else { return None };
    match nodes[term.index()] {
        Node::Unary(op @ (Unary::Exp | Unary::Exp2), [difference]) => {
            let (difference, online) = match (op, nodes[difference.index()]) {
                (Unary::Exp, _) => (difference, Online::Exp),
                (_, Node::Binary(Binary::Mul, [of, by])) => (of, Online::ScaledExp2(positive(nodes[by.index()])?)),
                _ => (difference, Online::Exp2),
            };
            let Node::Binary(Binary::Sub, [x, largest]) = nodes[difference.index()] else { return None };
            (nodes[largest.index()] == Node::Reduce(Reduction::Max, along, [x])).then_some((largest, online))
        }
        Node::Binary(Binary::Mul, [left, right]) if left == right => {
            let Node::Binary(Binary::Sub, [x, mean]) = nodes[left.index()] else { return None };
            let sum = sum_of_mean(nodes, mean, along)?;
            (nodes[sum.index()] == Node::Reduce(Reduction::Sum, along, [x])).then_some((sum, Online::Squares))
        }
        _ => None,
    }
}

/// The bits of a constant, if it is one and positive.
fn positive(node: Node) -> Option<u64> {
    match node {
        Node::Constant(constant) => Some(constant.value()).filter(|x| *x > 0.0 && x.is_finite()).map(f64::to_bits),
        _ => None,
    }
}

/// The sum that the node is the mean of.
fn sum_of_mean(nodes: &[Node], mean: Id, along: Along) -> Option<Id> {
    match nodes[mean.index()] {
        Node::Binary(Binary::Div, [sum, width]) if nodes[width.index()] == Node::Width(along) => Some(sum),
        _ => None,
    }
}
