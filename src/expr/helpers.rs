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
            Helper::Relu => Unary::Relu.text(),
            Helper::Sigmoid => Unary::Sigmoid.text(),
            Helper::Silu => Unary::Silu.text(),
            Helper::Gelu => Unary::Gelu.text(),
            Helper::GeluTanh => Unary::GeluTanh.text(),
        }
    }
}

/// What a composed operation does, in operations that devices have: the one source of its C++ and of its evaluation.
pub(super) fn expansion(op: Unary) -> Option<&'static Function> {
    static SIGMOID: LazyLock<Function> = LazyLock::new(|| Function::unary(|x| 1 / (1 + (-x).exp())));
    static SILU: LazyLock<Function> = LazyLock::new(|| Function::unary(|x| x / (1 + (-x).exp())));
    static GELU: LazyLock<Function> =
        LazyLock::new(|| Function::unary(|x| 0.5 * x * (1 + (x * core::f64::consts::FRAC_1_SQRT_2).erf())));
    static GELU_TANH: LazyLock<Function> = LazyLock::new(|| {
        // The square root of 2 / pi.
        let factor = core::f64::consts::FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2;
        Function::unary(move |x| 0.5 * x * (1 + (factor * (x + 0.044715 * x * x * x)).tanh()))
    });
    match op {
        Unary::Sigmoid => Some(&SIGMOID),
        Unary::Silu => Some(&SILU),
        Unary::Gelu => Some(&GELU),
        Unary::GeluTanh => Some(&GELU_TANH),
        _ => None,
    }
}

const SATURATE_CAST: &str = "\
// To an integer by Rust's rules: the fraction is cut off, what is out of range saturates, NaN gives 0.
template <class Integer, class Float>
CUTE_DEVICE Integer saturate_cast(Float x) {
  constexpr Integer lowest = cute::numeric_limits<Integer>::lowest();
  constexpr Integer highest = cute::numeric_limits<Integer>::max();
  if (x != x) { return 0; }
  return x <= Float(lowest) ? lowest : x >= Float(highest) ? highest : Integer(x);
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
///      CUTE_DEVICE float relu(float x) { return x <= 0.0f ? 0.0f : x; }\n"
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
        if helper == Helper::WrapAbs {
            self.used.insert(Helper::WrapNeg);
        }
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
        let composed = |op: Unary| expansion(op).map(|f| cxx::helper(name, f, self)).unwrap_or_default();
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

/// The definitions, an empty line between two.
impl fmt::Display for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, helper) in self.used.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.definition(*helper))?;
        }
        Ok(())
    }
}
