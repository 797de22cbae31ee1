//! The command line.

mod measure;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use cutemplate::arch::{Arch, Targets};
use cutemplate::plan::Plan;
use cutemplate::recipe::Family;
use cutemplate::settings::Settings;
use cutemplate::units::Bytes;
use cutemplate::verify::Fill;

pub(crate) use measure::{BenchArgs, TuneArgs};
pub(crate) use values::{Capability, Mode, On, Problem, Scalar};

use crate::cli::amount::Age;
use crate::cli::families::Families;
use crate::cli::output::{Failure, Output};
use values::svg_file;

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
    /// The whole path once: recipe, plan, C++, nvcc, a verified run.
    Demo(DemoArgs),
    /// Make a crate with a kernel of each kind, its tests and its CI. It builds and passes as it is.
    #[command(after_help = "Examples:\n  cutemplate new my-kernels\n  cutemplate new kernels --name fast-kernels")]
    New(NewArgs),
    /// Kernel families and their settings.
    List(ListArgs),
    /// Plan a kernel and print the whole decision, or everything that is wrong with it (exit 1).
    ///
    /// In place of a family it takes a file of CUDA C++, kernels/rope.cu: compiles it, and lists its entries with their parameters, registers,
    /// shared memory, spills and instructions on each architecture.
    Check(CheckArgs),
    /// Write the C++ of a kernel: `.cuh`, `.cu` and the parameter header.
    Emit(EmitArgs),
    /// Run a kernel and verify every element (exit 0 only if all are right).
    Run(RunArgs),
    /// Measure a kernel on the GPU: rate, and ratio to a device copy, or for products to NVIDIA's libraries, in the same run.
    ///
    /// Each problem of a product gets the recipe that is chosen for it, which is printed. A setting in which the recipes to choose from
    /// differ, such as `tile`, takes the recipe as it is given.
    ///
    /// Every element of D is checked against cuBLAS's before products are timed. Exit 1 if one is wrong. The baseline
    /// of f32 is cuBLAS. For 16-bit operands it is the fastest algorithm that cuBLASLt's heuristics propose, with a
    /// workspace of 64 MiB. It includes the kernel's epilogue if cuBLASLt has it: relu or gelu_tanh of alpha * A @ B +
    /// beta * C + a bias along D's contiguous mode.
    Bench(BenchArgs),
    /// Measure several recipes of a matrix product on the same problems, against cuBLAS or cuBLASLt in the same run.
    ///
    /// A line of a file of candidates is a recipe: settings with `;` between them.
    Tune(TuneArgs),
    /// Compile kernels into one file with all that a launch needs, for crates and machines without nvcc.
    ///
    /// A line of the file of recipes is a kernel: its name, its family, and settings with `;` between them.
    #[command(after_help = "Examples:\n  \
        cutemplate bundle kernels.bundle --recipes kernels.txt\n  \
        cutemplate bundle kernels.bundle --recipes kernels.txt --arch sm_80 --arch sm_90a\n  \
        cutemplate bundle kernels.bundle --recipes kernels.txt --check\n\n\
        A line of kernels.txt: vector_add elementwise_add dtype=f32; unroll=4")]
    Bundle(BundleArgs),
    /// Shows the contents of a bundle, and whether it runs on this GPU and driver (exit 1 if a kernel does not).
    #[command(
        after_help = "Examples:\n  cutemplate inspect kernels.bundle\n  cutemplate inspect kernels.bundle --on 8.6\n  \
        cutemplate inspect kernels.bundle --licences"
    )]
    Inspect(InspectArgs),
    /// Evaluate an expression of the layout algebra, or answer JSON requests line by line.
    #[command(after_help = "Examples:\n  \
        cutemplate layout 'composition((16,256):(512,1), ((32,4),(8,4)):((128,4),(16,1)))'\n  \
        cutemplate layout 'let a = (2,4):(1,2); complement(a, 16)' --explain\n  \
        cutemplate layout 'make_layout_tv((4,8):(8,1), (2,2):(2,1))' --svg tv.svg\n  \
        cutemplate layout SM80_16x8x16_F32F16F16F32_TN --svg mma.svg\n  \
        cutemplate layout 'Sw<3,3,3> o 0 o ((8,4),8):((64,8),1)' --access --element-bytes 2\n  \
        cutemplate layout --jsonl < requests.jsonl")]
    Layout(LayoutArgs),
    /// Shows the size of compiled kernels on disk; removes old ones, or those over a limit.
    #[command(
        subcommand,
        after_help = "Examples:\n  cutemplate cache size\n  \
        cutemplate cache prune                                  # what nobody has used for 30 days\n  \
        cutemplate cache prune --older-than 7d --max-size 2G\n\n\
        Safe while other processes use the cache. Fetched tools stay."
    )]
    Cache(CacheCommand),
    /// Run anyone's PTX on this machine's processor, without a GPU: `check` a text, `run` a launch file.
    #[command(
        subcommand,
        after_help = "Examples:\n  cutemplate ptx check kernel.ptx\n  cutemplate ptx run launch.json\n  \
        cutemplate ptx run launch.json --seeds 8\n\n\
        Exit 0: right; 1: findings; 2: malformed, or PTX that is not run here."
    )]
    Ptx(ptx_exec::cli::Command),
    /// What a code of a diagnostic means, with a recipe that gets it; without a code, all of them.
    #[command(after_help = "Examples:\n  cutemplate explain CT017\n  cutemplate explain")]
    Explain(ExplainArgs),
    /// Print a script that completes this tool's commands and options in a shell.
    #[command(after_help = "Examples:\n  cutemplate completions bash\n  cutemplate completions zsh")]
    Completions(CompletionsArgs),
    /// Shows which tools were found (CUTLASS, CUDA, compiler, GPU), where, and which are missing (exit 1 if building or
    /// running a kernel needs them).
    Doctor,
}

/// Which kernel.
#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// The kernel family, as `cutemplate list` names it; for `check` also a file of CUDA C++.
    pub(crate) kernel: String,
    /// A setting of the recipe; may be given several times.
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// An architecture to compile for; may be given several times [default: sm_80 and sm_90a]. Where the CPU runs the kernel, the
    /// newest counts.
    #[arg(long = "arch", value_name = "SM")]
    pub(crate) arch: Vec<Arch>,
    /// The name of the kernel and of its files [default: from the recipe].
    #[arg(long)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// Predict requests, sectors and time of a launch of this size, MxNxK for a product.
    #[arg(long, value_name = "MxN")]
    pub(crate) problem: Option<Problem>,
    /// Leading dimension of that launch, in elements [default: N].
    #[arg(long, requires = "problem")]
    pub(crate) ld: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// The folder to write into; without it the text goes to standard output.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// The file to write.
    pub(crate) file: PathBuf,
    /// Write nothing: compare the bundle with the recipes, and say which kernels differ (exit 1 if one does). Needs no nvcc.
    #[arg(long)]
    pub(crate) check: bool,
    /// A file with a kernel a line; may be given several times.
    #[arg(long, required = true)]
    pub(crate) recipes: Vec<PathBuf>,
    /// An architecture to compile for; may be given several times [default: sm_80, sm_86, sm_89,
    /// sm_90a, sm_100 and sm_120, and sm_75 for kernels that need neither cp.async nor tensor cores].
    #[arg(long = "arch", value_name = "SM")]
    pub(crate) arch: Vec<Arch>,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A bundle.
    pub(crate) file: PathBuf,
    /// A compute capability to ask for instead of this GPU's.
    #[arg(long, value_name = "MAJOR.MINOR")]
    pub(crate) on: Option<Capability>,
    /// Print the text of each licence that the bundle carries for its kernels.
    #[arg(long)]
    pub(crate) licences: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder for the C++ and the .npy files.
    #[arg(long, default_value = "target/cutemplate-demo")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// The extent of each mode, and MxNxK for a product, MxNxKxL with batches [default: that of the inputs, else one that leaves
    /// something over].
    #[arg(long, value_name = "MxN")]
    pub(crate) problem: Option<Problem>,
    /// Leading dimension, in elements: from one row to the next, where rows are the contiguous mode [default: N].
    #[arg(long)]
    pub(crate) ld: Option<i64>,
    /// The value of a run-time scalar of the function [default for products: 1 for what A @ B is multiplied by, 0 for what C
    /// is].
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) scalar: Vec<Scalar>,
    /// Where to run.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) on: On,
    /// Checks of the executor [default: plain].
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// Count what each instruction does, by PTX line and by source line: executions, lanes, sectors, passes over the banks.
    #[arg(long)]
    pub(crate) profile: bool,
    /// Draw to this SVG file how many stages are being filled, and how many wgmma products are under way, over the turns of warps.
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub(crate) stages: Option<PathBuf>,
    /// Seed of generated inputs.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Values of generated inputs: integers (from -8 to 8), small (integers from -2 to 2), normal or specials.
    #[arg(long, default_value = "normal")]
    pub(crate) fill: Fill,
    /// An input as a .npy file of any order and as many axes as the tensor has modes, or fewer; one for each, in order.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<PathBuf>,
    /// Where to write an output, as a .npy file; one for each, in order. A column-major one is in Fortran order.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LayoutArgs {
    /// A layout, nested calls, `let` and `;`; or the name of an MMA or copy atom.
    #[arg(required_unless_present = "jsonl")]
    pub(crate) expression: Option<String>,
    /// Show the derivation of every operation.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show the values of the result as a grid with coordinates.
    #[arg(long)]
    pub(crate) table: bool,
    /// Draw the last operation, its inputs beside its result, or the layout itself, into an .svg file.
    #[arg(long, value_name = "FILE", value_parser = svg_file)]
    pub(crate) svg: Option<PathBuf>,
    /// Show the cost of the layout as an access of threads, (thread,value) to offset: passes over the banks of shared
    /// memory, sectors of global memory.
    #[arg(long)]
    pub(crate) access: bool,
    /// Bytes of an element, for --access and for the banks in the picture of a swizzle.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(i64).range(1..=16))]
    pub(crate) element_bytes: i64,
    /// Elements that a thread moves at once, for --access; by default as many as lie side by side.
    #[arg(long, requires = "access")]
    pub(crate) vector: Option<u64>,
    /// Read one request a line from standard input, answer each with one line.
    #[arg(long, conflicts_with_all = ["expression", "explain", "table", "access", "svg", "json"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Every entry, the least recently used first.
    List,
    /// Entries and bytes of each kind.
    Size,
    /// Removes compiled kernels, by default those unused for 30 days.
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The folder of the crate: empty, or not there.
    pub(crate) path: PathBuf,
    /// The name of the crate [default: that of the folder].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Depend on this checkout of cutemplate instead of its repository.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cutemplate: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// One family: its settings with their defaults, and the functions of its expressions.
    pub(crate) family: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The code, as in `error[CT017]`.
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove kernels unused for this long: days, or a number with h, d or w.
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<Age>,
    /// The least recently used goes until no more than this is left: bytes, or with K, M, G a power of 1024.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<Bytes>,
}

/// What `--set` says, each time that it is given.
pub(crate) fn settings(set: &[String]) -> Result<Settings, Failure> {
    let mut settings = Settings::new();
    for pair in set {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Failure::message(format!("--set {pair}: found no `=`, required KEY=VALUE, for example --set dtype=f32"))
        })?;
        settings.set(key, value);
    }
    Ok(settings)
}

impl KernelArgs {
    /// The settings of the recipe.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        settings(&self.set)
    }

    /// Plans the kernel that the arguments describe, and prints the plan's warnings.
    pub(crate) fn plan(&self, families: &Families, out: &Output) -> Result<Plan, Failure> {
        self.plan_of(families.find(&self.kernel)?, &self.settings()?, self.name.as_deref(), out)
    }

    /// The same for a family and other settings, under another name.
    pub(crate) fn plan_of(
        &self,
        family: &Family,
        settings: &Settings,
        name: Option<&str>,
        out: &Output,
    ) -> Result<Plan, Failure> {
        let targets = Targets::new(self.arch.iter().copied()).unwrap_or_else(|| family.usual_targets(settings));
        let plan = family.plan(settings, name, &targets)?;
        out.warnings(plan.warnings());
        Ok(plan)
    }
}
