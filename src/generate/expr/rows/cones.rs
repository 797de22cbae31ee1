//! A function's nodes, each with its level and the number of traversals before it.

use super::levels::{exists, fits, is_known, joined};
use super::pairs::first_of;
use super::{Along, Level, Online, Reduction};
use crate::expr::error::ExprError;
use crate::expr::op::{Id, Node};
use crate::expr::{Compute, Function};

pub(super) struct Graph<'a> {
    pub(super) function: &'a Function,
    pub(super) compute: Compute,
    /// The level of each node.
    pub(super) levels: Vec<Level>,
    /// How many traversals must be over before each node can be computed.
    pub(super) stages: Vec<usize>,
    /// Whether computing it again for an element takes many instructions.
    pub(super) costly: Vec<bool>,
    /// Reductions that are made with others.
    pub(super) pairs: Vec<(Id, Id, Online)>,
    /// Whether it is needed for an output.
    pub(super) live: Vec<bool>,
}

impl<'a> Graph<'a> {
    /// `in_pairs`: whether reductions are made together where one needs the other.
    pub(super) fn new(
        function: &'a Function,
        inputs: &[Level],
        compute: Compute,
        in_pairs: bool,
    ) -> Result<Self, Vec<ExprError>> {
        let count = function.nodes().len();
        let (mut levels, mut stages) = (Vec::<Level>::with_capacity(count), Vec::<usize>::with_capacity(count));
        let mut costly = Vec::<bool>::with_capacity(count);
        let (mut errors, mut pairs) = (Vec::new(), Vec::<(Id, Id, Online)>::new());
        for (node, at) in function.nodes().iter().zip(0..) {
            let operands = || node.operands().iter().map(|id| id.index());
            let level = joined(node, inputs, operands().map(|at| levels[at]));
            let stage = operands().map(|at| stages[at]).max().unwrap_or(0);
            let fit = match node {
                Node::Reduce(reduction, along, [x]) => fits(*reduction, *along, levels[x.index()]),
                Node::Width(along) => exists("width", *along),
                _ => is_known(operands().map(|at| levels[at])),
            };
            errors.extend(fit.err());
            costly.push(level == Level::Element && (node.is_costly() || operands().any(|at| costly[at])));
            levels.push(level);
            let first = first_of(function.nodes(), node).filter(|(first, _)| {
                in_pairs && pairs.iter().all(|(known, second, _)| known != first && second != first)
            });
            match first {
                Some((first, online)) => {
                    stages.push(stages[first.index()]);
                    pairs.push((first, Id(at), online));
                }
                None => stages.push(stage + usize::from(is_of_rows(*node))),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut graph = Self { function, compute, levels, stages, costly, pairs, live: vec![false; count] };
        graph.live = graph.lives();
        Ok(graph)
    }

    /// The nodes that outputs need. A pair's second reduction needs only the first.
    fn lives(&self) -> Vec<bool> {
        let mut live = vec![false; self.levels.len()];
        self.function.output_ids().iter().for_each(|id| live[id.index()] = true);
        for id in self.ids().rev() {
            match self.first_of(id) {
                _ if !live[id.index()] => {}
                Some(first) => live[first.index()] = true,
                None => self.node(id).operands().iter().for_each(|id| live[id.index()] = true),
            }
        }
        live
    }

    /// The reduction that this one is made with.
    pub(super) fn first_of(&self, id: Id) -> Option<Id> {
        self.pairs.iter().find(|(_, second, _)| *second == id).map(|(first, ..)| *first)
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

    /// The nodes that these outputs need, operands first; `ends` tells where something is read instead of computed.
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
        is_of_rows(self.node(id))
    }

    /// The outputs: of one that columns are reduced to, the terms and how.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (Id, Option<Reduction>)> {
        self.function.output_ids().iter().map(|id| match self.node(*id) {
            Node::Reduce(reduction, Along::Column, [terms]) => (terms, Some(reduction)),
            _ => (*id, None),
        })
    }

    /// Whether the node may be a value that is computed once for its level.
    pub(super) fn is_value(&self, id: Id) -> bool {
        self.level(id) < Level::Column && !self.node(id).is_leaf()
    }
}

/// Whether it reduces the row, or groups of it.
fn is_of_rows(node: Node) -> bool {
    matches!(node, Node::Reduce(_, along, _) if along != Along::Column)
}
