//! The recipe for a problem: by measurements of similar problems, else by a model that counts waves, bytes and
//! operations.

use super::{Sgemm, Variant};
use crate::arch::Arch;
use crate::model::{Footprint, Machine};
use crate::plan::ConflictLevel;
use crate::recipe::Recipe;
use crate::recipe::product::{Extents, Major, Parts, Problem, Record};
use crate::units::Bytes;

/// The model's expectation of one recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The recipe.
    pub recipe: Sgemm,
    /// Blocks that the busiest multiprocessor computes, one after the other or at once.
    pub blocks_per_sm: u64,
    /// Seconds that its products take.
    pub products: f64,
    /// Seconds that all bytes take, from device memory or from L2, whichever is longer.
    pub bytes: f64,
    /// Seconds that launches add, and partial sums with split-K.
    pub besides: f64,
}

impl Expected {
    /// Seconds of a launch.
    pub fn seconds(&self) -> f64 {
        self.products.max(self.bytes) + self.besides
    }
}

/// Tile, thread tile, stages and blocks at a time of the candidates: the fastest of about 80 on an H200.
const TILES: &[([u32; 3], [u32; 2], u32, u32)] = &[
    ([64, 256, 32], [8, 8], 2, 2),
    ([128, 128, 32], [8, 8], 2, 2),
    ([64, 128, 32], [8, 8], 2, 4),
    ([64, 128, 16], [8, 8], 4, 4),
    ([128, 64, 32], [8, 8], 2, 4),
    ([64, 64, 32], [8, 4], 2, 5),
    ([32, 64, 32], [4, 4], 3, 4),
];

/// The candidates' numbers of pieces of each tile along K; 0 splits only the tiles that do not fill a wave.
const PARTS: [u32; 5] = [1, 2, 4, 8, 0];

/// The recipes that are tried for a problem on a machine.
pub fn candidates(problem: &Problem, machine: &Machine) -> Vec<Sgemm> {
    let sms = u32::try_from(machine.sms).unwrap_or(u32::MAX);
    let one = |(tile, thread, stages, min_blocks): &([u32; 3], [u32; 2], u32, u32), parts: u32| Sgemm {
        a: problem.a,
        b: problem.b,
        tile: Extents(*tile),
        thread_tile: Extents(*thread),
        stages: *stages,
        min_blocks: *min_blocks,
        vector: if problem.is_aligned() { 16 } else { 4 },
        conflicts: ConflictLevel::Warn,
        split_k: parts.max(1),
        wave: if parts == 0 { sms.saturating_mul(*min_blocks) } else { 0 },
        ..Sgemm::rung(Variant::Pipelined)
    };
    TILES.iter().flat_map(|tile| PARTS.map(move |parts| one(tile, parts))).collect()
}

impl Sgemm {
    /// The recipe for a problem. The record's most similar problem decides it, if no extent differs by more than a
    /// factor of 2. The model overrules the record if it expects another recipe to be 1.25 times faster. Without a
    /// similar problem it is the model's fastest candidate.
    ///
    /// ```
    /// use cutemplate::model::H200;
    /// use cutemplate::recipe::product::Problem;
    /// use cutemplate::recipe::{Recipe, Sgemm};
    ///
    /// let record = Sgemm::record().expect("it was measured on an H200");
    /// // 64 x 64 elements of D are 4 blocks at most, so K is cut.
    /// let chosen = Sgemm::choose(&Problem::rows(64, 64, 65536), &H200, &record);
    /// assert!(chosen.split_k > 1 || chosen.wave > 0);
    /// ```
    pub fn choose(problem: &Problem, machine: &Machine, record: &Record) -> Sgemm {
        Self::chosen(problem, machine, record).unwrap_or_default()
    }
}

/// The model's expectation of each candidate, the fastest first.
pub fn expect(problem: &Problem, machine: &Machine) -> Vec<Expected> {
    let mut all: Vec<Expected> =
        candidates(problem, machine).into_iter().filter_map(|recipe| expected(recipe, problem, machine)).collect();
    all.sort_by(|x, y| x.seconds().total_cmp(&y.seconds()));
    all
}

/// Seconds from the start of a launch to its first product, and from its last to the end of the stream: the time of a
/// kernel with almost no products on an H200.
const LAUNCH: f64 = 4e-6;

/// Steps along K of the busiest multiprocessor, its number of blocks, and partial sums that split-K writes and reads.
fn steps(recipe: &Sgemm, problem: &Problem, machine: &Machine, [tiles, k_tiles]: [u64; 2]) -> Option<[u64; 3]> {
    let [bm, bn, bk] = recipe.tile.0;
    let signed = |x: u64| i64::try_from(x).ok();
    let cut = recipe.parts().cut(signed(tiles)?, signed(k_tiles)?, bk.into());
    let [whole, in_parts, parts, k_part] = [cut.whole, cut.cut, cut.parts, cut.k_part].map(i64::unsigned_abs);
    let blocks = cut.blocks()?.unsigned_abs().div_ceil(machine.sms);
    let (busiest, summed) = match recipe.parts() {
        Parts::Each(_) => (blocks * k_part, problem.m * problem.n),
        Parts::Wave(wave) => {
            // Each place in a wave computes whole tiles one after the other, then a piece, or pieces that end as early.
            let wave = wave.unsigned_abs();
            let place = whole.div_ceil(wave) * k_tiles + if in_parts > 0 { k_part } else { 0 };
            (place * wave / machine.sms, u64::from(bm * bn) * in_parts)
        }
    };
    Some([busiest, blocks, if in_parts > 0 { 2 * parts * summed } else { 0 }])
}

fn expected(recipe: Sgemm, problem: &Problem, machine: &Machine) -> Option<Expected> {
    let [bm, bn, bk] = recipe.tile.0.map(u64::from);
    let [tm, tn] = recipe.thread_tile.0.map(f64::from);
    let (tiles, k_tiles) = (problem.m.div_ceil(bm) * problem.n.div_ceil(bn), problem.k.div_ceil(bk));
    let [busiest, blocks_per_sm, sums] = steps(&recipe, problem, machine, [tiles, k_tiles])?;
    let threads = bm * bn / u64::from(recipe.thread_tile.0[0] * recipe.thread_tile.0[1]);
    // The compiler is held to registers for `min_blocks`; columns of a tile that is turned are padded by 4 elements.
    let registers = Arch::REGISTERS_PER_BLOCK / (threads * u64::from(recipe.min_blocks.max(1)));
    let smem = Bytes(4 * (bm + bn + 4) * bk * u64::from(recipe.stages));
    let fits = Footprint { threads: u32::try_from(threads).ok()?, registers, smem }.occupancy(machine.arch).blocks;
    let at_a_time = u64::from(fits).clamp(1, blocks_per_sm.max(1));
    // A scheduler issues one instruction a cycle. A thread issues TM*TN products for one k, and (TM+TN)/4 loads of 16
    // bytes. Copies, addresses and loops were as many again.
    let products = tm * tn;
    let share = products / (products + (tm + tn) / 2.0);
    // Schedulers issue in 85 of 100 cycles with four warps each, in 75 with two: as counted on an H200.
    let warps = (at_a_time * threads.div_ceil(32)) as f64 / 4.0;
    let issued = 0.96 * warps / (warps + 0.52);
    let per_cycle = 128.0 * share * issued;
    let issue = (bm * bn * bk) as f64 / per_cycle;
    // Shared memory passes one wavefront a cycle: two for each of those loads, and five for 32 elements that are copied alone,
    // four rows of a matrix apart. Where both are busy, each keeps the other waiting.
    let alone = |tile: u64, major: Major, along: Major| if major == along || recipe.vector == 4 { tile } else { 0 };
    let copied = alone(bm, recipe.a, Major::Row) + alone(bn, recipe.b, Major::Col);
    let loaded = threads.div_ceil(32) as f64 * bk as f64 * (tm + tn) / 2.0;
    let wavefronts = loaded + (5 * copied * bk) as f64 / 32.0;
    let seconds = busiest as f64 * issue.hypot(wavefronts) / machine.clock;
    let (m, n, k) = (problem.m as f64, problem.n as f64, problem.k as f64);
    let from_dram = 4.0 * (m * k + k * n + m * n) / machine.copy;
    let from_l2 = 4.0 * (tiles * k_tiles * (bm + bn) * bk) as f64 / machine.l2;
    let sums = if sums > 0 { LAUNCH / 2.0 + 4.0 * sums as f64 / machine.l2 } else { 0.0 };
    let (bytes, besides) = (from_dram.max(from_l2), LAUNCH + sums);
    Some(Expected { recipe, blocks_per_sm, products: seconds, bytes, besides })
}
