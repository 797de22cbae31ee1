//! Why a bundle is not used.

use core::fmt;

use crate::diagnostic::debug_as_display;

/// The kind of a bundle's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BundleErrorKind {
    /// It cannot be read or written.
    File,
    /// It is not a bundle.
    Foreign,
    /// It is of a format that this version does not read.
    Format,
    /// Bytes are missing, or too many.
    Size,
    /// It is not the requested one, or a part of it has changed.
    Hash,
    /// Its contents cannot be read.
    Contents,
    /// It has no such kernel, or another than is asked for.
    Kernel,
}

impl BundleErrorKind {
    /// The stable word, as in `error[bundle-hash]`.
    pub fn as_str(self) -> &'static str {
        match self {
            BundleErrorKind::File => "bundle-file",
            BundleErrorKind::Foreign => "bundle-foreign",
            BundleErrorKind::Format => "bundle-format",
            BundleErrorKind::Size => "bundle-size",
            BundleErrorKind::Hash => "bundle-hash",
            BundleErrorKind::Contents => "bundle-contents",
            BundleErrorKind::Kernel => "bundle-kernel",
        }
    }
}

/// A bundle that is not used: what, found, required, because, help. Nothing of it was loaded.
#[derive(Clone, PartialEq, Eq)]
pub struct BundleError {
    /// What kind of mistake.
    pub kind: BundleErrorKind,
    /// The problem, in one line.
    pub what: String,
    /// The actual value.
    pub found: String,
    /// The required value.
    pub required: String,
    /// Why it has to.
    pub because: &'static str,
    /// What to do.
    pub help: String,
}

debug_as_display!(BundleError);

/// The help for a file that has changed.
pub(super) const COPY: &str = "copy the bundle again, or make it again with `cutemplate bundle`";

impl BundleError {
    pub(super) fn new(kind: BundleErrorKind, what: impl Into<String>) -> Self {
        let (found, required, help) = (String::new(), String::new(), COPY.to_owned());
        Self { kind, what: what.into(), found, required, because: "", help }
    }

    pub(super) fn found(self, found: impl Into<String>) -> Self {
        Self { found: found.into(), ..self }
    }

    pub(super) fn required(self, required: impl Into<String>) -> Self {
        Self { required: required.into(), ..self }
    }

    pub(super) fn because(self, because: &'static str) -> Self {
        Self { because, ..self }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: help.into(), ..self }
    }
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind.as_str(), self.what)?;
        let fields =
            [("found", &*self.found), ("required", &self.required), ("because", self.because), ("help", &self.help)];
        for (name, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
            write!(f, "\n  {:9} {text}", format!("{name}:"))?;
        }
        Ok(())
    }
}

impl core::error::Error for BundleError {}
