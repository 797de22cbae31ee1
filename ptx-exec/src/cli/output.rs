//! Standard output and standard error: text for a person, JSON lines for a machine, never both.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

/// Style of the word `error`.
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// How a shell tells of a process that SIGPIPE ended: the reader of standard output has gone.
const READER_GONE: i32 = 141;

/// Writes to standard output. The process ends where that fails: nobody would see what it does.
pub fn write(text: impl Display) {
    let mut out = anstream::stdout().lock();
    unless_failed(write!(out, "{text}").and_then(|()| out.flush()));
}

/// Ends the process where standard output could not be written: without a word where its reader has gone.
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

/// Writes a line to standard error, if it can be written: there is no other place to tell of it.
pub fn complain(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Where lines go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
}

impl Output {
    /// A line for a person.
    pub(super) fn text(self, text: impl Display) {
        if !self.json {
            write(format_args!("{text}\n"));
        }
    }

    /// An object for a machine.
    pub(super) fn object(self, value: Value) {
        if self.json {
            write(format_args!("{value}\n"));
        }
    }
}
