//! Contract: on a GPU, the largest elements of rows are right for every shape, layout, address and input. Where there is no GPU the
//! test says that it did not run.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;
use crate::kernels::Tally;
use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::DType;
use cutemplate::recipe::TopK;

/// Every type, with one result, some and the most, and with few elements at a time.
#[test]
#[ignore = "needs a GPU"]
fn largest_elements_are_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let recipes = [DType::F16, DType::Bf16, DType::F32].into_iter().flat_map(|dtype| {
        let of = |k| TopK { dtype, k, ..Default::default() };
        [of(1), of(64), of(128), TopK { threads: Some(32), chunks: Some(1), ..of(20) }]
    });
    let kernels = tally.plan("top_k", (0..).zip(recipes), &Targets::new([Arch::Sm90a]).expect("not empty"));
    assert_eq!(kernels.len(), 12, "{tally}");
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| kernel.problems(20, 20_000).collect());
    tally.finish("top k");
}
