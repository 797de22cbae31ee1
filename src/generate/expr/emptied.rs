//! Where a function is -inf, whatever some of its inputs are: a condition on the others.

use core::marker::PhantomData;

use super::domain::{Program, Registers};
use super::error::ExprError;
use super::eval::{self, Bounds};
use super::function::Function;
use super::interval::Intervals;
use super::op::{Binary, Comparison, Constant, Id, Node, Unary};
use super::tape::Nodes;
use super::{Checked, Compute};
use crate::dtype::DType;

/// A condition on bounds of some inputs: where it holds, the function is -inf for all values within the bounds, whatever its other inputs
/// are.
///
/// ```
/// use cutemplate::expr::{Bounds, Compute, Function};
///
/// let causal: Function = "|s, q, k| select(k <= q, s, -inf)".parse()?;
/// let emptied = causal.check(Compute::F32).expect("f32 has it").emptied(&[1, 2]).expect("a mask");
/// let holds = |q, k| emptied.holds(&[Bounds::point(f64::NAN), q, k], &[]);
/// assert!(holds(Bounds::between(0.0, 63.0), Bounds::between(64.0, 127.0))?);
/// assert!(!holds(Bounds::between(0.0, 64.0), Bounds::between(64.0, 127.0))?);
/// # Ok::<(), cutemplate::expr::ExprError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Emptied {
    /// Its output is the condition, of comparisons, `&&` and `||`.
    pub(super) condition: Function,
    /// Inputs that it may depend on.
    pub(super) known: Vec<usize>,
}

/// Whether something holds for all values within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Always,
    If(Id),
    /// Nobody knows.
    Never,
}

use Holds::{Always, If, Never};

/// A node, as far as bounds of known inputs tell.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The number, where it is computed of known inputs by operations that are monotone, rounding included.
    number: Option<Id>,
    /// Whether it is -inf.
    lowest: Holds,
    /// Whether it is true, and whether it is false.
    truth: [Holds; 2],
}

/// Choices among numbers that are compared, one inside of another.
const MOST_CHOICES: usize = 4;

/// The condition while it is made.
struct Conditions<'f> {
    function: &'f Function,
    nodes: Nodes,
    /// One for each of the function's nodes so far.
    known: Vec<Known>,
}

impl Checked {
    /// Where the output is -inf whatever inputs are that are not among `known`; nothing where no bounds of these say so, and where the
    /// function computes in another type than f32.
    ///
    /// It is derived from choices of -inf by [`select`](super::Cond::select), from `min`, `max`, and sums of these. Conditions may compare
    /// what `+`, `-`, `*`, `/`, `abs`, `relu`, `min`, `max` and casts make of known inputs and scalars.
    pub fn emptied(&self, known: &[usize]) -> Option<Emptied> {
        let function = self.function();
        let mut nodes = Nodes::default();
        nodes.scalars.extend_from_slice(function.scalars());
        let mut conditions = Conditions { function, nodes, known: Vec::new() };
        for node in function.nodes() {
            let of_node = conditions.of(*node, known);
            conditions.known.push(of_node);
        }
        let ([output], Compute::F32) = (function.output_ids(), self.compute()) else { return None };
        let If(condition) = conditions.known[output.index()].lowest else { return None };
        let mut condition = Function::from_nodes(conditions.nodes, function.inputs() as u8, &[condition]);
        condition.set_names(&function.input_names().collect::<Vec<_>>());
        Some(Emptied { condition, known: known.to_vec() })
    }
}

impl Emptied {
    /// Whether it holds for bounds of each input. Those of unknown inputs do not matter.
    ///
    /// # Errors
    /// Another number of inputs or scalars than the function has.
    pub fn holds(&self, inputs: &[Bounds], scalars: &[f64]) -> Result<bool, ExprError> {
        eval::count("inputs", inputs.len(), self.condition.inputs())?;
        eval::count("scalars", scalars.len(), self.condition.scalars().len())?;
        let program = Program::new(&Checked::new(self.condition.clone(), Compute::F32));
        let mut domain = Intervals::<f32>(PhantomData);
        let mut registers = Registers::new(&mut domain, &program);
        registers.run(&mut domain, &program, |_, i| inputs[i].interval(), scalars);
        let truth = program.outputs.first().map(|id| registers.truth(*id));
        Ok(truth.is_some_and(|truth| truth.yes && !truth.no))
    }
}

impl Conditions<'_> {
    fn of(&mut self, node: Node, known: &[usize]) -> Known {
        let number = self.number(node, known);
        Known { number, lowest: self.lowest(node), truth: [true, false].map(|wanted| self.truth(node, wanted)) }
    }

    fn known(&self, id: Id) -> Known {
        self.known[id.index()]
    }

    /// The same operation on known numbers, if it is monotone in each of its operands.
    fn number(&mut self, node: Node, known: &[usize]) -> Option<Id> {
        let is_monotone = match node {
            Node::Input(index) => known.contains(&usize::from(index)),
            Node::Scalar(_) | Node::Constant(_) => true,
            Node::Unary(op, _) => matches!(op, Unary::Neg | Unary::Abs | Unary::Relu),
            Node::Binary(op, _) => op != Binary::Pow,
            Node::Cast(dtype, _) | Node::Saturate(dtype, _) => dtype != DType::Bool,
            _ => false,
        };
        let numbers = node.operands().iter().map(|id| self.known(*id).number).collect::<Option<Vec<Id>>>()?;
        let mut numbers = numbers.into_iter();
        is_monotone.then(|| self.nodes.add(node.moved(|id| numbers.next().unwrap_or(id))))
    }

    fn lowest(&mut self, node: Node) -> Holds {
        let of = |this: &Self, id: Id| this.known(id).lowest;
        match node {
            Node::Constant(c) if c.value() == f64::NEG_INFINITY => Always,
            Node::Select([c, x, y]) => {
                let ([yes, no], x, y) = (self.known(c).truth, of(self, x), of(self, y));
                self.choice([yes, no], [x, y])
            }
            Node::Binary(Binary::Min, [x, y]) => self.or(of(self, x), of(self, y)),
            Node::Binary(Binary::Max, [x, y]) => self.and(of(self, x), of(self, y)),
            // -inf with what is neither NaN nor the other infinity.
            Node::Binary(Binary::Add, [x, y]) => {
                let [of_x, of_y] = [(x, y), (y, x)].map(|(x, y)| {
                    let others = self.is_beside(y, Comparison::Lt, f64::INFINITY);
                    self.and(of(self, x), others)
                });
                self.or(of_x, of_y)
            }
            Node::Binary(Binary::Sub, [x, y]) => {
                let others = self.is_beside(y, Comparison::Gt, f64::NEG_INFINITY);
                self.and(of(self, x), others)
            }
            _ => Never,
        }
    }

    /// Whether a number is below or above a constant.
    fn is_beside(&mut self, id: Id, op: Comparison, constant: f64) -> Holds {
        match (self.function.nodes()[id.index()], self.known(id).number) {
            (Node::Constant(c), _) => {
                if c.value().is_finite() {
                    Always
                } else {
                    Never
                }
            }
            (_, Some(number)) => {
                let constant = self.nodes.add(Node::Constant(Constant::new(constant)));
                If(self.nodes.add(Node::Compare(op, [number, constant])))
            }
            (_, None) => Never,
        }
    }

    /// Whether a condition has this truth.
    fn truth(&mut self, node: Node, wanted: bool) -> Holds {
        let of = |this: &Self, id: Id, wanted: bool| this.known(id).truth[usize::from(!wanted)];
        match node {
            Node::Not([a]) => of(self, a, !wanted),
            Node::And([a, b]) | Node::Or([a, b]) => {
                let (is_and, a, b) = (matches!(node, Node::And(_)), of(self, a, wanted), of(self, b, wanted));
                if is_and == wanted { self.and(a, b) } else { self.or(a, b) }
            }
            Node::Compare(op, operands) => self.compare(if wanted { op } else { opposite(op) }, operands, MOST_CHOICES),
            _ => Never,
        }
    }

    /// A comparison of numbers; of a choice between two, a choice between comparisons.
    fn compare(&mut self, op: Comparison, [x, y]: [Id; 2], choices: usize) -> Holds {
        if let (Some(x), Some(y)) = (self.known(x).number, self.known(y).number) {
            return If(self.nodes.add(Node::Compare(op, [x, y])));
        }
        let sides = [x, y].map(|id| self.function.nodes()[id.index()]);
        let (c, pairs) = match sides {
            [Node::Select([c, a, b]), _] => (c, [[a, y], [b, y]]),
            [_, Node::Select([c, a, b])] => (c, [[x, a], [x, b]]),
            _ => return Never,
        };
        if choices == 0 {
            return Never;
        }
        let results = pairs.map(|pair| self.compare(op, pair, choices - 1));
        self.choice(self.known(c).truth, results)
    }

    /// Whether what is chosen holds: the one that is chosen, or both.
    fn choice(&mut self, [yes, no]: [Holds; 2], [x, y]: [Holds; 2]) -> Holds {
        let (first, second, both) = (self.and(yes, x), self.and(no, y), self.and(x, y));
        let either = self.or(first, second);
        self.or(either, both)
    }

    fn and(&mut self, a: Holds, b: Holds) -> Holds {
        match (a, b) {
            (Never, _) | (_, Never) => Never,
            (Always, other) | (other, Always) => other,
            (If(a), If(b)) if a == b => If(a),
            (If(a), If(b)) => If(self.nodes.add(Node::And([a, b]))),
        }
    }

    fn or(&mut self, a: Holds, b: Holds) -> Holds {
        match (a, b) {
            (Always, _) | (_, Always) => Always,
            (Never, other) | (other, Never) => other,
            (If(a), If(b)) if a == b => If(a),
            (If(a), If(b)) => If(self.nodes.add(Node::Or([a, b]))),
        }
    }
}

/// The comparison that holds of two numbers where the other does not.
fn opposite(op: Comparison) -> Comparison {
    match op {
        Comparison::Le => Comparison::Gt,
        Comparison::Lt => Comparison::Ge,
        Comparison::Ge => Comparison::Lt,
        Comparison::Gt => Comparison::Le,
        Comparison::Eq => Comparison::Ne,
        Comparison::Ne => Comparison::Eq,
    }
}
