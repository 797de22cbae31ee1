//! Inputs that depend on a seed and a coordinate only: the same on every machine, for every leading dimension.

use super::host::Tensor;
use super::parallel::{self, GRAIN};
use super::scalar::{Scalar, with_scalar};
use crate::dtype::DType;
use crate::settings::named;

named! {
    /// The values that fill a matrix.
    Fill, "kind of input":
    /// Integers from -8 to 8, each as likely: short sums and products of them are exact in every element type.
    Integers = "integers",
    /// Integers from -2 to 2, equally likely. Rates of products are quoted for these: a GPU at the limit of its power
    /// is slower the more bits change.
    Small = "small",
    /// Mean 0, variance 1, close to a normal distribution, within +-4.9: a sum of uniform numbers, so that no
    /// mathematical library takes part and every machine gets the same bits.
    Normal = "normal",
    /// One quarter NaN, infinities, zeros of both signs, smallest and largest numbers, subnormals; one quarter any bits;
    /// the rest as [`Fill::Normal`].
    Specials = "specials",
}

/// What the integers of an operand say of an extent of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Numbers {
    /// Its coordinates, any as likely: an index names rows of a table.
    Coordinates,
    /// Its coordinates, none of them twice: each row of a result has a place of its own.
    Distinct,
    /// Ends of groups that divide it, ascending.
    Ends,
    /// How many of its coordinates each group has.
    Counts,
    /// Several numbers of fewer bits in each: any bits.
    Packed,
}

/// A prime: its multiples visit each coordinate of an extent that it does not divide.
const STEP: i64 = 7919;

impl Numbers {
    /// Element `at` of so many; `random` is a word of its own.
    fn element(self, extent: i64, (at, size): (i64, i64), random: u64) -> i64 {
        let step = if extent % STEP == 0 { 1 } else { STEP };
        match self {
            Numbers::Coordinates => (random % extent.max(1).unsigned_abs()) as i64,
            Numbers::Distinct if at < extent => (at % extent * step + extent / 2) % extent,
            // More elements than coordinates: what remains names none.
            Numbers::Distinct => -1,
            Numbers::Ends => (i128::from(extent) * i128::from(at + 1) / i128::from(size)) as i64,
            Numbers::Counts => (random % (extent.max(0).unsigned_abs() + 1)) as i64,
            Numbers::Packed => (random as i32).into(),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) with random access:
/// `at(n)` is the n-th output of the generator that starts at the seed.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The n-th output, from 0.
    pub fn at(self, n: u64) -> u64 {
        let mut z = self.0.wrapping_add(Self::GAMMA.wrapping_mul(n.wrapping_add(1)));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Three random words for each element.
const WORDS: u64 = 3;

/// From `-most` to `most`.
fn integer(word: u64, most: u64) -> f64 {
    // The upper half times their number, over 2^32: from 0 on.
    (((word >> 32) * (2 * most + 1)) >> 32) as f64 - most as f64
}

fn normal([a, b]: [u64; 2]) -> f64 {
    let parts = |w: u64| (w & 0xffff) + (w >> 16 & 0xffff) + (w >> 32 & 0xffff) + (w >> 48);
    // Eight uniform numbers from 0 to 65535 have mean 8 * 32767.5 and variance 8 * (65536^2 - 1) / 12.
    let centered = (parts(a) + parts(b)) as f64 - 262_140.0;
    f64::from((centered / 53_509.913_6) as f32)
}

fn special<T: Scalar>(word: u64) -> T {
    let one = T::nearest(1.0).bits();
    let inf = T::nearest(f64::INFINITY).bits();
    let sign = T::nearest(-0.0).bits();
    let least_normal = inf & !(inf << 1);
    // Magnitudes: zero, smallest and largest subnormal, smallest and largest normal, numbers around 1, Inf, NaN.
    let table = [0, 1, least_normal - 1, least_normal, inf - 1, one - 1, one, one + 1, inf, inf | T::QUIET];
    let pick = table[(word >> 1) as usize % table.len()];
    T::of_bits(pick | if word & 1 == 1 { sign } else { 0 })
}

/// Any bits. All NaNs become one, so that the marks of the verifier stay its own.
fn any<T: Scalar>(word: u64) -> T {
    let value = T::of_bits(word);
    if value.is_nan() { T::nearest(f64::NAN) } else { value }
}

fn element<T: Scalar>(fill: Fill, random: SplitMix64, index: u64) -> T {
    let word = |k: u64| random.at(index.wrapping_mul(WORDS).wrapping_add(k));
    match fill {
        // Truth values are each as likely; among the specials they are any byte.
        Fill::Integers | Fill::Small | Fill::Normal if T::DTYPE == DType::Bool => T::of_bits(word(0) >> 63),
        Fill::Integers => T::nearest(integer(word(0), 8)),
        Fill::Small => T::nearest(integer(word(0), 2)),
        Fill::Normal => T::nearest(normal([word(0), word(1)])),
        Fill::Specials => match word(2) & 3 {
            0 => special(word(0)),
            1 => any(word(0)),
            _ => T::nearest(normal([word(0), word(1)])),
        },
    }
}

impl Tensor {
    /// Fills the elements; redzones and gaps keep their pattern.
    pub fn fill(&mut self, fill: Fill, seed: u64) {
        let random = SplitMix64(seed);
        with_scalar!(self.dtype(), T => self.set_each::<T>(|index| element(fill, random, index)));
    }

    /// The same; where the elements are numbers that say something of an extent, such numbers.
    pub fn fill_of(&mut self, numbers: Option<(Numbers, i64)>, fill: Fill, seed: u64) {
        let Some((numbers, extent)) = numbers else { return self.fill(fill, seed) };
        let (random, size) = (SplitMix64(seed), self.size() as i64);
        self.set_each::<i32>(|index| numbers.element(extent, (index as i64, size), random.at(index)) as i32);
    }

    /// Makes each element its magnitude, on all cores.
    pub fn make_absolute(&mut self) {
        with_scalar!(self.dtype(), T => if let Some(span) = self.span_mut::<T>() {
            let parts = (span.len() as u64).div_ceil(GRAIN);
            parallel::slices(span, parts, |part| ((part + 1) * GRAIN) as usize, |_, _, elements| {
                elements.iter_mut().for_each(|x| *x = T::nearest(x.value().abs()));
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::TensorLayout;

    fn values(dtype: DType, fill: Fill, seed: u64, layout: TensorLayout) -> Vec<u64> {
        let mut m = Tensor::new(dtype, layout).expect("small");
        m.fill(fill, seed);
        assert!(m.guards().hold(), "filling stays inside");
        (0..m.rows()).flat_map(|i| (0..m.cols()).map(move |j| (i, j))).filter_map(|(i, j)| m.bits(i, j)).collect()
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // Published outputs of the reference implementation for seed 1234567.
        let first: Vec<u64> = (0..3).map(|n| SplitMix64(1_234_567).at(n)).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn inputs_depend_on_seed_and_coordinate_only() {
        for dtype in DType::ALL {
            for fill in Fill::ALL {
                let dense = values(*dtype, *fill, 7, TensorLayout::contiguous(5, 9));
                assert_eq!(dense, values(*dtype, *fill, 7, TensorLayout::padded(5, 9, 16)), "{dtype} {fill}");
                assert_ne!(dense, values(*dtype, *fill, 8, TensorLayout::contiguous(5, 9)), "{dtype} {fill}");
            }
        }
    }

    fn numbers(numbers: Numbers, extent: i64, size: i64) -> Vec<i32> {
        let mut tensor = Tensor::new(DType::I32, TensorLayout::contiguous(1, size as u64)).expect("small");
        tensor.fill_of(Some((numbers, extent)), Fill::Normal, 11);
        (0..size as u64).map(|at| tensor.bits(0, at).expect("inside") as i32).collect()
    }

    #[test]
    fn numbers_say_what_they_are_for() {
        for extent in [0, 1, 5, 7919, 7920] {
            let places = numbers(Numbers::Distinct, extent, 6);
            let inside: std::collections::BTreeSet<_> = places.iter().filter(|place| **place >= 0).collect();
            assert_eq!(inside.len() as i64, extent.min(6), "{places:?} of {extent}");
            assert!(places.iter().all(|place| i64::from(*place) < extent), "{places:?} of {extent}");
            let counts = numbers(Numbers::Counts, extent, 64);
            assert!(counts.iter().all(|count| (0..=extent).contains(&i64::from(*count))), "{counts:?} of {extent}");
        }
        assert_eq!(numbers(Numbers::Ends, 10, 4), [2, 5, 7, 10]);
        assert_eq!(numbers(Numbers::Ends, i32::MAX.into(), 2), [i32::MAX / 2, i32::MAX]);
        let rows = numbers(Numbers::Coordinates, 3, 200);
        assert!((0..3).all(|row| rows.contains(&row)) && rows.iter().all(|row| (0..3).contains(row)), "{rows:?}");
    }

    #[test]
    fn normal_has_mean_0_and_variance_1() {
        let random = SplitMix64(3);
        let all: Vec<f64> = (0..1 << 16).map(|i| f64::from(element::<f32>(Fill::Normal, random, i))).collect();
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        // Three standard errors of each: 1/256 and sqrt(2)/256 (a little less for this distribution).
        assert!(mean.abs() < 3.0 / 256.0 && (variance - 1.0).abs() < 3.0 * 1.42 / 256.0, "{mean} {variance}");
    }

    #[test]
    fn integers_reach_both_ends_and_specials_hold_every_class() {
        let random = SplitMix64(5);
        let integers: std::collections::BTreeSet<i32> =
            (0..4096).map(|i| element::<half::bf16>(Fill::Integers, random, i).value() as i32).collect();
        assert_eq!(integers, (-8..=8).collect());
        let small =
            |value: i32| (0..40_000).filter(|i| element::<f32>(Fill::Small, random, *i) as i32 == value).count();
        // 8000 of each, give or take five standard deviations; the rest is none of them.
        let counts: Vec<usize> = (-2..=2).map(small).collect();
        assert!(counts.iter().all(|count| count.abs_diff(8000) < 400), "{counts:?}");
        assert_eq!(counts.iter().sum::<usize>(), 40_000);
        let specials: Vec<f64> = (0..4096).map(|i| element::<half::f16>(Fill::Specials, random, i).value()).collect();
        let has = |what: &str, test: fn(&f64) -> bool| assert!(specials.iter().any(test), "no {what}");
        has("NaN", |x| x.is_nan());
        has("Inf", |x| *x == f64::INFINITY);
        has("-Inf", |x| *x == f64::NEG_INFINITY);
        has("+0", |x| x.to_bits() == 0);
        has("-0", |x| x.to_bits() == 1 << 63);
        has("a subnormal", |x| *x != 0.0 && x.abs() < 6.1e-5);
        has("the largest number", |x| *x == 65504.0);
        has("something usual", |x| (0.5..2.0).contains(x));
    }
}
