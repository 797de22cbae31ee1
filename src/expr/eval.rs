//! What a function gives on any device: the host's evaluation, by bounds where devices differ.

use core::marker::PhantomData;

use smallvec::SmallVec;

use super::accept::Accept;
use super::domain::{Integers, Plain, Program, Registers};
use super::error::{ExprError, ExprErrorKind};
use super::interval::{Interval, Intervals};
use super::real::Real;
use super::{Checked, Compute, MAX_OUTPUTS};

/// Evaluates a function element by element.
///
/// Every result says which elements are right: exactly one where the function consists of operations that IEEE 754 or
/// integer arithmetic determines, else all that devices may give which keep to the published errors of the functions that
/// the C++ text calls. No tolerance is chosen by anyone.
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

    fn evaluate(&mut self, program: &Program, inputs: &[f64], scalars: &[f64]) -> SmallVec<[Accept; MAX_OUTPUTS]> {
        let mut plain = Plain::new();
        if program.exact {
            self.plain.run(&mut plain, program, inputs, scalars);
        }
        let compute = program.compute;
        let accept = |x: Interval<T>| Accept { low: x.low.wide(), high: x.high.wide(), nan: x.nan, compute };
        if program.exact && !plain.open {
            return program.outputs.iter().map(|id| accept(Interval::point(self.plain.number(*id)))).collect();
        }
        self.bounds.run(&mut Intervals(PhantomData), program, inputs, scalars);
        program.outputs.iter().map(|id| accept(self.bounds.number(*id))).collect()
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
    pub fn evaluate(&mut self, inputs: &[f64]) -> Result<SmallVec<[Accept; MAX_OUTPUTS]>, ExprError> {
        count("inputs", inputs.len(), self.inputs)?;
        let (program, scalars) = (&self.program, self.scalars.as_slice());
        Ok(match &mut self.machine {
            Machine::F32(floats) => floats.evaluate(program, inputs, scalars),
            Machine::F64(floats) => floats.evaluate(program, inputs, scalars),
            Machine::I32(registers) => {
                registers.run(&mut Integers, program, inputs, scalars);
                let values = program.outputs.iter().map(|id| f64::from(registers.number(*id)));
                values.map(|x| Accept { low: x, high: x, nan: false, compute: Compute::I32 }).collect()
            }
        })
    }
}

fn count(what: &str, found: usize, required: usize) -> Result<(), ExprError> {
    if found == required {
        return Ok(());
    }
    let because = format!("the function has {required} {what}");
    let help = "give one value for each";
    Err(ExprError::new(ExprErrorKind::Signature, format!("{found} {what}"), required.to_string(), because, help))
}
