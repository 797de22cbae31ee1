//! Contract: a short launch of a product begins while the kernel before it ends, and its clusters take tiles in narrow groups; a long
//! one does not where its clusters lie along the rasterization, and its groups are wide.

use cutemplate::arch::Arch;
use cutemplate::plan::EntryLaunch;

use crate::rejects::gemm::{planned, views};

/// The entry that multiplies as it is launched, and tiles of a cluster in a group.
fn launched(settings: &str, extents: [i64; 3]) -> (EntryLaunch, i32) {
    let plan = planned(&format!("out=f16\n{settings}"), &[Arch::Sm90a]).expect("a right recipe");
    let part = &plan.texts()[0];
    let binding = part.bind(&views(&plan, extents)).expect("a launch");
    let multiplies = |entry: usize| part.entries()[entry].function(part.name()) == "kernel";
    let launch = *binding.launches().iter().find(|launch| multiplies(launch.entry)).expect("a launch");
    let at = part.params().field("group").expect("a parameter").offset;
    let bytes = binding.params()[at..at + 4].try_into().expect("four bytes");
    (launch, i32::from_le_bytes(bytes))
}

/// Whether the entry that multiplies begins while the kernel before it ends, M, N and K being the same.
fn begins_early(settings: &str, extent: i64) -> bool {
    launched(settings, [extent; 3]).0.overlaps
}

#[test]
fn long_launches_of_clusters_along_the_raster_wait_for_the_kernel_before() {
    assert_eq!([1024, 2048, 4096, 8192].map(|extent| begins_early("", extent)), [true, true, false, false]);
    let across = ["cluster=1x2\nraster=m", "cluster=2x1\nraster=n", "cluster=2x2"];
    assert_eq!(across.map(|settings| begins_early(settings, 8192)), [true; 3]);
    let along = ["cluster=1x1", "cluster=1x2", "cluster=1x2\nraster=n", "cluster=2x1\nstream_k=10"];
    assert_eq!(along.map(|settings| begins_early(settings, 8192)), [false; 4]);
    // What adds up sums begins early.
    let plan = planned("out=f16\nstream_k=1", &[Arch::Sm90a]).expect("a right recipe");
    let binding = plan.texts()[0].bind(&views(&plan, [600, 600, 100_000])).expect("a launch");
    assert_eq!(binding.launches().iter().map(|launch| launch.overlaps).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn short_launches_of_many_tiles_have_narrow_groups() {
    let of = |settings: &str, extents| launched(settings, extents).1;
    assert_eq!([1024, 2048, 4096, 8192].map(|extent| of("", [extent; 3])), [2, 2, 8, 8]);
    // Three tiles of a cluster along the mode of groups are one group; that mode is M, and with clusters along N that.
    assert_eq!([768, 776].map(|m| of("", [m, 4096, 512])), [3, 2]);
    assert_eq!([1536, 1544].map(|n| of("cluster=1x2", [4096, n, 512])), [3, 2]);
    assert_eq!([768, 776].map(|n| of("cluster=1x1", [4096, n, 512])), [3, 2]);
    assert_eq!([384, 392].map(|m| of("cluster=1x1\nraster=m", [m, 4096, 512])), [3, 2]);
    // What is given holds, up to as many as there are: as tiles are, those of a group are numbered by 32 bits.
    assert_eq!(["group=1", "group=7", "group=65536"].map(|group| of(group, [2048; 3])), [1, 7, 8]);
}
