//! The memory around the elements of a tensor.

use core::fmt;
use core::ops::Range;

use super::parallel::{self, GRAIN};
use super::scalar::Scalar;
use super::walk::InMemory;

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

/// The state of a tensor's guards.
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

    /// Adds later findings.
    fn append(&mut self, other: GuardReport) {
        self.violations += other.violations;
        self.first.extend(other.first.into_iter().take(Self::KEPT - self.first.len()));
    }

    /// Whether nothing was written outside the tensor.
    pub fn hold(&self) -> bool {
        self.violations == 0
    }
}

/// Checks everything in `all` that is not an element: outside `span`, and between `elements` inside it.
pub(crate) fn check<T: Scalar>(all: &[T], span: Range<usize>, elements: &InMemory) -> GuardReport {
    let look = |report: &mut GuardReport, at: usize, place: Place| {
        let found = all[at].bits();
        if found != T::CANARY {
            report.push(GuardViolation { place, found, dtype: T::DTYPE.name() });
        }
    };
    let mut report = GuardReport::default();
    for at in 0..span.start {
        look(&mut report, at, Place::Before((span.start - at) as u64));
    }
    // Each gap belongs to the element before it, and the last element ends the span.
    if elements.left() < span.len() as u64 {
        let found = parallel::ranges(elements.left(), GRAIN, Vec::new, |found: &mut Vec<_>, part| {
            let mut report = GuardReport::default();
            let mut offsets = elements.clone().starting_at(part.start).map(|(offset, _)| offset);
            let mut end = offsets.next().map_or(span.len(), |offset| offset + 1);
            for _ in part.clone() {
                let next = offsets.next().unwrap_or(span.len());
                for at in end..next {
                    look(&mut report, span.start + at, Place::Gap(at as u64));
                }
                end = next + 1;
            }
            if !report.hold() {
                found.push((part.start, report));
            }
        });
        let mut found: Vec<(u64, GuardReport)> = found.into_iter().flatten().collect();
        found.sort_unstable_by_key(|(start, _)| *start);
        found.into_iter().for_each(|(_, part)| report.append(part));
    }
    for at in span.end..all.len() {
        look(&mut report, at, Place::After((at - span.end) as u64 + 1));
    }
    report
}
