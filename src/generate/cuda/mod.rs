//! Kernels of one's own: CUDA C++ with a declared signature gets what ours get. See [`Cuda`].

mod constant;
mod declare;
mod entry;
mod expr;
mod layout;
mod params;
mod signature;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use constant::Constant;
pub use entry::{Entry, Struct};
#[cfg_attr(not(feature = "bundle"), allow(unused_imports, reason = "modules are written for bundles"))]
pub(crate) use params::LOW;
#[cfg_attr(not(feature = "build"), allow(unused_imports, reason = "a build compares"))]
pub(crate) use signature::{Compiled, CompiledParam, Mismatch, compare};
#[cfg_attr(not(feature = "build"), allow(unused_imports, reason = "a build compiles"))]
pub(crate) use text::DECLARED;

pub use crate::plan::own::FAMILY;
pub(crate) use crate::plan::own::VOUCHED;

use crate::arch::Targets;
use crate::diagnostic::PlanError;
use crate::digest::Digest;
use crate::plan::Plan;
use crate::settings::Settings;

/// The setting with what a kernel does.
pub(crate) const DOC: &str = "doc";

/// CUDA C++ of one's own, with the declaration of each entry that is launched.
///
/// A build compiles it for every architecture, keeps fatbin and PTX, and compares each declaration with what nvcc made. Each entry then has
/// a module with a typed function for its arguments, as a recipe's kernel has. On the executor its launch is safe. On a GPU it is an
/// `unsafe fn`, unless somebody [vouches](Entry::vouched) for it.
///
/// ```no_run
/// # #[cfg(feature = "build")] {
/// // build.rs
/// use cutemplate::build::Config;
/// use cutemplate::cuda::{Cuda, Entry};
/// use cutemplate::dtype::DType;
/// use cutemplate::view::Access;
///
/// let scale = Cuda::file("kernels/scale.cu").entry(
///     Entry::new("scale")
///         .operand("x", DType::F32, Access::ReadWrite, "n:1")
///         .extent("n", "x.0")
///         .grid("ceil_div(n, 256)")
///         .block(256),
/// );
/// Config::new().cuda("scale", scale).compile();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Cuda {
    source: Source,
    entries: Vec<Entry>,
    constants: Vec<(String, Result<String, String>)>,
    include_dirs: Vec<PathBuf>,
    cutlass: bool,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Text(String),
}

impl Cuda {
    /// The text of a file, which a build reads, and watches together with every header that nvcc reads. A path begins at the crate's
    /// folder. `#include "..."` finds what lies beside it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::of(Source::File(path.into()))
    }

    /// A text, such as the rendering of a template.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Source::Text(text.into()))
    }

    fn of(source: Source) -> Self {
        Self { source, entries: Vec::new(), constants: Vec::new(), include_dirs: Vec::new(), cutlass: false }
    }

    /// Adds an entry that is launched.
    #[must_use]
    pub fn entry(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Gives the text a constant of this name: an integer, a type, or what CuTe has a type for, such as a layout. It stands in a generated
    /// header, which the text includes by the name of the kernels: `#include "rope_constants.cuh"` for `rope`.
    #[must_use]
    pub fn constant(mut self, name: &str, value: &(impl Constant + ?Sized)) -> Self {
        self.cutlass |= value.is_of_cute();
        self.constants.push((name.to_owned(), value.declaration(name)));
        self
    }

    /// Lets `#include <...>` find CUTLASS and CuTe. A [constant](Cuda::constant) that is CuTe's does so by itself.
    #[must_use]
    pub fn cutlass(mut self) -> Self {
        self.cutlass = true;
        self
    }

    /// A further folder in which `#include` looks. A path begins at the crate's folder.
    #[must_use]
    pub fn include_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(path.into());
        self
    }

    /// The file that is to be read.
    pub fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::File(path) => Some(path),
            Source::Text(_) => None,
        }
    }

    /// The text, where it is no file's.
    pub(crate) fn given_text(&self) -> Option<&str> {
        match &self.source {
            Source::File(_) => None,
            Source::Text(text) => Some(text),
        }
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The name of each kernel, in the order of the entries, where all are called `name`.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let of = |entry: &Entry| match (&entry.name, &self.entries[..]) {
            (Some(name), _) => name.clone(),
            (None, [_]) => name.to_owned(),
            (None, _) => format!("{name}_{}", entry.letters()),
        };
        self.entries.iter().map(of).collect()
    }

    /// What tells a kernel from others, for a bundle to be compared with.
    pub(crate) fn settings(&self, name: &str, index: usize, text: &str) -> Settings {
        let mut settings = Settings::new();
        settings.set("text", Digest::of(text.as_bytes()).to_string()).set("of", name);
        if let Some(entry) = self.entries.get(index) {
            settings.set("entry", declare::one_line(entry));
            settings.set(VOUCHED, if entry.vouched.is_some() { "yes" } else { "no" });
            if !entry.doc.is_empty() {
                settings.set(DOC, entry.doc.replace(|c: char| c.is_control(), " "));
            }
        }
        for (name, value) in &self.constants {
            settings.set(format!("constant {name}"), value.clone().unwrap_or_default());
        }
        settings
    }

    /// The plan of each entry, for the text of the file that is read: the decisions of a launch, or what no kernel could be.
    ///
    /// # Errors
    /// What the declarations say that no kernel could be.
    pub fn plans(&self, name: &str, text: &str, targets: &Targets) -> Result<Vec<Plan>, PlanError> {
        let text: Arc<str> = text.into();
        (0..self.entries.len().max(1)).map(|index| self.plan(name, index, &text, targets)).collect()
    }

    /// The plan of an entry, for this text.
    ///
    /// # Errors
    /// What the declaration says that no kernel could be.
    pub(crate) fn plan(&self, name: &str, index: usize, text: &Arc<str>, targets: &Targets) -> Result<Plan, PlanError> {
        declare::plan(self, name, index, text, targets)
    }
}
