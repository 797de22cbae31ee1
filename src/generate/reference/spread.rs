//! How far rounded sums of products may be from exact ones, and the bounds of terms that are added in any order.

use super::tf32;
use crate::expr::{Bounds, Compute};
use crate::plan::Arithmetic;

/// Half the distance between 1 and the next f32: the largest relative error of one rounding.
pub(super) const U: f64 = 1.0 / 16_777_216.0;
/// Up to here, every integer is an f32.
pub(super) const EXACT: f64 = 16_777_216.0;
/// As [`U`], of f64.
const U64: f64 = 1.0 / EXACT64;
/// Up to here, every integer is an f64.
const EXACT64: f64 = 9_007_199_254_740_992.0;

/// Products of 8-bit floats that a tensor core adds at a time, at least.
const FEWEST_FP8: usize = 16;
/// Up to here, every integer has 14 bits, and no term of a sum of them has one below 13 of the largest.
const EXACT_FP8: f64 = 16_384.0;

/// The largest size of some factors.
pub(super) fn largest(factors: impl Iterator<Item = f32>) -> f64 {
    factors.fold(0.0, |largest, x| largest.max(f64::from(x.abs())))
}

/// How far rounded sums of K products may be from exact ones.
///
/// In a tree of K products with any shape, each product is rounded once and takes part in at most K - 1 rounded
/// additions. Adding 0 is exact, so split-K, and zeros beyond the edge of a matrix, add nothing. So the sum is a sum of
/// `a * b * (1 + d)` with `|d| <= (1 + u)^K - 1 <= e^(K u) - 1`. A product below the normal numbers is off by at most
/// half of the smallest subnormal, 2^-150. That error grows no more than twice if K u is below ln 2, and else by e^(K
/// u).
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) relative: f64,
    pub(super) absolute: f64,
    /// The largest number, beyond which a sum is infinite.
    largest: f64,
    /// Up to here, every integer is a number.
    exact: f64,
    /// How many roundings a term takes part in.
    depth: u64,
}

impl Spread {
    /// For sums of K products on tensor cores, or in f32.
    ///
    /// A tensor core adds exact products of 16-bit factors and an accumulator, at least 4 products at a time, at the
    /// exponent of the largest term. It cuts off bits below 24 there, and once more when it normalizes (M. Fasi et al.,
    /// "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330, 2021). That makes 6 cuts for 4
    /// products, each of less than 2u times the sum of sizes: no more than 12 roundings. More products at a time have
    /// fewer cuts each.
    pub(super) fn of(k: usize, arithmetic: Arithmetic) -> Self {
        match arithmetic {
            Arithmetic::F32 => Self::new(k),
            Arithmetic::TensorCores | Arithmetic::Tf32 => Self::new(k.div_ceil(4) * 12),
            Arithmetic::Fp8 { promoted } => Self::of_fp8(k, promoted as usize),
            // A launch refuses a K whose sums may not fit into an i32.
            Arithmetic::Int8 => Self { exact: EXACT64, ..Self::new(0) },
        }
    }

    /// For sums of K products of 8-bit floats on tensor cores, added to a sum in f32 after each `promoted` of them, unless that is 0.
    ///
    /// A tensor core adds exact products and an accumulator, at least 16 products at a time. It cuts all of them off 13 bits below the
    /// exponent of the largest, and then the sum below its upper 14 bits (P. Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor
    /// Cores and Matrix Cores", arXiv 2511.10909). What is cut off only makes a term smaller, so no sum is larger than its terms'
    /// sizes together, S. Let u = 2^-13. A cut takes less than u S, and no more than the term. So an addition takes less than u S from
    /// the accumulator and from its result, and all of them less than K u S from the products, and no more than S.
    ///
    /// A sum in f32 then has all of these, and rounds once for each of them.
    fn of_fp8(k: usize, promoted: usize) -> Self {
        let u = 1.0 / 8192.0;
        let together = if promoted == 0 { k } else { promoted.min(k) };
        let cut = 2.0 * u * together.div_ceil(FEWEST_FP8) as f64 + (u * together as f64).min(1.0);
        let in_f32 = Self::new(k.div_ceil(FEWEST_FP8));
        Self { relative: cut + in_f32.relative * (1.0 + cut), exact: EXACT_FP8, ..in_f32 }
    }

    /// The same with each factor rounded first: by a relative error, or by half of the distance between the smallest
    /// numbers.
    pub(super) fn of_rounded(self, k: usize, factors: impl Iterator<Item = f32>) -> Self {
        let largest = largest(factors);
        // (1 + u)^2 - 1 for both factors of a product.
        let (share, least) = ((2.0 + tf32::SHARE) * tf32::SHARE, tf32::LEAST * (2.0 * largest + tf32::LEAST));
        Self {
            relative: self.relative + share * (1.0 + self.relative),
            absolute: self.absolute + k as f64 * least * (1.0 + self.relative),
            ..self
        }
    }

    /// The same for sizes that are sums of `|a| |b|`, of factors that are (at most this large, count as at least that large).
    pub(super) fn of_small(self, k: usize, [(a, least_a), (b, least_b)]: [(f64, f64); 2]) -> Self {
        let uncounted = k as f64 * (least_a * b + a * least_b + least_a * least_b);
        Self { absolute: self.absolute + self.relative * uncounted, ..self }
    }

    pub(super) fn new(k: usize) -> Self {
        Self::of_sum(k as u64, k as u64, Compute::F32)
    }

    /// For sums of so many numbers, each of which takes part in at most `depth` roundings in that type of floats.
    pub(super) fn of_sum(terms: u64, depth: u64, compute: Compute) -> Self {
        let (unit, smallest, largest, exact) = match compute {
            Compute::F64 => (U64, f64::from_bits(1), f64::MAX, EXACT64),
            _ => (U, f64::from(f32::from_bits(1)), f64::from(f32::MAX), EXACT),
        };
        // The reference and the sum of sizes are sums of K numbers in f64 themselves: each is off by (1 + 2^-53)^K - 1.
        // The lines here add some roundings; twice as many are taken.
        let reference = 4.0 * (terms as f64 + 16.0) * U64;
        let relative = (libm::expm1(depth as f64 * unit) + reference) * (1.0 + 2.0 * reference);
        Self { relative, absolute: terms as f64 * smallest * (1.0 + relative), largest, exact, depth }
    }

    /// How many roundings a term takes part in.
    pub(super) fn depth(self) -> u64 {
        self.depth
    }

    /// The largest relative error of one rounding.
    pub(super) fn unit(self) -> f64 {
        1.0 / self.exact
    }

    /// The smallest number above 0.
    pub(super) fn smallest(self) -> f64 {
        if self.largest == f64::MAX { f64::from_bits(1) } else { f64::from(f32::from_bits(1)) }
    }

    /// The largest number.
    pub(super) fn largest(self) -> f64 {
        self.largest
    }

    /// Up to here, every integer is a number.
    pub(super) fn exact(self) -> f64 {
        self.exact
    }

    /// The smallest number with all its digits.
    pub(super) fn normal(self) -> f64 {
        if self.largest == f64::MAX { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) }
    }

    pub(super) fn error(self, size: f64) -> f64 {
        size * self.relative + self.absolute
    }

    /// The largest rounded sum of products that sum up to `size` in absolute value.
    pub(super) fn greatest(self, size: f64) -> f64 {
        size + self.error(size)
    }
}

/// Bounds of the terms so far.
#[derive(Clone, Default)]
pub(super) struct Terms {
    low: f64,
    high: f64,
    positive: f64,
    negative: f64,
    /// Whether all are integers, and each the only value that is right.
    integers: bool,
    nan: bool,
    maybe_nan: bool,
    /// Whether some term is, or may be, infinite: upwards, downwards.
    infinite: [bool; 2],
    maybe_infinite: [bool; 2],
}

impl Terms {
    /// None yet; `integers`: whether sums of integers may be taken for exact.
    pub(super) fn new(integers: bool) -> Self {
        Self { integers, ..Self::default() }
    }

    /// Adds a term of this range, `None` where it is NaN only.
    pub(super) fn add(&mut self, range: Option<(f64, f64)>, may_be_nan: bool) {
        self.maybe_nan |= may_be_nan;
        let Some((low, high)) = range else {
            self.nan = true;
            return;
        };
        self.infinite[0] |= low == f64::INFINITY;
        self.infinite[1] |= high == f64::NEG_INFINITY;
        self.maybe_infinite[0] |= high == f64::INFINITY;
        self.maybe_infinite[1] |= low == f64::NEG_INFINITY;
        self.integers &= low == high && !may_be_nan && low.is_finite() && low.fract() == 0.0;
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        self.low += finite(low);
        self.high += finite(high);
        self.positive += finite(high).max(0.0);
        self.negative += (-finite(low)).max(0.0);
    }

    /// Adds the terms of another.
    pub(super) fn join(&mut self, other: &Self) {
        self.low += other.low;
        self.high += other.high;
        self.positive += other.positive;
        self.negative += other.negative;
        self.integers &= other.integers;
        self.nan |= other.nan;
        self.maybe_nan |= other.maybe_nan;
        for side in 0..2 {
            self.infinite[side] |= other.infinite[side];
            self.maybe_infinite[side] |= other.maybe_infinite[side];
        }
    }

    /// Bounds of the sum of the terms in any order, each addition rounded.
    pub(super) fn bounds(&self, spread: Spread) -> Bounds {
        let size = self.positive + self.negative;
        let overflows = |size: f64| spread.greatest(size) > spread.largest;
        let may =
            [self.maybe_infinite[0] || overflows(self.positive), self.maybe_infinite[1] || overflows(self.negative)];
        match self.infinite {
            _ if self.nan => Bounds::point(f64::NAN),
            [true, true] => Bounds::point(f64::NAN),
            [true, _] => Bounds::point(f64::INFINITY).or_nan(self.maybe_nan || may[1]),
            [_, true] => Bounds::point(f64::NEG_INFINITY).or_nan(self.maybe_nan || may[0]),
            // What began with 0 is never -0.
            _ if self.integers && size <= spread.exact => Bounds::point(self.low + 0.0),
            _ => {
                let error = spread.error(size);
                let low = if may[1] { f64::NEG_INFINITY } else { self.low - error };
                let high = if may[0] { f64::INFINITY } else { self.high + error };
                Bounds::between(low, high).or_nan(self.maybe_nan || may[0] && may[1])
            }
        }
    }
}
