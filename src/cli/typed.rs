//! What a person types: tips for what cannot be parsed, and completions.

use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::args::CompletionsArgs;
use crate::cli::families::Families;
use crate::cli::output::write;

/// The same error, with the command that was probably meant: a family in place of a command, a setting without its option.
pub(crate) fn with_tip(mut error: clap::Error, families: &Families, program: &str) -> clap::Error {
    let typed = |kind| match error.get(kind) {
        Some(ContextValue::String(typed)) => Some(typed.clone()),
        _ => None,
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => typed(ContextKind::InvalidSubcommand)
            .filter(|word| families.iter().any(|family| family.name == word))
            .map(|family| {
                format!("`{family}` is a kernel family: `{program} run {family}`, or `{program} list {family}`")
            }),
        ErrorKind::UnknownArgument => typed(ContextKind::InvalidArg)
            .filter(|word| !word.starts_with('-') && word.contains('='))
            .map(|setting| format!("a setting follows -s: `-s '{setting}'`")),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// Prints the script for a shell.
pub(crate) fn complete(args: &CompletionsArgs, families: &Families, program: &str) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut families.command(program), program, &mut script);
    write(format_args!("{}", String::from_utf8_lossy(&script)));
    ExitCode::SUCCESS
}
