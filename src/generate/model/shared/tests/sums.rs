//! One request stands for its kind: accesses that are sums, against the same requests one by one.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;
use crate::layout::{Layout, Swizzle};
use crate::model::shared::{Source, Sums};

type Leaves = Vec<(i64, i64)>;

fn values(leaves: &[(i64, i64)]) -> Vec<i64> {
    leaves.iter().fold(vec![0], |all, (extent, stride)| {
        (0..*extent).flat_map(|i| all.iter().map(move |value| value + i * stride)).collect()
    })
}

fn layout(leaves: &[(i64, i64)]) -> Layout {
    Layout::from_modes(leaves.iter().map(|(s, d)| Layout::mode_of(*s, *d).expect("a leaf"))).expect("a layout")
}

/// The same, asked for one by one.
fn one_by_one(op: SharedOp, bytes: Bytes, sums: &Sums) -> WarpAccess {
    let (threads, steps) = (sums.threads.len() as u32, sums.steps.len() as i64);
    let element = |thread: i64, step: i64| Some(sums.threads[thread as usize] + sums.steps[step as usize]);
    let Some(source) = &sums.source else { return WarpAccess::new("access", op, bytes, threads, steps, element) };
    let read = |thread: i64, step: i64| source.threads[thread as usize] + source.steps[step as usize];
    let read = |thread: i64, step: i64| source.layout.at(read(thread, step)).expect("small");
    WarpAccess::copy("access", bytes, threads, steps, element, read)
}

/// Leaves of a tile, of powers of two mostly, some for threads and the others for steps; one may be changed.
fn cut() -> impl Strategy<Value = [Leaves; 2]> {
    let extent = prop_oneof![6 => Just(2_i64), 2 => Just(4), 1 => Just(3)];
    let change = prop_oneof![4 => Just(None), 1 => (0_usize..9, 0_i64..40).prop_map(Some)];
    (proptest::collection::vec(extent, 5..10), change, 0_usize..10, 0_usize..3).prop_flat_map(
        |(extents, change, at, vector)| {
            let mut stride = 1;
            let mut leaves: Leaves = Vec::new();
            for extent in extents {
                leaves.push((extent, stride));
                stride *= extent;
            }
            if let Some((place, to)) = change {
                let place = place % leaves.len();
                leaves[place].1 = to;
            }
            // The first elements of vectors.
            let leaves = leaves.split_off(vector);
            Just(leaves).prop_shuffle().prop_map(move |leaves| {
                let (threads, steps) = leaves.split_at(at.min(leaves.len()));
                [threads.to_vec(), steps.to_vec()]
            })
        },
    )
}

/// A tile of rows of `low` elements, `pad` between them, or turned.
fn tile_of(size: i64, low: i64, pad: i64, turned: bool) -> Layout {
    let high = size.div_euclid(low).max(1);
    if turned { layout(&[(low, high + pad), (high, 1)]) } else { layout(&[(low, 1), (high, low + pad)]) }
}

proptest! {
    #![proptest_config(Config {
        rng_seed: RngSeed::Fixed(0x5eed_ba25),
        failure_persistence: None,
        cases: 3000,
        ..Config::default()
    })]

    #[test]
    fn a_kind_has_the_passes_of_each_of_its_requests(
        [threads, steps] in cut(),
        (log, size_log, op) in (0_u32..5, 0_u32..4, 0_usize..3),
        (low, pad, turned) in (0_u32..9, prop_oneof![Just(0_i64), Just(4), 0_i64..9], any::<bool>()),
        swizzle in proptest::option::of((0_i64..4, 0_i64..4, 0_i64..4, any::<bool>())),
        (read, line, along) in (any::<bool>(), 1_i64..200, 1_i64..20),
    ) {
        let extent = |leaves: &Leaves| leaves.iter().map(|(extent, stride)| (extent - 1) * stride).sum::<i64>();
        let reach = extent(&threads) + extent(&steps) + 1;
        let room = (reach as u64).next_power_of_two().max(1 << low) as i64;
        let element = Bytes(1 << size_log.min(log));
        let op = [SharedOp::Load, SharedOp::Store, SharedOp::Copy][op];
        let sums = Sums { threads: values(&threads), steps: values(&steps), source: None };
        // A matrix of rows that lie apart, read in the same order or across.
        let matrix = layout(&[(1 << low, along * element.0 as i64), (room, line)]);
        let source = Source { layout: matrix, threads: sums.threads.clone(), steps: sums.steps.clone() };
        let sums = Sums { source: (op == SharedOp::Copy && read).then_some(source), ..sums };
        let tensor = SharedTensor::new("s", element, tile_of(room, 1 << low, pad, turned)).expect("a tensor");
        let swizzled = swizzle.and_then(|(bits, base, more, down)| {
            let shift = bits + more;
            tensor.clone().with_swizzle(Swizzle::new(bits, base, if down { -shift } else { shift }).expect("a swizzle")).ok()
        });
        let tensor = swizzled.unwrap_or(tensor);
        let each = tensor.clone().with_access(one_by_one(op, Bytes(1 << log), &sums));
        let kinds = tensor.with_access(WarpAccess::of_sums("access", op, Bytes(1 << log), sums));
        prop_assert_eq!(kinds.accesses()[0].requests(), each.accesses()[0].requests());
        prop_assert_eq!(kinds.analyze(), each.analyze());
        if room <= 256 {
            prop_assert_eq!(kinds.swizzles(3), each.swizzles(3));
        }
    }
}

/// The counting is faster because that many requests are of one kind.
#[test]
fn one_request_stands_for_a_tile() {
    let sums =
        Sums { threads: (0..128).map(|t| 4 * t).collect(), steps: (0..16).map(|s| 512 * s).collect(), source: None };
    let access = WarpAccess::of_sums("store", SharedOp::Store, Bytes(16), sums);
    let kinds = |swizzle: Option<&str>, layout: &str| {
        let swizzle: Option<Swizzle> = swizzle.map(|text| text.parse().expect("a swizzle"));
        tile(4, layout).requests(&access, swizzle, swizzle.map_or(1, Swizzle::block)).len()
    };
    assert_eq!((kinds(Some("Sw<3,2,5>"), "(128,64):(1,128)"), kinds(None, "(128,64):(1,132)")), (1, 2));
    // Behind a padding those whose begin shares a bit with a lane are another kind. A digit that carries leaves nothing to say: all are asked for.
    assert_eq!(kinds(None, "(96,96):(1,96)"), 4 * 16);
}
