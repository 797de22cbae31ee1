//! Tensor maps of launch files.

use super::bad;
use super::check::Checked;
use crate::exec::ptx::Error;
use crate::tiling::{MapSwizzle, MapType, TensorMapSpec};

/// What stands behind `tensor_map`, but for where its tensor lies.
pub(super) fn read(map: &Checked<'_>) -> Result<TensorMapSpec, Error> {
    let numbers = |key: &str| map.numbers(key).unwrap_or_default();
    let (dims, strides, extents) = (numbers("dims"), numbers("strides"), numbers("box"));
    if extents.len() != dims.len() || strides.len() + 1 != dims.len() {
        return Err(bad(format!("`dims`, `strides` and `box` of `{}` do not fit each other", map.path))
            .found(format!("{} extents, {} strides, {} of a box", dims.len(), strides.len(), extents.len()))
            .required("as many extents of the box, and a stride in bytes for each mode but the first"));
    }
    let name = map.text("dtype").unwrap_or_default();
    let dtype: MapType = name.parse().map_err(|_| {
        bad(format!("`{}` is not a type of elements", map.at("dtype")))
            .found(format!("{name:?}"))
            .required("tf32, or a type as f16, bf16, f32, f64, i8, u8, i16, i32, e4m3, e5m2")
    })?;
    let swizzle = match map.whole("swizzle") {
        Some(32) => MapSwizzle::B32,
        Some(64) => MapSwizzle::B64,
        Some(128) => MapSwizzle::B128,
        _ => MapSwizzle::None,
    };
    let fill = |of: &[u64], rest: u64, i: usize| of.get(i).copied().unwrap_or(rest);
    Ok(TensorMapSpec {
        address: 0,
        dtype,
        rank: dims.len() as u32,
        dims: core::array::from_fn(|i| fill(&dims, 1, i)),
        strides: core::array::from_fn(|i| fill(&strides, 0, i)),
        extents: core::array::from_fn(|i| u32::try_from(fill(&extents, 1, i)).unwrap_or(u32::MAX)),
        swizzle,
    })
}
