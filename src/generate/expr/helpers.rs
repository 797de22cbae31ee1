//! The C++ functions that expressions and conversions call, each defined only where it is used.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::check::Compute;
use super::cxx;
use super::function::Function;
use super::op::Unary;

/// A function of the C++ text; those that others call come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Helper {
    RoundToOdd,
    SaturateCast,
    ClampFinite,
    WrapNeg,
    WrapAbs,
    WrapAdd,
    WrapSub,
    WrapMul,
    Exp2,
    Relu,
    Sigmoid,
    Silu,
    Gelu,
    GeluTanh,
}

impl Helper {
    pub(super) fn name(self) -> &'static str {
        match self {
            Helper::RoundToOdd => "round_to_odd",
            Helper::SaturateCast => "saturate_cast",
            Helper::ClampFinite => "clamp_finite",
            Helper::WrapNeg => "wrap_neg",
            Helper::WrapAbs => "wrap_abs",
            Helper::WrapAdd => "wrap_add",
            Helper::WrapSub => "wrap_sub",
            Helper::WrapMul => "wrap_mul",
            Helper::Exp2 => "exp2_or_0",
            Helper::Relu => Unary::Relu.text(),
            Helper::Sigmoid => Unary::Sigmoid.text(),
            Helper::Silu => Unary::Silu.text(),
            Helper::Gelu => Unary::Gelu.text(),
            Helper::GeluTanh => Unary::GeluTanh.text(),
        }
    }
}

/// A polynomial of `t >= 0`, the highest power first, near `log2(-gelu(-t) / t)`: 2 to the power of it has the least largest error, 8.0e-9, by
/// Lawson's iteration on [0, 5.8].
const GELU_LOG2: ([f64; 2], [f64; 7]) = (
    [-2.834_912_5e-6, 3.937_768_6e-5],
    [-1.861_802_2e-4, -1.369_364_5e-4, 7.063_42e-3, -0.052_496_18, -0.459_208_2, -1.151_105_2, -1.0],
);

/// As [`GELU_LOG2`], of `gelu_tanh`: 3.3e-8.
const GELU_TANH_LOG2: ([f64; 2], [f64; 8]) = (
    [-7.958_954e-6, 8.166_456e-5],
    [-1.657_842_8e-4, -6.198_37e-4, 6.105_985e-4, 7.001_292e-3, -0.051_153_075, -0.459_292, -1.151_099_4, -1.0],
);

/// What [`gated`] does.
const GATED: &str = ", as max(x, 0) - |x| * 2^p(|x|)";

/// `max(x, 0) - |x| 2^p(|x|)`, of a function `x q(x)` with `q(x) = 1 - q(-x)` and `p(x) = log2(q(-x))`: no branch, no division, and no
/// difference of 1 and nearly 1. NaN is passed on, and it is 0 at -inf.
fn gated<const N: usize>(([first, second], rest): ([f64; 2], [f64; N])) -> Function {
    Function::unary(move |x| {
        // At 12, 2^p is 0 in f32.
        let t = x.abs().min(12);
        let p = rest.into_iter().fold(t.fma(first, second), |p, coefficient| p.fma(t, coefficient));
        (-t).fma(p.exp2(), x.le(0).select(0, x))
    })
}

/// A composed operation, and the C++ that computes it.
pub(super) struct Expansion {
    /// Its definition.
    pub(super) is: Function,
    /// In operations that devices have, and how, where f32 has others than the definition's.
    by: Option<(Function, &'static str)>,
}

impl Expansion {
    /// The operations of a device, the one source of the C++ and of its evaluation, and a word on them.
    pub(super) fn on(&self, compute: Compute) -> (&Function, &'static str) {
        match &self.by {
            Some((function, how)) if compute == Compute::F32 => (function, how),
            _ => (&self.is, ""),
        }
    }
}

/// The expansion of a composed operation.
pub(super) fn expansion(op: Unary) -> Option<&'static Expansion> {
    static SIGMOID: LazyLock<Expansion> =
        LazyLock::new(|| Expansion { is: Function::unary(|x| 1 / (1 + (-x).exp())), by: None });
    static SILU: LazyLock<Expansion> =
        LazyLock::new(|| Expansion { is: Function::unary(|x| x / (1 + (-x).exp())), by: None });
    static GELU: LazyLock<Expansion> = LazyLock::new(|| Expansion {
        is: Function::unary(|x| 0.5 * x * (1 + (x * core::f64::consts::FRAC_1_SQRT_2).erf())),
        by: Some((gated(GELU_LOG2), GATED)),
    });
    static GELU_TANH: LazyLock<Expansion> = LazyLock::new(|| {
        // The square root of 2 / pi.
        let factor = core::f64::consts::FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2;
        let is = Function::unary(move |x| 0.5 * x * (1 + (factor * (x + 0.044715 * x * x * x)).tanh()));
        Expansion { is, by: Some((gated(GELU_TANH_LOG2), GATED)) }
    });
    match op {
        Unary::Sigmoid => Some(&SIGMOID),
        Unary::Silu => Some(&SILU),
        Unary::Gelu => Some(&GELU),
        Unary::GeluTanh => Some(&GELU_TANH),
        _ => None,
    }
}

const EXP2: &str = "\
// 2^x, one instruction: 0 where that is below the normal numbers.
CUTE_DEVICE float exp2_or_0(float x) {
  asm(\"ex2.approx.ftz.f32 %0, %0;\" : \"+f\"(x));
  return x;
}
";

const SATURATE_CAST: &str = "\
// To an integer by Rust's rules: the fraction is cut off, values out of range saturate, NaN gives 0. A device's conversion to 32 bits
// does so by itself, but for a double that is NaN.
CUTE_DEVICE int32_t saturate_cast_i32(float x) { return __float2int_rz(x); }
CUTE_DEVICE int32_t saturate_cast_i32(double x) { return x != x ? 0 : __double2int_rz(x); }
template <class Integer, class Float>
CUTE_DEVICE Integer saturate_cast(Float x) {
  constexpr int32_t lowest = cute::numeric_limits<Integer>::lowest();
  constexpr int32_t highest = cute::numeric_limits<Integer>::max();
  return Integer(cute::max(lowest, cute::min(saturate_cast_i32(x), highest)));
}
";

const ROUND_TO_ODD: &str = "\
// To the float next toward zero, its last bit set where bits are lost: a further rounding is then the only one.
CUTE_DEVICE float round_to_odd(double x) {
  float y = float(x);
  if (double(y) != x && x == x) {
    uint32_t bits;
    memcpy(&bits, &y, sizeof(bits));
    bits = (bits - uint32_t(fabs(double(y)) > fabs(x))) | 1u;
    memcpy(&y, &bits, sizeof(y));
  }
  return y;
}
";

/// The C++ functions that a text calls: written once, before what calls them.
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::expr::{Compute, Function, Helpers};
///
/// let mut helpers = Helpers::new(Compute::F32);
/// Function::unary(|x| x.relu()).check(Compute::F32).expect("relu exists").functor("Op", &mut helpers);
/// assert_eq!(
///     helpers.to_string(),
///     "// relu(x) = x, but 0 where x <= 0, so at -0 too; NaN is passed on.\n\
///      CUTE_DEVICE float relu(float x) { return x <= 0.0f ? 0.0f : x; }\n\n"
/// );
/// assert_eq!(helpers.load(DType::F16, "gA(i)"), "float(gA(i))");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helpers {
    pub(super) compute: Compute,
    used: BTreeSet<Helper>,
}

impl Helpers {
    /// None yet, for texts that compute in `compute`.
    pub fn new(compute: Compute) -> Helpers {
        Helpers { compute, used: BTreeSet::new() }
    }

    /// Whether nothing was called.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Notes that the helper is called.
    pub(super) fn call(&mut self, helper: Helper) -> &'static str {
        match helper {
            Helper::WrapAbs => self.used.insert(Helper::WrapNeg),
            Helper::Gelu | Helper::GeluTanh if self.compute == Compute::F32 => self.used.insert(Helper::Exp2),
            _ => false,
        };
        self.used.insert(helper);
        helper.name()
    }

    fn definition(&self, helper: Helper) -> String {
        let compute = self.compute.cxx();
        let zero = cxx::literal(0.0, self.compute);
        let name = helper.name();
        let wrapping = |what: &str, operator: &str| {
            format!(
                "// {what}, wrapping around.\n\
                 CUTE_DEVICE int32_t {name}(int32_t a, int32_t b) {{ return int32_t(uint32_t(a) {operator} \
                 uint32_t(b)); }}\n"
            )
        };
        let composed = |op: Unary| expansion(op).map(|known| cxx::helper(name, known, self)).unwrap_or_default();
        match helper {
            Helper::SaturateCast => SATURATE_CAST.to_owned(),
            Helper::RoundToOdd => ROUND_TO_ODD.to_owned(),
            Helper::ClampFinite => format!(
                "// To -highest .. highest, infinite values too; NaN is passed on.\n\
                 CUTE_DEVICE {compute} {name}({compute} x, {compute} highest) {{\n  \
                   return x > highest ? highest : x < -highest ? -highest : x;\n}}\n"
            ),
            Helper::WrapNeg => "// -x, wrapping around: the lowest integer is its own negative.\n\
                 CUTE_DEVICE int32_t wrap_neg(int32_t x) { return int32_t(0u - uint32_t(x)); }\n"
                .to_owned(),
            Helper::WrapAbs => "// |x|, wrapping around: the lowest integer stays.\n\
                 CUTE_DEVICE int32_t wrap_abs(int32_t x) { return x < 0 ? wrap_neg(x) : x; }\n"
                .to_owned(),
            Helper::WrapAdd => wrapping("a + b", "+"),
            Helper::WrapSub => wrapping("a - b", "-"),
            Helper::WrapMul => wrapping("a * b", "*"),
            Helper::Exp2 => EXP2.to_owned(),
            Helper::Relu => format!(
                "// relu(x) = x, but 0 where x <= 0, so at -0 too; NaN is passed on.\n\
                 CUTE_DEVICE {compute} {name}({compute} x) {{ return x <= {zero} ? {zero} : x; }}\n"
            ),
            Helper::Sigmoid => composed(Unary::Sigmoid),
            Helper::Silu => composed(Unary::Silu),
            Helper::Gelu => composed(Unary::Gelu),
            Helper::GeluTanh => composed(Unary::GeluTanh),
        }
    }
}

/// The definitions, an empty line after each.
impl fmt::Display for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.used.iter().try_for_each(|helper| writeln!(f, "{}", self.definition(*helper)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::round;

    /// The largest error of what devices may give in f32 for all f16 and bf16, divided by |x|.
    fn error_of(text: &str, exact: impl Fn(f64) -> f64) -> f64 {
        let function: Function = text.parse().expect("grammar");
        let mut evaluator = function.check(Compute::F32).expect("f32 has it").evaluator(&[]).expect("no scalars");
        let all =
            [DType::F16, DType::Bf16].map(|dtype| (0..=u64::from(u16::MAX)).map(move |bits| round::value(dtype, bits)));
        let error = |x: f64| {
            let accept = evaluator.evaluate(&[x]).expect("one input")[0];
            let (low, high) = accept.range().expect("a number");
            assert!(!accept.may_be_nan(), "{text} at {x}");
            (low - exact(x)).abs().max((high - exact(x)).abs()) / x.abs()
        };
        let numbers = all.into_iter().flatten().filter(|x| x.is_finite() && *x != 0.0);
        numbers.map(error).fold(0.0, f64::max)
    }

    #[test]
    fn gelu_without_erf_and_tanh_is_as_near_as_with_them() {
        let gelu = |x: f64| 0.5 * x * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2);
        let gelu_tanh = |x: f64| {
            let factor = core::f64::consts::FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2;
            x / (1.0 + libm::exp(-2.0 * factor * (x + 0.044715 * x * x * x)))
        };
        let most = 3e-7;
        for (text, definition, exact) in [
            ("gelu(a)", "0.5 * a * (1 + erf(a * 0.7071067811865476))", &gelu as &dyn Fn(f64) -> f64),
            ("gelu_tanh(a)", "0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)))", &gelu_tanh),
        ] {
            let (found, defined) = (error_of(text, exact), error_of(definition, exact));
            assert!(found <= most && found <= defined, "{text}: {found:e}, its definition in f32: {defined:e}");
        }
        // They are not each other.
        assert!(error_of("gelu(a)", gelu_tanh) > most);
    }

    #[test]
    fn what_is_not_finite_stays_right() {
        for text in ["gelu(a)", "gelu_tanh(a)"] {
            let function: Function = text.parse().expect("grammar");
            let checked = function.check(Compute::F32).expect("f32 has it");
            let mut evaluator = checked.evaluator(&[]).expect("no scalars");
            let mut at = |x: f64| evaluator.evaluate(&[x]).expect("one input")[0];
            assert_eq!(at(f64::INFINITY).range(), Some((f64::INFINITY, f64::INFINITY)));
            // A device may be two of the smallest numbers off.
            assert!(at(f64::NEG_INFINITY).range().is_some_and(|(low, high)| -4e-44 <= low && high <= 4e-44));
            let nan = at(f64::NAN);
            assert!(nan.may_be_nan() && nan.range().is_none(), "{text}: {nan:?}");
        }
    }
}
