//! The recipe for a problem: by measurements of similar problems, else by a model of waves, bytes and epilogues.

mod sm80;

pub use super::candidates::candidates;
use super::candidates::for_sm90a;
use super::raster::Tiles;
use super::rule::L2 as KEPT;
use super::stream_k::Load;
use super::{Consumers, Gemm, order, resident};
use crate::arch::Arch;
use crate::model::Machine;
use crate::recipe::product::{Major, Problem, Record};
use crate::recipe::{Raster, Recipe};
use crate::tiling::piece;

/// Tiles of a cluster along M and N.
fn tiles(recipe: &Gemm, problem: &Problem) -> [u64; 2] {
    let of = |extent: u64, mode: usize| extent.div_ceil(u64::from(recipe.tile.0[mode] * recipe.cluster.0[mode]).max(1));
    [of(problem.m, 0), of(problem.n, 1)]
}

/// K-tiles of a tile, at least one.
fn k_tiles(problem: &Problem, of_one: u32) -> u64 {
    problem.k.div_ceil(u64::from(of_one.max(1))).max(1)
}

/// Tiles of a cluster in a group of a launch with `resident` clusters at a time.
fn group(recipe: &Gemm, problem: &Problem, resident: u64) -> Option<u64> {
    let tiles = tiles(recipe, problem);
    let turns = tiles.iter().product::<u64>().div_ceil(resident.max(1)).max(1);
    let lines = tiles[recipe.sm90a().along().mode()];
    order::group(recipe.dtype, &recipe.sm90a(), [turns, problem.k.div_ceil(recipe.tile.0[2].max(1).into()), lines])
}

/// How many clusters are launched where a factor stays in their stages from tile to tile.
fn staying(recipe: &Gemm, problem: &Problem, [clusters, even, resident]: [u64; 3]) -> Option<u64> {
    let whole = recipe.split_k.max(1) == 1 && recipe.stream_k == 0;
    let others = tiles(recipe, problem)[1 - recipe.sm90a().along().mode()];
    let launch = [clusters, others, k_tiles(problem, recipe.tile.0[2]), even];
    resident::launched(&recipe.sm90a(), launch, [group(recipe, problem, resident)?, resident]).filter(|_| whole)
}

/// Bytes of A and B that come from memory, with `running` clusters at a time where `resident` could run.
fn factors_from_memory(recipe: &Gemm, problem: &Problem, [running, resident]: [u64; 2]) -> f64 {
    let tiles = tiles(recipe, problem);
    let lines = [problem.m, problem.n].map(|extent| 2.0 * extent as f64 * problem.k as f64);
    let bytes =
        |read: [u64; 2]| (0..2).map(|mode| lines[mode] * read[mode] as f64 / tiles[mode].max(1) as f64).sum::<f64>();
    let order = Tiles::new(recipe.sm90a().along(), group(recipe, problem, resident).unwrap_or(1), tiles);
    bytes(order.lines_from_memory(running, |read| bytes(read) <= KEPT as f64))
}

/// The model's expectation of one recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The recipe.
    pub recipe: Gemm,
    /// Rounds of whole tiles: the tiles that the busiest CTA computes one after the other. On older architectures, a
    /// multiprocessor's resident CTAs compute a round side by side.
    pub turns: u64,
    /// Seconds that a CTA multiplies one of them for, or waits for its factors.
    pub mainloop: f64,
    /// Seconds after that in which its tensor cores idle.
    pub epilogue: f64,
    /// Seconds that stream-K adds, or CTAs that do not fill a multiprocessor.
    pub shared: f64,
    /// Seconds that all bytes of device memory take.
    pub bytes: f64,
    /// Seconds from the start of a launch to its first product, and after its last.
    pub launch: f64,
}

impl Expected {
    /// Seconds of a launch.
    pub fn seconds(&self) -> f64 {
        both(self.turns as f64 * (self.mainloop + self.epilogue) + self.shared, self.bytes) + self.launch
    }
}

/// Seconds from the start of a launch to its first product, and after its last. This and what follows was fitted to candidates on 47
/// problems, and then looked at on 18 more on an H200 (`tests/data/h200_gemm.txt`).
const LAUNCH: f64 = 2.54e-6;

/// Operations of a multiprocessor's tensor cores in a cycle, on 16-bit factors (NVIDIA H100 Tensor Core GPU Architecture: 989.4
/// TFLOP/s of 132 multiprocessors at 1.83 GHz).
pub(super) const PER_CYCLE: f64 = 4096.0;

/// The share of its highest clock that a GPU holds while its tensor cores are busy.
const HELD: f64 = 0.974;

/// The share of that rate that tiles of D with 64 columns reach: WGMMA reads as many rows of A for half of the
/// products.
const NARROW: f64 = 0.8;

/// The share of that rate with fewer than four stages, cooperative and ping-pong: now and then the next k-tile has not
/// arrived.
const FEW_STAGES: [f64; 2] = [0.96, 0.86];

/// Bytes that L2 gives all multiprocessors in a second, of copies for a cluster what each CTA asks for.
const L2: f64 = 9.6e12;

/// The same where a CTA copies for itself alone, presumably since it waits for no other one's stages.
const L2_ALONE: f64 = 13e12;

/// Bytes that a multiprocessor takes in, in a second: two sectors in a cycle.
const INGEST: f64 = 135e9;

/// Bytes per second of its own loads that a multiprocessor gets where k-tiles are computed sooner: with fewer than 64
/// columns. Fitted to tiles of all rows of D, 64 and 128.
const ASKS: f64 = 90e9;

/// The least bytes of L2's rate that a row of a TMA box costs: a row of 32 bytes takes 2.6 times as long as its share
/// of a row of 128. Fitted to 128x240 of an M-major A and an N-major B, with boxes of 16 columns, at 4096 and 8192.
const LEAST_OF_ROW: f64 = 83.0;

/// How many times more sectors are read, or written, for rows that begin within a sector: 128 bytes touch five instead
/// of four.
const STRADDLED: f64 = 1.28;

/// Seconds of an epilogue for each element of a tile.
const EPILOGUE: f64 = 1.4e-6 / (128.0 * 256.0);

/// Seconds in which a CTA gives another one of its tile sums, and waits for its, for each element of the tile.
const ADDING_UP: f64 = 1.4e-6 / (128.0 * 128.0);

/// Seconds in which a CTA begins a piece of a shared tile and writes its sums, for each element of the tile. This and
/// the two below were fitted to 285 times of 15 problems. [`L2_ALONE`] was fitted to those and to later times.
const PIECE: f64 = 2.5e-6 / (128.0 * 256.0);

/// Seconds from the last of those sums to the first that the entry which adds them up has read.
const ADD_UP: f64 = 1.5e-6;

/// Bytes of sums that are written, or read, in a second.
const SUMS: f64 = 3e12;

/// The memory bandwidth of a product, relative to a copy.
const COPY: f64 = 0.84;

/// The same where a factor stays in its stages, and CTAs that are side by side write one row of tiles of D, or two.
const COPY_IN_ROWS: [f64; 2] = [0.93, 0.89];

/// Sectors of D that two clusters write, times the columns of a cluster, of all: where rows begin within one, each write of a part
/// reads the rest.
const SHARED_SECTORS: f64 = 200.0;

/// Seconds of two activities at the same time: if both are busy, each keeps the other waiting now and then.
fn both(x: f64, y: f64) -> f64 {
    (x.powi(4) + y.powi(4)).powf(0.25)
}

/// Whether rows of `row` 16-bit elements begin within sectors. Rows that TMA cannot copy are packed.
fn straddles(row: u64) -> bool {
    row.is_multiple_of(8) && !row.is_multiple_of(16)
}

/// Extra traffic, relative to D, of sectors that tiles of `columns` columns share.
fn shared_sectors(problem: &Problem, columns: u64) -> f64 {
    if straddles(problem.n) && problem.n > columns { SHARED_SECTORS / columns as f64 } else { 0.0 }
}

/// How many times slower boxes of a tile are than boxes with rows of 128 bytes. A tile that is not K-major is cut into
/// pieces as wide as a swizzle.
fn in_pieces(recipe: &Gemm, extent: u32, k_major: bool) -> f64 {
    let size = recipe.dtype.dtype().bytes().0 as i64;
    let row = (piece(extent.into(), size) * size) as f64;
    if k_major { 1.0 } else { LEAST_OF_ROW.max(row) / row }
}

fn expected(recipe: Gemm, problem: &Problem, machine: &Machine) -> Expected {
    let [bm, bn, bk] = recipe.tile.0.map(u64::from);
    let [along_m, along_n] = recipe.cluster.0.map(u64::from);
    let splits = u64::from(recipe.split_k.max(1));
    let clusters = tiles(&recipe, problem).iter().product::<u64>();
    let resident = (u64::from(recipe.ctas) / (along_m * along_n * splits)).max(1);
    let load = match recipe.stream_k {
        0 => None,
        least => Load::of(clusters, problem.k.div_ceil(bk), resident, least),
    };
    let turns = load.map_or(clusters.div_ceil(resident), |load| load.rounds);
    let even = clusters.div_ceil(turns.max(1));
    let stays = staying(&recipe, problem, [clusters, even, resident]);
    let running = stays.unwrap_or(if load.is_some() { resident } else { even });
    let ctas = running * along_m * along_n * splits;
    let (tile, k) = ((bm * bn) as f64, problem.k.div_ceil(bk * splits) as f64 * bk as f64);
    let of_few = FEW_STAGES[usize::from(recipe.schedule == Consumers::Pingpong)];
    let held = HELD * if bn > 64 { 1.0 } else { NARROW } * if recipe.stages < 4 { of_few } else { 1.0 };
    let products = 2.0 * tile * k / (PER_CYCLE * held * machine.clock);
    let sectors = |row| if straddles(row) { STRADDLED } else { 1.0 };
    let of_a = sectors(if recipe.a == Major::Row { problem.k } else { problem.m });
    let of_b = sectors(if recipe.b == Major::Col { problem.k } else { problem.n });
    let once = stays.map_or(1.0, |_| 1.0 / turns.max(1) as f64);
    let [asks_a, asks_b] = [0, 1].map(|factor| if factor == recipe.sm90a().stays() { once } else { 1.0 });
    // A K-major operand with fewer rows than a tile is copied without rows outside of it.
    let [k_major_a, k_major_b] = recipe.k_major();
    let copied = |tile: u64, extent, k_major| if k_major { tile.min(extent) } else { tile } as f64;
    let [rows, columns] = [copied(bm, problem.m, k_major_a), copied(bn, problem.n, k_major_b)];
    let of_a = of_a * in_pieces(&recipe, recipe.tile.0[0], k_major_a);
    let of_b = of_b * in_pieces(&recipe, recipe.tile.0[1], k_major_b);
    let [rows, columns] = [asks_a * of_a * rows, asks_b * of_b * columns];
    let asked = 2.0 * k * (rows / along_n as f64 + columns / along_m as f64);
    // L2 gives data shared by a cluster once, but each of its CTAs takes it in.
    // CTAs with a part of K each copy for themselves, too; narrow ones were timed (`benches/NOTES.md`, few rows).
    let apart = splits == 1 || bn < 64;
    let l2 = if along_m * along_n == 1 && apart { L2_ALONE } else { L2 };
    let loads = (asked * ctas as f64 / l2).max(2.0 * k * (rows + columns) / INGEST);
    let loads = if bn < 64 { loads.max(asked / ASKS) } else { loads };
    let mainloop = both(products, loads);
    let epilogue = EPILOGUE * tile / splits as f64 + ADDING_UP * tile * (splits - 1) as f64;
    let epilogue = match recipe.schedule {
        Consumers::Cooperative => epilogue,
        // The other warpgroup multiplies meanwhile; the last epilogue has no other.
        Consumers::Pingpong => (epilogue - mainloop).max(epilogue / turns.max(1) as f64),
    };
    let [m, n] = [problem.m, problem.n].map(|extent| extent as f64);
    let copy = match (stays.filter(|_| recipe.sm90a().along() == Raster::AlongM), recipe.group) {
        (Some(_), Some(rows @ 1..=2)) => COPY_IN_ROWS[rows as usize - 1],
        _ => COPY,
    };
    let read = factors_from_memory(&recipe, problem, [running, resident]);
    let written = 2.0 * m * n * (1.0 + shared_sectors(problem, bn * along_n));
    // If all multiprocessors read their part of one operand once, they reach a copy's rate.
    let each_once = turns <= 1 && apart && load.is_none() && 10 * ctas >= 9 * machine.sms;
    let streams = if each_once && tiles(&recipe, problem).contains(&1) { 1.0 } else { copy };
    let bytes = (read / streams + written / copy) / machine.copy;
    let shared = load.map_or(0.0, |Load { share, pieces, sums, .. }| {
        let multiplies = mainloop * share as f64 / problem.k.div_ceil(bk).max(1) as f64;
        let sums = 2.0 * 4.0 * (sums * along_m * along_n) as f64 * tile;
        multiplies + pieces as f64 * PIECE * tile + ADD_UP + sums / SUMS
    });
    Expected { recipe, turns, mainloop, epilogue, shared, bytes, launch: LAUNCH }
}

/// The model's expectation of each candidate on a machine, by the text for its architecture, the fastest first.
pub fn expect(problem: &Problem, machine: &Machine) -> Vec<Expected> {
    let mut all: Vec<Expected> = match machine.arch {
        Arch::Sm90a => {
            let tried = for_sm90a(problem, machine).into_iter();
            tried.map(|recipe| expected(recipe, problem, machine)).collect()
        }
        _ => sm80::expect(problem, machine),
    };
    all.sort_by(|x, y| x.seconds().total_cmp(&y.seconds()));
    all
}

impl Gemm {
    /// The recipe for a problem. The record's most similar problem decides it, if no extent differs by more than a
    /// factor of 2. The model overrules the record if it expects another recipe to be 1.02 times faster. Without a
    /// similar problem it is the model's fastest candidate. Callers change types and epilogue as they need;
    /// [`Recipe::chosen_with`] takes the first candidate that is a kernel with given ones.
    ///
    /// ```
    /// use cutemplate::model::H200;
    /// use cutemplate::recipe::gemm::Consumers;
    /// use cutemplate::recipe::product::{Major, Problem};
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let record = Gemm::record().expect("it was measured on an H200");
    /// // Where K is short, one warpgroup stores while another multiplies.
    /// let problem = Problem { b: Major::Col, ..Problem::rows(8192, 8192, 128) };
    /// assert_eq!(Gemm::choose(&problem, &H200, &record).schedule, Consumers::Pingpong);
    /// ```
    pub fn choose(problem: &Problem, machine: &Machine, record: &Record) -> Gemm {
        Self::chosen(problem, machine, record).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{candidates, staying};
    use crate::arch::{Arch, Targets};
    use crate::model::H200;
    use crate::recipe::product::{Major, Problem};
    use crate::recipe::{Gemm, Raster, Recipe};
    use crate::units::Elements;
    use crate::view::ViewRef;

    /// The model and the rule of a launch agree on when an operand stays resident, and on the number of clusters.
    #[test]
    fn the_model_knows_where_a_launch_lets_factors_stay() {
        let sm90a = Targets::new([Arch::Sm90a]).expect("an architecture");
        let (mut some, mut others) = (0, 0);
        for (m, n, k) in [(8192, 8192, 128), (4096, 4096, 64), (14280, 18280, 160), (1000, 3000, 200), (500, 64, 320)] {
            let problem = Problem { b: Major::Col, ..Problem::rows(m, n, k) };
            let all = candidates(&problem, &H200).into_iter().filter(|r| r.split_k == 1 && r.stream_k == 0);
            let along_n = |recipe: &Gemm| Gemm { raster: Some(Raster::AlongN), ..recipe.clone() };
            for recipe in all.flat_map(|recipe| [along_n(&recipe), recipe]) {
                let plan = recipe.plan(&sm90a).expect("a candidate is a recipe");
                let (abi, operands) = (plan.text_on((9, 0)).expect("a text").abi(), plan.operands());
                let shapes = [[m, k], [k, n], [m, n]].map(|shape| shape.map(|extent| extent as i64));
                let views = operands.iter().zip(shapes).zip(1_u64..).map(|((operand, shape), at)| {
                    let layout = operand.layout(&shape, None).expect("a layout");
                    let available = Elements(layout.span().expect("few elements"));
                    ViewRef { dtype: operand.dtype, ptr: at << 40, available, layout, access: operand.access }
                });
                let rule = &abi.draft().rule;
                let values = rule.values(abi.params(), &views.collect::<Vec<_>>(), &[]).expect("its tensors");
                let values = values.expect("within reach");
                let of = |name| rule.steps.value(name, &values).expect("a number") as u64;
                let stays = of("stays_in_stages") == 1 && of("launched").is_multiple_of(of("period"));
                let resident = u64::from(recipe.ctas / recipe.cluster.0.iter().product::<u32>());
                let expected = staying(&recipe, &problem, [of("clusters"), of("of_a_turn"), resident]);
                assert_eq!(expected, stays.then(|| of("launched")), "{problem}: {recipe:?}");
                *(if stays { &mut some } else { &mut others }) += 1;
            }
        }
        assert!(some > 20 && others > 20, "{some} and {others}");
    }
}
