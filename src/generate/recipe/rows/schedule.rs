//! How many threads have a row, and what each of them holds: every decision about registers.

use super::Rows;
use super::tensors::Tensor;
use crate::arch::{Arch, Targets};
use crate::diagnostic::Code;
use crate::expr::Compute;
use crate::expr::rows::{Along, Level, Made, Passes};
use crate::model::banks::WARP;
use crate::plan::checks::Checks;

/// The threads of a row, and the elements of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Rows of a CTA.
    pub(super) rows: i64,
    /// Threads of a row, a power of two.
    pub(super) threads: i64,
    /// Neighbours that a thread has at once, a power of two.
    pub(super) vec: i64,
    /// How often.
    pub(super) chunks: i64,
    /// CTAs of a row, each with as many columns side by side.
    pub(super) cluster: i64,
    /// CTAs that share the rows, where columns are reduced; else 0, and each tile of rows has one.
    pub(super) ctas: i64,
    /// Registers of a thread, about.
    pub(super) registers: i64,
    /// Whether rows that stand for all are loaded in the last traversal.
    pub(super) late: bool,
}

/// Threads of a CTA, at least: with fewer, too few warps are resident.
const CTA: i64 = 128;
/// Addresses, coordinates, predicates and the values of the row.
const OVERHEAD: i64 = 20;
/// Rows that stand for all are loaded ahead of the reductions up to so many chunks. From 8 on they spilled on an H200.
const AHEAD: i64 = 4;

impl Schedule {
    /// Columns that a CTA holds of a row.
    pub(super) fn columns(&self) -> i64 {
        self.threads * self.vec * self.chunks
    }

    /// Columns of the widest row.
    pub(super) fn widest(&self) -> i64 {
        self.columns() * self.cluster
    }

    /// Threads of a CTA.
    pub(super) fn cta(&self) -> i64 {
        self.rows * self.threads
    }

    /// Additions that a term takes part in, beyond a thread's share of the row: the rest of a vector, and those over threads.
    pub(super) fn additions(&self) -> u64 {
        let warps = self.parts().unsigned_abs();
        let of_warps = warps.min(WARP as u64).ilog2() + self.threads.min(WARP as i64).ilog2();
        self.vec.unsigned_abs() + u64::from(of_warps) + warps / WARP as u64
    }

    /// Warps that have parts of a row.
    pub(super) fn parts(&self) -> i64 {
        self.warps() * self.cluster
    }

    /// Warps of a CTA that have parts of a row.
    pub(super) fn warps(&self) -> i64 {
        (self.threads / WARP as i64).max(1)
    }

    fn new(threads: i64, vec: i64, chunks: i64, cluster: i64, need: &Need) -> Self {
        let rows = if cluster > 1 { 1 } else { (CTA / threads).max(1) };
        let late = chunks > AHEAD;
        let (held, at_once) = if late { (need.held, need.weights) } else { (need.held + need.weights, 0) };
        let bytes = vec * chunks * held + vec * (need.at_once + at_once) + need.groups * chunks;
        Self { rows, threads, vec, chunks, cluster, ctas: 0, registers: bytes.div_euclid(4) + OVERHEAD, late }
    }

    /// Registers that a thread can have.
    fn most_registers(&self) -> i64 {
        let each = Arch::REGISTERS_PER_BLOCK as i64 / self.cta().max(1);
        each.min(Arch::MAX_REGISTERS_PER_THREAD as i64)
    }
}

/// What a thread holds, in bytes for each of its elements.
struct Need {
    /// The most that lives at once: inputs that are still read, and results that are kept for later traversals.
    held: i64,
    /// Rows that stand for all and are only read in the last traversal.
    weights: i64,
    /// Results of columns, of those `held`.
    columns: i64,
    /// Outputs.
    at_once: i64,
    /// Values of groups, for each chunk.
    groups: i64,
}

impl Need {
    fn of(tensors: &[Tensor], passes: &Passes) -> Self {
        let traversals = passes.traversals().count();
        let last = traversals.saturating_sub(1);
        let bytes = |of: &dyn Fn(&Tensor) -> bool| {
            let those = tensors.iter().filter(|t| t.of_elements() && of(t));
            those.map(|t| t.spec.dtype.bytes().0 as i64).sum::<i64>()
        };
        let value = if passes.compute() == Compute::F64 { 8 } else { 4 };
        let kept = |traversal: usize| {
            let made = passes.traversals().take(traversal).flat_map(|of| &of.makes);
            made.filter(|made| matches!(made, Made::Kept(_))).count() as i64 * value
        };
        // An element that is read for the last time makes room for what is kept of it.
        let before = |traversal: usize| {
            bytes(&|t| !t.waits(last) && t.read.is_some_and(|[_, until]| until >= traversal)) + kept(traversal)
        };
        let of_groups = passes.values().iter().filter(|value| matches!(value.level, Level::Group(_))).count();
        let columns = passes.columns().count() as i64 * value;
        Self {
            held: (0..traversals).map(before).max().unwrap_or(0) + columns,
            columns,
            weights: bytes(&|t| t.waits(last)),
            at_once: bytes(&|t| t.output),
            groups: of_groups as i64 * value,
        }
    }
}

impl Tensor {
    /// Whether it may be loaded late: one row for all, from the caches, that only the last traversal reads.
    pub(super) fn waits(&self, last: usize) -> bool {
        self.is_weight() && last > 0 && self.read.is_some_and(|[first, _]| first == last)
    }
}

/// Neighbours of a thread: 16 bytes of the widest matrix, and at least a lane's part of the largest group.
fn vector(tensors: &[Tensor], passes: &Passes) -> i64 {
    let widest = |of: &dyn Fn(&&Tensor) -> bool| {
        tensors.iter().filter(|t| t.is_contiguous()).filter(of).map(|t| t.spec.dtype.bytes().0).max()
    };
    let widest = widest(&|t| !t.output && !t.is_weight()).or_else(|| widest(&|_| true)).unwrap_or(4);
    let groups = passes.values().iter().filter_map(|value| match (value.level, value.reduction) {
        (Level::Group(size), _) | (_, Some((_, Along::Group(size)))) => Some(i64::from(size) / WARP as i64),
        _ => None,
    });
    groups.max().unwrap_or(1).max((Arch::MAX_VECTOR.0 / widest) as i64)
}

/// Threads that a group needs side by side.
fn least_threads(passes: &Passes, vec: i64) -> i64 {
    let sizes = passes.values().iter().filter_map(|value| match value.level {
        Level::Group(size) => Some(i64::from(size) / vec),
        _ => None,
    });
    sizes.max().unwrap_or(1).max(1)
}

/// The schedule of a recipe, the parts that are `auto` chosen.
pub(super) fn schedule(
    recipe: &Rows,
    tensors: &[Tensor],
    passes: &Passes,
    targets: &Targets,
    checks: &mut Checks,
) -> Option<Schedule> {
    const MOST: i64 = Arch::MAX_THREADS as i64;
    let columns = i64::from(recipe.columns);
    let (found, because) =
        (format!("columns={columns}"), "a row has columns, and a kernel for wider ones cannot be launched");
    let holds = (1..=1 << 20).contains(&columns);
    checks.require(holds, Code::TileSize, found, "1 to 1048576", because, "columns=4096").then_some(())?;
    let (need, vec) = (Need::of(tensors, passes), vector(tensors, passes));
    let least = least_threads(passes, vec);
    let threads = recipe.threads.map(i64::from);
    if let Some(set) = threads {
        let holds = set.count_ones() == 1 && (least..=MOST).contains(&set);
        let (found, required) = (format!("threads={set}"), format!("a power of two from {least} to {MOST}"));
        let because =
            "lanes reduce in pairs, and a CTA has at most 1024 threads; the threads of a group lie side by side";
        checks.require(holds, Code::ThreadCount, found, &required, because, "threads=auto").then_some(())?;
    }
    let chunks = recipe.chunks.map(i64::from);
    if let Some(set) = chunks {
        let (found, because) = (format!("chunks={set}"), "a thread has vectors of a row, and registers for so many");
        let holds = (1..=64).contains(&set);
        checks.require(holds, Code::Unroll, found, "1 to 64", because, "chunks=auto").then_some(())?;
    }
    let cluster = cluster(recipe, targets, checks)?;
    let of_columns = passes.columns().next().is_some();
    let found = format!("cluster={}", cluster.unwrap_or(1));
    let because = "each CTA has whole rows where columns are reduced";
    let holds = !of_columns || cluster.is_none_or(|set| set == 1);
    checks.require(holds, Code::Variant, found, "cluster=1", because, "cluster=auto").then_some(())?;
    let cluster = if of_columns { Some(1) } else { cluster };
    let chosen = chosen(columns, vec, [threads, chunks, cluster], least, &need);
    fits(&chosen, columns, targets, checks).then_some(())?;
    let ctas = super::columns::ctas(recipe, passes, &chosen, checks)?;
    Some(Schedule { ctas, ..chosen })
}

/// CTAs of a row, if they are set.
fn cluster(recipe: &Rows, targets: &Targets, checks: &mut Checks) -> Option<Option<i64>> {
    let Some(set) = recipe.cluster.map(i64::from) else { return Some(None) };
    let (found, because) = (format!("cluster={set}"), "clusters of up to 8 CTAs run on every GPU that has clusters");
    let holds = matches!(set, 1 | 2 | 4 | 8);
    checks.require(holds, Code::ThreadCount, found, "1, 2, 4 or 8", because, "cluster=auto").then_some(())?;
    let found = format!("cluster={set} for {targets}");
    let because = "an architecture before sm_90 has no clusters";
    let holds = set == 1 || have_clusters(targets);
    checks
        .require(holds, Code::Instruction, found, "sm_90 or later", because, "cluster=1, or other targets")
        .then_some(())?;
    Some(Some(set))
}

/// Whether CTAs of a cluster reach each other's shared memory on each target.
fn have_clusters(targets: &Targets) -> bool {
    targets.archs().iter().all(|arch| arch.capability() >= (9, 0))
}

/// 4 vectors a thread of matrices of 2 bytes, 2 of wider ones, until a row has 512 threads; then more vectors, up to 8; more threads
/// where registers do not suffice; then more CTAs. So it was fastest on an H200, for rows of 1024 to 262144 columns.
fn chosen(columns: i64, vec: i64, [threads, chunks, cluster]: [Option<i64>; 3], least: i64, need: &Need) -> Schedule {
    // Results of columns are the fewer, the more threads have a row.
    let of_columns = need.columns > 0;
    let usual = if of_columns {
        1
    } else if vec >= 8 {
        4
    } else {
        2
    };
    let usual_threads = if of_columns { 1024 } else { 512 };
    let clusters = [1, 2, 4, 8].into_iter().filter(|of| cluster.is_none_or(|set| set == *of));
    let with = |of: i64| {
        // A row of several CTAs has whole warps of each.
        let most = (0..=10).map(|bits| 1_i64 << bits).filter(move |t| *t >= least && (of == 1 || *t >= CTA));
        let each = most.filter(|t| threads.is_none_or(|set| set == *t));
        each.map(move |t| {
            let fit = (columns + vec * t * of - 1) / (vec * t * of);
            Schedule::new(t, vec, chunks.unwrap_or(fit), of, need)
        })
    };
    let all: Vec<Schedule> = clusters.flat_map(with).collect();
    let good = |most: i64, threads: i64, cluster: i64| {
        let fits = |s: &&Schedule| {
            (s.chunks <= most || chunks.is_some())
                && s.threads <= threads
                && s.cluster <= cluster
                && s.widest() >= columns
        };
        all.iter().filter(fits).find(|s| s.registers <= s.most_registers()).copied()
    };
    let first = all
        .first()
        .copied()
        .unwrap_or_else(|| Schedule::new(threads.unwrap_or(CTA), vec, chunks.unwrap_or(1), 1, need));
    let of_one = good(usual, usual_threads, 1).or_else(|| good(4, usual_threads, 1)).or_else(|| good(8, 1024, 1));
    of_one.or_else(|| good(8, 1024, 8)).or_else(|| good(64, 1024, 8)).unwrap_or(*all.last().unwrap_or(&first))
}

/// Whether the row and the registers suffice.
fn fits(schedule: &Schedule, columns: i64, targets: &Targets, checks: &mut Checks) -> bool {
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
    let most = schedule.most_registers();
    let (found, required) =
        (format!("about {registers} registers for {chunks} x {vec} columns a thread"), format!("at most {most}"));
    let because = "the threads of a row hold all of it in registers; what does not fit is spilled to local memory";
    let held =
        checks.require(registers <= most, Code::Registers, found, &required, because, "threads=auto, or fewer columns");
    wide && held
}
