//! Contract: attention is right, on both texts, where others have been wrong. Each test has the number of a bug that was found elsewhere:
//! 25 inputs that can be written down, each run plain and in all modes, and compared element by element.

mod given;

use cutemplate::arch::Arch;
use cutemplate::diagnostic::Code;
use cutemplate::exec::Options;
use cutemplate::exec::ptx::{Modes, Placement};
use cutemplate::plan::ParamType;
use cutemplate::verify::Fill;

use crate::kernels::Problem;
use crate::kernels::attention::{packed, paged, sized};
use crate::needed::each_of;
use crate::own::{BOUNDED, is_right, launch, program};
use crate::whole;
use given::{
    CAUSAL, Dense, EMPTIED, FULL, NARROW, PAGED, PAGES, PAGES_VARLEN, Packed, Paged, SINKS, VARLEN, WINDOW, are_right,
    bits, launched, named, refused, views,
};

/// Tests that are rows of the table alone.
macro_rules! cases {
    ($($(#[doc = $was:literal])+ $name:ident: $rows:expr;)+) => {
        $(
            $(#[doc = $was])+
            #[test]
            fn $name() {
                are_right(&$rows);
            }
        )+
    };
}

/// The scale, and a window of all keys.
const SCALE: &[f64] = &[0.125, -1.0, -1.0];
/// More sequences than a warp has lanes; with two heads more tiles than CTAs, most of them empty.
const MANY: [i64; 70] = {
    let (mut all, mut at) = ([0; 70], 0);
    while at < 70 {
        all[at] = at as i64 * 7 % 5;
        at += 1;
    }
    all
};

cases! {
    /// FlashAttention 03cd0651, #2470: without keys a TMA map of extent 0, and a division by 0 on the host.
    case_01_no_keys: [
        (FULL, Fill::Normal, &[(Dense([1, 5, 0, 2, 1]), SCALE)]),
        (CAUSAL, Fill::Normal, &[(Dense([2, 130, 0, 2, 1]), SCALE), (Dense([1, 0, 5, 2, 1]), SCALE)]),
        (VARLEN, Fill::Normal, &[(Packed([&[5, 3], &[0, 0]], [2, 1]), SCALE), (Packed([&[], &[]], [1, 1]), SCALE)]),
        (PAGED, Fill::Normal, &[(Paged([1, 16], &[0, 0], [2, 1]), SCALE)]),
    ];
    /// flashinfer#4451, #4452: NaN, or a finite logarithm, of rows whose keys are all masked.
    case_03_rows_without_a_key: [
        (CAUSAL, Fill::Normal, &[(Dense([1, 200, 70, 2, 1]), SCALE), (Dense([1, 128, 127, 1, 1]), SCALE)]),
        (WINDOW, Fill::Normal, &[(Dense([1, 20, 70, 1, 1]), &[0.125, -1.0, 0.0]), (Dense([1, 300, 129, 1, 1]), &[0.125, 3.0, 0.0])]),
        (VARLEN, Fill::Normal, &[(Packed([&[70, 20], &[9, 0]], [2, 1]), SCALE)]),
        (PAGED, Fill::Normal, &[(Paged([9, 3], &[5, 65], [3, 3]), SCALE)]),
    ];
    /// flashinfer#4401: an empty part merged with another, (-inf) - (-inf).
    case_04_splits_without_a_key: [
        (PAGED, Fill::Normal, &[(Paged([1, 16], &[200, 0, 64, 1], [8, 2]), SCALE), (Paged([5, 48], &[3, 130], [2, 1]), SCALE)]),
    ];
    /// candle#3606, #3892: causal sequences of any lengths that were silently not causal; logarithms of another size.
    case_05_causal_is_causal: [
        (CAUSAL, Fill::Integers, &[(Dense([2, 65, 65, 2, 1]), SCALE), (Dense([1, 129, 300, 1, 1]), SCALE)]),
        (VARLEN, Fill::Integers, &[(Packed([&[33, 64, 7], &[33, 64, 7]], [2, 1]), SCALE)]),
    ];
    /// FlashAttention's VARLEN_PREPROCESS_TILE_BUG: two kernels with other offsets, right until memory holds NaN. A workspace holds NaN
    /// before each launch here, and a byte that nobody has written is not read.
    case_06_memory_holds_nan: [
        (VARLEN, Fill::Normal, &[(Packed([&[129, 1, 70], &[65, 200, 3]], [2, 2]), SCALE)]),
        (PAGED, Fill::Normal, &[(Paged([3, 48], &[200, 63], [6, 2]), SCALE), (Paged([2, 7], &[0, 129], [2, 1]), SCALE)]),
    ];
    /// FlashAttention #2192, #2194: offsets of sequences around the borders of tiles.
    case_07_lengths_around_tiles: [
        (VARLEN, Fill::Normal, &[(Packed([&[1, 127, 128, 129, 0, 300], &[1, 127, 128, 129, 0, 300]], [2, 1]), SCALE)]),
        (CAUSAL, Fill::Normal, &[(Dense([1, 1, 1, 1, 1]), SCALE), (Dense([1, 127, 128, 1, 1]), SCALE), (Dense([1, 129, 300, 1, 1]), SCALE)]),
        (WINDOW, Fill::Normal, &[(Dense([1, 128, 127, 1, 1]), SCALE), (Dense([1, 300, 129, 1, 1]), &[0.125, 70.0, 3.0])]),
        (FULL, Fill::Normal, &[(Dense([1, 129, 65, 1, 1]), &[0.09])]),
    ];
    /// FlashAttention #2258: several empty tiles one after the other that were waited for forever.
    case_08_tiles_without_work: [
        (WINDOW, Fill::Normal, &[(Dense([1, 400, 70, 1, 1]), &[0.125, 3.0, 0.0]), (Dense([1, 70, 400, 1, 1]), &[0.125, 0.0, 0.0])]),
        (VARLEN, Fill::Normal, &[(Packed([&MANY, &MANY], [2, 1]), SCALE)]),
    ];
    /// FlashAttention #2300, #2301: groups of heads that do not divide a tile.
    case_09_groups_of_heads: [
        (WINDOW, Fill::Normal, &[(Dense([1, 3, 20, 40, 4]), &[0.125, 9.0, 0.0]), (Dense([1, 3, 20, 14, 2]), SCALE)]),
        (CAUSAL, Fill::Normal, &[(Dense([1, 3, 20, 6, 2]), SCALE), (Dense([1, 3, 20, 7, 7]), SCALE), (Dense([1, 3, 20, 16, 1]), SCALE)]),
        (PAGED, Fill::Normal, &[
            (Paged([1, 16], &[33], [40, 4]), SCALE), (Paged([2, 16], &[33], [3, 1]), SCALE), (Paged([3, 16], &[33], [5, 1]), SCALE),
            (Paged([1, 16], &[33], [7, 1]), SCALE), (Paged([2, 16], &[33], [8, 1]), SCALE), (Paged([1, 16], &[33], [16, 1]), SCALE),
        ]),
    ];
    /// FlashAttention #2097: lanes without a row in the last tile of packed heads.
    case_10_tiles_of_packed_heads_that_are_not_whole: [
        (PAGED, Fill::Normal, &[(Paged([1, 1], &[70], [5, 1]), SCALE), (Paged([1, 7], &[100], [34, 2]), SCALE), (Paged([7, 16], &[40], [9, 3]), SCALE)]),
    ];
    /// FlashAttention #2463: the last query is aligned with the last key.
    case_14_queries_are_aligned_at_the_end: [
        (CAUSAL, Fill::Normal, &[(Dense([1, 70, 200, 2, 1]), SCALE), (Dense([1, 1, 130, 1, 1]), SCALE), (Dense([1, 130, 1, 1, 1]), SCALE)]),
        (VARLEN, Fill::Normal, &[(Packed([&[64, 3, 1], &[20, 200, 65]], [2, 1]), SCALE)]),
        (PAGED, Fill::Normal, &[(Paged([5, 16], &[70, 3], [2, 1]), SCALE)]),
    ];
    /// FlashAttention #1254: sequences of no length that were waited for forever.
    case_15_sequences_of_no_length: [
        (VARLEN, Fill::Normal, &[
            (Packed([&[0, 0, 1023], &[0, 0, 1023]], [1, 1]), SCALE), (Packed([&[0, 1, 65], &[70, 0, 3]], [2, 1]), SCALE),
            (Packed([&[65, 0, 0], &[65, 0, 0]], [1, 1]), SCALE),
        ]),
    ];
    /// flashinfer#4525: sinks of eight heads, read past the end where there are fewer.
    case_19_sinks_of_any_number_of_heads: [
        (SINKS, Fill::Normal, &[
            (Dense([1, 3, 17, 1, 1]), &[0.125, 20.0]), (Dense([1, 3, 17, 2, 1]), &[0.125, 20.0]), (Dense([1, 3, 17, 3, 3]), &[0.125, 20.0]),
            (Dense([1, 3, 17, 4, 1]), &[0.125, 20.0]), (Dense([1, 3, 17, 5, 1]), &[0.125, 20.0]), (Dense([1, 3, 17, 6, 2]), &[0.125, 20.0]),
            (Dense([1, 3, 17, 7, 1]), &[0.125, 20.0]), (Dense([1, 3, 17, 8, 2]), &[0.125, 20.0]), (Dense([1, 3, 17, 9, 3]), &[0.125, 20.0]),
        ]),
    ];
    /// llama.cpp#19098: sums of weights in f16 that overflow, and a division by their sum of 0.
    case_20_sums_are_f32: [
        (PAGED, Fill::Integers, &[(Paged([1, 256], &[66_000], [1, 1]), &[0.0])]),
        (FULL, Fill::Integers, &[(Dense([1, 2, 2100, 1, 1]), &[0.0])]),
        (CAUSAL, Fill::Normal, &[
            (Dense([1, 30, 300, 1, 1]), &[1e5]), (Dense([1, 30, 300, 1, 1]), &[-1e5]), (Dense([1, 9, 40, 1, 1]), &[1e-30]),
            (Dense([1, 9, 40, 1, 1]), &[0.0]), (Dense([1, 9, 40, 1, 1]), &[-0.125]), (Dense([1, 9, 40, 1, 1]), &[3.0]),
        ]),
    ];
    /// Keys of 8 bits in pages, for queries one after the other: NaN, no keys, groups of heads, pages of any size.
    keys_of_8_bits: [
        (NARROW, Fill::Specials, &[(Paged([2, 16], &[70, 0, 33], [4, 2]), &[0.125, 20.0, 3.0]), (Paged([5, 3], &[129], [5, 1]), SCALE)]),
        (NARROW, Fill::Integers, &[(Paged([1, 48], &[200, 64, 1], [8, 2]), SCALE), (Paged([9, 256], &[130], [3, 3]), SCALE)]),
        (NARROW, Fill::Normal, &[(Paged([70, 16], &[200, 0, 70, 33, 5], [4, 2]), SCALE), (Paged([4, 16], &MANY, [2, 1]), SCALE)]),
    ];
    /// Pages that TMA copies: lengths around pages and steps, none, a single key, groups of heads, chunks of queries, and NaN.
    pages_by_tma: [
        (PAGES, Fill::Integers, &[(Paged([130, 64], &[300, 64, 1], [4, 2]), SCALE), (Paged([70, 64], &[129, 0, 65], [3, 1]), SCALE)]),
        (PAGES, Fill::Normal, &[
            (Paged([1, 64], &[63, 127, 128], [2, 1]), SCALE), (Paged([129, 64], &[257, 191], [2, 2]), &[-0.125]),
            (Paged([5, 64], &[0, 0], [2, 1]), SCALE), (Paged([200, 64], &[70, 400], [1, 1]), SCALE), (Paged([3, 64], &[130], [8, 2]), &[0.0]),
        ]),
        (PAGES, Fill::Specials, &[(Paged([66, 64], &[129, 70], [2, 1]), SCALE)]),
        (PAGES_VARLEN, Fill::Normal, &[
            (Paged([130, 256], &[300, 256, 1], [4, 2]), SCALE), (Paged([70, 256], &[129, 0, 65], [3, 1]), &[0.125, 40.0, 3.0]),
            (Paged([4, 256], &MANY, [2, 1]), SCALE), (Paged([200, 256], &[600, 70], [2, 1]), &[0.125, 100.0, 0.0]),
        ]),
        (PAGES_VARLEN, Fill::Integers, &[(Paged([65, 256], &[511, 513], [2, 1]), &[0.125, -1.0, 0.0])]),
    ];
    /// Masks that are functions of scores: a prefix, a window, both with a hole between them, queries without a key, all keys, none, and NaN.
    steps_that_a_function_empties: [
        (EMPTIED, Fill::Normal, &[
            (Dense([1, 300, 300, 2, 1]), &[0.125, 40.0, 70.0, 0.0]), (Dense([2, 130, 257, 2, 1]), &[0.125, 1e9, 0.0, 0.0]),
            (Dense([1, 257, 300, 1, 1]), &[-0.125, 5.0, 0.0, 0.0]), (Dense([1, 300, 300, 2, 2]), &[0.125, 1e9, 9.0, 140.0]),
            (Dense([1, 200, 70, 1, 1]), &[0.125, 1e9, 0.0, 20.0]), (Dense([1, 65, 129, 3, 1]), &[0.125, -1.0, 0.0, 0.0]),
            (Dense([1, 70, 200, 1, 1]), &[0.125, 0.0, 1e9, -1e9]), (Dense([1, 70, 200, 1, 1]), &[0.125, f64::NAN, f64::INFINITY, 0.0]),
        ]),
        (EMPTIED, Fill::Specials, &[(Dense([1, 130, 257, 2, 1]), &[0.125, 20.0, 3.0, 64.0]), (Dense([1, 300, 300, 1, 1]), &[0.5, 5.0, 64.0, 0.0])]),
    ];
    /// pegainfer#819: a window of W keys that end at the query's own is `left = W - 1`; -1 is no bound.
    case_24_windows_are_inclusive: [
        (WINDOW, Fill::Integers, &[
            (Dense([1, 70, 200, 1, 1]), &[1.0, 0.0, 0.0]), (Dense([1, 70, 200, 1, 1]), &[1.0, 3.0, 0.0]),
            (Dense([1, 70, 200, 1, 1]), &[1.0, 0.0, -1.0]), (Dense([1, 200, 70, 1, 1]), &[1.0, 70.0, 5.0]),
        ]),
    ];
}

/// flashinfer#4267, #4450: scores far below a finite sentinel of -5e4, so that O was 0. The sentinel is -inf here.
#[test]
fn case_02_scores_below_any_sentinel() {
    for (kernel, text) in named(VARLEN) {
        let of = |scale: f64| {
            let mut problem = packed(&kernel.plan, [&[3], &[20]], [1, 1], &[scale], Fill::Normal, 0);
            for (tensor, rows, value) in [(0, 3, 448.0), (1, 20, -1880.0), (2, 20, 1.0)] {
                let elements = (0..rows).flat_map(|row| (0..32).map(move |d| vec![row, 0, d]));
                problem.planted.extend(elements.map(|at| (tensor, at, value)));
            }
            problem
        };
        // -2.45e5 as there, and less.
        is_right(kernel, program(kernel, text), [of(0.009_09), of(0.002_04)]);
        let mut none = launched(kernel, &program(kernel, text), &of(0.002_04));
        let start = none.outputs[1].start().0 as usize;
        none.outputs[1].storage_mut()[start..start + 4].copy_from_slice(&f32::NEG_INFINITY.to_le_bytes());
        assert!(
            none.wrong(&kernel.plan, &of(0.002_04)).is_some(),
            "the logarithm of a query without a key is accepted"
        );
    }
}

/// FlashAttention #2745: pages that a warp's copies do not divide. Tensors that are not aligned are refused.
#[test]
fn case_11_pages_of_any_size() {
    let pages = [16, 48, 256, 3].map(|page| (Paged([2, page], &[129, 49, 48], [4, 2]), SCALE));
    are_right(&[(PAGED, Fill::Normal, &pages)]);
    for part in [PAGED, CAUSAL] {
        for (kernel, _) in named(part) {
            let extents: &[i64] = if part == PAGED { &[1, 1, 3, 2, 1, 3, 16] } else { &[1, 5, 7, 2, 1] };
            for tensor in 0..3 {
                let mut views = views(kernel, extents);
                assert!(kernel.plan.bind_with(&views, &[0.125]).is_ok());
                views[tensor].ptr += 8;
                assert!(kernel.plan.bind_with(&views, &[0.125]).is_err(), "{kernel}: operand {tensor} at 8 bytes");
            }
        }
    }
}

/// FlashAttention #2303, #2550, #2711: entries of the table that name no page, lengths past the table, starts that go back. The device
/// reads them, so none is refused: each counts as the nearest that is there. A start too few or too many is.
#[test]
fn case_12_tables_and_starts_that_are_broken() {
    for (kernel, text) in named(PAGED) {
        let mut problem = paged(&kernel.plan, [2, 16], &[100, 70, 40], [4, 2], SCALE, Fill::Normal, 1);
        let entries = [(3, vec![0, 1], 1_048_576.0), (3, vec![1, 0], -5.0), (4, vec![1], 1e6), (4, vec![2], -3.0)];
        problem.planted.extend(entries);
        is_right(kernel, program(kernel, text), [problem]);
    }
    for (part, page) in [(PAGES, 64), (PAGES_VARLEN, 256)] {
        let (kernel, text) = named(part)[0];
        let mut problem = paged(&kernel.plan, [70, page], &[600, 70, 40], [4, 2], SCALE, Fill::Normal, 1);
        let at = |name: &str| kernel.plan.operands().iter().position(|operand| operand.name == name).expect("there");
        let entries = [([0, 1], 1_048_576.0), ([0, 2], 2_147_483_520.0), ([1, 0], -5.0), ([2, 0], -2_147_483_648.0)];
        problem.planted.extend(entries.map(|(entry, number)| (at("Table"), entry.to_vec(), number)));
        problem.planted.extend([(at("Lengths"), vec![1], 1e6), (at("Lengths"), vec![2], -3.0)]);
        is_right(kernel, program(kernel, text), [problem]);
        let bound = |page: i64| {
            let extents: &[i64] =
                if part == PAGES { &[1, 70, 3, 4, 2, 6, page] } else { &[3, 70, 3, 4, 2, 6, page, 2] };
            kernel.plan.bind_with(&views(kernel, extents), &SCALE[..kernel.plan.scalars().len()])
        };
        assert!(bound(page).is_ok() && bound(page / 2).is_err() && bound(2 * page).is_err(), "{kernel}");
    }
    for (kernel, text) in named(VARLEN) {
        let mut problem = packed(&kernel.plan, [&[40, 30], &[40, 30]], [1, 1], SCALE, Fill::Normal, 8);
        for tensor in [3, 4] {
            problem.planted.extend([(tensor, vec![1], 1000.0), (tensor, vec![2], -7.0)]);
        }
        is_right(kernel, program(kernel, text), [problem]);
    }
    for (kernel, text) in named(NARROW) {
        let mut problem = paged(&kernel.plan, [5, 16], &[100, 70, 40], [4, 2], SCALE, Fill::Normal, 1);
        let starts = [(3, vec![1], 1000.0), (3, vec![2], -7.0)];
        problem.planted.extend(starts.into_iter().chain([(4, vec![0, 1], 1_048_576.0), (5, vec![1], 1e6)]));
        is_right(kernel, program(kernel, text), [problem]);
        let bound = |starts: i64| kernel.plan.bind_with(&views(kernel, &[starts, 9, 3, 4, 2, 6, 16, 2]), SCALE);
        assert!(bound(3).is_ok() && bound(2).is_err() && bound(4).is_err(), "{kernel}");
    }
}

/// FlashAttention #2662, #2260, onnxruntime#32299: numbers of tiles and elements that pass 32 bits. Strides have 64 bits; CTAs that
/// 32 bits do not number are refused.
#[test]
fn case_13_long_contexts() {
    for (kernel, _) in named(CAUSAL) {
        let plan = &kernel.plan;
        let strides = plan.params().fields().iter().filter(|field| field.name.ends_with("_row"));
        assert!(strides.clone().count() == 5 && strides.clone().all(|field| field.ty == ParamType::I64), "{kernel}");
        let bound = |extents: [i64; 5]| plan.bind_with(&views(kernel, &extents), &[0.125]);
        // 2^36 elements of Q, and 2^18 or 2^19 tiles.
        let binding = bound([16, 1 << 20, 1 << 20, 64, 8]).expect("a launch");
        let tile: u32 = if plan.targets().archs() == [Arch::Sm80] { 128 } else { 192 };
        assert_eq!(binding.launches()[0].grid[0], (1_u32 << 20).div_ceil(tile) * 64 * 16, "{kernel}");
        assert!(bound([1 << 14, 1 << 20, 1, 64, 8]).is_err(), "{kernel}");
    }
    let (kernel, _) = named(PAGED)[0];
    let bound = |extents: [i64; 7]| kernel.plan.bind_with(&views(kernel, &extents), &[0.125]);
    assert!(bound([4, 1, 1 << 16, 32, 8, 1 << 18, 16]).is_ok());
    assert!(bound([4, 1, 1 << 26, 32, 8, 1 << 18, 16]).is_err(), "2^30 keys");
}

/// FlashAttention #2553: elements of the right norm at the wrong place. Two neighbours that are exchanged are found.
#[test]
fn case_16_elements_lie_where_they_belong() {
    for (kernel, text) in named(WINDOW) {
        let problem = Dense([1, 70, 130, 2, 1]).problem(kernel, SCALE, Fill::Normal, 1);
        let mut tensors = launched(kernel, &program(kernel, text), &problem);
        let at = tensors.outputs[0].start().0 as usize + 2 * 40 * 37;
        let elements = &mut tensors.outputs[0].storage_mut()[at..at + 4];
        assert_ne!(elements[..2], elements[2..]);
        elements.rotate_left(2);
        assert!(tensors.wrong(&kernel.plan, &problem).is_some(), "{kernel}");
    }
}

/// FlashAttention #2756, #2229: a wait that is missing between the store of O and the next Q. Each barrier, wait and fence is taken out
/// in turn: a race is found, or what else orders the same is printed.
#[test]
fn case_17_waits_are_needed() {
    for (kernel, text) in named(WINDOW) {
        let (all, few) = ([0.125, 500.0, 3.0], [0.125, 40.0, 3.0]);
        let problems = [
            // Q is waited for by itself.
            ([1, 65, 70, 1, 1], [-0.125, -1.0, 3.0]),
            ([1, 130, 70, 2, 1], few),
            ([1, 100, 600, 1, 1], all),
            // The first 64 queries leave out the last step of the tile; the second 64 leave out the first.
            ([1, 128, 698, 1, 1], [0.125, 3.0, 3.0]),
            ([1, 128, 708, 1, 1], [0.125, 3.0, 3.0]),
        ];
        // More works than CTAs take a minute.
        let problems = whole::of(&problems, &[([3, 1, 300, 45, 5], all)]);
        let problem =
            |(extents, scalars): ([i64; 5], [f64; 3])| sized(&kernel.plan, &extents, &scalars, Fill::Normal, 1);
        let problems: Vec<Problem> = problems.into_iter().map(problem).collect();
        let (needed, spare) = each_of(kernel, text, problems);
        println!("{kernel}: {needed} needed, {spare} spare");
        assert!(needed > 0, "{kernel}");
    }
    for (part, sizes, lengths) in [(PAGED, [2, 16], [129, 40]), (PAGES, [130, 64], [300, 70])] {
        let (kernel, text) = named(part)[0];
        let problem = |scale| paged(&kernel.plan, sizes, &lengths, [4, 2], &[scale], Fill::Normal, 1);
        assert!(each_of(kernel, text, vec![problem(0.125), problem(-0.125)]).0 > 0, "{kernel}");
    }
}

/// flashinfer#5252: nearly all wrong where one instruction is late. With any seed, which delays other warps, the result is the same.
#[test]
fn case_18_delays_change_nothing() {
    for part in [WINDOW, VARLEN, PAGED, PAGES] {
        for (kernel, text) in named(part) {
            let of = match part {
                PAGES => Paged([130, 64], &[300, 70], [4, 2]),
                PAGED => Paged([2, 16], &[129, 40], [4, 2]),
                VARLEN => Packed([&[129, 3, 70], &[70, 130, 70]], [2, 1]),
                _ => Dense([1, 130, 200, 2, 1]),
            };
            let problem = of.problem(kernel, &[0.125, 40.0, 3.0], Fill::Normal, 1);
            let of_seed = |seed| {
                let program = program(kernel, text).with(Options { seed, modes: Modes::ALL, ..BOUNDED });
                bits(&launched(kernel, &program, &problem))
            };
            let first = of_seed(1);
            assert!((2..7).all(|seed| of_seed(seed) == first), "{kernel}");
        }
    }
}

/// cubecl#1070: NaN where a number is right, or a number where NaN is, that a comparison let pass.
#[test]
fn case_21_nan_is_compared_both_ways() {
    let special = [(Dense([1, 70, 130, 1, 1]), SCALE), (Dense([1, 3, 5, 1, 1]), &[-1.0][..])];
    are_right(&[(CAUSAL, Fill::Specials, &special)]);
    for (kernel, text) in named(CAUSAL) {
        let mut problem = sized(&kernel.plan, &[1, 20, 30, 1, 1], &[0.125], Fill::Normal, 1);
        // Of the last query alone: all others have numbers.
        problem.planted.push((0, vec![0, 19, 0, 5], f32::NAN));
        let right = launched(kernel, &program(kernel, text), &problem);
        let start = right.outputs[0].start().0 as usize;
        let (last, first, nan) = (start + 2 * 64 * 19, start, right.outputs[0].bits_at(&[0, 19, 0, 0]).expect("bf16"));
        assert!(half::bf16::from_bits(nan as u16).is_nan(), "{kernel}");
        for (at, value) in [(last, half::bf16::ONE), (first, half::bf16::NAN)] {
            let mut changed = right.clone();
            changed.outputs[0].storage_mut()[at..at + 2].copy_from_slice(&value.to_le_bytes());
            assert!(changed.wrong(&kernel.plan, &problem).is_some(), "{kernel}: {value} is accepted");
        }
    }
}

/// FlashAttention#2717: weights of 8 bits that saturate. Weights have 16 bits here: other types are refused.
#[test]
fn case_22_weights_have_16_bits() {
    for dtype in ["e4m3", "e5m2", "f32"] {
        assert_eq!(refused(&format!("dtype={dtype}")), Code::TileType, "{dtype}");
    }
}

/// FlashAttention#1133: a window that is what causal is, whatever says so; and one that is all.
#[test]
fn case_23_windows_that_are_causal_or_full() {
    for (kernel, text) in named(WINDOW) {
        let of = |left: f64, right: f64| {
            let problem = sized(&kernel.plan, &[1, 130, 200, 2, 1], &[0.125, left, right], Fill::Normal, 1);
            bits(&launched(kernel, &program(kernel, text), &problem))
        };
        let (causal, full) = (of(-1.0, 0.0), of(-1.0, -1.0));
        assert!(of(200.0, 0.0) == causal && of(1e6, 0.0) == causal && of(-7.0, 0.0) == causal, "{kernel}");
        assert!(of(200.0, 200.0) == full && of(-1.0, 1e9) == full && causal != full, "{kernel}");
    }
}

/// flashinfer#1023, #4979: scales of keys and values of 8 bits that were ignored. They are those of a head, of any sign, and count
/// once: that of K as a scale of scores does, that of V as O does.
#[test]
fn case_25_scales_of_8_bits_count() {
    for (kernel, text) in named(NARROW) {
        let of = |scale: f64, of_k: [f32; 2], of_v: [f32; 2]| {
            let scalars = [scale, 40.0, 3.0];
            let mut problem = paged(&kernel.plan, [3, 16], &[70, 3, 129], [6, 2], &scalars, Fill::Normal, 1);
            for (tensor, scales) in [("ScaleK", of_k), ("ScaleV", of_v)] {
                let number =
                    kernel.plan.operands().iter().position(|operand| operand.name == tensor).expect("an input");
                problem.planted.extend((0..).zip(scales).map(|(head, scale)| (number, vec![head], scale)));
            }
            problem
        };
        let (ones, scales) = ([1.0, 1.0], [0.25, -3.0]);
        is_right(kernel, program(kernel, text), [of(0.125, scales, [0.5, 2.0]), of(0.125, [0.0, 1.0], [-0.5, 0.0])]);
        let launched = |problem: &Problem| launched(kernel, &program(kernel, text), problem);
        let [once, twice] =
            [of(0.25, ones, ones), of(0.125, [2.0, 2.0], ones)].map(|problem| bits(&launched(&problem)));
        assert!(once == twice && once != bits(&launched(&of(0.25, [2.0, 2.0], ones))), "{kernel}");
        // Heads of Q: the first three have the first scale.
        let output = |problem: &Problem| launched(problem).outputs[0].to_vec::<half::bf16>().expect("bf16");
        let (one, other) = (output(&of(0.25, ones, ones)), output(&of(0.25, ones, [2.0, 1.0])));
        let elements = 48;
        for (at, (one, other)) in one.iter().zip(&other).enumerate() {
            let factor = if at / elements % 6 < 3 { 2.0 } else { 1.0 };
            assert_eq!(factor * one.to_f32(), other.to_f32(), "{kernel}: element {at}");
        }
    }
}

/// A step with a score that is not -inf is computed, and no other: so many matrix products has the run. On sm_90a the two warpgroups of a
/// tile have the same steps, but for those at both ends.
#[test]
fn only_steps_with_keys_are_computed() {
    let (queries, keys, heads) = (300, 400, 2);
    for (kernel, text) in named(EMPTIED) {
        let by_wgmma = kernel.plan.targets().archs() == [Arch::Sm90a];
        // 64 queries multiply together, among those of a tile.
        let (opcode, tile, step) = if by_wgmma { ("wgmma.mma_async", 128, 64) } else { ("mma.sync", 64, 32) };
        let run = |scalars: [f64; 4]| {
            let problem = sized(&kernel.plan, &[1, queries, keys, heads, 1], &scalars, Fill::Normal, 1);
            let options = Options { profile: true, placement: Placement::Driver, modes: Modes::PLAIN, ..BOUNDED };
            let ran = launch(kernel, &program(kernel, text).with(options), &problem);
            assert!(ran.report.is_clean() && ran.wrong.is_none(), "{kernel}\n{}\n{:?}", ran.report, ran.wrong);
            ran.report.profile.expect("a profile").total(opcode).executions
        };
        let steps = |[_, reach, prefix, first]: [f64; 4]| {
            let sees = |query: i64, key: i64| {
                let (own, key) = ((query + keys - queries) as f64, key as f64);
                (key <= own && own - key <= reach || key < prefix) && own >= first
            };
            let seen = |from: i64, rows: i64| -> Vec<i64> {
                let sees = |key: i64| (from..queries.min(from + rows)).any(|query| sees(query, key));
                let is_seen = |at: &i64| (at * step..keys.min((at + 1) * step)).any(sees);
                (0..(keys + step - 1) / step).filter(is_seen).collect()
            };
            let of_rows = |from: i64| {
                let (own, all) = (seen(from, 64), seen(from / tile * tile, tile));
                let ends = own.first().zip(own.last());
                all.iter().filter(|step| ends.is_some_and(|(first, last)| (first..=last).contains(step))).count()
            };
            heads as u64 * (0..(queries + 63) / 64).map(|rows| of_rows(64 * rows) as u64).sum::<u64>()
        };
        let all = [0.125, 1e9, 1e9, -1e9];
        let (whole, of_all) = (run(all), steps(all));
        for scalars in [
            [0.125, 40.0, 0.0, 0.0],
            [0.125, 1e9, 0.0, 0.0],
            [0.125, 40.0, 70.0, 0.0],
            [0.125, 1e9, 0.0, 330.0],
            [0.125, 1e9, 0.0, 1e9],
        ] {
            let (found, expected) = (run(scalars), steps(scalars) * whole / of_all);
            println!("{kernel}: {scalars:?}: {found} of {whole} products");
            assert_eq!(found, expected, "{kernel}: {scalars:?}");
        }
    }
}
