//! Row programs: the results that a device may give for each element, row and group.

mod online;
mod reduced;
mod state;

use state::{Evaluators, State, count};

use super::sums::Spread;
use crate::dtype::DType;
use crate::expr::rows::{Along, Level, Passes};
use crate::expr::{Compute, Evaluator, ExprError, Function, Outputs};
use crate::plan::{Accepted, Case, Cursor, InputElement, Reference, ReferenceError};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Elements, Tensor, carried};

/// A row program of tensors `(.., N)`, with sums in any order, or in one of known chains.
///
/// An input of elements has the shape `(.., N)`, of which the other modes count rows; one of rows `(..)`, one of groups
/// `(.., ceil(N/size))`, and one of the launch has one element. So have outputs.
///
/// ```
/// use cutemplate::expr::Function;
/// use cutemplate::expr::rows::{Passes, Reading};
/// use cutemplate::reference::RowProgram;
///
/// let softmax: Function = "|x| { let e = exp(x - max(x)); e / sum(e) }".parse()?;
/// let passes = Passes::of(&softmax, &Reading::of(&softmax)).expect("it is reduced twice");
/// // 256 threads add every 256th element; 8 more additions join their sums.
/// let reference = RowProgram::new(passes).added_in(256, 8);
/// # drop(reference);
/// # Ok::<(), cutemplate::expr::ExprError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowProgram {
    passes: Passes,
    chains: u64,
    after: u64,
}

impl RowProgram {
    /// With sums and products along rows in any order.
    pub fn new(passes: Passes) -> Self {
        Self { passes, chains: 1, after: 0 }
    }

    /// Sums and products along rows as a kernel makes them: a term takes part in at most `ceil(N/chains) + after` operations. The fewer
    /// they are, the narrower the bounds.
    #[must_use]
    pub fn added_in(self, chains: u64, after: u64) -> Self {
        Self { chains: chains.max(1), after, ..self }
    }

    /// The program.
    pub fn passes(&self) -> &Passes {
        &self.passes
    }

    /// The shape of the elements, from the first input that has one.
    fn shape(&self, case: &Case<'_, '_>) -> Result<Vec<i64>, ReferenceError> {
        let inputs = || self.passes.inputs().iter().zip(case.inputs);
        let elements = inputs().find(|(level, _)| **level == Level::Element).map(|(_, tensor)| tensor.shape().to_vec());
        let shape = elements.filter(|shape| !shape.is_empty() && case.inputs.len() == self.passes.inputs().len());
        let shape =
            shape.ok_or_else(|| case.unfit(format!("{:?}, of which none says how long a row is", case.inputs)))?;
        for (level, tensor) in inputs() {
            let fits = match level {
                Level::Scalar => tensor.size() == 1,
                _ => tensor.shape() == shape_of(*level, &shape),
            };
            if !fits {
                return Err(case.unfit(format!("{tensor:?} for {level}, beside elements of {shape:?}")));
            }
        }
        Ok(shape)
    }
}

/// The shape of a tensor of that level, beside elements of `shape`.
fn shape_of(level: Level, shape: &[i64]) -> Vec<i64> {
    let Some((n, rows)) = shape.split_last() else { return Vec::new() };
    match level {
        Level::Scalar | Level::Row => rows.to_vec(),
        Level::Group(_) => rows.iter().copied().chain([count(level, n.unsigned_abs() as usize) as i64]).collect(),
        Level::Element => shape.to_vec(),
    }
}

/// A number of a type, rounded to that type.
fn identity(compute: Compute) -> Result<Evaluator, ExprError> {
    let identity = Function::unary(|x| x).check(compute).map_err(|mut errors| errors.remove(0))?;
    identity.evaluator(&[])
}

impl Reference for RowProgram {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        case.alone()?;
        let shape = self.shape(case)?;
        let n = shape.last().map_or(0, |n| n.unsigned_abs());
        let problem = Problem {
            passes: &self.passes,
            n: n as usize,
            row: Spread::of_sum(n, n.min(n.div_ceil(self.chains) + self.after), self.passes.compute()),
        };
        let evaluators = Evaluators::new(&problem, case.scalars).map_err(|e| case.unfit(e.found))?;
        let numbers: Vec<usize> = (0..self.passes.outputs().len()).collect();
        let level = |number: &usize| self.passes.outputs()[*number].level;
        let groups = numbers.chunk_by(|a, b| level(a) == level(b)).map(|outputs| {
            let level = outputs.first().map_or(Level::Row, level);
            let rows = Rows {
                problem,
                evaluators: evaluators.clone(),
                outputs: outputs.to_vec(),
                level,
                shape: shape_of(level, &shape),
                inputs: case.inputs.to_vec(),
                named: case.read().map(|o| (o.name, o.dtype)).collect(),
            };
            Box::new(rows) as Box<dyn Accepted + 'a>
        });
        Ok(groups.collect())
    }
}

/// A row's length, and its program.
#[derive(Clone, Copy, Debug)]
struct Problem<'a> {
    passes: &'a Passes,
    /// Elements of a row.
    n: usize,
    /// The error of sums along a row.
    row: Spread,
}

impl Problem<'_> {
    /// The error of sums of so many terms. Groups are added in any order.
    fn spread(&self, along: Along, terms: u64) -> Spread {
        match along {
            Along::Row => self.row,
            Along::Group(_) => Spread::of_sum(terms, terms, self.passes.compute()),
        }
    }
}

/// Outputs of one level, side by side.
struct Rows<'a> {
    problem: Problem<'a>,
    evaluators: Evaluators,
    outputs: Vec<usize>,
    level: Level,
    shape: Vec<i64>,
    inputs: Vec<&'a Tensor>,
    named: Vec<(&'static str, DType)>,
}

impl Rows<'_> {
    /// Results of a row.
    fn per_row(&self) -> usize {
        count(self.level, self.problem.n)
    }
}

impl Accepted for Rows<'_> {
    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn shape(&self) -> Option<Vec<i64>> {
        Some(self.shape.clone())
    }

    /// Whole rows.
    fn grain(&self) -> u64 {
        let (row, results) = (self.problem.n.max(1) as u64, self.per_row().max(1) as u64);
        (GRAIN / row).max(1) * results
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        let per_row = self.per_row().max(1) as u64;
        let row = index / per_row;
        let first = |level: &Level| match level {
            Level::Scalar => 0,
            _ => row * count(*level, self.problem.n) as u64,
        };
        let inputs = self.inputs.iter().zip(self.problem.passes.inputs());
        Box::new(Row {
            rows: self,
            evaluators: self.evaluators.clone(),
            inputs: inputs.map(|(tensor, level)| Elements::starting_at(tensor, first(level))).collect(),
            state: State::default(),
            next: (index % per_row) as usize,
            is_read: false,
        })
    }
}

/// Row after row.
struct Row<'a> {
    rows: &'a Rows<'a>,
    evaluators: Evaluators,
    inputs: Vec<Elements<'a>>,
    state: State,
    /// The place in the row that is next.
    next: usize,
    is_read: bool,
}

impl Row<'_> {
    /// The first column of a place in the row.
    fn column(&self, place: usize) -> usize {
        match self.rows.level {
            Level::Group(size) => place * size as usize,
            _ => place,
        }
    }
}

impl Cursor for Row<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        let rows = self.rows;
        if self.next == rows.per_row() {
            (self.next, self.is_read) = (0, false);
        }
        if !self.is_read {
            self.state.advance(&rows.problem, &mut self.evaluators, &mut self.inputs)?;
            self.is_read = true;
        }
        let column = self.column(self.next);
        self.next += 1;
        let mut results = Outputs::new();
        for output in &rows.outputs {
            results.extend(self.state.accepted(&rows.problem, &mut self.evaluators, *output, column)?);
        }
        Ok(results)
    }

    /// The inputs at the place, and the bounds of what the row has one value for.
    fn inputs(&self) -> Vec<InputElement> {
        let column = self.column(self.next.saturating_sub(1));
        let own = self.state.inputs_at(&self.rows.problem, self.rows.level, column);
        let named = own.filter_map(|(input, bits)| {
            let (name, dtype) = self.rows.named.get(input)?;
            Some(InputElement { name: (*name).to_owned(), dtype: *dtype, bits })
        });
        let value = |(name, value): (String, f64)| InputElement { name, dtype: DType::F64, bits: value.to_bits() };
        named.chain(self.state.values_at(&self.rows.problem, column).map(value)).collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        let same = self.rows.named.iter().zip(&self.state.inputs).filter(|((_, of), _)| *of == dtype);
        carried(dtype, bits, same.flat_map(|(_, row)| row.iter().map(|(_, bits)| *bits)))
    }
}
