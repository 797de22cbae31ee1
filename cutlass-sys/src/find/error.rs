//! One error type: what was found, what was required, why, and what to do.

use std::fmt;
use std::path::Path;

/// What went wrong, as a stable word that tests and tools can match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An explicit variable names something that is not there, or is not what it should be.
    Variable,
    /// A part was found that is older than what is supported.
    TooOld,
    /// The part could be fetched, but `CUTEMPLATE_FETCH=1` is not set.
    FetchNotAllowed,
    /// No pinned wheel exists for this operating system and processor.
    NoWheel,
    /// No `python3` on the path: it runs pip.
    NoPython,
    /// `python3` has no pip module.
    NoPip,
    /// The package index cannot be reached.
    NoNetwork,
    /// The index answers but does not have the pinned version.
    NotOnIndex,
    /// A downloaded file is not the pinned one.
    WrongHash,
    /// A file system is full, or a quota or a size limit is reached.
    NoSpace,
    /// pip failed for a reason of its own.
    Pip,
    /// A wheel cannot be unpacked safely.
    BadArchive,
    /// The cache directory cannot be found, made, locked or written.
    Cache,
    /// No usable C++ compiler.
    NoCompiler,
}

impl ErrorKind {
    /// The stable word, as in `error[no-network]`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Variable => "variable",
            ErrorKind::TooOld => "too-old",
            ErrorKind::FetchNotAllowed => "fetch-not-allowed",
            ErrorKind::NoWheel => "no-wheel",
            ErrorKind::NoPython => "no-python",
            ErrorKind::NoPip => "no-pip",
            ErrorKind::NoNetwork => "no-network",
            ErrorKind::NotOnIndex => "not-on-index",
            ErrorKind::WrongHash => "wrong-hash",
            ErrorKind::NoSpace => "no-space",
            ErrorKind::Pip => "pip",
            ErrorKind::BadArchive => "bad-archive",
            ErrorKind::Cache => "cache",
            ErrorKind::NoCompiler => "no-compiler",
        }
    }
}

/// A part of the toolchain that cannot be had: what, found, required, because, help.
///
/// # Examples
/// ```
/// use cutlass_sys::{Env, ErrorKind, Finder};
/// let finder = Finder::new(Env::from_pairs([("CUTLASS_PATH", "/nowhere")]));
/// let error = finder.locate_cutlass().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Variable);
/// assert!(error.to_string().starts_with("error[variable]: CUTLASS_PATH"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Text>);

impl core::fmt::Debug for Error {
    /// As `Display`: `fn main() -> Result<(), _>` shows a message and not a struct.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    kind: ErrorKind,
    what: String,
    found: String,
    required: String,
    because: Option<String>,
    help: String,
}

impl Error {
    pub(crate) fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        found: impl Into<String>,
        required: impl Into<String>,
        help: impl Into<String>,
    ) -> Error {
        let (what, found, required, help) = (what.into(), found.into(), required.into(), help.into());
        Error(Box::new(Text { kind, what, found, required, because: None, help }))
    }

    pub(crate) fn because(mut self, because: impl Into<String>) -> Error {
        self.0.because = Some(because.into());
        self
    }

    /// The stable word for what went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether a part of the toolchain is not here, and is not to be fetched: nothing else is wrong.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.kind(), ErrorKind::FetchNotAllowed | ErrorKind::NoCompiler | ErrorKind::NoWheel)
    }

    /// What went wrong, in one line.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// What was found.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.0.found
    }

    /// What was required.
    #[must_use]
    pub fn required(&self) -> &str {
        &self.0.required
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.0.help
    }
}

/// A field of an error; further lines are indented under the first.
fn field(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    let mut lines = text.trim_end().lines();
    write!(f, "\n  {name:<10}{}", lines.next().unwrap_or(""))?;
    for line in lines {
        write!(f, "\n            {line}")?;
    }
    Ok(())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.0.kind.as_str(), self.0.what)?;
        field(f, "found:", &self.0.found)?;
        field(f, "required:", &self.0.required)?;
        if let Some(because) = &self.0.because {
            field(f, "because:", because)?;
        }
        field(f, "help:", &self.0.help)
    }
}

impl std::error::Error for Error {}

/// An explicit variable that names nothing useful. It is never passed over for the next place to look.
pub(crate) fn wrong_variable(name: &str, value: &Path, found: impl Into<String>, required: impl Into<String>) -> Error {
    Error::new(
        ErrorKind::Variable,
        format!("{name}={} is not usable", value.display()),
        found,
        required,
        format!("correct {name}, or unset it to look on the system instead"),
    )
}
