//! What Q and S must be, in f64 with a bound of what f32 may differ.

use cutemplate::reference::{At, Each};

use crate::GROUP;

/// Half the distance between 1 and the next f32.
const U: f64 = 1.0 / 16_777_216.0;
/// The largest e4m3.
const LARGEST: f64 = 448.0;

/// Of an element: negation, `expf`, sum, quotient and product of H, its size and the maximum, the quotient by the scale.
const OPERATIONS: f64 = 8.0;

/// An f32, as a range of what it may be.
#[derive(Clone, Copy)]
struct Range(f64, f64);

impl Range {
    /// The ends, rounded as f32: a number beyond the largest is infinite.
    fn rounded(self) -> Self {
        Self(f64::from(self.0 as f32), f64::from(self.1 as f32))
    }

    fn abs(self) -> Self {
        let [a, b] = [self.0.abs(), self.1.abs()];
        Self(if self.0 <= 0.0 && self.1 >= 0.0 { 0.0 } else { a.min(b) }, a.max(b))
    }

    /// A value and its error.
    fn within(self) -> (f64, f64) {
        if self.0 == self.1 { (self.0, 0.0) } else { (self.0 / 2.0 + self.1 / 2.0, self.1 / 2.0 - self.0 / 2.0) }
    }
}

/// `x / (1 + e^-x) * up`. `expf` errs by at most 1 unit in the last place, 2 u (CUDA C++ Programming Guide, "Mathematical
/// Functions"), and each of the three operations by u: 5 u and what is less. Where `e^-x` is too large for f32, from -88.72 down, the
/// quotient is 0, and off by less than 89 * 2^-127. Results below the normal numbers err by half of the smallest, each time.
fn activated(x: f64, up: f64) -> Range {
    let exact = x / (1.0 + (-x).exp()) * up;
    let vanished = if x < -88.0 { 89.0 * 2f64.powi(-127) } else { 0.0 };
    let error = 6.0 * U * exact.abs() + vanished * up.abs() + (1.0 + up.abs()) * 2f64.powi(-149);
    if exact.is_infinite() { Range(exact, exact) } else { Range(exact - error, exact + error).rounded() }
}

/// H at a coordinate.
fn h(at: &At<'_>, m: i64, n: i64) -> Range {
    activated(at.input(0, &[m, n]), at.input(1, &[m, n]))
}

/// The scale of a group: maxima pass over NaN.
fn scale(at: &At<'_>, m: i64, group: i64) -> Range {
    let columns = group * GROUP..(group + 1) * GROUP;
    let largest = columns.map(|n| h(at, m, n).abs()).fold(Range(0.0, 0.0), |a, b| Range(a.0.max(b.0), a.1.max(b.1)));
    if largest.1 == 0.0 { Range(1.0, 1.0) } else { Range(largest.0 / LARGEST, largest.1 / LARGEST).rounded() }
}

/// `h / s` for any h and s of the ranges.
fn quotient(h: Range, s: Range) -> (f64, f64) {
    let all = [h.0 / s.0, h.0 / s.1, h.1 / s.0, h.1 / s.1];
    if all.iter().any(|x| x.is_nan()) {
        return (f64::NAN, 0.0);
    }
    let fold = |of: fn(f64, f64) -> f64| all.into_iter().reduce(of).unwrap_or(f64::NAN);
    Range(fold(f64::min), fold(f64::max)).rounded().within()
}

/// Q and S.
pub(crate) fn gated() -> Each {
    Each::new()
        .output(|at| match *at.coordinate() {
            [m, n] => quotient(h(at, m, n), scale(at, m, n / GROUP)),
            _ => (f64::NAN, 0.0),
        })
        .output(|at| match *at.coordinate() {
            [m, group] => scale(at, m, group).within(),
            _ => (f64::NAN, 0.0),
        })
        .flop(|problem| OPERATIONS * problem.iter().map(|extent| *extent as f64).product::<f64>())
}
