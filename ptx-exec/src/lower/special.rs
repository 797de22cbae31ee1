//! Special registers.

/// Special registers, by number: the machine knows the first twelve by theirs.
pub(crate) const SPECIAL: &[&str] = &[
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%aggr_smem_size",
    "%clusterid.x",
    "%clusterid.y",
    "%clusterid.z",
    "%nclusterid.x",
    "%nclusterid.y",
    "%nclusterid.z",
    "%cluster_ctaid.x",
    "%cluster_ctaid.y",
    "%cluster_ctaid.z",
    "%cluster_nctaid.x",
    "%cluster_nctaid.y",
    "%cluster_nctaid.z",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%is_explicit_cluster",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
    "%envreg1",
    "%envreg2",
];

/// The special register that is a predicate.
pub(super) const IS_CLUSTER: &str = "%is_explicit_cluster";

/// Whether a special register has 64 bits; `None` for an unknown number.
pub(crate) fn is_wide_special(number: u32) -> Option<bool> {
    SPECIAL.get(number as usize).map(|name| matches!(*name, "%clock64" | "%globaltimer" | "%gridid"))
}

/// Whether a name is a special register that a driver, a profiler or a CUDA graph sets.
pub(super) fn is_unset_special(name: &str) -> bool {
    let is_number = |of: &str| !of.is_empty() && of.bytes().all(|c| c.is_ascii_digit());
    let pm = |rest: &str| is_number(rest.strip_suffix("_64").unwrap_or(rest));
    name.strip_prefix("%envreg").is_some_and(is_number)
        || name.strip_prefix("%pm").is_some_and(pm)
        || name == "%current_graph_exec"
}
