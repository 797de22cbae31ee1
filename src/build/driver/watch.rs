//! When cargo has to run a build script again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cutlass_sys::{Env, MARKER, Toolchain};

use super::nvcc;

/// The variable that asks for stubs.
pub(super) const STUB: &str = "CUTEMPLATE_STUB";
/// The variable that docs.rs sets.
pub(super) const DOCS_RS: &str = "DOCS_RS";

/// The inputs of a build: variables, and files.
///
/// cargo treats a missing file as changed, at every build. So a missing file is watched only where it is wanted; files
/// in use exist.
pub(super) struct Watch(BTreeSet<PathBuf>, Vec<String>);

impl Watch {
    pub(super) fn new() -> Watch {
        Watch(BTreeSet::new(), Vec::new())
    }

    pub(super) fn files(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.0.extend(files);
    }

    /// Adds lines of another kind.
    pub(super) fn say(&mut self, lines: Vec<String>) {
        self.1.extend(lines);
    }

    /// Watches the tools that were found, and the markers of complete downloads.
    pub(super) fn toolchain(&mut self, toolchain: &Toolchain) {
        let Toolchain { cutlass, nvcc, cxx } = toolchain;
        let cutlass = cutlass.as_ref().map(|cutlass| cutlass.include.join("cutlass/version.h"));
        for file in [nvcc.path.clone(), cxx.path.clone()].into_iter().chain(cutlass) {
            self.0.extend(file.ancestors().map(|dir| dir.join(MARKER)).find(|marker| marker.is_file()));
            self.0.insert(file);
        }
    }

    /// Lines for cargo, without the `cargo::` before them.
    pub(super) fn lines(self) -> Vec<String> {
        let variables =
            Env::VARIABLES.into_iter().chain(nvcc::VARIABLES).chain(["PATH", "CUTEMPLATE_FETCH", STUB, DOCS_RS]);
        let variables = variables.map(|name| format!("rerun-if-env-changed={name}"));
        // A line that is broken would say something else.
        let files = self.0.iter().map(|file| file.display().to_string()).filter(|file| !file.contains('\n'));
        self.1.iter().cloned().chain(variables).chain(files.map(|file| format!("rerun-if-changed={file}"))).collect()
    }
}
