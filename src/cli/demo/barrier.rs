//! A kernel that forgets a barrier: the executor finds the race, by source line, in milliseconds.

use std::time::Instant;

use cutemplate::exec::ptx::{Modes, Module, Report};
use serde_json::json;

use crate::cli::output::{Failure, Output};

/// Two kernels, one of them without its barrier, and what nvcc 13.0 makes of them with `-lineinfo`.
const SOURCE: &str = include_str!("reverse.cu");
const PTX: &str = include_str!("reverse.ptx");

const ELEMENTS: usize = 256;

pub(super) fn show(out: &Output) -> Result<(), Failure> {
    let lines: Vec<String> = (1..).zip(SOURCE.lines()).map(|(number, line)| format!("{number:4}  {line}")).collect();
    out.section("CUDA C++ with and without a barrier", format_args!("{}\n", lines.join("\n")));
    let module = Module::parse(PTX).map_err(Failure::message)?;
    for (kernel, is_right) in [("reverse", false), ("reverse_with_barrier", true)] {
        let begin = Instant::now();
        let report = launched(&module, kernel)?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        out.section(
            &format!("{kernel} on the executor, with every check, in {took:.1} ms"),
            format_args!("{report}\n"),
        );
        out.object(json!({ "kernel": kernel, "findings": report.findings.len() }));
        if report.is_clean() != is_right {
            return Err(Failure::message(format_args!("{kernel}: the executor is wrong about this kernel")));
        }
    }
    Ok(())
}

fn launched(module: &Module, kernel: &str) -> Result<Report, Failure> {
    let x: Vec<u8> = (0_u16..).take(ELEMENTS).flat_map(|number| f32::from(number).to_le_bytes()).collect();
    let mut y = vec![0; x.len()];
    let [from, to] = [0, 1].map(|number| format!("{kernel}_param_{number}"));
    let launch = module.launch(kernel).map_err(Failure::message)?.block(&[ELEMENTS as u32]);
    launch.input(&from, &x).output(&to, &mut y).modes(Modes::ALL).run().map_err(Failure::message)
}
