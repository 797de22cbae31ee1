//! Random functions, each of which is traced by the crate and computed directly in Rust.
#![allow(dead_code, reason = "each test file uses a part of it")]

use cutemplate::dtype::DType;
use cutemplate::expr::round::round_to;
use cutemplate::expr::{Cond, Expr, Function, Tape};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Fixed seed, fixed number of cases: a failure here is a failure everywhere.
pub(crate) fn config() -> ProptestConfig {
    let cases = std::env::var("CUTEMPLATE_LAW_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(4000);
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

struct Traced<'t>(Tape<'t>);

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
    /// The function, as the crate traces it.
    pub(crate) fn trace(&self, integers: bool) -> Function {
        fn outputs<const N: usize>(sample: &Sample, integers: bool) -> Function {
            Function::nary(INPUTS, |t, x| {
                let leaves = [x[0], x[1], x[2], t.scalar(SCALARS[0]), t.scalar(SCALARS[1])];
                let outputs = compute(sample, &mut Traced(t), &leaves, integers);
                core::array::from_fn::<_, N, _>(|i| outputs[i])
            })
            .expect("the signature is fine")
        }
        match usize::from(self.outputs).min(self.steps.len()) {
            1 => outputs::<1>(self, integers),
            2 => outputs::<2>(self, integers),
            _ => outputs::<3>(self, integers),
        }
    }
}

/// What a device might compute: functions that have an error are off by some of it.
pub(crate) struct Device<T> {
    /// Chooses the errors.
    state: u64,
    kind: core::marker::PhantomData<T>,
}

impl<T> Device<T> {
    pub(crate) fn new(seed: u64) -> Device<T> {
        Device { state: seed, kind: core::marker::PhantomData }
    }

    /// From -1 to 1, one of three.
    fn sign(&mut self) -> i32 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.state >> 40) % 3) as i32 - 1
    }
}

macro_rules! device {
    ($T:ident, $exp:literal $log2:literal $other:literal $pow:literal) => {
        impl Device<$T> {
            /// The value `ulps` away at most; what is exact stays.
            fn near(&mut self, exact: bool, x: f64, ulps: u32) -> $T {
                let (mut result, sign) = (x as $T, self.sign());
                if !exact {
                    for _ in 0..ulps {
                        result = match sign {
                            -1 => result.next_down(),
                            1 => result.next_up(),
                            _ => result,
                        };
                    }
                }
                result
            }
        }

        impl Values for Device<$T> {
            type Number = $T;
            type Truth = bool;

            fn constant(&mut self, x: f64) -> $T {
                x as $T
            }
            fn unary(&mut self, op: &str, x: $T) -> $T {
                let wide = f64::from(x);
                let special = x == 0.0 || !x.is_finite();
                match op {
                    "neg" => -x,
                    "abs" => x.abs(),
                    "relu" => {
                        if x.is_nan() || x > 0.0 {
                            x
                        } else {
                            0.0
                        }
                    }
                    "sqrt" => x.sqrt(),
                    "exp" => self.near(special, wide.exp(), $exp),
                    "exp2" => self.near(special, wide.exp2(), $exp),
                    "log" => self.near(special || x == 1.0, wide.ln(), 1),
                    "log2" => self.near(special || x == 1.0, wide.log2(), $log2),
                    "rsqrt" => self.near(special, 1.0 / wide.sqrt(), $other),
                    "sin" => self.near(special, wide.sin(), $other),
                    "cos" => self.near(special, wide.cos(), $other),
                    "tanh" => self.near(special, wide.tanh(), $other),
                    "erf" => self.near(special, libm_erf(wide), $other),
                    "sigmoid" => 1.0 / (1.0 + self.unary("exp", -x)),
                    "silu" => x / (1.0 + self.unary("exp", -x)),
                    "gelu" => 0.5 * x * (1.0 + self.unary("erf", x * core::f64::consts::FRAC_1_SQRT_2 as $T)),
                    "gelu_tanh" => {
                        let factor = (core::f64::consts::FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2) as $T;
                        let cubic = 0.044715 as $T * x * x * x;
                        0.5 * x * (1.0 + self.unary("tanh", factor * (x + cubic)))
                    }
                    _ => unreachable!("{op}"),
                }
            }
            fn binary(&mut self, op: &str, x: $T, y: $T) -> $T {
                match op {
                    "+" => x + y,
                    "-" => x - y,
                    "*" => x * y,
                    "/" => x / y,
                    "min" if x.is_nan() => y,
                    "max" if x.is_nan() => y,
                    "min" | "max" if y.is_nan() => x,
                    // Of zeros, either.
                    "min" => {
                        if x < y || (x == y && self.sign() > 0) {
                            x
                        } else {
                            y
                        }
                    }
                    "max" => {
                        if x > y || (x == y && self.sign() > 0) {
                            x
                        } else {
                            y
                        }
                    }
                    _ => {
                        let exact = x == 0.0 || y == 0.0 || !x.is_finite() || !y.is_finite() || x == 1.0;
                        self.near(exact, f64::from(x).powf(f64::from(y)), $pow)
                    }
                }
            }
            fn fma(&mut self, [a, b, c]: [$T; 3]) -> $T {
                a.mul_add(b, c)
            }
            fn cast(&mut self, dtype: DType, saturate: bool, x: $T) -> $T {
                let highest = match dtype {
                    DType::F16 => 65504.0,
                    DType::Bf16 => f64::from(half::bf16::MAX),
                    DType::F32 => f64::from(f32::MAX),
                    DType::F64 => f64::from($T::MAX),
                    _ => f64::INFINITY,
                };
                // An f64 holds the infinities of the narrower type.
                let saturate = saturate && !(dtype == DType::F64 && size_of::<$T>() == 4);
                let x = if saturate && !x.is_nan() { f64::from(x).clamp(-highest, highest) } else { f64::from(x) };
                match dtype {
                    DType::F32 => f64::from(x as f32) as $T,
                    DType::F16 => half::f16::from_f64(x).to_f64() as $T,
                    DType::Bf16 => half::bf16::from_f64(x).to_f64() as $T,
                    DType::I32 => x as i32 as $T,
                    DType::I16 => x as i16 as $T,
                    DType::I8 => x as i8 as $T,
                    DType::U8 => x as u8 as $T,
                    DType::F64 => x as $T,
                    DType::Bool | DType::E4m3 | DType::E5m2 => round_to(dtype, x) as $T,
                }
            }
            fn compare(&mut self, op: u8, x: $T, y: $T) -> bool {
                [x < y, x <= y, x > y, x >= y, x == y, x != y][usize::from(op)]
            }
            fn join(&mut self, and: bool, x: bool, y: bool) -> bool {
                if and { x && y } else { x || y }
            }
            fn select(&mut self, c: bool, x: $T, y: $T) -> $T {
                if c { x } else { y }
            }
        }
    };
}
device!(f32, 2 1 2 8);
device!(f64, 1 2 2 2);

unsafe extern "C" {
    #[link_name = "erf"]
    safe fn libm_erf(x: f64) -> f64;
}

impl Values for Device<i32> {
    type Number = i32;
    type Truth = bool;

    fn constant(&mut self, x: f64) -> i32 {
        x as i32
    }
    fn unary(&mut self, op: &str, x: i32) -> i32 {
        match op {
            "neg" => x.wrapping_neg(),
            "abs" => x.wrapping_abs(),
            _ => {
                if x > 0 {
                    x
                } else {
                    0
                }
            }
        }
    }
    fn binary(&mut self, op: &str, x: i32, y: i32) -> i32 {
        match op {
            "+" => x.wrapping_add(y),
            "-" => x.wrapping_sub(y),
            "*" => x.wrapping_mul(y),
            "min" => x.min(y),
            _ => x.max(y),
        }
    }
    fn fma(&mut self, _: [i32; 3]) -> i32 {
        unreachable!("integers have no fma")
    }
    fn cast(&mut self, dtype: DType, saturate: bool, x: i32) -> i32 {
        match (dtype, saturate) {
            (DType::I16, false) => i32::from(x as i16),
            (DType::I16, true) => x.clamp(-32768, 32767),
            (DType::I8, false) => i32::from(x as i8),
            (DType::I8, true) => x.clamp(-128, 127),
            (DType::U8, false) => i32::from(x as u8),
            (DType::U8, true) => x.clamp(0, 255),
            (DType::Bool, _) => i32::from(x != 0),
            _ => x,
        }
    }
    fn compare(&mut self, op: u8, x: i32, y: i32) -> bool {
        [x < y, x <= y, x > y, x >= y, x == y, x != y][usize::from(op)]
    }
    fn join(&mut self, and: bool, x: bool, y: bool) -> bool {
        if and { x && y } else { x || y }
    }
    fn select(&mut self, c: bool, x: i32, y: i32) -> i32 {
        if c { x } else { y }
    }
}
