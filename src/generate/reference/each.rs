//! Outputs whose elements are functions of their coordinates: the reference that a family of one's own takes.

use core::cell::RefCell;
use core::fmt;

use crate::dtype::DType;
use crate::expr::{Accept, ExprError, Outputs};
use crate::plan::{Accepted, Case, Cursor, InputElement, Operand, Reference, ReferenceError};
use crate::tensor::parallel::GRAIN;
use crate::tensor::{Tensor, carried, coordinate_at, value};
use crate::view::Access;

/// Elements that a report names, at most.
const NAMED: usize = 8;

/// The value of an element, and the most that a right kernel may differ from it before it is rounded to its type; `None` where a
/// kernel writes none.
type Function = Box<dyn Fn(&At<'_>) -> Option<(f64, f64)> + Send + Sync>;

/// A number for the extents of a problem.
type Count<T> = Box<dyn Fn(&[i64]) -> T + Send + Sync>;

/// A reference of one function for each output, in f64.
///
/// ```
/// use cutemplate::reference::Each;
///
/// // y(m,n) = x(m,n) * w(n), one multiplication in f32: within half a unit of the last of 24 bits.
/// let reference = Each::new().output(|at| {
///     let [m, n] = at.coordinate() else { return (f64::NAN, 0.0) };
///     let exact = at.input(0, &[*m, *n]) * at.input(1, &[*n]);
///     (exact, exact.abs() * 2f64.powi(-24))
/// });
/// # drop(reference);
/// ```
#[derive(Default)]
pub struct Each {
    outputs: Vec<Function>,
    flop: Option<Count<f64>>,
    bytes: Option<Count<u64>>,
}

impl fmt::Debug for Each {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Each({} outputs)", self.outputs.len())
    }
}

impl Each {
    /// Without an output yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next output, in the order of the operands: its value at a coordinate, and the most that a right kernel may differ from
    /// that before it is rounded to its type; 0 where there is one value.
    #[must_use]
    pub fn output(self, function: impl Fn(&At<'_>) -> (f64, f64) + Send + Sync + 'static) -> Self {
        self.output_where(move |at| Some(function(at)))
    }

    /// The same for an output of which a kernel writes a part: `None` where it keeps what it held.
    #[must_use]
    pub fn output_where(mut self, function: impl Fn(&At<'_>) -> Option<(f64, f64)> + Send + Sync + 'static) -> Self {
        self.outputs.push(Box::new(function));
        self
    }

    /// What [`Reference::flop`] says: operations of a launch, by the extents of the problem.
    #[must_use]
    pub fn flop(mut self, count: impl Fn(&[i64]) -> f64 + Send + Sync + 'static) -> Self {
        self.flop = Some(Box::new(count));
        self
    }

    /// What [`Reference::bytes`] says, where a launch does not touch each element of each operand once.
    #[must_use]
    pub fn bytes(mut self, count: impl Fn(&[i64]) -> u64 + Send + Sync + 'static) -> Self {
        self.bytes = Some(Box::new(count));
        self
    }
}

/// A coordinate of an output, and the inputs of the launch.
#[derive(Debug)]
pub struct At<'a> {
    coordinate: &'a [i64],
    problem: &'a [i64],
    read: &'a [&'a Operand],
    inputs: &'a [&'a Tensor],
    scalars: &'a [f64],
    reads: RefCell<Reads>,
}

/// What a function read at one coordinate.
#[derive(Debug, Default)]
struct Reads {
    /// The first of them.
    named: Vec<InputElement>,
    /// The NaNs among them.
    nans: Vec<(DType, u64)>,
}

impl At<'_> {
    /// The coordinate.
    pub fn coordinate(&self) -> &[i64] {
        self.coordinate
    }

    /// The extents of the problem.
    pub fn problem(&self) -> &[i64] {
        self.problem
    }

    /// The extents of an input, by its number among those that are read.
    pub fn shape(&self, input: usize) -> &[i64] {
        self.inputs.get(input).map_or(&[], |tensor| tensor.shape())
    }

    /// The element of an input at a coordinate, exactly; NaN outside.
    pub fn input(&self, input: usize, coordinate: &[i64]) -> f64 {
        let unsigned: Vec<u64> = coordinate.iter().map(|c| u64::try_from(*c).unwrap_or(u64::MAX)).collect();
        let found = self.inputs.get(input).and_then(|tensor| Some((tensor, tensor.bits_at(&unsigned)?)));
        let (Some((tensor, bits)), Some(operand)) = (found, self.read.get(input)) else { return f64::NAN };
        let (dtype, mut reads) = (tensor.dtype(), self.reads.borrow_mut());
        if reads.named.len() < NAMED {
            let at: Vec<String> = coordinate.iter().map(i64::to_string).collect();
            reads.named.push(InputElement { name: format!("{}({})", operand.name, at.join(",")), dtype, bits });
        }
        let value = value(dtype, bits);
        if value.is_nan() {
            reads.nans.push((dtype, bits));
        }
        value
    }

    /// The value of a run-time scalar, by number; NaN where there is none.
    pub fn scalar(&self, index: usize) -> f64 {
        self.scalars.get(index).copied().unwrap_or(f64::NAN)
    }
}

impl Reference for Each {
    fn accepted<'a>(&'a self, case: &Case<'a, '_>) -> Result<Vec<Box<dyn Accepted + 'a>>, ReferenceError> {
        case.alone()?;
        let operands = case.abi.operands();
        let unfit = || case.unfit(format!("{:?}, of shapes that do not fit together", case.inputs));
        let shape = case.abi.problem_shape().ok_or_else(unfit)?;
        let told: Vec<&[i64]> = case.inputs.iter().map(|input| input.shape()).collect();
        let (mut inputs, mut outputs) = (told.iter(), case.written.iter());
        let all = operands.iter().map_while(|operand| match operand.access {
            Access::Read => inputs.next().copied(),
            _ => outputs.next().map(Vec::as_slice),
        });
        let all: Vec<&[i64]> = all.collect();
        // Inputs tell most problems by themselves.
        let problem = shape.problem_of_inputs(operands, &told).or_else(|| shape.problem_of_all(&all));
        let problem = problem.ok_or_else(unfit)?;
        let shapes = shape.shapes(&problem).ok_or_else(unfit)?;
        let fits = |((operand, shape), told): ((&Operand, &Vec<i64>), &&[i64])| {
            operand.access != Access::Read || shape == told
        };
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for (operand, shape) in operands.iter().zip(shapes) {
            if operand.access == Access::Read { read.push((operand, shape)) } else { written.push(shape) }
        }
        let all = read.iter().map(|(operand, shape)| (*operand, shape)).zip(&told).all(fits);
        if !all || written.len() != self.outputs.len() {
            return Err(unfit());
        }
        let each = self.outputs.iter().zip(written).map(|(function, shape)| {
            let part = Part {
                function,
                shape,
                problem: problem.clone(),
                read: read.iter().map(|(operand, _)| *operand).collect(),
                inputs: case.inputs.to_vec(),
                scalars: case.scalars.to_vec(),
            };
            Box::new(part) as Box<dyn Accepted + 'a>
        });
        Ok(each.collect())
    }

    fn flop(&self, extents: &[i64]) -> Option<f64> {
        self.flop.as_ref().map(|count| count(extents))
    }

    fn bytes(&self, extents: &[i64]) -> Option<u64> {
        self.bytes.as_ref().map(|count| count(extents))
    }
}

/// One output.
struct Part<'a> {
    function: &'a Function,
    shape: Vec<i64>,
    problem: Vec<i64>,
    read: Vec<&'a Operand>,
    inputs: Vec<&'a Tensor>,
    scalars: Vec<f64>,
}

impl Accepted for Part<'_> {
    fn outputs(&self) -> usize {
        1
    }

    fn shape(&self) -> Option<Vec<i64>> {
        Some(self.shape.clone())
    }

    fn grain(&self) -> u64 {
        (GRAIN >> 6).max(1)
    }

    fn starting_at(&self, index: u64) -> Box<dyn Cursor + '_> {
        Box::new(Next { part: self, index, reads: Reads::default(), written: true })
    }
}

/// One coordinate after the other.
struct Next<'a> {
    part: &'a Part<'a>,
    index: u64,
    reads: Reads,
    /// Whether a kernel writes the last coordinate.
    written: bool,
}

impl Cursor for Next<'_> {
    fn accepted(&mut self) -> Result<Outputs, ExprError> {
        let coordinate = coordinate_at(&self.part.shape, self.index);
        self.index += 1;
        let at = At {
            coordinate: &coordinate,
            problem: &self.part.problem,
            read: &self.part.read,
            inputs: &self.part.inputs,
            scalars: &self.part.scalars,
            reads: RefCell::default(),
        };
        let found = (self.part.function)(&at);
        self.reads = at.reads.into_inner();
        self.written = found.is_some();
        // What is not written keeps the mark, a NaN.
        let (value, error) = found.unwrap_or((f64::NAN, 0.0));
        Ok(Outputs::from_iter([Accept::within(value, error)]))
    }

    fn is_written(&self) -> bool {
        self.written
    }

    fn inputs(&self) -> Vec<InputElement> {
        self.reads.named.clone()
    }

    fn carries(&self, dtype: DType, bits: u64) -> bool {
        let same = self.reads.nans.iter().filter(|(of, _)| *of == dtype);
        !self.written || carried(dtype, bits, same.map(|(_, bits)| *bits))
    }
}
