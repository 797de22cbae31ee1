//! A traced function: its signature and its operations, in one canonical order.

use core::cell::RefCell;
use core::hash::{Hash, Hasher};

use super::error::{ExprError, ExprErrorKind};
use super::names;
use super::op::{Binary, Id, Node};
use super::rows::{Along, Reduction};
use super::tape::{Expr, Nodes, Tape};

/// The most inputs that a function has: they are called a, b, c, d, e, f, g, h, unless it names them.
pub const MAX_INPUTS: usize = 8;
/// The most scalars.
pub const MAX_SCALARS: usize = 16;
/// The most outputs.
pub const MAX_OUTPUTS: usize = 4;

/// A scalar function of up to 8 inputs and of run-time scalars, with up to 4 outputs.
///
/// Two functions are equal if they do the same operations in the same order on the same inputs. It does not matter
/// whether they were made from a closure or a text, nor whether they repeat an operation on the same operands: it is
/// done once. What inputs are called does not matter either: it is what texts, arguments and messages show.
///
/// ```
/// use cutemplate::expr::Function;
///
/// let f = Function::binary(|a, b| (a * b).relu());
/// assert_eq!(f.to_string(), "relu(a * b)");
/// assert_eq!("relu(a * b)".parse(), Ok(f));
///
/// let swiglu = Function::binary(|gate, up| gate.silu() * up);
/// assert_eq!((swiglu.inputs(), swiglu.outputs()), (2, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    inputs: Inputs,
    scalars: Vec<String>,
    /// Operands first; each node is reached from an output, and none is there twice.
    nodes: Vec<Node>,
    outputs: Vec<Id>,
}

/// How many inputs there are, and their names. Functions that differ in names alone are equal.
#[derive(Clone, Debug)]
struct Inputs {
    count: u8,
    /// Empty where they are called a to h.
    names: Vec<String>,
}

impl PartialEq for Inputs {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
    }
}

impl Eq for Inputs {}

impl Hash for Inputs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.count.hash(state);
    }
}

impl Function {
    /// Traces a closure of one input.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let leaky = Function::unary(|x| x.gt(0).select(x, x * 0.01));
    /// assert_eq!(leaky.to_string(), "select(a > 0, a, a * 0.01)");
    /// ```
    pub fn unary<F>(closure: F) -> Function
    where
        F: for<'t> FnOnce(Expr<'t>) -> Expr<'t>,
    {
        let nodes = RefCell::new(Nodes::default());
        let tape = Tape::new(&nodes);
        let output = closure(input(tape, 0)).id;
        Function::from_nodes(nodes.into_inner(), 1, &[output])
    }

    /// Traces a closure of two inputs.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// assert_eq!(Function::binary(|a, b| (a * b).relu()).to_string(), "relu(a * b)");
    /// ```
    pub fn binary<F>(closure: F) -> Function
    where
        F: for<'t> FnOnce(Expr<'t>, Expr<'t>) -> Expr<'t>,
    {
        let nodes = RefCell::new(Nodes::default());
        let tape = Tape::new(&nodes);
        let output = closure(input(tape, 0), input(tape, 1)).id;
        Function::from_nodes(nodes.into_inner(), 2, &[output])
    }

    /// Traces a closure of 0 to 8 inputs and 1 to 4 outputs, with constants and run-time scalars from the tape.
    ///
    /// # Errors
    /// More than 8 inputs, not 1 to 4 outputs, more than 16 scalars, or a scalar whose name means something already.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let sum = Function::nary(4, |_, x| [x[1..].iter().fold(x[0], |sum, x| sum + *x)])?;
    /// assert_eq!(sum.to_string(), "a + b + c + d");
    ///
    /// let scale = Function::nary(1, |t, x| [t.scalar("alpha") * x[0]])?;
    /// assert_eq!(scale.to_string(), "|a; alpha| alpha * a");
    ///
    /// let polar = Function::nary(2, |_, x| [x[0] * x[1].cos(), x[0] * x[1].sin()])?;
    /// assert_eq!(polar.to_string(), "a * cos(b), a * sin(b)");
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn nary<F, const OUTPUTS: usize>(inputs: usize, closure: F) -> Result<Function, ExprError>
    where
        F: for<'t> FnOnce(Tape<'t>, &[Expr<'t>]) -> [Expr<'t>; OUTPUTS],
    {
        let count = input_count(inputs)?;
        let nodes = RefCell::new(Nodes::default());
        let tape = Tape::new(&nodes);
        let exprs: Vec<Expr<'_>> = (0..count).map(|index| input(tape, index)).collect();
        let outputs = closure(tape, &exprs).map(|expr| expr.id);
        let nodes = nodes.into_inner();
        names::check_scalars(&nodes.scalars)?;
        let scalars: Vec<&str> = nodes.scalars.iter().map(String::as_str).collect();
        names::check_apart(&names::INPUTS[..usize::from(count)], &scalars)?;
        if outputs.is_empty() || outputs.len() > MAX_OUTPUTS {
            return Err(ExprError::new(
                ExprErrorKind::Signature,
                format!("{} outputs", outputs.len()),
                format!("1 to {MAX_OUTPUTS}"),
                "every output is a tensor that the kernel writes",
                "split the function in two",
            ));
        }
        Ok(Function::from_nodes(nodes, count, &outputs))
    }

    /// Keeps what the outputs need, in the order in which they need it.
    pub(super) fn from_nodes(nodes: Nodes, inputs: u8, outputs: &[Id]) -> Function {
        let mut order: Vec<Option<Id>> = vec![None; nodes.list.len()];
        let mut list: Vec<Node> = Vec::new();
        let mut stack: Vec<(Id, usize)> = Vec::new();
        for output in outputs {
            stack.push((*output, 0));
            while let Some((id, next)) = stack.pop() {
                if order[id.index()].is_some() {
                    continue;
                }
                let node = nodes.list[id.index()];
                if let Some(operand) = node.operands().get(next) {
                    stack.push((id, next + 1));
                    stack.push((*operand, 0));
                } else {
                    order[id.index()] = Some(Id(list.len() as u32));
                    list.push(node.moved(|id| order[id.index()].unwrap_or(id)));
                }
            }
        }
        let outputs = outputs.iter().filter_map(|id| order[id.index()]).collect();
        let inputs = Inputs { count: inputs, names: Vec::new() };
        Function { inputs, scalars: nodes.scalars, nodes: list, outputs }
    }

    /// The same function, its inputs called so: what a closure cannot say. C++, arguments of launches and messages use
    /// the names.
    ///
    /// # Errors
    /// Another number of names than inputs; a name that is none, is there twice, or is a scalar's.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let f = Function::binary(|x, bias| (x + bias).gelu()).named(&["x", "bias"])?;
    /// assert_eq!(f.to_string(), "|x, bias| gelu(x + bias)");
    /// assert_eq!(f, "gelu(a + b)".parse()?);
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn named(mut self, inputs: &[&str]) -> Result<Function, ExprError> {
        names::check_inputs(inputs)?;
        let scalars: Vec<&str> = self.scalars.iter().map(String::as_str).collect();
        names::check_apart(inputs, &scalars)?;
        if inputs.len() != self.inputs() {
            let found = format!("{} names", inputs.len());
            let because = format!("`{self}` has {} inputs", self.inputs());
            let required = self.inputs().to_string();
            return Err(ExprError::new(ExprErrorKind::Signature, found, required, because, "name each of them"));
        }
        self.set_names(inputs);
        Ok(self)
    }

    /// Keeps the names, where they say more than the places.
    pub(super) fn set_names(&mut self, inputs: &[&str]) {
        let as_usual = inputs.iter().eq(names::INPUTS.iter().take(inputs.len()));
        self.inputs.names = if as_usual { Vec::new() } else { inputs.iter().map(|&name| name.to_owned()).collect() };
    }

    /// The reduction of each output along the row.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    /// use cutemplate::expr::rows::Reduction;
    ///
    /// let dot = Function::binary(|a, b| a * b).reduced(Reduction::Sum);
    /// assert_eq!(dot.to_string(), "sum(a * b)");
    /// ```
    #[must_use]
    pub fn reduced(&self, reduction: Reduction) -> Function {
        let mut nodes = Nodes::default();
        nodes.scalars.clone_from(&self.scalars);
        let mut ids: Vec<Id> = Vec::new();
        for node in &self.nodes {
            ids.push(nodes.add(node.moved(|id| ids[id.index()])));
        }
        let outputs = self.outputs.iter().map(|id| nodes.add(Node::Reduce(reduction, Along::Row, [ids[id.index()]])));
        let outputs: Vec<Id> = outputs.collect();
        Function { inputs: self.inputs.clone(), ..Function::from_nodes(nodes, self.inputs.count, &outputs) }
    }

    /// The same function with one more input at that place, which it does not use.
    pub(crate) fn with_unused_input(&self, at: usize) -> Result<Function, ExprError> {
        let count = input_count(self.inputs() + 1)?;
        let moved = |node: &Node| match *node {
            Node::Input(index) if usize::from(index) >= at => Node::Input(index + 1),
            node => node,
        };
        let mut function = Function { nodes: self.nodes.iter().map(moved).collect(), ..self.clone() };
        function.inputs.count = count;
        if !self.inputs.names.is_empty() {
            let taken = |name: &&str| !self.inputs.names.iter().chain(&self.scalars).any(|known| known == name);
            let free = ["unused", "unused_input", "no_input"].iter().chain(&names::INPUTS).copied().find(taken);
            function.inputs.names.insert(at.min(self.inputs()), free.unwrap_or("none").to_owned());
        }
        Ok(function)
    }

    /// The same function with operands in place of outputs, as long as `instead` names one.
    pub(super) fn with_outputs(&self, instead: impl Fn(usize, Node) -> Option<Id>) -> Function {
        let last = |(output, id): (usize, &Id)| {
            core::iter::successors(Some(*id), |id| instead(output, self.nodes[id.index()])).last().unwrap_or(*id)
        };
        let outputs: Vec<Id> = self.outputs.iter().enumerate().map(last).collect();
        let mut nodes = Nodes::default();
        nodes.list.clone_from(&self.nodes);
        nodes.scalars.clone_from(&self.scalars);
        Function { inputs: self.inputs.clone(), ..Function::from_nodes(nodes, self.inputs.count, &outputs) }
    }

    /// Whether the inputs have names of their own.
    pub(crate) fn has_names(&self) -> bool {
        !self.inputs.names.is_empty()
    }

    /// The number of inputs, those that are not used among them.
    pub fn inputs(&self) -> usize {
        usize::from(self.inputs.count)
    }

    /// The name of each input: its own, or a letter from `a` on.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let f = Function::binary(|a, b| a - b);
    /// assert_eq!(f.input_names().collect::<Vec<_>>(), ["a", "b"]);
    /// let f: Function = "|x, bias| x + bias".parse()?;
    /// assert_eq!(f.input_names().collect::<Vec<_>>(), ["x", "bias"]);
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn input_names(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.inputs()).map(|index| self.inputs.names.get(index).map_or(names::INPUTS[index], String::as_str))
    }

    /// Names of the run-time scalars, in order of declaration.
    pub fn scalars(&self) -> &[String] {
        &self.scalars
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Inputs that no output depends on, by number from 0.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// assert_eq!(Function::binary(|a, _| a.relu()).unused_inputs(), [1]);
    /// ```
    pub fn unused_inputs(&self) -> Vec<usize> {
        (0..self.inputs.count).filter(|i| !self.nodes.contains(&Node::Input(*i))).map(usize::from).collect()
    }

    /// The number of operations. Each is done once for an element.
    pub fn operations(&self) -> usize {
        self.nodes.iter().filter(|node| !node.is_leaf()).count()
    }

    /// Whether each operation is an instruction or two, and there are at most `most`.
    pub(crate) fn is_short(&self, most: usize) -> bool {
        self.operations() <= most && !self.nodes.iter().any(Node::is_costly)
    }

    /// Whether its only output is its first input.
    pub(crate) fn is_first_input(&self) -> bool {
        matches!(self.outputs[..], [id] if self.nodes[id.index()] == Node::Input(0))
    }

    /// The run-time scalar, by number from 0, that every use of an input is multiplied by, if there is one: where it is 0,
    /// the input need not be looked at, as BLAS has it.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let f: Function = "|a, b; alpha, beta| alpha * a + beta * b".parse()?;
    /// assert_eq!((f.only_scaled(0), f.only_scaled(1)), (Some(0), Some(1)));
    /// let g: Function = "|a, b; alpha| alpha * a + b + a".parse()?;
    /// assert_eq!((g.only_scaled(0), g.only_scaled(1)), (None, None));
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn only_scaled(&self, input: usize) -> Option<usize> {
        let place = |wanted: Node| self.nodes.iter().position(|node| *node == wanted);
        let id = Id(u32::try_from(place(Node::Input(u8::try_from(input).ok()?))?).ok()?);
        let scale = |node: &Node| match *node {
            Node::Binary(Binary::Mul, [x, y]) | Node::Fma([x, y, _]) if (x == id) != (y == id) => {
                let fused_on = matches!(*node, Node::Fma([_, _, z]) if z == id);
                match self.nodes[if x == id { y } else { x }.index()] {
                    Node::Scalar(scalar) if !fused_on => Some(usize::from(scalar)),
                    _ => None,
                }
            }
            _ => None,
        };
        let uses: Vec<&Node> = self.nodes.iter().filter(|node| node.operands().contains(&id)).collect();
        let scalar = uses.first().and_then(|node| scale(node))?;
        let all = uses.iter().all(|node| scale(node) == Some(scalar)) && !self.outputs.contains(&id);
        all.then_some(scalar)
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Whether an output is a result of columns, by number.
    pub fn is_of_columns(&self, output: usize) -> bool {
        let node = self.outputs.get(output).and_then(|id| self.nodes().get(id.index()));
        matches!(node, Some(Node::Reduce(_, Along::Column, _)))
    }

    pub(super) fn output_ids(&self) -> &[Id] {
        &self.outputs
    }
}

pub(super) fn input_count(inputs: usize) -> Result<u8, ExprError> {
    match u8::try_from(inputs) {
        Ok(count) if inputs <= MAX_INPUTS => Ok(count),
        _ => Err(ExprError::new(
            ExprErrorKind::Signature,
            format!("{inputs} inputs"),
            format!("at most {MAX_INPUTS}"),
            "each input is a tensor that the kernel reads",
            "split the function in two",
        )),
    }
}

fn input(tape: Tape<'_>, index: u8) -> Expr<'_> {
    tape.add(Node::Input(index))
}
