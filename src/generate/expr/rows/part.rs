//! A piece of a row program: a function, and where its inputs come from.

use std::collections::BTreeMap;

use super::Along;
use super::cones::Graph;
use crate::expr::error::{ExprError, ExprErrorKind};
use crate::expr::op::{Comparison, Constant, Id, Node};
use crate::expr::tape::Nodes;
use crate::expr::{Checked, Function, names};

/// Where an input of a [`Part`]'s function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An input of the program, by number.
    Input(usize),
    /// The element's index in its row.
    Column,
    /// How many elements the row has, or the element's group.
    Width(Along),
    /// A number that an earlier traversal kept of the same element.
    Kept(usize),
    /// A value of the row, the group or the launch, by number.
    Value(usize),
}

/// A function without reductions, which is done once for an element, a group or a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The function. It may have more inputs and outputs than a kernel's function.
    pub function: Checked,
    /// The source of each input.
    pub reads: Vec<Source>,
    /// The number of each run-time scalar among the program's.
    pub scalars: Vec<usize>,
}

/// The nodes that a part reads instead of computing them.
pub(super) struct Cut<'a> {
    /// The numbers of nodes that are values by now.
    pub(super) values: &'a BTreeMap<Id, usize>,
    /// The numbers of nodes that earlier traversals kept.
    pub(super) kept: &'a BTreeMap<Id, usize>,
}

impl Cut<'_> {
    /// The source of a node that the part does not compute.
    pub(super) fn source(&self, graph: &Graph<'_>, id: Id) -> Option<Source> {
        match graph.node(id) {
            Node::Input(index) => Some(Source::Input(usize::from(index))),
            Node::Column => Some(Source::Column),
            Node::Width(along) => Some(Source::Width(along)),
            Node::Scalar(_) | Node::Constant(_) => None,
            _ => match (self.values.get(&id), self.kept.get(&id)) {
                (Some(value), _) => Some(Source::Value(*value)),
                (None, Some(kept)) => Some(Source::Kept(*kept)),
                (None, None) => None,
            },
        }
    }
}

impl Part {
    /// The function of these outputs. Conditions are 1 and 0.
    pub(super) fn new(graph: &Graph<'_>, cut: &Cut<'_>, outputs: &[Id]) -> Result<Self, Vec<ExprError>> {
        let cone = graph.cone(outputs, |id| cut.source(graph, id).is_some());
        let mut reads: Vec<Source> = cone.iter().filter_map(|id| cut.source(graph, *id)).collect();
        reads.sort_unstable();
        reads.dedup();
        let scalar = |id: &Id| match graph.node(*id) {
            Node::Scalar(index) => Some(usize::from(index)),
            _ => None,
        };
        let mut scalars: Vec<usize> = cone.iter().filter_map(scalar).collect();
        scalars.sort_unstable();
        let count = u8::try_from(reads.len()).map_err(|_| vec![too_many(reads.len())])?;
        let mut nodes = Nodes::default();
        nodes.scalars = scalars.iter().map(|index| graph.function.scalars()[*index].clone()).collect();
        let place = |of: &[Source], source: Source| of.binary_search(&source).unwrap_or_default() as u8;
        let mut made: BTreeMap<Id, Id> = BTreeMap::new();
        for id in cone {
            let node = graph.node(id);
            let new = match (cut.source(graph, id), node) {
                (Some(source), _) => {
                    let read = nodes.add(Node::Input(place(&reads, source)));
                    if node.is_condition() { nodes.is_true(read) } else { read }
                }
                (None, Node::Scalar(index)) => {
                    nodes.add(Node::Scalar(scalars.binary_search(&usize::from(index)).unwrap_or_default() as u8))
                }
                (None, node) => nodes.add(node.moved(|id| made.get(&id).copied().unwrap_or(id))),
            };
            made.insert(id, new);
        }
        let number = |id: &Id| match (made.get(id).copied(), graph.node(*id).is_condition()) {
            (Some(new), true) => Some(nodes.number_of(new)),
            (new, _) => new,
        };
        let outputs: Vec<Id> = outputs.iter().filter_map(number).collect();
        let mut function = Function::from_nodes(nodes, count, &outputs);
        function.set_names(&Self::names(graph, &reads).iter().map(String::as_str).collect::<Vec<_>>());
        Ok(Self { function: function.check(graph.compute)?, reads, scalars })
    }

    /// The names of the inputs: those of the program, `col`, `width`, `k0`, `v0`.
    fn names(graph: &Graph<'_>, reads: &[Source]) -> Vec<String> {
        let own: Vec<&str> = graph.function.input_names().collect();
        let name = |source: &Source| match source {
            Source::Input(index) => own.get(*index).map_or_else(String::new, |name| (*name).to_owned()),
            Source::Column => "col".to_owned(),
            Source::Width(along) => format!("width{along}"),
            Source::Kept(index) => format!("k{index}"),
            Source::Value(index) => format!("v{index}"),
        };
        let named: Vec<String> = reads.iter().map(name).collect();
        let inputs = reads.iter().filter(|source| matches!(source, Source::Input(_))).count();
        let taken = |word: &str| {
            let others = own.iter().copied().chain(graph.function.scalars().iter().map(String::as_str));
            others.into_iter().any(|other| other == word)
        };
        let free = names::free(named[inputs..].iter().map(String::as_str), |word| !taken(word));
        named[..inputs].iter().cloned().chain(free).collect()
    }
}

impl Nodes {
    /// The condition that a number is not 0.
    fn is_true(&mut self, number: Id) -> Id {
        let zero = self.add(Node::Constant(Constant::new(0.0)));
        self.add(Node::Compare(Comparison::Ne, [number, zero]))
    }

    /// 1 where the condition holds, else 0.
    fn number_of(&mut self, condition: Id) -> Id {
        let [one, zero] = [1.0, 0.0].map(|x| self.add(Node::Constant(Constant::new(x))));
        self.add(Node::Select([condition, one, zero]))
    }
}

fn too_many(found: usize) -> ExprError {
    ExprError::new(
        ExprErrorKind::Signature,
        format!("a traversal that reads {found} inputs and values"),
        format!("at most {}", u8::MAX),
        "each is held in a register",
        "split the program in two",
    )
}
