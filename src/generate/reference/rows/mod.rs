//! Row programs: the results that a device may give for each element, row, group and column.

mod columns;
mod online;
mod reduced;
mod state;

use columns::Columns;
use state::{Evaluators, State, count};

use std::sync::Arc;

use super::spread::Spread;
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
    /// Chains of additions along a row, and additions behind them; the same along a column.
    row: [u64; 2],
    column: [u64; 2],
    /// The input whose rows an index names.
    gathered: Option<usize>,
}

impl RowProgram {
    /// With sums and products along rows in any order.
    pub fn new(passes: Passes) -> Self {
        Self { passes, row: [1, 0], column: [1, 0], gathered: None }
    }

    /// Sums and products along rows as a kernel makes them: a term takes part in at most `ceil(N/chains) + after` operations. The fewer
    /// they are, the narrower the bounds.
    #[must_use]
    pub fn added_in(self, chains: u64, after: u64) -> Self {
        Self { row: [chains.max(1), after], ..self }
    }

    /// The same along columns.
    #[must_use]
    pub fn columns_added_in(self, chains: u64, after: u64) -> Self {
        Self { column: [chains.max(1), after], ..self }
    }

    /// The same; row m of that input is row `Index(m)` of its tensor. The index is one more tensor, behind the inputs of the program.
    #[must_use]
    pub fn gathering(self, input: usize) -> Self {
        Self { gathered: Some(input), ..self }
    }

    /// The rows that the index names.
    fn index(&self, case: &Case<'_, '_>) -> Result<Option<Gathered>, ReferenceError> {
        let Some(input) = self.gathered else { return Ok(None) };
        let (Some(index), Some(source)) = (case.inputs.last(), case.inputs.get(input)) else {
            return Err(case.unfit("no index"));
        };
        let rows = source.shape().first().copied().unwrap_or(0);
        let named = |(m, (row, _)): (usize, (f64, u64))| {
            let is_row = row >= 0.0 && row < rows as f64;
            is_row.then_some(row as u64).ok_or_else(|| case.unfit(format!("Index({m}) = {row}, of {rows} rows")))
        };
        let rows = Elements::starting_at(index, 0).enumerate().map(named).collect::<Result<_, _>>()?;
        Ok(Some(Gathered { input, rows }))
    }

    /// The program.
    pub fn passes(&self) -> &Passes {
        &self.passes
    }

    /// The shape of the elements, from the first input that has one.
    fn shape(&self, case: &Case<'_, '_>) -> Result<Vec<i64>, ReferenceError> {
        let own = |(input, (level, tensor))| (Some(input) != self.gathered).then_some((level, tensor));
        let inputs = || self.passes.inputs().iter().zip(case.inputs).enumerate().filter_map(own);
        let elements = inputs().find(|(level, _)| **level == Level::Element).map(|(_, tensor)| tensor.shape().to_vec());
        let gathered = self.gathered.and_then(|input| Some((case.inputs.get(input)?, case.inputs.last()?)));
        let of_index = |(of, index): (&&Tensor, &&Tensor)| Some([index.shape(), of.shape().get(1..)?].concat());
        let elements = elements.or_else(|| gathered.and_then(of_index));
        let count = self.passes.inputs().len() + usize::from(self.gathered.is_some());
        let shape = elements.filter(|shape| !shape.is_empty() && case.inputs.len() == count);
        let shape =
            shape.ok_or_else(|| case.unfit(format!("{:?}, of which none says how long a row is", case.inputs)))?;
        if let Some((of, index)) = gathered {
            let fits = of.shape().get(1..) == shape.get(1..) && index.shape() == &shape[..1];
            fits.then_some(()).ok_or_else(|| case.unfit(format!("{index:?} for {of:?}, beside rows of {shape:?}")))?;
        }
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
        Level::Column => vec![*n],
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
        let rows = shape.iter().rev().skip(1).map(|extent| extent.unsigned_abs()).product::<u64>();
        let spread = |terms: u64, [chains, after]: [u64; 2]| {
            Spread::of_sum(terms, terms.min(terms.div_ceil(chains) + after), self.passes.compute())
        };
        let problem = Problem {
            passes: &self.passes,
            n: n as usize,
            rows,
            row: spread(n, self.row),
            column: spread(rows, self.column),
        };
        let evaluators = Evaluators::new(&problem, case.scalars).map_err(|e| case.unfit(e.found))?;
        let numbers: Vec<usize> = (0..self.passes.outputs().len()).collect();
        let level = |number: &usize| self.passes.outputs()[*number].level;
        let named = case.read().map(|o| (o.name, o.dtype)).collect();
        let inputs = Inputs { tensors: case.inputs.to_vec(), named, gathered: self.index(case)?.map(Arc::new) };
        let groups = numbers.chunk_by(|a, b| level(a) == level(b)).map(|outputs| {
            let level = outputs.first().map_or(Level::Row, level);
            let (evaluators, inputs) = (evaluators.clone(), inputs.clone());
            if level == Level::Column {
                let columns = Columns::new(problem, evaluators, inputs, outputs);
                return Ok(Box::new(columns.map_err(|e| case.unfit(e.found))?) as Box<dyn Accepted + 'a>);
            }
            let shape = shape_of(level, &shape);
            Ok(Box::new(Rows { problem, evaluators, outputs: outputs.to_vec(), level, shape, inputs }) as _)
        });
        groups.collect()
    }
}

/// The tensors that are read, and their names and types.
#[derive(Clone)]
struct Inputs<'a> {
    tensors: Vec<&'a Tensor>,
    named: Vec<(&'static str, DType)>,
    gathered: Option<Arc<Gathered>>,
}

/// An input whose rows are named, and the row of each.
#[derive(Debug)]
struct Gathered {
    input: usize,
    rows: Vec<u64>,
}

/// The elements of the inputs, row after row.
struct Read<'a> {
    elements: Vec<Elements<'a>>,
    gathered: Option<Arc<Gathered>>,
    row: u64,
}

impl Read<'_> {
    /// Goes to the next row, whose elements follow; there are `n`.
    fn advance(&mut self, n: usize) -> &mut Self {
        if let Some(Gathered { input, rows }) = self.gathered.as_deref() {
            let named = rows.get(self.row as usize).copied().unwrap_or(0);
            self.elements[*input] = Elements::starting_at(self.elements[*input].tensor(), named * n as u64);
        }
        self.row += 1;
        self
    }
}

impl<'a> Inputs<'a> {
    /// The row of an input's tensor that is its row of that number.
    fn row(&self, input: usize, row: u64) -> u64 {
        let named = self.gathered.as_ref().filter(|of| of.input == input);
        named.and_then(|of| of.rows.get(row as usize)).copied().unwrap_or(row)
    }

    /// The elements of each from a row on.
    fn starting_at(&self, problem: &Problem<'_>, row: u64) -> Read<'a> {
        let first = |level: &Level| match level {
            Level::Scalar => 0,
            _ => row * count(*level, problem.n) as u64,
        };
        let inputs = self.tensors.iter().zip(problem.passes.inputs());
        let elements = inputs.map(|(tensor, level)| Elements::starting_at(tensor, first(level))).collect();
        Read { elements, gathered: self.gathered.clone(), row }
    }
}

/// A row's length, and its program.
#[derive(Clone, Copy, Debug)]
struct Problem<'a> {
    passes: &'a Passes,
    /// Elements of a row.
    n: usize,
    rows: u64,
    /// The error of sums along a row, and along a column.
    row: Spread,
    column: Spread,
}

impl Problem<'_> {
    /// The error of sums of so many terms. Groups are added in any order.
    fn spread(&self, along: Along, terms: u64) -> Spread {
        match along {
            Along::Row => self.row,
            Along::Column => self.column,
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
    inputs: Inputs<'a>,
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
        Box::new(Row {
            rows: self,
            evaluators: self.evaluators.clone(),
            inputs: self.inputs.starting_at(&self.problem, row),
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
    inputs: Read<'a>,
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
            let (name, dtype) = self.rows.inputs.named.get(input)?;
            Some(InputElement { name: (*name).to_owned(), dtype: *dtype, bits })
        });
        let value = |(name, value): (String, f64)| InputElement { name, dtype: DType::F64, bits: value.to_bits() };
        named.chain(self.state.values_at(&self.rows.problem, column).map(value)).collect()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        let same = self.rows.inputs.named.iter().zip(&self.state.inputs).filter(|((_, of), _)| *of == dtype);
        carried(dtype, bits, same.flat_map(|(_, row)| row.iter().map(|(_, bits)| *bits)))
    }
}
