//! Pairs of reductions that one traversal makes: a maximum with its sum of exponentials, a mean with its sum of squares.

use cutemplate::dtype::DType;
use cutemplate::expr::round::bits;
use cutemplate::expr::rows::{Passes, Reading};
use cutemplate::expr::{Accept, Function};
use cutemplate::reference::RowProgram;
use cutemplate::tensor::Tensor;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Drawn, accepted_by, number, some};
use crate::expr::Values;
use crate::expr::device::Device;

/// The parts of a row in chains, joined one after the other.
fn chains(row: &[f32], length: usize) -> impl Iterator<Item = &[f32]> {
    row.chunks(length.max(1))
}

/// The sum of exponentials below the largest, as kernels make it that read a row once; `rescaled`: whether sums follow a new maximum.
fn exponentials(row: &[f32], length: usize, device: &mut Device<f32>, rescaled: bool) -> f32 {
    let largest = |x: f32, y: f32| if x.is_nan() || y.is_nan() { f32::NAN } else { x.max(y) };
    let scale = |device: &mut Device<f32>, sum: f32, from: f32, to: f32| match from == to || !rescaled {
        true => sum,
        false => sum * device.unary("exp", from - to),
    };
    let (mut all, mut highest) = (0.0, f32::NEG_INFINITY);
    for chain in chains(row, length) {
        let (mut sum, mut top) = (0.0, f32::NEG_INFINITY);
        for x in chain {
            let new = largest(top, *x);
            let term = if *x == f32::NEG_INFINITY { 0.0 } else { device.unary("exp", x - new) };
            sum = scale(device, sum, top, new) + term;
            top = new;
        }
        let new = largest(highest, top);
        all = scale(device, all, highest, new) + scale(device, sum, top, new);
        highest = new;
    }
    if highest == f32::NEG_INFINITY && !row.is_empty() { f32::NAN } else { all }
}

/// The sum of squares about the mean, by Chan's formula; `joined`: whether the differences of means count.
fn squares(row: &[f32], length: usize, joined: bool) -> f32 {
    // How many, their sum, the squares about their mean.
    let join = |(n, sum, squares): (f32, f32, f32), (m, other, more): (f32, f32, f32)| {
        if n == 0.0 {
            return (m, other, more);
        }
        let difference = other / m - sum / n;
        let between = if joined { difference * difference * (n * m / (n + m)) } else { 0.0 };
        (n + m, sum + other, squares + more + between)
    };
    let chain = |chain: &[f32]| chain.iter().fold((0.0, 0.0, 0.0), |all, x| join(all, (1.0, *x, 0.0)));
    chains(row, length).map(chain).fold((0.0, 0.0, 0.0), join).2
}

const PAIRS: [&str; 2] = ["sum(exp(a - max(a)))", "|a| { let d = a - mean(a); sum(d * d) }"];

/// Each pair's second value of a row, with what is accepted where one traversal makes it.
fn online(row: &[f32], length: usize, seed: u64, right: bool) -> [(Accept, f32); 2] {
    let found = [exponentials(row, length, &mut Device::new(seed), right), squares(row, length, right)];
    core::array::from_fn(|at| {
        let function: Function = PAIRS[at].parse().expect("a row program");
        let passes = Passes::online(&function, &Reading::of(&function)).expect("a pair");
        assert_eq!((passes.traversals().count(), passes.pairs().len()), (1, 1));
        // A chain, then one addition for each.
        let chains = row.len().div_ceil(length.max(1)) as u64;
        let reference = RowProgram::new(passes).added_in(chains, chains);
        let tensor = Tensor::of(row, &[1, row.len() as i64]).expect("a row");
        (accepted_by(&reference, &[tensor], &[])[0][0], found[at])
    })
}

fn is_accepted((accept, x): &(Accept, f32)) -> bool {
    accept.accepts(DType::F32, bits(DType::F32, f64::from(*x)))
}

proptest! {
    #![proptest_config(some())]

    #[test]
    fn what_one_traversal_makes_of_a_pair_is_accepted(
        row in prop_oneof![vec(number(), 1..40), vec(-10.0f32..10.0, 1..300), vec(990.0f32..1000.0, 1..300)],
        length in 1usize..40,
        seed in any::<u64>(),
    ) {
        for (pair, text) in online(&row, length, seed, true).iter().zip(PAIRS) {
            assert!(is_accepted(pair), "{text}: {pair:?}, {length} of {row:?}");
        }
    }
}

#[test]
fn pairs_are_narrow_and_their_defects_are_refused() {
    let mut drawn = Drawn(7);
    let mut refused = [0, 0];
    for _ in 0..100 {
        let row: Vec<f32> = (0..256).map(|_| (drawn.word() % 4096) as f32 / 512.0 - 4.0).collect();
        for (accept, x) in online(&row, 16, 1, true) {
            let (low, high) = accept.range().expect("a number");
            assert!(high - low <= 1e-3 * f64::from(x), "{accept:?}, {x}");
        }
        for (refused, pair) in refused.iter_mut().zip(online(&row, 16, 1, false)) {
            *refused += u32::from(!is_accepted(&pair));
        }
    }
    assert_eq!(refused, [100, 100]);
}
