//! A text of one's own as data: what a plan keeps of it, and a build compares.

use std::path::PathBuf;
use std::sync::Arc;

use crate::dtype::DType;

/// The family of all kernels of one's own.
pub const FAMILY: &str = "cuda";

/// The setting that says whether somebody vouches for a kernel.
pub(crate) const VOUCHED: &str = "vouched";

/// A text of one's own, and what it takes to compile it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Own {
    /// The stem of the compiled files.
    pub(crate) name: String,
    /// The name of the text's file, and the path that it was read from.
    pub(crate) file: String,
    pub(crate) origin: Option<PathBuf>,
    pub(crate) text: Arc<str>,
    pub(crate) constants: String,
    pub(crate) entries: Vec<OwnEntry>,
    pub(crate) cutlass: bool,
    pub(crate) include_dirs: Vec<PathBuf>,
}

/// A declared entry, as the build compares it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnEntry {
    /// The name in the compiled code.
    pub(crate) name: String,
    /// As C++ names it.
    pub(crate) function: String,
    pub(crate) params: Vec<Known>,
    pub(crate) threads: [u32; 3],
    /// Whether launches have blocks of other threads, and at most so many.
    pub(crate) varies: bool,
    pub(crate) cluster: u32,
    /// Whether launches ask for dynamic shared memory.
    pub(crate) shared: bool,
    /// The declaration in a line.
    pub(crate) line: String,
}

/// What a parameter, or a field of a struct, is declared to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Bytes from the start of the struct that it is a field of.
    pub(crate) offset: usize,
    pub(crate) is: KnownType,
}

/// The type of a declared parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KnownType {
    /// A pointer to elements, which are written or only read, at a multiple of so many bytes.
    Pointer {
        dtype: DType,
        writes: bool,
        align: usize,
        /// Whether neighbours are the two halves of integers of 64 bits.
        halves: bool,
    },
    /// A pointer that is null.
    Null,
    /// A pointer to bytes.
    Workspace,
    Integer,
    Float,
    /// A float of 16 bits, which is a class in C++.
    Half(DType),
    Struct(Vec<Known>),
}
