//! A compiled kernel, as the store has it.

use std::path::{Path, PathBuf};

use crate::bundle::Manifest;
use crate::digest::Digest;
use crate::fatbin::{self, Vouched};
use crate::store::{Entry, Outcome};

/// The manifest's file in an entry.
pub(super) const MANIFEST: &str = "manifest.json";

/// A compiled kernel. Only [`Compiler`](super::Compiler) makes one, so it vouches for its machine code: nvcc made it of
/// the text, and its sha256 was recorded when nvcc returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    manifest: Manifest,
    fatbin: Vec<u8>,
    path: PathBuf,
    outcome: Outcome,
    abi: Digest,
    inputs: Vec<PathBuf>,
}

impl Compiled {
    /// Reads an entry that was made of the text of such a kernel; `Err` says why it cannot be used.
    pub(super) fn open(entry: &Entry, abi: Digest) -> Result<Compiled, String> {
        let bytes = entry.read(MANIFEST)?;
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| format!("{MANIFEST} is damaged: {e}"))?;
        let name = &manifest.fatbin.name;
        let (fatbin, path) = (entry.read(name)?, entry.path(name));
        let archs: Vec<&str> = manifest.targets.iter().map(String::as_str).collect();
        let mut entries: Vec<String> = manifest.resources.iter().map(|row| row.entry.clone()).collect();
        entries.dedup();
        let complete = fatbin::complete(&fatbin, &archs, manifest.ptx.as_deref(), &entries);
        complete.map_err(|why| format!("{name}: {why}"))?;
        let inputs = entry.inputs().map(Path::to_path_buf).collect();
        Ok(Compiled { manifest, fatbin, path, outcome: Outcome::Cached, abi, inputs })
    }

    /// The kernel's manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The fatbin, whose sha256 was checked.
    pub fn fatbin(&self) -> &[u8] {
        &self.fatbin
    }

    /// The fatbin's file in the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it had to be compiled.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The files outside of the kernel's own text that nvcc read, and its programs.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// The fatbin, to be loaded.
    pub fn vouched(&self) -> Vouched<'_> {
        Vouched::new(&self.fatbin, self.abi)
    }

    /// The same for another kernel of the same text.
    pub(super) fn of_abi(self, abi: Digest) -> Self {
        Self { abi, ..self }
    }

    pub(super) fn with_outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }
}
