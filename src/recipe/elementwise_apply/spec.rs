//! Which rung of the ladder an elementwise kernel is.

use core::fmt;
use core::str::FromStr;

/// The structure of the kernel: the rungs of NVIDIA's CuTe DSL notebook `elementwise_add.ipynb`, and one for inputs that
/// are contiguous along another mode than the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// The fastest that the tensors allow: `Transposed` where an input is contiguous along another mode than the outputs,
    /// else `Vectorized`.
    #[default]
    Auto,
    /// One thread for one element.
    Naive,
    /// Threads take whole vectors of neighbouring elements, several of them in flight.
    Vectorized,
    /// Each block takes a tile, which a thread-value layout gives to threads and vectors.
    Tv,
    /// The same, with blocks renumbered so that neighbouring blocks take neighbouring tiles of a row.
    Remapped,
    /// Blocks turn tiles of the transposed inputs in shared memory.
    Transposed,
}

impl Variant {
    /// Every variant, the ladder first.
    pub const ALL: &'static [Variant] =
        &[Variant::Auto, Variant::Naive, Variant::Vectorized, Variant::Tv, Variant::Remapped, Variant::Transposed];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Auto => "auto",
            Variant::Naive => "naive",
            Variant::Vectorized => "vectorized",
            Variant::Tv => "tv",
            Variant::Remapped => "remapped",
            Variant::Transposed => "transposed",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no variant; known are auto, naive, vectorized, tv, remapped, transposed")]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        Variant::ALL.iter().copied().find(|v| v.name() == text).ok_or_else(|| UnknownVariant(text.to_owned()))
    }
}
