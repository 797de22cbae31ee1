//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use cutemplate::arch::{Arch, Targets};
use cutemplate::plan::Plan;
use cutemplate::recipe::{Settings, family};

use crate::output::Failure;

/// CuTe kernels from Rust: planned, proved, emitted as readable C++, compiled, run, verified.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Print one JSON object a line, for machines.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Kernel families and their settings.
    List,
    /// Plan a kernel and print the whole decision, or everything that is wrong with it (exit 1).
    #[command(after_help = "Examples:\n  cutemplate check elementwise_add\n  cutemplate check elementwise_add --set dtype=f32 --set 'thr=(8,32):(32,1)' --arch sm_90a")]
    Check(KernelArgs),
    /// Write the C++ of a kernel: `.cuh`, `.cu` and the parameter header.
    #[command(after_help = "Examples:\n  cutemplate emit elementwise_add                 # to standard output\n  cutemplate emit elementwise_add --out kernels   # into a folder")]
    Emit(EmitArgs),
}

/// Which kernel.
#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// The kernel family, as `cutemplate list` names it.
    pub(crate) kernel: String,
    /// A setting of the recipe; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// An architecture to compile for; may be given several times [default: sm_80 and sm_90a].
    #[arg(long = "arch", value_name = "SM")]
    pub(crate) arch: Vec<Arch>,
    /// The name of the kernel and of its files [default: from the recipe].
    #[arg(long)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// The folder to write into; without it the text goes to standard output.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
}

impl KernelArgs {
    /// Plans the kernel that the arguments describe.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        let mut settings = Settings::new();
        for pair in &self.set {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                Failure::message(format!("--set {pair}: found no `=`, required KEY=VALUE, for example --set dtype=f32"))
            })?;
            settings.set(key, value);
        }
        let targets = Targets::new(self.arch.iter().copied()).unwrap_or_default();
        Ok(family(&self.kernel)?.plan(&settings, self.name.as_deref(), &targets)?)
    }
}
