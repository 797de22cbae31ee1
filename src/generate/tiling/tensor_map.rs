//! Tensor maps: what the tensor memory accelerator is told of a matrix.

use core::fmt;
use core::str::FromStr;

use crate::dtype::{DType, UnknownDType};
use crate::units::Bytes;

/// Bytes of a line of L2.
const LINE: u64 = 128;

/// The most modes that a tensor map has.
pub const MOST_MAP_MODES: usize = 5;

/// How TMA exchanges chunks of 16 bytes in shared memory (PTX ISA, "Swizzling Modes").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// How many bits of an address are exchanged: B of `Sw<B,4,3>` on bytes.
    pub fn bits(self) -> i64 {
        self as i64
    }

    /// The bytes within which chunks are exchanged.
    pub fn span(self) -> Option<Bytes> {
        (self != MapSwizzle::None).then_some(Bytes(16 << self.bits()))
    }
}

impl fmt::Display for MapSwizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span() {
            Some(bytes) => write!(f, "{bytes}"),
            None => f.write_str("none"),
        }
    }
}

/// What TMA takes elements for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapType {
    /// What they are: they are copied bit by bit.
    Of(DType),
    /// f32, which loads round to tf32: to the nearest, of two that are as near the even one (seen on an H200).
    Tf32,
}

impl MapType {
    /// The type of the elements in memory.
    pub fn dtype(self) -> DType {
        match self {
            MapType::Of(dtype) => dtype,
            MapType::Tf32 => DType::F32,
        }
    }

    /// Size of one.
    pub fn bytes(self) -> Bytes {
        self.dtype().bytes()
    }
}

impl fmt::Display for MapType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapType::Of(dtype) => dtype.fmt(f),
            MapType::Tf32 => f.write_str("tf32"),
        }
    }
}

impl FromStr for MapType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "tf32" { Ok(MapType::Tf32) } else { text.parse().map(MapType::Of) }
    }
}

impl From<DType> for MapType {
    fn from(dtype: DType) -> Self {
        MapType::Of(dtype)
    }
}

crate::settings::json_as_text!(MapType);

/// The arguments of `cuTensorMapEncodeTiled`, the contiguous mode first. What is not here is always the same: no interleave,
/// element strides of 1, zeros for what lies outside.
///
/// Source: CUDA Driver API, "Tensor Map Object Management".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorMapSpec {
    /// The address of the first element.
    pub address: u64,
    /// The type of an element.
    pub dtype: MapType,
    /// Modes; entries behind them in the arrays are 1, or 0 among the strides.
    pub rank: u32,
    /// Extents, in elements.
    pub dims: [u64; MOST_MAP_MODES],
    /// Strides of the modes after the first, in bytes.
    pub strides: [u64; MOST_MAP_MODES - 1],
    /// Extents of the box, in elements.
    pub extents: [u32; MOST_MAP_MODES],
    /// How the box lies in shared memory.
    pub swizzle: MapSwizzle,
}

impl TensorMapSpec {
    /// A matrix: extents along the contiguous mode and the other, bytes from one row to the next, and the same extents of a box.
    pub fn matrix(
        address: u64,
        dtype: impl Into<MapType>,
        [inner, outer]: [u64; 2],
        stride: u64,
        [box_inner, box_outer]: [u64; 2],
        swizzle: MapSwizzle,
    ) -> Self {
        let extent = |e: u64| u32::try_from(e).unwrap_or(u32::MAX);
        Self {
            address,
            dtype: dtype.into(),
            rank: 2,
            dims: [inner, outer, 1, 1, 1],
            strides: [stride, 0, 0, 0],
            extents: [extent(box_inner), extent(box_outer), 1, 1, 1],
            swizzle,
        }
    }

    /// So many of the same, each so many bytes behind the one before.
    #[must_use]
    pub fn batched(mut self, batches: u64, stride: u64) -> Self {
        self.rank = 3;
        self.dims[2] = batches;
        self.strides[1] = stride;
        self
    }
}

impl TensorMapSpec {
    /// Bytes that L2 fetches at once: 256 if the rows of a box are whole lines of 128 bytes, since the next box then comes along; else 128.
    /// Measured on an H100: 128 throughout, as in CuTe's maps, cost memory-bound products 2 %. 256 cost 16 % with rows of 64 bytes, and
    /// 4 to 14 % with rows across two lines.
    pub fn promotion(&self) -> Bytes {
        let strides = self.strides.iter().take(self.rank.saturating_sub(1) as usize);
        let lines = self.address.is_multiple_of(LINE) && strides.clone().all(|stride| stride.is_multiple_of(LINE));
        Bytes(if lines && self.swizzle == MapSwizzle::B128 { 2 * LINE } else { LINE })
    }

    /// Whether the driver encodes it: an address and strides of 16 bytes, strides below 2^40 bytes, extents of 1 to 2^32 (CUDA
    /// Driver API, `cuTensorMapEncodeTiled`).
    pub fn is_encodable(&self) -> bool {
        let rank = self.rank as usize;
        self.address.is_multiple_of(16)
            && self
                .strides
                .iter()
                .take(rank - 1)
                .all(|stride| stride.is_multiple_of(16) && *stride < 1 << 40 && *stride > 0)
            && self.dims.iter().take(rank).all(|extent| (1..=1 << 32).contains(extent))
    }
}

impl fmt::Display for TensorMapSpec {
    /// `f16 (64,128):(1,8192 B), box (64,128), swizzle 128 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank as usize;
        let list = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(",");
        let dims = list(&mut self.dims.iter().take(rank).map(ToString::to_string));
        let strides = list(&mut self.strides.iter().take(rank - 1).map(|s| format!("{s} B")));
        let extents = list(&mut self.extents.iter().take(rank).map(ToString::to_string));
        write!(f, "{} ({dims}):(1,{strides}), box ({extents}), swizzle {}", self.dtype, self.swizzle)
    }
}

/// An encoded tensor map, as a field of a parameter struct: 128 bytes at a multiple of 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct TensorMap(pub [u64; 16]);
