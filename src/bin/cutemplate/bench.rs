//! `cutemplate bench`: the rate of a kernel, and its ratio to a device copy in the same run.

use std::process::ExitCode;

use cutemplate::emit::render;
use cutemplate::launch::{AnyKernel, Gpu, Protocol, bench};
use cutemplate::verify::{Fill, TensorLayout};
use serde_json::json;

use crate::args::{BenchArgs, Problem};
use crate::device;
use crate::output::{Failure, Output};

pub(crate) fn run(args: &BenchArgs, out: &Output) -> Result<ExitCode, Failure> {
    let plan = args.kernel.plan()?;
    let gpu = Gpu::find().map_err(|none| Failure::message(format_args!("a bench needs a GPU; {none}")))?;
    let compiled = device::fatbin(&plan, &render(&plan), out)?;
    let kernel = AnyKernel::load(&gpu, plan, &compiled.fatbin).map_err(Failure::message)?;
    let protocol = Protocol { timings: args.timings, ..Protocol::default() };
    for Problem { rows, cols } in &args.problem {
        let layout = TensorLayout::padded(*rows, *cols, args.ld.unwrap_or(*cols));
        let layouts = vec![layout; kernel.plan().operands().len()];
        let report =
            bench::run(&gpu, &kernel, &layouts, Fill::Normal, args.seed, &protocol).map_err(Failure::message)?;
        out.text(&report);
        out.object(json!({ "bench": report }));
    }
    Ok(ExitCode::SUCCESS)
}
