//! One row: its elements, what is kept of them, its values.

use super::reduced::reduced;
use super::{Problem, Read, online};
use crate::expr::rows::{Along, Level, Made, Online, Origin, Part, Reduction, Source, Step, Traversal, Value};
use crate::expr::{Accept, Bounds, Compute, Evaluator, ExprError, Function};

/// Where one element of a row, or one value of a level, is.
fn place(level: Level, column: usize) -> usize {
    match level {
        Level::Scalar | Level::Row => 0,
        Level::Group(size) => column / size as usize,
        Level::Column | Level::Element => column,
    }
}

/// How many there are in a row of `n` elements.
pub(super) fn count(level: Level, n: usize) -> usize {
    match level {
        Level::Scalar | Level::Row => 1,
        Level::Group(size) => n.div_ceil(size as usize),
        Level::Column | Level::Element => n,
    }
}

/// How many elements the row has, or the group that the column is in.
fn width(level: Level, n: usize, column: usize) -> usize {
    match level {
        Level::Group(size) => (n - (column - column % size as usize)).min(size as usize),
        _ => n,
    }
}

/// The columns of each group, or all of them.
fn parts(level: Level, n: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
    let size = match level {
        Level::Group(size) => size as usize,
        _ => n.max(1),
    };
    (0..count(level, n)).map(move |at| at * size..((at + 1) * size).min(n))
}

/// The functions of the steps, ready to be evaluated.
#[derive(Clone, Debug)]
pub(super) struct Evaluators {
    steps: Vec<Evaluator>,
    /// The terms of each pair's second value.
    pairs: Vec<Evaluator>,
    /// The product of two numbers of 32 bits, which f64 has exactly.
    product: Evaluator,
    /// Rounds to the type that is computed in.
    identity: Evaluator,
}

impl Evaluators {
    pub(super) fn new(problem: &Problem<'_>, scalars: &[f64]) -> Result<Self, ExprError> {
        let of = |part: &Part| {
            let own: Option<Vec<f64>> = part.scalars.iter().map(|index| scalars.get(*index).copied()).collect();
            part.function.evaluator(own.as_deref().unwrap_or(scalars))
        };
        let part = |step: &Step| match step {
            Step::Traverse(traversal) => of(&traversal.part),
            Step::Values(values) => of(&values.part),
        };
        let steps = problem.passes.steps().iter().map(part).collect::<Result<_, _>>()?;
        let compute = problem.passes.compute();
        let pairs = problem.passes.pairs().iter().map(|pair| online::evaluator(pair.online, compute));
        let product = Function::binary(|x, y| x * y).check(Compute::F64).map_err(|mut errors| errors.remove(0))?;
        let (pairs, product) = (pairs.collect::<Result<_, _>>()?, product.evaluator(&[])?);
        Ok(Self { steps, pairs, product, identity: super::identity(compute)? })
    }

    /// What a device may have of a number within the bounds.
    pub(super) fn rounded(&mut self, bounds: Bounds) -> Result<Option<Accept>, ExprError> {
        Ok(self.identity.evaluate_bounds(&[bounds])?.first().copied())
    }
}

/// The row that was evaluated last.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The numbers and bits of the row, for each input.
    pub(super) inputs: Vec<Vec<(f64, u64)>>,
    /// The kept numbers, each for all elements.
    kept: Vec<Vec<Bounds>>,
    /// The values, each for all its places in the row.
    pub(super) values: Vec<Vec<Bounds>>,
    /// The outputs of elements.
    elements: Vec<Vec<Accept>>,
    /// The terms of the outputs of columns.
    pub(super) terms: Vec<Vec<Bounds>>,
}

impl State {
    /// Reads the next row of the inputs and does all steps.
    pub(super) fn advance(
        &mut self,
        problem: &Problem<'_>,
        evaluators: &mut Evaluators,
        inputs: &mut Read<'_>,
    ) -> Result<(), ExprError> {
        let (passes, n) = (problem.passes, problem.n);
        let inputs = &mut inputs.advance(n).elements;
        self.inputs.resize(inputs.len(), Vec::new());
        for ((read, level), row) in inputs.iter_mut().zip(passes.inputs()).zip(&mut self.inputs) {
            // An input of the launch is read once.
            if *level != Level::Scalar || row.is_empty() {
                row.clear();
                row.extend(read.take(count(*level, n)));
            }
        }
        self.values.clear();
        self.values.resize(passes.values().len(), Vec::new());
        self.kept.resize(passes.kept(), Vec::new());
        self.elements.resize(passes.outputs().len(), Vec::new());
        self.terms.resize(passes.outputs().len(), Vec::new());
        self.kept.iter_mut().chain(&mut self.terms).for_each(Vec::clear);
        self.elements.iter_mut().for_each(Vec::clear);
        let Evaluators { steps, pairs, product, identity } = evaluators;
        let mut read = Vec::new();
        for (step, evaluator) in passes.steps().iter().zip(steps) {
            match step {
                Step::Traverse(traversal) => {
                    let terms = self.traverse(problem, traversal, [evaluator, product])?;
                    for (made, terms) in traversal.makes.iter().zip(terms) {
                        if let Made::Reduced(reduction, along, value) = *made {
                            self.reduce(problem, (reduction, along, value), &terms, identity)?;
                            self.join(problem, along, value, &terms, pairs, identity)?;
                        }
                    }
                }
                Step::Values(values) => {
                    for part in parts(values.level, n) {
                        self.read(problem, &values.part, part.start, &mut read);
                        let results = evaluator.evaluate_bounds(&read)?;
                        for (value, accept) in values.makes.iter().zip(results) {
                            self.values[*value].push(Bounds::of(&accept));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives the terms of each reduction.
    fn traverse(
        &mut self,
        problem: &Problem<'_>,
        traversal: &Traversal,
        [evaluator, product]: [&mut Evaluator; 2],
    ) -> Result<Vec<Vec<Bounds>>, ExprError> {
        let mut read = Vec::new();
        let mut terms: Vec<Vec<Bounds>> = vec![Vec::new(); traversal.makes.len()];
        for column in 0..problem.n {
            self.read(problem, &traversal.part, column, &mut read);
            let results = evaluator.evaluate_bounds(&read)?;
            for (at, accept) in results.iter().enumerate() {
                let mut bounds = Bounds::of(accept);
                if let (Some(Made::Factor), Some(factor)) = (traversal.makes.get(at + 1), results.get(at + 1)) {
                    bounds = Bounds::of(&product.evaluate_bounds(&[bounds, Bounds::of(factor)])?[0]);
                }
                match traversal.makes[at] {
                    Made::Reduced(..) => terms[at].push(bounds),
                    Made::Factor => {}
                    Made::Kept(kept) => self.kept[kept].push(bounds),
                    Made::Output(output) => match problem.passes.outputs()[output].from {
                        Origin::Columns(_) => self.terms[output].push(bounds),
                        _ => self.elements[output].push(*accept),
                    },
                }
            }
        }
        Ok(terms)
    }

    /// The results of a reduction.
    fn reduce(
        &mut self,
        problem: &Problem<'_>,
        (reduction, along, value): (Reduction, Along, usize),
        terms: &[Bounds],
        identity: &mut Evaluator,
    ) -> Result<(), ExprError> {
        for part in parts(along.level(), problem.n) {
            let spread = problem.spread(along, part.len() as u64);
            let all = reduced(reduction, &terms[part.clone()], part.start, spread);
            let rounded = identity.evaluate_bounds(&[all])?;
            self.values[value].extend(rounded.first().map(Bounds::of));
        }
        Ok(())
    }

    /// The values that are made with that one.
    fn join(
        &mut self,
        problem: &Problem<'_>,
        along: Along,
        value: usize,
        terms: &[Bounds],
        evaluators: &mut [Evaluator],
        identity: &mut Evaluator,
    ) -> Result<(), ExprError> {
        for (pair, evaluator) in problem.passes.pairs().iter().zip(evaluators).filter(|(pair, _)| pair.first == value) {
            for (at, part) in parts(along.level(), problem.n).enumerate() {
                let first = self.values[value].get(at).copied().unwrap_or_else(|| Bounds::point(f64::NAN));
                let (terms, width) = (&terms[part.clone()], Bounds::point(part.len() as f64));
                let second = |term: &Bounds| {
                    let results = evaluator.evaluate_bounds(&[*term, first, width])?;
                    Ok(results.first().map_or(Bounds::point(f64::NAN), Bounds::of))
                };
                let of_second = terms.iter().map(second).collect::<Result<Vec<Bounds>, ExprError>>()?;
                let spread = problem.spread(along, part.len() as u64);
                let all = match pair.online {
                    Online::Squares => online::squares(&of_second, terms, spread),
                    exp => online::exponentials(exp, &of_second, terms, first, spread),
                };
                let rounded = identity.evaluate_bounds(&[all])?;
                self.values[pair.second].extend(rounded.first().map(Bounds::of));
            }
        }
        Ok(())
    }

    /// The inputs of a part's function at a column.
    fn read(&self, problem: &Problem<'_>, part: &Part, column: usize, read: &mut Vec<Bounds>) {
        let nothing = Bounds::point(f64::NAN);
        let of = |source: &Source| match *source {
            Source::Input(input) => {
                let at = place(problem.passes.inputs()[input], column);
                self.inputs[input].get(at).map_or(nothing, |(value, _)| Bounds::point(*value))
            }
            Source::Column => Bounds::point(column as f64),
            Source::Width(along) => Bounds::point(width(along.level(), problem.n, column) as f64),
            Source::Kept(kept) => self.kept[kept].get(column).copied().unwrap_or(nothing),
            Source::Value(value) => {
                let at = place(problem.passes.values()[value].level, column);
                self.values[value].get(at).copied().unwrap_or(nothing)
            }
        };
        read.clear();
        read.extend(part.reads.iter().map(of));
    }

    /// The bits of the inputs that an output of that level reads by itself, by number.
    pub(super) fn inputs_at(
        &self,
        problem: &Problem<'_>,
        level: Level,
        column: usize,
    ) -> impl Iterator<Item = (usize, u64)> {
        let levels = problem.passes.inputs().iter().copied().enumerate().filter(move |(_, of)| *of <= level);
        levels.filter_map(move |(input, of)| {
            let (_, bits) = self.inputs.get(input)?.get(place(of, column))?;
            Some((input, *bits))
        })
    }

    /// The ends of what reductions may have given at a column, in words.
    pub(super) fn values_at(&self, problem: &Problem<'_>, column: usize) -> impl Iterator<Item = (String, f64)> {
        let of = move |(value, bounds): (&Value, &Vec<Bounds>)| {
            let (reduction, along) = value.reduction?;
            let bounds = bounds.get(place(value.level, column))?;
            let (low, high) = bounds.range().unwrap_or((f64::NAN, f64::NAN));
            let name = format!("{}{along}", reduction.name());
            Some([(format!("least {name}"), low), (format!("greatest {name}"), high)])
        };
        problem.passes.values().iter().zip(&self.values).filter_map(of).flatten()
    }

    /// The accepted values of an output at a column.
    pub(super) fn accepted(
        &self,
        problem: &Problem<'_>,
        evaluators: &mut Evaluators,
        output: usize,
        column: usize,
    ) -> Result<Option<Accept>, ExprError> {
        match problem.passes.outputs()[output].from {
            Origin::Elements => Ok(self.elements[output].get(column).copied()),
            Origin::Columns(_) => Ok(None),
            Origin::Value(value) => {
                let at = place(problem.passes.values()[value].level, column);
                let bounds = self.values[value].get(at).copied().unwrap_or_else(|| Bounds::point(f64::NAN));
                evaluators.rounded(bounds)
            }
        }
    }
}
