//! Bounds of a pair's second value, whose parts are joined before the first value is known.

use super::super::spread::{Spread, Terms};
use super::reduced::reduced;
use crate::expr::rows::{Online, Reduction};
use crate::expr::{Bounds, Compute, Evaluator, ExprError, Function};

/// The function of a term, of the first value and of the width whose sum the second value is.
pub(super) fn evaluator(online: Online, compute: Compute) -> Result<Evaluator, ExprError> {
    let function = Function::nary(3, |_, x| {
        [match online {
            Online::Exp => (x[0] - x[1]).exp(),
            Online::Exp2 => (x[0] - x[1]).exp2(),
            Online::ScaledExp2(scale) => ((x[0] - x[1]) * f64::from_bits(scale)).exp2(),
            Online::Squares => {
                let difference = x[0] - x[1] / x[2];
                difference * difference
            }
        }]
    })?;
    function.check(compute).map_err(|mut errors| errors.remove(0))?.evaluator(&[])
}

/// The largest size of a number within the bounds; infinite where it may be NaN.
fn size(x: &Bounds) -> f64 {
    match x.range() {
        Some((low, high)) if !x.may_be_nan() => low.abs().max(high.abs()),
        _ => f64::INFINITY,
    }
}

/// The sum of the exponentials below the largest, `first`.
///
/// In exact arithmetic the factors by which a sum is rescaled are, together, the exponential of the whole difference D. Each of the at
/// most `depth` rescalings adds the error of an exponential, at most 2 ulp, and of a product. The differences have one sign, so that
/// their roundings change the exponent by at most u D, up or down, as the one rounding of two traversals does.
///
/// A scale of the differences is one more rounding, and makes all of them as much larger.
pub(super) fn exponentials(
    online: Online,
    terms: &[Bounds],
    of_terms: &[Bounds],
    first: Bounds,
    spread: Spread,
) -> Bounds {
    /// From here on `exp` and `exp2` are 0 in f64.
    const FARTHEST: f64 = 1100.0;
    let (roundings, smallest) = match online {
        Online::ScaledExp2(scale) => (4.0 * f64::from_bits(scale), spread.normal()),
        Online::Exp2 => (2.0, spread.normal()),
        _ => (2.0, spread.smallest()),
    };
    let most = first.range().map_or(f64::INFINITY, |(_, high)| high);
    let mut sum = Terms::new(false);
    for (exponential, term) in terms.iter().zip(of_terms) {
        let far = term.range().map_or(FARTHEST, |(low, _)| (most - low).abs().min(FARTHEST));
        let far = if far.is_nan() { FARTHEST } else { far };
        let wider = libm::expm1(spread.unit() * (6.0 * spread.depth() as f64 + roundings * far) * 1.01);
        let range = exponential.range().map(|(low, high)| (low * (1.0 - wider).max(0.0), high * (1.0 + wider)));
        sum.add(range, exponential.may_be_nan());
    }
    let all = sum.bounds(spread);
    // A factor below the normal numbers is off by this much, for each term and rescaling.
    let count = terms.len() as f64;
    widened(all, count * (count + 4.0) * smallest)
}

fn widened(x: Bounds, by: f64) -> Bounds {
    match x.range() {
        Some((low, high)) => Bounds::between((low - by).max(0.0), high + by).or_nan(x.may_be_nan()),
        None => x,
    }
}

/// The sum of squares about the mean, whose partial means are quotients of partial sums.
///
/// The sum is that of `w d^2` over all pairs of parts that are joined, with `w <= min(n1, n2)` and d the difference of their means. A
/// computed mean is off by at most `e = (depth + 2) u max|x|`, so that each d is off by 2 e and its own roundings. By the inequality of
/// Cauchy and Schwarz this makes at most `4 e sqrt(W S) + 4 e^2 W`, W being the sum of the weights, at most `n (depth + 1)`.
pub(super) fn squares(terms: &[Bounds], of_terms: &[Bounds], spread: Spread) -> Bounds {
    let largest = of_terms.iter().map(size).fold(0.0, f64::max);
    let count = terms.len() as f64;
    let overflows = 4.0 * largest * largest * count >= spread.largest();
    if overflows {
        let is_nan = of_terms.iter().any(|term| term.range().is_none());
        let any = Bounds::between(0.0, f64::INFINITY).or_nan(true);
        return if is_nan { Bounds::point(f64::NAN) } else { any };
    }
    let direct = reduced(Reduction::Sum, terms, 0, spread);
    let Some((low, high)) = direct.range() else { return direct };
    let depth = spread.depth() as f64;
    let mean = (depth + 2.0) * spread.unit() * largest * 1.01 + spread.smallest();
    let weights = count * (depth + 1.0);
    let moved = 4.0 * mean * (weights * high).sqrt() + 4.0 * mean * mean * weights;
    let rounded = libm::expm1((depth + 12.0) * spread.unit()) * (high + moved);
    widened(Bounds::between(low, high).or_nan(direct.may_be_nan()), moved + rounded + spread.error(0.0))
}
