//! The command line: `ptx-exec check`, `ptx-exec run`, and the same as subcommands of another tool.

mod check;
mod junit;
mod launches;
pub mod output;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::{Error, Report};
use output::{Output, complain};

/// Malformed or unsupported.
const REFUSED: u8 = 2;

/// Commands on PTX.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the entries of a text, their parameters, and unsupported instructions.
    #[command(after_help = "Example: check kernel.ptx")]
    Check {
        /// A PTX text.
        file: PathBuf,
    },
    /// Run the launches of files, and print the findings.
    #[command(
        after_help = "Examples:\n  run launch.json\n  run tests/*.json --seeds 8 --junit report.xml\n\nA launch file: {\"ptx\": \
        \"k.ptx\", \"entry\": \"k\", \"grid\": [4], \"block\": [128], \"args\": [..], \"modes\": [\"races\"]}.\n\nSums of tensor cores, by \
        the file's key \"tensor_cores\": \"fast\" in f32; \"hopper\" as an H200 adds, bit by bit; \"ampere\" as an A100 adds, from the \
        paper (MMA-Sim, arXiv 2511.10909)."
    )]
    Run(RunArgs),
}

/// The launches, and how to run them.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Launch files, which run one after the other.
    #[arg(required = true)]
    pub launch: Vec<PathBuf>,
    /// Count executions, lanes, sectors and bank passes, by PTX line and by source line.
    #[arg(long)]
    pub profile: bool,
    /// The seed; it replaces the seed in the file. It decides the order of warps and blocks, and when asynchronous work happens.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Number of seeds for each launch. The findings of the first failing seed are printed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Write the results as JUnit XML: a test suite for each file, a test case for each launch.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// Runs a command. `program` is the command's name for the user, such as `ptx-exec`; `json` prints JSON lines instead of text.
///
/// Exit codes: 0, right; 1, findings or differences; 2, malformed or unsupported.
pub fn run(command: &Command, program: &str, json: bool) -> ExitCode {
    let out = Output { json };
    let result = match command {
        Command::Check { file } => check::check(file, out),
        Command::Run(args) => launches::run(args, program, out),
    };
    result.unwrap_or_else(|error| {
        refuse(&error, out);
        ExitCode::from(REFUSED)
    })
}

/// Prints the kernel's output, its findings, and its profile.
pub fn tell(report: &Report, json: bool) {
    report::tell(report, None, Output { json });
}

fn refuse(error: &Error, out: Output) {
    if out.json {
        let position = error.position.map(|p| json!({ "line": p.line, "column": p.column }));
        out.object(json!({ "error": {
            "code": error.kind.as_str(), "what": error.what, "entry": error.entry, "position": position, "found": error.found,
            "required": error.required, "help": error.help,
        } }));
    } else {
        complain(error);
    }
}

/// `1 finding`, `2 findings`.
fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}
