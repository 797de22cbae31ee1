//! Contract: what the model says of each rung of `sgemm` is what the data file and the chapter say, no rung was measured faster,
//! and none takes more than half as long again. `../benches/data/sgemm_h200.json` holds what was measured.
#![cfg(feature = "build")]

use std::collections::HashMap;

use crate::ladder;

use cutemplate::arch::{Arch, Targets};
use cutemplate::model::{H200, Limit, Prediction, TensorOp, TensorWork, Work};
use cutemplate::plan::Plan;
use cutemplate::recipe::product::{Major, Problem};
use cutemplate::recipe::sgemm::{Variant, choose};
use cutemplate::recipe::{Gemm, Recipe, Sgemm};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::ViewRef;

fn plan(settings: &str) -> Plan {
    let recipe = Sgemm::from_settings(&Settings::parse_lines(&settings.replace(';', "\n"))).expect("settings");
    recipe.plan(&Targets::new([Arch::Sm90a]).expect("not empty")).expect("a recipe")
}

/// As `cutemplate check --problem` predicts: every tensor aligned, and apart.
fn predict(plan: &Plan, problem: &[i64], pad: i64) -> Prediction {
    let shapes = plan.shapes(problem).expect("M, N, K");
    let views = plan.operands().iter().zip(&shapes).zip(1_u64..).map(|((operand, shape), k)| {
        let contiguous = operand.layout(shape, None).expect("a layout").stride().iter().copied().max().unwrap_or(0);
        let layout = operand.layout(shape, (pad > 0).then_some(contiguous + pad)).expect("a layout");
        let available = Elements(layout.span().expect("small"));
        ViewRef { dtype: operand.dtype, ptr: k << 48, available, layout, access: operand.access }
    });
    plan.predict(&views.collect::<Vec<_>>()).expect("views that fit").expect("the family has a model")
}

fn extents(problem: &str) -> Vec<i64> {
    problem.split('x').map(|e| e.parse().expect("an extent")).collect()
}

fn work(prediction: &Prediction) -> Work {
    prediction.work.expect("products are work")
}

/// What the model allows at most, in TFLOP/s, and what holds it up.
fn most(prediction: &Prediction) -> (f64, Limit) {
    let (seconds, limit) = prediction.seconds(&H200);
    (work(prediction).flop as f64 / seconds / 1e12, limit)
}

#[test]
fn predictions_of_the_rungs_are_those_of_the_data_and_none_is_beaten() {
    let ladder = ladder::data();
    for rung in &ladder.rungs {
        let prediction = predict(&plan(&rung.settings), &extents(&ladder.problem), 0);
        let (most, limit) = most(&prediction);
        assert_eq!(ladder::rounded(most), ladder::rounded(rung.predicted), "{}\n{prediction}", rung.rung);
        let expected = if most > 50.0 { Limit::Instructions } else { Limit::Wavefronts };
        assert_eq!(limit, expected, "{}", rung.rung);
        // Measured figures have two or three digits.
        let share = rung.tflops / most;
        assert!((1.0 / 1.5..1.01).contains(&share), "{}: {} of {most}", rung.rung, rung.tflops);
    }
    let rungs = ladder.rungs.iter().map(|r| r.rung.split(',').next().unwrap_or_default());
    for variant in Variant::ALL {
        assert!(rungs.clone().any(|rung| rung == variant.name()), "{variant} is missing");
    }
}

#[test]
fn the_table_of_the_chapter_is_the_data() {
    let ladder = ladder::data();
    let mut table = String::from("| rung | TFLOP/s | of cuBLAS | at most | limit |\n|---|---|---|---|---|\n");
    for rung in &ladder.rungs {
        let (_, limit) = most(&predict(&plan(&rung.settings), &extents(&ladder.problem), 0));
        let (tflops, predicted) = (ladder::rounded(rung.tflops), ladder::rounded(rung.predicted));
        let limit = limit.to_string();
        let limit = limit.split(',').next().unwrap_or_default();
        table += &format!("| {} | {tflops} | {:.3} | {predicted} | {limit} |\n", rung.rung, rung.tflops / rung.cublas);
    }
    for (name, tflops) in ladder.others.iter().map(|o| (&*o.name, o.tflops)).chain([("cuBLAS", ladder.cublas())]) {
        table += &format!("| {name} | {} | | | |\n", ladder::rounded(tflops));
    }
    let chapter = include_str!("../../docs/sgemm.md");
    assert!(chapter.contains(&table), "docs/sgemm.md has another table than:\n{table}");
    assert!(chapter.contains(&ladder.problem) && chapter.contains(&ladder.device), "which run it was");
}

/// Every candidate on every problem that was measured: none is faster than what the model calls the least, and where blocks are
/// many, none takes twice as long.
#[test]
fn nothing_that_was_measured_is_faster_than_predicted() {
    let (mut all, mut large) = (0, 0);
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let mut plans: HashMap<Sgemm, Plan> = HashMap::new();
    for line in include_str!("../data/h200_sgemm.txt").lines().filter(|l| !l.starts_with('#')) {
        let (problem, times) = line.split_once(" | ").expect("problem | times");
        let problem: Problem = problem.parse().expect("a problem");
        let times = times.split_whitespace().map(|t| t.parse::<f64>().expect("microseconds"));
        for (recipe, micros) in
            choose::candidates(&problem, &H200).into_iter().zip(times).filter(|(_, micros)| *micros > 0.0)
        {
            let plan = || recipe.plan(&targets).expect("it was measured");
            let plan = plans.entry(recipe.clone()).or_insert_with(plan);
            let extents = [problem.m, problem.n, problem.k].map(|e| e as i64);
            let prediction = predict(plan, &extents, 0);
            let share = prediction.seconds(&H200).0 / (micros * 1e-6);
            assert!(share < 1.0, "{problem} {recipe:?}: {micros} us\n{prediction}");
            all += 1;
            if prediction.blocks >= 8 * H200.sms {
                large += 1;
                assert!(share > 0.5, "{problem} {recipe:?}: {micros} us\n{prediction}");
            }
        }
    }
    assert!(all > 400 && large > 100, "{all} times, {large} with many blocks");
}

/// By hand: a warp of `block_2d` of 64x64x8 with 8x8 elements a thread, and the first rung's lookups.
#[test]
fn work_is_what_one_counts_by_hand() {
    let seed = predict(&plan("variant=block_2d"), &[128, 64, 32], 0);
    // Two warps; four tiles along K. A tile is copied by 16 loads and 16 stores of a warp for A and B each, those of A of four
    // rows; it is read by 32 loads of 16 bytes for each warp, those of A in 4 passes, those of B in 8.
    let (copies, loads, barriers, stores) = (2 * 16, 2 * 32, 2 * 2, 2 * 64);
    let instructions = 4 * (2 * copies + loads + barriers + 2 * 8 * 64) + stores;
    // The four lines of a warp's load of A, the one of B; 32 stores of one pass; a store of D goes to four rows, in each of
    // which lanes are 32 bytes apart: 8 words over 2 lines.
    let wavefronts = 4 * (16 * 4 + 16 + 32 + 32 * 4 + 32 * 8) + stores * 8;
    let expected = Work {
        flop: 2 * 128 * 64 * 32,
        blocks: 2,
        instructions,
        wavefronts,
        l2_bytes: 2 * (4 * (64 + 64) * 8 * 4 + stores * 32 * 32),
        other_bytes: 0,
        tensor: None,
    };
    assert_eq!((work(&seed), seed.blocks, seed.threads), (expected, 2, 64));

    // 32 rows of A are 32 lines, one word of B for all; D down its columns.
    let naive = predict(&plan("variant=naive"), &[32, 32, 7], 0);
    let work = work(&naive);
    assert_eq!((work.instructions, naive.blocks), (32 * (3 * 7 + 1), 1));
    // Rows of 7 floats are 28 bytes: 32 of them are 7 lines. Rows of D are lines.
    assert_eq!(work.wavefronts, 32 * (7 * (7 + 1) + 32));
    assert_eq!(work.l2_bytes, 7 * 64 * 4 + 32 * 32 * 32);
}

#[test]
fn sums_of_parts_of_k_are_written_and_read_again() {
    let whole = predict(&plan("variant=pipelined"), &[256, 256, 4096], 0);
    let split = predict(&plan("variant=pipelined;split_k=4"), &[256, 256, 4096], 0);
    assert_eq!((whole.blocks, split.blocks), (4, 16));
    assert_eq!((work(&whole).other_bytes, work(&split).other_bytes), (0, 5 * 256 * 256 * 4));
    assert!(split.seconds(&H200).0 < whole.seconds(&H200).0 / 2.0, "{split}\n{whole}");
    // Three tiles of 32 for four parts: one each, and one part has none.
    let three = predict(&plan("variant=pipelined;split_k=4"), &[256, 256, 96], 0);
    assert_eq!((three.blocks, work(&three).blocks), (16, 12));
}

#[test]
fn vectors_that_are_not_aligned_are_loaded_one_by_one() {
    for major in Major::ALL {
        let plan = plan(&format!("variant=warp_tiled;a={major};b={major}"));
        let requests = |pad: i64| -> Vec<u64> {
            predict(&plan, &[256, 256, 64], pad).traffic.iter().map(|t| t.requests).collect()
        };
        let (aligned, odd) = (requests(0), requests(1));
        assert_eq!(odd, aligned.iter().map(|r| 4 * r).collect::<Vec<_>>(), "{major}");
        assert_eq!(requests(4), aligned, "{major}");
    }
}

#[test]
fn problems_without_elements_take_no_time() {
    let empty = predict(&plan("variant=block_2d"), &[0, 64, 64], 0);
    assert_eq!((empty.blocks, empty.seconds(&H200).0), (0, 0.0));
    let no_sum = predict(&plan("variant=block_2d"), &[64, 64, 0], 0);
    assert_eq!(work(&no_sum).flop, 0);
    assert!(no_sum.seconds(&H200).0 > 0.0);
}

/// Both texts of `gemm` by hand: two blocks of 128x128 and two k-tiles of 64.
#[test]
fn tensor_cores_are_counted_by_hand() {
    let plan = Gemm::default().plan(&Targets::default()).expect("the default is legal");
    let [sm80, sm90a] = plan.texts() else { panic!("two texts") };
    let [sm80, sm90a] = [sm80, sm90a].map(|part| predict(part, &[256, 128, 128], 0));
    let tensor = |op| Some(TensorWork { op, products: 2 * 128 * 128 * 64 });
    // 16 bytes a lane for A and B; ldmatrix.x4 of 256 elements for 64x64 of each and four warps; 16x8x16 a warp. Of D four parts of
    // 32x128: pairs to shared memory in a pass each, and from there 16 bytes a lane.
    let (copies, loads, mmas) = (2 * 32, 4 * 32, 128 * 128 * 64 / (16 * 8 * 16));
    let (staged, stores) = (128 * 128 / 2 / 32, 128 * 128 / 8 / 32);
    // 512 bytes are four passes or lines.
    let sectors = 2 * (2 * 2 * 128 * 64 * 2 / 32) + 2 * 16 * stores;
    let expected = Work {
        flop: 2 * 256 * 128 * 128,
        blocks: 2,
        instructions: 2 * (copies + loads + mmas) + staged + stores,
        wavefronts: 2 * 4 * (copies + copies + loads) + staged + 2 * 4 * stores,
        l2_bytes: 32 * sectors,
        other_bytes: 0,
        tensor: tensor(TensorOp::Mma),
    };
    assert_eq!((work(&sm80), sm80.blocks, sm80.threads), (expected, 2, 128));
    // Tiles of (128,256): a box of A and two of B, which a cluster of two along M shares; two warpgroups of 64x256x16. Of D four parts
    // of 128x64: stmatrix of 256 elements in four passes, and a box for each warpgroup.
    let (boxes, mmas, staged) = (1 + 2, 2 * 4, 128 * 256 / 256);
    let expected = Work {
        instructions: 2 * (boxes + mmas) + staged + 4 * 2,
        wavefronts: 4 * staged,
        l2_bytes: 2 * (2 * 2 * 128 * 64 * 2) + 2 * 256 * 128,
        tensor: Some(TensorWork { op: TensorOp::Wgmma, products: 2 * 128 * 256 * 64 }),
        ..expected
    };
    assert_eq!((work(&sm90a), sm90a.blocks, sm90a.threads), (expected, 2, 384));
}

/// 385 and 554 TFLOP/s on an H200: none is faster than it can be, and what can be is less than tensor cores do.
#[test]
fn tensor_cores_are_not_beaten() {
    let plan = Gemm::default().plan(&Targets::default()).expect("the default is legal");
    for (part, measured, peak) in
        plan.texts().iter().zip([481.0, 868.0]).zip([714.0, 1071.0]).map(|((p, m), k)| (p, m, k))
    {
        let prediction = predict(part, &[4096; 3], 0);
        let (most, limit) = most(&prediction);
        assert!(most > measured && most < peak, "{}: {most}\n{prediction}", part.name());
        assert!(matches!(limit, Limit::TensorCores | Limit::Wavefronts | Limit::L2), "{prediction}");
    }
    // Extents that leave something over do no less work.
    let ragged = predict(&plan.texts()[0], &[4095, 4097, 4088], 0);
    assert!(ragged.seconds(&H200).0 >= predict(&plan.texts()[0], &[4096; 3], 0).seconds(&H200).0, "{ragged}");
}
