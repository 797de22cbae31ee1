//! The command line of cutemplate, with the family of this crate beside its own.

use std::process::ExitCode;

use cutemplate::recipe::Family;
use gated_family::Gated;

fn main() -> ExitCode {
    cutemplate::cli::run(&[Family::of::<Gated>()])
}
