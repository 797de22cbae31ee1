//! Direct computation in Rust, without the crate's evaluator.

use cutemplate::dtype::DType;
use cutemplate::expr::round::round_to;

use super::Values;

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

/// As the text of f32 has them.
const GELU: &[f64] =
    &[-2.8349125e-6, 3.9377686e-5, -1.8618022e-4, -1.3693645e-4, 7.06342e-3, -0.05249618, -0.4592082, -1.1511052, -1.0];
const GELU_TANH: &[f64] = &[
    -7.958954e-6,
    8.166456e-5,
    -1.6578428e-4,
    -6.19837e-4,
    6.105985e-4,
    7.001292e-3,
    -0.051153075,
    -0.459292,
    -1.1510994,
    -1.0,
];

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

            /// `max(x, 0) - |x| 2^p(|x|)`, Horner's scheme from the highest power on.
            fn gated(&mut self, x: $T, powers: &[f64]) -> $T {
                let t = x.abs().min(12.0);
                let p = powers.iter().fold(0.0, |p: $T, power| p.mul_add(t, *power as $T));
                (-t).mul_add(self.unary("exp2", p), if x <= 0.0 { 0.0 } else { x })
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
                    "gelu" if size_of::<$T>() == 4 => self.gated(x, GELU),
                    "gelu_tanh" if size_of::<$T>() == 4 => self.gated(x, GELU_TANH),
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

// SAFETY: C's `erf` takes and gives a double.
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
