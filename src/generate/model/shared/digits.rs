//! Layouts of sums. Threads move the elements at sums: an offset of the thread plus an offset of the value. If no digit
//! of a coordinate carries, a layout's value at the sum is the sum of its values. Then each side shows by itself what
//! holds for all pairs.

use crate::layout::Layout;

/// For each of `first` and each of `second` a value, so that `layout.at(a + b)` is the sum of both values for every pair, and no pair
/// lies outside of the layout; `None` where a digit might carry.
///
/// ```text
/// (4,8):(8,1), first 0..4, second 0,4,8: no digit carries, values 0,8,16,24 and 0,1,2.
/// (4,8):(8,1), first 0..4, second 0,1:   3 + 1 carries.
/// ```
pub(crate) fn apart(layout: &Layout, first: &[i64], second: &[i64]) -> Option<[Vec<i64>; 2]> {
    // Every value, and a digit's addition to it, is below the cosize.
    layout.cosize().ok()?;
    let (extents, strides) = (layout.shape().ints()?, layout.stride().ints()?);
    let mut sides = [Side::new(first)?, Side::new(second)?];
    for (extent, stride) in extents.into_iter().zip(strides) {
        let most: i64 = sides.iter_mut().map(|side| side.digit(extent, stride)).sum();
        if most >= extent {
            return None;
        }
    }
    let inside = sides.iter().all(|side| side.rest.iter().all(|rest| *rest == 0));
    inside.then(|| sides.map(|side| side.values))
}

/// The indices of one side, as far as their digits have not been taken off, and the values of those that have been.
struct Side {
    rest: Vec<i64>,
    values: Vec<i64>,
}

impl Side {
    fn new(indices: &[i64]) -> Option<Self> {
        let natural = indices.iter().all(|index| *index >= 0);
        natural.then(|| Self { rest: indices.to_vec(), values: vec![0; indices.len()] })
    }

    /// Takes off the lowest digit, and returns the largest value of one.
    fn digit(&mut self, extent: i64, stride: i64) -> i64 {
        if extent.count_ones() == 1 {
            let bits = extent.trailing_zeros();
            self.take(stride, |rest| (rest & (extent - 1), rest >> bits))
        } else {
            self.take(stride, |rest| (rest % extent, rest / extent))
        }
    }

    fn take(&mut self, stride: i64, split: impl Fn(i64) -> (i64, i64)) -> i64 {
        let mut most = 0;
        for (rest, value) in self.rest.iter_mut().zip(&mut self.values) {
            let (digit, above) = split(*rest);
            most = most.max(digit);
            *value += digit * stride;
            *rest = above;
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{IntTuple, make_layout};
    use proptest::test_runner::{Config, RngSeed};

    fn leaves(pairs: &[(i64, i64)]) -> Layout {
        Layout::from_modes(pairs.iter().map(|(s, d)| Layout::mode_of(*s, *d).expect("a leaf"))).expect("a layout")
    }

    /// Whether the values are right, pair by pair.
    fn holds(layout: &Layout, first: &[i64], second: &[i64], [a, b]: &[Vec<i64>; 2]) -> bool {
        (first.iter().zip(a)).all(|(i, u)| {
            let right = |(j, v): (&i64, &i64)| i + j < layout.size() && layout.at(i + j) == Ok(u + v);
            second.iter().zip(b).all(right)
        })
    }

    proptest::proptest! {
        #![proptest_config(Config { rng_seed: RngSeed::Fixed(0x5eed_50b5), failure_persistence: None, ..Config::default() })]

        /// For any indices, the values of the separate digits are right.
        #[test]
        fn the_sum_of_values_is_the_value_of_the_sum(
            pairs in proptest::collection::vec((1_i64..7, -3_i64..40), 1..5),
            first in proptest::collection::vec(-1_i64..60, 1..6),
            second in proptest::collection::vec(0_i64..60, 1..6),
        ) {
            let layout = leaves(&pairs);
            if let Some(values) = apart(&layout, &first, &second) {
                proptest::prop_assert!(holds(&layout, &first, &second, &values));
            }
        }

        /// Threads and values that divide a tile mode by mode are taken apart.
        #[test]
        fn what_divides_a_tile_is_taken_apart(
            modes in proptest::collection::vec((1_i64..5, 1_i64..5, 0_i64..9), 1..4),
        ) {
            let tile = make_layout(&IntTuple::tuple(modes.iter().map(|(a, b, _)| IntTuple::int(a * b))).expect("a shape"));
            let tile = tile.expect("a layout");
            let steps = || tile.stride().ints().expect("integers").into_iter().zip(&modes);
            let low: Vec<(i64, i64)> = steps().map(|(step, (a, _, _))| (*a, step)).collect();
            let high: Vec<(i64, i64)> = steps().map(|(step, (a, b, _))| (*b, a * step)).collect();
            let [first, second] = [low, high].map(|pairs| leaves(&pairs).values().expect("integers"));
            let layout = leaves(&modes.iter().map(|(a, b, stride)| (a * b, *stride)).collect::<Vec<_>>());
            let values = apart(&layout, &first, &second);
            proptest::prop_assert!(values.is_some_and(|values| holds(&layout, &first, &second, &values)));
        }
    }

    #[test]
    fn a_digit_that_carries_is_seen() {
        let layout: Layout = "(4,8):(8,1)".parse().expect("a layout");
        assert_eq!(apart(&layout, &[0, 1, 2, 3], &[0, 4, 8]), Some([vec![0, 8, 16, 24], vec![0, 1, 2]]));
        assert_eq!(apart(&layout, &[0, 1, 2, 3], &[0, 1]), None);
        // Outside of the layout, before and behind it.
        assert_eq!((apart(&layout, &[0, 16], &[0, 16]), apart(&layout, &[-1], &[1])), (None, None));
    }
}
