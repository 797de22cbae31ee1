//! Contract: where a condition says that a function is -inf for all numbers within bounds, it is, whatever its other inputs are; of the
//! masks that people use, no block without a key is missed.

use cutemplate::expr::{Bounds, Compute, Emptied, Evaluator, Function};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::expr::config;

/// The score, which nobody knows, and batch, head, query and key.
const INPUTS: &str = "|s, b, h, q, k; w, p|";
const KNOWN: &[usize] = &[1, 2, 3, 4];

/// Scores of every kind.
const SCORES: [f64; 6] = [0.0, -3.5, 3e38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// Conditions of which random masks are made; some depend on the score, or on what is not monotone.
const ATOMS: &[&str] = &[
    "k <= q",
    "q - k < w",
    "k < p",
    "abs(q - k) <= w",
    "cast(i32, q / 8) == cast(i32, k / 8)",
    "cast(i32, q / p) != cast(i32, k / p)",
    "h < 2",
    "b != 1",
    "k * 2 > q + p",
    "h * (q - k) >= w",
    "max(k, p) > min(q, w)",
    "q - k < select(h < 2, w, p)",
    "select(b == 0, q, select(h > 1, k, p)) <= w",
    "relu(w - k) == 0",
    "q / (k - p) > 1",
    "-k > -16777217",
    "cast(f16, k * 4097) >= w",
    "saturate(i8, q + 100) - k < w",
    "s > 0",
    "exp(k) > p",
    "nan < k",
];

/// Functions of a condition; the last do not empty anything.
const FORMS: &[&str] = &[
    "select(C, s, -inf)",
    "select(C, -inf, s)",
    "select(C, select(D, s * 2, -inf), -inf)",
    "select(C, s, min(s, select(D, 3, -inf)))",
    "max(select(C, s, -inf), select(D, s, -inf))",
    "select(C, s, -inf) - 0.5 * abs(q - k)",
    "w * q + select(C, s, -inf)",
    "select(C, s, -inf) + select(D, s, -inf)",
    "select(C, s, -1e30)",
];

fn condition() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(ATOMS).prop_map(str::to_owned);
    atom.prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

fn function() -> impl Strategy<Value = Function> {
    let form = prop::sample::select(FORMS);
    let text = (form, condition(), condition()).prop_map(|(form, c, d)| form.replace('C', &c).replace('D', &d));
    text.prop_map(|text| format!("{INPUTS} {text}").parse().expect("the grammar"))
}

fn emptied(function: &Function) -> Option<Emptied> {
    function.check(Compute::F32).expect("f32 has it").emptied(KNOWN)
}

/// The first numbers of a batch, head, query and key, and how many.
type Block = [(i32, i32); 4];

fn holds(emptied: &Emptied, block: &Block, scalars: &[f64]) -> bool {
    let between = |(first, count): &(i32, i32)| Bounds::between(f64::from(*first), f64::from(first + count - 1));
    let bounds: Vec<Bounds> = core::iter::once(Bounds::point(f64::NAN)).chain(block.iter().map(between)).collect();
    emptied.holds(&bounds, scalars).expect("five inputs, two scalars")
}

/// The first place of a block whose score is not -inf, if there is one.
fn seen(evaluator: &mut Evaluator, block: &Block) -> Option<[f64; 5]> {
    let [b, h, q, k] = block.map(|(first, count)| first..first + count);
    for places in b.flat_map(|b| h.clone().map(move |h| (b, h))) {
        for (q, k) in q.clone().flat_map(|q| k.clone().map(move |k| (q, k))) {
            for s in SCORES {
                let inputs = [s, places.0.into(), places.1.into(), q.into(), k.into()];
                let accept = evaluator.evaluate(&inputs).expect("five inputs")[0];
                if accept.may_be_nan() || accept.range() != Some((f64::NEG_INFINITY, f64::NEG_INFINITY)) {
                    return Some(inputs);
                }
            }
        }
    }
    None
}

fn block() -> impl Strategy<Value = Block> {
    let (places, count) = (-20..60, prop_oneof![Just(1), 1..9]);
    // Numbers beyond 2^24 are rounded.
    let near = prop_oneof![8 => places.clone(), 1 => Just(16_777_210)];
    ((0..3, 1..3), (0..4, 1..3), (near.clone(), count.clone()), (near, count)).prop_map(|(b, h, q, k)| [b, h, q, k])
}

fn scalar() -> impl Strategy<Value = f64> {
    let special =
        prop::sample::select(vec![0.0, -1.0, 0.5, 16_777_216.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 3e38]);
    prop_oneof![3 => (-10..40).prop_map(f64::from), 1 => special]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_said_to_be_empty_is(
        function in function(),
        blocks in vec(block(), 4),
        scalars in prop::array::uniform2(scalar()),
    ) {
        if let Some(emptied) = emptied(&function) {
            let mut evaluator = function.check(Compute::F32).expect("f32 has it").evaluator(&scalars).expect("two scalars");
            for block in blocks.iter().filter(|block| holds(&emptied, block, &scalars)) {
                prop_assert_eq!(seen(&mut evaluator, block), None, "{} {:?} {:?}", function, scalars, block);
            }
        }
    }
}

/// Blocks of 8 queries and 8 keys, of several heads, each with what is right and what is said.
#[test]
fn no_empty_block_of_a_usual_mask_is_missed() {
    for (mask, scalars) in [
        ("k <= q", [0.0, 0.0]),
        ("k <= q && q - k <= w", [13.0, 0.0]),
        ("abs(q - k) <= w", [5.0, 0.0]),
        ("k <= q || k < p", [0.0, 11.0]),
        ("k <= q && q - k < w || k < p", [3.0, 4.0]),
        ("cast(i32, q / 16) == cast(i32, k / 16)", [0.0, 0.0]),
        ("cast(i32, q / w) == cast(i32, k / w) && k <= q", [24.0, 0.0]),
        ("k <= q && q >= p", [0.0, 19.0]),
        ("k <= q && q - k < select(h < 1, w, p)", [4.0, 30.0]),
        ("h < 1 && q - k < w || h >= 1 && k < p", [4.0, 9.0]),
        ("cast(i32, k / 8) - 2 * cast(i32, k / 16) == 0", [0.0, 0.0]),
        ("b < 1 || k <= q", [0.0, 0.0]),
    ] {
        let function: Function = format!("{INPUTS} select({mask}, s, -inf)").parse().expect("the grammar");
        let emptied = emptied(&function).expect("a mask");
        let mut evaluator = function.check(Compute::F32).expect("f32 has it").evaluator(&scalars).expect("two scalars");
        let mut empty = 0;
        for (q, k) in (0..6).flat_map(|q| (0..6).map(move |k| (8 * q, 8 * k))) {
            for (b, h) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                let block = [(b, 1), (h, 1), (q, 8), (k, 8)];
                let is_empty = seen(&mut evaluator, &block).is_none();
                assert_eq!(holds(&emptied, &block, &scalars), is_empty, "{mask}: {block:?}");
                empty += usize::from(is_empty);
            }
        }
        assert!(empty > 10, "{mask}: {empty} of 144 blocks are empty");
    }
}

/// Conditions on the score or on elements say nothing; nor does a function that computes in another type.
#[test]
fn what_nobody_knows_empties_nothing() {
    for text in [
        "s",
        "select(s > 0, s, -inf)",
        "select(k <= q, s, -1e30)",
        "s - abs(q - k)",
        "select(exp(k) > p, s, -inf)",
        "-inf",
    ] {
        let function: Function = format!("{INPUTS} {text}").parse().expect("the grammar");
        assert!(emptied(&function).is_none(), "{text}");
    }
    let documents: Function =
        "|s, b, h, q, k, mine, other| select(mine == other && k <= q, s, -inf)".parse().expect("the grammar");
    let checked = documents.check(Compute::F32).expect("f32 has it");
    let holds = |q: (f64, f64), k: (f64, f64)| {
        let [zero, any] = [0.0, f64::NAN].map(Bounds::point);
        let bounds = [any, zero, zero, Bounds::between(q.0, q.1), Bounds::between(k.0, k.1), any, any];
        checked.emptied(KNOWN).expect("the other half").holds(&bounds, &[]).expect("seven inputs")
    };
    assert!(holds((0.0, 7.0), (8.0, 15.0)) && !holds((8.0, 15.0), (0.0, 7.0)));
    assert!(documents.check(Compute::F64).expect("f64 has it").emptied(KNOWN).is_none());
}
