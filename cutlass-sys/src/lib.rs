//! Finds or provides CUTLASS headers, a CUDA toolkit and a C++ compiler, for crates that compile CuTe C++.
//!
//! Each part is looked for in this order:
//!
//! 1. explicit variables: `CUTLASS_PATH`, `NVCC`, `CUDA_HOME`, `CUDA_PATH`, `CXX`, `LIBCLANG_PATH`. One that names
//!    nothing useful is an error, never passed over;
//! 2. the system: `PATH` and the usual directories;
//! 3. where `CUTEMPLATE_FETCH=1`: pinned wheels from PyPI, by name, version and sha256, downloaded by pip once per
//!    user and unpacked into a cache directory (`CUTEMPLATE_CACHE_DIR`, else the platform's). What was once fetched is
//!    used without that variable too.
//!
//! A build script of a crate that depends on this one sees `DEP_CUTLASS_INCLUDE`, `DEP_CUTLASS_VERSION`,
//! `DEP_CUTLASS_CUDA_INCLUDE`, `DEP_CUTLASS_CUDA_VERSION`, `DEP_CUTLASS_NVCC` and `DEP_CUTLASS_NVCC_VERSION`, each
//! where the part was found when this crate was built; that build never fetches and never fails for a missing part.
//! The functions here look again, each time, and are the ones to ask.
//!
//! ```
//! // A table of all parts: found or missing, from where, which version, what to do.
//! println!("{}", cutlass_sys::doctor());
//! ```

mod doctor;
mod fetch;
mod find;
mod finder;
mod missing;
#[cfg(feature = "oracle")]
pub mod oracle;
mod programs;
mod progress;
mod toolchain;

pub use doctor::{Part, Report, State};
pub use find::{
    Component, CudaHeaders, Cutlass, Env, Error, ErrorKind, File, Libclang, MARKER, MIN_CUDA, MIN_CUTLASS, Nvcc,
    Origin, Platform, SystemDirs, Tool, Version, Wheel, claim, trusted,
};
pub use finder::{Disassembler, Finder};
pub use programs::{Family, HostCompiler};
pub use progress::{Progress, Step};
pub use toolchain::{HostToolchain, Toolchain, ToolchainError};

/// What is found and what is missing in this process's environment. Fetches nothing.
#[must_use]
pub fn doctor() -> Report {
    Finder::from_env().doctor()
}
