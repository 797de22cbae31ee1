//! Laws of intervals: whatever is done to members, the interval of results contains it; points decide.

use core::marker::PhantomData;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Interval, Intervals};
use crate::dtype::DType;
use crate::expr::domain::{Domain, Plain};
use crate::expr::op::{Binary, Comparison, Unary};
use crate::expr::real::{self, Real};

const SPECIAL: [f32; 12] =
    [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, 0.5, 2.0, 3e38, 1e-45, -2.5, core::f32::consts::PI];

fn number() -> impl Strategy<Value = f32> {
    prop_oneof![2 => prop::sample::select(SPECIAL.to_vec()), 2 => -8.0f32..8.0, 1 => any::<f32>()]
        .prop_filter("a number", |x| !x.is_nan())
}

/// An interval, perhaps with NaN, and some of its members.
fn interval() -> impl Strategy<Value = (Interval<f32>, Vec<f32>)> {
    (number(), number(), prop::bool::weighted(0.2), prop::bool::weighted(0.3), number()).prop_map(
        |(x, y, nan, point, inside)| {
            let (low, high) = if point { (x, x) } else { (x.smaller(y), x.larger(y)) };
            let interval = Interval { low, high, nan };
            let candidates = SPECIAL.into_iter().chain([inside, low.next_up(), high.next_down()]);
            let mut members: Vec<f32> = candidates.filter(|x| !x.before(low) && !high.before(*x)).collect();
            members.extend([low, high]);
            members.extend(nan.then_some(f32::NAN));
            (interval, members)
        },
    )
}

fn contains(interval: Interval<f32>, x: f32) -> bool {
    if x.is_nan() { interval.nan } else { !x.before(interval.low) && !interval.high.before(x) }
}

/// The extreme results of a device: both ends of its error.
fn unary(op: Unary, x: f32) -> [f32; 2] {
    if real::is_approximate(op) {
        let (low, high) = real::bounds(op, x);
        [low, high]
    } else {
        [Plain::new().unary(op, x); 2]
    }
}

fn binary(op: Binary, x: f32, y: f32) -> [f32; 2] {
    match op {
        Binary::Pow => {
            let (low, high) = real::power_bounds(x, y);
            [low, high]
        }
        Binary::Min | Binary::Max => [Plain::new().binary(op, x, y), Plain::new().binary(op, y, x)],
        _ => [Plain::new().binary(op, x, y); 2],
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20000,
        rng_seed: RngSeed::Fixed(0x5eed_1a7e),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn results_of_members_are_members_of_results(
        (a, xs) in interval(), (b, ys) in interval(), (c, zs) in interval(), limit in 0.0f64..1e4,
    ) {
        let mut intervals = Intervals::<f32>(PhantomData);
        let mut plain = Plain::<f32>::new();
        for op in Unary::ALL.iter().filter(|op| crate::expr::helpers::expansion(**op).is_none()) {
            let result = intervals.unary(*op, a);
            for x in &xs {
                for y in unary(*op, *x) {
                    prop_assert!(contains(result, y), "{op:?} {x:?} = {y:?} not in {result:?}");
                }
            }
        }
        for op in Binary::ALL {
            let result = intervals.binary(*op, a, b);
            for (x, y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (*x, *y))) {
                for z in binary(*op, x, y) {
                    prop_assert!(contains(result, z), "{op:?} {x:?} {y:?} = {z:?} not in {result:?}");
                }
            }
        }
        for op in Comparison::ALL {
            let result = intervals.compare(*op, a, b);
            for (x, y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (*x, *y))) {
                let holds = plain.compare(*op, x, y);
                prop_assert!(if holds { result.yes } else { result.no }, "{x:?} {op:?} {y:?} not in {result:?}");
            }
            let points = a.as_point().is_some() && b.as_point().is_some();
            prop_assert!(!points || result.yes != result.no, "{op:?} of points is decided");
        }
        let fused = intervals.fma([a, b, c]);
        for (x, y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (*x, *y))) {
            for z in &zs {
                let sum = plain.fma([x, y, *z]);
                prop_assert!(contains(fused, sum), "fma {x:?} {y:?} {z:?} = {sum:?} not in {fused:?}");
            }
        }
        for dtype in DType::ALL {
            let result = intervals.cast(*dtype, a);
            for x in &xs {
                let y = plain.cast(*dtype, *x);
                prop_assert!(contains(result, y), "{x:?} as {dtype} = {y:?} not in {result:?}");
            }
        }
        let clamped = intervals.clamp(a, (-limit, limit));
        for x in xs {
            prop_assert!(contains(clamped, plain.clamp(x, (-limit, limit))));
        }
    }

    #[test]
    fn what_ieee_determines_keeps_points(x in number(), y in number(), z in number()) {
        let mut intervals = Intervals::<f32>(PhantomData);
        let [a, b, c] = [x, y, z].map(Interval::point);
        let is_point = |i: Interval<f32>| i.as_point().is_some() || (i.nan && i.is_empty());
        for op in [Unary::Neg, Unary::Abs, Unary::Relu, Unary::Sqrt] {
            prop_assert!(is_point(intervals.unary(op, a)), "{op:?} {x:?}");
        }
        for op in [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div] {
            prop_assert!(is_point(intervals.binary(op, a, b)), "{op:?} {x:?} {y:?}");
        }
        prop_assert!(is_point(intervals.fma([a, b, c])));
        prop_assert!(x == y || x.min(y) == 0.0 || is_point(intervals.binary(Binary::Min, a, b)));
        for dtype in DType::ALL {
            prop_assert!(is_point(intervals.cast(*dtype, a)));
        }
    }
}
