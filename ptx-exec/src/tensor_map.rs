//! Tensor maps: the description of a tensor for the tensor memory accelerator (TMA).

use core::fmt;

use crate::Ty;
use crate::map_element::Element;

/// The most modes that a tensor map has.
pub const MOST_MODES: usize = 5;

/// How TMA exchanges chunks of 16 bytes in shared memory (PTX ISA, "Swizzling Modes").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapSwizzle {
    /// Not at all.
    #[default]
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl MapSwizzle {
    /// All of them.
    pub const ALL: &'static [MapSwizzle] = &[MapSwizzle::None, MapSwizzle::B32, MapSwizzle::B64, MapSwizzle::B128];

    /// How many bits of an address are exchanged.
    pub fn bits(self) -> u32 {
        self as u32
    }

    /// The bytes within which chunks are exchanged.
    pub fn span(self) -> Option<u64> {
        (self != MapSwizzle::None).then_some(16 << self.bits())
    }
}

impl fmt::Display for MapSwizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span() {
            Some(bytes) => write!(f, "{bytes} B"),
            None => f.write_str("none"),
        }
    }
}

/// The arguments of `cuTensorMapEncodeTiled`, the contiguous mode first. The rest is fixed: no interleave, element strides of 1, and
/// zeros for elements outside of the tensor.
///
/// Source: CUDA Driver API, "Tensor Map Object Management".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorMap {
    pub(crate) ty: Ty,
    /// Modes; entries behind them in the arrays are 1, or 0 among the strides.
    pub(crate) rank: u32,
    pub(crate) dims: [u64; MOST_MODES],
    /// Strides of the modes after the first, in bytes.
    pub(crate) strides: [u64; MOST_MODES - 1],
    pub(crate) extents: [u32; MOST_MODES],
    pub(crate) swizzle: MapSwizzle,
}

impl TensorMap {
    /// A map from the extents of a tensor and of a box, in elements. `strides` holds the strides of the modes after the first, in bytes.
    /// A launch refuses a map that a driver would not encode.
    ///
    /// [`Ty::Tf32`] is f32 that loads round to tf32: to the nearest, halfway to the even one (seen on an H200).
    pub fn new(ty: Ty, dims: &[u64], strides: &[u64], extents: &[u32]) -> TensorMap {
        // Lists of different lengths give a map with 0 modes, which no driver encodes.
        let fits = dims.len() == extents.len() && dims.len() == strides.len() + 1;
        let of = |all: &[u64], rest: u64, i: usize| all.get(i).copied().unwrap_or(rest);
        TensorMap {
            ty,
            rank: if fits { dims.len() as u32 } else { 0 },
            dims: core::array::from_fn(|i| of(dims, 1, i)),
            strides: core::array::from_fn(|i| of(strides, 0, i)),
            extents: core::array::from_fn(|i| extents.get(i).copied().unwrap_or(1)),
            swizzle: MapSwizzle::None,
        }
    }

    /// Sets the swizzle of its boxes in shared memory; none by default.
    #[must_use]
    pub fn swizzle(mut self, swizzle: MapSwizzle) -> TensorMap {
        self.swizzle = swizzle;
        self
    }

    /// The element type that a launch file names: PTX's name, or `i8` for `s8` and its kind.
    pub(crate) fn type_of(name: &str) -> Option<Ty> {
        let signed = name.strip_prefix('i').map(|bits| format!("s{bits}"));
        Ty::parse(signed.as_deref().unwrap_or(name)).filter(|ty| Element::of(*ty).is_some())
    }
}
