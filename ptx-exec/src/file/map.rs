//! Tensor maps of launch files.

use super::bad;
use super::check::Checked;
use crate::Error;
use crate::tensor_map::{MapSwizzle, TensorMap};

/// Reads the fields of `tensor_map`, except the place of its tensor.
pub(super) fn read(map: &Checked<'_>) -> Result<TensorMap, Error> {
    let numbers = |key: &str| map.numbers(key).unwrap_or_default();
    let (dims, strides, extents) = (numbers("dims"), numbers("strides"), numbers("box"));
    if extents.len() != dims.len() || strides.len() + 1 != dims.len() {
        return Err(bad(format!("`dims`, `strides` and `box` of `{}` do not fit each other", map.path))
            .found(format!("{} extents, {} strides, {} of a box", dims.len(), strides.len(), extents.len()))
            .required("as many extents of the box, and a stride in bytes for each mode but the first"));
    }
    let name = map.text("dtype").unwrap_or_default();
    let Some(ty) = TensorMap::type_of(name) else {
        return Err(bad(format!("`{}` is not a type of elements", map.at("dtype")))
            .found(format!("{name:?}"))
            .required("tf32, or a type as f16, bf16, f32, f64, i8, u8, i16, i32, e4m3, e5m2"));
    };
    let swizzle = match map.whole("swizzle") {
        Some(32) => MapSwizzle::B32,
        Some(64) => MapSwizzle::B64,
        Some(128) => MapSwizzle::B128,
        _ => MapSwizzle::None,
    };
    let extents: Vec<u32> = extents.iter().map(|e| u32::try_from(*e).unwrap_or(u32::MAX)).collect();
    Ok(TensorMap::new(ty, &dims, &strides, &extents).swizzle(swizzle))
}
