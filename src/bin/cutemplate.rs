//! `cutemplate`: lists, checks, emits, runs and measures kernels of our families; answers questions about layouts.

fn main() -> std::process::ExitCode {
    cutemplate::cli::run(&[])
}
