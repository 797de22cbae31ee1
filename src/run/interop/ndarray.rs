//! Views of `ndarray`: of any order, sliced, transposed, broadcast, without copying.
//!
//! ```
//! use cutemplate::view::View;
//! use ndarray::{Array2, s};
//!
//! let array = Array2::from_shape_fn((4, 6), |(i, j)| (6 * i + j) as f32);
//! let part = array.slice(s![1.., ..;2]);
//! let view = View::try_from(part.t())?;
//! assert_eq!(view.raw().layout.to_string(), "(3,3):(2,6)");
//!
//! let back = ndarray::ArrayViewD::try_from(view)?;
//! assert_eq!(back[[2, 0]], array[[1, 4]]);
//! # Ok::<(), cutemplate::interop::Refused>(())
//! ```

use ::ndarray::{ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Dimension, IxDyn, ShapeBuilder, StrideShape};

use super::{Refused, layout};
use crate::dtype::Element;
use crate::units::Elements;
use crate::view::{HostMemory, View, ViewLayout, ViewMut, ViewRef};

/// The layout of an array, and the elements that it reaches from its first one on.
fn of_array(shape: &[usize], strides: &[isize]) -> Result<(ViewLayout, Elements), Refused> {
    // An extent that does not fit is refused as too large.
    let shape: Vec<i64> = shape.iter().map(|&e| i64::try_from(e).unwrap_or(-1)).collect();
    let strides: Vec<i64> = strides.iter().map(|&s| s as i64).collect();
    let layout = layout(&shape, &strides)?;
    Ok((layout, Elements(layout.span().unwrap_or(0))))
}

impl<'a, T: Element, D: Dimension> TryFrom<ArrayView<'a, T, D>> for View<'a, T, HostMemory> {
    type Error = Refused;

    fn try_from(array: ArrayView<'a, T, D>) -> Result<Self, Refused> {
        let (layout, available) = of_array(array.shape(), array.strides())?;
        // SAFETY: the array's elements are borrowed for 'a, and they are those of the layout: no stride is negative, so
        // that its first element is the lowest.
        Ok(unsafe { View::from_raw_parts(array.as_ptr() as u64, available, layout) })
    }
}

impl<'a, T: Element, D: Dimension> TryFrom<ArrayViewMut<'a, T, D>> for ViewMut<'a, T, HostMemory> {
    type Error = Refused;

    fn try_from(mut array: ArrayViewMut<'a, T, D>) -> Result<Self, Refused> {
        let (layout, available) = of_array(array.shape(), array.strides())?;
        // SAFETY: as above, and the borrow is exclusive.
        Ok(unsafe { ViewMut::from_raw_parts(array.as_mut_ptr() as u64, available, layout) })
    }
}

/// Shape and strides for `ndarray`, of a view that lies in its memory.
fn to_array(raw: &ViewRef) -> Result<StrideShape<IxDyn>, Refused> {
    let refuse = |what, found: String, required: String| {
        let because = "an array may be indexed anywhere, and nothing checks it again";
        Err(Refused { what, found, required, because, help: "make the view of a slice that holds all of its elements" })
    };
    let ViewRef { layout, available, .. } = *raw;
    match raw.end().and(raw.span()) {
        Some(span) if span <= available.0 => {}
        span => {
            let needs =
                span.map_or("a layout that memory can hold".to_owned(), |s| format!("{s} elements for {layout}"));
            return refuse("the view reaches past its memory", format!("{layout} in {available}"), needs);
        }
    }
    let bytes = raw.dtype.bytes();
    if !raw.ptr.is_multiple_of(bytes.0) {
        let found = format!("{:#x}, {} past a multiple of {bytes}", raw.ptr, raw.ptr % bytes.0);
        return refuse(
            "the view is not aligned to its element",
            found,
            format!("an address that is a multiple of {bytes}"),
        );
    }
    // Both are not negative, as the span says.
    let extents = |of: &[i64]| of.iter().map(|&e| e as usize).collect::<Vec<_>>();
    let non_zero = layout.shape().iter().filter(|e| **e > 0).try_fold(1_i64, |n, e| n.checked_mul(*e));
    if non_zero.is_none_or(|n| isize::try_from(n).is_err()) {
        return refuse("the view has too many coordinates", layout.to_string(), "at most isize::MAX of them".into());
    }
    // Without elements strides mean nothing, and `span` has not looked at them.
    let strides = if layout.size() == Some(0) { vec![0; layout.rank()] } else { extents(layout.stride()) };
    Ok(IxDyn(&extents(layout.shape())).strides(IxDyn(&strides)))
}

/// A valid dangling address, for a tensor without elements.
fn pointer<T>(raw: &ViewRef) -> *mut T {
    match raw.span() {
        Some(0) => core::ptr::dangling_mut(),
        _ => core::ptr::with_exposed_provenance_mut(raw.ptr as usize),
    }
}

impl<'a, T: Element> TryFrom<View<'a, T, HostMemory>> for ArrayViewD<'a, T> {
    type Error = Refused;

    fn try_from(view: View<'a, T, HostMemory>) -> Result<Self, Refused> {
        let raw = view.raw();
        let shape = to_array(&raw)?;
        // SAFETY: a host view's memory is readable for 'a and nobody writes it; the layout lies in it, is aligned, and
        // has no negative stride, as was checked.
        Ok(unsafe { ArrayView::from_shape_ptr(shape, pointer::<T>(&raw)) })
    }
}

impl<'a, T: Element> TryFrom<ViewMut<'a, T, HostMemory>> for ArrayViewMutD<'a, T> {
    type Error = Refused;

    fn try_from(view: ViewMut<'a, T, HostMemory>) -> Result<Self, Refused> {
        let raw = view.raw();
        let shape = to_array(&raw)?;
        if raw.span() != Some(0) && !raw.layout.is_injective() {
            return Err(Refused {
                what: "elements of the view share memory",
                found: raw.layout.to_string(),
                required: "strides larger than all offsets of the modes inside".into(),
                because: "one element would be borrowed mutably by two coordinates",
                help: "pass a View to read a broadcast tensor, or write to a contiguous tensor",
            });
        }
        // SAFETY: as above; the memory is borrowed exclusively, and no element has two coordinates.
        Ok(unsafe { ArrayViewMut::from_shape_ptr(shape, pointer::<T>(&raw)) })
    }
}

#[cfg(test)]
mod tests;
