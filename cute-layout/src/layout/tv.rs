//! Thread-value layouts: which element each value of each thread is.

use super::composition::composition;
use super::construct::make_layout;
use super::core::Layout;
use super::error::LayoutError;
use super::int_tuple::{IntTuple, Shape};
use super::inverse::right_inverse;
use super::number::{equal, unknown};
use super::product::raked_product;
use super::shape::product_each;

/// The tiler and the TV layout of a thread layout and a value layout (the CuTe DSL's `make_layout_tv`, and the derivation
/// in CuTe's `make_tiled_copy`).
///
/// The tiler is the shape of the tile that all threads with all values cover. The TV layout maps `(thread, value)` to the
/// *column-major index of an element in that tile*, not to memory.
///
/// *Law.* With `mn = raked_product(threads, values)`: `mn(tv(t, v)) == t + v * size(threads)`; in words, element
/// `tv(t, v)` of the tile belongs to value `v` of thread `t`.
///
/// # Errors
/// The product, its inverse or the composition is refused.
///
/// ```
/// use cute_layout::layout::make_layout_tv;
/// let (tiler, tv) = make_layout_tv(&"(4,32):(32,1)".parse()?, &"(4,8):(8,1)".parse()?)?;
/// assert_eq!(tiler.to_string(), "(16,256)");
/// assert_eq!(tv.to_string(), "((32,4),(8,4)):((128,4),(16,1))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_layout_tv(threads: &Layout, values: &Layout) -> Result<(Shape, Layout), LayoutError> {
    let tile = raked_product(threads, values)?;
    let tiler = product_each(tile.shape())?;
    let counts = IntTuple::tuple([threads.shape().product()?, values.shape().product()?])?;
    let inverse = right_inverse(&tile)?;
    let numbers = tile.static_shape() && tile.int_strides();
    if !numbers && equal(inverse.shape().product_leaf()?, counts.product_leaf()?) != Some(true) {
        return Err(unknown("make_layout_tv", format!("the inverse {inverse} for {counts} threads and values"))
            .of(&[("threads", threads), ("values", values)])
            .required("threads and values that together are a bijection"));
    }
    let tv = composition(&inverse, &make_layout(&counts)?)
        .map_err(|e| e.within("make_layout_tv", &[("threads", threads), ("values", values)]))?;
    Ok((tiler, tv))
}
