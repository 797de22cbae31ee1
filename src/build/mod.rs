//! From C++ text to fatbins: the functions for a `build.rs`, the nvcc driver with its store, and the bundles that ship.
//!
//! ```no_run
//! # #[cfg(feature = "build")] {
//! use cutemplate::{build::Config, recipe::ElementwiseAdd};
//! // In build.rs; the crate then says cutemplate::include_kernels!();
//! Config::new().recipe("vector_add", &ElementwiseAdd::default()).compile();
//! # }
//! ```

pub mod artifact;
pub mod bundle;
#[cfg(feature = "build")]
mod driver;
pub mod fatbin;
mod included;
#[cfg(feature = "build")]
pub(crate) mod store;

#[cfg(feature = "build")]
pub use driver::*;
