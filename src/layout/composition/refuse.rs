//! What a refused composition says: the leaf, the failing pair, the first index where the values part, the nearest legal
//! extents, and what CuTe C++ does with the same operands. All of it is worked out only when the error is looked at.

use super::super::coalesce::coalesced_unbounded;
use super::super::coord::idx2crd;
use super::super::core::{Flat, Layout};
use super::super::error::{Class, LayoutError, Report};
use super::super::int_tuple::IntTuple;
use super::exact::{MOST_EVENTS, MOST_VALUES, Reason};
use super::verdict::{Cute, cute_composition, cute_verdict};

/// The most indices that are tried to find the first one where CuTe's answer is wrong.
const MOST_TRIED: i64 = 4096;

/// A refused composition, with what is needed to explain it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    a: Layout,
    b: Layout,
    reason: Reason,
}

/// The error for a composition that no layout represents.
#[cold]
pub(super) fn refuse(a: &Layout, b: &Layout, reason: Reason) -> LayoutError {
    if reason == Reason::Overflow {
        return LayoutError::overflow("composition", format!("a stride or a value of {a} o {b}"))
            .operand("A", a)
            .operand("B", b);
    }
    LayoutError::refusal(Refusal { a: a.clone(), b: b.clone(), reason })
}

impl Refusal {
    /// The class: CuTe's own where CuTe refuses as well.
    pub(crate) fn class(&self) -> Class {
        match (&self.reason, cute_verdict(&self.a, &self.b)) {
            (Reason::Undecided, _) => Class::Undecided,
            (_, Some(Cute::StrideDivisibility { .. })) => Class::StrideDivisibility,
            (_, Some(Cute::ShapeDivisibility { .. })) => Class::ShapeDivisibility,
            (Reason::Leaf { .. }, _) => Class::ShapeDivisibility,
            (Reason::Slope { .. }, _) => Class::StrideKind,
            _ => Class::Carry,
        }
    }

    /// The class within a division or a product. CuTe's compiler reports a failed assertion for each leaf of B, and the
    /// stride's counts before the shape's.
    pub(crate) fn class_within(&self) -> Class {
        let leaves = self.b.pairs().map(|(s, d)| Layout::from_parts(IntTuple::leaf(s), IntTuple::leaf(d)));
        let stride = |leaf: Layout| matches!(cute_verdict(&self.a, &leaf), Some(Cute::StrideDivisibility { .. }));
        if leaves.into_iter().any(stride) { Class::StrideDivisibility } else { self.class() }
    }

    /// The text of the error.
    pub(crate) fn report(&self) -> Report {
        let lhs = coalesced_unbounded(&self.a).unwrap_or_default();
        let coalesced = Layout::from_flat(&lhs).map(|l| l.to_string()).unwrap_or_default();
        let mut report = Report::default();
        report.operands.push(("A", self.a.to_string()));
        report.operands.push(("B", self.b.to_string()));
        report.operands.push(("A is", format!("{coalesced}, coalesced, the last mode without bound")));
        let weights = weights(&lhs);
        let cute = cute_composition(&lhs, &self.b);
        match &self.reason {
            Reason::Leaf { leaf, run, rest, stride } => self.leaf_report(&mut report, *leaf, *run, *rest, *stride),
            Reason::Carry { coord } => self.carry_report(&mut report, coord, &weights),
            Reason::Slope { leaf } => {
                report.leaf = Some(self.path(*leaf));
                report.found = "a step whose value is a sum of basis elements".to_owned();
                report.required = "one scaled basis element".to_owned();
            }
            _ => {
                report.found = "carries that cancel each other for too long to follow".to_owned();
                report.required = format!("at most {MOST_EVENTS} carries in a leaf, {MOST_VALUES} coordinates");
            }
        }
        if let Some((index, ours, theirs)) = self.first_difference(&cute) {
            report.found.push_str(&format!("; first at index {index}: A(B({index})) = {ours}, not {theirs}"));
        }
        report.cute = match cute {
            Some(Cute::StrideDivisibility { extent, stride }) => format!(
                "refuses: Stride Divisibility Condition ({stride} mod {extent} = {})",
                stride.checked_rem(extent).unwrap_or(0)
            ),
            Some(Cute::ShapeDivisibility { extent, rest }) => format!(
                "refuses: Shape Divisibility Condition ({rest} mod {extent} = {})",
                rest.checked_rem(extent).unwrap_or(0)
            ),
            Some(Cute::Accepts(layout)) => format!("accepts, and is wrong: {layout}"),
            None => String::new(),
        };
        report
    }

    fn leaf_report(&self, report: &mut Report, leaf: usize, run: i64, rest: i64, stride: i64) {
        report.leaf = Some(self.path(leaf));
        report.found = format!(
            "steps of {stride} through A are even for {run} of {rest} steps; {rest} mod {run} = {}",
            rest % run
        );
        report.required = "an even stretch that divides the extent, so that the leaf can be cut into modes".to_owned();
        report.because = format!("A({stride}*j) = j*A({stride}) holds for j < {run} and fails at j = {run}");
        let extent = self.b.shape().raw().get(leaf).map_or(rest, |s| s.value);
        let near: Vec<String> = [rest - rest % run, rest - rest % run + run]
            .iter()
            .filter(|n| **n > 0 && rest != 0 && extent == rest)
            .map(i64::to_string)
            .collect();
        let first =
            if near.is_empty() { format!("an extent of {run}") } else { format!("an extent of {}", near.join(" or ")) };
        report.help = format!(
            "{first} for this leaf may be representable; or a by-mode tiler, one layout for each mode of A; or \
             a ComposedLayout, which keeps A and B apart"
        );
    }

    fn carry_report(&self, report: &mut Report, coord: &[i64], weights: &[i64]) {
        let text: Vec<String> = coord.iter().map(i64::to_string).collect();
        let index: Option<i64> = coord
            .iter()
            .zip(self.b.stride().raw())
            .try_fold(0i64, |sum, (c, d)| sum.checked_add(c.checked_mul(d.value)?));
        let value = index.and_then(|x| self.a.at(x).ok());
        let alone: Option<i64> = coord
            .iter()
            .zip(self.b.stride().raw())
            .try_fold(0i64, |sum, (c, d)| sum.checked_add(self.a.at(c.checked_mul(d.value)?).ok()?));
        report.found = format!("at coordinate ({}) of B's leaves the leaves carry into each other", text.join(","));
        if let (Some(index), Some(value), Some(alone)) = (index, value, alone) {
            report.found.push_str(&format!(": A({index}) = {value}, the leaves alone add up to {alone}"));
        }
        report.required = "A(B(c)) equal to the sum of what each leaf of B contributes".to_owned();
        report.because =
            format!("A changes its slope at multiples of {weights:?}, and the sum of the leaves crosses one");
        report.help =
            "a by-mode tiler, one layout for each mode of A; or a ComposedLayout, which keeps A and B apart".to_owned();
    }

    /// The first index where what CuTe would answer is not `A(B(i))`.
    fn first_difference(&self, cute: &Option<Cute>) -> Option<(i64, i64, i64)> {
        let Some(Cute::Accepts(answer)) = cute else {
            return None;
        };
        (0..self.b.size().min(MOST_TRIED)).find_map(|i| {
            let coord = idx2crd(&IntTuple::int(i), self.b.shape()).ok()?;
            let ours = self.a.at(super::super::coord::crd2idx_int(&coord, &self.b).ok()?).ok()?;
            let theirs = answer.at(i).ok()?;
            (ours != theirs).then_some((i, ours, theirs))
        })
    }

    /// The path of a leaf of B with its text: `B[1][0] = 4:3`.
    fn path(&self, leaf: usize) -> String {
        let pair = self.b.pairs().nth(leaf);
        let text = pair.map(|(s, d)| format!("{}:{}", IntTuple::leaf(s), IntTuple::leaf(d))).unwrap_or_default();
        format!("B{} = {text}", leaf_path(self.b.shape(), leaf))
    }
}

/// The mode indices that lead to a leaf, as `[1][0]`.
pub(crate) fn leaf_path(tuple: &IntTuple, leaf: usize) -> String {
    let mut path: Vec<usize> = Vec::new();
    for (i, here) in tuple.raw().iter().enumerate() {
        path.extend(std::iter::repeat_n(0, usize::from(here.open())));
        if i == leaf {
            break;
        }
        path.truncate(path.len().saturating_sub(usize::from(here.close())));
        if let Some(last) = path.last_mut() {
            *last += 1;
        }
    }
    path.iter().map(|index| format!("[{index}]")).collect()
}

/// The products of A's extents before each mode but the first.
fn weights(lhs: &Flat) -> Vec<i64> {
    let mut weight = 1i64;
    lhs.iter()
        .take(lhs.len().saturating_sub(1))
        .map(|(s, _)| {
            weight = weight.saturating_mul(s.value);
            weight
        })
        .collect()
}
