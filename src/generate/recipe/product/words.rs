//! The words of matrix products: how a matrix lies, and extents.

use core::fmt;
use core::str::FromStr;

use crate::plan::ModeStride;
use crate::recipe::field::as_displayed;
use crate::settings::named;

named! {
    /// Along which mode a matrix is contiguous.
    #[derive(Default)]
    Major, "storage order":
    /// The last: rows are contiguous, `(?,1)`.
    #[default]
    Row = "row",
    /// The first: columns are contiguous, `(1,?)`.
    Col = "col",
}

impl Major {
    /// Its name in Rust.
    pub(crate) fn variant(self) -> &'static str {
        match self {
            Major::Row => "Row",
            Major::Col => "Col",
        }
    }

    /// How a matrix with these strides lies, whatever modes are behind its first two.
    pub(crate) fn of(strides: &[ModeStride]) -> Option<Self> {
        match strides {
            [_, ModeStride::Unit, ..] => Some(Major::Row),
            [ModeStride::Unit, _, ..] => Some(Major::Col),
            _ => None,
        }
    }

    /// The strides of a matrix that lies so.
    pub(crate) fn strides(self) -> [ModeStride; 2] {
        match self {
            Major::Row => [ModeStride::Dynamic, ModeStride::Unit],
            Major::Col => [ModeStride::Unit, ModeStride::Dynamic],
        }
    }
}

/// Extents as text `128x128x16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extents<const N: usize>(pub [u32; N]);

impl<const N: usize> fmt::Display for Extents<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|e| e.to_string()).join("x"))
    }
}

impl<const N: usize> FromStr for Extents<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Result<Vec<u32>, _> = text.split('x').map(|part| part.trim().parse()).collect();
        let extents = parts.ok().and_then(|parts| <[u32; N]>::try_from(parts).ok());
        extents
            .map(Self)
            .ok_or_else(|| format!("{N} numbers with x between them are read, such as {}", ["8"; N].join("x")))
    }
}

as_displayed!(Major, Extents<2>, Extents<3>);
