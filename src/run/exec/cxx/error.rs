//! Why a kernel could not be compiled or run, or what was wrong with it.

use core::fmt;
use std::path::Path;

use crate::diagnostic::field;
use crate::exec::Error;
use crate::store::StoreError;

impl Error {
    /// The kernel runs on a GPU alone, because of instructions that the executor does not have: [`Plan::needs_gpu`].
    ///
    /// [`Plan::needs_gpu`]: crate::plan::Plan::needs_gpu
    pub fn needs_gpu(kernel: &str, what: &str) -> Error {
        Error::from(Failure {
            kind: FailureKind::Instructions,
            what: format!("{kernel} cannot run on the C++ executor"),
            found: what.to_owned(),
            required: "loads, stores, cp.async, barriers and arithmetic".into(),
            because: "the executor compiles the text as C++, and these are instructions of a GPU's own".into(),
            help: "run it on a GPU, or where nvcc is: the PTX executor has more instructions".into(),
        })
    }
}

/// What kind of step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The cache directory cannot be used.
    Cache,
    /// The compiler refuses the kernel.
    Compile,
    /// The kernel is made of instructions that the executor does not have.
    Instructions,
    /// The compiled object is not one that the executor can link.
    Object,
    /// The process that should run the kernel did not do its part.
    Run,
}

impl FailureKind {
    /// The stable word, as in `error[host-compile]`.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Cache => "host-cache",
            FailureKind::Compile => "host-compile",
            FailureKind::Instructions => "host-instructions",
            FailureKind::Object => "host-object",
            FailureKind::Run => "host-run",
        }
    }
}

/// A step that failed: what, found, required, because, help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which step.
    pub kind: FailureKind,
    /// What went wrong, in one line.
    pub what: String,
    /// What is there.
    pub found: String,
    /// What has to be there.
    pub required: String,
    /// Why it has to.
    pub because: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind.as_str(), self.what)?;
        field(f, "found:", &self.found)?;
        field(f, "required:", &self.required)?;
        field(f, "because:", &self.because)?;
        field(f, "help:", &self.help)
    }
}

impl core::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::Failed(Box::new(failure))
    }
}

impl From<StoreError> for Error {
    fn from(StoreError { verb, path, source }: StoreError) -> Error {
        Error::from(Failure {
            kind: FailureKind::Cache,
            what: format!("cannot {verb} a part of the cache of compiled kernels"),
            found: format!("{}: {source}", path.display()),
            required: "a directory in which this user can write and run files".into(),
            because: "a kernel is compiled once and found again by what it was made of".into(),
            help: "free space or correct the permissions there, or set CUTEMPLATE_CACHE_DIR to another directory"
                .into(),
        })
    }
}

/// A file of the cache is not the one that was put there.
pub(super) fn changed(found: &str) -> Error {
    Error::from(Failure {
        kind: FailureKind::Cache,
        what: "a compiled program is not what was compiled".into(),
        found: found.into(),
        required: "the file that the compiler made, which no other user can write".into(),
        because: "it would run as this user, whatever it is".into(),
        help: "try again: it is compiled anew; if it happens again, look for who changes the cache, or set CUTEMPLATE_CACHE_DIR to \
               a directory of your own"
            .into(),
    })
}

/// The process that runs kernels failed in a way that no kernel causes.
pub(super) fn run(found: impl Into<String>) -> Error {
    Error::from(Failure {
        kind: FailureKind::Run,
        what: "the process that runs the kernel failed".into(),
        found: found.into(),
        required: "an answer in the executor's protocol".into(),
        because: "the kernel itself runs in a further process, whose end would be a verdict".into(),
        help: "look for exhausted memory or process limits; otherwise this is a defect of cutemplate".into(),
    })
}

/// A file that should be an object or a program is none.
pub(super) fn not_elf(path: &Path) -> Error {
    Error::from(Failure {
        kind: FailureKind::Object,
        what: "the compiler's output cannot be read".into(),
        found: format!("{} is no 64-bit little-endian ELF file with thread-local symbols", path.display()),
        required: "ELF, as GCC and Clang write it on Linux for x86-64 and aarch64".into(),
        because: "shared variables are found, named and spaced apart in the compiled object".into(),
        help: "use GCC or Clang of this machine on Linux: set CXX; if the file is damaged, remove it".into(),
    })
}
