//! Outputs of columns: the terms of all rows, reduced over rows.

use super::reduced::reduced;
use super::state::{Evaluators, State, count};
use super::{Inputs, Problem};
use crate::dtype::DType;
use crate::expr::rows::{Level, Reduction};
use crate::expr::{Bounds, ExprError, Outputs};
use crate::plan::{Accepted, Cursor, InputElement};
use crate::reference::spread::{Spread, Terms};
use crate::tensor::{Elements, carried, parallel};

/// So many parts of the rows, whose terms are gathered side by side.
const PARTS: u64 = 32;

/// The terms of a column so far.
#[derive(Clone)]
enum Column {
    Sum(Terms),
    /// A maximum or minimum needs its bounds alone.
    Extremum(Reduction, Bounds),
}

impl Column {
    fn new(reduction: Reduction, spread: Spread) -> Self {
        match reduction {
            Reduction::Sum => Self::Sum(Terms::new(true)),
            _ => Self::Extremum(reduction, reduced(reduction, &[], 0, spread)),
        }
    }

    fn add(&mut self, term: Bounds, spread: Spread) {
        match self {
            Self::Sum(terms) => terms.add(term.range(), term.may_be_nan()),
            Self::Extremum(reduction, so_far) => *so_far = reduced(*reduction, &[*so_far, term], 0, spread),
        }
    }

    fn join(&mut self, other: &Self, spread: Spread) {
        match (self, other) {
            (Self::Sum(terms), Self::Sum(others)) => terms.join(others),
            (this, Self::Extremum(_, bounds)) => this.add(*bounds, spread),
            (Self::Extremum(..), Self::Sum(_)) => unreachable!("columns of one output are reduced alike"),
        }
    }

    fn bounds(&self, spread: Spread) -> Bounds {
        match self {
            Self::Sum(terms) => terms.bounds(spread),
            Self::Extremum(_, bounds) => *bounds,
        }
    }
}

/// The terms of some rows: for each output its columns.
type TermsOfRows = Vec<Vec<Column>>;

/// All outputs of columns.
pub(super) struct Columns<'a> {
    problem: Problem<'a>,
    evaluators: Evaluators,
    inputs: Inputs<'a>,
    outputs: Vec<Reduction>,
    /// For each output its columns.
    bounds: Vec<Vec<Bounds>>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(
        problem: Problem<'a>,
        evaluators: Evaluators,
        inputs: Inputs<'a>,
        numbers: &[usize],
    ) -> Result<Self, ExprError> {
        let spread = problem.column;
        let of = |(output, reduction)| numbers.contains(&output).then_some(reduction);
        let outputs = problem.passes.columns().filter_map(of).collect();
        let of_rows = |rows: core::ops::Range<u64>| -> Result<TermsOfRows, ExprError> {
            let (mut state, mut evaluators) = (State::default(), evaluators.clone());
            let mut read = inputs.starting_at(&problem, rows.start);
            let outputs = || problem.passes.columns().filter(|(output, _)| numbers.contains(output));
            let mut all: TermsOfRows =
                outputs().map(|(_, reduction)| vec![Column::new(reduction, spread); problem.n]).collect();
            for _ in rows {
                state.advance(&problem, &mut evaluators, &mut read)?;
                for ((output, _), columns) in outputs().zip(&mut all) {
                    let terms = &state.terms[output];
                    columns.iter_mut().zip(terms).for_each(|(column, term)| column.add(*term, spread));
                }
            }
            Ok(all)
        };
        let work = |found: &mut Vec<(u64, Result<TermsOfRows, ExprError>)>, rows: core::ops::Range<u64>| {
            found.push((rows.start, of_rows(rows)));
        };
        let found = parallel::ranges(problem.rows, problem.rows.div_ceil(PARTS), Vec::new, work);
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        found.sort_by_key(|(first, _)| *first);
        let mut all = of_rows(0..0)?;
        for (_, part) in found {
            let pairs = all.iter_mut().flatten().zip(part?.into_iter().flatten().collect::<Vec<_>>());
            pairs.for_each(|(column, other)| column.join(&other, spread));
        }
        let bounds = all.iter().map(|columns| columns.iter().map(|column| column.bounds(spread)).collect());
        let bounds = bounds.collect();
        Ok(Self { problem, evaluators, inputs, outputs, bounds })
    }
}

impl Accepted for Columns<'_> {
    fn outputs(&self) -> usize {
        self.bounds.len()
    }

    fn shape(&self) -> Option<Vec<i64>> {
        Some(vec![self.problem.n as i64])
    }

    fn grain(&self) -> u64 {
        parallel::GRAIN
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        Box::new(Next { columns: self, evaluators: self.evaluators.clone(), at: index as usize })
    }
}

/// Column after column.
struct Next<'a> {
    columns: &'a Columns<'a>,
    evaluators: Evaluators,
    at: usize,
}

impl Cursor for Next<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        let mut results = Outputs::new();
        for bounds in &self.columns.bounds {
            let bounds = bounds.get(self.at).copied().unwrap_or_else(|| Bounds::point(f64::NAN));
            results.extend(self.evaluators.rounded(bounds)?);
        }
        self.at += 1;
        Ok(results)
    }

    /// The ends of each output's bounds: a column has too many elements.
    fn inputs(&self) -> Vec<InputElement> {
        let at = self.at.saturating_sub(1);
        let of = |(bounds, reduction): (&Vec<Bounds>, &Reduction)| {
            let (low, high) = bounds.get(at)?.range()?;
            let name = |word: &str| format!("{word} {}_column", reduction.name());
            let element = |name, value: f64| InputElement { name, dtype: DType::F64, bits: value.to_bits() };
            Some([element(name("least"), low), element(name("greatest"), high)])
        };
        self.columns.bounds.iter().zip(&self.columns.outputs).filter_map(of).flatten().collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        let Columns { problem, inputs, .. } = self.columns;
        let of_type = (0..problem.passes.inputs().len()).filter(|input| inputs.named[*input].1 == dtype);
        let column = of_type.flat_map(|input| {
            let level = problem.passes.inputs()[input];
            let at = if level == Level::Element { self.at.saturating_sub(1) as u64 } else { 0 };
            let all = (0..problem.rows).map(move |row| inputs.row(input, row) * count(level, problem.n) as u64 + at);
            all.flat_map(move |at| Elements::starting_at(inputs.tensors[input], at).take(1))
        });
        carried(dtype, bits, column.map(|(_, bits)| bits))
    }
}
