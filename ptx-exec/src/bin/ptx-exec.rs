//! `ptx-exec`: test CUDA kernels without a GPU.

use std::process::ExitCode;

use clap::Parser;
use ptx_exec::cli::{self, Command};

/// Runs PTX on the CPU and finds faults of CUDA kernels: races, out-of-bounds accesses, uninitialised reads, barrier misuse.
#[derive(Debug, Parser)]
#[command(version, after_help = "Exit codes: 0, all is right; 1, findings; 2, malformed, or not run here.")]
struct Args {
    /// Print JSON lines instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::run(&args.command, "ptx-exec", args.json)
}
