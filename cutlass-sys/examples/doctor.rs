//! Prints what is found and what is missing; with a component's name, fetches it first.

use std::process::ExitCode;

use cutlass_sys::{Finder, Step};

fn main() -> ExitCode {
    let finder = Finder::from_env();
    let mut progress = |step: Step<'_>| eprintln!("{step:?}");
    let wanted = std::env::args().nth(1);
    let fetched = match wanted.as_deref() {
        Some("cutlass") => finder.cutlass(&mut progress).err(),
        Some("cuda-headers") => finder.cuda_headers(&mut progress).err(),
        Some("cuda-nvcc") => finder.nvcc(&mut progress).err(),
        Some("cuda-disassembler") => finder.disassembler(&mut progress).err(),
        Some("libclang") => finder.libclang(&mut progress).err(),
        _ => None,
    };
    println!("{}", finder.doctor());
    match fetched {
        Some(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}
