//! Comparing a kernel's output with its reference: every element, bit for bit.

use core::fmt;

use crate::dtype::DType;
use crate::verify::guards::GuardReport;
use crate::verify::reference::{ShapeMismatch, same_shape};
use crate::verify::scalar::{Scalar, carried, value, with_scalar};
use crate::verify::tensor::Tensor;

/// One wrong element.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Mismatch {
    /// Its coordinate.
    pub coordinate: Vec<u64>,
    /// Whether the kernel never wrote it.
    pub unwritten: bool,
    /// The bits found.
    pub found: u64,
    /// The bits of the reference.
    pub expected: u64,
    /// The inputs at the same coordinate: name and bits.
    pub inputs: Vec<(String, u64)>,
    /// The element type.
    #[serde(serialize_with = "dtype_name")]
    pub dtype: DType,
}

fn dtype_name<S: serde::Serializer>(dtype: &DType, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(dtype.name())
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |bits: u64| format!("{:?} ({bits:#x})", value(self.dtype, bits));
        let coordinate: Vec<String> = self.coordinate.iter().map(ToString::to_string).collect();
        write!(f, "({}): found ", coordinate.join(","))?;
        match self.unwritten {
            true => write!(f, "an element that was never written")?,
            false => write!(f, "{}", show(self.found))?,
        }
        write!(f, ", required {}", show(self.expected))?;
        for (name, bits) in &self.inputs {
            write!(f, ", {name} = {}", show(*bits))?;
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
    const KEPT: usize = 8;

    /// Whether every element is right and nothing else was written.
    pub fn is_right(&self) -> bool {
        self.mismatches == 0 && self.guards.hold()
    }

    fn compare<T: Scalar>(&mut self, found: &Tensor, expected: &Tensor, inputs: &[(&str, &Tensor)]) {
        let (Some(f), Some(e)) = (found.span::<T>(), expected.span::<T>()) else { return };
        let (mut from, mut to) = (found.offsets(), expected.offsets());
        loop {
            let here = from.clone();
            let (Some(found), Some(expected)) = (from.next().map(|at| f[at]), to.next().map(|at| e[at])) else {
                return;
            };
            let both_nan = found.is_nan() && expected.is_nan();
            let marked = found.bits() == T::UNWRITTEN;
            if (!marked || T::QUIET == 0) && (both_nan || found.bits() == expected.bits()) {
                continue;
            }
            let coordinate = here.coordinate();
            let bits: Vec<(String, u64)> =
                inputs.iter().filter_map(|(n, m)| Some(((*n).to_owned(), m.bits_at(&coordinate)?))).collect();
            // An input may hold the mark's payload by chance, and additions pass payloads on.
            let unwritten = marked && !carried(T::DTYPE, found.bits(), bits.iter().map(|(_, b)| *b));
            if both_nan && !unwritten {
                continue;
            }
            self.mismatches += 1;
            self.unwritten += u64::from(unwritten);
            if self.first.len() < Self::KEPT {
                let (found, expected, dtype) = (found.bits(), expected.bits(), T::DTYPE);
                self.first.push(Mismatch { coordinate, unwritten, found, expected, inputs: bits, dtype });
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_right() {
            return write!(f, "all {} elements right, nothing written outside", self.elements);
        }
        write!(f, "{} of {} elements wrong", self.mismatches, self.elements)?;
        if self.unwritten > 0 {
            write!(f, ", {} of them never written", self.unwritten)?;
        }
        write!(f, "; {} elements written outside", self.guards.violations)?;
        for m in &self.first {
            write!(f, "\n  {m}")?;
        }
        for g in &self.guards.first {
            write!(f, "\n  {g}")?;
        }
        Ok(())
    }
}

/// Compares every element with the reference, and checks the guards of `found`.
///
/// Equal means equal bits, so that zeros of different sign differ; any NaN equals any other, since IEEE 754 leaves the
/// payload open. An element that still holds the mark of [`Tensor::fill_unwritten`] is wrong even where a NaN is right.
/// `inputs` are shown next to a mismatch where they have an element of the same coordinate.
///
/// # Errors
/// Where the two matrices differ in type or shape.
pub fn compare(found: &Tensor, expected: &Tensor, inputs: &[(&str, &Tensor)]) -> Result<Verdict, ShapeMismatch> {
    same_shape(found, expected)?;
    let mut verdict =
        Verdict { elements: found.size(), mismatches: 0, unwritten: 0, first: Vec::new(), guards: found.guards() };
    with_scalar!(found.dtype(), T => verdict.compare::<T>(found, expected, inputs));
    Ok(verdict)
}
