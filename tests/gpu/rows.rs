//! Contract: on a GPU, row programs are right for every shape, layout, address and input. Where there is no GPU the test says that
//! it did not run.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;

use crate::kernels::{Kernel, Problem, Tally};
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Recipe, Rows};
use cutemplate::settings::Settings;

/// Problems whose rows are not wider than what the kernel holds.
fn problems(kernel: &Kernel) -> Vec<Problem> {
    let columns = kernel.plan.settings().get("columns").and_then(|c| c.parse().ok()).expect("a number");
    let fits = |problem: &Problem| problem.layouts[0].layout.shape()[1] <= columns;
    kernel.problems(400, 100_000).filter(fits).take(20).collect()
}

#[test]
#[ignore = "needs a GPU"]
fn row_programs_are_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let recipe = |settings: &&str| Rows::from_settings(&Settings::parse_lines(settings)).expect("settings");
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let kernels = tally.plan("rows", (0..).zip(Rows::CATALOGUE.iter().map(recipe)), &targets);
    batch::run(&mut tally, gpu.as_ref(), &kernels, problems);
    tally.finish("row programs");
}
