//! Contract: of attention, a value is right that an online softmax in f32 gives, with weights of 16 bits; one that is off by more than
//! that, or has a key too many, is not. Rows without a key are 0.

use cutemplate::arch::{Arch, Targets};
use cutemplate::plan::Plan;
use cutemplate::recipe::{Attention, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Tensor};
use half::f16;

fn plan(settings: &str) -> Plan {
    let recipe = Attention::from_settings(&Settings::parse_lines(settings)).expect("settings");
    recipe.plan_as("k", &Targets::new([Arch::Sm80]).expect("not empty")).expect("a right recipe")
}

/// Numbers from -1 to 1 that look random.
fn numbers(count: usize, seed: u32) -> Vec<f16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f16::from_f64(f64::from(state >> 8) / f64::from(1 << 23) - 1.0)
    };
    (0..count).map(|_| next()).collect()
}

const D: usize = 16;

/// O and the logarithms of one head, by the definition, where query i sees the keys below `end(i)`.
fn defined(q: &[f16], k: &[f16], v: &[f16], scale: f64, end: impl Fn(usize) -> usize) -> (Vec<f64>, Vec<f64>) {
    let (mut output, mut logarithms) = (Vec::new(), Vec::new());
    let row = |of: &[f16], at: usize| of[at * D..(at + 1) * D].iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
    for query in 0..q.len() / D {
        let own = row(q, query);
        let score = |key: usize| scale * own.iter().zip(row(k, key)).map(|(q, k)| q * k).sum::<f64>();
        let weights: Vec<f64> = (0..end(query)).map(|key| score(key).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let at = |d: usize| weights.iter().enumerate().map(|(key, w)| w * row(v, key)[d]).sum::<f64>();
        output.extend((0..D).map(|d| if sum == 0.0 { 0.0 } else { at(d) / sum }));
        logarithms.push(sum.ln());
    }
    (output, logarithms)
}

struct Head {
    plan: Plan,
    inputs: [Tensor; 3],
    output: Vec<f64>,
    logarithms: Vec<f64>,
}

impl Head {
    /// 20 queries and 15 keys, causal: the first 5 queries see no key.
    fn causal() -> Head {
        let [q, k, v] = [(20, 1), (15, 2), (15, 3)].map(|(rows, seed)| numbers(rows * D, seed));
        let (output, logarithms) = defined(&q, &k, &v, 2.0, |query| (query + 1).saturating_sub(5));
        let tensor = |rows: &[f16]| Tensor::of(rows, &[1, (rows.len() / D) as i64, 1, D as i64]).expect("small");
        let inputs = [tensor(&q), tensor(&k), tensor(&v)];
        Head { plan: plan("head=16\nmask=causal\nlse=true\nsm80_tile=64x16"), inputs, output, logarithms }
    }

    /// Whether an O and logarithms are right.
    fn accepts(&self, output: &[f64], logarithms: &[f64]) -> [bool; 2] {
        let rounded: Vec<f16> = output.iter().map(|x| f16::from_f64(*x)).collect();
        let single: Vec<f32> = logarithms.iter().map(|x| *x as f32).collect();
        let o = Tensor::of(&rounded, &[1, 20, 1, D as i64]).expect("small");
        let lse = Tensor::of(&single, &[1, 20, 1]).expect("small");
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        let verdicts = verify::check(&self.plan, &inputs, &[2.0], &[&o, &lse]).expect("its inputs");
        [verdicts[0].is_right(), verdicts[1].is_right()]
    }
}

#[test]
fn the_definition_is_right() {
    let head = Head::causal();
    assert_eq!(head.accepts(&head.output, &head.logarithms), [true, true]);
    assert!(head.output[..5 * D].iter().all(|x| *x == 0.0) && head.logarithms[4] == f64::NEG_INFINITY);
}

#[test]
fn what_is_off_by_more_than_roundings_is_wrong() {
    let head = Head::causal();
    // Weights of 11 bits, values of at most 1.
    for (at, step) in [(5 * D, 2e-3), (19 * D + 7, -2e-3), (0, 1e-7), (3, f64::NAN), (9 * D, f64::INFINITY)] {
        let mut output = head.output.clone();
        output[at] += step;
        assert_eq!(head.accepts(&output, &head.logarithms), [false, true], "{at} {step}");
    }
    for (at, value) in [(12, head.logarithms[12] + 1e-4), (2, -5e4), (2, f64::NAN), (19, f64::NEG_INFINITY)] {
        let mut logarithms = head.logarithms.clone();
        logarithms[at] = value;
        assert_eq!(head.accepts(&head.output, &logarithms), [true, false], "{at} {value}");
    }
}

#[test]
fn a_key_too_many_is_wrong() {
    let head = Head::causal();
    let rows = |at: usize| head.inputs[at].to_vec::<f16>().expect("f16");
    let (output, logarithms) =
        defined(&rows(0), &rows(1), &rows(2), 2.0, |query| (query + 1).saturating_sub(4).min(15));
    assert_eq!(head.accepts(&output, &logarithms), [false, false]);
}

/// The soft cap of a score, and a score of the head that has no value.
#[test]
fn functions_of_scores_and_sinks_count() {
    let [q, k, v] = [(20, 1), (15, 2), (15, 3)].map(|(rows, seed)| numbers(rows * D, seed));
    let plan = plan("head=16\nsm80_tile=64x16\nscore=|s; cap| cap * tanh(s / cap)\nsinks=true");
    let tensor = |rows: &[f16]| Tensor::of(rows, &[1, (rows.len() / D) as i64, 1, D as i64]).expect("small");
    let sinks = Tensor::of(&[0.75_f32], &[1]).expect("small");
    let inputs = [tensor(&q), tensor(&k), tensor(&v)];
    let accepts = |capped: bool, sink: bool| {
        let row = |of: &[f16], at: usize| of[at * D..(at + 1) * D].iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
        let output = (0..20).flat_map(|query| {
            let score = |key| {
                let score = 2.0 * row(&q, query).iter().zip(row(&k, key)).map(|(q, k)| q * k).sum::<f64>();
                if capped { 1.5 * (score / 1.5).tanh() } else { score }
            };
            let weights: Vec<f64> = (0..15).map(|key| score(key).exp()).collect();
            let sum = weights.iter().sum::<f64>() + if sink { 0.75_f64.exp() } else { 0.0 };
            let at = |d: usize| weights.iter().enumerate().map(|(key, w)| w * row(&v, key)[d]).sum::<f64>();
            (0..D).map(|d| f16::from_f64(at(d) / sum)).collect::<Vec<f16>>()
        });
        let o = tensor(&output.collect::<Vec<f16>>());
        let inputs: Vec<&Tensor> = inputs.iter().chain([&sinks]).collect();
        verify::check(&plan, &inputs, &[2.0, 1.5], &[&o]).expect("its inputs")[0].is_right()
    };
    assert_eq!([accepts(true, true), accepts(false, true), accepts(true, false)], [true, false, false]);
}
