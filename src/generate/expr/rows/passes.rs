//! A row program as traversals of the row, and as what is computed once between them.

use super::cones::Graph;
use super::part::Part;
use super::plan::Plan;
use super::{Along, Level, Pair, Reading, Reduction};
use crate::expr::{Compute, ExprError, Function};

/// A row program as steps. They are done for each row, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Passes {
    pub(super) inputs: Vec<Level>,
    pub(super) compute: Compute,
    pub(super) steps: Vec<Step>,
    pub(super) values: Vec<Value>,
    pub(super) kept: usize,
    pub(super) outputs: Vec<Output>,
    pub(super) pairs: Vec<Pair>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// For each element of the row.
    Traverse(Traversal),
    /// Once for the launch, each row, or each group.
    Values(Values),
}

/// A walk over the elements of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Traversal {
    /// The function of each element.
    pub part: Part,
    /// The use of each of its outputs.
    pub makes: Vec<Made>,
}

/// The use of an output of a traversal's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Made {
    /// The term of a reduction, whose result is that value. Terms of `any` and `all` are 1 and 0.
    Reduced(Reduction, Along, usize),
    /// The second factor of the term before it, which is a product. A sum adds the product without rounding it first.
    Factor,
    /// Kept for later traversals, under that number.
    Kept(usize),
    /// The element of that output of the program; the term, where columns are reduced.
    Output(usize),
}

/// Values from values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Values {
    /// Its inputs are values, widths, and inputs that belong to the level or to a coarser one.
    pub part: Part,
    /// The level: it is computed once for the launch, each row, or each group.
    pub level: Level,
    /// The number of the value that each output is.
    pub makes: Vec<usize>,
}

/// A number that an element shares with others. Conditions are 1 and 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// Its level.
    pub level: Level,
    /// The reduction whose result it is.
    pub reduction: Option<(Reduction, Along)>,
}

/// An output of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// The level that it is written at.
    pub level: Level,
    /// Where it comes from.
    pub from: Origin,
}

/// Where an output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The last traversal, as [`Made::Output`].
    Elements,
    /// A value, of the output's level or of a coarser one, by number.
    Value(usize),
    /// The elements of [`Made::Output`] in all rows, reduced over rows.
    Columns(Reduction),
}

impl Passes {
    /// The steps of a function.
    ///
    /// Reductions that do not depend on each other share a traversal, and all elements of outputs are made in the last one: an output may
    /// take the place of an input.
    ///
    /// # Errors
    /// - A reduction takes a value that is the same along the row, or a group has a size that does not exist.
    /// - The type lacks an operation or a constant.
    /// - The reading does not fit the function.
    pub fn of(function: &Function, reading: &Reading) -> Result<Self, Vec<ExprError>> {
        Self::new(function, reading, false)
    }

    /// As [`of`](Self::of), for schedules that read a row again in each traversal: a maximum and a sum of exponentials below it, or a mean
    /// and a sum of squares about it, share a traversal. [`pairs`](Self::pairs) tells which.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    ///
    /// ```
    /// use cutemplate::expr::Function;
    /// use cutemplate::expr::rows::{Online, Passes, Reading};
    ///
    /// let softmax: Function = "|x| { let e = exp(x - max(x)); e / sum(e) }".parse()?;
    /// let passes = Passes::online(&softmax, &Reading::of(&softmax)).expect("a maximum and a sum");
    /// assert_eq!((passes.traversals().count(), passes.pairs()[0].online), (2, Online::Exp));
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn online(function: &Function, reading: &Reading) -> Result<Self, Vec<ExprError>> {
        Self::new(function, reading, true)
    }

    fn new(function: &Function, reading: &Reading, in_pairs: bool) -> Result<Self, Vec<ExprError>> {
        reading.fits(function).map_err(|error| vec![error])?;
        let graph = Graph::new(function, &reading.inputs, reading.compute, in_pairs)?;
        let refused: Vec<ExprError> = function.refused_operations(reading.compute).collect();
        if !refused.is_empty() {
            return Err(refused);
        }
        let outputs = reading.levels_of_outputs(&graph)?;
        Plan::new(&graph, outputs, reading.keep).passes(&reading.inputs)
    }

    /// The level of each input of the program.
    pub fn inputs(&self) -> &[Level] {
        &self.inputs
    }

    /// The type that is computed in.
    pub fn compute(&self) -> Compute {
        self.compute
    }

    /// The steps of a row, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The traversals, in order.
    pub fn traversals(&self) -> impl DoubleEndedIterator<Item = &Traversal> {
        self.steps.iter().filter_map(|step| match step {
            Step::Traverse(traversal) => Some(traversal),
            Step::Values(_) => None,
        })
    }

    /// The values, by number.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// How many numbers are kept of each element.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Values that are made with another one in its traversal: none but in [`online`](Self::online) programs.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The outputs, by number.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The outputs that are reduced over rows, by number.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    /// use cutemplate::expr::rows::{Passes, Reading, Reduction};
    ///
    /// let backward: Function = "|dy, y| (y * (dy - sum(dy * y)), sum_column(dy))".parse()?;
    /// let passes = Passes::of(&backward, &Reading::of(&backward)).expect("one result a column");
    /// assert_eq!(passes.columns().collect::<Vec<_>>(), [(1, Reduction::Sum)]);
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn columns(&self) -> impl Iterator<Item = (usize, Reduction)> {
        self.outputs.iter().enumerate().filter_map(|(number, output)| match output.from {
            Origin::Columns(reduction) => Some((number, reduction)),
            _ => None,
        })
    }
}
