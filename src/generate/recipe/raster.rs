//! The order in which the tiles of an output are taken.

use crate::recipe::field::as_displayed;
use crate::settings::named;

as_displayed!(Raster);

named! {
    /// The order in which blocks, or clusters of them, walk over the tiles of the output.
    Raster, "mode that blocks walk along":
    /// Neighbouring blocks take neighbouring tiles of a row: long runs of contiguous memory for row-major matrices.
    AlongN = "n",
    /// Neighbouring blocks take neighbouring tiles of a column.
    AlongM = "m",
}

impl Raster {
    /// The mode of an (M,N) output that neighbours lie along.
    pub(crate) fn mode(self) -> usize {
        match self {
            Raster::AlongM => 0,
            Raster::AlongN => 1,
        }
    }

    /// That mode and the other one.
    pub(crate) fn modes(self) -> [&'static str; 2] {
        match self {
            Raster::AlongM => ["m", "n"],
            Raster::AlongN => ["n", "m"],
        }
    }
}
