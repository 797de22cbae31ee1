//! Attention on inputs that others have got wrong: lengths around tiles, no keys, rows without a key, groups of heads, windows that
//! empty tiles, scores of any size. Each in every mode, element by element.

use std::sync::LazyLock;

use cutemplate::arch::Arch;
use cutemplate::recipe::{Attention, Recipe};
use cutemplate::verify::Fill;

use crate::catalogue::for_arch;
use crate::kernels::attention::{packed, paged, sized};
use crate::kernels::{Kernel, Problem};
use crate::own::{built, is_right, program};

/// The catalogue's: full, causal, in a window, and of many lengths, each for sm_80 and for sm_90a.
static KERNELS: LazyLock<Vec<(Kernel, String)>> = LazyLock::new(|| {
    let of = |arch| for_arch(arch).into_iter().filter(|kernel| kernel.plan.family() == Attention::FAMILY);
    let with_text = |kernel: Kernel| {
        let text = built(&kernel);
        (kernel, text)
    };
    of(Arch::Sm80).chain(of(Arch::Sm90a)).map(with_text).collect()
});

fn named(part: &str) -> impl Iterator<Item = &'static (Kernel, String)> {
    let all: Vec<_> = KERNELS.iter().filter(|(kernel, _)| kernel.plan.name().contains(part)).collect();
    assert_eq!(all.len(), 2, "texts of {part}");
    all.into_iter()
}

/// `[B, SQ, SK, HQ, HK]` and scalars.
fn are_right(part: &str, problems: &[([i64; 5], &[f64])], fill: Fill) {
    for (kernel, text) in named(part) {
        let problem =
            |((extents, scalars), seed): (&([i64; 5], &[f64]), u64)| sized(&kernel.plan, extents, scalars, fill, seed);
        let problems: Vec<Problem> = problems.iter().zip(1..).map(problem).collect();
        is_right(kernel, program(kernel, text.clone()), problems);
    }
}

/// FlashAttention #2192, #1254: sequences of any lengths one after the other, none of them, more than a warp has lanes, empty ones
/// anywhere; rows that belong to none.
#[test]
fn sequences_one_after_the_other() {
    let many: Vec<i64> = (0..70).map(|i| i * 7 % 5).collect();
    let lengths: [[&[i64]; 2]; 6] = [
        [&[1, 127, 128, 129, 0, 300], &[1, 127, 128, 129, 0, 300]],
        [&[0, 0, 130], &[0, 0, 130]],
        [&[0, 1, 65], &[70, 0, 3]],
        [&[64, 3], &[20, 200]],
        [&[], &[]],
        [&many, &many],
    ];
    for (kernel, text) in named("varlen") {
        let problem =
            |(lengths, seed): ([&[i64]; 2], u64)| packed(&kernel.plan, lengths, [2, 1], &[0.25], Fill::Normal, seed);
        let mut problems: Vec<Problem> = lengths.into_iter().zip(1..).map(problem).collect();
        // Starts that go back, and past the end.
        let mut broken = packed(&kernel.plan, [&[40, 30], &[40, 30]], [1, 1], &[0.25], Fill::Normal, 8);
        for tensor in [3, 4] {
            broken.planted.extend([(tensor, vec![1], 1000.0), (tensor, vec![2], -7.0)]);
        }
        problems.push(broken);
        is_right(kernel, program(kernel, text.clone()), problems);
    }
}

/// FlashAttention #2745, #2303, flashinfer#4401: pages of any size, splits without a key, several queries, sequences without keys, entries
/// that name no page, more heads than a tile has rows.
#[test]
fn keys_in_pages() {
    let (kernel, text) = KERNELS.iter().find(|(kernel, _)| kernel.plan.name().contains("paged")).expect("a text");
    let cases: [([i64; 2], &[i64], [i64; 2]); 7] = [
        ([1, 16], &[129, 0, 64], [8, 2]),
        ([1, 1], &[70], [5, 1]),
        ([3, 48], &[200, 63], [6, 2]),
        ([1, 256], &[300, 1], [40, 4]),
        ([9, 3], &[65, 5], [3, 3]),
        ([1, 16], &[0], [2, 1]),
        ([2, 7], &[100], [34, 2]),
    ];
    let problem = |((sizes, lengths, heads), seed): (([i64; 2], &[i64], [i64; 2]), u64)| {
        paged(&kernel.plan, sizes, lengths, heads, &[0.125], Fill::Normal, seed)
    };
    is_right(kernel, program(kernel, text.clone()), cases.into_iter().zip(1..).map(problem));
}

/// FlashAttention #2470, #2192: no keys, no queries, one, a tile, less and more.
#[test]
fn lengths_around_tiles() {
    for part in ["causal_lse", "window"] {
        let pairs = [[1, 1], [127, 128], [128, 127], [129, 300], [5, 0], [0, 5], [300, 129]];
        let all = pairs.map(|[queries, keys]| ([1, queries, keys, 1, 1], &[0.125, 70.0, 3.0][..]));
        are_right(part, &all, Fill::Normal);
    }
    are_right("f16_128", &[([1, 129, 65, 1, 1], &[0.09])], Fill::Normal);
}

/// FlashAttention #2463, flashinfer#4451: the last query is aligned with the last key; more queries than keys leave rows without one.
#[test]
fn causal_rows_without_a_key_are_0() {
    let pairs = [[200, 70], [70, 200], [1, 130], [130, 1], [65, 65]];
    let all = pairs.map(|[queries, keys]| ([1, queries, keys, 2, 1], &[0.125][..]));
    are_right("causal_lse", &all, Fill::Normal);
}

/// FlashAttention #2300: groups of any size, 40 heads on 4 among them.
#[test]
fn groups_of_heads() {
    let groups = [[40, 4], [7, 7], [6, 2], [5, 1], [14, 2], [16, 1]];
    let all = groups.map(|[hq, hk]| ([1, 3, 20, hq, hk], &[0.125, 9.0, 0.0][..]));
    are_right("window", &all, Fill::Normal);
    are_right("causal_lse", &all, Fill::Normal);
}

/// FlashAttention #2258, #1133, pegainfer#819: windows that empty tiles, of one key, of all, and of what causal is.
#[test]
fn windows_are_inclusive() {
    let scalars: [&[f64]; 6] = [
        &[1.0, 0.0, 0.0],
        &[1.0, 3.0, 0.0],
        &[1.0, -1.0, 0.0],
        &[1.0, 0.0, -1.0],
        &[1.0, -1.0, -1.0],
        &[1.0, 70.0, 5.0],
    ];
    for extents in [[1, 70, 200, 1, 1], [1, 200, 70, 1, 1]] {
        are_right("window", &scalars.map(|scalars| (extents, scalars)), Fill::Integers);
    }
}

/// flashinfer#4267, llama.cpp#19098, cubecl#1070: scores far below any finite sentinel, sums of many equal weights, scales of any sign,
/// NaN and infinities.
#[test]
fn scores_of_any_size() {
    let scales: [&[f64]; 6] = [&[1e5], &[-1e5], &[0.0], &[-0.125], &[1e-30], &[3.0]];
    are_right("causal_lse", &scales.map(|scalars| ([1, 30, 300, 1, 1], scalars)), Fill::Normal);
    are_right("causal_lse", &[([1, 70, 130, 1, 1], &[0.125]), ([1, 3, 5, 1, 1], &[-1.0])], Fill::Specials);
    are_right("f16_128", &[([1, 2, 2100, 1, 1], &[0.0])], Fill::Integers);
}
