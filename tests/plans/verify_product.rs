//! Contract: of a product of matrices, every value is right that rounded sums in some order give, and no other that can be
//! told from those; what is multiplied by a scalar of 0 is not looked at.

use crate::kernels::Random;
use cutemplate::arch::Targets;
use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::{Gemm, Recipe, Sgemm};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Baseline, Fill, ReferenceError, Tensor, Verdict};
use cutemplate::view::ViewLayout;

fn plan(settings: &str) -> Plan {
    let recipe = Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    recipe.plan_as("k", &Targets::default()).expect("a right recipe")
}

/// The operands for a problem, those that are read filled from a seed.
fn tensors(plan: &Plan, problem: &[i64], fill: Fill, seed: u64) -> Vec<Tensor> {
    let shapes = plan.shapes(problem).expect("a problem");
    let make = |((operand, shape), seed): ((&cutemplate::plan::Operand, &Vec<i64>), u64)| {
        let layout = operand.layout(shape, None).expect("small");
        let mut tensor = Tensor::new(operand.dtype, layout).expect("small");
        tensor.fill(fill, seed);
        tensor
    };
    let mut all: Vec<Tensor> = plan.operands().iter().zip(&shapes).zip(seed..).map(make).collect();
    all.last_mut().expect("D").fill_unwritten();
    all
}

fn verdict(plan: &Plan, tensors: &[Tensor], scalars: &[f64]) -> Verdict {
    let (d, read) = tensors.split_last().expect("D");
    let read: Vec<&Tensor> = read.iter().collect();
    verify::check(plan, &read, scalars, &[d]).expect("the plan's inputs").remove(0)
}

fn at(tensor: &Tensor, coordinate: &[u64]) -> f32 {
    f32::from_bits(tensor.bits_at(coordinate).expect("inside") as u32)
}

fn set(tensor: &mut Tensor, row: u64, col: usize, value: f32) {
    tensor.row_mut::<f32>(row).expect("a row")[col] = value;
}

/// A sum of products as some device may form it.
fn sum(random: &mut Random, pairs: &[(f32, f32)]) -> f32 {
    let mut terms = pairs.to_vec();
    match random.below(4) {
        0 => terms.iter().fold(0.0, |sum, (a, b)| a.mul_add(*b, sum)),
        1 => terms.iter().fold(0.0, |sum, (a, b)| sum + a * b),
        2 => {
            random.shuffle(&mut terms);
            let parts = terms.chunks(1 + random.below(9));
            parts.map(|part| part.iter().fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))).fold(0.0, |sum, x: f32| sum + x)
        }
        _ => {
            // Any tree.
            let mut sums: Vec<f32> = terms.iter().map(|(a, b)| 0.0 + a * b).collect();
            while sums.len() > 1 {
                let x = sums.swap_remove(random.below(sums.len()));
                let other = random.below(sums.len());
                sums[other] += x;
            }
            sums.first().copied().unwrap_or(0.0)
        }
    }
}

/// Writes `alpha * A @ B + beta * C` into D, each sum in an order of its own.
fn compute(random: &mut Random, tensors: &mut [Tensor], [alpha, beta]: [f32; 2]) {
    let [a, b, c, d] = tensors else { panic!("four operands") };
    for m in 0..d.rows() {
        for n in 0..d.cols() {
            let pairs: Vec<(f32, f32)> = (0..a.cols()).map(|k| (at(a, &[m, k]), at(b, &[k, n]))).collect();
            let read = |x: f32, scalar: f32| if scalar == 0.0 { 0.0 } else { x };
            let sum = if alpha == 0.0 { 0.0 } else { sum(random, &pairs) };
            let value = alpha * sum + beta * read(at(c, &[m, n]), beta);
            set(d, m, n as usize, value);
        }
    }
}

#[test]
fn any_order_of_summation_is_right() {
    let random = &mut Random::new(50, 0);
    let plan = plan("variant=naive");
    let mut elements = 0;
    for round in 0..400 {
        let fill = random.pick(Fill::ALL);
        let problem = [1 + random.below(12) as i64, 1 + random.below(12) as i64, random.pick(&[0, 1, 2, 7, 40, 300])];
        let scalars = [random.pick(&[1.0, 0.0, -2.0, 0.1]), random.pick(&[0.0, 1.0, 0.5])];
        let mut all = tensors(&plan, &problem, fill, round);
        compute(random, &mut all, scalars.map(|s| s as f32));
        let verdict = verdict(&plan, &all, &scalars);
        assert!(verdict.is_right(), "{problem:?} {fill} {scalars:?}: {verdict}");
        elements += verdict.elements;
    }
    assert!(elements > 10_000, "{elements}");
}

#[test]
fn sums_of_integers_are_one_value() {
    let random = &mut Random::new(51, 0);
    let plan = plan("variant=naive");
    for (problem, scalars) in [([5, 7, 11], [1.0, 0.0]), ([3, 4, 130], [2.0, -1.0]), ([2, 2, 0], [1.0, 1.0])] {
        let mut all = tensors(&plan, &problem, Fill::Integers, 9);
        compute(random, &mut all, scalars.map(|s| s as f32));
        assert!(verdict(&plan, &all, &scalars).is_right());
        let right = at(&all[3], &[1, 1]);
        for wrong in [right.next_up(), right.next_down(), -right, f32::NAN] {
            set(&mut all[3], 1, 1, wrong);
            let verdict = verdict(&plan, &all, &scalars);
            assert_eq!(verdict.mismatches, u64::from(wrong.to_bits() != right.to_bits()), "{wrong:?}: {verdict}");
        }
    }
}

#[test]
fn beyond_2_24_sums_of_integers_are_rounded() {
    let plan = plan("variant=naive\nepilogue=a");
    let mut all = tensors(&plan, &[1, 1, 3], Fill::Integers, 1);
    // 2^24 + 1 - 2^24: 1 or 0, by the order.
    for (k, x) in [4096.0, 1.0, -4096.0].into_iter().enumerate() {
        set(&mut all[0], 0, k, x);
        set(&mut all[1], k as u64, 0, if k == 1 { 1.0 } else { 4096.0 });
    }
    for (d, right) in [(1.0, true), (0.0, true), (20.0, false)] {
        set(&mut all[2], 0, 0, d);
        assert_eq!(verdict(&plan, &all, &[]).is_right(), right, "{d}");
    }
}

#[test]
fn a_term_that_is_missing_is_noticed_among_real_numbers() {
    let random = &mut Random::new(52, 0);
    let plan = plan("variant=naive");
    for k in [1, 8, 130, 1000] {
        let mut all = tensors(&plan, &[4, 4, k], Fill::Normal, 3);
        // One term less: the last column of A counts as 0.
        let mut short = all.clone();
        (0..4).for_each(|m| set(&mut short[0], m, k as usize - 1, 0.0));
        compute(random, &mut short, [1.0, 0.0]);
        all[3] = short[3].clone();
        let verdict = verdict(&plan, &all, &[1.0, 0.0]);
        assert!(verdict.mismatches >= 15, "K = {k}: {verdict}");
    }
}

#[test]
fn nan_and_infinities_come_out_where_they_must() {
    let random = &mut Random::new(53, 0);
    let plan = plan("variant=naive");
    let scalars = [1.0, 1.0];
    let mut all = tensors(&plan, &[6, 6, 20], Fill::Normal, 5);
    set(&mut all[0], 1, 4, f32::NAN);
    set(&mut all[0], 2, 4, f32::INFINITY);
    set(&mut all[1], 9, 3, f32::NEG_INFINITY);
    set(&mut all[2], 0, 0, f32::NAN);
    compute(random, &mut all, [1.0, 1.0]);
    assert!(verdict(&plan, &all, &scalars).is_right());
    let b = at(&all[1], &[4, 0]);
    for (row, col, wrong) in [
        (1, 2, 0.5),
        (2, 0, f32::INFINITY.copysign(-b)),
        (2, 0, f32::NAN),
        (2, 0, f32::MAX.copysign(b)),
        (0, 0, 1.0),
        (5, 5, f32::NAN),
        (5, 5, f32::INFINITY),
    ] {
        let mut broken = all.clone();
        set(&mut broken[3], row, col, wrong);
        assert_eq!(verdict(&plan, &broken, &scalars).mismatches, 1, "({row},{col}) = {wrong:?}");
    }
}

#[test]
fn what_may_overflow_may_be_infinite_and_what_cannot_may_not() {
    let plan = plan("variant=naive\nepilogue=a");
    let check = |a: &[f32], b: &[f32], accepted: &[f32], refused: &[f32]| {
        let mut all = tensors(&plan, &[1, 1, a.len() as i64], Fill::Integers, 1);
        for (k, (a, b)) in a.iter().zip(b).enumerate() {
            set(&mut all[0], 0, k, *a);
            set(&mut all[1], k as u64, 0, *b);
        }
        for (d, right) in accepted.iter().map(|d| (d, true)).chain(refused.iter().map(|d| (d, false))) {
            set(&mut all[2], 0, 0, *d);
            let verdict = verdict(&plan, &all, &[]);
            assert_eq!(verdict.is_right(), right, "{a:?} @ {b:?} = {d:?}: {verdict}");
        }
    };
    let (max, inf, nan) = (f32::MAX, f32::INFINITY, f32::NAN);
    // The sum is -max, by way of infinity or not.
    check(&[max, max, -max, -max, -max], &[1.0; 5], &[-max, inf, -inf, nan], &[]);
    check(&[max, max, -1.0], &[1.0; 3], &[inf], &[-inf, nan, 0.0]);
    check(&[max, -max], &[0.5, 0.25], &[max / 4.0], &[inf, nan]);
    check(&[inf, -max, -max], &[1.0; 3], &[inf, nan], &[-inf, 0.0]);
    check(&[inf, max, max], &[1.0; 3], &[inf], &[-inf, nan, 0.0]);
    check(&[inf, -inf], &[1.0; 2], &[nan], &[inf, -inf, 0.0]);
    check(&[inf, 1.0], &[0.0, 1.0], &[nan], &[inf, 1.0]);
    // Below the smallest number: 0 of either sign.
    check(&[-1e-30, 1e-30], &[1e-30; 2], &[0.0, -0.0], &[1e-30]);
    check(&[0.0, -1.0], &[-3.0, 0.0], &[0.0], &[-0.0]);
}

#[test]
fn what_is_multiplied_by_0_is_not_looked_at() {
    let random = &mut Random::new(54, 0);
    let plan = plan("variant=naive");
    let mut all = tensors(&plan, &[3, 3, 5], Fill::Normal, 5);
    (0..3).for_each(|i| set(&mut all[2], i, i as usize, f32::NAN));
    compute(random, &mut all, [1.0, 0.0]);
    assert!(verdict(&plan, &all, &[1.0, 0.0]).is_right());
    assert!(verdict(&plan, &all, &[1.0, -0.0]).is_right());
    assert!(!verdict(&plan, &all, &[1.0, 1.0]).is_right());
    set(&mut all[3], 1, 1, f32::NAN);
    assert_eq!(verdict(&plan, &all, &[1.0, 0.0]).mismatches, 1);

    let mut all = tensors(&plan, &[3, 3, 5], Fill::Integers, 5);
    set(&mut all[0], 1, 1, f32::NAN);
    set(&mut all[1], 1, 1, f32::INFINITY);
    compute(random, &mut all, [0.0, 2.0]);
    assert!(verdict(&plan, &all, &[0.0, 2.0]).is_right());
    set(&mut all[3], 1, 0, f32::NAN);
    assert_eq!(verdict(&plan, &all, &[0.0, 2.0]).mismatches, 1);
    // A scalar that is used otherwise too spares nothing.
    let plan = self::plan("variant=naive\nepilogue=|a, b; alpha, beta| alpha * a + beta * b + a");
    assert!(!verdict(&plan, &all, &[0.0, 2.0]).is_right());
}

#[test]
fn nothing_to_sum_and_nothing_to_write() {
    let plan = plan("variant=naive");
    for problem in [[0, 4, 3], [4, 0, 3], [0, 0, 0]] {
        let all = tensors(&plan, &problem, Fill::Normal, 1);
        let verdict = verdict(&plan, &all, &[1.0, 1.0]);
        assert!(verdict.is_right() && verdict.elements == 0, "{verdict}");
    }
    let mut all = tensors(&plan, &[2, 3, 0], Fill::Normal, 1);
    let unwritten = verdict(&plan, &all, &[1.0, 0.5]);
    assert_eq!((unwritten.mismatches, unwritten.unwritten), (6, 6), "{unwritten}");
    compute(&mut Random::new(55, 0), &mut all, [1.0, 0.5]);
    assert!(verdict(&plan, &all, &[1.0, 0.5]).is_right());
}

#[test]
fn batches_auxiliary_tensors_and_an_unused_c_are_in_their_places() {
    let plan = plan("variant=naive\nbatched=true\na=col\nepilogue=|a, b, c| a + c\naux=f16:(0,1,?)");
    let names: Vec<&str> = plan.operands().iter().map(|o| o.name).collect();
    assert_eq!(names, ["A", "B", "Aux0", "D"]);
    let (m, n, k, l) = (3_u64, 4_u64, 5_u64, 2_u64);
    let mut all = tensors(&plan, &[3, 4, 5, 2], Fill::Integers, 5);
    // One A for all batches.
    let one = ViewLayout::strided(&[3, 5, 2], &[1, 3, 0]).expect("rank 3");
    all[0] = Tensor::new(DType::F32, one).expect("small");
    all[0].fill(Fill::Integers, 5);
    for c in (0..m * n * l).map(|i| [i / (n * l), i / l % n, i % l]) {
        let [i, j, batch] = c;
        let terms = (0..k).map(|k| at(&all[0], &[i, k, batch]) * at(&all[1], &[k, j, batch]));
        let aux = half::f16::from_bits(all[2].bits_at(&c).expect("inside") as u16).to_f32();
        let value = terms.sum::<f32>() + aux;
        let (shape, stride) = ([m, n, l], all[3].layout().layout);
        let offset: i64 = c.iter().zip(stride.stride()).map(|(c, d)| *c as i64 * d).sum();
        assert!(c.iter().zip(shape).all(|(c, e)| *c < e));
        let byte = (all[3].start().0 as i64 + 4 * offset) as usize;
        all[3].storage_mut()[byte..byte + 4].copy_from_slice(&value.to_ne_bytes());
    }
    let right = verdict(&plan, &all, &[]);
    assert!(right.is_right() && right.elements == 24, "{right}");
    all.swap(0, 1);
    let read: Vec<&Tensor> = all[..3].iter().collect();
    assert!(verify::check(&plan, &read, &[], &[&all[3]]).is_err(), "A is B");
}

#[test]
fn a_mismatch_shows_the_bounds_and_what_is_read_besides() {
    let plan = plan("variant=naive");
    let mut all = tensors(&plan, &[2, 2, 3], Fill::Integers, 7);
    compute(&mut Random::new(56, 0), &mut all, [1.0, 1.0]);
    let right = at(&all[3], &[1, 0]);
    set(&mut all[3], 1, 0, right + 1.0);
    let verdict = verdict(&plan, &all, &[1.0, 1.0]);
    let names: Vec<&str> = verdict.first[0].inputs.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(
        (verdict.first[0].coordinate.as_slice(), names),
        ([1, 0].as_slice(), vec!["least A @ B", "greatest A @ B", "C"])
    );
}

/// A @ B and |A| @ |B|, each sum in an order of its own.
fn baseline(random: &mut Random, plan: &Plan, all: &[Tensor]) -> [Tensor; 2] {
    [false, true].map(|sizes| {
        let shape = all.last().expect("D").shape();
        let mut made = Tensor::new(DType::F32, plan.operands().last().expect("D").layout(shape, None).expect("small"))
            .expect("small");
        let of = |x: f32| if sizes { x.abs() } else { x };
        for m in 0..made.rows() {
            for n in 0..made.cols() {
                let pair = |k| (of(at(&all[0], &[m, k])), of(at(&all[1], &[k, n])));
                let pairs: Vec<(f32, f32)> = (0..all[0].cols()).map(pair).collect();
                set(&mut made, m, n as usize, sum(random, &pairs));
            }
        }
        made
    })
}

fn against(plan: &Plan, all: &[Tensor], scalars: &[f64], baseline: &[Tensor; 2]) -> Result<Verdict, ReferenceError> {
    let (d, read) = all.split_last().expect("D");
    let read: Vec<&Tensor> = read.iter().collect();
    let [product, sizes] = baseline;
    Ok(verify::check_against(plan, &read, scalars, &[d], Baseline { product, sizes })?.remove(0))
}

#[test]
fn two_orders_of_summation_are_right_by_each_other() {
    let random = &mut Random::new(53, 0);
    let plan = plan("variant=naive");
    for round in 0..400 {
        let fill = random.pick(&[Fill::Integers, Fill::Normal]);
        let problem = [1 + random.below(12) as i64, 1 + random.below(12) as i64, random.pick(&[0, 1, 2, 7, 40, 300])];
        let scalars = [random.pick(&[1.0, 0.0, -2.0, 0.1]), random.pick(&[0.0, 1.0, 0.5])];
        let mut all = tensors(&plan, &problem, fill, round);
        compute(random, &mut all, scalars.map(|s| s as f32));
        let baseline = baseline(random, &plan, &all);
        let verdict = against(&plan, &all, &scalars, &baseline).expect("a baseline");
        assert!(verdict.is_right(), "{problem:?} {fill} {scalars:?}: {verdict}");
    }
}

/// What the full check refuses by more than the baseline's own error, the baseline refuses: within twice the bound are both.
#[test]
fn a_wrong_element_is_seen_beside_a_baseline() {
    let random = &mut Random::new(54, 0);
    let plan = plan("variant=naive");
    for (fill, scalars) in [(Fill::Integers, [1.0, 0.0]), (Fill::Normal, [1.0, 0.0]), (Fill::Normal, [2.0, -1.0])] {
        let mut all = tensors(&plan, &[6, 9, 200], fill, 7);
        compute(random, &mut all, scalars.map(|s| s as f32));
        let baseline = baseline(random, &plan, &all);
        let right = at(&all[3], &[4, 5]);
        // The sizes of 200 products of N(0,1) are about 130 in all: 200 * 2^-24 of it, four times, times alpha.
        let step = if fill == Fill::Integers { 1.0 } else { 0.02 };
        let next = if fill == Fill::Integers { right.next_up() } else { right + step };
        for wrong in [next, right + step, right - step, f32::NAN, f32::INFINITY, 1e30, -right - 1.0] {
            set(&mut all[3], 4, 5, wrong);
            let seen = against(&plan, &all, &scalars, &baseline).expect("a baseline");
            assert_eq!(seen.mismatches, 1, "{fill}: {wrong:?} for {right:?}: {seen}");
            assert_eq!(seen.first[0].coordinate, [4, 5]);
        }
        set(&mut all[3], 4, 5, right);
        all[3].row_mut::<f32>(2).expect("a row").swap(3, 4);
        assert_eq!(against(&plan, &all, &scalars, &baseline).expect("a baseline").mismatches, 2);
        all[3].fill_unwritten();
        let seen = against(&plan, &all, &scalars, &baseline).expect("a baseline");
        assert_eq!((seen.mismatches, seen.unwritten), (54, 54), "{seen}");
    }
}

/// Where the epilogue is the accumulator as it is, most elements are not evaluated: nothing else is right then.
#[test]
fn what_is_right_at_a_glance_is_right_when_evaluated() {
    let random = &mut Random::new(57, 0);
    let [plain, evaluated] = ["a", "a * 1"].map(|epilogue| plan(&format!("variant=naive\nepilogue={epilogue}")));
    let (mut right, mut wrong) = (0, 0);
    for (fill, k) in [(Fill::Integers, 200), (Fill::Normal, 200), (Fill::Normal, 3), (Fill::Integers, 1)] {
        let mut all = tensors(&plain, &[6, 9, k], fill, 7);
        set(&mut all[0], 4, 0, 0.0);
        let [product, sizes] = baseline(random, &plain, &all);
        for m in 0..6 {
            all[2].row_mut::<f32>(m).expect("a row").copy_from_slice(product.row::<f32>(m).expect("a row"));
        }
        let baseline = [product, sizes];
        for _ in 0..400 {
            let (m, n) = (random.pick(&[0, 4, 5]), random.below(9));
            let sum = at(&all[2], &[m, n as u64]);
            // Around the bound: 2^-24 of the sizes for each addition, twice.
            let bound = 2.0 * k as f32 * at(&baseline[1], &[m, n as u64]) / 16_777_216.0;
            let factor = random.pick(&[0.0, 0.3, 0.9, 0.999, 1.0, 1.001, 1.1, 2.0, f32::INFINITY]);
            let one = [sum + factor * bound, sum - factor * bound, sum.next_up(), sum.next_down(), -sum, f32::NAN];
            set(&mut all[2], m, n, random.pick(&one));
            let [seen, closer] =
                [&plain, &evaluated].map(|plan| against(plan, &all, &[], &baseline).expect("a baseline"));
            assert_eq!(seen, closer, "{fill} {k}");
            *(if seen.is_right() { &mut right } else { &mut wrong }) += 1;
            set(&mut all[2], m, n, sum);
        }
    }
    assert!(right > 400 && wrong > 400, "{right} right, {wrong} wrong");
}

#[test]
fn a_baseline_that_says_nothing_is_refused() {
    let random = &mut Random::new(55, 0);
    let plan = plan("variant=naive\nepilogue=a");
    let mut all = tensors(&plan, &[3, 4, 5], Fill::Normal, 1);
    let good = baseline(random, &plan, &all);
    let mut refused = String::new();
    let mut add = |all: &[Tensor], baseline: &[Tensor; 2]| {
        refused += &format!("{}\n", against(&plan, all, &[], baseline).expect_err("refused"));
    };
    for (which, value) in [(0, f32::NAN), (0, f32::INFINITY), (1, f32::INFINITY), (1, f32::MAX)] {
        let mut bad = good.clone();
        set(&mut bad[which], 1, 2, value);
        add(&all, &bad);
    }
    let other = tensors(&plan, &[4, 4, 5], Fill::Normal, 1);
    add(&all, &baseline(random, &plan, &other));
    set(&mut all[0], 0, 0, f32::NAN);
    add(&all, &baseline(random, &plan, &all));
    expect_test::expect![[r#"
        the baseline cannot be compared with: found a product of NaN with terms of 1.1016845 in total size
        the baseline cannot be compared with: found a product of inf with terms of 1.1016845 in total size
        the baseline cannot be compared with: found a product of 0.44724867 with terms of inf in total size
        the baseline cannot be compared with: found a product of 0.44724867 with terms of 3.4028235e38 in total size
        the baseline cannot be compared with: found Tensor f32 (4,4):(4,1), and a product of f32 (3,4,1)
        the baseline cannot be compared with: found a product of NaN with terms of NaN in total size
    "#]]
    .assert_eq(&refused);
}

/// Several cores take some rows each: the same mismatches, of the lowest coordinates first, with and without batches.
#[test]
fn several_cores_find_what_one_would() {
    for (settings, problem, rows) in
        [("variant=naive", &[210, 190, 70][..], 210_u64), ("variant=naive\nbatched=true", &[130, 31, 40, 3], 130)]
    {
        let plan = plan(settings);
        let mut all = tensors(&plan, problem, Fill::Integers, 1);
        let blank = verdict(&plan, &all, &[1.0, 0.0]);
        assert_eq!(blank.unwritten, all[3].size(), "{settings}");
        let batches = problem.get(3).map_or(1, |l| *l as u64);
        let coordinate = |m: u64, n: u64, l: u64| if problem.len() == 4 { vec![m, n, l] } else { vec![m, n] };
        let [a, b] = [&all[0], &all[1]].map(Clone::clone);
        let value = |m: u64, n: u64, l: u64| -> f32 {
            (0..problem[2] as u64).map(|k| at(&a, &coordinate(m, k, l)) * at(&b, &coordinate(k, n, l))).sum()
        };
        let wrong = |m: u64, n: u64, l: u64| (m + 7 * n + 3 * l).is_multiple_of(97);
        let mut lowest = Vec::new();
        let layout = all[3].layout().layout;
        let start = all[3].start().0 as usize;
        for m in 0..rows {
            for (n, l) in (0..problem[1] as u64).flat_map(|n| (0..batches).map(move |l| (n, l))) {
                let c = coordinate(m, n, l);
                let offset: usize = c.iter().zip(layout.stride()).map(|(c, d)| *c as usize * *d as usize).sum();
                let value = value(m, n, l) + f32::from(u8::from(wrong(m, n, l)));
                all[3].storage_mut()[start + 4 * offset..][..4].copy_from_slice(&value.to_ne_bytes());
                lowest.extend(wrong(m, n, l).then_some(c));
            }
        }
        let found = verdict(&plan, &all, &[1.0, 0.0]);
        let first: Vec<Vec<u64>> = found.first.iter().map(|m| m.coordinate.clone()).collect();
        assert_eq!(
            (found.mismatches, found.unwritten, first),
            (lowest.len() as u64, 0, lowest[..8].to_vec()),
            "{settings}"
        );
    }
}

/// A product of integers may read floats: what is no integer saturates, and NaN is 0, as the conversion of a GPU has it.
#[test]
fn integers_that_are_read_of_floats_saturate_and_nan_is_0() {
    let settings = "dtype=i8\nout=i32\nepilogue=|a, c, x| a + x\naux=f32";
    let recipe = Gemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
    let plan = recipe.plan_as("k", &Targets::default()).expect("a right recipe");
    let mut all = tensors(&plan, &[2, 16, 32], Fill::Small, 5);
    let read = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3.0e9, -3.0e9, 3.0];
    let integers = [0, i32::MAX, i32::MIN, i32::MAX, i32::MIN, 3];
    let integer = |tensor: &Tensor, row: u64, col: u64| tensor.bits(row, col).expect("inside") as u8 as i8;
    for (col, (x, value)) in read.into_iter().zip(integers).cycle().take(16).enumerate() {
        for row in 0..2 {
            set(&mut all[2], row, col, x);
            let term = |k| i32::from(integer(&all[0], row, k)) * i32::from(integer(&all[1], k, col as u64));
            let sum: i32 = (0..32).map(term).sum();
            all[3].row_mut::<i32>(row).expect("a row")[col] = sum.wrapping_add(value);
        }
    }
    let right = verdict(&plan, &all, &[]);
    assert_eq!((right.mismatches, right.unwritten), (0, 0), "{right:?}");
    all[3].row_mut::<i32>(1).expect("a row")[0] += 1;
    assert_eq!(verdict(&plan, &all, &[]).mismatches, 1);
}
