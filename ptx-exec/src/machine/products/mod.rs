//! Products of tensor cores, and the fragments of warps.

pub(super) mod matrix;
pub(crate) mod mma;
pub(crate) mod sums;
#[cfg(target_arch = "x86_64")]
mod sums_v3;
mod tensor;
pub(super) mod tensor_formats;
#[cfg(target_arch = "x86_64")]
pub(super) mod tensor_v3;
pub(super) mod wgmma;
mod wgmma_exact;
pub(super) mod wgmma_groups;
pub(super) mod wgmma_sums;
