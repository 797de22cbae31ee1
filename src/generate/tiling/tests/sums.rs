//! What is proved of sums is what all sums, one by one, say: of tilings drawn at random, of which some are legal.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::dtype::DType;
use crate::layout::{Layout, Swizzle};
use crate::tiling::moves::Moves;
use crate::tiling::sums::is_injective;
use crate::tiling::tma::pieces_lie_in_boxes;
use crate::tiling::{Global, Place, TileCopy};
use crate::units::Bytes;

fn layout(leaves: &[(i64, i64)]) -> Layout {
    Layout::from_modes(leaves.iter().map(|(s, d)| Layout::mode_of(*s, *d).expect("a leaf"))).expect("a layout")
}

fn moves(threads: &[(i64, i64)], values: &[(i64, i64)], vector: i64) -> Moves {
    let tv = Layout::from_modes([layout(threads), layout(values)]).expect("a layout");
    Moves::new(&tv, vector).expect("integers")
}

/// Extents and strides: mostly those of a tile cut in pieces, in any order; one may be changed.
fn leaves() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let change = prop_oneof![3 => Just(None), 1 => (0_usize..4, 0_i64..9).prop_map(Some)];
    let extents = proptest::collection::vec(prop_oneof![Just(1_i64), Just(2), Just(4), 1_i64..5], 1..5);
    (extents, change).prop_flat_map(|(extents, change)| {
        let mut stride = 1;
        let mut leaves: Vec<(i64, i64)> = Vec::new();
        for extent in extents {
            leaves.push((extent, stride));
            stride *= extent;
        }
        if let Some((place, to)) = change {
            let place = place % leaves.len();
            leaves[place].1 = to;
        }
        Just(leaves).prop_shuffle()
    })
}

/// Some leaves for threads, the others for values, in vectors.
fn drawn() -> impl Strategy<Value = Moves> {
    (leaves(), 0_usize..5, 0_u32..3).prop_map(|(leaves, cut, log)| {
        let (threads, values) = leaves.split_at(cut.min(leaves.len()));
        let or_one = |leaves: &[(i64, i64)]| if leaves.is_empty() { vec![(1, 0)] } else { leaves.to_vec() };
        moves(&or_one(threads), &or_one(values), 1 << log)
    })
}

fn swizzle() -> impl Strategy<Value = Option<Swizzle>> {
    proptest::option::of((0_i64..3, 0_i64..3, 1_i64..4).prop_map(|(bits, base, shift)| {
        Swizzle::new(bits, base, if shift % 2 == 0 { -shift.max(bits) } else { shift.max(bits) }).expect("a swizzle")
    }))
}

fn covers_one_by_one(moves: &Moves, count: i64) -> bool {
    let mut elements: Vec<i64> = moves.elements().collect();
    elements.sort_unstable();
    elements.into_iter().eq(0..count)
}

/// Whether thread by thread both have the same, each once.
fn same_one_by_one(first: &Moves, second: &Moves) -> bool {
    (0..first.threads.len().max(second.threads.len())).all(|thread| {
        let [own, others] = [first, second].map(|moves| moves.of_thread(thread).collect::<Vec<_>>());
        let [set, other] = [&own, &others].map(|elements| elements.iter().collect::<BTreeSet<_>>());
        set == other && set.len() == own.len() && set.len() == others.len() && own.iter().all(|element| *element >= 0)
    })
}

fn vectors_one_by_one(moves: &Moves, layout: &Layout, swizzle: Option<Swizzle>) -> bool {
    let at = |element: i64| {
        let offset = (0..layout.size()).contains(&element).then(|| layout.at(element).expect("small"))?;
        Some(swizzle.map_or(offset, |swizzle| swizzle.apply(offset)))
    };
    let vector = |first: i64, values: &[i64]| {
        let places: Option<Vec<i64>> = values.iter().map(|value| at(first + value)).collect();
        let from = places.as_ref().map_or(0, |places| places[0]);
        from % moves.vector() == 0 && places.is_some_and(|places| places.into_iter().eq(from..from + moves.vector()))
    };
    moves.threads.iter().all(|thread| moves.values.chunks(moves.vector).all(|values| vector(*thread, values)))
}

proptest! {
    #![proptest_config(Config {
        rng_seed: RngSeed::Fixed(0x5eed_5035),
        failure_persistence: None,
        cases: 2000,
        ..Config::default()
    })]

    #[test]
    fn all_threads_cover_a_tile_where_each_element_is_there_once(moves in drawn(), beside in 0_i64..8) {
        let all = moves.threads.len() as i64 * moves.values.len() as i64;
        for count in [all, beside] {
            prop_assert_eq!(moves.cover(count), covers_one_by_one(&moves, count));
        }
    }

    #[test]
    fn threads_have_the_same_where_their_sets_are_the_same(first in drawn(), second in drawn(), up in -2_i64..3, turn: bool) {
        let mut again = first.clone();
        if turn {
            again.values.reverse();
        }
        // The same set, counted from elsewhere, once with one thread less.
        again.values.iter_mut().for_each(|value| *value += up);
        again.threads.iter_mut().for_each(|thread| *thread -= up);
        let mut less = again.clone();
        less.threads.pop();
        for second in [second, again, less] {
            prop_assert_eq!(first.are_those_of(&second), same_one_by_one(&first, &second));
            prop_assert_eq!(second.are_those_of(&first), same_one_by_one(&second, &first));
        }
    }

    #[test]
    fn vectors_are_neighbours_where_every_one_is(
        moves in drawn(),
        rows in 1_i64..9,
        strides in (0_i64..3, 1_i64..20),
        swizzle in swizzle(),
    ) {
        let columns = 256 / rows;
        for (first, second) in [(1, rows), (columns, 1), (1, rows + strides.1), strides] {
            let tile = layout(&[(rows, first), (columns, second)]);
            if moves.are_vectors(&tile, swizzle) {
                prop_assert!(vectors_one_by_one(&moves, &tile, swizzle));
            }
        }
    }

    #[test]
    fn a_layout_is_injective_where_no_two_coordinates_meet(leaves in leaves(), swizzle in swizzle(), gap in 0_i64..3) {
        let gaps: Vec<(i64, i64)> = leaves.iter().map(|(s, d)| (*s, d * (1 + gap))).collect();
        for leaves in [leaves, gaps] {
            let (layout, mut taken) = (layout(&leaves), BTreeSet::new());
            let cosize = layout.cosize().expect("small");
            let apart = (0..layout.size()).all(|i| {
                let at = layout.at(i).expect("small");
                let at = swizzle.map_or(at, |swizzle| swizzle.apply(at));
                (0..cosize).contains(&at) && taken.insert(at)
            });
            if is_injective(&layout, cosize, swizzle) {
                prop_assert!(apart);
            }
        }
    }

    #[test]
    fn parts_of_a_tile_are_those_that_are_added_up(
        moves in drawn(),
        rows in 1_i64..9,
        columns in 1_i64..5,
        parts in (1_i64..4, 1_i64..4),
    ) {
        let [m, n] = [rows * parts.0, columns * parts.1];
        let Some(all) = moves.part_by_part([m, n], [rows, columns]) else { return Ok(()) };
        let parts = (0..parts.0).flat_map(|r| (0..parts.1).map(move |c| (r * rows, c * columns)));
        for thread in 0..moves.threads.len() {
            let of_part = |(row, column)| {
                moves.of_thread(thread).map(move |element| element % rows + row + (element / rows + column) * m)
            };
            let one_by_one: Vec<i64> = parts.clone().flat_map(of_part).collect();
            prop_assert_eq!(all.of_thread(thread).collect::<Vec<_>>(), one_by_one);
        }
    }
}

/// Whether TMA writes each element of each box where the tensor has it, swizzled by the address itself.
fn boxes_one_by_one(tensor: &Layout, extents: [i64; 2], contiguous: usize, swizzle: Option<Swizzle>) -> bool {
    let [rows, columns, stages] = [0, 1, 2].map(|mode| tensor.mode(mode).expect("a mode").size());
    let apply = |offset: i64| swizzle.map_or(offset, |swizzle| swizzle.apply(offset));
    let block = swizzle.map_or(1, |swizzle| swizzle.block());
    (0..rows * columns * stages).all(|index| {
        let (row, column, stage) = (index % rows, index / rows % columns, index / rows / columns);
        let (r, c) = (row % extents[0], column % extents[1]);
        let origin = tensor.at(row - r + rows * (column - c + columns * stage)).expect("small");
        let written = origin + if contiguous == 1 { r * extents[1] + c } else { r + c * extents[0] };
        origin % block == 0 && apply(written) == apply(tensor.at(index).expect("small"))
    })
}

proptest! {
    #![proptest_config(Config {
        rng_seed: RngSeed::Fixed(0x5eed_b0c5),
        failure_persistence: None,
        cases: 2000,
        ..Config::default()
    })]

    #[test]
    fn boxes_lie_as_written_where_each_element_does(
        (rows, columns) in (1_i64..4, 1_i64..4),
        extents in [1_i64..5, 1_i64..5],
        contiguous in 0_usize..2,
        gap in prop_oneof![3 => Just(0_i64), 1 => 0_i64..3],
        apart in 0_i64..9,
        swizzle in swizzle(),
    ) {
        let [r, c] = extents;
        let piece = r * c + gap;
        // Boxes one behind the other, along the rows first.
        let inner = if contiguous == 1 { [c, 1] } else { [1, r] };
        let along = [(r, inner[0], rows, piece), (c, inner[1], columns, piece * rows)];
        let modes = along.map(|(extent, stride, boxes, behind)| layout(&[(extent, stride), (boxes, behind)]));
        let stage = Layout::mode_of(2, piece * rows * columns + apart).expect("a leaf");
        let layout = Layout::from_modes(modes.into_iter().chain([stage])).expect("a layout");
        let block = swizzle.map_or(1, |swizzle| swizzle.block());
        for extents in [extents, [c, r]] {
            let whole = layout.mode(0).expect("rows").size() % extents[0] == 0
                && layout.mode(1).expect("columns").size() % extents[1] == 0;
            if whole {
                let found = pieces_lie_in_boxes(&layout, extents, contiguous, block);
                prop_assert_eq!(found, boxes_one_by_one(&layout, extents, contiguous, swizzle));
            }
        }
    }
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(0x5eed_5ec7), failure_persistence: None, ..Config::default() })]

    #[test]
    fn sectors_are_those_of_each_request(
        moves in drawn(),
        rows in 1_i64..40,
        contiguous in 0_usize..2,
        dtype in prop_oneof![Just(DType::F32), Just(DType::F16)],
    ) {
        let tile = [rows, 256 / rows];
        let to = Place::Global(Global { contiguous, align: Bytes(4), ..Global::matrix("A") });
        let copy = TileCopy { tile, dtype, to, ..super::store() };
        let size = dtype.bytes().0 as i64;
        let of_request = |request: Vec<i64>| {
            let place = |element: &i64| if contiguous == 1 { [element % rows, element / rows] } else { [element / rows, element % rows] };
            let sector = |[line, along]: [i64; 2]| (line, along * size / 32);
            request.iter().map(place).map(sector).collect::<BTreeSet<_>>().len() as u64
        };
        let one_by_one = moves.requests(moves.vector()).map(|request| of_request(request.collect())).sum();
        let inside = moves.elements().all(|element| element < tile[0] * tile[1]);
        prop_assert!(!inside || copy.sectors(&moves) == Ok(one_by_one));
    }
}
