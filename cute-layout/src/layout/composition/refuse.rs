//! What a refused composition says: the leaf, the failing pair, the first index where the values part, the nearest legal
//! extents, and what CuTe C++ does with the same operands. All of it is worked out only when the error is looked at.

use super::super::coalesce::coalesced_unbounded;
use super::super::coord::{crd2idx, idx2crd};
use super::super::core::{Flat, Layout};
use super::super::error::{Class, LayoutError, Report, shorten};
use super::super::int_tuple::IntTuple;
use super::super::leaf::Leaf;
use super::exact::{MOST_EVENTS, MOST_VALUES, Reason};
use super::verdict::{Cute, cute_verdict};

/// The most indices that are tried to find the first one where values part.
const MOST_TRIED: i64 = 4096;

/// The distance from the input at which alternatives are looked for.
const NEAR: i64 = 8;

/// A refused composition, with the data to explain it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    a: Layout,
    b: Layout,
    reason: Reason,
}

/// The error for a composition that no layout represents.
pub(super) fn refuse(a: &Layout, b: &Layout, reason: Reason) -> LayoutError {
    if reason == Reason::Overflow {
        return LayoutError::overflow("composition", format!("a stride or a value of {a} o {b}"))
            .of(&[("A", a), ("B", b)]);
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
            // A leaf that cannot be cut although its stretches divide it: its stride fits no mode of A.
            (Reason::Uneven { .. }, _) => Class::StrideDivisibility,
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
        match &self.reason {
            Reason::Leaf { leaf, run, rest, stride } => self.leaf_report(&mut report, *leaf, *run, *rest, *stride),
            Reason::Uneven { leaf, pieces } => self.uneven_report(&mut report, *leaf, pieces, &weights),
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
        report.cute = self.cute_report(cute_verdict(&self.a, &self.b));
        report.found = shorten(report.found);
        report
    }

    fn leaf_report(&self, report: &mut Report, leaf: usize, run: i64, rest: i64, stride: i64) {
        report.leaf = Some(self.path(leaf));
        report.found = format!(
            "steps of {stride} through A are even for {run} of {rest} steps; {rest} mod {run} = {}",
            rest % run
        );
        let (step, end) = (stride / self.leaf(leaf).1 * run, stride.checked_mul(run));
        let straight = sum([self.at(stride).map(|one| (one, run))]);
        if let (Some(end), Some(value), Some(straight)) = (end, end.and_then(|end| self.at(end)), straight) {
            report.found.push_str(&format!("; first at step {step}: A({end}) = {value}, not {straight}"));
        }
        report.required = "an even stretch that divides the extent, so that the leaf can be cut into modes".to_owned();
        report.because = format!("A({stride}*j) = j*A({stride}) holds for j < {run} and fails at j = {run}");
        report.help = self.help(&[leaf], Some(run));
    }

    /// A leaf whose stretches divide it, and do not repeat: the values of its pieces do not add up to its own.
    fn uneven_report(&self, report: &mut Report, leaf: usize, pieces: &[(i64, i64)], weights: &[i64]) {
        let (t, e) = self.leaf(leaf);
        report.leaf = Some(self.path(leaf));
        let cut: Vec<String> = pieces.iter().map(|(run, _)| run.to_string()).collect();
        report.found =
            format!("steps of {e} through A are even in stretches of {}, which do not repeat", cut.join("*"));
        let alone = Layout::mode_of(t, e).ok();
        let straight = |step: i64, _: &[i64]| self.of_pieces(pieces, step);
        if let Some(at) = alone.and_then(|alone| self.first_difference(&alone, straight)) {
            report.found.push_str(&format!("; first at step {}: A({}) = {}, not {}", at.0, at.0 * e, at.1, at.2));
        }
        report.required = "a stride that divides a mode of A, or that modes of A divide".to_owned();
        let e = e.saturating_abs();
        report.because = match weights.iter().find(|w| **w % e != 0 && e % **w != 0) {
            Some(weight) => {
                let (more, less) = (e.max(*weight), e.min(*weight));
                format!("A changes its slope at multiples of {weight}, and {more} mod {less} = {}", more % less)
            }
            None => format!("A changes its slope at multiples of {weights:?}"),
        };
        report.help = self.help(&[leaf], pieces.first().map(|(run, _)| *run));
    }

    fn carry_report(&self, report: &mut Report, coord: &[i64], weights: &[i64]) {
        let text: Vec<String> = coord.iter().map(i64::to_string).collect();
        report.found = format!("at coordinate ({}) of B's leaves the leaves carry into each other", text.join(","));
        let strides: Vec<i64> = self.b.stride().raw().iter().map(|d| d.value).collect();
        let index = dot(coord, &strides);
        if let (Some(index), Some(alone)) = (index, self.alone(coord))
            && let Some(value) = self.at(index)
        {
            report.found.push_str(&format!(": A({index}) = {value}, the leaves alone add up to {alone}"));
        }
        if let Some((index, ours, theirs)) = self.first_difference(&self.b, |_, coord| self.alone(coord)) {
            report.found.push_str(&format!("; first at index {index}: A(B({index})) = {ours}, not {theirs}"));
        }
        report.required = "A(B(c)) equal to the sum of what each leaf of B contributes".to_owned();
        report.because =
            format!("A changes its slope at multiples of {weights:?}, and the sum of the leaves crosses one");
        let moved: Vec<usize> = (0..coord.len()).rev().filter(|leaf| coord[*leaf] != 0).collect();
        report.help = self.help(&moved, None);
    }

    fn cute_report(&self, cute: Option<Cute>) -> String {
        let refuses = |class: Class, rest: i64, extent: i64| {
            format!("refuses: {class} ({rest} mod {extent} = {})", rest.checked_rem(extent).unwrap_or(0))
        };
        match cute {
            Some(Cute::StrideDivisibility { extent, stride: rest }) => refuses(Class::StrideDivisibility, rest, extent),
            Some(Cute::ShapeDivisibility { extent, rest }) => refuses(Class::ShapeDivisibility, rest, extent),
            Some(Cute::Accepts(layout)) if self.reason == Reason::Undecided => format!("accepts: {layout}"),
            Some(Cute::Accepts(layout)) => {
                let theirs = |i: i64, _: &[i64]| crd2idx(&IntTuple::int(i), &layout).ok();
                let at = self.first_difference(&self.b, theirs);
                let at = at.map(|(i, ours, theirs)| format!(", whose value at index {i} is {theirs} and not {ours}"));
                format!("accepts, and is wrong: {layout}{}", at.unwrap_or_default())
            }
            None => String::new(),
        }
    }

    /// The first index of `over` where `A(over(i))` is not what another function, of the index and of the leaves' coordinates, says.
    fn first_difference(
        &self,
        over: &Layout,
        other: impl Fn(i64, &[i64]) -> Option<IntTuple>,
    ) -> Option<(i64, IntTuple, IntTuple)> {
        let strides: Vec<i64> = over.stride().raw().iter().map(|d| d.value).collect();
        // A value of a basis stride can have hundreds of leaves.
        let most = MOST_TRIED / i64::try_from(self.at(0)?.leaf_count()).ok()?.max(1);
        for i in 0..over.size().min(most) {
            let coord = idx2crd(&IntTuple::int(i), over.shape()).ok()?.ints()?;
            let (ours, theirs) = (self.at(dot(&coord, &strides)?)?, other(i, &coord)?);
            if ours != theirs {
                return Some((i, ours, theirs));
            }
        }
        None
    }

    /// `A(x)`; a coordinate where A's strides are basis elements.
    fn at(&self, x: i64) -> Option<IntTuple> {
        crd2idx(&IntTuple::int(x), &self.a).ok()
    }

    /// The sum of the separate contributions of B's leaves at a coordinate.
    fn alone(&self, coord: &[i64]) -> Option<IntTuple> {
        let strides = self.b.stride().raw().iter();
        sum(coord.iter().zip(strides).map(|(c, d)| Some((self.at(c.checked_mul(d.value)?)?, 1))))
    }

    /// The sum of the separate contributions of a leaf's pieces `(extent, stride)` at a step of it.
    fn of_pieces(&self, pieces: &[(i64, i64)], mut step: i64) -> Option<IntTuple> {
        sum(pieces.iter().map(|(run, stride)| {
            let digit = step % run;
            step /= run;
            Some((self.at(*stride)?, digit))
        }))
    }

    /// Extent and stride of a leaf of B.
    fn leaf(&self, leaf: usize) -> (i64, i64) {
        (self.b.shape().raw()[leaf].value, self.b.stride().raw()[leaf].value)
    }

    /// Alternatives: another extent or stride for one of the leaves, each one tried; and an operation that always
    /// works.
    fn help(&self, leaves: &[usize], run: Option<i64>) -> String {
        let always = "a by-mode tiler, one layout for each mode of A; or a ComposedLayout, which keeps A and B apart";
        if self.b.size() > MOST_TRIED {
            return always.to_owned();
        }
        for &leaf in leaves {
            let (t, e) = self.leaf(leaf);
            let fits = |t: &i64, e: &i64| *t > 1 && *e != 0 && self.fits(leaf, *t, *e);
            let smaller = (1..=NEAR).map(|by| t - by).chain(run).find(|n| *n < t && fits(n, &e));
            let larger = (1..=NEAR).filter_map(|by| t.checked_add(by)).find(|n| fits(n, &e));
            let less = (1..=NEAR).filter_map(|by| e.checked_sub(by)).find(|n| fits(&t, n));
            let more = (1..=NEAR).filter_map(|by| e.checked_add(by)).find(|n| fits(&t, n));
            let listed = |what: &str, found: [Option<i64>; 2]| {
                let found: Vec<String> = found.into_iter().flatten().map(|n| n.to_string()).collect();
                (!found.is_empty()).then(|| format!("{what} {}", found.join(" or ")))
            };
            let offers: Vec<String> =
                [listed("extent", [smaller, larger]), listed("stride", [less, more])].into_iter().flatten().collect();
            if !offers.is_empty() {
                return format!("{} for {}; or {always}", offers.join(", or "), self.path(leaf));
            }
        }
        always.to_owned()
    }

    /// Whether the composition is accepted with another extent and stride for a leaf of B.
    fn fits(&self, leaf: usize, t: i64, e: i64) -> bool {
        let (mut shape, mut stride) = self.b.clone().into_parts();
        shape.raw_mut()[leaf].value = t;
        stride.raw_mut()[leaf].value = e;
        Layout::new(shape, stride).is_ok_and(|b| super::composition(&self.a, &b).is_ok())
    }

    /// The path of a leaf of B with its text: `B[1][0] = 4:3`.
    fn path(&self, leaf: usize) -> String {
        let pair = self.b.pairs().nth(leaf);
        let text = pair.map(|(s, d)| format!("{}:{}", IntTuple::leaf(s), IntTuple::leaf(d))).unwrap_or_default();
        format!("B{} = {text}", self.b.shape().leaf_path(leaf))
    }
}

/// The sum of products.
fn dot(a: &[i64], b: &[i64]) -> Option<i64> {
    a.iter().zip(b).try_fold(0i64, |sum, (x, y)| sum.checked_add(x.checked_mul(*y)?))
}

/// The sum of multiples of values of one profile.
fn sum(terms: impl IntoIterator<Item = Option<(IntTuple, i64)>>) -> Option<IntTuple> {
    let mut total: Option<IntTuple> = None;
    for term in terms {
        let (value, times) = term?;
        let total = total.get_or_insert_with(|| value.repeat_like(Leaf::int(0)));
        for (sum, leaf) in total.raw_mut().iter_mut().zip(value.raw()) {
            sum.value = sum.value.checked_add(leaf.value.checked_mul(times)?)?;
        }
    }
    total
}

/// The products of A's extents before each mode but the first.
fn weights(lhs: &Flat) -> Vec<i64> {
    let before = |k: usize| lhs[..k].iter().fold(1i64, |weight, (s, _)| weight.saturating_mul(s.value));
    (1..lhs.len()).map(before).collect()
}
