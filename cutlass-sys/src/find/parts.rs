//! The parts of a toolchain, and where each may come from.

use std::fmt;
use std::path::PathBuf;

use super::Version;

/// The oldest CUTLASS that this crate is tested with.
pub const MIN_CUTLASS: Version = Version::new(4, 2, 0);

/// The oldest CUDA toolkit with the target `sm_90a` (PTX ISA 8.0).
pub const MIN_CUDA: Version = Version::new(12, 0, 0);

/// Where a part was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An explicit variable named it.
    Variable(&'static str),
    /// It is on `PATH`.
    Path,
    /// It is in one of the system's usual directories.
    System,
    /// It was unpacked from the pinned wheels.
    Pinned,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Variable(name) => write!(f, "variable {name}"),
            Origin::Path => write!(f, "PATH"),
            Origin::System => write!(f, "system"),
            Origin::Pinned => write!(f, "pinned wheels"),
        }
    }
}

/// CUTLASS headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cutlass {
    /// The directory that holds `cute/tensor.hpp` and `cutlass/cutlass.h`.
    pub include: PathBuf,
    /// `tools/util/include`, where the copy has it.
    pub util_include: Option<PathBuf>,
    /// The directory to put on Python's path for `import pycute`, where the copy has it.
    pub python: Option<PathBuf>,
    /// From `cutlass/version.h`.
    pub version: Version,
    /// Where it was found.
    pub origin: Origin,
}

/// CUDA headers: what `cute/tensor.hpp` includes, under nvcc and under a plain C++ compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaHeaders {
    /// `include`, and `include/cccl` for toolkits that keep `cuda/std` there (CUDA 13).
    pub include_dirs: Vec<PathBuf>,
    /// The release: `CUDART_VERSION`, the third number being 0 where it is not known.
    pub version: Version,
    /// Where they were found.
    pub origin: Origin,
}

/// The CUDA compiler and its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nvcc {
    /// The nvcc driver.
    pub path: PathBuf,
    /// The headers that go with it.
    pub headers: CudaHeaders,
    /// nvcc's version: the third number is 0 where only the release is known.
    pub version: Version,
    /// Where it was found.
    pub origin: Origin,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The program's file.
    pub path: PathBuf,
    /// Where it was found.
    pub origin: Origin,
}

/// The libclang shared library, for bindgen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Libclang {
    /// The shared library: what `LIBCLANG_PATH` should be set to.
    pub path: PathBuf,
    /// Where it was found.
    pub origin: Origin,
}
