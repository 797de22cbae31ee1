//! Which rung of the ladder an elementwise kernel is.

use crate::settings::named;

named! {
    /// The structure of the kernel: the rungs of NVIDIA's CuTe DSL notebook `elementwise_add.ipynb`, and one for inputs that
    /// are contiguous along another mode than the outputs.
    #[derive(Default)]
    Variant, "variant":
    /// The fastest that the tensors allow: `Transposed` where an input is contiguous along another mode than the outputs,
    /// else `Vectorized`.
    #[default]
    Auto = "auto",
    /// One thread for one element.
    Naive = "naive",
    /// Threads take whole vectors of neighbouring elements, several of them in flight.
    Vectorized = "vectorized",
    /// Each block takes a tile, which a thread-value layout gives to threads and vectors.
    Tv = "tv",
    /// The same, with blocks renumbered so that neighbouring blocks take neighbouring tiles of a row.
    Remapped = "remapped",
    /// Threads turn blocks of the transposed inputs in their registers, and exchange them in shared memory.
    Transposed = "transposed",
}
