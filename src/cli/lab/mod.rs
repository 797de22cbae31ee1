//! The measuring laboratory: kernels against a device-to-device copy or against NVIDIA's libraries, in the same run; what many measurements
//! come to.

mod amount;
mod baseline;
mod buffers;
mod copy;
mod cublas;
mod epilogue;
mod fit;
mod graph;
mod lt;
mod matrix;
mod meter;
mod product;
mod random;
mod report;
mod sustained;
mod trial;

use cutemplate::launch::{DriverError, LaunchError};
use cutemplate::units::Bytes;
use cutemplate::verify::{ReferenceError, TensorError};

pub(crate) use amount::Amount;
pub(crate) use copy::against_copy;
pub(crate) use fit::{Fit, Timed};
pub(crate) use product::products;
pub(crate) use random::{Ratios, Spread, random_problems};
pub(crate) use report::{ProductReport, ProductRow};

/// Buffers rotate through at least this many times the L2 cache, so that a run leaves nothing in it for the next one on
/// the same buffers.
const L2_ROTATION: u64 = 4;

/// Sets of buffers, at most; tiny problems stay in L2.
const MAX_SETS: u64 = 64;

/// The reason why there are no numbers.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The inputs cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A launch was refused.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A kernel could not be launched, or ended the device's context.
    #[error("kernel `{kernel}`: {error}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// What happened.
        #[source]
        error: Box<BenchError>,
    },
    /// The results cannot be checked.
    #[error(transparent)]
    Check(#[from] ReferenceError),
    /// The baseline is missing, or failed.
    #[error("cuBLAS: {0}")]
    Cublas(String),
    /// No time can be measured.
    #[error("found tensors without elements, required something to launch")]
    Nothing,
    /// The buffers do not fit.
    #[error("found {found} free on the device, required {required} for the operands and as much again for the copy")]
    Memory {
        /// Free device memory.
        found: Bytes,
        /// The benchmark's allocations.
        required: Bytes,
    },
}

impl From<DriverError> for BenchError {
    fn from(error: DriverError) -> Self {
        Self::Launch(error.into())
    }
}

/// How launches are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct How {
    /// Replayed from a CUDA graph, so that the host's work is not timed; else launched one by one.
    pub(crate) graph: bool,
    /// On one set of buffers, which stay in the L2 cache where they fit; else on several in turn.
    pub(crate) warm: bool,
    /// For kernels that are no products: what a launch moves and computes.
    pub(crate) amount: Amount,
    /// For products: memory's own times beside the kernels'.
    pub(crate) ceilings: bool,
    /// For products: seconds that each kernel and the baseline are looped for after the timings, in turns; 0 for not at all.
    pub(crate) sustained_seconds: f64,
}

/// Where the operands are when a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum L2State {
    /// In device memory: the buffers of all sets are several times as large as the cache.
    Cold,
    /// At least in part in the cache.
    Warm,
}

/// How many sets of `bytes` to rotate through, and what that means for a cache of `l2`.
fn rotation(bytes: u64, l2: Bytes, warm: bool) -> (u64, L2State) {
    if warm {
        return (1, if bytes < l2.0 { L2State::Warm } else { L2State::Cold });
    }
    let wanted = (L2_ROTATION * l2.0).div_ceil(bytes.max(1)).max(1);
    if wanted <= MAX_SETS { (wanted, L2State::Cold) } else { (MAX_SETS, L2State::Warm) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_rotate_past_the_cache_or_say_that_they_do_not() {
        let l2 = Bytes(60 << 20);
        assert_eq!(rotation(3 << 28, l2, false), (1, L2State::Cold));
        assert_eq!(rotation(3 << 28, l2, true), (1, L2State::Cold));
        assert_eq!(rotation(1 << 20, l2, true), (1, L2State::Warm));
        assert_eq!(rotation(60 << 20, l2, false), (4, L2State::Cold));
        assert_eq!(rotation(6, l2, false), (64, L2State::Warm));
    }
}
