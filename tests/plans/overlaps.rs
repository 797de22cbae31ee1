//! Contract: a short launch of a product begins while the kernel before it ends; a long one does not, where its clusters lie along the
//! rasterization.

use cutemplate::arch::Arch;

use crate::rejects::gemm::{planned, views};

/// Whether the entry that multiplies begins while the kernel before it ends, M, N and K being the same.
fn begins_early(settings: &str, extent: i64) -> bool {
    let plan = planned(&format!("out=f16\n{settings}"), &[Arch::Sm90a]).expect("a right recipe");
    let part = &plan.parts()[0];
    let binding = part.bind(&views(&plan, [extent; 3])).expect("a launch");
    let multiplies = |entry: usize| part.entries()[entry].function(part.name()) == "kernel";
    binding.launches().iter().find(|launch| multiplies(launch.entry)).expect("a launch").overlaps
}

#[test]
fn long_launches_of_clusters_along_the_raster_wait_for_the_kernel_before() {
    assert_eq!([1024, 2048, 4096, 8192].map(|extent| begins_early("", extent)), [true, true, false, false]);
    let across = ["cluster=1x2", "cluster=2x1\nraster=n", "cluster=2x2"];
    assert_eq!(across.map(|settings| begins_early(settings, 8192)), [true; 3]);
    let along = ["cluster=1x1", "cluster=1x2\nraster=n", "cluster=2x1\nstream_k=10"];
    assert_eq!(along.map(|settings| begins_early(settings, 8192)), [false; 3]);
    // What adds up sums begins early.
    let plan = planned("out=f16\nstream_k=1", &[Arch::Sm90a]).expect("a right recipe");
    let binding = plan.parts()[0].bind(&views(&plan, [600, 600, 100_000])).expect("a launch");
    assert_eq!(binding.launches().iter().map(|launch| launch.overlaps).collect::<Vec<_>>(), [false, true]);
}
