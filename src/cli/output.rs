//! The tool's output: text for people or JSON lines for programs, never both.

use std::fmt::Display;
use std::io::IsTerminal;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use cutemplate::diagnostic::{BindError, Diagnostic, PlanError};
use cutemplate::recipe::UnknownFamily;
pub(crate) use ptx_exec::cli::output::{complain, write};
use serde_json::{Value, json};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Diagnostics of a recipe or a launch.
    Diagnostics(Vec<Diagnostic>),
    /// Anything else, in words.
    Message(String),
}

impl Failure {
    pub(crate) fn message(text: impl Display) -> Self {
        Failure::Message(text.to_string())
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Refused(all) => Failure::Diagnostics(all.into_iter().collect()),
            PlanError::Defect(defect) => Failure::message(defect),
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Refused(all) => Failure::Diagnostics(all.into_iter().collect()),
            BindError::Defect(defect) => Failure::message(defect),
        }
    }
}

impl From<UnknownFamily> for Failure {
    fn from(error: UnknownFamily) -> Self {
        Failure::message(error)
    }
}

/// `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A path for a machine: JSON has no bytes that are not Unicode, so these are replaced.
pub(crate) fn path(path: &Path) -> String {
    path.display().to_string()
}

/// What follows the word `error`: `[code]: text` of an error that has a code, `: text` of any other.
fn after_error(text: &str) -> String {
    match text.strip_prefix("error") {
        Some(rest) if rest.starts_with(['[', ':']) => rest.to_owned(),
        _ => format!(": {text}"),
    }
}

/// The text of an error for a machine: the code of `error[code]: text` is a field of its own.
fn coded(text: &str) -> Value {
    match text.strip_prefix("error[").and_then(|rest| rest.split_once("]: ")) {
        Some((code, message)) => json!({ "code": code, "message": message }),
        None => json!({ "message": text.strip_prefix("error: ").unwrap_or(text) }),
    }
}

/// The columns of a terminal that reads standard output.
fn columns() -> Option<usize> {
    std::io::stdout().is_terminal().then(textwrap::termwidth)
}

/// Lines of at most `width` columns. What goes on stands under the second column of its line; columns of a line that is too long
/// move together.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let one = |line: &str| {
        if line.chars().count() <= width {
            return line.to_owned();
        }
        let first = line.len() - line.trim_start().len();
        let (mut fields, mut at) = (Vec::new(), first);
        for field in line[first..].split("  ") {
            let begins = at + field.len() - field.trim_start().len();
            fields.extend((!field.trim().is_empty()).then(|| (begins, field.trim())));
            at += field.len() + 2;
        }
        let Some((second, _)) = fields.get(1) else {
            let indent = " ".repeat(first + 2);
            return textwrap::fill(line, textwrap::Options::new(width).subsequent_indent(&indent).break_words(false));
        };
        let before = &line[..*second];
        let indent = " ".repeat(before.chars().count().min(width / 2));
        let rest: Vec<&str> = fields[1..].iter().map(|(_, field)| *field).collect();
        let options = textwrap::Options::new(width).subsequent_indent(&indent).break_words(false);
        textwrap::fill(&format!("{before}{}", rest.join("  ")), options)
    };
    text.split('\n').map(one).collect::<Vec<_>>().join("\n")
}

/// The chosen form of output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
}

/// Style of the word `error`.
const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Style of the word `warning`.
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Style of headings.
pub(crate) const HEADING: Style = AnsiColor::Cyan.on_default().bold();
/// Style of what went right.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether a machine reads.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints text for a person.
    pub(crate) fn text(self, text: impl Display) {
        if !self.json {
            write(format_args!("{text}\n"));
        }
    }

    /// Prints text for a person, wrapped where a terminal shows it.
    pub(crate) fn prose(self, text: impl Display) {
        match columns() {
            Some(width) if !self.json => self.text(wrapped(&text.to_string(), width)),
            _ => self.text(text),
        }
    }

    /// Prints a heading and its lines for a person.
    pub(crate) fn section(self, heading: &str, body: impl Display) {
        self.text(format_args!("{HEADING}{heading}{HEADING:#}\n{body}"));
    }

    /// Prints an object for a machine.
    pub(crate) fn object(self, value: Value) {
        if self.json {
            write(format_args!("{value}\n"));
        }
    }

    /// Prints a plan's warnings.
    pub(crate) fn warnings(self, warnings: &[Diagnostic]) {
        for warning in warnings {
            if self.json {
                self.object(json!({ "warning": warning }));
            } else {
                let text = for_terminal(warning.to_string());
                complain(format_args!("{WARNING}warning{WARNING:#}{}", text.strip_prefix("warning").unwrap_or(&text)));
            }
        }
    }

    /// Prints why a command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        match failure {
            Failure::Diagnostics(all) if self.json => {
                for diagnostic in all {
                    self.object(json!({ "error": diagnostic }));
                }
            }
            Failure::Message(text) if self.json => self.object(json!({ "error": coded(text) })),
            Failure::Diagnostics(all) => all.iter().for_each(|diagnostic| told(&diagnostic.to_string())),
            Failure::Message(text) => told(text),
        }
    }
}

/// Text for standard error, wrapped where that is a terminal.
fn for_terminal(text: String) -> String {
    if std::io::stderr().is_terminal() { wrapped(&text, textwrap::termwidth()) } else { text }
}

/// An error on standard error.
fn told(text: &str) {
    let text = for_terminal(format!("error{}", after_error(text)));
    complain(format_args!("{ERROR}error{ERROR:#}{}", &text["error".len()..]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_under_their_second_column() {
        let plan = "  epilogue        a                                      a accumulator, b C, each rounded\n  tile            (128,128,64)";
        assert_eq!(
            wrapped(plan, 40),
            "  epilogue        a  a accumulator, b C,\n                  each rounded\n  tile            (128,128,64)"
        );
        assert_eq!(wrapped("  help:     one two three", 24), "  help:     one two\n            three");
        assert_eq!(wrapped("error[CT001]: the recipe has none", 20), "error[CT001]: the\n  recipe has none");
        assert_eq!(wrapped("", 20), "");
    }
}
