//! Contract: on a GPU, products of 4-bit weights are right for every group, type, tile and split of K. Where there is no GPU the test
//! says that it did not run.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;
use crate::kernels::Tally;
use crate::kernels::w4a16::drawn;
use cutemplate::arch::{Arch, Targets};

#[test]
#[ignore = "needs a GPU"]
fn random_recipes_are_refused_or_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let recipes = (0..24).map(|index| (index, drawn(index)));
    let kernels = tally.plan("w4a16", recipes, &Targets::new([Arch::Sm90a]).expect("not empty"));
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| kernel.problems(20, 60_000).collect());
    tally.finish("w4a16 at random");
}
