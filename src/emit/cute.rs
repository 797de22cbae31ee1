//! Static layouts as CuTe C++ types, as a person would write them: `Layout<Shape<_4,_64>,Stride<_64,_1>>`.

use crate::layout::{IntTuple, Layout};

/// Static integers that CuTe has a short name for (`cute/numeric/integral_constant.hpp`).
const NAMED: &[i64] = &[
    -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
    30, 31, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 384, 512, 768, 1024, 2048, 4096, 8192,
    16384, 32768, 65536, 131072, 262144, 524288,
];

/// A static integer: `_16`, `Int<17>`, `_m1`.
fn int(value: i64) -> String {
    match value {
        -1 => "_m1".to_owned(),
        v if NAMED.contains(&v) => format!("_{v}"),
        v => format!("Int<{v}>"),
    }
}

fn tuple(kind: &str, t: &IntTuple) -> String {
    match t.as_int() {
        Some(value) => int(value),
        None => {
            let modes: Vec<String> = t.modes().map(|m| tuple(kind, &m)).collect();
            format!("{kind}<{}>", modes.join(","))
        }
    }
}

/// A static shape: `Shape<_64,_512>`, or `_8` for a single extent.
pub fn shape_type(shape: &IntTuple) -> String {
    tuple("Shape", shape)
}

/// A static layout: `Layout<Shape<_4,_64>,Stride<_64,_1>>`.
pub fn layout_type(layout: &Layout) -> String {
    format!("Layout<{},{}>", tuple("Shape", layout.shape()), tuple("Stride", layout.stride()))
}
