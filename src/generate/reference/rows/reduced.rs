//! Bounds of reductions whose terms are known by bounds.

use super::super::spread::{Spread, Terms};
use crate::expr::Bounds;
use crate::expr::rows::Reduction;

/// The reduction of the terms in any order; `first` is the column of the first of them.
pub(super) fn reduced(reduction: Reduction, terms: &[Bounds], first: usize, spread: Spread) -> Bounds {
    match reduction {
        Reduction::Sum => {
            let mut sum = Terms::new(true);
            terms.iter().for_each(|term| sum.add(term.range(), term.may_be_nan()));
            sum.bounds(spread)
        }
        Reduction::Prod => product(terms, spread),
        Reduction::Max => largest(terms.iter().copied()),
        Reduction::Min => negated(largest(terms.iter().copied().map(negated))),
        // Whether a condition holds is 1 or 0.
        Reduction::Any => largest(terms.iter().copied().chain([Bounds::point(0.0)])),
        Reduction::All => negated(largest(terms.iter().copied().chain([Bounds::point(1.0)]).map(negated))),
        Reduction::ArgMax => column_of_largest(terms.to_vec(), first),
        Reduction::ArgMin => column_of_largest(terms.iter().copied().map(negated).collect(), first),
    }
}

fn negated(x: Bounds) -> Bounds {
    match x.range() {
        Some((low, high)) => Bounds::between(-high, -low).or_nan(x.may_be_nan()),
        None => x,
    }
}

/// The largest of the terms, -inf without any; NaN where one is.
fn largest(terms: impl Iterator<Item = Bounds>) -> Bounds {
    let (mut low, mut high, mut nan) = (f64::NEG_INFINITY, f64::NEG_INFINITY, false);
    let mut negative_zero = false;
    for term in terms {
        nan |= term.may_be_nan();
        let Some((least, most)) = term.range() else { return Bounds::point(f64::NAN) };
        negative_zero |= least.total_cmp(&-0.0).is_le() && most.total_cmp(&-0.0).is_ge();
        low = low.max(least);
        high = high.max(most);
    }
    // 0 and -0 are equal, so that a device may take either; a constant -0 may be the register that is 0.
    if low == 0.0 && negative_zero {
        low = -0.0;
    }
    if high == 0.0 {
        high = 0.0;
    }
    Bounds::between(low, high).or_nan(nan)
}

/// The columns that may be the first of the largest terms; NaN is larger than all.
fn column_of_largest(terms: Vec<Bounds>, first: usize) -> Bounds {
    // Whether it is NaN, then the number.
    let least = |term: &Bounds| term.range().map_or((true, 0.0), |(low, _)| (false, low));
    let most = |term: &Bounds| match term.range() {
        Some((_, high)) if !term.may_be_nan() => (false, high),
        _ => (true, 0.0),
    };
    let nothing = (false, f64::NEG_INFINITY);
    // The largest lower bound behind each term.
    let mut behind = vec![nothing; terms.len() + 1];
    for (at, term) in terms.iter().enumerate().rev() {
        let least = least(term);
        behind[at] = if least > behind[at + 1] { least } else { behind[at + 1] };
    }
    let (mut before, mut columns) = (None, None::<(usize, usize)>);
    for (at, term) in terms.iter().enumerate() {
        let most = most(term);
        if before.is_none_or(|before| most > before) && most >= behind[at + 1] {
            columns = Some((columns.map_or(at, |(lowest, _)| lowest), at));
        }
        let least = least(term);
        before = Some(before.map_or(least, |before| if least > before { least } else { before }));
    }
    let (lowest, highest) = columns.map_or((0, 0), |(lowest, highest)| (lowest + first, highest + first));
    Bounds::between(lowest as f64, highest as f64)
}

/// The product from 1 on, each multiplication rounded.
fn product(terms: &[Bounds], spread: Spread) -> Bounds {
    // The smallest and the largest size that a product of some of the terms has.
    let (mut least, mut most) = (1.0_f64, 1.0_f64);
    let (mut low, mut high) = (1.0_f64, 1.0_f64);
    let (mut integers, mut zero, mut infinite, mut nan) = (true, false, false, false);
    for term in terms {
        nan |= term.may_be_nan();
        let Some((from, to)) = term.range() else { return Bounds::point(f64::NAN) };
        integers &= from == to && from.is_finite() && from.fract() == 0.0;
        zero |= from <= 0.0 && to >= 0.0;
        infinite |= from.is_infinite() || to.is_infinite();
        let size = from.abs().max(to.abs());
        most *= size.max(1.0);
        let near = if from <= 0.0 && to >= 0.0 { 0.0 } else { from.abs().min(to.abs()) };
        least *= near.min(1.0);
        let corners = [low * from, low * to, high * from, high * to];
        low = corners.iter().copied().fold(f64::INFINITY, f64::min);
        high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    }
    let overflows = infinite || !most.is_finite() || most * (1.0 + spread.relative) > spread.largest();
    // A product of integers that is exact in each order; of zeros, either sign.
    if integers && !overflows && most <= spread.exact() && !nan {
        return if zero { Bounds::between(-0.0, 0.0) } else { Bounds::point(low) };
    }
    let underflows = zero || least * (1.0 - spread.relative) < spread.normal();
    if overflows {
        // A size between nothing and infinity; what was infinite may meet what was 0.
        return Bounds::between(f64::NEG_INFINITY, f64::INFINITY).or_nan(nan || underflows);
    }
    if underflows {
        let size = most * (1.0 + spread.relative) + spread.absolute * most;
        return Bounds::between(-size, size).or_nan(nan);
    }
    let widened = |x: f64, up: bool| {
        let error = x.abs() * spread.relative;
        if up { x + error } else { x - error }
    };
    Bounds::between(widened(low, false), widened(high, true)).or_nan(nan)
}
