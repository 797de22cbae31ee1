//! `cutemplate`: lists, checks, emits, runs and measures kernels; answers questions about layouts.

mod args;
mod check;
mod emit;
mod list;
mod output;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let out = Output::new(cli.json);
    let result = match &cli.command {
        Command::List => list::run(&out),
        Command::Check(args) => check::run(args, &out),
        Command::Emit(args) => emit::run(args, &out),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            out.failure(&failure);
            ExitCode::FAILURE
        }
    }
}
