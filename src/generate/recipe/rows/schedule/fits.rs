//! Whether settings are ones that there are, and whether what was chosen fits.

use super::choose::Asked;
use super::{Hold, MARGIN, Schedule};
use crate::arch::{Arch, Targets};
use crate::diagnostic::Code;
use crate::model::banks::WARP;
use crate::plan::checks::Checks;
use crate::units::Bytes;

impl Asked {
    /// Whether each setting is one that there is.
    pub(super) fn is_fine(&self, checks: &mut Checks) -> bool {
        const MOST: i64 = Arch::MAX_THREADS as i64;
        let Self { columns, least, .. } = *self;
        let mut fine = true;
        let mut require = |holds, code, found: String, required: &str, because, help| {
            fine &= checks.require(holds, code, found, required, because, help);
        };
        let because = "a row has columns, and a kernel for wider ones cannot be launched";
        let found = format!("columns={columns}");
        require((1..=1 << 20).contains(&columns), Code::TileSize, found, "1 to 1048576", because, "columns=4096");
        if let Some(set) = self.threads {
            let holds = set.count_ones() == 1 && (least..=MOST).contains(&set);
            let (found, required) = (format!("threads={set}"), format!("a power of two from {least} to {MOST}"));
            let because =
                "lanes reduce in pairs, and a CTA has at most 1024 threads; the threads of a group lie side by side";
            require(holds, Code::ThreadCount, found, &required, because, "threads=auto");
        }
        if let Some(set) = self.block {
            let threads = self.threads.unwrap_or(1).max(1);
            let holds = set % threads == 0 && set % WARP as i64 == 0 && (1..=MOST).contains(&set);
            let required = format!("a multiple of {}, up to {MOST}", threads.max(WARP as i64));
            let because = "whole warps have whole rows";
            require(holds, Code::ThreadCount, format!("{set} threads"), &required, because, "a CTA of 256 threads");
        }
        if let Some(set) = self.chunks {
            let because = "a thread has vectors of a row, and registers for so many";
            require((1..=64).contains(&set), Code::Unroll, format!("chunks={set}"), "1 to 64", because, "chunks=auto");
        }
        if let Some(set) = self.cluster {
            let because = "clusters of up to 8 CTAs run on every GPU that has clusters";
            let holds = matches!(set, 1 | 2 | 4 | 8);
            require(holds, Code::ThreadCount, format!("cluster={set}"), "1, 2, 4 or 8", because, "cluster=auto");
        }
        fine
    }

    /// Whether the targets have the clusters, and rows that lie there use them; whether values of groups have registers.
    pub(super) fn fits_hold(&self, targets: &Targets, checks: &mut Checks) -> bool {
        let set = self.cluster.unwrap_or(1);
        let (found, help) = (format!("cluster={set} for {targets}"), "cluster=1, or other targets");
        let because = "an architecture before sm_90 has no clusters";
        let has = set == 1 || have_clusters(targets);
        let has = checks.require(has, Code::Instruction, found, "sm_90 or later", because, help);
        let because = "a row that is read again needs no more threads than one CTA has";
        let found = format!("cluster={set}, hold={}", self.hold);
        let one = set == 1 || self.hold != Hold::Memory;
        let has =
            has & checks.require(one, Code::ThreadCount, found, "cluster=1", because, "hold=registers, or cluster=1");
        let because = "each CTA has whole rows where columns are reduced";
        let (found, one) = (format!("cluster={set}"), set == 1 || self.need.columns == 0);
        let has = has & checks.require(one, Code::Variant, found, "cluster=1", because, "cluster=auto");
        let found = format!("values of groups or columns, hold={}", self.hold);
        let holds = self.hold == Hold::Registers || !self.groups && self.need.columns == 0;
        let because = "threads hold the values of all their groups and columns";
        has & checks.require(holds, Code::Registers, found, "hold=registers", because, "hold=registers, or hold=auto")
    }
}

/// Whether CTAs of a cluster reach each other's shared memory on each target.
pub(super) fn have_clusters(targets: &Targets) -> bool {
    targets.archs().iter().all(|arch| arch.capability() >= (9, 0))
}

/// Whether the row and the registers suffice.
pub(super) fn fits(schedule: &Schedule, columns: i64, targets: &Targets, checks: &mut Checks) -> bool {
    let Schedule { threads, vec, chunks, registers, cluster, .. } = *schedule;
    let found = format!("a row of {columns} columns in {cluster} CTAs, for {targets}");
    let because = "an architecture before sm_90 has no clusters, and one CTA has no registers for all of it";
    let holds = cluster == 1 || have_clusters(targets);
    let help = "leave out targets before sm_90 (--arch sm_90a), or fewer columns";
    if !checks.require(holds, Code::Instruction, found, "sm_90 or later", because, help) {
        return false;
    }
    let held = schedule.widest();
    let (found, required) = (
        format!("{cluster} CTAs, {threads} threads of {chunks} x {vec} columns, {held} in all"),
        format!("at least {columns}"),
    );
    let because = "the threads of a row hold all of it";
    let wide =
        checks.require(held >= columns, Code::TileSize, found, &required, because, "chunks=auto, or fewer columns");
    let most = schedule.most_registers() - MARGIN;
    let (found, required) =
        (format!("about {registers} registers for {chunks} x {vec} columns a thread"), format!("at most {most}"));
    let because = "the threads of a row hold all of it in registers; what does not fit is spilled to local memory";
    let help = "threads=auto, or fewer columns";
    wide & checks.require(registers <= most, Code::Registers, found, &required, because, help)
}

/// Shared memory of a CTA for rows. The parts of warps lie beside them.
pub(super) fn shared_memory(targets: &Targets) -> Bytes {
    const REST: u64 = 2048;
    Bytes(targets.archs().iter().map(|arch| arch.smem_per_block().0.saturating_sub(REST)).min().unwrap_or(0))
}

/// Whether the rows of a CTA have the shared memory.
pub(super) fn fits_shared(bytes: Bytes, targets: &Targets, checks: &mut Checks) -> bool {
    let most = shared_memory(targets);
    let (found, required) = (format!("rows of {bytes} in a CTA"), format!("at most {most}"));
    let because = "they lie in shared memory";
    let help = "hold=auto, more CTAs in a cluster, or fewer columns";
    checks.require(bytes <= most, Code::SharedMemory, found, &required, because, help)
}
