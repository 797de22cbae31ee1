//! NumPy's `.npy` format: headers, and files that are read whole.
//!
//! Existing crates (npyz, ndarray-npy) depend on a parser generator, big integers and C code. They also allocate any size that a header
//! claims.

mod header;
pub mod source;

pub use header::{Header, HeaderError, encode};
