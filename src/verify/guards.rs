//! The memory around the elements of a tensor.

use core::fmt;
use core::ops::Range;

use crate::verify::scalar::Scalar;
use crate::verify::walk::Walk;

/// Where a guard lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// So many elements before the first.
    Before(u64),
    /// So many elements after the first, in a gap between two elements of the tensor.
    Gap(u64),
    /// So many elements past the last one.
    After(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Before(n) => write!(f, "{n} before the first element"),
            Place::Gap(n) => write!(f, "{n} after the first element, in a gap between elements"),
            Place::After(n) => write!(f, "{n} past the last element"),
        }
    }
}

/// A guard that no longer holds its pattern: something was written there.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GuardViolation {
    /// Where.
    pub place: Place,
    /// The bits found.
    pub found: u64,
    /// The element type.
    pub dtype: &'static str,
}

impl fmt::Display for GuardViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "written at {}: bits {:#x}", self.place, self.found)
    }
}

/// What the guards of a tensor say.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GuardReport {
    /// How many elements outside the tensor were written.
    pub violations: u64,
    /// The first of them, in address order.
    pub first: Vec<GuardViolation>,
}

impl GuardReport {
    /// How many violations are kept.
    const KEPT: usize = 8;

    fn push(&mut self, violation: GuardViolation) {
        self.violations += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(violation);
        }
    }

    /// Whether nothing was written outside the tensor.
    pub fn hold(&self) -> bool {
        self.violations == 0
    }
}

/// Looks at everything in `all` that is no element: outside `span`, and in it where `offsets` do not lead.
pub(crate) fn check<T: Scalar>(all: &[T], span: Range<usize>, offsets: Walk) -> GuardReport {
    let mut report = GuardReport::default();
    let mut look = |at: usize, place: Place| {
        let found = all[at].bits();
        if found != T::CANARY {
            report.push(GuardViolation { place, found, dtype: T::DTYPE.name() });
        }
    };
    for at in 0..span.start {
        look(at, Place::Before((span.start - at) as u64));
    }
    for at in gaps(span.len(), offsets) {
        look(span.start + at, Place::Gap(at as u64));
    }
    for at in span.end..all.len() {
        look(at, Place::After((at - span.end) as u64 + 1));
    }
    report
}

/// The offsets below `span` that no element has, ascending.
fn gaps(span: usize, offsets: Walk) -> impl Iterator<Item = usize> {
    let mut element = vec![0_u64; span.div_ceil(64)];
    for at in offsets {
        element[at / 64] |= 1 << (at % 64);
    }
    element.into_iter().enumerate().flat_map(move |(word, bits)| {
        let mut free = if 64 * (word + 1) <= span { !bits } else { !bits & ((1 << (span % 64)) - 1) };
        core::iter::from_fn(move || {
            let bit = free.trailing_zeros();
            free = (free != 0).then(|| free & (free - 1))?;
            Some(64 * word + bit as usize)
        })
    })
}
