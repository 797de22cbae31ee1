//! Where things are: variables, the system, the pinned wheels in the user's cache.
//!
//! Only `std`, and no process is started: `build.rs` includes this module too, so that what it publishes as
//! `DEP_CUTLASS_*` and what the library answers come from one text.

mod env;
mod error;
mod locate;
mod owner;
mod parts;
mod pins;
mod version;
mod wheels;

pub use env::{Env, SystemDirs};
pub use error::{Error, ErrorKind};
pub use owner::{claim, trusted};
pub use parts::{CudaHeaders, Cutlass, Libclang, MIN_CUDA, MIN_CUTLASS, Nvcc, Origin, Tool};
pub use pins::{Component, File, MARKER, Platform, Wheel};
pub use version::Version;

pub(crate) use error::wrong_variable;
pub(crate) use owner::trusted_below;
#[allow(unused_imports, reason = "build.rs runs no compiler")]
pub(crate) use version::defined;
