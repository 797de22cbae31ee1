//! `cutemplate`: lists, checks, emits, runs and measures kernels; answers questions about layouts.

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
mod fit;
mod jsonl;
mod lab;
mod layout;
mod layout_atom;
mod layout_cmd;
mod layout_svg;
mod list;
mod output;
mod own;
mod product;
mod progress;
mod random;
mod run;
mod stages;
mod tune;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let out = Output::new(cli.json);
    let result = match &cli.command {
        Command::Demo(args) => demo::run(args, &out),
        Command::List(args) => list::run(args, &out),
        Command::Check(args) => check::run(args, &out),
        Command::Emit(args) => emit::run(args, &out),
        Command::Run(args) => run::run(args, &out),
        Command::Bench(args) => bench::run(args, &out),
        Command::Tune(args) => tune::run(args, &out),
        Command::Bundle(args) => bundle::write(args, &out),
        Command::Inspect(args) => bundle::inspect(args, &out),
        Command::Layout(args) => layout::run(args, &out),
        Command::Cache(args) => cache::run(args, &out),
        Command::Ptx(args) => Ok(ptx_exec::cli::run(args, "cutemplate ptx", out.is_json())),
        Command::Doctor => doctor::run(&out),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            out.failure(&failure);
            ExitCode::FAILURE
        }
    }
}
