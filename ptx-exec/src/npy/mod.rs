//! NumPy's `.npy` format: headers, and files that are read whole.
//!
//! The crates that read it (npyz, ndarray-npy) bring a parser generator, big integers and C code along, and reserve as much memory as a
//! header asks for.

mod header;
pub mod source;

pub use header::{Header, HeaderError, encode};
