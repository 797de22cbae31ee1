//! The results of a function on any device: the host's evaluation, by bounds where devices differ.

use core::marker::PhantomData;

use smallvec::SmallVec;

use super::accept::Accept;
use super::domain::{Domain, Integers, Plain, Program, Registers};
use super::error::{ExprError, ExprErrorKind};
use super::interval::{Interval, Intervals};
use super::op::Id;
use super::real::Real;
use super::{Checked, Compute, MAX_INPUTS, MAX_OUTPUTS};

/// The accepted values of each output.
pub type Outputs = SmallVec<[Accept; MAX_OUTPUTS]>;

/// Evaluates a function element by element.
///
/// Every result says which elements are accepted. There is exactly one if the function consists of operations that IEEE
/// 754 or integer arithmetic determines. Otherwise every value is accepted that a device may give within the published
/// errors of the functions in the C++ text. Nobody chooses a tolerance.
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::expr::{Compute, Function};
///
/// let axpy = Function::nary(2, |t, x| [t.scalar("alpha") * x[0] + x[1]])?;
/// let mut evaluator = axpy.check(Compute::F32).expect("f32 has it").evaluator(&[2.0])?;
/// assert_eq!(evaluator.evaluate(&[3.0, 1.0])?[0].exact(DType::F32), Some(u64::from(7f32.to_bits())));
/// assert_eq!(evaluator.evaluate(&[3.0, f64::NAN])?[0].exact(DType::I32), Some(0));
/// # Ok::<(), cutemplate::expr::ExprError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evaluator {
    program: Program,
    inputs: usize,
    scalars: Vec<f64>,
    machine: Machine,
}

#[derive(Clone, Debug)]
enum Machine {
    F32(Floats<f32>),
    F64(Floats<f64>),
    I32(Registers<Integers>),
}

/// Plain values first; bounds where these leave something open.
#[derive(Clone, Debug)]
struct Floats<T: Real> {
    plain: Registers<Plain<T>>,
    bounds: Registers<Intervals<T>>,
}

impl<T: Real> Floats<T> {
    fn new(program: &Program) -> Floats<T> {
        Floats {
            plain: Registers::new(&mut Plain::new(), program),
            bounds: Registers::new(&mut Intervals(PhantomData), program),
        }
    }

    fn evaluate(&mut self, program: &Program, inputs: &[f64], scalars: &[f64]) -> Outputs {
        let mut plain = Plain::new();
        if program.exact {
            self.plain.run(&mut plain, program, |plain, i| plain.number(inputs[i]), scalars);
        }
        if program.exact && !plain.open {
            let value = |id: &Id| accept(Interval::point(self.plain.number(*id)), program.compute);
            return program.outputs.iter().map(value).collect();
        }
        self.run_bounds(program, |intervals, i| intervals.number(inputs[i]), scalars)
    }

    fn run_bounds(
        &mut self,
        program: &Program,
        input: impl Fn(&mut Intervals<T>, usize) -> Interval<T>,
        scalars: &[f64],
    ) -> Outputs {
        self.bounds.run(&mut Intervals(PhantomData), program, input, scalars);
        program.outputs.iter().map(|id| accept(self.bounds.number(*id), program.compute)).collect()
    }

    fn evaluate_bounds(&mut self, program: &Program, inputs: &[Bounds], scalars: &[f64]) -> Outputs {
        self.run_bounds(program, |_, i| inputs[i].interval(), scalars)
    }
}

fn accept<T: Real>(x: Interval<T>, compute: Compute) -> Accept {
    Accept { low: x.low.wide(), high: x.high.wide(), nan: x.nan, compute }
}

/// An input that is known by its bounds only.
///
/// ```
/// use cutemplate::expr::{Bounds, Compute, Function};
///
/// let mut relu = Function::unary(|x| x.relu()).check(Compute::F32).expect("f32 has it").evaluator(&[])?;
/// let accept = relu.evaluate_bounds(&[Bounds::between(-1.0, 2.0)])?[0];
/// assert_eq!((accept.range(), accept.may_be_nan()), (Some((0.0, 2.0)), false));
/// # Ok::<(), cutemplate::expr::ExprError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    low: f64,
    high: f64,
    nan: bool,
}

impl Bounds {
    /// The values that are accepted.
    pub fn of(accept: &Accept) -> Self {
        Self { low: accept.low, high: accept.high, nan: accept.nan }
    }

    /// One value, or NaN.
    pub fn point(x: f64) -> Self {
        if x.is_nan() {
            Self { low: f64::INFINITY, high: f64::NEG_INFINITY, nan: true }
        } else {
            Self { low: x, high: x, nan: false }
        }
    }

    /// The values from one to another, -0 being below 0; any value where an end is NaN.
    pub fn between(low: f64, high: f64) -> Self {
        if low.is_nan() || high.is_nan() {
            Self { low: f64::NEG_INFINITY, high: f64::INFINITY, nan: false }
        } else {
            Self { low, high, nan: false }
        }
    }

    /// The same values, and NaN if `nan` says so.
    #[must_use]
    pub fn or_nan(self, nan: bool) -> Self {
        Self { nan: self.nan || nan, ..self }
    }

    /// In a type that is computed in. Rounding is monotone: the ends, rounded to it, hold every value of that type between them.
    pub(super) fn interval<T: Real>(&self) -> Interval<T> {
        Interval { low: T::of(self.low), high: T::of(self.high), nan: self.nan }
    }

    /// The only value, if there is one and it is not NaN.
    pub fn as_point(&self) -> Option<f64> {
        (!self.nan && self.low.total_cmp(&self.high).is_eq()).then_some(self.low)
    }

    /// The lowest and the highest value, if there is one that is not NaN.
    pub fn range(&self) -> Option<(f64, f64)> {
        self.low.total_cmp(&self.high).is_le().then_some((self.low, self.high))
    }

    /// Whether NaN is possible.
    pub fn may_be_nan(&self) -> bool {
        self.nan
    }
}

impl Checked {
    /// Makes the function ready to be evaluated with these values of its run-time scalars, in order.
    ///
    /// # Errors
    /// Where the function has another number of scalars.
    pub fn evaluator(&self, scalars: &[f64]) -> Result<Evaluator, ExprError> {
        let declared = self.function().scalars().len();
        count("scalars", scalars.len(), declared)?;
        let program = Program::new(self);
        let machine = match self.compute() {
            Compute::F32 => Machine::F32(Floats::new(&program)),
            Compute::F64 => Machine::F64(Floats::new(&program)),
            Compute::I32 => Machine::I32(Registers::new(&mut Integers, &program)),
        };
        Ok(Evaluator { program, inputs: self.function().inputs(), scalars: scalars.to_vec(), machine })
    }
}

impl Evaluator {
    /// The outputs for one element of each input: its [value](super::round::value), which is converted to the compute type
    /// as a load does it. A NaN is taken for a quiet one.
    ///
    /// # Errors
    /// Where the function has another number of inputs.
    pub fn evaluate(&mut self, inputs: &[f64]) -> Result<Outputs, ExprError> {
        count("inputs", inputs.len(), self.inputs)?;
        let (program, scalars) = (&self.program, self.scalars.as_slice());
        Ok(match &mut self.machine {
            Machine::F32(floats) => floats.evaluate(program, inputs, scalars),
            Machine::F64(floats) => floats.evaluate(program, inputs, scalars),
            Machine::I32(registers) => {
                registers.run(&mut Integers, program, |integers, i| integers.number(inputs[i]), scalars);
                let values = program.outputs.iter().map(|id| f64::from(registers.number(*id)));
                values.map(|x| Accept { low: x, high: x, nan: false, compute: Compute::I32 }).collect()
            }
        })
    }

    /// The outputs where only bounds of the inputs are known: all that devices may give for any values within.
    ///
    /// # Errors
    /// Where the function has another number of inputs, or computes in integers, which wrap, and an input is no single
    /// value.
    pub fn evaluate_bounds(&mut self, inputs: &[Bounds]) -> Result<Outputs, ExprError> {
        count("inputs", inputs.len(), self.inputs)?;
        // Only NaN is one integer, 0.
        let is_integer = matches!(self.machine, Machine::I32(_));
        let point = |x: &Bounds| x.as_point().or((is_integer && x.nan && x.range().is_none()).then_some(f64::NAN));
        let points: Option<SmallVec<[f64; MAX_INPUTS]>> = inputs.iter().map(point).collect();
        if let Some(points) = points {
            return self.evaluate(&points);
        }
        let (program, scalars) = (&self.program, self.scalars.as_slice());
        match &mut self.machine {
            Machine::F32(floats) => Ok(floats.evaluate_bounds(program, inputs, scalars)),
            Machine::F64(floats) => Ok(floats.evaluate_bounds(program, inputs, scalars)),
            Machine::I32(_) => Err(ExprError::new(
                ExprErrorKind::Compute,
                "bounds of an integer",
                "a value",
                "integers wrap, so that what lies between two results says nothing",
                "compute in f32 or f64",
            )),
        }
    }
}

pub(super) fn count(what: &str, found: usize, required: usize) -> Result<(), ExprError> {
    if found == required {
        return Ok(());
    }
    let because = format!("the function has {required} {what}");
    let help = "give one value for each";
    Err(ExprError::new(ExprErrorKind::Signature, format!("{found} {what}"), required.to_string(), because, help))
}
