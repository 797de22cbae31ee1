//! Random layouts from a fixed seed.

use cute_layout::layout::{IntTuple, Layout};
use cutlass_sys::oracle::{Batch, Profile};

/// SplitMix64: small, and the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// True once in `n`.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

const EXTENTS: [i64; 12] = [1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 8];
const STRIDES: [i64; 14] = [1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 12, 16, 24];

/// Extents, most of them small.
pub(crate) fn extents(random: &mut Random, rank: usize) -> Vec<i64> {
    (0..rank).map(|_| *random.pick(&EXTENTS)).collect()
}

/// Strides for the extents: compact in a random order, or compact with a gap, or anything. `signed` allows zeros and
/// negative ones.
pub(crate) fn strides(random: &mut Random, extents: &[i64], signed: bool) -> Vec<i64> {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    let kind = random.below(4);
    if kind > 1 {
        random.shuffle(&mut order);
    }
    let mut strides = vec![0; extents.len()];
    let mut current = if kind == 1 { *random.pick(&STRIDES) } else { 1 };
    for i in order {
        strides[i] = if kind == 3 { *random.pick(&STRIDES) } else { current };
        current *= extents[i] * if random.one_in(6) { 2 } else { 1 };
    }
    if signed {
        for stride in &mut strides {
            if random.one_in(24) {
                *stride = 0;
            } else if random.one_in(40) {
                *stride = -*stride;
            }
        }
    }
    strides
}

/// The tuple of a profile with these leaves.
pub(crate) fn tuple(profile: Profile, leaves: &[i64]) -> IntTuple {
    match (profile, leaves) {
        (Profile::P1, &[a]) => a.into(),
        (Profile::P2, &[a, b]) => (a, b).into(),
        (Profile::P3, &[a, b, c]) => (a, b, c).into(),
        (Profile::P4, &[a, b, c, d]) => (a, b, c, d).into(),
        (Profile::P21, &[a, b, c]) => ((a, b), c).into(),
        (Profile::P12, &[a, b, c]) => (a, (b, c)).into(),
        (Profile::P22, &[a, b, c, d]) => ((a, b), (c, d)).into(),
        _ => panic!("{profile:?} with {} leaves", leaves.len()),
    }
}

/// Random layouts of one profile, for both sides.
pub(crate) fn batch(random: &mut Random, profile: Profile, count: usize, signed: bool) -> (Batch, Vec<Layout>) {
    let (mut shape, mut stride, mut layouts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let s = extents(random, profile.leaves());
        let d = strides(random, &s, signed);
        layouts
            .push(Layout::new(tuple(profile, &s), tuple(profile, &d)).expect("positive extents of the same profile"));
        shape.extend(s);
        stride.extend(d);
    }
    (Batch::new(profile, shape, stride).expect("whole layouts"), layouts)
}
