//! Random functions, each of which is traced by the crate and computed directly in Rust.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod device;

use cutemplate::dtype::DType;
use cutemplate::expr::{Cond, Expr, Function, Tape};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::variables;

/// Fixed seed, fixed number of cases: a failure here is a failure everywhere.
pub(crate) fn config() -> ProptestConfig {
    let cases = variables::number("CUTEMPLATE_LAW_CASES").map_or(4000, |n| n as u32);
    let rng_seed = RngSeed::Fixed(0x5eed_e49f);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// One step: what is done, and to which of the values so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    op: u8,
    operands: [u8; 3],
    detail: u8,
}

/// Steps on three inputs and two scalars; the last values are the outputs.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) steps: Vec<Step>,
    outputs: u8,
}

pub(crate) const INPUTS: usize = 3;
pub(crate) const SCALARS: [&str; 2] = ["alpha", "beta"];

/// Operations that IEEE 754 determines, then those with an error; integers have the first [`INTEGER_OPS`].
const OPS: [&str; 34] = [
    "+",
    "-",
    "*",
    "min",
    "max",
    "neg",
    "abs",
    "relu",
    "select",
    "and",
    "or",
    "clamp",
    "cast",
    "saturate",
    "/",
    "fma",
    "sqrt",
    "recip",
    "+",
    "*",
    "exp",
    "exp2",
    "log",
    "log2",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "sigmoid",
    "silu",
    "gelu",
    "gelu_tanh",
    "pow",
];
const INTEGER_OPS: u8 = 14;
const EXACT_OPS: u8 = 20;
const FLOAT_OPS: u8 = OPS.len() as u8;

const FLOATS: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -3.0,
    0.1,
    1e-30,
    -1e30,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    65504.0,
    100.0,
    1.0 / 3.0,
];
const INTEGERS: [f64; 8] = [0.0, 1.0, -1.0, 2.0, 7.0, -100.0, 2147483647.0, -2147483648.0];

fn sample(ops: u8) -> impl Strategy<Value = Sample> {
    let step = (0..ops, any::<[u8; 3]>(), any::<u8>()).prop_map(|(op, operands, detail)| Step { op, operands, detail });
    (vec(step, 1..12), 1u8..=3).prop_map(|(steps, outputs)| Sample { steps, outputs })
}

pub(crate) fn integers() -> impl Strategy<Value = Sample> {
    sample(INTEGER_OPS)
}

pub(crate) fn exact() -> impl Strategy<Value = Sample> {
    sample(EXACT_OPS)
}

pub(crate) fn floats() -> impl Strategy<Value = Sample> {
    sample(FLOAT_OPS)
}

/// What steps are done on.
pub(crate) trait Values {
    type Number: Copy;
    type Truth;

    fn constant(&mut self, x: f64) -> Self::Number;
    fn unary(&mut self, op: &str, x: Self::Number) -> Self::Number;
    fn binary(&mut self, op: &str, x: Self::Number, y: Self::Number) -> Self::Number;
    fn fma(&mut self, x: [Self::Number; 3]) -> Self::Number;
    fn cast(&mut self, dtype: DType, saturate: bool, x: Self::Number) -> Self::Number;
    fn compare(&mut self, op: u8, x: Self::Number, y: Self::Number) -> Self::Truth;
    fn join(&mut self, and: bool, x: Self::Truth, y: Self::Truth) -> Self::Truth;
    fn select(&mut self, c: Self::Truth, x: Self::Number, y: Self::Number) -> Self::Number;
}

/// Does the steps; `leaves` are inputs and scalars. Integers use the constants and types that are theirs.
pub(crate) fn compute<V: Values>(sample: &Sample, v: &mut V, leaves: &[V::Number], integers: bool) -> Vec<V::Number> {
    let mut values = leaves.to_vec();
    for step in &sample.steps {
        // One operand in eight is a constant.
        let mut operand = |byte: u8| {
            if byte % 8 == 7 {
                let constants: &[f64] = if integers { &INTEGERS } else { &FLOATS };
                v.constant(constants[usize::from(byte / 8) % constants.len()])
            } else {
                values[usize::from(byte / 8) % values.len()]
            }
        };
        let [x, y, z] = step.operands.map(&mut operand);
        let dtypes: &[DType] = if integers { &DType::ALL[6..] } else { DType::ALL };
        let dtype = dtypes[usize::from(step.detail) % dtypes.len()];
        let result = match OPS[usize::from(step.op)] {
            "fma" => v.fma([x, y, z]),
            "recip" => {
                let one = v.constant(1.0);
                v.binary("/", one, x)
            }
            "clamp" => {
                let raised = v.binary("max", x, y);
                v.binary("min", raised, z)
            }
            "cast" => v.cast(dtype, false, x),
            "saturate" => v.cast(dtype, true, x),
            "select" => {
                let condition = v.compare(step.detail % 6, x, y);
                v.select(condition, y, z)
            }
            op @ ("and" | "or") => {
                let (left, right) = (v.compare(step.detail % 6, x, y), v.compare(step.detail / 6 % 6, y, z));
                let both = v.join(op == "and", left, right);
                v.select(both, x, z)
            }
            op @ ("+" | "-" | "*" | "/" | "min" | "max" | "pow") => v.binary(op, x, y),
            op => v.unary(op, x),
        };
        values.push(result);
    }
    values.split_off(values.len() - usize::from(sample.outputs).min(sample.steps.len()))
}

pub(crate) struct Traced<'t>(pub(crate) Tape<'t>);

impl<'t> Values for Traced<'t> {
    type Number = Expr<'t>;
    type Truth = Cond<'t>;

    fn constant(&mut self, x: f64) -> Expr<'t> {
        self.0.constant(x)
    }
    fn unary(&mut self, op: &str, x: Expr<'t>) -> Expr<'t> {
        match op {
            "neg" => -x,
            "abs" => x.abs(),
            "relu" => x.relu(),
            "sqrt" => x.sqrt(),
            "exp" => x.exp(),
            "exp2" => x.exp2(),
            "log" => x.log(),
            "log2" => x.log2(),
            "rsqrt" => x.rsqrt(),
            "sin" => x.sin(),
            "cos" => x.cos(),
            "tanh" => x.tanh(),
            "erf" => x.erf(),
            "sigmoid" => x.sigmoid(),
            "silu" => x.silu(),
            "gelu" => x.gelu(),
            "gelu_tanh" => x.gelu_tanh(),
            _ => unreachable!("{op}"),
        }
    }
    fn binary(&mut self, op: &str, x: Expr<'t>, y: Expr<'t>) -> Expr<'t> {
        match op {
            "+" => x + y,
            "-" => x - y,
            "*" => x * y,
            "/" => x / y,
            "min" => x.min(y),
            "max" => x.max(y),
            _ => x.pow(y),
        }
    }
    fn fma(&mut self, [a, b, c]: [Expr<'t>; 3]) -> Expr<'t> {
        a.fma(b, c)
    }
    fn cast(&mut self, dtype: DType, saturate: bool, x: Expr<'t>) -> Expr<'t> {
        if saturate { x.saturate(dtype) } else { x.cast(dtype) }
    }
    fn compare(&mut self, op: u8, x: Expr<'t>, y: Expr<'t>) -> Cond<'t> {
        match op {
            0 => x.lt(y),
            1 => x.le(y),
            2 => x.gt(y),
            3 => x.ge(y),
            4 => x.eq(y),
            // Not equal, said in two ways.
            _ => x.eq(y).not(),
        }
    }
    fn join(&mut self, and: bool, x: Cond<'t>, y: Cond<'t>) -> Cond<'t> {
        if and { x.and(y) } else { x.or(y) }
    }
    fn select(&mut self, c: Cond<'t>, x: Expr<'t>, y: Expr<'t>) -> Expr<'t> {
        c.select(x, y)
    }
}

impl Sample {
    /// One drawn from random words: 1 to 11 steps.
    pub(crate) fn drawn(integers: bool, outputs: u8, word: &mut impl FnMut() -> u64) -> Sample {
        let ops = if integers { INTEGER_OPS } else { FLOAT_OPS };
        let step = |w: u64| {
            let [op, x, y, z, detail, ..] = w.to_le_bytes();
            Step { op: op % ops, operands: [x, y, z], detail }
        };
        let steps = usize::from(outputs).max(1 + word() as usize % 11);
        Sample { steps: (0..steps).map(|_| step(word())).collect(), outputs }
    }

    /// The function of three inputs and two scalars, as the crate traces it.
    pub(crate) fn trace(&self, integers: bool) -> Function {
        self.trace_of(INPUTS, &SCALARS, integers)
    }

    /// The same of other inputs and scalars; without any, of the constant 3.
    pub(crate) fn trace_of(&self, inputs: usize, scalars: &[&'static str], integers: bool) -> Function {
        match usize::from(self.outputs).min(self.steps.len()) {
            1 => self.outputs::<1>(inputs, scalars, integers),
            2 => self.outputs::<2>(inputs, scalars, integers),
            3 => self.outputs::<3>(inputs, scalars, integers),
            _ => self.outputs::<4>(inputs, scalars, integers),
        }
    }

    fn outputs<const N: usize>(&self, inputs: usize, scalars: &[&'static str], integers: bool) -> Function {
        Function::nary(inputs, |t, x| {
            let mut leaves = x.to_vec();
            leaves.extend(scalars.iter().map(|name| t.scalar(name)));
            if leaves.is_empty() {
                leaves.push(t.constant(3.0));
            }
            let outputs = compute(self, &mut Traced(t), &leaves, integers);
            core::array::from_fn::<_, N, _>(|i| outputs[i])
        })
        .expect("the signature is fine")
    }
}
