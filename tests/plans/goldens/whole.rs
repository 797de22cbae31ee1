//! Which files are kept whole, and which template each of them shows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::emitted::{CATALOGUE, FILES, Files};

/// The texts that are kept whole, one of each family with templates of its own, with the reason for each. Their `.cuh` and `.cu` are
/// in `tests/goldens`.
const TEXTS: [(&str, &str); 8] = [
    ("append_bf16_128x64_rotary96_queries", "append: rows of pages, pairs that are rotated"),
    (
        "attention_f16_72x40_window_lse_sm90a",
        "attention on sm_90a: TMA, WGMMA with weights in registers, ping-pong, works in turn, online softmax",
    ),
    ("elementwise_add_f16", "elementwise_add, and vectors of elementwise_apply: head, residue, shifted rows"),
    (
        "gemm_f16_ntt_batched_128x128x64_sm90a",
        "gemm on sm_90a: cooperative, overlapped epilogue with inputs, packing, batches",
    ),
    ("rows_bf16_4096", "rows in registers: a norm, vectors and single elements"),
    ("sgemm_pipelined_tt_64x64x32_wave528_batched", "sgemm in stages of cp.async, with the last wave split along K"),
    ("top_k_bf16_64", "top_k: the bound, candidates and their ranks"),
    (
        "w4a16_f16_f32_group32_zeros_64x128x64_slices2_stages3_sm80",
        "w4a16: weights of 4 bits that become fragments, slices of K",
    ),
];

/// The kernel whose plan and Rust module are kept whole: it has a text for each architecture. The table has the digests of all.
const KERNELS: [&str; 1] = ["gemm_f16"];

/// The text whose parameter struct is kept whole: it has pointers, numbers and tensor maps. The table has the sizes of all, and the module
/// `params` compares each with what Rust packs.
const PARAMS: [&str; 1] = ["gemm_f16_ntt_batched_128x128x64_sm90a"];

/// A text of `gemm` that shares tiles along K.
const STREAM: &str = "gemm_bf16_f32_192x64x16_stages2_cluster1x1_stream_k_sm80";

/// A text with split-K.
const SPLIT: &str = "sgemm_pipelined_nn_64x64x16_split4_batched";

/// Templates that no whole text shows, each with a text of the table that shows it, and the reason.
const BY_DIGEST: [(&[&str], &str, &str); 34] = [
    (
        &["append/row_varlen.cuh"],
        "append_bf16_e4m3_64_rotary32_varlen_queries",
        "which sequence a new row is of; the rest is that of the whole text",
    ),
    (
        &[
            "attention/narrow.cuh",
            "attention/fragments_narrow.cuh",
            "attention/work_pages_varlen.cuh",
            "attention/found_pages.cuh",
        ],
        "attention_bf16_64x48_window_varlen_e4m3_paged_lse_sm80",
        "the loop is that of sm_80; fragments of K and V are loaded as 8 bits; sequences are looked for as without pages",
    ),
    (
        &[
            "attention/pages.cuh",
            "attention/combine.cuh",
            "attention/copy_rows.cuh",
            "attention/keys_of.cuh",
            "attention/load_pages.cuh",
            "attention/mainloop_pages.cuh",
            "attention/parts.cuh",
            "attention/work_pages.cuh",
            "attention/work_pages_dense.cuh",
        ],
        "attention_bf16_64_causal_paged_lse_sm80",
        "the loop is that of sm_80; rows lie in pages, and splits are combined",
    ),
    (
        &[
            "attention/sm80.cuh",
            "attention/load.cuh",
            "attention/mainloop_cp_async.cuh",
            "attention/loop_cp_async.cuh",
            "attention/fragments.cuh",
            "attention/begin.cuh",
            "attention/factor.cuh",
            "attention/epilogue.cuh",
        ],
        "attention_f16_72x40_window_lse_sm80",
        "scores and sums are those of sm_90a; cp.async and ldmatrix are in the whole text of w4a16",
    ),
    (
        &["gemm/split_k.cuh"],
        "gemm_f16_f32_64x256x32_cluster1x2_split2_sm90a",
        "133 lines; a second text of sm_90a would be 1,555",
    ),
    (
        &["gemm/consumer.cuh", "gemm/outside.cuh", "gemm/streamed.cuh"],
        "gemm_f16_f32_64x256x32_cluster1x2_split2_sm90a",
        "a tile is stored before the next is multiplied; the whole text overlaps them",
    ),
    (
        &["sgemm/vectorized.cuh", "sgemm/copy_inside.cuh", "sgemm/tiles.cuh"],
        "sgemm_vectorized_tt",
        "copies through registers; the whole text has cp.async",
    ),
    (
        &["attention/score.cuh"],
        "attention_f16_64_scored_sinks_sm80",
        "a function of scores; the rest is that of the whole text",
    ),
    (
        &["attention/emptied.cuh", "attention/walk.cuh"],
        "attention_bf16_64_lse_scored_sm80",
        "which steps a function of scores empties; the rest is that of the whole text",
    ),
    (&["attention/sink.cuh"], "attention_f16_64_scored_sinks_sm80", "18 lines: a weight without a value"),
    (
        &["attention/work_varlen.cuh", "attention/sequences.cuh", "attention/start_of.cuh", "attention/found.cuh"],
        "attention_bf16_32_causal_varlen_lse_sm80",
        "which sequence a CTA has; the rest is that of the whole text",
    ),
    (&["elementwise_apply/naive.cuh"], "elementwise_apply_f16_naive", "30 lines, the simplest rung"),
    (
        &["elementwise_apply/tv.cuh"],
        "elementwise_apply_f16_tv",
        "shares head, tensors and main loop with the whole one",
    ),
    (
        &["elementwise_apply/transposed.cuh", "elementwise_apply/turn.cuh"],
        "elementwise_apply_f32",
        "shares head and tensors with the whole one, and goes through shared memory as sgemm does",
    ),
    (&["elementwise_apply/tiles.cuh"], "elementwise_apply_f16_tv", "the tiles of that rung"),
    (&["elementwise_apply/tiles_remapped.cuh"], "elementwise_apply_f16_remapped", "the same, renumbered"),
    (
        &[
            "rows/ahead.cuh",
            "rows/columns.cuh",
            "rows/join.cuh",
            "rows/partials.cuh",
            "rows/queue.cuh",
            "rows/tiles_queued.cuh",
        ],
        "rows_bf16_1000",
        "columns behind rows; a whole text would repeat those of the norm",
    ),
    (&["rows/find.cuh"], "rows_f16_200", "the column of the largest: 30 lines"),
    (&["rows/written.cuh"], "rows_bf16_2048", "outputs of groups: 11 lines"),
    (&["gemm/keep.cuh"], "gemm_f16_sm90a", "37 lines; a third text of sm_90a would be 1,143"),
    (
        &["gemm/mainloop_promoted.cuh"],
        "gemm_e5m2_e4m3_promote128_e4m3_nnt_128x128x64_cluster1x2_sm90a",
        "75 lines beside a consumer that is that of the whole texts",
    ),
    (
        &["gemm/unscaled.cuh"],
        "gemm_e5m2_e4m3_promote128_e4m3_nnt_128x128x64_cluster1x2_sm90a",
        "ten lines: how a sum moves to f32",
    ),
    (
        &["gemm/pingpong.cuh"],
        "gemm_f16_128x192x64_pingpong_sm90a",
        "66 lines: which team multiplies; the whole text has one team",
    ),
    (
        &["gemm/turn_tile.cuh"],
        "gemm_tf32_nnt_128x192x32_pingpong_sm90a",
        "42 lines beside those of an operand that is packed",
    ),
    (
        &["gemm/sm80.cuh", "gemm/mainloop_cp_async.cuh", "gemm/epilogue.cuh", "gemm/store_part.cuh", "gemm/turns.cuh"],
        "gemm_f16_sm80",
        "the epilogue is that of sm_90a; cp.async and ldmatrix are in the whole text of w4a16",
    ),
    (
        &["gemm/stream_k.cuh", "gemm/scheduler_stream_k.cuh", "gemm/turns_stream_k.cuh"],
        STREAM,
        "which part of a tile a CTA has; a second text of gemm would be 1,070 lines",
    ),
    (&["sgemm/block.cuh"], "sgemm_block_2d_tt", "a middle rung below the whole one"),
    (&["sgemm/epilogue_elements.cuh"], "sgemm_block_2d_tt", "the epilogue of that rung, element by element"),
    (&["sgemm/element.cuh"], "sgemm_naive_tt", "49 lines, the simplest rung"),
    (&["sgemm/epilogue_sums.cuh"], SPLIT, "the epilogue of the whole one, without a function"),
    (&["sgemm/pipelined_split.cuh"], SPLIT, "which part of K a CTA has"),
    (&["sgemm/reduce.cuh"], SPLIT, "26 lines; the whole one splits the last wave instead"),
    (&["sgemm/pipelined.cuh"], "sgemm_pipelined_tt", "two lines; the whole one splits the last wave"),
    (
        &["w4a16/weights_bf16.cuh", "w4a16/quantiser.cuh"],
        "w4a16_bf16_group128_16x64x64_sm80",
        "24 lines each; the whole one is of f16, and has zero points",
    ),
];

/// Templates without a line that is theirs alone and holds no value: what they emit cannot be told from a text.
const ONLY_VALUES: [(&str, &str); 19] = [
    ("attention/scores.cuh", "how scores become weights, in each text of attention"),
    ("attention/work_of.cuh", "which work a CTA has: of batches, or of sequences"),
    ("attention/rows.cuh", "where the rows of one input begin, in each text of attention"),
    ("elementwise_apply/head.cuh", "opens each text of elementwise_apply"),
    ("elementwise_apply/tensors.cuh", "the tensors of each text of elementwise_apply"),
    ("gemm/sections.cuh", "the functions of each text of gemm on sm_90a, in order"),
    ("gemm/matrix.cuh", "the matrix of one tensor, in each text of gemm"),
    ("gemm/scatter_part.cuh", "rows of D that an index names, by warps: `exec_ptx::grouped` runs products of them"),
    ("rows/values.cuh", "what is computed once for a row or a group"),
    ("sgemm/head.cuh", "opens each text of sgemm"),
    ("sgemm/cta_tile_split.cuh", "the CTA's place in the grid, with its part of K"),
    ("sgemm/cta_tile.cuh", "the CTA's place in the grid: that of split-K, without parts"),
    ("sgemm/read.cuh", "one epilogue input, in each text of sgemm with vectors"),
    ("sgemm/tensors.cuh", "the tensors of each text of sgemm"),
    ("rows/meet_ctas.cuh", "what CTAs of a row tell each other: `recipes` runs clusters"),
    ("rows/tiles.cuh", "the tiles of rows of a CTA: those that queue, without the queue"),
    ("rows/walk.cuh", "which thread has which element, twice in each text of rows"),
    ("sgemm/types.cuh", "types and banks, in each text of sgemm with shared memory"),
    ("tensor.cuh", "one tensor, in each text"),
];

/// Templates that no kernel of the catalogue has.
const ELSEWHERE: [(&str, &str); 24] = [
    ("attention/boxes.cuh", "pages that TMA copies: `exec_ptx` and `recipes` run attention over them"),
    ("attention/keys_pages.cuh", "the boxes of a step: the same"),
    ("attention/found_table.cuh", "a tile of a sequence in pages: the same"),
    ("gemm/groups.cuh", "groups of rows: `exec_ptx` runs products of them"),
    ("gemm/from_group.cuh", "the k-tile of such a group: the same"),
    ("gemm/scheduler_grouped.cuh", "which group a tile is of: the same"),
    ("gemm/store_group.cuh", "the last rows of a group: the same"),
    ("gemm/groups_k.cuh", "groups along K: `exec_ptx` runs products of them"),
    ("gemm/later.cuh", "the k-tile of such a group: the same"),
    ("gemm/cooperative_k.cuh", "the last k-tile of such a group: the same"),
    ("gemm/gather_tile.cuh", "rows of A that an index names: `exec_ptx::grouped` runs products of them"),
    ("gemm/scatter.cuh", "rows of D that an index names: the same"),
    ("gemm/store_rows.cuh", "the same, by warpgroups"),
    ("gemm/quantise.cuh", "a D with scales of its own: `exec_ptx` runs products with one"),
    ("gemm/scaled.cuh", "scales of blocks: `exec_ptx::narrow` runs them in each kind of tile"),
    ("gemm/scales_f32.cuh", "how they get into shared memory: the same"),
    ("gemm/scales_ue8m0.cuh", "the same, of powers of two"),
    ("rows/cluster.cuh", "CTAs that share a row: `recipes` runs clusters"),
    ("rows/met.cuh", "the barriers of those CTAs: the same"),
    (
        "rows/online.cuh",
        "a maximum and a sum of exponentials in one traversal: `recipes` runs programs with `hold=shared`",
    ),
    ("rows/wait.cuh", "tiles that arrive: the same"),
    ("rows/traverse.cuh", "its only line without a value that no other template has waits for these tiles"),
    ("rows/stage.cuh", "rows that wait in shared memory: `recipes` runs programs with `hold=shared`"),
    ("dispatch.rs", "a module that chooses among measured kernels: `build` tests it"),
];

/// The reason why a file is kept whole, if it is.
pub(super) fn reason(file: &str) -> Option<&'static str> {
    let stem = file.split('.').next().unwrap_or_default();
    if let Some(kernel) = file.strip_suffix(".plan.txt").or_else(|| file.strip_suffix(".rs.txt")) {
        return KERNELS.contains(&kernel).then_some("the plan and the Rust module of a kernel");
    }
    if let Some(params) = stem.strip_suffix("_params") {
        return PARAMS.contains(&params).then_some("the parameter struct of a text");
    }
    TEXTS.iter().find(|(text, _)| *text == stem).map(|(_, why)| *why)
}

/// The lines of each template that hold no value and no condition and that no other template has.
fn own_lines() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("templates").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path();
            let name = path.strip_prefix(&root).expect("below it").to_str().expect("UTF-8").replace('\\', "/");
            let text = std::fs::read_to_string(&path).expect("a template");
            let is_fixed = |line: &&str| {
                line.len() > 2 && !["[[", "]]", "{%", "%}", "{#", "#}"].iter().any(|tag| line.contains(tag))
            };
            all.insert(name, text.lines().map(str::trim).filter(is_fixed).map(str::to_owned).collect());
        }
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    all.values().flatten().for_each(|line| *times.entry(line.clone()).or_default() += 1);
    all.values_mut().for_each(|lines| lines.retain(|line| times[line] == 1));
    all
}

/// The templates that a text shows: it has at least a third of their own lines. The rest may belong to settings that it has not.
fn shown<'t>(templates: &'t BTreeMap<String, BTreeSet<String>>, files: &Files, text: &str) -> BTreeSet<&'t str> {
    let names = [".cuh", ".cu", "_params.h"].map(|suffix| format!("{text}{suffix}"));
    let lines: BTreeSet<&str> = names.iter().flat_map(|name| files[name].lines()).map(str::trim).collect();
    let has = |(_, own): &(&'t String, &BTreeSet<String>)| {
        let found = own.iter().filter(|line| lines.contains(line.as_str())).count();
        found > 0 && 3 * found >= own.len()
    };
    templates.iter().filter(has).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn every_template_is_in_a_whole_text_or_has_a_reason() {
    let (templates, files) = (own_lines(), &*FILES);
    let whole: BTreeSet<&str> = TEXTS.iter().flat_map(|(text, _)| shown(&templates, files, text)).collect();
    for (name, own) in &templates {
        let by_digest = BY_DIGEST.iter().find(|(templates, ..)| templates.contains(&name.as_str()));
        let only_values = ONLY_VALUES.iter().any(|(template, _)| template == name);
        let elsewhere = ELSEWHERE.iter().any(|(template, _)| template == name);
        let listed = usize::from(by_digest.is_some()) + usize::from(only_values) + usize::from(elsewhere);
        match (whole.contains(name.as_str()), listed) {
            (true, 0) | (false, 1) => {}
            (true, _) => panic!("templates/{name} is in a whole text: its entry in this file is stale"),
            (false, 0) => {
                panic!("templates/{name} is in no whole text: choose another text, or give a reason in this file")
            }
            (false, _) => panic!("templates/{name} is listed twice in this file"),
        }
        assert_eq!(only_values, own.is_empty(), "templates/{name}: {own:?}");
        if let Some((_, text, _)) = by_digest {
            assert!(shown(&templates, files, text).contains(name.as_str()), "{text} does not show templates/{name}");
        }
    }
    let listed = BY_DIGEST.iter().flat_map(|(templates, ..)| *templates).copied();
    for name in listed.chain(ONLY_VALUES.iter().chain(&ELSEWHERE).map(|(template, _)| *template)) {
        assert!(templates.contains_key(name), "templates/{name} does not exist");
    }
}

#[test]
fn each_whole_text_shows_a_template_that_the_others_do_not() {
    let (templates, files) = (own_lines(), &*FILES);
    for (text, _) in TEXTS {
        let others = TEXTS.iter().filter(|(other, _)| *other != text);
        let by_others: BTreeSet<&str> = others.flat_map(|(other, _)| shown(&templates, files, other)).collect();
        let own: Vec<&str> = shown(&templates, files, text).difference(&by_others).copied().collect();
        assert!(!own.is_empty(), "{text} shows no template of its own");
    }
}

#[test]
fn every_family_has_a_whole_text() {
    // The first line names the template. A family that is a name for settings of another one has its template.
    let template = |text: &str| FILES[&format!("{text}.cuh")].lines().next().expect("a banner").to_owned();
    let whole: BTreeSet<String> = TEXTS.iter().map(|(text, _)| template(text)).collect();
    for family in cutemplate::recipe::FAMILIES {
        let mut parts = CATALOGUE.iter().filter(|plan| plan.family() == family.name).flat_map(|plan| plan.texts());
        assert!(parts.any(|part| whole.contains(&template(part.name()))), "{}", family.name);
    }
}
