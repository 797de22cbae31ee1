//! The verdict on a kernel's output.

use core::fmt;

use crate::dtype::DType;
use crate::expr::Accept;
use crate::plan::{InputElement, dtype_name};
use crate::tensor::{GuardReport, Scalar, value, with_scalar};

/// The accepted values of one element.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Expected {
    /// Exactly these bits.
    Bits(u64),
    /// Any value from one to another, in the type that the function is computed in, rounded to the element type.
    Range {
        /// The lowest and the highest value, if any number is right.
        range: Option<(f64, f64)>,
        /// Whether NaN is right.
        nan: bool,
    },
}

/// One wrong element.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Mismatch {
    /// Its coordinate.
    pub coordinate: Vec<u64>,
    /// Whether the kernel never wrote it.
    pub unwritten: bool,
    /// The bits found.
    pub found: u64,
    /// The accepted values there.
    pub expected: Expected,
    /// The inputs at the same coordinate.
    pub inputs: Vec<InputElement>,
    /// The element type.
    #[serde(serialize_with = "dtype_name")]
    pub dtype: DType,
}

impl Expected {
    /// What is accepted, in an element of that type.
    pub(crate) fn of(accept: &Accept, dtype: DType) -> Self {
        match accept.exact(dtype) {
            Some(bits) => Expected::Bits(bits),
            None => Expected::Range { range: accept.range(), nan: accept.may_be_nan() },
        }
    }
}

/// Bits that an element does not have if it was written rightly: the mark of its type, where that is none of what is accepted.
pub(crate) fn unwritten(dtype: DType, accept: &Accept) -> u64 {
    with_scalar!(dtype, T => {
        let all = [T::UNWRITTEN, !T::UNWRITTEN, 0].map(|bits| T::of_bits(bits).bits());
        all.into_iter().find(|bits| !accept.accepts(dtype, *bits)).unwrap_or(T::UNWRITTEN)
    })
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |dtype: DType, bits: u64| format!("{:?} ({bits:#x})", value(dtype, bits));
        let coordinate: Vec<String> = self.coordinate.iter().map(ToString::to_string).collect();
        write!(f, "({}): found ", coordinate.join(","))?;
        match self.unwritten {
            true => write!(f, "an element that was never written")?,
            false => write!(f, "{}", show(self.dtype, self.found))?,
        }
        match self.expected {
            Expected::Bits(bits) => write!(f, ", required {}", show(self.dtype, bits))?,
            Expected::Range { range: None, .. } => write!(f, ", required NaN")?,
            Expected::Range { range: Some((low, high)), nan } => {
                write!(f, ", required {low:?} to {high:?}{}", if nan { " or NaN" } else { "" })?;
            }
        }
        for InputElement { name, dtype, bits } in &self.inputs {
            write!(f, ", {name} = {}", show(*dtype, *bits))?;
        }
        Ok(())
    }
}

/// The outcome of one comparison.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Verdict {
    /// Elements compared.
    pub elements: u64,
    /// Elements that differ from the reference, the unwritten ones among them.
    pub mismatches: u64,
    /// Elements that the kernel never wrote.
    pub unwritten: u64,
    /// The first mismatches, in row-major order.
    pub first: Vec<Mismatch>,
    /// The memory around the output and between its elements.
    pub guards: GuardReport,
}

impl Verdict {
    /// How many mismatches are kept.
    pub(crate) const KEPT: usize = 8;

    /// Whether every element is right and nothing else was written.
    pub fn is_right(&self) -> bool {
        self.mismatches == 0 && self.guards.hold()
    }

    pub(crate) fn new(elements: u64, guards: GuardReport) -> Self {
        Self { elements, mismatches: 0, unwritten: 0, first: Vec::new(), guards }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_right() {
            let all = match self.elements {
                1 => "the 1 element is".to_owned(),
                n => format!("all {n} elements"),
            };
            return write!(f, "{all} right, nothing written outside");
        }
        write!(f, "{} of {} elements wrong", self.mismatches, self.elements)?;
        if self.unwritten > 0 {
            write!(f, ", {} of them never written", self.unwritten)?;
        }
        let outside = self.guards.violations;
        write!(f, "; {outside} element{} written outside", if outside == 1 { "" } else { "s" })?;
        for m in &self.first {
            write!(f, "\n  {m}")?;
        }
        for g in &self.guards.first {
            write!(f, "\n  {g}")?;
        }
        Ok(())
    }
}
