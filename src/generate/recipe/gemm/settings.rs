//! Checks of settings that no architecture allows, and of combinations of settings.

use super::{Block, Consumers, Gemm, MOST_CTAS, ScaleType};
use crate::diagnostic::Code;
use crate::dtype::DType;
use crate::plan::checks::Checks;
use crate::plan::{Groups, SCALED_K, SCALED_N};
use crate::recipe::product::Major;

/// `16, 32 or 64`.
fn one_of<T: ToString>(all: &[T]) -> String {
    let words: Vec<String> = all.iter().map(T::to_string).collect();
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
    let outs: &[DType] = match factors {
        DType::F32 => &[DType::F32],
        DType::I8 => &[DType::I32, DType::F16, DType::Bf16, DType::F32],
        _ if recipe.dtype.is_narrow() => &[DType::F16, DType::Bf16, DType::F32, DType::E4m3],
        _ => &[DType::F32, factors],
    };
    if !outs.contains(&recipe.out) {
        let because = match factors {
            DType::I8 => "sums are i32, and the epilogue leaves them as they are, or computes in f32 and rounds once",
            _ if recipe.dtype.is_narrow() => "sums are f32, and the epilogue rounds them once",
            _ => "sums are f32; D is f32 or has the type of A and B",
        };
        let found = format!("dtype = {}, out = {}", recipe.dtype, recipe.out);
        refuse(Code::TileType, found, one_of(outs), because, "out=f32");
    }
    let of_b = recipe.dtype_b.unwrap_or(recipe.dtype);
    if of_b != recipe.dtype && !(of_b.is_narrow() && recipe.dtype.is_narrow()) {
        refuse(
            Code::TileType,
            format!("dtype = {}, dtype_b = {of_b}", recipe.dtype),
            "one type, or e4m3 and e5m2".to_owned(),
            "an instruction multiplies elements of one type; only the two 8-bit floats mix (PTX ISA, \"wgmma.mma_async\")",
            "dtype_b=auto",
        );
    }
    promotion(recipe, &mut refuse);
    groups(recipe, &mut refuse);
    groups_of_k(recipe, &mut refuse);
    indices(recipe, &mut refuse);
    scales(recipe, &mut refuse);
    quantised(recipe, &mut refuse);
    pairs(recipe, &mut refuse);
    names(recipe, &mut refuse);
    // A row of D is swizzled.
    let least = least_columns(recipe);
    let wgmma: Vec<u32> = (1..=256 / least).map(|count| least * count).collect();
    let mma: &[u32] = &[32, 64, 96, 128, 160, 192, 224, 256];
    let boxes = "a warpgroup multiplies 64 rows, warps of mma.sync 32 columns, 16 columns, 32 of e4m3, are the shortest row of D that is swizzled, and a box of TMA has at most 256 rows";
    let swizzles = "a row of a tile is as long as a swizzle of 32, 64 or 128 bytes spans";
    let rows = [32, 64, 128].map(|bytes| bytes / factors.bytes().0 as u32);
    for (name, tile, columns) in [("tile", recipe.tile, &wgmma[..]), ("sm80_tile", recipe.sm80_tile, mma)] {
        let [m, n, k] = tile.0;
        let modes = [("BM", m, &[64, 128, 192, 256][..], boxes), ("BN", n, columns, boxes), ("BK", k, &rows, swizzles)];
        for (mode, extent, all, because) in modes.into_iter().filter(|(_, extent, all, _)| !all.contains(extent)) {
            let help = format!("{name}=128x128x{}", rows[2]);
            let required = match all {
                [first, .., last] if all.len() > 8 => format!("a multiple of {first} up to {last}"),
                _ => one_of(all),
            };
            refuse(Code::TileSize, format!("{name}: {mode} = {extent}"), required, because, &help);
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
    let (columns, least) = (recipe.tile.0[1], least_columns(recipe));
    if splits > 1 && !columns.is_multiple_of(least * splits) {
        let because = "each CTA of a tile stores its share of the columns, as wide as a swizzle at a time";
        let required = format!("BN that is a multiple of {}", least * splits);
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

/// Why sums cannot move to f32 as it is asked.
fn promotion(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let (every, k) = (recipe.promote, recipe.tile.0[2].max(1));
    if every > 0 && !recipe.dtype.is_narrow() {
        let because = "sums of wider factors have the 24 bits of f32 anyway";
        let found = format!("promote = {every}, dtype = {}", recipe.dtype);
        refuse(Code::TileType, found, "e4m3 or e5m2, or promote = 0".to_owned(), because, "promote=0");
    } else if !every.is_multiple_of(k) {
        let because = "a sum moves to f32 after whole k-tiles";
        let found = format!("promote = {every}, tile: BK = {k}");
        refuse(Code::TileDivides, found, format!("a multiple of {k}"), because, &format!("promote={k}"));
    }
}

/// Why groups of rows cannot be multiplied so.
fn groups(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let parts = recipe.split_k > 1 || recipe.stream_k > 0 || recipe.sm80_stream_k > 0;
    let because = "one CTA computes each tile of a group; rows of D are those of A; groups are the batches";
    if recipe.groups != Groups::None && (parts || recipe.batched || recipe.d == Major::Col) {
        let Gemm { groups, batched, d, split_k, stream_k, sm80_stream_k, .. } = recipe;
        let found = format!(
            "groups = {groups}, batched = {batched}, d = {d}, split_k = {split_k}, stream_k = {stream_k}, sm80_stream_k = {sm80_stream_k}"
        );
        let required = "batched = false, d = row, split_k = 1, stream_k = 0, sm80_stream_k = 0".to_owned();
        refuse(Code::SplitK, found, required, because, "groups=none");
    }
}

/// Why groups along K cannot be multiplied so.
fn groups_of_k(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let Gemm { dtype, a, b, groups, schedule, .. } = recipe;
    let lie_across = *a == Major::Col && *b == Major::Row && !dtype.lies_along_k();
    if *groups == Groups::K && !lie_across {
        let found = format!("groups = k, dtype = {dtype}, a = {a}, b = {b}");
        let because = "a group begins at any k: elements that are copied together lie along M, and along N";
        let required = "f16 or bf16, a = col and b = row".to_owned();
        refuse(Code::TensorStride, found, required, because, "a=col b=row");
    }
    if *groups == Groups::K && *schedule == Consumers::Pingpong {
        let because = "ping-pong warpgroups compute equally many k-tiles";
        let found = "groups = k, schedule = pingpong".to_owned();
        refuse(Code::SplitK, found, "schedule = cooperative".into(), because, "schedule=cooperative");
    }
}

/// Why an index cannot name rows.
fn indices(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let Gemm { a, d, batched, groups, gather, scatter, stream_k, sm80_stream_k, .. } = recipe;
    let one_matrix = !batched && matches!(groups, Groups::None | Groups::Rows) && *d == Major::Row;
    if *gather && !(one_matrix && *a == Major::Row) {
        let found = format!("gather, a = {a}, d = {d}, batched = {batched}, groups = {groups}");
        let because = "an index names a row of A, whose elements lie side by side, of one matrix";
        let required = "a = row, d = row, batched = false, groups = none or rows".to_owned();
        refuse(Code::TensorCount, found, required, because, "gather=false");
    }
    if *scatter && !(one_matrix && *stream_k == 0 && *sm80_stream_k == 0 && recipe.scale_d.is_none()) {
        let scales = if recipe.scale_d.is_some() { ", scale_d" } else { "" };
        let found = format!(
            "scatter, d = {d}, batched = {batched}, groups = {groups}, stream_k = {stream_k}, sm80_stream_k = {sm80_stream_k}{scales}"
        );
        let because = "a tile's own CTA stores its rows, each where an index says, in one matrix";
        let required =
            "d = row, batched = false, groups = none or rows, stream_k = 0, sm80_stream_k = 0, scale_d = auto";
        refuse(Code::TensorCount, found, required.to_owned(), because, "scatter=false");
    }
}

/// Why blocks cannot have the scales that are asked for.
fn scales(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let (every, k) = (recipe.promote, recipe.tile.0[2]);
    let found = |of: Option<Block>| of.map_or_else(|| "auto".to_owned(), |block| block.to_string());
    match [recipe.scale_a, recipe.scale_b] {
        [None, None] if recipe.scale_type == ScaleType::F32 => {}
        [None, None] => {
            let because = "it is the type of scales of blocks; others are epilogue inputs, whose types `aux` says";
            let found = format!("scale_type = {}", recipe.scale_type);
            refuse(Code::TensorCount, found, "scale_a and scale_b".to_owned(), because, "scale_type=f32");
        }
        [Some(Block::Square), Some(_)] if recipe.groups == Groups::Rows => {
            let because = "a group begins at any row, and so within a block of 128 rows of A";
            let found = "scale_a = 128x128, groups = rows".to_owned();
            refuse(
                Code::TensorCount,
                found,
                "scale_a = 1x128, or groups = masked".to_owned(),
                because,
                "scale_a=1x128",
            );
        }
        [Some(_), Some(_)] if recipe.dtype.is_narrow() && [every, k] == [SCALED_K as u32; 2] => {}
        [Some(_), Some(_)] => {
            let because =
                "the tensor cores' sum over the 128 elements of a scale is multiplied by it, k-tile by k-tile";
            let found = format!("scale_a, scale_b, dtype = {}, promote = {every}, tile: BK = {k}", recipe.dtype);
            refuse(
                Code::TileDivides,
                found,
                "e4m3 or e5m2, promote = 128 and BK = 128".to_owned(),
                because,
                "promote=128",
            );
        }
        [a, b] => {
            let found = format!("scale_a = {}, scale_b = {}", found(a), found(b));
            let because = "a sum is multiplied by the product of a scale of A and one of B";
            refuse(
                Code::TensorCount,
                found,
                "both, or neither".to_owned(),
                because,
                "scale_a=1x128 and scale_b=128x128",
            );
        }
    }
}

/// Why pairs of columns cannot become columns of D.
fn pairs(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let Gemm { pairs, d, stream_k, sm80_stream_k, promote, scale_d, .. } = recipe;
    if *pairs && *promote > 0 && scale_d.is_some() {
        let found = format!("pairs, scale_d, promote = {promote}");
        let because = "a scale is of 256 columns of the product then, whose sums do not fit in registers twice";
        refuse(Code::Registers, found, "promote = 0, or scale_d = auto".to_owned(), because, "scale_d=auto");
    }
    if *pairs && (*d == Major::Col || *stream_k > 0 || *sm80_stream_k > 0) {
        let found = format!("pairs, d = {d}, stream_k = {stream_k}, sm80_stream_k = {sm80_stream_k}");
        let because = "a thread has both accumulators of a pair where columns are N in the text, and pieces of K are added one column at a time";
        let required = "d = row, stream_k = 0, sm80_stream_k = 0".to_owned();
        refuse(Code::SplitK, found, required, because, "pairs=false");
    }
}

/// Why inputs and scalars of the epilogue cannot be called so.
fn names(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let Gemm { scale_a, scale_b, scale_d, epilogue, .. } = recipe;
    let own = [("scale_a", scale_a), ("scale_b", scale_b), ("scale_d", scale_d)];
    let taken =
        |name: &str| epilogue.input_names().chain(epilogue.scalars().iter().map(String::as_str)).any(|own| own == name);
    for (name, _) in own.into_iter().filter(|(name, scales)| scales.is_some() && taken(name)) {
        let found = format!("an input or scalar `{name}` of the epilogue, and the setting {name}");
        let because = "the tensor of scales that the setting adds has this name";
        refuse(Code::TensorCount, found, "another name".to_owned(), because, "call it `row_scale`");
    }
}

/// Why D cannot be quantised so.
fn quantised(recipe: &Gemm, refuse: &mut impl FnMut(Code, String, String, &'static str, &str)) {
    let Some(block) = recipe.scale_d else { return };
    let Gemm { out, d, split_k, stream_k, .. } = recipe;
    let (columns, outputs, together) =
        (recipe.tile.0[1], recipe.epilogue.outputs(), SCALED_N as u32 * recipe.sums() as u32);
    if block != Block::Row || *out != DType::E4m3 || *d == Major::Col || outputs > 1 {
        let because =
            "the lanes that have a row's accumulators find its scales, and round what the epilogue gives by them";
        let found = format!("scale_d = {block}, out = {out}, d = {d}, {outputs} outputs");
        let required = "scale_d = 1x128, out = e4m3, d = row, one output".to_owned();
        refuse(Code::TileType, found, required, because, "scale_d=auto");
    }
    if !columns.is_multiple_of(together) || *split_k > 1 || *stream_k > 0 {
        let because = "a CTA has all sums of 128 columns that share a scale";
        let found = format!("scale_d, tile: BN = {columns}, split_k = {split_k}, stream_k = {stream_k}");
        let required = format!("BN that is a multiple of {together}, split_k = 1, stream_k = 0");
        refuse(Code::TileDivides, found, required, because, &format!("tile=128x{together}x128"));
    }
}

/// Least k-tiles of a part, at most.
const MOST_K_TILES: u32 = 1 << 16;

/// The least columns that a CTA stores: the shortest swizzle in 16-bit elements.
pub(super) const LEAST_COLUMNS: u32 = 16;

/// The same of a D with 8 bits: the shortest swizzle has 32 bytes.
fn least_columns(recipe: &Gemm) -> u32 {
    let least = if recipe.out.bytes().0 == 1 { 2 * LEAST_COLUMNS } else { LEAST_COLUMNS };
    least * recipe.sums() as u32
}

/// CTAs of a cluster, at most.
const MOST_OF_A_CLUSTER: u32 = 8;
