//! Tensor maps of launch files.

use serde_json::{Map as Object, Value};

use super::error::Error;
use super::file::bad;
use crate::tiling::{MOST_MAP_MODES, MapSwizzle, MapType, TensorMapSpec};

const KEYS: [&str; 9] = ["npy", "out", "of", "byte", "dtype", "dims", "strides", "box", "swizzle"];

/// A tensor map, and where its tensor lies.
pub(super) struct Map {
    /// The argument whose memory it is, where it has none of its own.
    of: Option<usize>,
    pub(super) byte: u64,
    pub(super) spec: TensorMapSpec,
}

impl Map {
    /// The buffer of its tensor, among those of the arguments before it.
    pub(super) fn number(&self, arguments: &[Option<usize>]) -> Result<usize, Error> {
        let number = self.of.and_then(|of| arguments.get(of).copied().flatten());
        number.ok_or_else(|| {
            bad("a tensor map has no tensor")
                .found(self.of.map_or_else(|| "neither `npy` nor `of`".to_owned(), |of| format!("`of`: {of}")))
                .required("`npy`: a file, or `of`: the number of an array among the arguments before it, from 0")
        })
    }
}

fn numbers(map: &Object<String, Value>, key: &str, most: usize) -> Result<Vec<u64>, Error> {
    let all = map.get(key).and_then(Value::as_array);
    let all = all.and_then(|a| a.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()).filter(|a| a.len() <= most);
    all.ok_or_else(|| {
        bad(format!("`{key}` of a tensor map cannot be read")).required(format!("at most {most} numbers"))
    })
}

/// Reads what stands behind `tensor_map`.
pub(super) fn read(map: &Object<String, Value>) -> Result<Map, Error> {
    if let Some(key) = map.keys().find(|k| !KEYS.contains(&k.as_str())) {
        return Err(bad("a tensor map has an unknown key").found(key.as_str()).required(KEYS.join(", ")));
    }
    let (dims, extents) = (numbers(map, "dims", MOST_MAP_MODES)?, numbers(map, "box", MOST_MAP_MODES)?);
    let strides = if dims.len() > 1 { numbers(map, "strides", MOST_MAP_MODES - 1)? } else { Vec::new() };
    if dims.is_empty() || extents.len() != dims.len() || strides.len() + 1 != dims.len() {
        return Err(bad("a tensor map has modes that do not fit each other")
            .found(format!("{} extents, {} strides, {} of a box", dims.len(), strides.len(), extents.len()))
            .required("1 to 5 extents, as many of the box, and a stride in bytes for each mode but the first"));
    }
    let dtype = map.get("dtype").and_then(Value::as_str).and_then(|name| name.parse::<MapType>().ok());
    let dtype = dtype.ok_or_else(|| bad("a tensor map has no `dtype`").required("a type, as \"f16\""))?;
    let swizzle = match map.get("swizzle").map_or(Some(0), Value::as_u64) {
        Some(0) => MapSwizzle::None,
        Some(32) => MapSwizzle::B32,
        Some(64) => MapSwizzle::B64,
        Some(128) => MapSwizzle::B128,
        _ => return Err(bad("a swizzle is unknown").required("0, 32, 64 or 128")),
    };
    let number = |key: &str| match map.get(key) {
        None => Ok(None),
        Some(v) => v.as_u64().map(Some).ok_or_else(|| bad(format!("`{key}` is no number")).found(v.to_string())),
    };
    let fill = |of: &[u64], rest: u64, i: usize| of.get(i).copied().unwrap_or(rest);
    let spec = TensorMapSpec {
        address: 0,
        dtype,
        rank: dims.len() as u32,
        dims: core::array::from_fn(|i| fill(&dims, 1, i)),
        strides: core::array::from_fn(|i| fill(&strides, 0, i)),
        extents: core::array::from_fn(|i| u32::try_from(fill(&extents, 1, i)).unwrap_or(u32::MAX)),
        swizzle,
    };
    Ok(Map { of: number("of")?.map(|n| n as usize), byte: number("byte")?.unwrap_or(0), spec })
}
