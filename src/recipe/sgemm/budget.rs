//! Registers and shared memory of a block: what a recipe needs, and what would fit.

use super::decide::Decision;
use super::tilings::F32;
use super::{Sgemm, Variant};
use crate::arch::{Arch, Targets};
use crate::diagnostic::Code;
use crate::plan::checks::{self, Checks};
use crate::recipe::product::Extents;
use crate::units::Bytes;

/// Registers that hold accumulators, columns of A and B, and what is on its way.
pub(super) fn registers(recipe: &Sgemm, threads: u32, checks: &mut Checks) -> Option<u64> {
    let [bm, bn, bk] = recipe.tile.0.map(u64::from);
    let [tm, tn] = recipe.thread_tile.0.map(u64::from);
    let (columns, on_the_way) = match recipe.variant {
        Variant::Pipelined => (2, 0),
        Variant::Vectorized | Variant::WarpTiled => (1, (bm + bn) * bk / u64::from(threads)),
        _ => (1, 0),
    };
    let values = Bytes(F32 as u64 * (tm * tn + columns * (tm + tn) + on_the_way));
    let (need, per_thread) = checks::register_need(values, threads);
    let blocks = u64::from(recipe.min_blocks.max(1));
    let limit = per_thread.min(Arch::REGISTERS_PER_BLOCK / (u64::from(threads) * blocks));
    if need > limit {
        checks.push(
            Code::Registers,
            format!(
                "{values} of values in flight, about {need} registers, {threads} threads, {blocks} blocks at a time"
            ),
            format!("at most {limit} registers a thread"),
            "values that do not fit in registers are spilled to local memory, which is as slow as DRAM",
            format!("a smaller thread tile, or fewer threads{}", if blocks > 1 { ", or min_blocks=1" } else { "" }),
        );
        return None;
    }
    Some(need)
}

/// Whether as many blocks as are asked for can be on a multiprocessor at once.
pub(super) fn resident(recipe: &Sgemm, threads: u32, targets: &Targets, checks: &mut Checks) -> Option<()> {
    let arch = targets.archs().iter().copied().min_by_key(|arch| arch.threads_per_sm())?;
    let (blocks, limit) = (recipe.min_blocks, arch.threads_per_sm());
    if u64::from(threads) * u64::from(blocks) <= limit.into() {
        return Some(());
    }
    checks.push(
        Code::ThreadCount,
        format!("min_blocks = {blocks} of {threads} threads"),
        format!("at most {limit} threads at a time on a multiprocessor of {arch}"),
        "so many blocks are never there together, and ptxas then binds registers by nothing (CUDA C++ Programming Guide, \
         \"Compute Capabilities\")",
        format!("min_blocks={} at most, or fewer threads", limit / threads.max(1)),
    );
    None
}

/// Shared memory of a block, with the stages that would fit.
pub(super) fn shared_memory(decision: &Decision, targets: &Targets, checks: &mut Checks) {
    let Some(arch) = targets.archs().iter().copied().min_by_key(|a| a.smem_per_block()) else { return };
    let smem = decision.smem();
    let dynamic = decision.recipe.variant == Variant::Pipelined;
    let (limit, why) =
        if dynamic { (arch.smem_per_block(), "") } else { (Arch::STATIC_SMEM, ", declared in the text") };
    if smem <= limit {
        return;
    }
    let stages = u64::try_from(decision.stages()).unwrap_or(1).max(1);
    let per_stage = smem.0.div_ceil(stages);
    let fitting = limit.0 / per_stage;
    checks.push(
        Code::SharedMemory,
        format!("{smem} of shared memory, {} for each of {stages} stages", Bytes(per_stage)),
        format!("at most {limit} on {arch}{why}"),
        "a block that asks for more cannot be launched (CUDA C++ Programming Guide, \"Compute Capabilities\")",
        match (dynamic, fitting) {
            (true, 2..) => format!("stages={fitting}, or a smaller tile"),
            (true, _) => format!("a smaller BK: stages=2 with {} of shared memory each would fit", Bytes(limit.0 / 2)),
            (false, _) => {
                let dynamic = "variant=pipelined, which has dynamic shared memory";
                let Extents([bm, bn, bk]) = decision.recipe.tile;
                match u64::from(bk) * limit.0 / smem.0 {
                    0 => format!("a smaller tile, or {dynamic}"),
                    bk => format!("tile={bm}x{bn}x{bk} at most, or {dynamic}"),
                }
            }
        },
    );
}
