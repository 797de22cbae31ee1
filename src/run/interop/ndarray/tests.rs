use ::ndarray::{Array0, Array1, Array2, Array3, ArrayViewD, ArrayViewMutD, Axis, s};

use super::*;
use crate::dtype::f16;

/// The elements that a view reaches: an array of the view equals the array that it was made of.
fn there_and_back<T: Element + PartialEq + core::fmt::Debug, D: Dimension>(array: ArrayView<'_, T, D>) -> String {
    let view = View::try_from(array.clone()).expect("a view");
    let back = ArrayViewD::try_from(view).expect("an array");
    match array.ndim() {
        0 => assert_eq!(back.iter().collect::<Vec<_>>(), array.iter().collect::<Vec<_>>()),
        _ => assert_eq!(back, array.into_dyn()),
    }
    view.raw().layout.to_string()
}

#[test]
fn arrays_of_every_layout_are_views_and_come_back() {
    let array = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (20 * i + 5 * j + k) as f32);
    assert_eq!(there_and_back(array.view()), "(3,4,5):(20,5,1)");
    assert_eq!(there_and_back(array.t()), "(5,4,3):(1,5,20)");
    assert_eq!(there_and_back(array.slice(s![1.., ..;2, 1..4])), "(2,2,3):(20,10,1)");
    assert_eq!(there_and_back(array.index_axis(Axis(1), 2)), "(3,5):(20,1)");
    assert_eq!(there_and_back(array.slice(s![0..0, .., ..])), "(0,4,5):(0,5,1)");
    let row = Array1::from_vec(vec![f16::from_f32(1.5); 4]);
    assert_eq!(there_and_back(row.broadcast((7, 4)).expect("broadcasts")), "(7,4):(0,1)");
    assert_eq!(there_and_back(Array0::from_elem((), 7_i32).view()), "1:1");
    // A mode of one element may run backwards.
    assert_eq!(there_and_back(array.slice(s![..1;-1, .., ..])), "(1,4,5):(0,5,1)");
}

#[test]
fn what_is_written_through_a_view_is_in_the_array() {
    let mut array = Array2::<i32>::zeros((4, 6));
    {
        let part = array.slice_mut(s![1..3, ..;3]);
        let view = ViewMut::try_from(part.reversed_axes()).expect("a view");
        assert_eq!(view.raw().layout.to_string(), "(2,2):(3,6)");
        let mut back = ArrayViewMutD::try_from(view).expect("an array");
        back[[1, 0]] = 7;
    }
    assert_eq!((array[[1, 3]], array.sum()), (7, 7));
}

#[test]
fn what_cannot_be_is_refused_with_reasons() {
    let array = Array2::<f32>::zeros((4, 6));
    let mut told = format!("{}\n", View::try_from(array.slice(s![..;-1, ..])).expect_err("backwards"));
    let data = [0.0_f32; 12];
    let mut refuse = |view: View<'_, f32, HostMemory>| {
        told += &format!("{}\n", ArrayViewD::try_from(view).expect_err("refused"));
    };
    refuse(View::host(&data, [4, 4], 4));
    refuse(View::host(&data, [-1, 4], 4));
    refuse(View::host(&data, [4, 3], -3));
    // Extents whose product overflows, of one element.
    let wide = ViewLayout::strided(&[i64::MAX, i64::MAX], &[0, 0]).expect("rank 2");
    refuse(View::host_strided(&data, wide));
    let bytes = [0_u8; 16];
    // SAFETY: no element of it is touched.
    let crooked: View<'_, f32, HostMemory> =
        unsafe { View::from_raw_parts((bytes.as_ptr() as u64 | 3) - 1, Elements(2), ViewLayout::matrix([1, 2], 2)) };
    assert!(ArrayViewD::try_from(crooked).is_err_and(|e: Refused| e.what == "the view is not aligned to its element"));
    let mut written = [0.0_f32; 4];
    let all_rows = ViewLayout::strided(&[3, 4], &[0, 1]).expect("rank 2");
    let shared = ArrayViewMutD::try_from(ViewMut::host_strided(&mut written, all_rows)).expect_err("shared");
    told += &format!("{shared}\n");
    expect_test::expect![[r#"
        error[interop]: the tensor runs backwards
          found:    stride -6 along mode 0 of (4,6):(-6,1)
          required: strides of at least 0
          because:  a view begins at its lowest address; vectors and bulk copies of a kernel go forwards from there
          help:     copy the tensor into memory in its own order first, or pass the one that it is the reverse of
        error[interop]: the view reaches past its memory
          found:    (4,4):(4,1) in 12 elements
          required: 16 elements for (4,4):(4,1)
          because:  an array may be indexed anywhere, and nothing checks it again
          help:     make the view of a slice that holds all of its elements
        error[interop]: the view reaches past its memory
          found:    (-1,4):(4,1) in 12 elements
          required: a layout that memory can hold
          because:  an array may be indexed anywhere, and nothing checks it again
          help:     make the view of a slice that holds all of its elements
        error[interop]: the view reaches past its memory
          found:    (4,3):(-3,1) in 12 elements
          required: a layout that memory can hold
          because:  an array may be indexed anywhere, and nothing checks it again
          help:     make the view of a slice that holds all of its elements
        error[interop]: the view has too many coordinates
          found:    (9223372036854775807,9223372036854775807):(0,0)
          required: at most isize::MAX of them
          because:  an array may be indexed anywhere, and nothing checks it again
          help:     make the view of a slice that holds all of its elements
        error[interop]: elements of the view share memory
          found:    (3,4):(0,1)
          required: strides larger than all offsets of the modes inside
          because:  one element would be borrowed mutably by two coordinates
          help:     pass a View to read a broadcast tensor, or write to a contiguous tensor
    "#]]
    .assert_eq(&told);
}
