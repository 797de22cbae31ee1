//! Tensor maps as 128 bytes of memory.
//!
//! The driver's encoding is not documented, so this executor has its own. A map begins as zeros, `tensormap.replace` sets its fields, and
//! programs may copy it as bytes. The last 8 bytes are a checksum, which shows other changes.

use core::fmt;

use super::map_element::Element;
use crate::tensor_map::{MOST_MODES, MapSwizzle, TensorMap};

/// Bytes of a map.
pub(super) const MAP_BYTES: u64 = 128;
/// Alignment of a map, as `CUtensorMap` declares it.
pub(super) const MAP_ALIGN: u64 = 64;

/// The contents of a map: a tensor, and its boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) address: u64,
    pub(super) element: Element,
    pub(super) rank: u32,
    /// Extents of the tensor, in elements; strides of the modes after the first, in bytes.
    pub(super) dims: [u64; MOST_MODES],
    pub(super) strides: [u64; MOST_MODES - 1],
    /// Extents of the box in the tensor. A copy takes every `steps`-th element along a mode, and all along the first mode.
    pub(super) extents: [u32; MOST_MODES],
    pub(super) steps: [u32; MOST_MODES],
    pub(super) swizzle: MapSwizzle,
    pub(super) interleave: u32,
    /// Whether loads fill elements outside the tensor with NaN instead of zeros.
    pub(super) fills_nan: bool,
}

impl Map {
    /// A map of the launch, of a tensor at this address; `None` where a map cannot have its elements.
    pub(super) fn placed(map: &TensorMap, address: u64) -> Option<Map> {
        Some(Map {
            address,
            element: Element::of(map.ty)?,
            rank: map.rank,
            dims: map.dims,
            strides: map.strides,
            extents: map.extents,
            steps: [1; MOST_MODES],
            swizzle: map.swizzle,
            interleave: 0,
            fills_nan: false,
        })
    }
}

impl fmt::Display for Map {
    /// `f16 (64,128):(1,8192 B), box (64,128), swizzle 128 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank as usize;
        let list = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(",");
        let dims = list(&mut self.dims.iter().take(rank).map(ToString::to_string));
        let strides = list(&mut self.strides.iter().take(rank.saturating_sub(1)).map(|s| format!("{s} B")));
        let extents = list(&mut self.extents.iter().take(rank).map(ToString::to_string));
        write!(f, "{} ({dims}):(1,{strides}), box ({extents}), swizzle {}", self.element.name(), self.swizzle)
    }
}

impl Map {
    /// Elements of a box along a mode in shared memory.
    pub(super) fn count(&self, mode: usize) -> u64 {
        let (extent, step) = (u64::from(self.extents[mode]), u64::from(self.steps[mode]));
        if mode == 0 { extent } else { extent.div_ceil(step.max(1)) }
    }

    /// Bytes of a row of a box.
    pub(super) fn row_bytes(&self) -> u64 {
        u64::from(self.extents[0]) * self.element.bytes()
    }

    /// The bytes of a box in shared memory.
    pub(super) fn box_bytes(&self) -> u64 {
        (0..self.rank as usize).map(|mode| self.count(mode)).product::<u64>() * self.element.bytes()
    }

    /// Checks a map as a whole, like `cuTensorMapEncodeTiled`. Returns the requirement, and the value that was found.
    pub(super) fn flaw(&self) -> Option<(&'static str, String)> {
        let rank = self.rank as usize;
        if !(1..=MOST_MODES).contains(&rank) {
            return Some(("1 to 5 modes", format!("{rank} modes")));
        }
        if !self.address.is_multiple_of(16) {
            return Some(("an address that is a multiple of 16 bytes", format!("{:#x}", self.address)));
        }
        if let Some(d) = self.dims[..rank].iter().find(|d| !(1..=1 << 32).contains(*d)) {
            return Some(("extents of 1 to 2^32", format!("{d}")));
        }
        if let Some(s) = self.strides[..rank - 1].iter().find(|s| !s.is_multiple_of(16) || **s >= 1 << 40) {
            return Some(("strides that are multiples of 16 bytes, below 2^40", format!("{s} B")));
        }
        if let Some(e) = self.extents[..rank].iter().find(|e| !(1..=256).contains(*e)) {
            return Some(("extents of a box of 1 to 256", format!("{e}")));
        }
        let row = self.row_bytes();
        if !row.is_multiple_of(16) {
            return Some(("rows of a box that are multiples of 16 bytes", format!("{row} B")));
        }
        if self.fills_nan && self.element.nan().is_none() {
            return Some(("NaN only for elements that are floats", self.element.name().to_owned()));
        }
        let span = self.swizzle.span().unwrap_or(row);
        (self.swizzle != MapSwizzle::None && row > span)
            .then(|| ("rows of a box within the span of its swizzle", format!("{row} B, swizzle {}", self.swizzle)))
    }
}

/// A field that `tensormap.replace` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Address,
    Rank,
    Element,
    Interleave,
    Swizzle,
    Fill,
    Extent,
    Dim,
    Stride,
    Step,
}

/// The place of a field in the bytes of a map.
struct FieldPlace {
    field: Field,
    name: &'static str,
    /// Its offset and size; the bytes of further modes follow.
    at: usize,
    bytes: usize,
    /// Modes, or 0 where it has no number.
    modes: u32,
    /// The largest value for a field that ptxas takes only as a number in the text.
    most_literal: Option<u64>,
    is_wide: bool,
}

const fn place(field: Field, name: &'static str, at: usize, bytes: usize, modes: u32) -> FieldPlace {
    let is_wide = matches!(field, Field::Address | Field::Stride);
    FieldPlace { field, name, at, bytes, modes, most_literal: None, is_wide }
}

const fn literal(field: Field, name: &'static str, at: usize, most: u64) -> FieldPlace {
    FieldPlace { most_literal: Some(most), ..place(field, name, at, 1, 0) }
}

const PLACES: [FieldPlace; 10] = [
    place(Field::Address, "global_address", 0, 8, 0),
    place(Field::Rank, "rank", 105, 1, 0),
    literal(Field::Element, "elemtype", 106, 12),
    literal(Field::Interleave, "interleave_layout", 107, 2),
    literal(Field::Swizzle, "swizzle_mode", 108, 3),
    literal(Field::Fill, "fill_mode", 109, 1),
    place(Field::Extent, "box_dim", 80, 4, 5),
    place(Field::Dim, "global_dim", 8, 8, 5),
    place(Field::Stride, "global_stride", 48, 8, 4),
    place(Field::Step, "element_stride", 100, 1, 5),
];

/// Offset of the bits that mark the fields that are set.
const SET: usize = 112;
/// Offset of the checksum.
const SEAL: usize = 120;

impl Field {
    pub(super) fn parse(name: &str) -> Option<Field> {
        PLACES.iter().find(|place| place.name == name).map(|place| place.field)
    }

    fn place(self) -> &'static FieldPlace {
        &PLACES[self as usize]
    }

    /// Whether its values have 64 bits.
    pub(super) fn is_wide(self) -> bool {
        self.place().is_wide
    }

    /// Number of modes that ptxas accepts, or 0 for a field without modes.
    pub(super) fn modes(self) -> u32 {
        if self.place().modes > 0 { MOST_MODES as u32 } else { 0 }
    }

    /// The largest number that ptxas accepts, for a field without registers.
    pub(super) fn most_literal(self) -> Option<u64> {
        self.place().most_literal
    }

    /// `box_dim 1`.
    pub(super) fn describe(self, mode: u32) -> String {
        let place = self.place();
        if place.modes == 0 { place.name.to_owned() } else { format!("{} {mode}", place.name) }
    }

    /// The bit that marks it as set.
    fn bit(self, mode: u32) -> u64 {
        let before: u32 = PLACES[..self as usize].iter().map(|place| place.modes.max(1)).sum();
        1 << (before + mode)
    }

    /// For a wrong value: the requirement, and the value to use instead.
    pub(super) fn wrong(self, mode: u32, value: u64) -> Option<(&'static str, u64)> {
        let is_within = |least: u64, most: u64| (least..=most).contains(&value);
        let (fits, required, instead) = match self {
            Field::Address => (value.is_multiple_of(16), "a multiple of 16 bytes", value & !15),
            Field::Rank => (is_within(0, 4), "0 to 4, the number of modes less one", 4),
            Field::Extent => (is_within(1, 256), "1 to 256 elements", value.clamp(1, 256)),
            Field::Dim => (is_within(1, u64::from(u32::MAX)), "1 to 2^32-1 elements", 1),
            Field::Step => (is_within(1, 8), "1 to 8", value.clamp(1, 8)),
            Field::Stride if mode >= 4 => (false, "a stride of 0 to 3: the first mode is contiguous", 0),
            Field::Stride if !value.is_multiple_of(16) => {
                (false, "a multiple of 16 bytes (toolkits before 12.5 took it in units of 16)", value & !15)
            }
            Field::Stride => (value < 1 << 40, "less than 2^40 bytes", 0),
            Field::Element | Field::Interleave | Field::Swizzle | Field::Fill => (true, "", value),
        };
        (!fits).then_some((required, instead))
    }
}

/// The bytes of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Image(pub(super) [u64; (MAP_BYTES / 8) as usize]);

impl Image {
    pub(super) fn of(map: &Map) -> Image {
        let mut image = Image([0; 16]);
        let rank = map.rank;
        image.put(Field::Address, 0, map.address);
        image.put(Field::Rank, 0, u64::from(rank.saturating_sub(1)));
        image.put(Field::Element, 0, map.element as u64);
        image.put(Field::Interleave, 0, u64::from(map.interleave));
        image.put(Field::Swizzle, 0, map.swizzle as u64);
        image.put(Field::Fill, 0, u64::from(map.fills_nan));
        for mode in 0..MOST_MODES as u32 {
            let m = mode as usize;
            image.put(Field::Extent, mode, u64::from(map.extents[m]));
            image.put(Field::Dim, mode, map.dims[m]);
            image.put(Field::Step, mode, u64::from(map.steps[m]));
            if let Some(stride) = map.strides.get(m) {
                image.put(Field::Stride, mode, *stride);
            }
        }
        image
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn get(&self, at: usize, bytes: usize) -> u64 {
        (0..bytes).rev().fold(0, |value, i| value << 8 | self.0[(at + i) / 8] >> ((at + i) % 8 * 8) & 0xff)
    }

    fn set(&mut self, at: usize, bytes: usize, value: u64) {
        for i in 0..bytes {
            let (word, shift) = (&mut self.0[(at + i) / 8], (at + i) % 8 * 8);
            *word = *word & !(0xff << shift) | (value >> (8 * i) & 0xff) << shift;
        }
    }

    /// The checksum; 0 if all other bytes are 0.
    fn seal(&self) -> u64 {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ word >> 7;
        let of = |words: &mut dyn Iterator<Item = u64>| words.fold(1, mix);
        let n = SEAL / 8;
        of(&mut self.0[..n].iter().copied()) ^ of(&mut core::iter::repeat_n(0, n))
    }

    /// Whether it is a map, or the beginning of one.
    pub(super) fn is_sound(&self) -> bool {
        self.0[SEAL / 8] == self.seal()
    }

    /// Sets a field.
    pub(super) fn put(&mut self, field: Field, mode: u32, value: u64) {
        let place = field.place();
        if mode >= place.modes.max(1) {
            return;
        }
        self.set(place.at + mode as usize * place.bytes, place.bytes, value);
        let set = self.get(SET, 8);
        self.set(SET, 8, set | field.bit(mode));
        self.0[SEAL / 8] = self.seal();
    }

    fn field(&self, field: Field, mode: u32) -> u64 {
        let place = field.place();
        self.get(place.at + mode as usize * place.bytes, place.bytes)
    }

    /// The first field that is not set.
    pub(super) fn missing(&self) -> Option<String> {
        let set = self.get(SET, 8);
        let rank = self.field(Field::Rank, 0) as u32 + 1;
        let modes = |place: &FieldPlace| match (place.modes, place.field) {
            (0, _) => 1,
            (_, Field::Stride) => rank - 1,
            _ => rank,
        };
        let all = PLACES.iter().flat_map(|place| (0..modes(place)).map(|mode| (place.field, mode)));
        let mut missing = all.filter(|(field, mode)| set & field.bit(*mode) == 0);
        missing.next().map(|(field, mode)| field.describe(mode))
    }

    /// The contents, if every field is set.
    pub(super) fn map(&self) -> Map {
        let all = |field: Field| core::array::from_fn(|mode| self.field(field, mode as u32) as u32);
        let swizzle = MapSwizzle::ALL.get(self.field(Field::Swizzle, 0) as usize);
        Map {
            address: self.field(Field::Address, 0),
            element: Element::ALL.get(self.field(Field::Element, 0) as usize).map_or(Element::U8, |(of, ..)| *of),
            rank: (self.field(Field::Rank, 0) as u32 + 1).min(MOST_MODES as u32),
            dims: core::array::from_fn(|mode| self.field(Field::Dim, mode as u32)),
            strides: core::array::from_fn(|mode| self.field(Field::Stride, mode as u32)),
            extents: all(Field::Extent),
            steps: all(Field::Step),
            swizzle: swizzle.copied().unwrap_or_default(),
            interleave: self.field(Field::Interleave, 0) as u32,
            fills_nan: self.field(Field::Fill, 0) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Element, Field, Image, Map, PLACES};
    use crate::tensor_map::MapSwizzle;

    fn map() -> Map {
        Map {
            address: 0x7f00_0000_1230,
            element: Element::Bf16,
            rank: 5,
            dims: [1 << 32, 2, 3, 4, 5],
            strides: [16, 32, 48, (1 << 40) - 16],
            extents: [256, 1, 2, 3, 4],
            steps: [1, 2, 3, 4, 8],
            swizzle: MapSwizzle::B128,
            interleave: 2,
            fills_nan: true,
        }
    }

    #[test]
    fn bytes_say_what_the_map_says() {
        let image = Image::of(&map());
        assert!(image.is_sound() && image.missing().is_none());
        assert_eq!(image.map(), map());
        assert!(Image([0; 16]).is_sound());
        assert_eq!(Image([0; 16]).missing().as_deref(), Some("global_address"));
    }

    #[test]
    fn each_changed_byte_is_seen() {
        for image in [Image::of(&map()), Image([0; 16])] {
            for bit in 0..1024 {
                let mut changed = image;
                changed.0[bit / 64] ^= 1 << (bit % 64);
                assert!(!changed.is_sound(), "bit {bit}");
            }
        }
    }

    #[test]
    fn fields_lie_apart_and_in_the_order_of_their_numbers() {
        let mut taken = [false; 128];
        for (i, place) in PLACES.iter().enumerate() {
            assert_eq!(place.field as usize, i);
            assert_eq!(Field::parse(place.name), Some(place.field));
            let own = &mut taken[place.at..place.at + place.bytes * place.modes.max(1) as usize];
            assert!(own.iter().all(|taken| !taken), "{}", place.name);
            own.fill(true);
        }
        assert!(taken[super::SET..].iter().all(|taken| !taken));
    }
}
