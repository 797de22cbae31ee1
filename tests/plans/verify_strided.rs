//! Contract: views and tensors of rank 1 to 5 with any strides are what the definition says: an element is at the sum of
//! coordinate times stride, everything else is a gap, and what cannot be is refused.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernels::Random;
use cutemplate::dtype::DType;
use cutemplate::units::Elements;
use cutemplate::verify::{Fill, Place, Tensor, TensorError, TensorLayout};
use cutemplate::view::ViewLayout;

/// Every coordinate, the last mode the fastest.
fn coordinates(shape: &[i64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |all, extent| {
        all.iter().flat_map(|c| (0..*extent as u64).map(move |i| [&c[..], &[i]].concat())).collect()
    })
}

fn offset(coordinate: &[u64], stride: &[i64]) -> u64 {
    coordinate.iter().zip(stride).map(|(c, d)| c * *d as u64).sum()
}

/// Small extents and strides of any kind, those that make elements meet among them.
fn any_layout(random: &mut Random) -> ViewLayout {
    let rank = 1 + random.below(5);
    let shape: Vec<i64> = (0..rank).map(|_| random.pick(&[1, 1, 2, 3, 4, 5])).collect();
    let stride: Vec<i64> = (0..rank).map(|_| random.pick(&[0, 1, 1, 2, 3, 4, 5, 6, 8, 12, 15, 20, 30, 60])).collect();
    ViewLayout::strided(&shape, &stride).expect("rank 1 to 5")
}

#[test]
fn spans_sizes_and_sharing_are_those_of_the_definition() {
    let random = &mut Random::new(10, 0);
    let (mut shared, mut cautious) = (0, 0);
    for _ in 0..4000 {
        let layout = any_layout(random);
        let all = coordinates(layout.shape());
        let offsets: Vec<u64> = all.iter().map(|c| offset(c, layout.stride())).collect();
        assert_eq!(layout.size(), Some(all.len() as u64), "{layout}");
        assert_eq!(layout.span(), offsets.iter().max().map(|last| last + 1), "{layout}");
        let distinct: BTreeSet<u64> = offsets.iter().copied().collect();
        let injective = distinct.len() == offsets.len();
        assert!(injective || !layout.is_injective(), "{layout} gives one element two coordinates");
        shared += usize::from(!injective);
        // Where each stride divides the next, the answer is exact.
        let mut modes: Vec<(i64, i64)> =
            layout.stride().iter().copied().zip(layout.shape().iter().copied()).filter(|(_, e)| *e > 1).collect();
        modes.sort_unstable();
        if modes.windows(2).all(|w| w[0].0 > 0 && w[1].0 % w[0].0 == 0) {
            assert_eq!(layout.is_injective(), injective, "{layout}");
        } else {
            cautious += usize::from(injective && !layout.is_injective());
        }
        let once = layout.distinct();
        let once: BTreeSet<u64> = coordinates(once.shape()).iter().map(|c| offset(c, once.stride())).collect();
        assert_eq!(once, distinct, "{layout} without what is broadcast");
    }
    assert!(shared > 400 && cautious > 0, "{shared} layouts share elements, {cautious} only seem to");
}

#[test]
fn a_layout_has_one_to_five_modes_and_is_named_as_in_cute() {
    assert!(ViewLayout::strided(&[], &[]).is_none());
    assert!(ViewLayout::strided(&[1; 6], &[1; 6]).is_none());
    assert!(ViewLayout::strided(&[2, 3], &[3]).is_none());
    assert_eq!(ViewLayout::strided(&[7], &[2]).map(|l| l.to_string()).as_deref(), Some("7:2"));
    let cube = ViewLayout::row_major(&[2, 3, 4]).expect("rank 3");
    assert_eq!((cube.to_string().as_str(), cube.rank(), cube.by_stride()), ("(2,3,4):(12,4,1)", 3, vec![0, 1, 2]));
    let turned = ViewLayout::strided(&[2, 1, 4], &[1, 9, 2]).expect("rank 3");
    assert_eq!(turned.by_stride(), [2, 0], "a mode of one element has no place");
}

#[test]
fn layouts_that_overflow_have_no_span() {
    let of = |shape: &[i64], stride: &[i64]| ViewLayout::strided(shape, stride).expect("rank 1 to 5");
    assert_eq!(of(&[i64::MAX, 2], &[1, 1]).span(), None, "one past the last does not fit");
    assert_eq!(of(&[i64::MAX - 1, 2], &[1, 1]).span(), Some(i64::MAX as u64));
    assert_eq!(of(&[3], &[i64::MAX]).span(), None);
    assert_eq!(of(&[2], &[-1]).span(), None);
    assert_eq!(of(&[0, 2], &[1, 1]).span(), Some(0), "no element takes no memory");
    assert_eq!(of(&[1, 2], &[i64::MIN, 1]).span(), None, "a negative stride is none, used or not");
    assert_eq!(of(&[i64::MAX, i64::MAX, 3], &[0, 0, 1]).size(), None);
    assert_eq!(of(&[i64::MAX, i64::MAX, 3], &[0, 0, 1]).span(), Some(3));
    assert_eq!(ViewLayout::row_major(&[1 << 40, 1 << 40, 1 << 40]), None);
}

#[test]
fn tensors_hold_their_elements_where_the_layout_says() {
    let random = &mut Random::new(11, 0);
    let (mut made, mut refused) = (0, 0);
    for _ in 0..600 {
        let layout = any_layout(random);
        let dtype = random.pick(DType::ALL);
        let place = TensorLayout::from(layout).at_offset(Elements(random.below(9) as u64));
        let mut tensor = match Tensor::new(dtype, place) {
            Ok(tensor) => tensor,
            Err(error) => {
                assert!(matches!(error, TensorError::Overlap { .. }) && !layout.distinct().is_injective(), "{error}");
                refused += 1;
                continue;
            }
        };
        made += 1;
        assert_eq!(tensor.raw(cutemplate::view::Access::Read).ptr % 256, place.offset.0 * dtype.bytes().0 % 256);
        tensor.fill(Fill::Specials, 3);
        assert!(tensor.guards().hold(), "{tensor:?}: filling stays inside");
        // The bytes themselves, by the definition.
        let item = dtype.bytes().0;
        for coordinate in coordinates(layout.shape()) {
            let at = (tensor.start().0 + item * offset(&coordinate, layout.stride())) as usize;
            let bytes = &tensor.storage()[at..at + item as usize];
            let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            assert_eq!(tensor.bits_at(&coordinate), Some(bits), "{tensor:?} at {coordinate:?}");
        }
        let outside: Vec<u64> = layout.shape().iter().map(|e| *e as u64).collect();
        assert_eq!(tensor.bits_at(&outside), None);
        let mut dense = Tensor::new(dtype, ViewLayout::row_major(layout.shape()).expect("small")).expect("small");
        dense.copy_elements_from(&tensor).expect("one shape");
        for coordinate in coordinates(layout.shape()) {
            assert_eq!(dense.bits_at(&coordinate), tensor.bits_at(&coordinate));
        }
    }
    assert!(made > 100 && refused > 100, "{made} made, {refused} refused");
}

/// Every byte around the elements is looked at, and no other.
#[test]
fn a_write_anywhere_but_in_an_element_is_a_violation_at_its_place() {
    let layouts = [
        ("7", "1", 0),
        ("5", "3", 1),
        ("(3,4)", "(7,1)", 2),
        ("(3,4)", "(1,5)", 0),
        ("(2,3,4)", "(0,9,2)", 3),
        ("(2,2,3,2)", "(40,0,9,4)", 0),
        ("(2,1,3,2,2)", "(50,7,12,5,2)", 5),
    ];
    for (shape, stride, first) in layouts {
        let numbers = |text: &str| -> Vec<i64> {
            text.trim_matches(['(', ')']).split(',').map(|n| n.parse().expect("a number")).collect()
        };
        let layout = ViewLayout::strided(&numbers(shape), &numbers(stride)).expect("rank 1 to 5");
        for dtype in [DType::U8, DType::F16, DType::F64] {
            let tensor = Tensor::new(dtype, TensorLayout::from(layout).at_offset(Elements(first))).expect("small");
            let item = dtype.bytes().0;
            let start = tensor.start().0 / item;
            let span = layout.span().expect("small");
            let elements: BTreeSet<u64> =
                coordinates(layout.shape()).iter().map(|c| start + offset(c, layout.stride())).collect();
            // All near the elements, some of the rest.
            let count = tensor.storage().len() as u64 / item;
            let near = start.saturating_sub(9)..(start + span + 9).min(count);
            for at in (0..count).filter(|at| near.contains(at) || at % 97 == 0 || at + 1 == count) {
                let mut written = tensor.clone();
                written.storage_mut()[(at * item) as usize] ^= 1;
                let report = written.guards();
                if elements.contains(&at) {
                    assert!(report.hold(), "{tensor:?}: element {at}");
                    continue;
                }
                let place = match at {
                    at if at < start => Place::Before(start - at),
                    at if at < start + span => Place::Gap(at - start),
                    at => Place::After(at - start - span + 1),
                };
                assert_eq!((report.violations, report.first[0].place), (1, place), "{tensor:?}: at {at}");
            }
        }
    }
}

#[test]
fn tensors_that_do_not_fit_are_refused_in_words() {
    let of = |shape: &[i64], stride: &[i64]| ViewLayout::strided(shape, stride).expect("rank 1 to 5");
    let refused = |layout: ViewLayout| Tensor::new(DType::F32, layout).expect_err("refused").to_string();
    let texts = [
        (of(&[2, 3], &[2, 1]), "(2,3):(2,1) gives one element two coordinates"),
        (of(&[4, 4, 4], &[1, 1, 1]), "such as (4,4,4):(16,4,1)"),
        (of(&[1 << 40, 1 << 20], &[1 << 20, 1]), "does not fit in memory"),
        (of(&[i64::MAX, 3], &[i64::MAX, 1]), "does not fit in memory"),
        (of(&[2, 3], &[-3, 1]), "does not fit in memory"),
    ];
    for (layout, words) in texts {
        let text = refused(layout);
        assert!(text.contains(words), "{layout}: {text}");
    }
}

/// Inputs are broadcast by stride 0: a fill writes one element for all.
#[test]
fn broadcast_modes_repeat_their_elements() {
    let layout = ViewLayout::strided(&[3, 2, 4], &[0, 5, 1]).expect("rank 3");
    let mut tensor = Tensor::new(DType::I32, layout).expect("small");
    tensor.fill(Fill::Integers, 9);
    let mut seen: BTreeMap<Vec<u64>, BTreeSet<Option<u64>>> = BTreeMap::new();
    for coordinate in coordinates(layout.shape()) {
        seen.entry(coordinate[1..].to_vec()).or_default().insert(tensor.bits_at(&coordinate));
    }
    assert!(seen.len() == 8 && seen.values().all(|bits| bits.len() == 1));
    let bits: BTreeSet<_> = seen.values().flatten().collect();
    assert!(bits.len() > 3, "elements differ along the other modes");
}

/// Large enough for several cores: what is filled depends on seed and coordinate only, whatever the strides.
#[test]
fn a_large_tensor_is_filled_alike_in_every_order() {
    let shape = [53, 61, 67];
    let of = |stride: &[i64]| {
        let mut tensor = Tensor::new(DType::Bf16, ViewLayout::strided(&shape, stride).expect("rank 3")).expect("fits");
        tensor.fill(Fill::Specials, 9);
        assert!(tensor.guards().hold(), "filling {stride:?} stays inside");
        tensor
    };
    let row_major = of(&[61 * 67, 67, 1]);
    let last_row: Vec<u64> = (0..67).map(|k| row_major.bits_at(&[52, 60, k]).expect("inside")).collect();
    for stride in [[1, 53, 53 * 61], [61 * 70, 70, 1], [67 * 61, 1, 61], [2, 200, 53 * 300]] {
        let other = of(&stride);
        for at in coordinates(&shape) {
            assert_eq!(other.bits_at(&at), row_major.bits_at(&at), "{at:?} of {stride:?}");
        }
    }
    // What is broadcast has the value of its last coordinate.
    let broadcast = of(&[0, 0, 1]);
    let found: Vec<u64> = (0..67).map(|k| broadcast.bits_at(&[0, 0, k]).expect("inside")).collect();
    assert_eq!(found, last_row);
}
