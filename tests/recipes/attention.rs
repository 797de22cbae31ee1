//! Contract: attention is refused with a reason, or right as PTX for every length, mask, group of heads, layout and input: within the
//! bound of an online softmax, element by element.

use crate::judge::{self, Defect};
use crate::kernels::attention::drawn;
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{PtxSet, Source, as_it_is};
use crate::whole;
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Attention, Recipe};
use cutemplate::settings::Settings;

fn recipe(settings: &str) -> Attention {
    Attention::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

fn own(count: u64, scores: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| kernel.problems(count, scores).collect()
}

/// Random recipes: a few, or with `CUTEMPLATE_WHOLE=1` more. nvcc takes minutes for those of sm_90a.
fn kernels(arch: Arch) -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let (targets, count) = (targets(arch), if arch == Arch::Sm90a { whole::or(40, 3) } else { whole::or(40, 6) });
    let kernels = tally.plan(&format!("attention_{arch}"), (0..count).map(|index| (index, drawn(index))), &targets);
    (tally, kernels)
}

fn targets(arch: Arch) -> Targets {
    Targets::new([arch]).expect("an architecture")
}

/// By themselves: they share little with kernels of other families.
static KERNELS: PtxSet = PtxSet::new(|| of_nvcc(Arch::Sm80, judge::planted_for(&targets(Arch::Sm80), DEFECTS, recipe)));

/// The texts for sm_90a.
static BY_TMA: PtxSet =
    PtxSet::new(|| of_nvcc(Arch::Sm90a, judge::planted_for(&targets(Arch::Sm90a), BY_TMA_DEFECTS, recipe)));

/// What the tests of this module run as PTX.
fn of_nvcc(arch: Arch, planted: Vec<Source>) -> Vec<Source> {
    kernels(arch).1.into_iter().map(as_it_is).chain(planted).collect()
}

#[test]
fn random_recipes_are_refused_or_right() {
    for (arch, set) in [(Arch::Sm80, &KERNELS), (Arch::Sm90a, &BY_TMA)] {
        let (mut tally, kernels) = kernels(arch);
        judge::run(&mut tally, set, &kernels, own(10, if whole::is_asked_for() { 20_000 } else { 6_000 }));
        tally.finish(&format!("attention at random, {arch}"));
    }
}

#[test]
fn every_refusal_has_a_reason() {
    let mut tally = Tally::default();
    let targets = Targets::new([Arch::Sm80]).expect("an architecture");
    let kernels = tally.plan("refused", (0..300).map(|index| (index, drawn(index))), &targets);
    assert!(tally.failures.is_empty() && kernels.len() > 150 && kernels.len() < 300, "{tally}");
}

/// Small, so that every place of it has work to do.
const SMALL: &str = "head=24\nmask=window\nlse=true\nsm80_tile=64x16\nsm80_stages=2";

/// With a function of scores, and one without a key.
const SCORED: &str = "head=16\nmask=causal\nsinks=true\nsm80_tile=64x16\nscore=|s, b, h, q, k, bias| s + bias - abs(q - k)\naux=f32:(?,?,?,1)";

/// Several splits, a window that empties some of them, a bias that lies in pages no more than queries do.
const PAGED: &str = "head=24\nmask=window\npaged=true\nsplit=32\nsm80_tile=16x16\nlse=true\nsinks=true\nscore=|s, b, h, q, k, bias| s + bias\naux=f32:(?,?,?,1)";

/// K and V of 8 bits in pages, for queries of sequences one after the other.
const NARROW: &str =
    "head=32\ndtype_kv=e4m3\nmask=causal\nvarlen=true\npaged=true\nsplit=32\nsm80_tile=16x16\nlse=true";

/// A function that empties steps between others, of rows that are several heads.
const EMPTIED: &str = "head=32\nvarlen=true\npaged=true\nsplit=64\nsm80_tile=16x16\nlse=true\nscore=|s, b, h, q, k; reach| select(q - k < reach * (h + 1) && k <= q || k < 3, s, -inf)";

const DEFECTS: &[Defect] = &[
    Defect {
        what: "steps that are empty for the first query alone",
        settings: EMPTIED,
        from: "Range const queries(work.query(first_row) + aligned, work.query(last_row) + aligned)",
        to: "Range const queries(work.query(last_row) + aligned, work.query(last_row) + aligned)",
    },
    Defect {
        what: "steps that are empty for the first head alone",
        settings: EMPTIED,
        from: "Range const heads(work.q.head, work.q.head + work.group - 1)",
        to: "Range const heads(work.q.head)",
    },
    Defect {
        what: "a step that is left out with the empty ones",
        settings: EMPTIED,
        from: "after = all.skip(i + 1, 1)",
        to: "after = all.skip(i + 2, 1)",
    },
    Defect {
        what: "the scale of another head of K",
        settings: NARROW,
        from: "scale_of(params.scalek, work.k.head)",
        to: "scale_of(params.scalek, 0)",
    },
    Defect {
        what: "a scale of V that is left out",
        settings: NARROW,
        from: "__fmul_rn(value, of_values)",
        to: "value",
    },
    Defect {
        what: "the keys of another sequence",
        settings: NARROW,
        from: "keys_of(params, at - 1)",
        to: "keys_of(params, 0)",
    },
    Defect {
        what: "tiles for one head of a group",
        settings: NARROW,
        from: "(end - own) * group_of(params)",
        to: "(end - own)",
    },
    Defect { what: "columns of another atom", settings: NARROW, from: "high[atom - 2]", to: "low[atom - 2]" },
    Defect {
        what: "values of another key",
        settings: NARROW,
        from: "first, second, 0x5140",
        to: "first, first, 0x5140",
    },
    Defect {
        what: "other elements of K than of Q",
        settings: NARROW,
        from: "pairs(_0{}) = wide[0]",
        to: "pairs(_0{}) = wide[1]",
    },
    Defect {
        what: "a query's own number for that of its key",
        settings: SCORED,
        from: "own  = q + work.len_k - work.len_q",
        to: "own  = q",
    },
    Defect {
        what: "the elements of another head",
        settings: SCORED,
        from: "work.head(get<0>(crd(row,_0{})))",
        to: "work.k.head",
    },
    Defect {
        what: "elements of queries that are not there",
        settings: SCORED,
        from: "(q < work.len_q && k < work.len_k)",
        to: "(k < work.len_k)",
    },
    Defect {
        what: "elements of keys that are not there",
        settings: SCORED,
        from: "(q < work.len_q && k < work.len_k)",
        to: "(q < work.len_q)",
    },
    Defect {
        what: "a score without a key that counts four times",
        settings: SCORED,
        from: "threadIdx.x % 4 == 0 ? exp2_approximate(__fsub_rn(score, base)) : 0",
        to: "exp2_approximate(__fsub_rn(score, base))",
    },
    Defect {
        what: "a score without a key in base e",
        settings: SCORED,
        from: "softmax.sink(__fmul_rn(static_cast<float const*>(params.sinks)[work.q.head], 1.44269504088896f)",
        to: "softmax.sink(static_cast<float const*>(params.sinks)[work.q.head]",
    },
    Defect {
        what: "more keys than a bias has",
        settings: PAGED,
        from: "cute::min(params.entries * params.page, params.keys)",
        to: "params.entries * params.page",
    },
    Defect {
        what: "the bias of another head of the group",
        settings: PAGED,
        from: "int const h      = work.head(get<0>(crd(row,_0{})))",
        to: "int const h      = work.head(0)",
    },
    Defect {
        what: "the page of another key",
        settings: PAGED,
        from: "ptr_V + offsets[i % 2][1][key]",
        to: "ptr_V + offsets[i % 2][1][0]",
    },
    Defect {
        what: "a page that is none",
        settings: PAGED,
        from: "cute::min(entries[n], params.pages - 1)",
        to: "entries[n]",
    },
    Defect {
        what: "offsets that another thread has not written yet",
        settings: PAGED,
        from: "row * params.v_row;\n      }\n    }\n    __syncthreads();",
        to: "row * params.v_row;\n      }\n    }",
    },
    Defect {
        what: "offsets of a step that is not copied yet",
        settings: PAGED,
        from: "    if (i < all.count) {\n      pages.give(i, all.key(i));",
        to: "    if (i < all.count) {\n      pages.give(i + 1, all.key(i));\n      pages.give(i, all.key(i));",
    },
    Defect {
        what: "a split too few",
        settings: PAGED,
        from: "for (int split = warp; ",
        to: "for (int split = warp + 1; ",
    },
    Defect {
        what: "splits overlap",
        settings: PAGED,
        from: "int const behind = cute::max(0, begin + count - end);",
        to: "int const behind = cute::max(0, begin + count - end - 1);",
    },
    Defect {
        what: "another query of the tile",
        settings: PAGED,
        from: "int query(int row) const { return (first + row) / group; }",
        to: "int query(int row) const { return (first + row) % group; }",
    },
    Defect {
        what: "sums of another maximum",
        settings: PAGED,
        from: "sum = __fmaf_rn(factor, sum_of_other, __fmul_rn(own, sum))",
        to: "sum = sum_of_other + sum",
    },
    Defect {
        what: "what other warps have, before they have it",
        settings: PAGED,
        from: "shared[warp][values + 1] = state.sum;\n  __syncthreads();",
        to: "shared[warp][values + 1] = state.sum;",
    },
    Defect { what: "a key too many", settings: SMALL, from: "query + own + right + 1", to: "query + own + right + 2" },
    Defect { what: "a key too few", settings: SMALL, from: "query + own - left", to: "query + own - left + 1" },
    Defect {
        what: "a finite number for -inf",
        settings: SMALL,
        from: "scores(row,n) = -INFINITY",
        to: "scores(row,n) = -5e4f",
    },
    Defect {
        what: "NaN for a row without a key",
        settings: SMALL,
        from: "most[row] == -INFINITY ? 0 : most[row]",
        to: "most[row]",
    },
    Defect {
        what: "no factor for O",
        settings: SMALL,
        from: "__fmul_rn(output(row,n), factor[row])",
        to: "output(row,n)",
    },
    Defect {
        what: "no factor for sums",
        settings: SMALL,
        from: "__fmaf_rn(sum[row], factor[row], added)",
        to: "sum[row] + added",
    },
    Defect {
        what: "the sum of one lane",
        settings: SMALL,
        from: "return of_lanes(sum[row]",
        to: "return sum[row]; of_lanes(sum[row]",
    },
    Defect {
        what: "the sign of the scale is lost",
        settings: SMALL,
        from: "? -float(tQsQ(i))",
        to: "? float(tQsQ(i))",
    },
    Defect {
        what: "the head of another group",
        settings: SMALL,
        from: "head / (params.hq / params.hk)",
        to: "head % params.hk",
    },
    Defect {
        what: "K is multiplied before it is there",
        settings: SMALL,
        from: "cp_async_wait<2 * (stages - 1)>();\n    __syncthreads();  // K",
        to: "__syncthreads();  // K",
    },
    Defect {
        what: "V is multiplied before it is there",
        settings: SMALL,
        from: "cp_async_wait<2 * (stages - 1)>();\n    __syncthreads();  // V",
        to: "__syncthreads();  // V",
    },
    Defect {
        what: "K is overwritten while it is read",
        settings: SMALL,
        from: "__syncthreads();  // V of",
        to: "// V of",
    },
    Defect {
        what: "V is overwritten while it is read",
        settings: SMALL,
        from: "__syncthreads();  // K of",
        to: "// K of",
    },
    Defect {
        what: "O is written over stages that are read",
        settings: SMALL,
        from: "__syncthreads();  // all warps",
        to: "// all warps",
    },
    Defect {
        what: "O is stored before it is whole",
        settings: SMALL,
        from: "__syncthreads();  // the tile",
        to: "// the tile",
    },
];

/// Sequences whose last step has rows of the next one, in two rounds of works.
const SMALL_BY_TMA: &str =
    "dtype=bf16\nhead=40\nvalue=72\nmask=window\nvarlen=true\nlse=true\ntile=128x32\nstages=2\nctas=3";

/// The same with a function of scores, and one without a key.
const SCORED_BY_TMA: &str = "head=16\nmask=causal\nvarlen=true\nsinks=true\ntile=128x32\nctas=3\nscore=|s, b, h, q, k, bias| s + bias - abs(q - k)\naux=f32:(?,?,1)";

/// Warpgroups leave out steps of their own, and all those that are empty for both.
const EMPTIED_BY_TMA: &str = "head=16\nvarlen=true\nlse=true\ntile=128x32\nctas=3\nscore=|s, b, h, q, k; reach| select(q - k < reach * (h + 1) && k <= q || k < 3, s, -inf)";

/// Steps of several pages, and pages of several steps; the last page has rows that are nobody's.
const PAGES_BY_TMA: &str =
    "dtype=bf16\nhead=40\nvalue=72\nmask=causal\npaged=true\npage=16\nlse=true\ntile=128x32\nctas=3";
const LONG_PAGES_BY_TMA: &str = "head=16\nmask=window\nvarlen=true\npaged=true\npage=64\ntile=64x32\nctas=3\nsinks=true\nscore=|s, b, h, q, k, bias| s + bias - abs(q - k)\naux=f32:(?,?,1)";

const BY_TMA_DEFECTS: &[Defect] = &[
    Defect {
        what: "the page of another key",
        settings: PAGES_BY_TMA,
        from: "table[key / Page{}]",
        to: "table[key / Page{} / 2]",
    },
    Defect {
        what: "keys of another row of the page",
        settings: LONG_PAGES_BY_TMA,
        from: "make_coord(key % Page{} / Part{}, _0{})",
        to: "make_coord(_0{}, _0{})",
    },
    Defect {
        what: "values of the page of keys ahead",
        settings: PAGES_BY_TMA,
        from: "v_of(params, {pages.of(key), work.v.head})",
        to: "v_of(params, {pages.of(key - key % 32), work.v.head})",
    },
    Defect {
        what: "the table of another sequence",
        settings: LONG_PAGES_BY_TMA,
        from: "work.batch * params.table_stride0",
        to: "0 * params.table_stride0",
    },
    Defect {
        what: "a box of a step that is not copied",
        settings: PAGES_BY_TMA,
        from: "part < size<0>(TileK{}) / Part{}",
        to: "part < 1",
    },
    Defect {
        what: "a stage that is waited for after its first box",
        settings: PAGES_BY_TMA,
        from: "arrive_and_expect_tx(sizeof(Element) * size<0>(dst));",
        to: "arrive_and_expect_tx(sizeof(Element) * size<0>(dst) / 2);",
    },
    Defect {
        what: "keys that are multiplied before they are there",
        settings: PAGES_BY_TMA,
        from: "auto const multiply_k = [&] {\n    keys.full[at.k.stage].wait(at.k.phase);",
        to: "auto const multiply_k = [&] {",
    },
    Defect {
        what: "a stage that is filled while it is read",
        settings: PAGES_BY_TMA,
        from: "ring.empty[at.stage].wait(at.phase ^ 1);",
        to: "if (sizeof(ring.full) == sizeof(ring.full[0])) ring.empty[at.stage].wait(at.phase ^ 1);",
    },
    Defect {
        what: "rows behind the last key of a page",
        settings: PAGES_BY_TMA,
        from: "tail(i % size<0>(tail), i / size<0>(tail)) = Element(0.0f)",
        to: "(void)tail",
    },
    Defect {
        what: "the keys of another sequence",
        settings: LONG_PAGES_BY_TMA,
        from: "keys_of(params, at - 1)",
        to: "keys_of(params, 0)",
    },
    Defect {
        what: "steps that are empty for the first query alone",
        settings: EMPTIED_BY_TMA,
        from: "Range const queries(work.query(first_row) + aligned, work.query(last_row) + aligned)",
        to: "Range const queries(work.query(first_row) + aligned, work.query(first_row) + aligned)",
    },
    Defect {
        what: "a step that warpgroups leave out and TMA does not",
        settings: EMPTIED_BY_TMA,
        from: "Walk walk(all);\n  Softmax",
        to: "Walk walk(own);\n  Softmax",
    },
    Defect {
        what: "a mask ahead of the function of scores",
        settings: SCORED_BY_TMA,
        from: "softmax.step(rows_s, scoring.scale)",
        to: "scoring.apply(params, work, rows_s, rows_c, all.key(i)); softmax.step(rows_s, scoring.scale)",
    },
    Defect {
        what: "the elements of another sequence",
        settings: SCORED_BY_TMA,
        from: "work.k.sequence * get<2>(own)",
        to: "0",
    },
    Defect {
        what: "the keys of another step",
        settings: SCORED_BY_TMA,
        from: "scoring.apply(params, work, rows_s, rows_c, all.key(i))",
        to: "scoring.apply(params, work, rows_s, rows_c, all.key(0))",
    },
    Defect {
        what: "a score without a key that counts before the last step",
        settings: SCORED_BY_TMA,
        from: "most[row] = fmaxf(before, score);",
        to: "most[row] = score;",
    },
    Defect {
        what: "K is released before it is read",
        settings: SMALL_BY_TMA,
        from: "issue(scores_mma",
        to: "release(keys.empty[at.k.stage]); issue(scores_mma",
    },
    Defect {
        what: "scores are read while they are multiplied",
        settings: SMALL_BY_TMA,
        from: "warpgroup_wait<1>();  // S",
        to: "warpgroup_wait<2>();  // S",
    },
    Defect {
        what: "weights are written while they are multiplied",
        settings: SMALL_BY_TMA,
        from: "auto const end_v = [&] {\n    warpgroup_wait<0>();",
        to: "auto const end_v = [&] {\n    warpgroup_wait<1>();",
    },
    Defect {
        what: "rows of another sequence",
        settings: SMALL_BY_TMA,
        from: "tail(i % size<0>(tail), i / size<0>(tail)) = Element(0.0f)",
        to: "(void)tail",
    },
    Defect {
        what: "zeros that WGMMA does not see",
        settings: SMALL_BY_TMA,
        from: "cutlass::arch::fence_view_async_shared();\n    cutlass::arch::NamedBarrier::sync(consumers",
        to: "cutlass::arch::NamedBarrier::sync(consumers",
    },
    Defect {
        what: "O is stored before its warpgroup has staged it",
        settings: SMALL_BY_TMA,
        from: "sync();  // the warpgroup's rows",
        to: "__syncwarp();  // the warpgroup's rows",
    },
    Defect {
        what: "Q is loaded over Q that is multiplied",
        settings: SMALL_BY_TMA,
        from: "!lends && i + 1 == all.count",
        to: "!lends && i == 0",
    },
    Defect {
        what: "O is staged over rows that are stored",
        settings: SMALL_BY_TMA,
        from: "sync();  // the warpgroup has",
        to: "// the warpgroup has",
    },
    Defect { what: "a work is left out", settings: SMALL_BY_TMA, from: "++round;", to: "round += 2;" },
    Defect {
        what: "the loop without masks begins a step early",
        settings: SMALL_BY_TMA,
        from: "begin + count - cute::max(0, mask.end(query)) / Step{}",
        to: "begin + count - 1 - cute::max(0, mask.end(query)) / Step{}",
    },
];

#[test]
fn planted_defects_are_found() {
    judge::find_for(&targets(Arch::Sm80), DEFECTS, &KERNELS, recipe, own(16, 20_000));
    judge::find_for(&targets(Arch::Sm90a), BY_TMA_DEFECTS, &BY_TMA, recipe, own(16, 20_000));
}
