//! Contract: on a GPU, sums along rows are right for every shape, layout, address and input. Where there is no GPU the test says that
//! it did not run.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;

use crate::kernels::Tally;
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Recipe, Sum};
use cutemplate::settings::Settings;

#[test]
#[ignore = "needs a GPU"]
fn sums_are_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let recipe = |settings: &&str| Sum::from_settings(&Settings::parse_lines(settings)).expect("settings");
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let kernels = tally.plan("sum", (0..).zip(Sum::CATALOGUE.iter().map(recipe)), &targets);
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| kernel.problems(20, 100_000).collect());
    tally.finish("sums");
}
