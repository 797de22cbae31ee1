//! Static layouts as CuTe C++ types, as a person would write them: `Layout<Shape<_4,_64>,Stride<_64,_1>>`.

use crate::layout::{IntTuple, Layout, Swizzle};

/// Static integers that CuTe has a short name for (`cute/numeric/integral_constant.hpp`), among those that plans use.
fn has_short_name(value: i64) -> bool {
    let up_to_ten = (0..=10).contains(&value);
    let multiple = value == 12 || ((16..=256).contains(&value) && value % 8 == 0);
    let larger = matches!(value, 384 | 768) || ((512..=524_288).contains(&value) && value.count_ones() == 1);
    up_to_ten || multiple || larger
}

/// A static integer: `_16`, `Int<17>`.
pub(crate) fn int(value: i64) -> String {
    if has_short_name(value) { format!("_{value}") } else { format!("Int<{value}>") }
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

/// A static shape of rank 2: `Shape<_64,_512>`.
pub fn shape_type([m, n]: [i64; 2]) -> String {
    format!("Shape<{},{}>", int(m), int(n))
}

/// A static layout: `Layout<Shape<_4,_64>,Stride<_64,_1>>`.
pub fn layout_type(layout: &Layout) -> String {
    format!("Layout<{},{}>", tuple("Shape", layout.shape()), tuple("Stride", layout.stride()))
}

/// A static layout behind a swizzle, as `composition` makes it.
pub fn swizzled_type(swizzle: Swizzle, layout: &Layout) -> String {
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    format!("decltype(composition(Swizzle<{bits},{base},{shift}>{{}}, {}{{}}))", layout_type(layout))
}

/// A static tuple of integers of a kind: `Shape<_128,_64,_4>`, `Tile<_32,_32,_16>`.
pub(crate) fn tuple_type(kind: &str, extents: &[i64]) -> String {
    let modes: Vec<String> = extents.iter().map(|extent| int(*extent)).collect();
    format!("{kind}<{}>", modes.join(","))
}
