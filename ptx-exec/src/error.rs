//! The error for a refused PTX text or launch, with its position, the finding and the requirement.

use core::fmt;

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not PTX.
    Syntax,
    /// An undeclared name, or one declared twice or as another kind.
    Name,
    /// PTX that this executor does not support; the message names the instruction.
    Unsupported,
    /// A launch that no GPU accepts, or arguments that do not fit the entry.
    Launch,
    /// A file that cannot be read or written.
    File,
    /// A bug of this crate. The text may be correct.
    Defect,
}

impl ErrorKind {
    /// The stable word, as in `error[ptx-syntax]`.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Syntax => "ptx-syntax",
            ErrorKind::Name => "ptx-name",
            ErrorKind::Unsupported => "ptx-unsupported",
            ErrorKind::Launch => "ptx-launch",
            ErrorKind::File => "ptx-file",
            ErrorKind::Defect => "ptx-defect",
        }
    }
}

/// A place in a PTX text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Counted from 1; 0 where there is no text.
    pub line: u32,
    /// In bytes, counted from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A refusal of a PTX text, of a launch file or of a launch.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    /// The kind of refusal.
    pub kind: ErrorKind,
    /// The refused entry; `None` if the error is not about one entry.
    pub entry: Option<Box<str>>,
    /// The position in the PTX text; `None` if the error is not in the text.
    pub position: Option<Position>,
    /// The mistake, in one line.
    pub what: String,
    /// The value that was found.
    pub found: String,
    /// The requirement.
    pub required: String,
    /// The remedy.
    pub help: Box<str>,
}

impl core::fmt::Debug for Error {
    /// As `Display`: `fn main() -> Result<(), _>` shows a message and not a struct.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Error {
        Error {
            kind,
            entry: None,
            position: None,
            what: what.into(),
            found: String::new(),
            required: String::new(),
            help: Box::default(),
        }
    }

    /// A file that cannot be read.
    pub fn file(what: impl Into<String>, found: impl Into<String>) -> Error {
        Error::new(ErrorKind::File, what).found(found)
    }

    pub(crate) fn at(mut self, position: Position) -> Error {
        self.position = Some(position);
        self
    }

    pub(crate) fn found(mut self, found: impl Into<String>) -> Error {
        self.found = found.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<Box<str>>) -> Error {
        self.help = help.into();
        self
    }

    pub(crate) fn of_entry(mut self, name: &str) -> Error {
        self.entry = Some(name.into());
        self
    }

    pub(crate) fn required(mut self, required: impl Into<String>) -> Error {
        self.required = required.into();
        self
    }

    pub(crate) fn syntax(position: Position, what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Syntax, what).at(position)
    }

    pub(crate) fn name(position: Position, what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Name, what).at(position)
    }

    pub(crate) fn unsupported(position: Position, what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, what).at(position)
    }

    pub(crate) fn launch(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Launch, what)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind.as_str(), self.what)?;
        if let Some(entry) = &self.entry {
            write!(f, "\n  entry:    {entry}")?;
        }
        if let Some(position) = self.position {
            write!(f, "\n  at:       {position}")?;
        }
        for (label, text) in [("found:", &*self.found), ("required:", &*self.required), ("help:", &*self.help)] {
            if !text.is_empty() {
                write!(f, "\n  {label:<9} {text}")?;
            }
        }
        Ok(())
    }
}

impl core::error::Error for Error {}
