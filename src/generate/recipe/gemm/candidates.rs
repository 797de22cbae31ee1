//! The recipes that are tried for a problem.

use super::settings::MOST_STAGES;
use super::{Consumers, Gemm, MOST_CTAS};
use crate::arch::{Arch, Targets};
use crate::model::Machine;
use crate::recipe::product::{Extents, Problem};
use crate::recipe::{Raster, Recipe};

/// Schedule, tile, stages, cluster and parts of K on sm_90a.
type Tried = (Consumers, [u32; 3], u32, [u32; 2], u32);

/// The candidates for every problem.
const TRIED: &[Tried] = &[
    (Consumers::Cooperative, [128, 256, 64], 4, [2, 1], 1),
    (Consumers::Cooperative, [256, 128, 64], 4, [1, 2], 1),
    (Consumers::Cooperative, [128, 128, 64], 6, [2, 1], 1),
    (Consumers::Cooperative, [64, 128, 64], 8, [1, 2], 1),
    (Consumers::Cooperative, [64, 64, 64], 8, [1, 2], 1),
    (Consumers::Cooperative, [128, 128, 64], 5, [1, 1], 2),
    (Consumers::Cooperative, [64, 64, 64], 8, [1, 1], 2),
    (Consumers::Pingpong, [128, 192, 64], 4, [2, 1], 1),
    (Consumers::Pingpong, [128, 192, 64], 4, [1, 2], 1),
    (Consumers::Pingpong, [128, 128, 64], 6, [2, 1], 1),
    (Consumers::Pingpong, [128, 128, 64], 6, [1, 2], 1),
    (Consumers::Pingpong, [64, 256, 64], 4, [2, 1], 1),
    (Consumers::Pingpong, [128, 64, 64], 8, [1, 2], 1),
    (Consumers::Cooperative, [256, 192, 64], 3, [2, 1], 1),
    (Consumers::Cooperative, [256, 192, 64], 3, [1, 2], 1),
    (Consumers::Cooperative, [192, 192, 64], 3, [2, 1], 1),
    (Consumers::Cooperative, [128, 128, 64], 5, [1, 1], 4),
    (Consumers::Cooperative, [128, 224, 64], 4, [2, 1], 1),
    (Consumers::Cooperative, [128, 240, 64], 4, [2, 1], 1),
    (Consumers::Cooperative, [256, 160, 64], 3, [1, 2], 1),
    (Consumers::Cooperative, [192, 160, 64], 4, [2, 1], 1),
    (Consumers::Cooperative, [128, 160, 64], 5, [2, 1], 1),
    (Consumers::Cooperative, [128, 224, 64], 3, [1, 1], 2),
    (Consumers::Cooperative, [64, 64, 64], 8, [1, 1], 4),
    (Consumers::Cooperative, [64, 128, 64], 7, [1, 1], 2),
    (Consumers::Cooperative, [128, 64, 64], 7, [1, 1], 2),
    (Consumers::Pingpong, [128, 64, 64], 8, [2, 1], 1),
    (Consumers::Cooperative, [64, 128, 64], 8, [2, 1], 1),
    (Consumers::Cooperative, [64, 128, 64], 8, [1, 1], 1),
    (Consumers::Pingpong, [128, 64, 64], 8, [1, 1], 1),
    (Consumers::Pingpong, [128, 208, 64], 3, [2, 1], 1),
];

/// Tile, stages, cluster, and least k-tiles of a part, where clusters share tiles.
type Shared = ([u32; 3], u32, [u32; 2], u32);

/// Stream-K candidates, for tiles that do not fill a wave. The sums of a piece cost about as much as six microseconds
/// of products.
const SHARED: &[Shared] = &[
    ([128, 256, 64], 4, [2, 1], 10),
    ([256, 128, 64], 4, [1, 2], 10),
    ([128, 240, 64], 4, [2, 1], 10),
    ([128, 224, 64], 4, [2, 1], 12),
    ([128, 160, 64], 5, [2, 1], 16),
    ([128, 192, 64], 4, [1, 1], 14),
    ([192, 192, 64], 3, [2, 1], 10),
    ([192, 192, 64], 3, [1, 2], 10),
    ([192, 160, 64], 4, [1, 2], 12),
    ([256, 192, 64], 3, [1, 2], 8),
    ([256, 160, 64], 3, [1, 2], 10),
    ([128, 128, 64], 6, [1, 2], 20),
    ([64, 256, 64], 4, [1, 2], 20),
    ([64, 128, 64], 8, [1, 1], 32),
    ([64, 64, 64], 8, [1, 1], 40),
    ([128, 64, 64], 8, [2, 1], 32),
    ([64, 64, 64], 8, [1, 1], 16),
];

/// Schedule, tile, most stages, cluster, and rows of tiles ahead of the next columns, where K is short.
type Short = (Consumers, [u32; 3], u32, [u32; 2], u32);

/// Candidates whose stages hold all of K. The number of stages is a multiple of the number of k-tiles, so that an
/// operand stays resident. Rows of D are as long as possible.
const SHORT: &[Short] = &[
    (Consumers::Pingpong, [128, 128, 64], 6, [1, 2], 1),
    (Consumers::Pingpong, [128, 128, 64], 6, [2, 1], 1),
    (Consumers::Pingpong, [64, 256, 64], 4, [2, 1], 1),
    (Consumers::Pingpong, [128, 192, 64], 4, [2, 1], 2),
];

/// Rows of a tile, most columns, cluster, and least k-tiles of a part where clusters share tiles, else 0.
type Fitted = (u32, u32, [u32; 2], u32);

/// Candidates for D with few columns of tiles: tiles as narrow as that number of columns allows.
const FITTED: &[Fitted] = &[
    (128, 256, [2, 1], 0),
    (128, 256, [1, 2], 0),
    (128, 256, [4, 1], 0),
    (128, 256, [1, 4], 0),
    (192, 176, [2, 1], 0),
    (192, 176, [1, 2], 0),
    (192, 176, [1, 4], 0),
    (256, 192, [1, 2], 0),
    (256, 192, [2, 2], 0),
    (256, 192, [1, 4], 0),
    (128, 256, [2, 1], 10),
    (192, 176, [1, 2], 10),
];

/// Columns of tiles up to which they are fitted.
const FEW_COLUMNS: u64 = 6;

/// Columns of the narrowest tile that is fitted.
const NARROWEST: u32 = 80;

/// Equal tiles, as wide as the fewest possible columns of tiles need, or as `more` columns need. They have as many
/// stages as fit.
fn fitted(problem: &Problem, &(rows, most, [along_m, along_n], _): &Fitted, more: u64) -> Option<([u32; 3], u32)> {
    let along_n = u64::from(along_n);
    let columns = (problem.n.div_ceil(u64::from(most) * along_n) + more) * along_n;
    // Widths are multiples of 16 columns. Each sharer of a tile copies equally many columns, a multiple of 8.
    let step = 16.max(8 * u64::from(along_m));
    let width = problem.n.div_ceil(columns).next_multiple_of(step);
    let fits = |width: &u32| columns <= FEW_COLUMNS && (NARROWEST..=most).contains(width);
    let width = u32::try_from(width).ok().filter(fits)?;
    Some(([rows, width, 64], staged([rows, width])?))
}

/// Stages of tiles of 16-bit elements that fit beside one slice of D, 64 columns of a tile.
fn staged([rows, columns]: [u32; 2]) -> Option<u32> {
    let (row, barriers) = (2 * 64, 1024);
    let room = u32::try_from(Arch::Sm90a.smem_per_block().0).ok()?.checked_sub(barriers + rows * row)?;
    Some(room / ((rows + columns) * row))
}

/// Rows of D up to which a tile has all of them.
const MOST_FLAT: u32 = 128;

/// Columns of a multiprocessor's share for which two CTAs take twice as many, and half of K each: tiles of 16 columns are the slowest
/// that there are. On an H200 2112 columns took 11.4 us instead of 15.3 with 16-bit weights, and 7.3 us with those of 8 bits.
const HALVED: core::ops::RangeInclusive<u64> = 9..=16;

/// Stages of such a tile: the next launch's CTAs find room beside them.
const HALVED_STAGES: u32 = 8;

/// Candidate for D with few rows: tiles of all rows, as wide as a multiprocessor's share of the columns or an even part
/// of it. It has as many stages as fit.
fn flat(problem: &Problem, machine: &Machine) -> Option<Tried> {
    let rows = u32::try_from(problem.m.next_multiple_of(64)).ok().filter(|rows| (64..=MOST_FLAT).contains(rows))?;
    let share = problem.n.div_ceil(machine.sms);
    let width = share.div_ceil(share.div_ceil(256).max(1)).next_multiple_of(16).max(16);
    let width = u32::try_from(width).ok()?;
    let halved = HALVED.contains(&share);
    let (width, most, parts) = if halved { (2 * width, HALVED_STAGES, 2) } else { (width, MOST_STAGES, 1) };
    Some((Consumers::Cooperative, [rows, width, 64], staged([rows, width])?.min(most), [1, 1], parts))
}

/// CTAs that are resident in clusters of this size: an H200, or H100, of 132 multiprocessors has 30 clusters of four at
/// a time, and 14 of eight.
fn resident(machine: &Machine, cluster: u32) -> u64 {
    match cluster {
        0..=2 => machine.sms,
        3..=4 => machine.sms * 10 / 11,
        _ => machine.sms * 28 / 33,
    }
}

/// Tile, most stages, and least k-tiles of a part where CTAs share tiles.
type Older = ([u32; 3], u32, u32);

/// Candidates for older architectures.
const OLDER: &[Older] = &[
    ([128, 128, 64], 3, 8),
    ([256, 128, 64], 3, 8),
    ([128, 256, 64], 3, 8),
    ([128, 64, 64], 3, 4),
    ([64, 128, 64], 3, 4),
    ([64, 64, 64], 3, 4),
    ([64, 64, 64], 4, 4),
];

/// Candidates for older architectures, and how many CTAs of each are resident on a multiprocessor. One candidate has a
/// CTA for each tile, the other as many CTAs as are resident, which share tiles. Both have as many stages as fit.
pub(super) fn for_older(problem: &Problem, machine: &Machine) -> Vec<(Gemm, u64)> {
    let Some(targets) = Targets::new([machine.arch]) else { return Vec::new() };
    let pair = |(tile, most, least): &Older| {
        let staged = |sm80_stages| Gemm {
            a: problem.a,
            b: problem.b,
            sm80_tile: Extents(*tile),
            sm80_stages,
            ..Gemm::default()
        };
        let planned = |recipe: Gemm| recipe.plan(&targets).ok().map(|plan| (recipe, plan));
        let (one_each, plan) = (2..=*most).rev().map(staged).find_map(planned)?;
        let text = plan.text_on(machine.arch.capability())?;
        let entry = text.entries().iter().find(|entry| entry.function(text.name()) == "kernel")?;
        let resident = u64::from(entry.occupancy(machine.arch)?.blocks);
        let ctas = u32::try_from(machine.sms.saturating_mul(resident)).unwrap_or(MOST_CTAS);
        let sharing = Gemm { sm80_ctas: ctas.clamp(1, MOST_CTAS), sm80_stream_k: *least, ..one_each.clone() };
        Some([(one_each, resident), (sharing, resident)])
    };
    let mut all: Vec<(Gemm, u64)> = Vec::new();
    for one in OLDER.iter().filter_map(pair).flatten() {
        // With no room for more stages, two candidates are equal.
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// The recipes that are tried for a problem on a machine, by the text for its architecture.
pub fn candidates(problem: &Problem, machine: &Machine) -> Vec<Gemm> {
    match machine.arch {
        Arch::Sm90a => for_sm90a(problem, machine),
        _ => for_older(problem, machine).into_iter().map(|(recipe, _)| recipe).collect(),
    }
}

/// The candidates that differ in settings for sm_90a.
pub(super) fn for_sm90a(problem: &Problem, machine: &Machine) -> Vec<Gemm> {
    let one = |(schedule, tile, stages, cluster, split_k): &Tried| Gemm {
        a: problem.a,
        b: problem.b,
        schedule: *schedule,
        tile: Extents(*tile),
        stages: *stages,
        cluster: Extents(*cluster),
        split_k: *split_k,
        ctas: u32::try_from(resident(machine, cluster[0] * cluster[1] * split_k)).unwrap_or(u32::MAX),
        ..Gemm::default()
    };
    let shared = |(tile, stages, cluster, least): &Shared| Gemm {
        stream_k: *least,
        ..one(&(Consumers::Cooperative, *tile, *stages, *cluster, 1))
    };
    let short = |(schedule, tile, most, cluster, group): &Short| {
        let k_tiles = problem.k.div_ceil(tile[2].into()).max(1);
        let stages = u32::try_from(u64::from(*most) / k_tiles * k_tiles).ok().filter(|stages| *stages > 0)?;
        let recipe = Gemm { group: Some(*group), ..one(&(*schedule, *tile, stages, *cluster, 1)) };
        let raster = (recipe.sm90a().along() != Raster::AlongM).then_some(Raster::AlongM);
        Some(Gemm { raster, ..recipe })
    };
    let fitted = |(of, more): (&Fitted, u64)| {
        let (tile, stages) = fitted(problem, of, more)?;
        Some(Gemm { stream_k: of.3, ..one(&(Consumers::Cooperative, tile, stages, of.2, 1)) })
    };
    let all = TRIED.iter().map(one).chain(SHARED.iter().map(shared)).chain(SHORT.iter().filter_map(short));
    let mut all: Vec<Gemm> = all.collect();
    let flat = flat(problem, machine).as_ref().map(one);
    let few_columns = FITTED.iter().flat_map(|of| [(of, 0), (of, 1)]).filter_map(fitted);
    for recipe in few_columns.chain(flat) {
        if !all.contains(&recipe) {
            all.push(recipe);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::render;
    use crate::model::H200;

    /// Each is a kernel of its architecture, and no two are the same.
    #[test]
    fn what_is_tried_on_older_architectures_differs_there() {
        let problem = Problem::rows(512, 512, 8192);
        for (arch, ctas) in [(Arch::Sm80, [108, 324]), (Arch::Sm86, [108, 216]), (Arch::Sm89, [108, 216])] {
            let all = candidates(&problem, &Machine { arch, sms: 108, ..H200 });
            let targets = Targets::new([arch]).expect("an architecture");
            let mut texts: Vec<String> = Vec::new();
            for recipe in &all {
                let plan = recipe.plan_as("tried", &targets).expect("a candidate is a recipe");
                texts.push(format!("{:?} {:?}", render(&plan).files(), recipe.sm80_ctas));
            }
            texts.sort();
            texts.dedup();
            assert_eq!((texts.len(), all.len()), (14, 14), "{arch}: {all:?}");
            let resident = |at: usize| all[at].sm80_ctas;
            assert_eq!([resident(1), resident(11)], ctas, "{arch}");
        }
    }
}
