//! The nvcc driver: the functions for a `build.rs`.

mod assemble;
mod bundle;
pub mod cache;
mod compiled;
mod config;
mod dispatch;
mod error;
mod heard;
mod jobs;
mod left;
mod listing;
mod nvcc;
mod own;
mod ptx;
mod ptx_text;
mod ptx_whole;
mod ptxas;
mod signature;
mod watch;

pub use compiled::Compiled;
pub use config::{Built, Config};
pub use error::{CompileError, Error, RegisterError, SerializedError, SourceLine, SpillError};
pub use listing::{ListedEntry, ListedParam, Listing};
pub use nvcc::{Compiler, Done};
pub use ptx::Ptx;
pub use signature::SignatureError;

pub use crate::bundle::files::write_if_changed;
pub use crate::bundle::{FileDigest, Manifest, Resources};
pub use crate::store::{Outcome, Store};
