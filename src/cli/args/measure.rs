//! The arguments of what measures: `bench` and `tune`.

use std::path::PathBuf;

use clap::Args;
use cutemplate::arch::Arch;
use cutemplate::verify::Fill;

use super::KernelArgs;
use super::values::{Problem, Scalar, seconds, svg_file};
use crate::cli::lab::Spread;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// A rung of the family's ladder instead of `--set variant=`; may be given several times.
    #[arg(long, value_name = "RUNG")]
    pub(crate) variant: Vec<String>,
    /// Every rung of the family's ladder, and the recipe that is chosen for the problem where the family chooses.
    #[arg(long, conflicts_with = "variant")]
    pub(crate) ladder: bool,
    /// The extent of each mode, MxNxK for a product; may be given several times [default: the family's usual one].
    #[arg(long, value_name = "MxN")]
    pub(crate) problem: Vec<Problem>,
    /// Leading dimension, in elements [default: N].
    #[arg(long)]
    pub(crate) ld: Option<i64>,
    /// The value of a run-time scalar of the function [default for products: 1 for what A @ B is multiplied by, 0 for what C
    /// is].
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) scalar: Vec<Scalar>,
    /// Replay launches from a CUDA graph, so that the host's work is not timed.
    #[arg(long)]
    pub(crate) graph: bool,
    /// Use one set of buffers, which stay in the L2 cache where they fit, instead of several in turn.
    #[arg(long)]
    pub(crate) warm: bool,
    /// Timings of each kernel, and of the copy or of the baseline.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timings: u32,
    /// Seconds without work ahead of each timing, in which a GPU that was slowed down to stay within its power recovers.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    pub(crate) rest: f64,
    /// Loop each kernel of a product and the baseline for so long, in turns, twice: rate, clock, and joules for 10^12 operations where the
    /// driver tells them. Clocks are read, never set.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    pub(crate) sustained: f64,
    /// Time the memory's limits beside a product: the driver's memset of D, and a copy of the bytes of all operands.
    #[arg(long)]
    pub(crate) ceilings: bool,
    /// Fit the cost of a launch and of an epilogue, from times at several K with one tile per CTA and with four.
    #[arg(long, conflicts_with_all = ["problem", "variant", "ladder", "random"])]
    pub(crate) fit: bool,
    /// Random problems, M, N and K from 1 to 20,000, half of them multiples of 8, each by the recipe that is chosen for it.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["problem", "variant", "ladder", "name", "chart"],
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) random: Option<u32>,
    /// How their extents are spread: even, or log, each magnitude as likely as any other.
    #[arg(long, requires = "random", value_enum, default_value_t)]
    pub(crate) spread: Spread,
    /// Draw the ratio of each problem to the baseline into an .svg file.
    #[arg(long, value_name = "FILE", value_parser = svg_file)]
    pub(crate) chart: Option<PathBuf>,
    /// Values of the inputs: integers (from -8 to 8), small (integers from -2 to 2), normal or
    /// specials (not for products).
    #[arg(long, default_value = "normal")]
    pub(crate) fill: Fill,
    /// Seed of the inputs, and of random problems.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The kernel family, as `cutemplate list` names it.
    pub(crate) kernel: String,
    /// A file with a recipe a line [default: the recipes that the model chooses from].
    #[arg(long, value_name = "FILE")]
    pub(crate) candidates: Option<PathBuf>,
    /// A setting of every recipe; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// MxNxK, and L behind them with batches; may be given several times.
    #[arg(long, value_name = "MxNxK", required = true)]
    pub(crate) problem: Vec<Problem>,
    /// An architecture to compile for; may be given several times [default: sm_80 and sm_90a].
    #[arg(long = "arch", value_name = "SM")]
    pub(crate) arch: Vec<Arch>,
    /// Seconds without work ahead of each timing, in which a GPU that was slowed down to stay within its power recovers.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    pub(crate) rest: f64,
    /// Values of the inputs: integers (from -8 to 8), small (integers from -2 to 2) or normal.
    #[arg(long, default_value = "normal")]
    pub(crate) fill: Fill,
    /// Launch one by one instead of replaying a CUDA graph.
    #[arg(long)]
    pub(crate) one_by_one: bool,
    /// Use one set of buffers, which stay in the L2 cache where they fit, instead of several in turn.
    #[arg(long)]
    pub(crate) warm: bool,
    /// Timings of each kernel.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timings: u32,
    /// Seed of the inputs.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the fastest recipe for each problem to this file, for `Record::from_str` and `Config::dispatch`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}
