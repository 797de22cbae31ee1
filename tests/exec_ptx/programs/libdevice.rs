//! The functions of CUDA's libdevice, over their domains, within the bounds that the CUDA C++ Programming Guide documents
//! ("Mathematical Functions", tables of single and double precision: units in the last place from the correctly rounded result).

use cutemplate::exec::ptx::Modes;

use super::{Arg, Draws, Program, bytes, compiled, values};

/// A function of one or two arguments.
#[derive(Clone, Copy)]
enum Of {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

struct Function {
    /// The name in double precision; that in single has an f behind it.
    name: &'static str,
    /// The most units in the last place, in single and in double precision.
    bounds: [i64; 2],
    /// Units that the reference is itself off by in double precision; `None` where it is not compared there.
    own: Option<i64>,
    /// What is far enough from zero for everything to happen.
    far: f64,
    of: Of,
}

const fn one(name: &'static str, bounds: [i64; 2], far: f64, of: fn(f64) -> f64) -> Function {
    Function { name, bounds, own: Some(1), far, of: Of::One(of) }
}

const fn two(name: &'static str, bounds: [i64; 2], far: f64, of: fn(f64, f64) -> f64) -> Function {
    Function { name, bounds, own: Some(1), far, of: Of::Two(of) }
}

/// The same, whose reference is made of others, and compared in single precision.
const fn single(name: &'static str, bound: i64, far: f64, of: fn(f64) -> f64) -> Function {
    Function { name, bounds: [bound, 0], own: None, far, of: Of::One(of) }
}

/// The sine of a multiple of pi, turned by so many quarters: what is left of its argument is exact.
fn sinpi(x: f64, quarters: f64) -> f64 {
    let halves = libm::rint(2.0 * (x % 2.0));
    let rest = (x % 2.0 - 0.5 * halves) * core::f64::consts::PI;
    match (halves + quarters).rem_euclid(4.0) as u32 {
        0 => libm::sin(rest),
        1 => libm::cos(rest),
        2 => -libm::sin(rest),
        _ => -libm::cos(rest),
    }
}

/// The crate's is off by several units; here the logarithm has twice the digits.
fn exp10(x: f64) -> f64 {
    const LOW: f64 = -2.170_756_223_382_249_4e-16;
    let high = x * core::f64::consts::LN_10;
    let low = libm::fma(x, core::f64::consts::LN_10, -high) + x * LOW;
    if low.abs() < 1e-3 { libm::exp(high) * (1.0 + low) } else { libm::exp(high) }
}

/// Below its domain the crate's is no number.
fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

fn logb(x: f64) -> f64 {
    match x {
        0.0 => f64::NEG_INFINITY,
        x if x.is_finite() => libm::ilogb(x).into(),
        x => x * x,
    }
}

/// Where `of`, which rises, has the value.
fn inverse(value: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if of(middle) < value { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn erfinv(x: f64) -> f64 {
    match x {
        x if x.abs() > 1.0 || x.is_nan() => f64::NAN,
        x if x.abs() == 1.0 => x * f64::INFINITY,
        // Its series, where bisection has no digits left.
        x if x.abs() < 1e-5 => x * 0.5 * core::f64::consts::PI.sqrt(),
        x => inverse(x, libm::erf),
    }
}

fn erfcinv(x: f64) -> f64 {
    match x {
        x if !(0.0..=2.0).contains(&x) => f64::NAN,
        0.0 => f64::INFINITY,
        2.0 => f64::NEG_INFINITY,
        // Towards zero its argument is what is exact, and towards one the difference from it.
        x if x < 0.5 => -inverse(x, |y| libm::erfc(-y)),
        x => erfinv(1.0 - x),
    }
}

fn normcdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
}

fn erfcx(x: f64) -> f64 {
    // Beyond, the terms of its asymptotic series fall below a unit of single precision.
    let r = 1.0 / (x * x);
    let series = 1.0 - 0.5 * r + 0.75 * r * r - 1.875 * r * r * r;
    if x > 20.0 { series / (x * core::f64::consts::PI.sqrt()) } else { libm::exp(x * x) * libm::erfc(x) }
}

/// Outside of the interval in which the guide gives no bound.
fn lgamma(x: f64) -> f64 {
    if (-24.0..-2.2).contains(&x) { f64::NAN } else { libm::lgamma(x) }
}

/// Up to where the guide's bound is relative.
fn near(x: f64, of: fn(f64) -> f64) -> f64 {
    if x.abs() < 8.0 { of(x) } else { f64::NAN }
}

const FUNCTIONS: [Function; 53] = [
    one("acos", [2, 2], 1.0, libm::acos),
    one("acosh", [4, 3], 100.0, acosh),
    one("asin", [2, 2], 1.0, libm::asin),
    one("asinh", [3, 3], 100.0, libm::asinh),
    one("atan", [2, 2], 20.0, libm::atan),
    one("atanh", [3, 2], 1.0, libm::atanh),
    one("cbrt", [1, 1], 1e4, libm::cbrt),
    one("cos", [2, 2], 1e5, libm::cos),
    one("cosh", [2, 1], 100.0, libm::cosh),
    one("erf", [2, 2], 6.0, libm::erf),
    one("erfc", [4, 5], 12.0, libm::erfc),
    one("exp", [2, 1], 120.0, libm::exp),
    one("exp2", [2, 1], 160.0, libm::exp2),
    one("exp10", [2, 1], 50.0, exp10),
    one("expm1", [1, 1], 100.0, libm::expm1),
    one("log", [1, 1], 1e4, libm::log),
    one("log2", [1, 1], 1e4, libm::log2),
    one("log10", [2, 1], 1e4, libm::log10),
    one("log1p", [1, 1], 100.0, libm::log1p),
    one("lgamma", [6, 4], 60.0, lgamma),
    one("tgamma", [5, 10], 40.0, libm::tgamma),
    one("sin", [2, 2], 1e5, libm::sin),
    one("sinh", [3, 2], 100.0, libm::sinh),
    one("tan", [4, 2], 1e5, libm::tan),
    one("tanh", [2, 1], 20.0, libm::tanh),
    one("sqrt", [0, 0], 1e4, libm::sqrt),
    one("rsqrt", [2, 1], 1e4, |x| 1.0 / libm::sqrt(x)),
    one("rcbrt", [1, 1], 1e4, |x| 1.0 / libm::cbrt(x)),
    one("ceil", [0, 0], 1e3, libm::ceil),
    one("floor", [0, 0], 1e3, libm::floor),
    one("trunc", [0, 0], 1e3, libm::trunc),
    one("round", [0, 0], 1e3, libm::round),
    one("rint", [0, 0], 1e3, libm::rint),
    one("logb", [0, 0], 1e3, logb),
    single("sinpi", 2, 100.0, |x| sinpi(x, 0.0)),
    single("cospi", 2, 100.0, |x| sinpi(x, 1.0)),
    single("erfinv", 4, 1.0, erfinv),
    single("erfcinv", 4, 2.0, erfcinv),
    single("erfcx", 4, 30.0, erfcx),
    single("normcdf", 5, 10.0, normcdf),
    single("j0", 9, 8.0, |x| near(x, libm::j0)),
    single("j1", 9, 8.0, |x| near(x, libm::j1)),
    single("y0", 9, 8.0, |x| near(x, libm::y0)),
    single("y1", 9, 8.0, |x| near(x, libm::y1)),
    two("pow", [4, 2], 30.0, libm::pow),
    two("atan2", [3, 2], 10.0, libm::atan2),
    two("hypot", [3, 2], 100.0, libm::hypot),
    two("fmod", [0, 0], 100.0, libm::fmod),
    two("remainder", [0, 0], 100.0, libm::remainder),
    two("fdim", [0, 0], 100.0, libm::fdim),
    two("fmax", [0, 0], 100.0, libm::fmax),
    two("fmin", [0, 0], 100.0, libm::fmin),
    two("copysign", [0, 0], 100.0, libm::copysign),
];

/// Steps from zero over the numbers of the type.
trait Number: Copy + 'static {
    const NAME: &'static str;
    const SUFFIX: &'static str;
    const WHICH: usize;
    fn of(v: f64) -> Self;
    fn value(self) -> f64;
    fn steps(self) -> i64;
    fn bits(draw: u64) -> Self;
    fn write(all: &[Self]) -> Vec<u8>;
    fn read(from: &[u8]) -> Vec<Self>;
}

macro_rules! number {
    ($t:ty, $bits:ty, $signed:ty, $name:expr, $suffix:expr, $which:expr) => {
        impl Number for $t {
            const NAME: &'static str = $name;
            const SUFFIX: &'static str = $suffix;
            const WHICH: usize = $which;

            fn of(v: f64) -> Self {
                v as $t
            }

            fn value(self) -> f64 {
                self.into()
            }

            fn steps(self) -> i64 {
                let magnitude = (self.to_bits() & !(1 << (<$bits>::BITS - 1))) as i64;
                if self.is_sign_negative() { -magnitude } else { magnitude }
            }

            fn bits(draw: u64) -> Self {
                <$t>::from_bits(draw as $bits)
            }

            fn write(all: &[Self]) -> Vec<u8> {
                bytes(all, |v| v.to_le_bytes())
            }

            fn read(from: &[u8]) -> Vec<Self> {
                values(from, <$t>::from_le_bytes)
            }
        }
    };
}

number!(f32, u32, i32, "float", "f", 0);
number!(f64, u64, i64, "double", "", 1);

/// Of every four, two of any bits, one that is near, and one of those at which something happens.
fn draws<T: Number>(seed: u64, count: usize, far: f64) -> Vec<T> {
    const ODD: [f64; 12] =
        [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, 88.0];
    let mut draws = Draws(seed);
    let mut draw = |i: usize| {
        let number = draws.next();
        match i % 4 {
            0 | 1 => T::bits(number),
            2 if number.is_multiple_of(8) => T::of(ODD[(number >> 8) as usize % ODD.len()]),
            _ => T::of(((number >> 11) as f64 * 2.0_f64.powi(-52) - 1.0) * far),
        }
    };
    (0..count).map(&mut draw).collect()
}

/// The most that a function is off, in units in the last place, after it was compared with its bound.
fn compare<T: Number>(f: &Function, x: &[T], y: &[T], found: &[T]) -> Result<i64, String> {
    let mut most = 0;
    for (i, found) in found.iter().enumerate() {
        let exact = match f.of {
            Of::One(of) => of(x[i].value()),
            Of::Two(of) => of(x[i].value(), y[i].value()),
        };
        let expected = T::of(exact);
        let outside = matches!(f.name, "lgamma" | "j0" | "j1" | "y0" | "y1") && exact.is_nan();
        if outside || found.value().is_nan() && exact.is_nan() {
            continue;
        }
        let off = (found.steps() - expected.steps()).abs();
        // A rounded reference is off by half a unit in single precision at most.
        let own = if T::WHICH == 0 || f.bounds[T::WHICH] == 0 { 0 } else { f.own.unwrap_or(0) };
        if exact.is_nan() != found.value().is_nan() || off > f.bounds[T::WHICH] + own {
            let (x, y) = (x[i].value(), y[i].value());
            let name = f.name;
            return Err(format!(
                "{name}{}({x:e}, {y:e}) is {:e}, and has to be {exact:e}: {off} off",
                T::SUFFIX,
                found.value()
            ));
        }
        most = most.max(off);
    }
    Ok(most)
}

fn text<T: Number>(functions: &[&Function]) -> String {
    let one = |f: &&Function| {
        let call = match f.of {
            Of::One(_) => format!("{}{}(x[i])", f.name, T::SUFFIX),
            Of::Two(_) => format!("{}{}(x[i], y[i])", f.name, T::SUFFIX),
        };
        format!(
            "extern \"C\" __global__ void {0}_{1}({1} const* x, {1} const* y, {1}* z, int n) {{\n  \
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) z[i] = {call};\n}}\n",
            f.name,
            T::NAME
        )
    };
    functions.iter().map(one).collect()
}

fn are_within_their_bounds<T: Number>() {
    let functions: Vec<&Function> = FUNCTIONS.iter().filter(|f| T::WHICH == 0 || f.own.is_some()).collect();
    let module = compiled(&format!("libdevice_{}", T::NAME), &text::<T>(&functions), "sm_90a");
    let mut wrong = Vec::new();
    for f in &functions {
        let entry = format!("{}_{}", f.name, T::NAME);
        // Most of them plain; in all modes a part, which ends in the middle of a block.
        for (count, modes) in [(1 << 16, Modes::PLAIN), (2000, Modes::ALL)] {
            let (x, y) = (draws::<T>(count as u64, count, f.far), draws::<T>(count as u64 + 1, count, f.far));
            let args = vec![
                Arg::In(T::write(&x)),
                Arg::In(T::write(&y)),
                Arg::Out(vec![0; size_of::<T>() * count]),
                Arg::ints(&[count as i32]),
            ];
            let (report, outs) = Program::new(&module, &entry, count.div_ceil(256) as u32, 256, args).run(modes, 0);
            assert!(report.is_clean(), "{entry}\n{report}");
            match compare(f, &x, &y, &T::read(&outs[2])) {
                Ok(most) if modes == Modes::PLAIN => println!("{entry}: {most} of {}", f.bounds[T::WHICH]),
                Ok(_) => {}
                Err(why) => wrong.push(why),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn functions_of_libdevice_are_within_their_bounds() {
    are_within_their_bounds::<f32>();
    are_within_their_bounds::<f64>();
}
