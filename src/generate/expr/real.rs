//! The two float types that devices compute in, and how exactly they compute each function.

use core::fmt::Debug;
use core::ops::{Add, Div, Mul, Neg, Sub};

use super::op::Unary;

/// How far a function's result may be from the correctly rounded one, in ulp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    f32: u32,
    f64: u32,
    /// Ulps of the `f64` function that the bounds are computed with.
    reference: u32,
}

/// The larger of two published bounds. One is CUDA's (CUDA C++ Programming Guide, "Mathematical Functions", tables
/// "Single-" and "Double-Precision Mathematical Standard Library Functions with Maximum ULP Error"). The other is
/// glibc's (The GNU C Library Reference Manual, "Known Maximum Errors in Math Functions"), because tests compile the same
/// C++ for the host. `rsqrt` is `1 / sqrt` there, rounded twice.
///
/// The reference is the crate `libm`, the same on every machine; its own tests hold it to these errors.
const fn error(op: Unary) -> Error {
    match op {
        Unary::Exp | Unary::Exp2 => Error { f32: 2, f64: 1, reference: 1 },
        Unary::Log => Error { f32: 1, f64: 1, reference: 1 },
        Unary::Log2 => Error { f32: 1, f64: 2, reference: 1 },
        Unary::Rsqrt => Error { f32: 2, f64: 2, reference: 2 },
        Unary::Tanh => Error { f32: 2, f64: 2, reference: 2 },
        Unary::Sin | Unary::Cos | Unary::Erf => Error { f32: 2, f64: 2, reference: 1 },
        _ => Error { f32: 0, f64: 0, reference: 0 },
    }
}

/// As [`error`]: the largest published bound of `powf` is in earlier versions of the guide.
const POW: Error = Error { f32: 8, f64: 2, reference: 1 };

/// Whether devices differ in the function's last digits.
pub(super) fn is_approximate(op: Unary) -> bool {
    error(op).f32 > 0
}

/// The function in `f64`, with the error of [`error`].
fn reference(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Exp => libm::exp(x),
        Unary::Exp2 => libm::exp2(x),
        Unary::Log => libm::log(x),
        Unary::Log2 => libm::log2(x),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Sin => libm::sin(x),
        Unary::Cos => libm::cos(x),
        Unary::Tanh => libm::tanh(x),
        Unary::Erf => libm::erf(x),
        _ => x,
    }
}

/// Where C's and CUDA's functions have one result and no error: at zeros, at infinities, and outside of their domain.
fn exact(op: Unary, x: f64) -> bool {
    let at_one = matches!(op, Unary::Log | Unary::Log2) && x == 1.0;
    let outside = matches!(op, Unary::Log | Unary::Log2 | Unary::Rsqrt) && x < 0.0;
    x == 0.0 || !x.is_finite() || at_one || outside
}

/// `f32` or `f64`.
pub(super) trait Real:
    Copy
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const INFINITY: Self;
    /// Whether it is `f32`.
    const NARROW: bool;
    /// The nearest value.
    fn of(x: f64) -> Self;
    /// The same value.
    fn wide(self) -> f64;
    fn next_up(self) -> Self;
    fn next_down(self) -> Self;
    /// The power of two, as bits.
    fn exponent(self) -> u64;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The bound of this type.
    fn ulps(error: Error) -> u32;

    fn is_nan(self) -> bool {
        self.wide().is_nan()
    }

    /// Ahead in the order of values, -0 being ahead of 0.
    fn before(self, other: Self) -> bool {
        self < other || (self == other && self.wide().is_sign_negative() && !other.wide().is_sign_negative())
    }

    fn smaller(self, other: Self) -> Self {
        if other.before(self) { other } else { self }
    }

    fn larger(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The same value, zeros having the same sign.
    fn same(self, other: Self) -> bool {
        !self.before(other) && !other.before(self)
    }
}

macro_rules! real {
    ($($T:ident: $fraction:literal;)*) => {$(
        impl Real for $T {
            const INFINITY: $T = $T::INFINITY;
            const NARROW: bool = size_of::<$T>() == 4;

            fn of(x: f64) -> $T {
                x as $T
            }
            fn wide(self) -> f64 {
                f64::from(self)
            }
            fn next_up(self) -> $T {
                $T::next_up(self)
            }
            fn next_down(self) -> $T {
                $T::next_down(self)
            }
            fn exponent(self) -> u64 {
                u64::from($T::abs(self).to_bits() >> $fraction)
            }
            fn abs(self) -> $T {
                $T::abs(self)
            }
            fn sqrt(self) -> $T {
                $T::sqrt(self)
            }
            fn mul_add(self, factor: $T, addend: $T) -> $T {
                $T::mul_add(self, factor, addend)
            }
            fn ulps(error: Error) -> u32 {
                error.$T
            }
        }
    )*};
}
real! {
    f32: 23;
    f64: 52;
}

/// The value `ulps` below, or above. Where the size of an ulp changes on the way, it is taken twice.
fn moved<T: Real>(x: T, ulps: u32, step: fn(T) -> T) -> T {
    let steps = |x: T| (0..ulps).fold(x, |x, _| step(x));
    let near = steps(x);
    if near.exponent() == x.exponent() { near } else { steps(near) }
}

/// The lowest and the highest result that a device may give for a real number near `reference`.
fn around<T: Real>(reference: f64, error: Error, ulps: u32) -> (T, T) {
    let low = moved(reference, error.reference, f64::next_down);
    let high = moved(reference, error.reference, f64::next_up);
    (moved(T::of(low), ulps, T::next_down), moved(T::of(high), ulps, T::next_up))
}

/// The same, or 0 where `exp2` in `f32` may be below the normal numbers: devices save three instructions.
fn or_zero<T: Real>(op: Unary, (low, high): (T, T)) -> (T, T) {
    let normal = T::of(f64::from(f32::MIN_POSITIVE));
    let is_flushed = op == Unary::Exp2 && T::NARROW && low < normal;
    (if is_flushed { low.smaller(T::of(0.0)) } else { low }, high)
}

/// The lowest and the highest result that a device may give for the function at `x`, both NaN where it is not defined.
pub(super) fn bounds<T: Real>(op: Unary, x: T) -> (T, T) {
    let reference = reference(op, x.wide());
    if exact(op, x.wide()) {
        (T::of(reference), T::of(reference))
    } else {
        or_zero(op, around(reference, error(op), T::ulps(error(op))))
    }
}

/// Bounds that grow with the function, so that bounds at the ends of an interval hold inside. No point is an exception.
/// An ulp counts as the next power of two's, at most twice as large.
pub(super) fn end_bounds<T: Real>(op: Unary, x: T) -> (T, T) {
    or_zero(op, around(reference(op, x.wide()), error(op), 2 * T::ulps(error(op))))
}

/// As [`bounds`], for a power.
pub(super) fn power_bounds<T: Real>(x: T, y: T) -> (T, T) {
    let (x, y) = (x.wide(), y.wide());
    let reference = libm::pow(x, y);
    let special = |x: f64| x == 0.0 || !x.is_finite();
    if special(x) || special(y) || x == 1.0 || reference.is_nan() {
        (T::of(reference), T::of(reference))
    } else {
        around(reference, POW, T::ulps(POW))
    }
}

/// As [`end_bounds`], for a power of a positive number.
pub(super) fn power_end_bounds<T: Real>(x: T, y: T) -> (T, T) {
    around(libm::pow(x.wide(), y.wide()), POW, 2 * T::ulps(POW))
}

/// The largest sine or cosine of any device, with the ulp of [`end_bounds`].
pub(super) fn beyond_one<T: Real>(op: Unary) -> T {
    moved(T::of(1.0), 2 * T::ulps(error(op)), T::next_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_two_below_the_normal_numbers_may_be_zero_in_f32() {
        let (low, high) = bounds::<f32>(Unary::Exp2, -140.0);
        assert!(low <= 0.0 && high >= 2f32.powi(-140));
        assert!(end_bounds::<f32>(Unary::Exp2, -140.0).0 <= 0.0);
        assert!(bounds::<f32>(Unary::Exp2, -125.0).0 > 0.0);
        assert!(bounds::<f64>(Unary::Exp2, -140.0).0 > 0.0 && bounds::<f32>(Unary::Exp, -95.0).0 > 0.0);
    }
}
