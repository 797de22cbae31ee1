//! Which modes of a tensor the axes of an array are.

use crate::view::ViewLayout;

/// The extent of an array along each mode of a tensor that it fills. `None` where it has another shape.
///
/// Axes and modes stand in the same order. A mode of stride 0 has one element for all its coordinates, so there an array may
/// have extent 1, or no axis at all. Extents of 1 in front count on neither side.
pub(super) fn extents(axes: &[i64], tensor: &ViewLayout) -> Option<Vec<i64>> {
    let modes: Vec<(i64, i64)> = tensor.shape().iter().copied().zip(tensor.stride().iter().copied()).collect();
    let mut found = vec![1; modes.len()];
    place(axes, &modes, &mut found).then_some(found)
}

/// From the last mode to the first: with an axis where there is one, else without.
fn place(axes: &[i64], modes: &[(i64, i64)], found: &mut [i64]) -> bool {
    let Some(((extent, stride), outer)) = modes.split_last() else { return axes.iter().all(|axis| *axis == 1) };
    let Some((here, found)) = found.split_last_mut() else { return false };
    let one_for_all = *stride == 0 && *extent > 0;
    if let Some((axis, rest)) = axes.split_last()
        && (axis == extent || (one_for_all && *axis == 1))
        && place(rest, outer, found)
    {
        *here = *axis;
        return true;
    }
    *here = 1;
    (one_for_all || (*extent == 1 && axes.is_empty())) && place(axes, outer, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(axes: &[i64], shape: &[i64], stride: &[i64]) -> Option<Vec<i64>> {
        extents(axes, &ViewLayout::strided(shape, stride).expect("a layout"))
    }

    #[test]
    fn a_mode_of_stride_0_takes_an_axis_of_1_all_of_it_or_none() {
        for axes in [&[5, 8][..], &[1, 8], &[8], &[1, 1, 8]] {
            let rows = if axes == [5, 8] { 5 } else { 1 };
            assert_eq!(fits(axes, &[5, 8], &[0, 1]), Some(vec![rows, 8]), "{axes:?}");
        }
        for axes in [&[5][..], &[8, 1], &[2, 8], &[8, 5], &[1], &[]] {
            assert_eq!(fits(axes, &[5, 8], &[0, 1]), None, "{axes:?}");
        }
        assert_eq!(fits(&[5, 1], &[5, 8], &[1, 0]), Some(vec![5, 1]));
        assert_eq!(fits(&[5], &[5, 8], &[1, 0]), Some(vec![5, 1]));
        assert_eq!(fits(&[], &[5, 8], &[0, 0]), Some(vec![1, 1]));
    }

    #[test]
    fn axes_stay_in_the_order_of_modes() {
        for axes in [&[7, 8, 3][..], &[7, 8, 1], &[7, 8]] {
            let batches = if axes.len() == 3 { axes[2] } else { 1 };
            assert_eq!(fits(axes, &[7, 8, 3], &[8, 1, 0]), Some(vec![7, 8, batches]), "{axes:?}");
        }
        for axes in [&[1, 7, 8][..], &[3, 7, 8], &[8, 7]] {
            let expected = (axes == [1, 7, 8]).then(|| vec![7, 8, 1]);
            assert_eq!(fits(axes, &[7, 8, 3], &[8, 1, 0]), expected, "{axes:?}");
        }
        // Equal extents: the mode without an axis is one that can be.
        assert_eq!(fits(&[3, 3], &[3, 3, 3], &[3, 1, 0]), Some(vec![3, 3, 1]));
        assert_eq!(fits(&[3, 3], &[3, 3, 3], &[0, 3, 1]), Some(vec![1, 3, 3]));
    }

    #[test]
    fn an_empty_mode_is_empty_in_the_array_too() {
        assert_eq!(fits(&[5, 0], &[5, 0], &[0, 1]), Some(vec![5, 0]));
        assert_eq!(fits(&[5], &[5, 0], &[1, 0]), None);
    }
}
