//! Errors of expressions.

use core::fmt;

use crate::diagnostic::debug_as_display;

/// In which step an expression was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExprErrorKind {
    /// The text does not follow the grammar.
    Parse,
    /// A function cannot have these inputs, scalars or outputs.
    Signature,
    /// An operation or a constant does not exist in the type that is computed in.
    Compute,
}

impl ExprErrorKind {
    /// The stable word, as in `error[expr-parse]`.
    pub fn as_str(self) -> &'static str {
        match self {
            ExprErrorKind::Parse => "expr-parse",
            ExprErrorKind::Signature => "expr-signature",
            ExprErrorKind::Compute => "expr-compute",
        }
    }
}

/// Why an expression is refused.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExprError {
    /// In which step.
    pub kind: ExprErrorKind,
    /// Where in the text, in bytes from 0; only where there is a text.
    pub position: Option<usize>,
    /// The actual value.
    pub found: String,
    /// The required value.
    pub required: String,
    /// Why it has to.
    pub because: String,
    /// What to do.
    pub help: String,
}

debug_as_display!(ExprError);

impl ExprError {
    pub(super) fn new(
        kind: ExprErrorKind,
        found: impl Into<String>,
        required: impl Into<String>,
        because: impl Into<String>,
        help: impl Into<String>,
    ) -> ExprError {
        ExprError {
            kind,
            position: None,
            found: found.into(),
            required: required.into(),
            because: because.into(),
            help: help.into(),
        }
    }

    /// Found when a text is read.
    pub(super) fn in_text(self, position: usize) -> ExprError {
        ExprError { kind: ExprErrorKind::Parse, ..self.at(position) }
    }

    pub(super) fn at(self, position: usize) -> ExprError {
        ExprError { position: Some(position), ..self }
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: the expression is refused", self.kind.as_str())?;
        match self.position {
            Some(position) => write!(f, "\n  found:    {} at position {position}", self.found)?,
            None => write!(f, "\n  found:    {}", self.found)?,
        }
        for (name, text) in [("required:", &self.required), ("because: ", &self.because), ("help:    ", &self.help)] {
            if !text.is_empty() {
                write!(f, "\n  {name} {text}")?;
            }
        }
        Ok(())
    }
}

impl core::error::Error for ExprError {}
