//! Each step of each output tile is in one piece of work, and each way to miss or repeat one is found.

use super::*;
use crate::int::{Int, IntOp};
use crate::tiling::{Axis, Inner};

/// A tiling with this order and nothing else.
fn tiling(order: Order) -> Tiling {
    Tiling { copies: Vec::new(), smem: Vec::new(), pipelines: Vec::new(), mmas: Vec::new(), order, ..mma_sync() }
}

fn found(order: Order) -> Option<String> {
    let flaws = tiling(order).flaws();
    assert!(flaws.iter().all(|flaw| flaw.law == Law::Order) && flaws.len() < 2, "{flaws:?}");
    flaws.into_iter().next().map(|flaw| flaw.found)
}

/// Rows and columns of a product, K in two parts that CTAs add up.
fn split() -> Order {
    let (mut order, [m, n, k], [x, y, z]) = Order::new([("m", 128), ("n", 64), ("k", 32)], ["x", "y", "z"]);
    let (tiles_m, tiles_n, all) = (m.ceil_div(128), n.ceil_div(64), k.ceil_div(32));
    let half = order.steps.set("half", all.clone().ceil_div(2));
    let first = order.steps.set("first", (z.clone() * half.clone()).op(IntOp::Min, all.clone()));
    let end = (first.clone() + half).op(IntOp::Min, all.clone());
    order.inner = Inner { trips: end - first.clone(), first, tile: [0.into(), all] };
    order.tile = vec![Axis { at: y.clone(), extent: tiles_m.clone() }, Axis { at: x.clone(), extent: tiles_n.clone() }];
    order.pieces =
        vec![Axis { at: x, extent: tiles_n }, Axis { at: y, extent: tiles_m }, Axis { at: z, extent: 2.into() }];
    order
}

/// Causal attention: the keys of a tile of queries end with its last row; a window begins `window` keys before its first.
fn window() -> Order {
    let (mut order, [rows, window], [cta]) = Order::new([("rows", 128), ("window", 128)], ["cta"]);
    let tiles = rows.clone().ceil_div(128);
    let end = order.steps.set("end", ((cta.clone() + 1) * 128).op(IntOp::Min, rows).ceil_div(64));
    let begin = (cta.clone() * 128 - window).op(IntOp::Max, 0) / 64;
    let begin = order.steps.set("begin", begin);
    order.inner = Inner { first: begin.clone(), trips: end.clone() - begin.clone(), tile: [begin, end] };
    order.tile = vec![Axis { at: cta.clone(), extent: tiles.clone() }];
    order.pieces = vec![Axis { at: cta, extent: tiles }];
    order
}

/// Two sequences of lengths of their own in one launch: tiles of queries are numbered through both, and each has the keys of its
/// sequence.
fn of_lengths() -> Order {
    let (mut order, [first, second], [cta]) = Order::new([("first", 64), ("second", 64)], ["cta"]);
    let [first, second] = [first, second].map(|length| length.ceil_div(64));
    let is_second = order.steps.set("is_second", first.clone().at_most(cta.clone()));
    let keys = order.steps.set("keys", is_second.select(second.clone(), first.clone()));
    order.inner = Inner { first: 0.into(), trips: keys.clone(), tile: [0.into(), keys] };
    order.tile = vec![Axis { at: cta.clone(), extent: first.clone() + second.clone() }];
    order.pieces = vec![Axis { at: cta, extent: first + second }];
    order
}

#[test]
fn orders_are_proved() {
    for order in [split(), window(), of_lengths(), Order::numbered(&[("n", 64), ("m", 128), ("l", 1)], Some(("k", 32)))]
    {
        assert_eq!(found(order), None);
    }
    // A grid is read off the pieces, for numbers of a launch by any name.
    let grid = split().extents(&split().pieces, |name| if name == "m" { 1000.into() } else { Int::Value(7) });
    assert_eq!(grid.map(|blocks| blocks.to_string()), ["ceil_div $7 64", "8", "2"]);
    // Tiles of a row are neighbours, and the last of each mode is not whole.
    let rows = Order::numbered(&[("n", 64), ("m", 128)], None);
    let known = rows.known_as(|name| if name == "n" { 129 } else { 200 });
    let tiles: Option<Vec<Vec<i64>>> = rows.tiles(known.clone()).and_then(Iterator::collect);
    assert_eq!(tiles.expect("few"), [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]);
    assert_eq!((rows.count(&known), rows.count(&[i64::MAX; 2])), (Some(6), None));
    let causal = window();
    let trips = |cta| causal.inner.trips.eval(&causal.eval(&[1000, 256], &[cta]).expect("few")).expect("few");
    assert_eq!([0, 1, 3, 7].map(trips), [2, 4, 6, 6]);
}

#[test]
fn broken_orders_are_found() {
    let broken = |order: fn() -> Order, change: fn(&mut Order)| {
        let mut order = order();
        change(&mut order);
        found(order).unwrap_or_default()
    };
    let told = [
        // Tiles that are left out, computed twice, or beyond the numbers.
        broken(split, |o| o.pieces[0].extent = o.pieces[0].extent.clone() - 1),
        broken(split, |o| o.tile[1].at = Int::from(0)),
        broken(split, |o| o.tile[0].at = o.tile[0].at.clone() - 1),
        broken(split, |o| o.tile[0].at = o.tile[0].at.clone() * i64::MAX * 3),
        // Parts of K that overlap, leave a gap, run past the end or backwards.
        broken(split, |o| o.inner.first = o.inner.first.clone() / 2),
        broken(split, |o| o.pieces[2].extent = 1.into()),
        broken(split, |o| o.inner.trips = o.inner.trips.clone() + 1),
        broken(split, |o| o.inner.trips = o.inner.trips.clone() - 7),
        // A window whose tiles begin too late, and one whose keys go on.
        broken(window, |o| o.inner.first = o.inner.first.clone() + 1),
        broken(window, |o| o.inner.trips = o.inner.trips.clone().op(IntOp::Min, 3)),
        // Sequences of which the second is left out, or has the keys of the first.
        broken(of_lengths, |o| o.pieces[0].extent = Int::Value(0).ceil_div(64)),
        broken(of_lengths, |o| o.inner.trips = Int::Value(0).ceil_div(64)),
    ];
    expect_test::expect![[r#"
        tile [0, 0] in no piece, m = 128, n = 64, k = 32
        step 0 of tile [0, 0] in 5 pieces, m = 128, n = 257, k = 32
        tile [-1, 0], m = 128, n = 64, k = 32
        numbers past 64 bits, m = 513, n = 64, k = 32
        step 1 of tile [0, 0] in 2 pieces, m = 128, n = 64, k = 129
        step 3 of tile [0, 0] in 0 pieces, m = 128, n = 64, k = 129
        steps 0 to 2 of 0 to 1 for tile [0, 0], m = 128, n = 64, k = 32
        steps 0 to -6 of 0 to 1 for tile [0, 0], m = 128, n = 64, k = 32
        steps 1 to 3 of 0 to 2 for tile [0], rows = 128, window = 128
        step 3 of tile [1] in 0 pieces, rows = 513, window = 128
        tile [1] in no piece, first = 64, second = 64
        step 1 of tile [1] in 0 pieces, first = 64, second = 257"#]]
    .assert_eq(&told.join("\n"));
}

/// Groups with rows of their own: each has the pieces of a launch with so many, and a group of none has none.
#[test]
fn groups_of_none_have_no_pieces() {
    let mut order = Order::numbered(&[("m", 128), ("n", 64)], None);
    order.groups = Some(order.steps.find("m"));
    assert_eq!(found(order.clone()), None);
    // One at least.
    order.pieces[0].extent = order.pieces[0].extent.clone().op(IntOp::Max, 1);
    assert_eq!(found(order).as_deref(), Some("pieces of a group of none, m = 0, n = 64"));
}
