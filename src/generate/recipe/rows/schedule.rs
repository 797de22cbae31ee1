//! How many threads have a row, and what each of them holds: every decision about registers.

use super::tensors::Tensor;
use super::tilings::{has_groups, is_cut, meetings};
use super::{Rows, columns};
use crate::arch::{Arch, Targets};
use crate::diagnostic::Code;
use crate::expr::Compute;
use crate::expr::rows::{Along, Level, Made, Passes};
use crate::model::banks::WARP;
use crate::plan::checks::Checks;
use crate::recipe::field::as_displayed;
use crate::settings::named;
use crate::units::Bytes;

named! {
    /// Where a row lies between its traversals.
    Hold, "place of a row":
    /// In the registers of its threads: it is read from memory once.
    Registers = "registers",
    /// In the shared memory of its CTAs: it is read from memory once.
    Shared = "shared",
    /// In memory: each traversal reads it, a tile at a time. Rows have any width.
    Memory = "memory",
}

as_displayed!(Hold);

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
    /// Tiles of rows in shared memory, most of them on their way, where CTAs share the rows; 1 where each is loaded in its turn.
    pub(super) stages: i64,
    /// Tiles that a CTA has of a row; 0 for as many as there are.
    pub(super) tiles: i64,
    /// Whether each tile of a row has a CTA of its own, as many as there are.
    pub(super) cut: bool,
    pub(super) hold: Hold,
    /// Registers of a thread, about.
    pub(super) registers: i64,
    /// Whether rows that stand for all are loaded in the last traversal.
    pub(super) late: bool,
}

/// Threads of a CTA, at least: with fewer, too few warps are resident.
const CTA: i64 = 128;
/// Addresses, coordinates, predicates and the values of the row: so nvcc 13.0 has it for norms and softmax, to the register.
const OVERHEAD: i64 = 12;
/// Registers that a program may take beyond the estimate.
const MARGIN: i64 = 8;
/// Rows that stand for all are loaded ahead of the reductions up to so many bytes of a thread. With twice as many, a layer norm of 8192
/// columns had 0.910 of a copy on an H200, and 0.955 with late loads.
const AHEAD: i64 = 64;

impl Schedule {
    /// Columns of a tile.
    pub(super) fn columns(&self) -> i64 {
        self.threads * self.vec * self.chunks
    }

    /// Columns of the widest row: coordinates past its end are 32-bit integers, too.
    pub(super) fn widest(&self) -> i64 {
        match self.tiles {
            _ if self.cut => i64::from(i32::MAX) - self.columns(),
            0 => i64::from(i32::MAX) - self.columns(),
            tiles => self.columns() * tiles * self.cluster,
        }
    }

    /// Whether that tensor waits in shared memory.
    pub(super) fn queues(&self, tensor: &Tensor) -> bool {
        (self.hold == Hold::Shared || self.stages > 1) && tensor.waits_by_rows()
    }

    /// Tiles that wait there: of one row, or of several.
    pub(super) fn waiting(&self) -> i64 {
        self.tiles.max(self.stages)
    }

    /// Bytes of shared memory for rows: of all tensors up to this one.
    pub(super) fn staged<'t>(&self, tensors: impl IntoIterator<Item = &'t Tensor>) -> i64 {
        let each = |t: &Tensor| self.rows * self.columns() * self.waiting() * t.spec.dtype.bytes().0 as i64;
        tensors.into_iter().filter(|t| self.queues(t)).map(each).sum()
    }

    /// Whether a text has statements for each tile of a row. With rows that stand for all, nvcc 13.0 loads those of several tiles at once,
    /// and spills: a layer norm had 0.549 of a copy on an H200.
    pub(super) fn unrolls<'t>(&self, tensors: impl IntoIterator<Item = &'t Tensor>) -> bool {
        self.hold == Hold::Shared && self.tiles <= 16 && !tensors.into_iter().any(Tensor::is_weight)
    }

    /// CTAs that have tiles of a row, in C++.
    pub(super) fn row_ctas(&self) -> &'static str {
        if self.cut { "ceil_div(params.n, size<1>(Tile{}))" } else { "RowCtas" }
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

    /// So many threads of a row, vectors of a thread, and CTAs.
    fn new([threads, chunks, cluster]: [i64; 3], asked: &Asked) -> Self {
        let Asked { need, vec, block, hold, .. } = asked;
        let rows = if cluster > 1 { 1 } else { (block.unwrap_or(CTA) / threads).max(1) };
        let late = *hold == Hold::Registers && vec * chunks * need.weights > AHEAD;
        let (held, at_once) = if late { (need.held, need.weights) } else { (need.held + need.weights, 0) };
        let bytes = vec * chunks * held + vec * (need.at_once + at_once) + need.groups * chunks;
        let tiles = match hold {
            Hold::Registers => 1,
            Hold::Shared => pieces(asked.columns, threads * vec * chunks * cluster),
            Hold::Memory => 0,
        };
        let registers = bytes.div_euclid(4) + OVERHEAD;
        let (vec, cut, hold) = (*vec, asked.cut, *hold);
        Self { rows, threads, vec, chunks, cluster, ctas: 0, stages: 1, tiles, cut, hold, registers, late }
    }

    /// Whether costly results are kept: not where that leaves a multiprocessor few CTAs, which then wait for each other's memory. A
    /// softmax of 4096, 8192, 16384 and 32768 columns that keeps them had 0.984, 0.957, 0.795 and 0.708 of a copy on an H200, with 10, 5,
    /// 2 and 1 CTAs, and 0.962, 0.964, 0.938 and 0.923 without.
    pub(super) fn keeps(kept: Option<&Self>, again: Option<&Self>) -> bool {
        const ENOUGH: i64 = 4;
        match (kept, again) {
            (Some(kept), Some(again)) => kept.resident() >= again.resident().min(ENOUGH),
            (None, Some(_)) => false,
            _ => true,
        }
    }

    /// CTAs that a multiprocessor should have: those that share the rows of columns, or as many as have room in shared memory. Without this
    /// bound ptxas takes more registers, and one CTA less is resident.
    pub(super) fn at_once(&self, staged: i64) -> Option<u32> {
        const ALL: i64 = 228 << 10;
        const RESERVED: i64 = 1 << 10;
        let registers = Arch::REGISTERS_PER_BLOCK as i64 / (self.cta() * pieces(self.registers, 8) * 8);
        let fit = match self.hold {
            _ if self.ctas > 0 => columns::resident(self),
            Hold::Shared => (ALL / (staged + 2 * RESERVED)).min(2048 / self.cta()).min(registers),
            _ => 0,
        };
        u32::try_from(fit).ok().filter(|fit| *fit > 1)
    }

    /// CTAs of a multiprocessor, as far as registers allow.
    pub(super) fn resident(&self) -> i64 {
        Arch::REGISTERS_PER_BLOCK as i64 / (self.registers * self.cta()).max(1)
    }

    /// Whether a thread can have what it needs.
    fn has_registers(&self) -> bool {
        self.registers + MARGIN <= self.most_registers()
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
    /// Inputs that wait in shared memory, where rows do.
    staged: i64,
    /// Values of groups, for each chunk.
    groups: i64,
}

impl Need {
    fn of(tensors: &[Tensor], passes: &Passes, hold: Hold) -> Self {
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
        let lives =
            |[from, until]: [usize; 2], traversal| until >= traversal && (hold == Hold::Registers || from <= traversal);
        let before = |traversal: usize| {
            bytes(&|t| !t.waits(last) && t.read.is_some_and(|read| lives(read, traversal))) + kept(traversal)
        };
        let of_groups = passes.values().iter().filter(|value| matches!(value.level, Level::Group(_))).count();
        let columns = passes.columns().count() as i64 * value;
        Self {
            held: (0..traversals).map(before).max().unwrap_or(0) + columns,
            columns,
            weights: bytes(&|t| t.waits(last)),
            at_once: bytes(&|t| t.output),
            staged: bytes(&|t| !t.output && !t.is_weight()),
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

/// What a schedule is chosen from: the settings, and what a thread needs.
struct Asked {
    columns: i64,
    vec: i64,
    /// Threads of a row, at least.
    least: i64,
    threads: Option<i64>,
    chunks: Option<i64>,
    cluster: Option<i64>,
    block: Option<i64>,
    hold: Hold,
    /// Whether groups have values.
    groups: bool,
    /// Whether each tile of a row is by itself.
    cut: bool,
    /// How often the threads of a row reduce together.
    meetings: usize,
    need: Need,
}

/// The schedule of a recipe whose rows lie there, the parts that are `auto` chosen.
pub(super) fn schedule(
    recipe: &Rows,
    hold: Hold,
    tensors: &[Tensor],
    passes: &Passes,
    targets: &Targets,
    checks: &mut Checks,
) -> Option<Schedule> {
    let (need, vec) = (Need::of(tensors, passes, hold), vector(tensors, passes));
    let [threads, chunks, cluster, block] =
        [recipe.threads, recipe.chunks, recipe.cluster, recipe.block].map(|set| set.map(i64::from));
    let (columns, least) = (i64::from(recipe.columns), least_threads(passes, vec));
    let (groups, meetings) = (has_groups(passes), meetings(passes));
    let cut = hold == Hold::Registers && is_cut(passes) && cluster.is_none_or(|set| set == 1);
    let asked = Asked { columns, vec, least, threads, chunks, cluster, block, hold, groups, cut, meetings, need };
    (asked.is_fine(checks) & asked.fits_hold(targets, checks)).then_some(())?;
    let chosen = match hold {
        Hold::Registers if cut => asked.tiled(256, 1),
        Hold::Registers => asked.held(),
        Hold::Shared => asked.staged(have_clusters(targets)),
        Hold::Memory => asked.tiled(512, 1),
    };
    let chosen = columns::shared(recipe, passes, chosen, checks)?;
    let chosen = columns::queued(recipe, tensors, shared_memory(targets), chosen, checks)?;
    let bytes = Bytes(chosen.staged(tensors).unsigned_abs());
    (fits(&chosen, columns, targets, checks) & fits_shared(bytes, targets, checks)).then_some(chosen)
}

impl Asked {
    /// Whether each setting is one that there is.
    fn is_fine(&self, checks: &mut Checks) -> bool {
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
    fn fits_hold(&self, targets: &Targets, checks: &mut Checks) -> bool {
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

    /// Vectors of a thread: as many keep memory busy. Results of columns are the fewer, the more threads have a row. Where its threads meet
    /// twice, half as many meet faster: a backward layer norm of 8192 columns had 0.588 of a copy on an H200, and 0.686 so.
    fn usual(&self) -> i64 {
        match self.vec {
            _ if self.need.columns > 0 => {
                if self.meetings > 1 {
                    2
                } else {
                    1
                }
            }
            8.. if self.hold != Hold::Shared => 4,
            _ if self.hold == Hold::Shared && self.has_several_weights() => 1,
            _ => 2,
        }
    }

    /// Whether a vector has more than one of rows that stand for all.
    fn has_several_weights(&self) -> bool {
        self.vec * self.need.weights > Arch::MAX_VECTOR.0 as i64
    }

    /// The most vectors of a thread, up to the usual ones, that registers suffice for.
    fn fewer(&self, of: impl Fn(i64) -> Schedule) -> Schedule {
        let most = self.chunks.unwrap_or(self.usual());
        let least = self.chunks.unwrap_or(1);
        (least..=most).rev().map(&of).find(Schedule::has_registers).unwrap_or_else(|| of(least))
    }

    /// A tile for all of a row of the usual width, or as much of it as so many threads have.
    fn tiled(&self, most: i64, cluster: i64) -> Schedule {
        self.fewer(|chunks| {
            let wanted = pieces(self.columns, self.vec * chunks * cluster).unsigned_abs().next_power_of_two() as i64;
            let threads = self.threads.unwrap_or(wanted.min(most).max(self.least));
            // A row of several CTAs has whole warps of each.
            Schedule::new([if cluster > 1 { threads.max(CTA) } else { threads }, chunks, cluster], self)
        })
    }

    /// Rows that take a third of a multiprocessor's shared memory, if there are clusters for it. Up to 512 threads share a row's four tiles:
    /// the first are read while others arrive.
    fn staged(&self, clusters: bool) -> Schedule {
        let fits = |most: i64| {
            let of = if clusters { [1, 2, 4, 8] } else { [1; 4] };
            of.into_iter().find(|of| self.columns * self.need.staged <= (most << 10) * of)
        };
        const TILES: i64 = 4;
        // More CTAs overlap where each tile waits for several rows that stand for all: a layer norm of 32768 f32 had 0.881 of a copy on an
        // H200 with clusters of 4, and 0.667 with 2.
        let least = if self.has_several_weights() { 36 } else { 72 };
        let cluster = self.cluster.or_else(|| fits(least)).or_else(|| fits(72)).or_else(|| fits(216)).unwrap_or(1);
        let most = pieces(self.columns, TILES * 2 * self.vec * cluster).unsigned_abs().next_power_of_two() as i64;
        self.tiled(most.clamp(CTA, 512), cluster)
    }

    /// 4 vectors a thread of matrices of 2 bytes, 2 of wider ones, until a row has 512 threads; then more vectors, up to 8; more
    /// threads where registers do not suffice; then more CTAs. So it was fastest on an H200, for rows of 1024 to 262144 columns.
    fn held(&self) -> Schedule {
        let Self { columns, vec, least, threads, chunks, cluster, .. } = *self;
        let (most, usual_threads) = if self.need.columns > 0 { (1, 1024) } else { (8, 512) };
        let clusters = [1, 2, 4, 8].into_iter().filter(|of| *of <= most && cluster.is_none_or(|set| set == *of));
        let with = |of: i64| {
            // A row of several CTAs has whole warps of each.
            let most = (0..=10).map(|bits| 1_i64 << bits).filter(move |t| *t >= least && (of == 1 || *t >= CTA));
            let each = most.filter(|t| threads.is_none_or(|set| set == *t));
            each.map(move |t| {
                let fit = pieces(columns, vec * t * of);
                Schedule::new([t, chunks.unwrap_or(fit), of], self)
            })
        };
        let all: Vec<Schedule> = clusters.flat_map(with).collect();
        let good = |most: i64, threads: i64, cluster: i64| {
            let fits = move |s: &&Schedule| {
                (s.chunks <= most || chunks.is_some())
                    && s.threads <= threads
                    && s.cluster <= cluster
                    && s.widest() >= columns
            };
            all.iter().filter(fits).filter(|s| s.has_registers())
        };
        let none = || Schedule::new([threads.unwrap_or(CTA), chunks.unwrap_or(1), 1], self);
        let first = |chunks, threads, cluster| good(chunks, threads, cluster).next();
        // A wide row has the schedule with the most threads on a multiprocessor.
        let wide = || good(8, 1024, 1).min_by_key(|s| -s.resident() * s.cta());
        let few = || first(2, usual_threads, 1).or_else(|| first(4, usual_threads, 1));
        let of_one = first(self.usual(), usual_threads, 1).or_else(few).or_else(wide);
        let any = of_one.or_else(|| first(8, 1024, 8)).or_else(|| first(64, 1024, 8));
        any.or(all.last()).copied().unwrap_or_else(none)
    }
}

/// Pieces of so many. The last one may be shorter.
fn pieces(all: i64, each: i64) -> i64 {
    (all + each - 1) / each
}

/// Whether CTAs of a cluster reach each other's shared memory on each target.
fn have_clusters(targets: &Targets) -> bool {
    targets.archs().iter().all(|arch| arch.capability() >= (9, 0))
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
    let most = schedule.most_registers() - MARGIN;
    let (found, required) =
        (format!("about {registers} registers for {chunks} x {vec} columns a thread"), format!("at most {most}"));
    let because = "the threads of a row hold all of it in registers; what does not fit is spilled to local memory";
    let help = "threads=auto, or fewer columns";
    wide & checks.require(registers <= most, Code::Registers, found, &required, because, help)
}

/// Shared memory of a CTA for rows. The parts of warps lie beside them.
fn shared_memory(targets: &Targets) -> Bytes {
    const REST: u64 = 2048;
    Bytes(targets.archs().iter().map(|arch| arch.smem_per_block().0.saturating_sub(REST)).min().unwrap_or(0))
}

/// Whether the rows of a CTA have the shared memory.
fn fits_shared(bytes: Bytes, targets: &Targets, checks: &mut Checks) -> bool {
    let most = shared_memory(targets);
    let (found, required) = (format!("rows of {bytes} in a CTA"), format!("at most {most}"));
    let because = "they lie in shared memory";
    let help = "hold=auto, more CTAs in a cluster, or fewer columns";
    checks.require(bytes <= most, Code::SharedMemory, found, &required, because, help)
}
