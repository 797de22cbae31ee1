//! The parts of a toolchain, and where each may come from.

use std::fmt;
use std::fs;
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

impl Cutlass {
    /// The text of CUTLASS's licence, which goes with whatever is compiled with it: the file of the checkout or of the
    /// wheel, else the remark that each header begins with. `None` where the copy has neither.
    pub fn licence(&self) -> Option<String> {
        let mut file = ["../licenses/cutlass/LICENSE.txt", "../LICENSE.txt", "../LICENSE"].iter();
        let file = file.find_map(|path| fs::read_to_string(self.include.join(path)).ok());
        file.or_else(|| head(&fs::read_to_string(self.include.join("cute/tensor.hpp")).ok()?))
    }
}

/// The licence in the remark that a header begins with.
fn head(header: &str) -> Option<String> {
    let (remark, _) = header.strip_prefix("/*")?.split_once("*/")?;
    let line = |line: &str| line.trim().trim_start_matches('*').trim().to_owned() + "\n";
    let text: String = remark.lines().map(line).collect();
    text.contains("Redistribution").then(|| text.trim().to_owned() + "\n")
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

#[cfg(test)]
mod tests {
    #[test]
    fn a_licence_is_read_off_a_header() {
        let header = "/*****\n * Copyright Somebody\n *\n * Redistribution and use\n *\n ****/\n#pragma once\n";
        assert_eq!(super::head(header).as_deref(), Some("Copyright Somebody\n\nRedistribution and use\n"));
        for none in ["", "// Redistribution", "/* a remark */", "/* Redistribution"] {
            assert_eq!(super::head(none), None, "{none}");
        }
    }
}
