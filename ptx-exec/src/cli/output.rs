//! Standard output and standard error: text for a person, JSON lines for a machine, never both.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

/// Style of the word `error`.
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// The exit code that shells give after SIGPIPE: the reader of standard output has gone.
const READER_GONE: i32 = 141;

/// Writes to standard output. The process exits if that fails, since no result would be seen.
pub fn write(text: impl Display) {
    let mut out = anstream::stdout().lock();
    unless_failed(write!(out, "{text}").and_then(|()| out.flush()));
}

/// Exits after a failed write to standard output. If the reader has gone, it exits without a message.
pub fn unless_failed<T>(written: io::Result<T>) -> T {
    let error = match written {
        Ok(done) => return done,
        Err(error) => error,
    };
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(READER_GONE);
    }
    complain(format_args!("{ERROR}error{ERROR:#}: cannot write standard output: {error}"));
    std::process::exit(1);
}

/// Writes a line to standard error, and ignores errors.
pub fn complain(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// The output mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
}

impl Output {
    /// Prints a line of text, unless the output is JSON.
    pub(super) fn text(self, text: impl Display) {
        if !self.json {
            write(format_args!("{text}\n"));
        }
    }

    /// Prints a JSON object, if the output is JSON.
    pub(super) fn object(self, value: Value) {
        if self.json {
            write(format_args!("{value}\n"));
        }
    }
}
