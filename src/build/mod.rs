//! From C++ text to fatbins: what a `build.rs` calls, and the nvcc driver with its store behind it.
//!
//! ```no_run
//! use cutemplate::{build::Config, recipe::ElementwiseAdd};
//! // In build.rs; the crate then says include!(concat!(env!("OUT_DIR"), "/cutemplate.rs"));
//! Config::new().recipe("vector_add", &ElementwiseAdd::default()).compile();
//! ```

mod assemble;
mod bundle;
pub mod cache;
mod compiled;
mod config;
mod error;
mod jobs;
mod left;
mod nvcc;
mod ptx;
mod ptx_text;
mod ptx_whole;
mod ptxas;
mod watch;

pub use bundle::StaleBundle;
pub use compiled::Compiled;
pub use config::{Built, Config};
pub use error::{CompileError, Error, SerializedError, SourceLine, SpillError};
#[cfg(feature = "host")]
pub(crate) use nvcc::dependencies;
pub use nvcc::{Compiler, Done};
pub use ptx::Ptx;

pub use crate::bundle::files::write_if_changed;
pub use crate::bundle::{FileDigest, Manifest, Resources};
pub use crate::store::{Outcome, Store};
