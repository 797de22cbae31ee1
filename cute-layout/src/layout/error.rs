//! The error of a refused operation: the operation, its operands, the place, the found value, the requirement and the
//! reason.

use std::fmt;
use std::sync::OnceLock;

use super::composition::Refusal;

/// The class of a refusal. Where CuTe C++ has a `static_assert` for it, the class is named by CuTe's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Class {
    /// The text is not a tuple, a layout, a tiler or a swizzle.
    Parse,
    /// An argument that the operation cannot take.
    Argument,
    /// A number does not fit in 64 bits.
    Overflow,
    /// Deeper nesting, or more leaves, than this library keeps.
    Limit,
    /// An extent that is zero or negative.
    Extent,
    /// Shape and stride, or coordinate and shape, do not have the same profile.
    MismatchedRanks,
    /// `composition`: a stride of B neither divides into A's modes nor stays inside one.
    StrideDivisibility,
    /// `composition`: an extent of B is not cut evenly by A's modes.
    ShapeDivisibility,
    /// `composition`: modes of B that are right alone carry into each other under A.
    Carry,
    /// `composition`: deciding would need more values than the documented bound.
    Undecided,
    /// `complement`: two coordinates of the layout meet, or its modes interleave.
    NonInjective,
    /// `left_inverse`: the strides do not form a chain of divisors.
    LeftInverse,
    /// `left_inverse`: the layout is not injective and no quasi-inverse follows from its strides.
    QuasiInverse,
    /// `upcast`: no layout of larger elements covers the same bytes.
    Upcast,
    /// `downcast`: no mode of stride 1 or of extent 1.
    Downcast,
    /// `shape_div`: neither extent divides the other.
    ShapeDiv,
    /// `tile_to_shape`: the block does not divide the target.
    TileToShape,
    /// A by-mode tiler has more modes than the layout.
    TooManyModes,
    /// Two swizzles of different shift, or masks that no swizzle has.
    Swizzle,
    /// Strides of a kind that the operation is not defined for (basis, negative or symbolic).
    StrideKind,
}

impl Class {
    /// The name of the class; CuTe's `static_assert` text where it has one.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Parse => "Parse",
            Class::Argument => "Invalid argument",
            Class::Overflow => "Overflow",
            Class::Limit => "Limit",
            Class::Extent => "Extent must be positive",
            Class::MismatchedRanks => "Mismatched Ranks",
            Class::StrideDivisibility => "Stride Divisibility Condition",
            Class::ShapeDivisibility => "Shape Divisibility Condition",
            Class::Carry => "Carry between modes",
            Class::Undecided => "Undecided",
            Class::NonInjective => "Non-injective Layout detected in complement.",
            Class::LeftInverse => "Left inverse divisibility condition",
            Class::QuasiInverse => "Left inverse of a non-injective layout",
            Class::Upcast => "Divisibility condition",
            Class::Downcast => "Downcast requires adjacent elements",
            Class::ShapeDiv => "Divisibility Condition",
            Class::TileToShape => "tile_to_shape: block shape does not divide the target shape.",
            Class::TooManyModes => "Too many modes in tiler.",
            Class::Swizzle => "Swizzle",
            Class::StrideKind => "Unsupported stride",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refused layout operation. `Display` shows all of it; each part can be asked for alone.
///
/// ```
/// use cute_layout::layout::{Class, Layout};
/// let error = "(4,8):(1,2,3)".parse::<Layout>().unwrap_err();
/// assert_eq!(error.class(), Class::MismatchedRanks);
/// assert!(error.to_string().contains("(4,8)"));
/// ```
#[derive(Clone)]
pub struct LayoutError(Box<Inner>);

/// As `Display`: `fn main() -> Result<(), _>` and `unwrap` show a message and not a struct.
impl fmt::Debug for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Clone)]
struct Inner {
    op: &'static str,
    class: Class,
    /// A refused composition; its text is made when it is asked for, so that refusing is as cheap as accepting.
    refusal: Option<Refusal>,
    report: OnceLock<Report>,
}

/// The text of an error.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Report {
    pub(crate) operands: Vec<(&'static str, String)>,
    pub(crate) leaf: Option<String>,
    pub(crate) found: String,
    pub(crate) required: String,
    pub(crate) because: String,
    pub(crate) help: String,
    pub(crate) cute: String,
}

/// Refusals are made by operations here, and by a caller's own operations on layouts.
impl LayoutError {
    /// An error of the operation `op`, without a text yet.
    ///
    /// ```
    /// use cute_layout::layout::{Class, LayoutError};
    /// let error = LayoutError::new("stage", Class::Argument).found("3 stages").required("2 stages");
    /// assert!(error.to_string().contains("3 stages"));
    /// ```
    #[must_use]
    pub fn new(op: &'static str, class: Class) -> LayoutError {
        LayoutError(Box::new(Inner { op, class, refusal: None, report: OnceLock::new() }))
    }

    pub(crate) fn refusal(refusal: Refusal) -> LayoutError {
        let class = refusal.class();
        LayoutError(Box::new(Inner { op: "composition", class, refusal: Some(refusal), report: OnceLock::new() }))
    }

    pub(crate) fn overflow(op: &'static str, found: impl Into<String>) -> LayoutError {
        LayoutError::new(op, Class::Overflow)
            .found(found)
            .required("every size, stride and index between -2^63 and 2^63 - 1")
    }

    fn report(&self) -> &Report {
        self.0.report.get_or_init(|| self.0.refusal.as_ref().map(Refusal::report).unwrap_or_default())
    }

    /// The same error with its text changed.
    fn with(mut self, change: impl FnOnce(&mut Report)) -> LayoutError {
        self.report();
        let mut report = self.0.report.take().unwrap_or_default();
        change(&mut report);
        self.0.report = OnceLock::from(report);
        self
    }

    /// An error of the operation `op` on these operands, each with its role.
    #[must_use]
    pub fn on(op: &'static str, class: Class, operands: &[(&'static str, &dyn fmt::Display)]) -> LayoutError {
        LayoutError::new(op, class).of(operands)
    }

    /// The same error, of these operands too.
    pub(crate) fn of(self, operands: &[(&'static str, &dyn fmt::Display)]) -> LayoutError {
        self.with(|report| {
            report.operands.extend(operands.iter().map(|(name, value)| (*name, shorten(value.to_string()))))
        })
    }

    /// Names the operation that was asked for, and its operands, where an operation below it refused.
    pub(crate) fn within(mut self, op: &'static str, operands: &[(&'static str, &dyn fmt::Display)]) -> LayoutError {
        let inner = std::mem::replace(&mut self.0.op, op);
        if op != "composition"
            && let Some(refusal) = &self.0.refusal
        {
            self.0.class = refusal.class_within();
        }
        self.with(|report| {
            let given = operands.iter().map(|(name, value)| (*name, shorten(value.to_string())));
            if inner == "composition" && op != "composition" {
                let below: Vec<String> =
                    report.operands.iter().map(|(name, text)| format!("{name} = {text}")).collect();
                report.operands = given.chain([("inside", format!("{inner}, {}", below.join(", ")))]).collect();
            } else {
                report.operands = given.collect();
            }
        })
    }

    pub(crate) fn leaf(self, path: impl Into<String>) -> LayoutError {
        self.with(|report| report.leaf = Some(path.into()))
    }

    /// With the found value.
    #[must_use]
    pub fn found(self, text: impl Into<String>) -> LayoutError {
        self.with(|report| report.found = shorten(text.into()))
    }

    /// With the requirement.
    #[must_use]
    pub fn required(self, text: impl Into<String>) -> LayoutError {
        self.with(|report| report.required = shorten(text.into()))
    }

    /// With the reason for the requirement.
    #[must_use]
    pub fn because(self, text: impl Into<String>) -> LayoutError {
        self.with(|report| report.because = shorten(text.into()))
    }

    /// With what to do about it.
    #[must_use]
    pub fn help(self, text: impl Into<String>) -> LayoutError {
        self.with(|report| report.help = shorten(text.into()))
    }

    pub(crate) fn cute(self, text: impl Into<String>) -> LayoutError {
        self.with(|report| report.cute = shorten(text.into()))
    }

    /// The operation that refused, by its CuTe name.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.0.op
    }

    /// The class of the refusal.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// The operands, each with its role and its text.
    pub fn operands(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.report().operands.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// The leaf that failed, as a path (`B[0][1]`), where there is one.
    #[must_use]
    pub fn leaf_path(&self) -> Option<&str> {
        self.report().leaf.as_deref()
    }

    /// The found value.
    #[must_use]
    pub fn what_was_found(&self) -> &str {
        &self.report().found
    }

    /// The requirement.
    #[must_use]
    pub fn what_is_required(&self) -> &str {
        &self.report().required
    }

    /// Why it is required.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.report().because
    }

    /// What to do about it; the nearest legal alternatives.
    #[must_use]
    pub fn advice(&self) -> &str {
        &self.report().help
    }

    /// CuTe C++'s result for the same input, if it is known.
    #[must_use]
    pub fn what_cute_does(&self) -> &str {
        &self.report().cute
    }
}

/// Keeps a hostile operand from making a message of megabytes.
pub(crate) fn shorten(text: String) -> String {
    const MOST: usize = 400;
    if text.len() <= MOST || text.chars().count() <= MOST {
        return text;
    }
    let mut short: String = text.chars().take(MOST).collect();
    short.push_str("...");
    short
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report();
        // Some of CuTe's texts name the operation themselves.
        match self.class().as_str() {
            _ if self.class() == Class::Parse => f.write_str("Parse: the text cannot be read")?,
            class if class.to_lowercase().starts_with(&self.0.op.to_lowercase()) => f.write_str(class)?,
            class => write!(f, "{}: {class}", self.0.op)?,
        }
        for (name, text) in &report.operands {
            write!(f, "\n  {:<10}{text}", format!("{name}:"))?;
        }
        let parts = [
            ("leaf:", report.leaf.as_deref().unwrap_or("")),
            ("found:", report.found.as_str()),
            ("required:", report.required.as_str()),
            ("because:", report.because.as_str()),
            ("help:", report.help.as_str()),
            ("CuTe C++:", report.cute.as_str()),
        ];
        for (name, text) in parts.iter().filter(|(_, text)| !text.is_empty()) {
            write!(f, "\n  {name:<10}{text}")?;
        }
        Ok(())
    }
}

impl PartialEq for LayoutError {
    fn eq(&self, other: &LayoutError) -> bool {
        self.0.op == other.0.op && self.class() == other.class() && self.report() == other.report()
    }
}

impl Eq for LayoutError {}

impl std::error::Error for LayoutError {}

/// `a * b`, or an error that names both.
pub(crate) fn mul(a: i64, b: i64) -> Result<i64, LayoutError> {
    a.checked_mul(b).ok_or_else(|| LayoutError::overflow("multiply", format!("{a} * {b}")))
}

/// `a + b`, or an error that names both.
pub(crate) fn add(a: i64, b: i64) -> Result<i64, LayoutError> {
    a.checked_add(b).ok_or_else(|| LayoutError::overflow("add", format!("{a} + {b}")))
}

/// `|a|`, or an error where that is 2^63.
pub(crate) fn abs(a: i64) -> Result<i64, LayoutError> {
    a.checked_abs().ok_or_else(|| LayoutError::overflow("abs", format!("|{a}|")))
}
