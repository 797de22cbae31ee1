//! A function's nodes, each with its level and the number of traversals before it.

use super::levels::{exists, fits, is_known, joined};
use super::pairs::first_of;
use super::{Along, Level, Online, Reduction};
use crate::expr::error::ExprError;
use crate::expr::op::{Binary, Id, Node};
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
        graph.delay();
        Ok(graph)
    }

    /// Makes a reduction in a later traversal, where that reads its inputs anyway, and the earlier one reads some for it alone: of
    /// `sum(dy * w)` and `sum(x)` that is the first, if `sum(dy * w * (x - mean(x)))` is needed, too.
    fn delay(&mut self) {
        if !self.pairs.is_empty() {
            return;
        }
        let reductions = self.ids().filter(|id| self.live[id.index()] && self.is_reduction(*id));
        let reductions: Vec<(Id, Vec<Id>)> = reductions.map(|id| (id, self.inputs_of(id))).collect();
        for (id, own) in &reductions {
            let (stage, latest) = (self.stage(*id), self.latest(*id));
            let is_read = |graph: &Self, stage: usize| {
                let others = || reductions.iter().filter(|(of, _)| of != id && graph.stage(*of) == stage);
                own.iter().all(|input| others().any(|(_, read)| read.contains(input)))
            };
            if latest > stage && !is_read(self, stage) && is_read(self, latest) {
                self.stages[id.index()] = latest;
                self.pass_on();
            }
        }
    }

    /// The inputs of elements that a reduction's terms read.
    fn inputs_of(&self, id: Id) -> Vec<Id> {
        let cone = self.cone(self.node(id).operands(), |id| self.is_value(id));
        let of_elements = |id: &Id| matches!(self.node(*id), Node::Input(_)) && self.level(*id) == Level::Element;
        cone.into_iter().filter(of_elements).collect()
    }

    /// The last stage that a reduction can have with no traversal more, if all others stay.
    fn latest(&self, id: Id) -> usize {
        let reductions = self.ids().filter(|of| self.live[of.index()] && self.is_reduction(*of));
        let last = reductions.map(|id| self.stage(id)).max().unwrap_or(0);
        let mut needs = vec![false; self.levels.len()];
        needs[id.index()] = true;
        let mut latest = last;
        for of in self.ids().filter(|of| *of > id && self.live[of.index()]) {
            if self.node(of).operands().iter().any(|operand| needs[operand.index()]) {
                if self.is_reduction(of) {
                    latest = latest.min(self.stage(of) - 1);
                } else {
                    needs[of.index()] = true;
                }
            }
        }
        // Elements of outputs are made in the last traversal.
        let elements = self.outputs().filter(|(id, _)| self.level(*id) >= Level::Column);
        let traversals = elements.map(|(id, _)| self.stage(id) + 1).max().unwrap_or(0).max(last);
        let is_read = self.outputs().any(|(id, _)| needs[id.index()]);
        if is_read { latest.min(traversals - 1) } else { latest }
    }

    /// Stages of what needs a reduction that was delayed.
    fn pass_on(&mut self) {
        for id in self.ids() {
            let of = self.node(id).operands().iter().map(|id| self.stage(*id)).max().unwrap_or(0);
            let of = of + usize::from(self.is_reduction(id));
            self.stages[id.index()] = self.stage(id).max(of);
        }
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

    /// The factors of a term that a sum adds without rounding it first: no other node may need the product.
    pub(super) fn factors(&self, reduction: Option<Reduction>, term: Id) -> Option<[Id; 2]> {
        let Node::Binary(Binary::Mul, factors) = self.node(term) else { return None };
        let is_needed = |id: &Id| self.live[id.index()] && self.node(*id).operands().contains(&term);
        let of_sums = |id: Id| matches!(self.node(id), Node::Reduce(Reduction::Sum, ..));
        let fused = reduction == Some(Reduction::Sum) && self.compute == Compute::F32;
        let alone = || self.ids().filter(is_needed).all(of_sums) && !self.function.output_ids().contains(&term);
        (fused && alone()).then_some(factors)
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
