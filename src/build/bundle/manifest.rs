//! The manifest of a compiled kernel: its inputs, the tools that compiled it, and the result.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
#[cfg(feature = "build")]
use crate::fatbin::{self, Kind};

/// A file, by content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Its name, without a folder.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its sha256.
    pub sha256: Digest,
}

impl FileDigest {
    pub(crate) fn of(name: &str, bytes: &[u8]) -> FileDigest {
        FileDigest { name: name.to_owned(), bytes: bytes.len() as u64, sha256: Digest::of(bytes) }
    }

    /// Why some bytes are not this file.
    pub(crate) fn mismatch(&self, bytes: &[u8]) -> Option<String> {
        if bytes.len() as u64 != self.bytes {
            return Some(format!("{} has {} bytes, and should have {}", self.name, bytes.len(), self.bytes));
        }
        (Digest::of(bytes) != self.sha256)
            .then(|| format!("{} is not the compiled file: its sha256 differs", self.name))
    }
}

/// Resources that one entry of a kernel takes on one architecture, as ptxas reports them. Memory is in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// The entry, an `extern "C" __global__` function.
    pub entry: String,
    /// The architecture: `sm_80`.
    pub arch: String,
    /// 32-bit registers of a thread.
    pub registers: u64,
    /// Spilled bytes that a thread stores, over all functions of the entry.
    pub spill_stores: u64,
    /// Spilled bytes that a thread loads, over all functions of the entry.
    pub spill_loads: u64,
    /// Stack frame of a thread.
    pub stack: u64,
    /// Static shared memory of a block.
    pub smem: u64,
    /// Constant memory, over all banks that ptxas names; for some architectures it names none.
    pub cmem: u64,
    /// Named barriers.
    pub barriers: u64,
    /// Size of the entry's instructions in the fatbin; absent where the fatbin's container cannot be read.
    pub sass: Option<u64>,
}

impl Resources {
    /// Whether registers are spilled.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.spill_stores > 0 || self.spill_loads > 0
    }
}

/// The manifest row of a compiled kernel. It names no path, host or time: two builds of the same give the same row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The kernel: the name of the entry that computes and of its files.
    pub name: String,
    /// The version of this crate.
    pub generator: String,
    /// The version of nvcc.
    pub nvcc: String,
    /// The version of the CUTLASS headers; empty where the text is plain CUDA C++, and finds none.
    pub cutlass: String,
    /// The compiler that nvcc preprocesses with.
    pub cxx: String,
    /// Architectures with SASS, oldest first.
    pub targets: Vec<String>,
    /// The architecture with PTX.
    pub ptx: Option<String>,
    /// The text that was compiled.
    pub sources: Vec<FileDigest>,
    /// The compiled fatbin.
    pub fatbin: FileDigest,
    /// Resources on each architecture, oldest first, of each entry in order.
    pub resources: Vec<Resources>,
    /// The compiler's warnings.
    pub warnings: Vec<String>,
}

impl Manifest {
    /// The resources of the entry that has the kernel's name on one architecture.
    #[must_use]
    pub fn on(&self, arch: &str) -> Option<&Resources> {
        self.entry_on(&self.name, arch)
    }

    /// The resources of an entry on one architecture.
    #[must_use]
    pub fn entry_on(&self, entry: &str, arch: &str) -> Option<&Resources> {
        self.resources.iter().find(|row| row.arch == arch && row.entry == entry)
    }

    /// Whether the kernel spills registers on any architecture.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.resources.iter().any(Resources::spills)
    }

    /// Whether a thread keeps values in local memory, which is as slow as DRAM, on any architecture: spilled
    /// registers, or arrays in a stack frame, which ptxas does not count as spills.
    #[must_use]
    pub fn uses_local_memory(&self) -> bool {
        self.spills() || self.resources.iter().any(|row| row.stack > 0)
    }

    /// Fills in the sizes of the instructions.
    #[cfg(feature = "build")]
    pub(crate) fn measure(&mut self, bytes: &[u8]) {
        let images = fatbin::images(bytes).unwrap_or_default();
        for row in &mut self.resources {
            let image = images.iter().find(|image| image.kind == Kind::Sass && image.arch == row.arch);
            row.sass = image.and_then(|image| image.sass_size(&row.entry));
        }
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} bytes by nvcc {}", self.fatbin.name, self.fatbin.bytes, self.nvcc)?;
        if !self.cutlass.is_empty() {
            write!(f, ", CUTLASS {}", self.cutlass)?;
        }
        for r in &self.resources {
            let sass = r.sass.map_or("?".to_owned(), |bytes| bytes.to_string());
            write!(
                f,
                "\n  {:7} {:3} registers, {} B shared memory, {} B stack, {} B spill stores, {} B spill loads, {sass} B SASS",
                r.arch, r.registers, r.smem, r.stack, r.spill_stores, r.spill_loads
            )?;
            if self.resources.iter().any(|other| other.entry != r.entry) {
                write!(f, " of {}", r.entry)?;
            }
        }
        match &self.ptx {
            Some(arch) => write!(f, "\n  {arch:7} PTX, for devices that came later"),
            None => Ok(()),
        }
    }
}
