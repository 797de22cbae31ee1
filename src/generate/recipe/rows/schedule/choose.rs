//! The parts of a schedule that are `auto`.

use super::super::tensors::Tensor;
use super::super::tilings::{has_groups, is_cut, meetings};
use super::super::{Rows, columns};
use super::fits::{fits, fits_shared, have_clusters, shared_memory};
use super::need::{Need, least_threads, vector};
use super::{Hold, MARGIN, Schedule, most_registers, pieces};
use crate::arch::{Arch, Targets};
use crate::expr::rows::Passes;
use crate::plan::checks::Checks;
use crate::units::Bytes;

/// Threads of a CTA, at least: with fewer, too few warps are resident.
const CTA: i64 = 128;
/// Addresses, coordinates, predicates and the values of the row: so nvcc 13.0 has it for norms and softmax, to the register.
const OVERHEAD: i64 = 12;
/// Rows that stand for all are loaded ahead of the reductions up to so many bytes of a thread. With twice as many, a layer norm of 8192
/// columns had 0.910 of a copy on an H200, and 0.955 with late loads.
const AHEAD: i64 = 64;

/// What a schedule is chosen from: the settings, and what a thread needs.
pub(super) struct Asked {
    pub(super) columns: i64,
    pub(super) vec: i64,
    /// Threads of a row, at least.
    pub(super) least: i64,
    pub(super) threads: Option<i64>,
    pub(super) chunks: Option<i64>,
    pub(super) cluster: Option<i64>,
    pub(super) block: Option<i64>,
    pub(super) hold: Hold,
    /// Whether groups have values.
    pub(super) groups: bool,
    /// Whether each tile of a row is by itself.
    pub(super) cut: bool,
    /// How often the threads of a row reduce together.
    pub(super) meetings: usize,
    pub(super) need: Need,
}

/// The schedule of a recipe whose rows lie there, the parts that are `auto` chosen.
pub(in super::super) fn schedule(
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

impl Schedule {
    /// So many threads of a row, vectors of a thread, and CTAs.
    fn new([threads, chunks, cluster]: [i64; 3], asked: &Asked) -> Self {
        let Asked { need, vec, block, hold, .. } = asked;
        let rows = if cluster > 1 { 1 } else { (block.unwrap_or(CTA) / threads).max(1) };
        let registers = |held: i64, late: i64| {
            let bytes = vec * chunks * held + vec * (need.at_once + late) + need.groups * chunks;
            bytes.div_euclid(4) + OVERHEAD
        };
        let all = registers(need.held + need.weights, 0);
        // A CTA that reduces columns has one row after the other, and holds what stands for all of them while registers suffice.
        let late = match need.columns {
            0 => vec * chunks * need.weights > AHEAD,
            _ => all + MARGIN > most_registers(rows * threads),
        };
        let late = *hold == Hold::Registers && late;
        let loaded = if need.columns > 0 { need.resident } else { 0 };
        let registers = if late { registers(need.held - loaded, need.weights + loaded) } else { all };
        let tiles = match hold {
            Hold::Registers => 1,
            Hold::Shared => pieces(asked.columns, threads * vec * chunks * cluster),
            Hold::Memory => 0,
        };
        let (vec, cut, hold) = (*vec, asked.cut, *hold);
        Self { rows, threads, vec, chunks, cluster, ctas: 0, stages: 1, tiles, cut, hold, registers, late }
    }
}

impl Asked {
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

    /// A row takes a third of a multiprocessor's shared memory, or a sixth for each CTA of a cluster. A softmax of 131072 columns had 0.925 of
    /// a copy on an H200 with clusters of 4, and 0.968 with 8. Up to 512 threads share a row's four tiles: the first are read while others
    /// arrive.
    fn staged(&self, clusters: bool) -> Schedule {
        let fits = |most: i64| {
            let of = if clusters { [1, 2, 4, 8] } else { [1; 4] };
            of.into_iter().find(|of| self.columns * self.need.staged <= (most << 10) * of)
        };
        let alone = || fits(72).filter(|of| *of == 1 && !self.has_several_weights());
        const TILES: i64 = 4;
        // More CTAs overlap where each tile waits for several rows that stand for all: a layer norm of 32768 f32 had 0.881 of a copy on an
        // H200 with clusters of 4, and 0.667 with 2.
        let others = || [36, 72, 216].into_iter().find_map(fits);
        let cluster = self.cluster.or_else(alone).or_else(others).unwrap_or(1);
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
