//! The type that a function is evaluated in, and whether every operation exists in it.

use core::fmt;
use core::str::FromStr;

use super::domain::saturation;
use super::error::{ExprError, ExprErrorKind};
use super::function::Function;
use super::names;
use super::op::{Binary, Node, Unary};
use super::print::number;
use super::round::{Values, values};
use crate::dtype::DType;

/// The type that a function is evaluated in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compute {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// 32-bit integers that wrap.
    I32,
}

impl Compute {
    /// Every type.
    pub const ALL: &'static [Compute] = &[Compute::F32, Compute::F64, Compute::I32];

    /// The short name used in recipes and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Compute::F32 => "f32",
            Compute::F64 => "f64",
            Compute::I32 => "i32",
        }
    }

    /// The type of its values.
    pub fn dtype(self) -> DType {
        match self {
            Compute::F32 => DType::F32,
            Compute::F64 => DType::F64,
            Compute::I32 => DType::I32,
        }
    }

    /// The C++ type.
    pub fn cxx(self) -> &'static str {
        match self {
            Compute::F32 => "float",
            Compute::F64 => "double",
            Compute::I32 => "int32_t",
        }
    }
}

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::settings::json_as_text!(Compute);

impl FromStr for Compute {
    type Err = ExprError;

    fn from_str(text: &str) -> Result<Compute, ExprError> {
        Compute::ALL.iter().copied().find(|compute| compute.name() == text).ok_or_else(|| {
            let found = format!("the compute type `{text}`");
            ExprError::new(
                ExprErrorKind::Compute,
                found,
                "f32, f64 or i32",
                "devices compute in these",
                "narrower types are stored, and computed in f32",
            )
        })
    }
}

/// A function whose operations and constants all exist in the type that it is evaluated in.
///
/// ```
/// use cutemplate::expr::{Compute, Function};
///
/// let checked = Function::unary(|x| x * 2).check(Compute::I32).expect("integers are multiplied");
/// assert_eq!((checked.compute(), checked.function().inputs()), (Compute::I32, 1));
///
/// let errors = Function::unary(|x| (x * 0.5).exp()).check(Compute::I32).unwrap_err();
/// assert_eq!(errors.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checked {
    function: Function,
    compute: Compute,
}

impl Checked {
    pub(super) fn new(function: Function, compute: Compute) -> Self {
        Self { function, compute }
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The type that it is evaluated in.
    pub fn compute(&self) -> Compute {
        self.compute
    }

    /// The function without last conversions that storing its outputs as these types does again.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::expr::{Compute, Function};
    ///
    /// let f: Function = "(saturate(e4m3, a * 2), cast(f16, a), saturate(f16, a))".parse()?;
    /// let stored = f.check(Compute::F32).expect("f32 has it").stored_as(&[Some(DType::E4m3), Some(DType::F16), Some(DType::F16)]);
    /// assert_eq!(stored.function().to_string(), "a * 2, a, saturate(f16, a)");
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    #[must_use]
    pub fn stored_as(&self, dtypes: &[Option<DType>]) -> Self {
        let function = self.function.with_outputs(|output, node| match node {
            Node::Cast(to, [x]) if dtypes.get(output) == Some(&Some(to)) => Some(x),
            Node::Saturate(to, [x]) if dtypes.get(output) == Some(&Some(to)) => {
                saturation(to, self.compute).is_none().then_some(x)
            }
            _ => None,
        });
        Self { function, ..*self }
    }
}

impl Function {
    /// The function as one that is evaluated in `compute`.
    ///
    /// # Errors
    /// Every operation and constant that does not exist in that type, and what a row would be needed for: that is in
    /// [`Passes`](super::rows::Passes).
    pub fn check(&self, compute: Compute) -> Result<Checked, Vec<ExprError>> {
        let of_rows = self.nodes().iter().filter_map(of_rows);
        let errors: Vec<ExprError> = of_rows.chain(self.refused_operations(compute)).collect();
        if errors.is_empty() { Ok(Checked { function: self.clone(), compute }) } else { Err(errors) }
    }

    /// Why operations and constants do not exist in that type.
    pub(super) fn refused_operations(&self, compute: Compute) -> impl Iterator<Item = ExprError> {
        self.nodes().iter().filter_map(move |node| refusal(node, compute))
    }
}

/// That a function of elements by themselves knows nothing of their row.
fn of_rows(node: &Node) -> Option<ExprError> {
    let found = match node {
        Node::Reduce(reduction, along, _) => format!("the reduction `{}{along}` along a row", reduction.name()),
        Node::Column => "`col()`, an element's place in its row".to_owned(),
        Node::Width(along) => format!("`width{along}()`, the extent of a row"),
        _ => return None,
    };
    Some(ExprError::new(
        ExprErrorKind::Compute,
        found,
        "operations on single elements",
        "this kernel computes each element by itself",
        "the family `rows` takes functions of whole rows",
    ))
}

fn refusal(node: &Node, compute: Compute) -> Option<ExprError> {
    match (node, compute) {
        (Node::Constant(constant), _) => constant_refusal(constant.value(), compute),
        (_, Compute::F32 | Compute::F64) => None,
        (Node::Binary(Binary::Div, _), _) => {
            Some(float_only("`/`", "uses disagree on quotients of integers by zero and of negative values"))
        }
        (Node::Binary(op @ Binary::Pow, _), _) => Some(not_integer(op.text())),
        (Node::Unary(op, _), _) if !matches!(op, Unary::Neg | Unary::Abs | Unary::Relu) => Some(not_integer(op.text())),
        (Node::Fma(_), _) => Some(ExprError::new(
            ExprErrorKind::Compute,
            "`fma` in i32",
            "`a * b + c`",
            "`fma` stands for one rounding instead of two, and integers are not rounded",
            "write `a * b + c`, or compute in f32",
        )),
        (Node::Cast(dtype, _) | Node::Saturate(dtype, _), _)
            if matches!(values(*dtype), Values::F64 | Values::Float(_)) =>
        {
            Some(ExprError::new(
                ExprErrorKind::Compute,
                format!("a conversion to {dtype} in i32"),
                "an integer type, or bool",
                "the value would be rounded as a float and be an integer again",
                "compute in f32",
            ))
        }
        _ => None,
    }
}

fn constant_refusal(value: f64, compute: Compute) -> Option<ExprError> {
    let (required, because, help) = match compute {
        Compute::I32 if f64::from(value as i32) != value => (
            "an integer from -2147483648 to 2147483647",
            "i32 holds these",
            "compute in f32 or f64, or change the constant",
        ),
        Compute::F32 if value.is_finite() && !(value as f32).is_finite() => (
            "a number up to 3.4028235e38, or inf",
            "f32 would make it infinite",
            "compute in f64, or change the constant",
        ),
        _ => return None,
    };
    let found = format!("the constant {} in {compute}", number(value));
    Some(ExprError::new(ExprErrorKind::Compute, found, required, because, help))
}

fn not_integer(name: &str) -> ExprError {
    debug_assert!(names::functions().any(|known| known == name), "{name} is a function");
    float_only(&format!("`{name}`"), "its values are not integers")
}

fn float_only(name: &str, because: &str) -> ExprError {
    let found = format!("{name} in i32");
    ExprError::new(ExprErrorKind::Compute, found, "an operation of integers", because, "compute in f32 or f64")
}
