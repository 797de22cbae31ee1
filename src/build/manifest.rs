//! What is known about a compiled kernel: by what it was compiled from what, and what became of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::{Error, SpillError};
pub use super::ptxas::Resources;
use crate::fatbin::{self, Kind};
use crate::store::FileDigest;

/// The manifest row of a compiled kernel. It names no path, host or time: two builds of the same give the same row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The kernel: the name of its first entry and of its files.
    pub name: String,
    /// The version of this crate.
    pub generator: String,
    /// The version of nvcc.
    pub nvcc: String,
    /// The version of the CUTLASS headers.
    pub cutlass: String,
    /// The compiler that nvcc preprocesses with.
    pub cxx: String,
    /// Architectures with SASS, oldest first.
    pub targets: Vec<String>,
    /// The architecture with PTX.
    pub ptx: Option<String>,
    /// The text that was compiled.
    pub sources: Vec<FileDigest>,
    /// What it was compiled to.
    pub fatbin: FileDigest,
    /// Resources on each architecture, oldest first, of each entry in order.
    pub resources: Vec<Resources>,
    /// The compiler's warnings.
    pub warnings: Vec<String>,
}

impl Manifest {
    /// The resources of the first entry on one architecture.
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

    /// Refuses a kernel that spills registers on any architecture.
    ///
    /// # Errors
    /// Where it does: how much, on which.
    pub fn deny_spills(&self) -> Result<(), Error> {
        let on: Vec<Resources> = self.resources.iter().filter(|row| row.spills()).cloned().collect();
        if on.is_empty() {
            return Ok(());
        }
        Err(Box::new(SpillError { kernel: self.name.clone(), on }).into())
    }

    /// Whether a thread keeps values in local memory, which is as slow as DRAM, on any architecture: spilled registers, or
    /// arrays in a stack frame, which ptxas does not count as spills.
    #[must_use]
    pub fn uses_local_memory(&self) -> bool {
        self.spills() || self.resources.iter().any(|row| row.stack > 0)
    }

    /// Fills in the sizes of the instructions.
    pub(super) fn measure(&mut self, bytes: &[u8]) {
        let images = fatbin::images(bytes).unwrap_or_default();
        for row in &mut self.resources {
            let image = images.iter().find(|image| image.kind == Kind::Sass && image.arch == row.arch);
            row.sass = image.and_then(|image| image.sass_size(&row.entry));
        }
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} bytes by nvcc {}, CUTLASS {}", self.fatbin.name, self.fatbin.bytes, self.nvcc, self.cutlass)?;
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
