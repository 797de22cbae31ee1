//! Launches, on a GPU and without one, and whether what came of them is right.

#[cfg(all(feature = "cuda", feature = "ptx"))]
pub mod device;
#[cfg(feature = "ptx")]
pub mod exec;
#[cfg(any(feature = "dlpack", feature = "ndarray"))]
pub mod interop;
#[cfg(feature = "cuda")]
pub mod launch;
pub mod verify;
