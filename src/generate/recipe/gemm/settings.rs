//! Checks of settings that no architecture allows, and of combinations of settings.

use super::{Consumers, Gemm, MOST_CTAS};
use crate::diagnostic::Code;
use crate::dtype::DType;
use crate::plan::checks::Checks;

/// `16, 32 or 64`.
fn one_of(all: &[u32]) -> String {
    if let [first, .., last] = all
        && all.len() > 8
        && all.iter().zip(1..).all(|(extent, times)| *extent == first * times)
    {
        return format!("a multiple of {first} up to {last}");
    }
    let words: Vec<String> = all.iter().map(u32::to_string).collect();
    words.split_last().map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")))
}

/// Stages of a pipeline, at most.
pub(super) const MOST_STAGES: u32 = 16;

/// Checks that hold for every architecture.
pub(super) fn settings(recipe: &Gemm, checks: &mut Checks) -> bool {
    let mut refused = Vec::new();
    let mut refuse = |code, found: String, required: String, because: &'static str, help: &str| {
        refused.push((code, found, required, because, help.to_owned()));
    };
    let factors = recipe.dtype.dtype();
    if recipe.out != DType::F32 && recipe.out != factors {
        let because = "sums are f32; D is f32 or has the type of A and B";
        let required = if factors == DType::F32 { "f32".to_owned() } else { format!("f32 or {factors}") };
        refuse(Code::TileType, format!("out = {}", recipe.out), required, because, "out=f32");
    }
    let wgmma: Vec<u32> = (1..=16).map(|count| 16 * count).collect();
    let mma: &[u32] = &[32, 64, 96, 128, 160, 192, 224, 256];
    let boxes = "a warpgroup multiplies 64 rows, warps of mma.sync 32 columns, 16 columns are the shortest row of D that is swizzled, and a box of TMA has at most 256 rows";
    let swizzles = "a row of a tile is as long as a swizzle of 32, 64 or 128 bytes spans";
    let rows = [32, 64, 128].map(|bytes| bytes / factors.bytes().0 as u32);
    for (name, tile, columns) in [("tile", recipe.tile, &wgmma[..]), ("sm80_tile", recipe.sm80_tile, mma)] {
        let [m, n, k] = tile.0;
        let modes = [("BM", m, &[64, 128, 192, 256][..], boxes), ("BN", n, columns, boxes), ("BK", k, &rows, swizzles)];
        for (mode, extent, all, because) in modes.into_iter().filter(|(_, extent, all, _)| !all.contains(extent)) {
            let help = format!("{name}=128x128x{}", rows[2]);
            refuse(Code::TileSize, format!("{name}: {mode} = {extent}"), one_of(all), because, &help);
        }
    }
    if recipe.schedule == Consumers::Pingpong && ![64, 128].contains(&recipe.tile.0[0]) {
        let because = "each warpgroup computes a whole tile, 64 rows at a time: accumulators of more rows do not fit";
        let found = format!("schedule = pingpong, tile: BM = {}", recipe.tile.0[0]);
        let help = "tile=128x128x64, or schedule=cooperative";
        refuse(Code::TileSize, found, "64 or 128 if each warpgroup computes its own tile".into(), because, help);
    }
    for (name, stages) in [("stages", recipe.stages), ("sm80_stages", recipe.sm80_stages)] {
        if !(2..=MOST_STAGES).contains(&stages) {
            let because = "a pipeline computes one tile while others are in flight";
            let required = format!("2 to {MOST_STAGES} stages");
            refuse(Code::Stages, format!("{name} = {stages}"), required, because, &format!("{name}=3"));
        }
    }
    if recipe.cluster.0.iter().any(|along| ![1, 2, 4].contains(along)) {
        let because = "CTAs that share a tile copy equally many of its rows, eight or more each";
        refuse(
            Code::ThreadCount,
            format!("cluster = {}", recipe.cluster),
            "1, 2 or 4 along M and N".into(),
            because,
            "cluster=2x1",
        );
    }
    parts_of_k(recipe, &mut refuse);
    shared_tiles(recipe, &mut refuse);
    least_part("sm80_stream_k", recipe.sm80_stream_k, &mut refuse);
    let resident = recipe.cluster.0.iter().product::<u32>().saturating_mul(recipe.split_k);
    let numbers = [
        recipe.group.map(|group| ("group", group, 1)),
        Some(("ctas", recipe.ctas, resident)),
        Some(("sm80_ctas", recipe.sm80_ctas, 1)),
    ];
    for (name, found, least) in numbers.into_iter().flatten() {
        if !(least..=MOST_CTAS).contains(&found) {
            let because = "clusters take tiles in turn, group by group";
            let help = if name == "group" { "group=8".to_owned() } else { format!("{name}=132") };
            let required = format!("{least} to {MOST_CTAS}");
            refuse(Code::TileSize, format!("{name} = {found}"), required, because, &help);
        }
    }
    let fits = refused.is_empty();
    for (code, found, required, because, help) in refused {
        checks.push(code, found, required, because, help);
    }
    fits
}

/// Why CTAs of a cluster cannot each compute a part of K.
fn parts_of_k(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let splits = recipe.split_k;
    if ![1, 2, 4].contains(&splits) {
        let because = "the CTAs of a tile are of one cluster, and each stores as many columns as the others";
        return refuse(Code::SplitK, format!("split_k = {splits}"), "1, 2 or 4".into(), because, "split_k=2");
    }
    let ctas = recipe.cluster.0.iter().fold(splits, |ctas, along| ctas.saturating_mul(*along));
    if ctas > MOST_OF_A_CLUSTER {
        let because =
            "a cluster that every GPU runs has 8 CTAs at most (CUDA C++ Programming Guide, \"Thread Block Clusters\")";
        let found = format!("cluster = {}, split_k = {splits}: {ctas} CTAs", recipe.cluster);
        refuse(Code::ThreadCount, found, format!("at most {MOST_OF_A_CLUSTER} CTAs"), because, "cluster=1x1");
    }
    if splits > 1 && recipe.schedule == Consumers::Pingpong {
        let because = "the warpgroups of all CTAs of a tile add up at the same time";
        let found = format!("schedule = pingpong, split_k = {splits}");
        refuse(Code::SplitK, found, "schedule = cooperative".into(), because, "split_k=1");
    }
    let columns = recipe.tile.0[1];
    if splits > 1 && !columns.is_multiple_of(LEAST_COLUMNS * splits) {
        let because = "each CTA of a tile stores its share of the columns, as wide as a swizzle at a time";
        let required = format!("BN that is a multiple of {}", LEAST_COLUMNS * splits);
        let found = format!("tile: BN = {columns}, split_k = {splits}");
        refuse(Code::TileDivides, found, required, because, "tile=128x128x64");
    }
}

/// Why clusters cannot share tiles along K.
fn shared_tiles(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let least = recipe.stream_k;
    least_part("stream_k", least, refuse);
    if least > 0 && recipe.split_k != 1 {
        let because = "the CTAs of a cluster that add up their sums would compute different tiles";
        let found = format!("split_k = {}, stream_k = {least}", recipe.split_k);
        refuse(Code::SplitK, found, "one of them".into(), because, "stream_k=0");
    }
    if least > 0 && recipe.schedule == Consumers::Pingpong {
        let because = "ping-pong warpgroups compute equally many k-tiles";
        let found = format!("schedule = pingpong, stream_k = {least}");
        refuse(Code::SplitK, found, "schedule = cooperative".into(), because, "stream_k=0");
    }
}

/// Why a shortest piece of this many k-tiles is refused.
fn least_part(name: &str, least: u32, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    if least > MOST_K_TILES {
        let required = format!("0, or 1 to {MOST_K_TILES} k-tiles");
        let because = "it is the cost of writing and adding up sums, in k-tiles: from a few to some hundreds";
        refuse(Code::SplitK, format!("{name} = {least}"), required, because, &format!("{name}=16"));
    }
}

/// Least k-tiles of a part, at most.
const MOST_K_TILES: u32 = 1 << 16;

/// The least columns that a CTA stores: the shortest swizzle in 16-bit elements.
pub(super) const LEAST_COLUMNS: u32 = 16;

/// CTAs of a cluster, at most.
const MOST_OF_A_CLUSTER: u32 = 8;
