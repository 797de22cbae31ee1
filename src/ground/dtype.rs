//! Element types: one table with the facts for the generator, the executor and the launcher.
//!
//! Sizes and C++ names follow CUTLASS `numeric_types.h`; NumPy descriptors follow NumPy's array interface.

use core::fmt;
use core::str::FromStr;

use crate::diagnostic::debug_as_display;
use crate::units::Bytes;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    Bf16,
    /// FP8 with 4 bits of exponent and 3 of significand, largest 448, without infinities (OCP 8-bit Floating Point
    /// Specification, E4M3).
    E4m3,
    /// FP8 with 5 bits of exponent and 2 of significand, largest 57344 (OCP 8-bit Floating Point Specification, E5M2).
    E5m2,
    /// Signed integer of 32 bits, two's complement.
    I32,
    /// Signed integer of 16 bits, two's complement.
    I16,
    /// Signed integer of 8 bits, two's complement.
    I8,
    /// Unsigned integer of 8 bits.
    U8,
    /// A byte that is false where it is zero and true otherwise; written as 0 or 1.
    Bool,
}

/// What kind of numbers an element type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Floating point: sign, exponent, significand.
    Float,
    /// Integers.
    Int,
    /// Truth values, which go with either.
    Bool,
}

struct Row {
    dtype: DType,
    name: &'static str,
    bytes: u32,
    kind: Kind,
    cxx: &'static str,
    /// Accepted NumPy descriptors, the one that is written first.
    npy: &'static [&'static str],
}

macro_rules! table {
    ($($dtype:ident $name:literal $bytes:literal $kind:ident $cxx:literal [$($npy:literal),+];)+) => {
        const TABLE: &[Row] = &[$(Row {
            dtype: DType::$dtype,
            name: $name,
            bytes: $bytes,
            kind: Kind::$kind,
            cxx: $cxx,
            npy: &[$($npy),+],
        }),+];

        impl DType {
            /// Every element type, in table order.
            pub const ALL: &'static [DType] = &[$(DType::$dtype),+];
        }
    };
}

// NumPy has no bfloat16 and no FP8: ml_dtypes saves them as void, others as the bits in an unsigned integer.
table! {
    F64 "f64" 8 Float "double" ["<f8"];
    F32 "f32" 4 Float "float" ["<f4"];
    F16 "f16" 2 Float "cute::half_t" ["<f2"];
    Bf16 "bf16" 2 Float "cute::bfloat16_t" ["<u2", "<V2", "|V2"];
    E4m3 "e4m3" 1 Float "cute::float_e4m3_t" ["|u1", "|V1", "<V1"];
    E5m2 "e5m2" 1 Float "cute::float_e5m2_t" ["|u1", "<f1", "|V1", "<V1"];
    I32 "i32" 4 Int "int32_t" ["<i4"];
    I16 "i16" 2 Int "int16_t" ["<i2"];
    I8 "i8" 1 Int "int8_t" ["|i1"];
    U8 "u8" 1 Int "uint8_t" ["|u1"];
    Bool "bool" 1 Bool "uint8_t" ["|b1"];
}

impl DType {
    fn row(self) -> &'static Row {
        // The table lists every variant once, in declaration order (tested below).
        &TABLE[self as usize]
    }

    /// The short name used in recipes, file names and on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Size of one element.
    pub fn bytes(self) -> Bytes {
        Bytes(u64::from(self.row().bytes))
    }

    /// Size of one element in bits.
    pub fn bits(self) -> u32 {
        self.row().bytes * 8
    }

    /// What kind of numbers it holds.
    pub fn kind(self) -> Kind {
        self.row().kind
    }

    /// The C++ type in emitted text. `bool` is a byte there too, so that any byte may be read.
    pub fn cxx(self) -> &'static str {
        self.row().cxx
    }

    /// NumPy descriptors that hold this type's bits; the first is the one that is written.
    pub fn npy_descriptors(self) -> &'static [&'static str] {
        self.row().npy
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no element type.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown element type `{name}`; known are {known}", name = self.0,
    known = DType::ALL.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownDType(pub String);

debug_as_display!(UnknownDType);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        TABLE.iter().find(|r| r.name == s).map(|r| r.dtype).ok_or_else(|| UnknownDType(s.to_owned()))
    }
}

crate::settings::json_as_text!(DType);

/// A Rust type that is the element type of a tensor.
///
/// # Safety
/// `Self` must have the size, alignment and bit representation of `Self::DTYPE`, and every bit pattern must be valid.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The row of the table.
    const DTYPE: DType;
}

pub use half::{bf16, f16};

/// The bits of an [`DType::E4m3`] element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct E4m3(pub u8);

/// The bits of an [`DType::E5m2`] element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct E5m2(pub u8);

/// A [`DType::Bool`] element: true unless the byte is zero. Unlike Rust's `bool`, any byte is a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Bool(value.into())
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> Self {
        value.0 != 0
    }
}

macro_rules! elements {
    ($($T:ty => $dtype:ident: $why:literal;)+) => {$(
        #[doc = $why]
        // SAFETY: the type has the size and representation of its row, and no invalid bits: see the line above.
        unsafe impl Element for $T {
            const DTYPE: DType = DType::$dtype;
        }
    )+};
}

elements! {
    f64 => F64: "IEEE 754 binary64; every bit pattern is a value.";
    f32 => F32: "IEEE 754 binary32; every bit pattern is a value.";
    half::f16 => F16: "`repr(transparent)` over u16, binary16 bits.";
    half::bf16 => Bf16: "`repr(transparent)` over u16, bfloat16 bits.";
    E4m3 => E4m3: "`repr(transparent)` over u8.";
    E5m2 => E5m2: "`repr(transparent)` over u8.";
    i32 => I32: "Two's complement, 32 bits.";
    i16 => I16: "Two's complement, 16 bits.";
    i8 => I8: "Two's complement, 8 bits.";
    u8 => U8: "8 bits.";
    Bool => Bool: "`repr(transparent)` over u8.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_type_in_order() {
        assert_eq!(TABLE.len(), DType::ALL.len());
        for (row, dtype) in TABLE.iter().zip(DType::ALL) {
            assert_eq!(row.dtype, *dtype);
            assert_eq!(dtype.row().name, row.name);
            assert_eq!(row.name.parse(), Ok(*dtype));
        }
    }
}
