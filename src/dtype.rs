//! Element types: one table with what the generator, the executor and the launcher need to know.
//!
//! Sizes and C++ names follow CUTLASS `numeric_types.h`; NumPy descriptors follow NumPy's array interface.

use core::fmt;
use core::str::FromStr;

use crate::units::Bytes;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    Bf16,
}

struct Row {
    dtype: DType,
    name: &'static str,
    bytes: u32,
    cxx: &'static str,
    /// Accepted NumPy descriptors, the one that is written first.
    npy: &'static [&'static str],
}

const TABLE: &[Row] = &[
    Row { dtype: DType::F32, name: "f32", bytes: 4, cxx: "float", npy: &["<f4"] },
    Row { dtype: DType::F16, name: "f16", bytes: 2, cxx: "cute::half_t", npy: &["<f2"] },
    // NumPy has no bfloat16: ml_dtypes saves it as 2-byte void, others as the bits in a uint16.
    Row { dtype: DType::Bf16, name: "bf16", bytes: 2, cxx: "cute::bfloat16_t", npy: &["<u2", "<V2", "|V2"] },
];

impl DType {
    /// Every element type, in table order.
    pub const ALL: &'static [DType] = &[DType::F32, DType::F16, DType::Bf16];

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

    /// The C++ type in emitted text.
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no element type; known are f32, f16, bf16")]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        TABLE.iter().find(|r| r.name == s).map(|r| r.dtype).ok_or_else(|| UnknownDType(s.to_owned()))
    }
}

/// A Rust type that is the element type of a tensor.
///
/// # Safety
/// `Self` must have the size, alignment and bit representation of `Self::DTYPE`, and every bit pattern must be valid.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The row of the table.
    const DTYPE: DType;
}

// SAFETY: f32 is IEEE 754 binary32; every bit pattern is a value.
unsafe impl Element for f32 {
    const DTYPE: DType = DType::F32;
}

// SAFETY: `half::f16` is `repr(transparent)` over u16 and holds binary16 bits.
unsafe impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}

// SAFETY: `half::bf16` is `repr(transparent)` over u16 and holds bfloat16 bits.
unsafe impl Element for half::bf16 {
    const DTYPE: DType = DType::Bf16;
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
