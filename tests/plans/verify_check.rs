//! Contract: a comparison sees every wrong element and every write outside the matrix, says where and what, and takes
//! nothing else for wrong.

use cutemplate::arch::Targets;
use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::{ElementwiseAdd, Recipe};
use cutemplate::verify::{self, Fill, Scalar, Tensor, TensorError, TensorLayout, Verdict};
use cutemplate::view::Access;
use expect_test::{Expect, expect};
use half::{bf16, f16};

/// `C = A + B`.
fn plan(dtype: DType) -> Plan {
    ElementwiseAdd { dtype, ..Default::default() }.plan(&Targets::default()).expect("a right recipe")
}

fn inputs(dtype: DType, fill: Fill) -> [Tensor; 2] {
    [1, 2].map(|seed| {
        let mut m = Tensor::new(dtype, TensorLayout::padded(5, 7, 9)).expect("small");
        m.fill(fill, seed);
        m
    })
}

/// The right output, by the definition of a sum, in a padded and shifted matrix.
fn right<T: Scalar>([a, b]: &[Tensor; 2]) -> Tensor {
    let layout = TensorLayout::padded(5, 7, 10).at_offset(cutemplate::units::Elements(3));
    let mut found = Tensor::new(T::DTYPE, layout).expect("small");
    found.fill_unwritten();
    for row in 0..5 {
        let (a, b) = (a.row::<T>(row).expect("a row"), b.row::<T>(row).expect("a row"));
        let found = found.row_mut::<T>(row).expect("a row");
        found.iter_mut().zip(a.iter().zip(b)).for_each(|(c, (a, b))| *c = verify::add(*a, *b));
    }
    found
}

fn check(plan: &Plan, found: &Tensor, [a, b]: &[Tensor; 2]) -> Verdict {
    verify::check(plan, &[a, b], &[], &[found]).expect("the plan's inputs").remove(0)
}

/// Of the right output and its inputs after a change.
fn verdict(change: impl FnOnce(&mut Tensor, &mut [Tensor; 2])) -> Verdict {
    let mut inputs = inputs(DType::F16, Fill::Integers);
    let mut found = right::<f16>(&inputs);
    change(&mut found, &mut inputs);
    check(&plan(DType::F16), &found, &inputs)
}

fn set(m: &mut Tensor, row: u64, col: usize, value: f16) {
    m.row_mut::<f16>(row).expect("a row")[col] = value;
}

#[test]
fn a_right_output_is_right_for_every_type_and_input() {
    fn of<T: Scalar>() {
        for fill in Fill::ALL {
            let inputs = inputs(T::DTYPE, *fill);
            let verdict = check(&plan(T::DTYPE), &right::<T>(&inputs), &inputs);
            assert!(verdict.is_right(), "{} {fill}: {verdict}", T::DTYPE);
            assert_eq!(verdict.to_string(), "all 35 elements right, nothing written outside");
        }
    }
    of::<f16>();
    of::<bf16>();
    of::<f32>();
    of::<f64>();
    of::<i8>();
    of::<i32>();
}

#[test]
fn one_wrong_bit_is_seen_at_every_coordinate() {
    for (row, col) in (0..5).flat_map(|i| (0..7).map(move |j| (i, j))) {
        let verdict = verdict(|found, _| {
            let bits = found.bits(row, col as u64).expect("inside") as u16;
            set(found, row, col, f16::from_bits(bits ^ 1));
        });
        assert_eq!((verdict.mismatches, verdict.unwritten, verdict.is_right()), (1, 0, false));
        assert_eq!(verdict.first[0].coordinate, [row, col as u64]);
    }
}

fn shows(verdict: &Verdict, expected: Expect) {
    expected.assert_eq(&format!("{verdict}\n"));
}

#[test]
fn a_verdict_tells_coordinate_values_and_inputs() {
    let wrong = verdict(|found, [a, b]| {
        set(found, 1, 2, f16::from_f32(0.5));
        set(found, 3, 4, f16::NEG_ZERO);
        set(a, 3, 4, f16::ZERO);
        set(b, 3, 4, f16::ZERO);
        set(found, 4, 0, f16::INFINITY);
        set(a, 4, 0, f16::NAN);
    });
    shows(
        &wrong,
        expect![[r#"
            3 of 35 elements wrong; 0 elements written outside
              (1,2): found 0.5 (0x3800), required 6.0 (0x4600), A = 4.0 (0x4400), B = 2.0 (0x4000)
              (3,4): found -0.0 (0x8000), required 0.0 (0x0), A = 0.0 (0x0), B = 0.0 (0x0)
              (4,0): found inf (0x7c00), required NaN, A = NaN (0x7e00), B = -3.0 (0xc200)
        "#]],
    );
}

#[test]
fn an_element_that_was_never_written_is_wrong_even_where_nan_is_right() {
    let some = verdict(|found, [a, _]| {
        let mut blank = Tensor::new(DType::F16, TensorLayout::contiguous(1, 1)).expect("small");
        blank.fill_unwritten();
        let mark = f16::from_bits(blank.bits(0, 0).expect("inside") as u16);
        set(found, 0, 0, mark);
        set(a, 0, 0, f16::NAN);
        set(found, 2, 2, mark);
    });
    assert_eq!((some.mismatches, some.unwritten), (2, 2));
    shows(
        &some,
        expect![[r#"
            2 of 35 elements wrong, 2 of them never written; 0 elements written outside
              (0,0): found an element that was never written, required NaN, A = NaN (0x7e00), B = 2.0 (0x4000)
              (2,2): found an element that was never written, required 1.0 (0x3c00), A = 7.0 (0x4700), B = -6.0 (0xc600)
        "#]],
    );
}

#[test]
fn the_mark_of_unwritten_elements_may_come_from_an_input() {
    let mut inputs = inputs(DType::F16, Fill::Integers);
    let mut blank = Tensor::new(DType::F16, TensorLayout::contiguous(1, 1)).expect("small");
    blank.fill_unwritten();
    let mark = f16::from_bits(blank.bits(0, 0).expect("inside") as u16);
    set(&mut inputs[0], 2, 3, mark);
    let mut found = right::<f16>(&inputs);
    set(&mut found, 2, 3, mark);
    let verdict = check(&plan(DType::F16), &found, &inputs);
    assert!(verdict.is_right(), "{verdict}");
}

#[test]
fn any_nan_is_as_good_as_any_other() {
    let same = verdict(|found, [a, _]| {
        for (col, bits) in [(0, 0x7fff), (1, 0xfe00), (2, 0x7c01)] {
            set(found, 0, col, f16::from_bits(bits));
            set(a, 0, col, f16::NAN);
        }
    });
    assert!(same.is_right(), "{same}");
}

#[test]
fn writes_outside_are_seen_wherever_they_are() {
    let inputs = inputs(DType::F16, Fill::Integers);
    let (plan, good) = (plan(DType::F16), right::<f16>(&inputs));
    let (start, item) = (good.start().0 as usize, 2);
    let inside = |byte: usize| {
        let Some(at) = byte.checked_sub(start) else { return false };
        at / item % 10 < 7 && at / item / 10 < 5
    };
    let mut caught = 0;
    for byte in 0..good.storage().len() {
        if inside(byte) {
            continue;
        }
        let mut found = good.clone();
        found.storage_mut()[byte] ^= 0x10;
        let verdict = check(&plan, &found, &inputs);
        assert_eq!((verdict.mismatches, verdict.guards.violations), (0, 1), "byte {byte}");
        assert!(!verdict.is_right());
        caught += 1;
    }
    assert_eq!(caught, good.storage().len() - 35 * item);
}

#[test]
fn places_outside_are_told_in_elements() {
    let spoiled = verdict(|found, _| {
        let start = found.start().0 as usize;
        for element in [-1_isize, 7, 4 * 10 + 7] {
            let at = start.wrapping_add_signed(2 * element);
            found.storage_mut()[at..at + 2].copy_from_slice(&[0x00, 0x3c]);
        }
    });
    shows(
        &spoiled,
        expect![[r#"
            0 of 35 elements wrong; 3 elements written outside
              written at 1 before the first element: bits 0x3c00
              written at 7 after the first element, in a gap between elements: bits 0x3c00
              written at 1 past the last element: bits 0x3c00
        "#]],
    );
}

#[test]
fn matrices_that_cannot_be_are_refused_in_words() {
    let refused = |layout, expected: Expect| {
        let error: TensorError = Tensor::new(DType::F32, layout).expect_err("impossible");
        expected.assert_eq(&error.to_string());
    };
    refused(
        TensorLayout::padded(3, 12, 11),
        expect![
            "(3,12):(11,1) gives one element two coordinates; strides of 0 (broadcast) or larger than all offsets of the modes inside work, such as (3,12):(12,1)"
        ],
    );
    refused(
        TensorLayout::contiguous(u64::MAX, u64::MAX),
        expect![
            "a tensor (9223372036854775807,9223372036854775807):(9223372036854775807,1) of f32 does not fit in memory"
        ],
    );
    refused(
        TensorLayout::contiguous(1 << 40, 1 << 20),
        expect!["a tensor (1099511627776,1048576):(1048576,1) of f32 does not fit in memory"],
    );
    let [a, b] =
        [DType::F32, DType::F16].map(|dtype| Tensor::new(dtype, TensorLayout::contiguous(2, 3)).expect("small"));
    let error = verify::check(&plan(DType::F32), &[&a, &b], &[], &[&a]).expect_err("two types");
    expect![
        "these are not the inputs of a kernel of `elementwise_add`: [Tensor f32 (2,3):(3,1), Tensor f16 (2,3):(3,1)]"
    ]
    .assert_eq(&error.to_string());
    let error = a.clone().copy_elements_from(&b).expect_err("two types");
    expect!["Tensor f32 (2,3):(3,1) and Tensor f16 (2,3):(3,1) are not tensors of one type and shape"]
        .assert_eq(&error.to_string());
}

#[test]
fn views_of_a_matrix_are_of_its_type_and_cover_its_span() {
    let mut m = Tensor::new(DType::F32, TensorLayout::padded(5, 7, 9)).expect("small");
    assert!(m.view::<f16>().is_none() && m.view_mut::<f16>().is_none() && m.row::<f16>(0).is_none());
    let view = m.view::<f32>().expect("its type").raw();
    assert_eq!(view, m.raw(Access::Read));
    assert_eq!((view.available.0, view.span()), (4 * 9 + 7, Some(4 * 9 + 7)));
    assert_eq!(view.ptr % 256, 0);
    assert_eq!(m.view_mut::<f32>().expect("its type").raw().access, Access::Write);
}

/// Larger than what one core takes at a time, so that several work on it: the first mismatches are those of the lowest
/// coordinates, and guards and marks are seen wherever they lie.
#[test]
fn what_several_cores_find_is_what_one_would() {
    let (rows, cols, ld) = (701_u64, 509, 512);
    let plan = plan(DType::F32);
    let [a, b] = [1, 2].map(|seed| {
        let mut m = Tensor::new(DType::F32, TensorLayout::padded(rows, cols, ld)).expect("fits");
        m.fill(Fill::Normal, seed);
        m
    });
    let mut c = Tensor::new(DType::F32, TensorLayout::padded(rows, cols, ld)).expect("fits");
    verify::fill_unwritten(&plan, &[&a, &b], &[], std::slice::from_mut(&mut c)).expect("the plan's");
    assert!(c.guards().hold());
    let done = std::sync::atomic::AtomicU64::new(0);
    let watched = |c: &Tensor| {
        done.store(0, std::sync::atomic::Ordering::Relaxed);
        let count = |more| {
            done.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
        };
        verify::check_watched(&plan, &[&a, &b], &[], &[c], &count).expect("the plan's").remove(0)
    };
    let blank = watched(&c);
    assert_eq!((blank.mismatches, blank.unwritten), (rows * cols, rows * cols));
    let first: Vec<Vec<u64>> = blank.first.iter().map(|m| m.coordinate.clone()).collect();
    assert_eq!(first, (0..8).map(|n| vec![0, n]).collect::<Vec<_>>());
    for row in 0..rows {
        let (a, b) = (a.row::<f32>(row).expect("a row"), b.row::<f32>(row).expect("a row"));
        let c = c.row_mut::<f32>(row).expect("a row");
        c.iter_mut().zip(a.iter().zip(b)).for_each(|(c, (a, b))| *c = verify::add(*a, *b));
    }
    assert!(watched(&c).is_right());
    assert_eq!(done.into_inner(), rows * cols, "every coordinate is counted once");
    let wrong: Vec<Vec<u64>> = (0..20).map(|i| vec![35 * i, (97 * i) % cols]).collect();
    for at in wrong.iter().rev() {
        c.row_mut::<f32>(at[0]).expect("a row")[at[1] as usize] += 100.0;
    }
    let gaps = [(0, 509), (3, 511), (300, 510), (699, 509)];
    let start = c.start().0 / 4;
    for (row, col) in gaps {
        let at = 4 * (start + row * ld + col) as usize;
        c.storage_mut()[at..at + 4].fill(0);
    }
    let found = verify::check(&plan, &[&a, &b], &[], &[&c]).expect("the plan's").remove(0);
    assert_eq!((found.mismatches, found.unwritten, found.guards.violations), (20, 0, 4));
    let first: Vec<Vec<u64>> = found.first.iter().map(|m| m.coordinate.clone()).collect();
    assert_eq!(first, wrong[..8]);
    let places: Vec<_> = found.guards.first.iter().map(|g| g.place).collect();
    assert_eq!(places, gaps.map(|(row, col)| verify::Place::Gap(row * ld + col)));
}

/// Each output has to be there, whole: what is compared with nothing is not right.
#[test]
fn outputs_that_are_not_the_kernel_s_are_refused_in_words() {
    let inputs = inputs(DType::F16, Fill::Integers);
    let read = [&inputs[0], &inputs[1]];
    let says =
        |outputs: &[&Tensor]| verify::check(&plan(DType::F16), &read, &[], outputs).expect_err("not its").to_string();
    assert_eq!(
        says(&[]),
        "these are not the outputs of a kernel of `elementwise_add`: found [], required C f16, of shape [5, 7]"
    );
    let short = Tensor::new(DType::F16, TensorLayout::contiguous(5, 6)).expect("small");
    assert!(says(&[&short]).contains("found [Tensor f16 (5,6):(6,1)], required C f16, of shape [5, 7]"));
    let other = Tensor::new(DType::F32, TensorLayout::contiguous(5, 7)).expect("small");
    assert!(says(&[&other]).contains("found [Tensor f32 (5,7):(7,1)]"));
}
