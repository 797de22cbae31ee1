//! Intervals: everything that a device may have computed lies between the bounds.
//!
//! An operation that IEEE 754 rounds is monotone in each operand, the rounding included. Its bounds are therefore the
//! operation itself, done at corners; no direction of rounding is needed, and a point stays a point.

use core::marker::PhantomData;

use super::domain::{Domain, Plain};
use super::op::{Binary, Comparison, Unary};
use super::real::{self, Real};
use super::round::{self, Values, values};
use crate::dtype::DType;

/// The values from `low` to `high`, -0 being below 0, and NaN if it says so. `low` is above `high` where NaN is all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval<T> {
    pub(super) low: T,
    pub(super) high: T,
    pub(super) nan: bool,
}

/// Which outcomes a condition may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) yes: bool,
    pub(super) no: bool,
}

impl<T: Real> Interval<T> {
    fn nothing() -> Interval<T> {
        Interval { low: T::INFINITY, high: -T::INFINITY, nan: false }
    }

    fn everything(nan: bool) -> Interval<T> {
        Interval { low: -T::INFINITY, high: T::INFINITY, nan }
    }

    pub(super) fn point(x: T) -> Interval<T> {
        if x.is_nan() {
            Interval { nan: true, ..Interval::nothing() }
        } else {
            Interval { low: x, high: x, nan: false }
        }
    }

    /// From a lower and an upper bound, both NaN without a value.
    fn between((low, high): (T, T)) -> Interval<T> {
        if low.is_nan() { Interval::point(low) } else { Interval { low, high, nan: false } }
    }

    pub(super) fn is_empty(self) -> bool {
        self.high.before(self.low)
    }

    /// The only value, if there is exactly one and no NaN.
    pub(super) fn as_point(self) -> Option<T> {
        (!self.nan && self.low.same(self.high)).then_some(self.low)
    }

    fn contains(self, x: T) -> bool {
        !x.before(self.low) && !self.high.before(x)
    }

    /// Whether 0 or -0 is among the values.
    fn has_zero(self) -> bool {
        let zero = T::of(0.0);
        self.low <= zero && zero <= self.high
    }

    fn has_infinity(self) -> bool {
        self.contains(T::INFINITY) || self.contains(-T::INFINITY)
    }

    fn or(self, other: Interval<T>) -> Interval<T> {
        let nan = self.nan || other.nan;
        match (self.is_empty(), other.is_empty()) {
            (true, _) => Interval { nan, ..other },
            (_, true) => Interval { nan, ..self },
            _ => Interval { low: self.low.smaller(other.low), high: self.high.larger(other.high), nan },
        }
    }

    fn or_nan(self, nan: bool) -> Interval<T> {
        Interval { nan: self.nan || nan, ..self }
    }

    /// The hull of `f` at the corners; everything if a corner is NaN.
    fn corners<const N: usize>(results: [T; N]) -> Interval<T> {
        if results.iter().any(|x| x.is_nan()) {
            return Interval::everything(true);
        }
        let low = results.iter().copied().reduce(T::smaller);
        let high = results.iter().copied().reduce(T::larger);
        match (low, high) {
            (Some(low), Some(high)) => Interval { low, high, nan: false },
            _ => Interval::everything(true),
        }
    }

    /// An increasing function, NaN left of its domain's beginning.
    fn increasing(self, begin: T, bounds: impl Fn(T) -> (T, T)) -> Interval<T> {
        let nan = self.nan || self.low < begin;
        let low = if self.low < begin { begin } else { self.low };
        if self.high < begin || self.is_empty() {
            return Interval::nothing().or_nan(nan);
        }
        Interval { low: bounds(low).0, high: bounds(self.high).1, nan }
    }

    fn negated(self) -> Interval<T> {
        Interval { low: -self.high, high: -self.low, nan: self.nan }
    }

    fn rsqrt(self) -> Interval<T> {
        let zero = T::of(0.0);
        let nan = self.nan || self.low < zero;
        if self.high < zero || self.is_empty() {
            return Interval::nothing().or_nan(nan);
        }
        let low = if self.contains(-zero) { -T::INFINITY } else { real::end_bounds(Unary::Rsqrt, self.high).0 };
        let high = if self.has_zero() { T::INFINITY } else { real::end_bounds(Unary::Rsqrt, self.low).1 };
        Interval { low, high, nan }
    }

    /// Sine and cosine: ends, and 1 and -1 where an extremum lies between.
    fn wave(self, op: Unary) -> Interval<T> {
        let one = real::beyond_one::<T>(op);
        let nan = self.nan || self.has_infinity();
        if self.is_empty() {
            return Interval::nothing().or_nan(nan);
        }
        let (low, high) = (self.low.wide(), self.high.wide());
        let whole = Interval { low: -one, high: one, nan };
        // Below 2^20, a quotient by 2 pi is less than 2^18 and has an error below 2^-33; the margin is above it.
        const FARTHEST: f64 = 1_048_576.0;
        const MARGIN: f64 = 1.0 / 1_073_741_824.0;
        if !(low > -FARTHEST && high < FARTHEST) {
            return whole;
        }
        // In turns, from the first maximum.
        let maximum = if op == Unary::Sin { 0.25 } else { 0.0 };
        let between = |at: f64| {
            let turns = |x: f64| x / core::f64::consts::TAU - at;
            (turns(low) - MARGIN).ceil() <= (turns(high) + MARGIN).floor()
        };
        let (left, right) = (real::end_bounds(op, self.low), real::end_bounds(op, self.high));
        let low = if between(maximum + 0.5) { -one } else { left.0.smaller(right.0) };
        let high = if between(maximum) { one } else { left.1.larger(right.1) };
        Interval { low, high, nan }
    }

    fn add(self, other: Interval<T>) -> Interval<T> {
        let infinity = T::INFINITY;
        let opposite = (self.contains(infinity) && other.contains(-infinity))
            || (self.contains(-infinity) && other.contains(infinity));
        Interval::corners([self.low + other.low, self.high + other.high]).or_nan(opposite)
    }

    fn mul(self, other: Interval<T>) -> Interval<T> {
        let (a, b) = (self, other);
        Interval::corners([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
            .or_nan((a.has_zero() && b.has_infinity()) || (a.has_infinity() && b.has_zero()))
    }

    fn div(self, other: Interval<T>) -> Interval<T> {
        let (a, b) = (self, other);
        if b.has_zero() {
            return Interval::everything(a.has_zero() || (a.has_infinity() && b.has_infinity()));
        }
        Interval::corners([a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high])
    }

    fn fma(self, factor: Interval<T>, addend: Interval<T>) -> Interval<T> {
        let [a, b, c] = [self, factor, addend];
        let at = |c: T| {
            [a.low.mul_add(b.low, c), a.low.mul_add(b.high, c), a.high.mul_add(b.low, c), a.high.mul_add(b.high, c)]
        };
        let infinite = a.has_infinity() || b.has_infinity() || c.has_infinity();
        let ends = Interval::corners(at(c.low)).or(Interval::corners(at(c.high)));
        // An infinity inside of an interval meets zeros and other infinities there, not only at corners.
        if infinite && [a, b, c].iter().any(|x| x.as_point().is_none()) { ends.or_nan(true) } else { ends }
    }

    fn pow(self, other: Interval<T>) -> Interval<T> {
        let (x, y) = (self, other);
        if let (Some(x), Some(y)) = (x.as_point(), y.as_point()) {
            return Interval::between(real::power_bounds(x, y));
        }
        let nan = x.nan || y.nan;
        let one = Interval::point(T::of(1.0));
        let mut result = Interval::nothing();
        // 1 to any power is 1, and anything to the power of 0, NaN included.
        if (x.nan && y.has_zero()) || (y.nan && x.contains(T::of(1.0))) {
            result = one;
        }
        if x.is_empty() || y.is_empty() {
            return result.or_nan(nan);
        }
        if x.low <= T::of(0.0) {
            return Interval::everything(true);
        }
        for x in [x.low, x.high] {
            for y in [y.low, y.high] {
                result = result.or(Interval::between(real::power_end_bounds(x, y)));
            }
        }
        result.or_nan(nan)
    }

    /// The lower (`upper` false) or the higher of two values.
    fn choice(self, other: Interval<T>, upper: bool) -> Interval<T> {
        let (a, b) = if upper { (self.negated(), other.negated()) } else { (self, other) };
        let mut result = Interval::nothing();
        if !a.is_empty() && !b.is_empty() {
            let high = if b.high.before(a.high) { b.high } else { a.high };
            result = Interval { low: a.low.smaller(b.low), high, nan: false };
            // A device may take either of 0 and -0.
            let zero = T::of(0.0);
            if high == zero && a.has_zero() && b.has_zero() && (a.contains(zero) || b.contains(zero)) {
                result.high = zero;
            }
        }
        if a.nan {
            result = result.or(Interval { nan: false, ..b });
        }
        if b.nan {
            result = result.or(Interval { nan: false, ..a });
        }
        result = result.or_nan(a.nan && b.nan);
        let mut result = if upper { result.negated() } else { result };
        // ptxas 13.0 writes a constant -0 as the register that is 0.
        if !result.is_empty() && result.high == T::of(0.0) {
            result.high = T::of(0.0);
        }
        result
    }
}

/// Computing with [`Interval`]s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals<T>(pub(super) PhantomData<T>);

impl<T: Real> Domain for Intervals<T> {
    type Number = Interval<T>;
    type Truth = Truth;

    fn truth(&mut self) -> Truth {
        Truth { yes: true, no: true }
    }

    fn number(&mut self, x: f64) -> Interval<T> {
        Interval::point(T::of(x))
    }

    fn unary(&mut self, op: Unary, x: Interval<T>) -> Interval<T> {
        let zero = T::of(0.0);
        if real::is_approximate(op)
            && let Some(x) = x.as_point()
        {
            return Interval::between(real::bounds(op, x));
        }
        match op {
            Unary::Neg => x.negated(),
            Unary::Abs if x.is_empty() || !x.low.before(zero) => x,
            Unary::Abs if x.high.before(zero) => x.negated(),
            Unary::Abs => Interval { low: zero, high: (-x.low).larger(x.high), nan: x.nan },
            Unary::Relu => x.increasing(-T::INFINITY, |x| if x <= zero { (zero, zero) } else { (x, x) }),
            Unary::Sqrt => x.increasing(-zero, |x| (x.sqrt(), x.sqrt())),
            Unary::Log | Unary::Log2 => x.increasing(-zero, |x| real::end_bounds(op, x)),
            Unary::Rsqrt => x.rsqrt(),
            Unary::Sin | Unary::Cos => x.wave(op),
            _ => x.increasing(-T::INFINITY, |x| real::end_bounds(op, x)),
        }
    }

    fn binary(&mut self, op: Binary, x: Interval<T>, y: Interval<T>) -> Interval<T> {
        match op {
            Binary::Min => return x.choice(y, false),
            Binary::Max => return x.choice(y, true),
            Binary::Pow => return x.pow(y),
            _ => {}
        }
        let nan = x.nan || y.nan;
        if x.is_empty() || y.is_empty() {
            return Interval::nothing().or_nan(nan);
        }
        if let (Some(x), Some(y)) = (x.as_point(), y.as_point()) {
            return Interval::point(match op {
                Binary::Add => x + y,
                Binary::Sub => x - y,
                Binary::Mul => x * y,
                _ => x / y,
            });
        }
        let result = match op {
            Binary::Add => x.add(y),
            Binary::Sub => x.add(y.negated()),
            Binary::Mul => x.mul(y),
            _ => x.div(y),
        };
        result.or_nan(nan)
    }

    fn fma(&mut self, [a, b, c]: [Interval<T>; 3]) -> Interval<T> {
        let nan = a.nan || b.nan || c.nan;
        if a.is_empty() || b.is_empty() || c.is_empty() {
            return Interval::nothing().or_nan(nan);
        }
        match (a.as_point(), b.as_point(), c.as_point()) {
            (Some(a), Some(b), Some(c)) => Interval::point(a.mul_add(b, c)),
            _ => a.fma(b, c).or_nan(nan),
        }
    }

    fn cast(&mut self, dtype: DType, x: Interval<T>) -> Interval<T> {
        let to = |x: T| T::of(round::round_to(dtype, x.wide()));
        let nan = matches!(values(dtype), Values::F64 | Values::Float(_));
        let mut result = Interval::nothing();
        if !x.is_empty() {
            result = Interval { low: to(x.low), high: to(x.high), nan: x.nan && nan };
            // Truth is not monotone: values that are not zero lie on both sides of zero.
            if dtype == DType::Bool && x.has_zero() && !(x.low == x.high) {
                result = Interval { low: T::of(0.0), high: T::of(1.0), nan: false };
            }
        }
        match (x.nan, nan) {
            (true, true) => result.or_nan(true),
            (true, false) => result.or(Interval::point(to(T::of(f64::NAN)))),
            _ => result,
        }
    }

    fn clamp(&mut self, x: Interval<T>, limits: (f64, f64)) -> Interval<T> {
        let to = |x: T| Plain::new().clamp(x, limits);
        if x.is_empty() { x } else { Interval { low: to(x.low), high: to(x.high), nan: x.nan } }
    }

    fn compare(&mut self, op: Comparison, x: Interval<T>, y: Interval<T>) -> Truth {
        let nan = x.nan || y.nan;
        if x.is_empty() || y.is_empty() {
            return Truth { yes: op == Comparison::Ne, no: op != Comparison::Ne };
        }
        // What may be, without NaN.
        let less = x.low < y.high;
        let greater = x.high > y.low;
        let equal = x.low <= y.high && y.low <= x.high;
        let (yes, no) = match op {
            Comparison::Lt => (less, equal || greater),
            Comparison::Le => (less || equal, greater),
            Comparison::Gt => (greater, equal || less),
            Comparison::Ge => (greater || equal, less),
            Comparison::Eq => (equal, less || greater),
            Comparison::Ne => (less || greater, equal),
        };
        Truth { yes: yes || (nan && op == Comparison::Ne), no: no || (nan && op != Comparison::Ne) }
    }

    fn and(&mut self, a: Truth, b: Truth) -> Truth {
        Truth { yes: a.yes && b.yes, no: a.no || b.no }
    }

    fn or(&mut self, a: Truth, b: Truth) -> Truth {
        Truth { yes: a.yes || b.yes, no: a.no && b.no }
    }

    fn not(&mut self, a: Truth) -> Truth {
        Truth { yes: a.no, no: a.yes }
    }

    fn select(&mut self, condition: Truth, yes: Interval<T>, no: Interval<T>) -> Interval<T> {
        match (condition.yes, condition.no) {
            (true, false) => yes,
            (false, true) => no,
            _ => yes.or(no),
        }
    }
}

#[cfg(test)]
mod tests;
