//! A function's nodes with what each belongs to and after how many traversals it is known.

use super::Level;
use super::levels::{exists, fits, joined};
use crate::expr::error::ExprError;
use crate::expr::op::{Id, Node};
use crate::expr::{Compute, Function};

pub(super) struct Graph<'a> {
    pub(super) function: &'a Function,
    pub(super) compute: Compute,
    /// Of each node, what it belongs to.
    pub(super) levels: Vec<Level>,
    /// Of each node, how many traversals have to be over before it can be computed.
    pub(super) stages: Vec<usize>,
    /// Whether to compute it again for an element takes many instructions.
    pub(super) costly: Vec<bool>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(function: &'a Function, inputs: &[Level], compute: Compute) -> Result<Self, Vec<ExprError>> {
        let count = function.nodes().len();
        let (mut levels, mut stages) = (Vec::<Level>::with_capacity(count), Vec::<usize>::with_capacity(count));
        let mut costly = Vec::<bool>::with_capacity(count);
        let mut errors = Vec::new();
        for node in function.nodes() {
            let operands = || node.operands().iter().map(|id| id.index());
            let level = joined(node, inputs, operands().map(|at| levels[at]));
            let stage = operands().map(|at| stages[at]).max().unwrap_or(0);
            let fit = match node {
                Node::Reduce(reduction, along, [x]) => fits(*reduction, *along, levels[x.index()]),
                Node::Width(along) => exists("width", *along),
                _ => Ok(()),
            };
            errors.extend(fit.err());
            costly.push(level == Level::Element && (node.is_costly() || operands().any(|at| costly[at])));
            levels.push(level);
            stages.push(stage + usize::from(matches!(node, Node::Reduce(..))));
        }
        match errors.is_empty() {
            true => Ok(Self { function, compute, levels, stages, costly }),
            false => Err(errors),
        }
    }

    pub(super) fn node(&self, id: Id) -> Node {
        self.function.nodes()[id.index()]
    }

    pub(super) fn level(&self, id: Id) -> Level {
        self.levels[id.index()]
    }

    pub(super) fn stage(&self, id: Id) -> usize {
        self.stages[id.index()]
    }

    pub(super) fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (0..self.levels.len()).map(|at| Id(at as u32))
    }

    /// What is needed for these outputs, operands first; `ends` tells where something is read instead of computed.
    pub(super) fn cone(&self, outputs: &[Id], mut ends: impl FnMut(Id) -> bool) -> Vec<Id> {
        let mut needed = vec![false; self.levels.len()];
        outputs.iter().for_each(|id| needed[id.index()] = true);
        for id in self.ids().rev() {
            if needed[id.index()] && !ends(id) {
                self.node(id).operands().iter().for_each(|id| needed[id.index()] = true);
            }
        }
        self.ids().filter(|id| needed[id.index()]).collect()
    }

    pub(super) fn is_reduction(&self, id: Id) -> bool {
        matches!(self.node(id), Node::Reduce(..))
    }

    /// Whether the node may be a value that is computed once for what it belongs to.
    pub(super) fn is_value(&self, id: Id) -> bool {
        self.level(id) < Level::Element && !self.node(id).is_leaf()
    }
}
