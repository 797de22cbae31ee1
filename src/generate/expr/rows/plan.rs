//! Decides which traversal makes what, and what is kept.

use std::collections::BTreeMap;

use super::cones::Graph;
use super::part::{Cut, Part};
use super::{Level, Made, Origin, Output, Pair, Passes, Reduction, Step, Traversal, Value, Values};
use crate::expr::ExprError;
use crate::expr::op::{Id, Node};

/// The decisions, made before functions are written.
pub(super) struct Plan<'a> {
    graph: &'a Graph<'a>,
    /// The level that each output is written at.
    outputs: Vec<Level>,
    /// Nodes that become values: reductions, outputs, and operands of nodes of a finer level.
    needed: Vec<Id>,
    traversals: usize,
    /// The number of each kept node, and the traversal that makes it.
    kept: BTreeMap<Id, (usize, usize)>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(graph: &'a Graph<'a>, outputs: Vec<Level>, keep: bool) -> Self {
        let mut needed = vec![false; graph.levels.len()];
        for id in graph.ids().filter(|id| graph.live[id.index()]) {
            needed[id.index()] |= graph.is_reduction(id);
            if graph.first_of(id).is_some() {
                continue;
            }
            for operand in graph.node(id).operands() {
                needed[operand.index()] |= graph.is_value(*operand) && graph.level(*operand) < graph.level(id);
            }
        }
        let mut traversals = 0;
        for ((id, _), level) in graph.outputs().zip(&outputs) {
            needed[id.index()] |= graph.is_value(id) || *level < Level::Column;
            if *level >= Level::Column {
                traversals = traversals.max(graph.stage(id) + 1);
            }
        }
        let reductions = graph.ids().filter(|id| graph.is_reduction(*id) && graph.live[id.index()]);
        let reductions = reductions.map(|id| graph.stage(id));
        let traversals = reductions.max().unwrap_or(0).max(traversals);
        let needed = graph.ids().filter(|id| needed[id.index()]).collect();
        let mut plan = Self { graph, outputs, needed, traversals, kept: BTreeMap::new() };
        if keep {
            plan.kept = plan.found_twice();
        }
        plan
    }

    /// The reductions whose terms a traversal computes.
    fn reductions(&self, traversal: usize) -> impl Iterator<Item = Id> {
        let graph = self.graph;
        let made = move |id: &Id| graph.is_reduction(*id) && graph.live[id.index()] && graph.first_of(*id).is_none();
        graph.ids().filter(move |id| made(id) && graph.stage(*id) == traversal + 1)
    }

    /// The outputs whose elements, or terms, a traversal makes, by number.
    fn elements(&self, traversal: usize) -> impl Iterator<Item = (usize, (Id, Option<Reduction>))> {
        let last = traversal + 1 == self.traversals;
        let outputs = self.graph.outputs().enumerate();
        outputs.filter(move |(number, _)| last && self.outputs[*number] >= Level::Column)
    }

    /// What a traversal computes for reductions and outputs, each with its use. `number` gives a reduction's value a number.
    fn targets(&self, traversal: usize, mut number: impl FnMut(Id) -> usize) -> Vec<(Id, Made)> {
        let mut targets = Vec::new();
        let mut add = |reduction: Option<Reduction>, id: Id, made: Made| match self.graph.factors(reduction, id) {
            Some([left, right]) => targets.extend([(left, made), (right, Made::Factor)]),
            None => targets.push((id, made)),
        };
        for id in self.reductions(traversal) {
            if let Node::Reduce(reduction, along, [term]) = self.graph.node(id) {
                add(Some(reduction), term, Made::Reduced(reduction, along, number(id)));
            }
        }
        for (output, (id, reduction)) in self.elements(traversal) {
            add(reduction, id, Made::Output(output));
        }
        targets
    }

    /// Finds costly results that a second traversal would compute again.
    fn found_twice(&self) -> BTreeMap<Id, (usize, usize)> {
        let graph = self.graph;
        let (mut first, mut kept) = (BTreeMap::<Id, usize>::new(), BTreeMap::new());
        for traversal in 0..self.traversals {
            let mut computed = Vec::new();
            let targets: Vec<Id> = self.targets(traversal, |_| 0).into_iter().map(|(id, _)| id).collect();
            graph.cone(&targets, |id| {
                if graph.is_value(id) || kept.contains_key(&id) {
                    return true;
                }
                let again = first.get(&id).filter(|_| graph.costly[id.index()] && !graph.node(id).is_condition());
                match again {
                    Some(made) => {
                        kept.insert(id, (kept.len(), *made));
                    }
                    None => computed.push(id),
                }
                again.is_some()
            });
            for id in computed {
                first.entry(id).or_insert(traversal);
            }
        }
        kept
    }

    pub(super) fn passes(self, inputs: &[Level]) -> Result<Passes, Vec<ExprError>> {
        let mut written =
            Written { plan: &self, numbers: BTreeMap::new(), values: Vec::new(), steps: Vec::new(), pairs: Vec::new() };
        written.values(0)?;
        for traversal in 0..self.traversals {
            written.traverse(traversal)?;
            written.values(traversal + 1)?;
        }
        let Written { numbers, values, steps, pairs, .. } = written;
        let ids = self.graph.outputs().zip(&self.outputs);
        let output = |((id, of_columns), level): ((Id, Option<_>), &Level)| Output {
            level: *level,
            from: match (numbers.get(&id), of_columns) {
                (_, Some(reduction)) => Origin::Columns(reduction),
                (Some(value), _) if *level < Level::Element => Origin::Value(*value),
                _ => Origin::Elements,
            },
        };
        Ok(Passes {
            inputs: inputs.to_vec(),
            compute: self.graph.compute,
            outputs: ids.map(output).collect(),
            kept: self.kept.len(),
            steps,
            values,
            pairs,
        })
    }
}

/// The steps so far.
struct Written<'a> {
    plan: &'a Plan<'a>,
    /// The numbers of the nodes that are values by now.
    numbers: BTreeMap<Id, usize>,
    values: Vec<Value>,
    steps: Vec<Step>,
    pairs: Vec<Pair>,
}

impl Written<'_> {
    fn value(&mut self, id: Id) -> usize {
        let (graph, number) = (self.plan.graph, self.values.len());
        let reduction = match graph.node(id) {
            Node::Reduce(reduction, along, _) => Some((reduction, along)),
            _ => None,
        };
        self.values.push(Value { level: graph.level(id), reduction });
        self.numbers.insert(id, number);
        number
    }

    fn traverse(&mut self, traversal: usize) -> Result<(), Vec<ExprError>> {
        let plan = self.plan;
        let before = plan.kept.iter().filter(|(_, (_, made))| *made < traversal);
        let kept: BTreeMap<Id, usize> = before.map(|(id, (number, _))| (*id, *number)).collect();
        let now = plan.kept.iter().filter(|(_, (_, made))| *made == traversal);
        let now: BTreeMap<usize, Id> = now.map(|(id, (number, _))| (*number, *id)).collect();
        // Nothing of this traversal reads the values that it makes.
        let known = self.numbers.clone();
        let mut targets = plan.targets(traversal, |id| self.value(id));
        targets.extend(now.into_iter().map(|(number, id)| (id, Made::Kept(number))));
        let (outputs, makes): (Vec<Id>, Vec<Made>) = targets.into_iter().unzip();
        let part = Part::new(plan.graph, &Cut { values: &known, kept: &kept }, &outputs)?;
        for &(first, second, online) in plan.graph.pairs.iter().filter(|(_, id, _)| plan.graph.live[id.index()]) {
            if plan.graph.stage(second) == traversal + 1 {
                let first = self.numbers.get(&first).copied().unwrap_or_default();
                let second = self.value(second);
                self.pairs.push(Pair { online, first, second });
            }
        }
        self.steps.push(Step::Traverse(Traversal { part, makes }));
        Ok(())
    }

    /// Computes the values that are known after `stage` traversals, coarse levels first.
    fn values(&mut self, stage: usize) -> Result<(), Vec<ExprError>> {
        let (plan, graph) = (self.plan, self.plan.graph);
        let mut by_level: BTreeMap<Level, Vec<Id>> = BTreeMap::new();
        for id in plan.needed.iter().filter(|id| graph.stage(**id) == stage && !graph.is_reduction(**id)) {
            by_level.entry(graph.level(*id)).or_default().push(*id);
        }
        for (level, ids) in by_level {
            let part = Part::new(graph, &Cut { values: &self.numbers, kept: &BTreeMap::new() }, &ids)?;
            let makes = ids.into_iter().map(|id| self.value(id)).collect();
            self.steps.push(Step::Values(Values { part, level, makes }));
        }
        Ok(())
    }
}
