//! The command line: lists, checks, emits, runs and measures kernels; answers questions about layouts.
//!
//! A program of another crate has it for its own families, beside ours:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use cutemplate::recipe::{Family, Sum};
//!
//! fn main() -> ExitCode {
//!     // In place of `Sum`, the recipes of the crate.
//!     cutemplate::cli::run(&[Family::of::<Sum>()])
//! }
//! ```

mod amount;
mod args;
mod arrays;
mod bench;
mod bundle;
mod cache;
mod chart;
mod check;
mod chosen;
mod demo;
mod device;
mod doctor;
mod emit;
mod explain;
mod families;
mod fit;
mod jsonl;
mod lab;
mod layout;
mod layout_atom;
mod layout_cmd;
mod layout_svg;
mod list;
mod new;
mod output;
mod own;
mod product;
mod progress;
mod random;
mod run;
mod stages;
mod tune;
mod typed;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches;
use cutemplate::recipe::Family;

use args::{Cli, Command};
use families::Families;
use output::Output;

/// Runs the command line on the arguments of this process: our families, and those that are given. Two families with one name are
/// refused.
#[must_use]
pub fn run(own: &[Family]) -> ExitCode {
    let families = match Families::with(own) {
        Ok(families) => families,
        Err(failure) => {
            Output::new(false).failure(&failure);
            return ExitCode::FAILURE;
        }
    };
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().and_then(|path| Path::new(path).file_stem()?.to_str()).unwrap_or("cutemplate");
    let parsed = families.command(program).try_get_matches_from(&arguments);
    let matches = parsed.unwrap_or_else(|error| typed::with_tip(error, &families, program).exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let out = Output::new(cli.json);
    match command(&cli.command, &families, program, &out) {
        Ok(code) => code,
        Err(failure) => {
            out.failure(&failure);
            ExitCode::FAILURE
        }
    }
}

fn command(command: &Command, families: &Families, program: &str, out: &Output) -> Result<ExitCode, output::Failure> {
    match command {
        Command::Demo(args) => demo::run(args, out),
        Command::New(args) => new::run(args, out),
        Command::List(args) => list::run(args, families, program, out),
        Command::Check(args) => check::run(args, families, out),
        Command::Emit(args) => emit::run(args, families, out),
        Command::Run(args) => run::run(args, families, out),
        Command::Bench(args) => bench::run(args, families, out),
        Command::Tune(args) => tune::run(args, families, out),
        Command::Bundle(args) => bundle::write(args, families, out),
        Command::Inspect(args) => bundle::inspect(args, out),
        Command::Layout(args) => layout::run(args, out),
        Command::Cache(args) => cache::run(args, out),
        Command::Ptx(args) => Ok(ptx_exec::cli::run(args, &format!("{program} ptx"), out.is_json())),
        Command::Explain(args) => explain::run(args, program, out),
        Command::Completions(args) => Ok(typed::complete(args, families, program)),
        Command::Doctor => doctor::run(out),
    }
}
