//! `cutemplate bench`: the rate of a kernel, and its ratio to a device copy in the same run.

use std::process::ExitCode;

use cutemplate::emit::render;
use cutemplate::launch::{AnyKernel, Gpu, Protocol, bench};
use cutemplate::verify::Fill;
use serde_json::json;

use crate::args::BenchArgs;
use crate::device;
use crate::output::{Failure, Output};
use crate::run;

pub(crate) fn run(args: &BenchArgs, out: &Output) -> Result<ExitCode, Failure> {
    let plan = args.kernel.plan(out)?;
    let gpu = Gpu::find().map_err(|none| Failure::message(format_args!("a bench needs a GPU; {none}")))?;
    let compiled = device::fatbin(&plan, &render(&plan), out)?;
    let kernel = AnyKernel::load(&gpu, plan, &compiled.fatbin).map_err(Failure::message)?;
    let protocol = Protocol { timings: args.timings, ..Protocol::default() };
    let scalars = run::scalars(kernel.plan(), &args.scalar)?;
    for problem in &args.problem {
        let layouts = run::layouts(kernel.plan(), &problem.0, args.ld)?;
        let inputs = (Fill::Normal, args.seed);
        let how = bench::How { graph: args.graph, warm: args.warm };
        let report = bench::run(&gpu, &kernel, &layouts, &scalars, inputs, how, &protocol).map_err(Failure::message)?;
        out.text(&report);
        out.object(json!({ "bench": report }));
    }
    Ok(ExitCode::SUCCESS)
}
