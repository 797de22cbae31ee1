//! Random layouts: nested, with extents and strides that divide each other often, and sometimes not.

use cute_layout::layout::{IntTuple, Layout};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::variables;

/// Fixed seed, fixed number of cases: a failure here is a failure everywhere.
pub(crate) fn config() -> ProptestConfig {
    let cases = variables::number("CUTE_LAYOUT_LAW_CASES").map_or(12_000, |n| n as u32);
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x5eed_1a70),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

fn extent() -> impl Strategy<Value = i64> {
    prop_oneof![6 => prop::sample::select(vec![2i64, 3, 4, 6, 8]), 2 => Just(1i64), 1 => prop::sample::select(vec![5i64, 7, 9, 12])]
}

fn stride() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => prop::sample::select(vec![1i64, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]),
        2 => Just(0i64),
        2 => 1i64..30,
        1 => prop::sample::select(vec![64i64, 96, 100, 144, 256]),
    ]
}

/// A layout of one to `most` leaves in a random nesting, of at most `size` coordinates.
pub(crate) fn layout_of(most: usize, size: i64, strides: BoxedStrategy<i64>) -> BoxedStrategy<Layout> {
    (prop::collection::vec((extent(), strides), 1..=most), any::<u8>())
        .prop_map(move |(mut leaves, nesting)| {
            while leaves.iter().map(|(s, _)| s).product::<i64>() > size {
                leaves.pop();
            }
            if leaves.is_empty() {
                leaves.push((1, 0));
            }
            nested(&leaves, nesting)
        })
        .boxed()
}

/// Any layout of up to four leaves and 128 coordinates.
pub(crate) fn layout() -> BoxedStrategy<Layout> {
    layout_of(4, 128, stride().boxed())
}

/// Also negative strides.
pub(crate) fn signed_layout() -> BoxedStrategy<Layout> {
    let signed = (stride(), prop::bool::weighted(0.2)).prop_map(|(d, minus)| if minus { -d } else { d });
    layout_of(4, 128, signed.boxed())
}

/// A compact layout: its strides are the prefix products in a random order of its leaves.
pub(crate) fn compact() -> BoxedStrategy<Layout> {
    (prop::collection::vec((extent(), any::<u16>()), 1..=5), any::<u8>())
        .prop_map(|(mut leaves, nesting)| {
            while leaves.iter().map(|(s, _)| s).product::<i64>() > 64 && leaves.len() > 1 {
                leaves.pop();
            }
            let mut order: Vec<usize> = (0..leaves.len()).collect();
            order.sort_by_key(|&i| leaves[i].1);
            let mut strides = vec![0; leaves.len()];
            let mut next = 1;
            for i in order {
                strides[i] = next;
                next *= leaves[i].0;
            }
            let pairs: Vec<(i64, i64)> = leaves.iter().map(|(s, _)| *s).zip(strides).collect();
            nested(&pairs, nesting)
        })
        .boxed()
}

/// A compact layout of nine to sixteen leaves, more than are kept in place; most of them have one coordinate.
pub(crate) fn many_leaves() -> BoxedStrategy<Layout> {
    (compact(), prop::collection::vec((0usize..6, stride()), 8..=11), any::<u8>())
        .prop_map(|(few, ones, nesting)| {
            let ints = |tuple: &IntTuple| tuple.ints().expect("integers").to_vec();
            let mut leaves: Vec<(i64, i64)> = ints(few.shape()).into_iter().zip(ints(few.stride())).collect();
            for (at, d) in ones {
                leaves.insert(at.min(leaves.len()), (1, d));
            }
            nested(&leaves, nesting)
        })
        .boxed()
}

/// Groups leaves by the bits of a number.
fn nested(leaves: &[(i64, i64)], nesting: u8) -> Layout {
    let group = |from: &[(i64, i64)]| {
        let modes: Vec<Layout> =
            from.iter().map(|(s, d)| Layout::mode_of(*s, *d).expect("an extent of at least 1")).collect();
        if modes.len() == 1 { modes[0].clone() } else { Layout::from_modes(modes).expect("few modes") }
    };
    let cut = usize::from(nesting >> 2) % (leaves.len() + 1);
    match (nesting & 3, cut) {
        (0 | 1, _) => group(leaves),
        (2, cut) if cut > 0 && cut < leaves.len() => {
            Layout::from_modes([group(&leaves[..cut]), group(&leaves[cut..])]).expect("two modes")
        }
        (3, cut) if cut > 0 && cut < leaves.len() => {
            let mut modes: Vec<Layout> = leaves[..cut].iter().map(|leaf| group(&[*leaf])).collect();
            modes.push(group(&leaves[cut..]));
            Layout::from_modes(modes).expect("few modes")
        }
        _ => Layout::from_modes([group(leaves)]).expect("one mode"),
    }
}

/// A shape in a random nesting.
pub(crate) fn shape() -> BoxedStrategy<IntTuple> {
    layout().prop_map(|layout| layout.shape().clone()).boxed()
}
