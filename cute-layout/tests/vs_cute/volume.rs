//! Volume: compositions and coordinates against CuTe compiled for run-time integers, a quarter of a million of each, and a million
//! where `CUTEMPLATE_WHOLE=1` asks for them.
//!
//! CuTe checks nothing where integers are known at run time only, so three are compared at every coordinate: the
//! definition, CuTe's result, and ours. What we accept is the definition. Where CuTe is the definition, we accept. The rest
//! is counted under a name, and the counts are pinned.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cute_layout::layout::{
    Layout, LayoutError, complement_in_cosize, composition, crd2crd, crd2idx_int, idx2crd, logical_divide,
    logical_product, make_layout, make_layout_right, right_inverse, zipped_divide,
};
use cutlass_sys::oracle::{self, Batch, Binary, Profile, Unary, Values};

use crate::random::{self, Random, tuple};
use crate::variables;

/// The most values of a result that are compared: more than any result here has.
const MOST: usize = 1 << 12;
/// The same for a composition, which is as large as its right operand.
const MOST_COMPOSED: usize = 1 << 9;
const CHUNK: usize = 256;

/// Names of outcomes, each with how often it was seen.
#[derive(Default)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn add(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }

    fn merge(&mut self, other: Tally) {
        for (name, count) in other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|(name, count)| format!("{name} {count}\n")).collect()
    }
}

/// Compares one result of ours and of CuTe with the definition, and names what was seen.
fn compare(
    case: &dyn Fn() -> String,
    ours: &Result<Layout, LayoutError>,
    cute: Option<&[i64]>,
    cute_size: Option<i64>,
    truth: Option<&[i64]>,
) -> &'static str {
    if let (Ok(layout), Some(truth)) = (ours, truth) {
        assert_eq!(layout.size(), truth.len() as i64, "{}: {layout} is of another size", case());
        for (i, value) in truth.iter().enumerate() {
            assert_eq!(layout.at(i as i64).as_ref(), Ok(value), "{}: {layout} at {i}", case());
        }
    }
    let (Some(cute), Some(size)) = (cute, cute_size) else {
        return "CuTe divides by a run-time stride of 0";
    };
    // Where there is no independent definition of the operation, ours is checked by the laws, and CuTe against it.
    let ours_values: Option<Vec<i64>> = match (truth, ours) {
        (None, Ok(layout)) => Some((0..layout.size()).map(|i| layout.at(i).expect("small")).collect()),
        _ => None,
    };
    let truth = truth.or(ours_values.as_deref());
    let right = truth.is_some_and(|truth| size == truth.len() as i64 && cute == truth);
    match (ours, right) {
        (Ok(_), true) => "the same",
        (Ok(_), false) => "CuTe checks nothing and is wrong, where a layout exists",
        (Err(_), false) => "CuTe checks nothing and is wrong, where no layout exists",
        (Err(error), true) => panic!("{}: refused without need\n{error}", case()),
    }
}

/// Runs a binary operation on random pairs.
fn pairs(
    random: &mut Random,
    tally: &mut Tally,
    op: Binary,
    (pa, pb): (Profile, Profile),
    cases: usize,
    ours: fn(&Layout, &Layout) -> Result<Layout, LayoutError>,
) {
    let most = if op == Binary::Composition { MOST_COMPOSED } else { MOST };
    let mut left = cases;
    while left > 0 {
        let count = left.min(CHUNK);
        left -= count;
        let signed = op == Binary::Composition;
        let (a, la) = random::batch(random, pa, count, signed);
        let (b, lb) = random::batch(random, pb, count, signed);
        let cute = oracle::binary(op, &a, &b, most).expect("compiled in");
        let mut truth = Vec::new();
        for i in 0..count {
            truth.clear();
            if op == Binary::Composition {
                truth.extend((0..lb[i].size()).map(|j| la[i].at(lb[i].at(j).expect("small")).expect("small")));
            }
            let truth = (op == Binary::Composition).then_some(truth.as_slice());
            let case = || format!("{op:?}({}, {})", a.text(i), b.text(i));
            let seen = compare(&case, &ours(&la[i], &lb[i]), cute.of(i), cute.size(i), truth);
            tally.add(format!("{op:?}: {seen}:"));
        }
    }
}

/// Runs a unary operation on random layouts; ours and CuTe's must be the same function.
fn singles(
    random: &mut Random,
    tally: &mut Tally,
    op: Unary,
    profile: Profile,
    cases: usize,
    ours: fn(&Layout) -> Result<Layout, LayoutError>,
) {
    let (mut a, mut layouts) = random::batch(random, profile, cases, false);
    if op == Unary::RightInverse {
        // The first stride is a static 1 for CuTe.
        (a, layouts) = with_unit_stride(&layouts, profile);
    }
    let cute = oracle::unary(op, &a, MOST).expect("compiled in");
    for (i, layout) in layouts.iter().enumerate() {
        let result = ours(layout).unwrap_or_else(|e| panic!("{op:?}({layout}): {e}"));
        let seen = cute.of(i).expect("no zeros");
        if op == Unary::Complement && layout.size() == 1 && cute.size(i) != Some(result.size()) {
            tally.add(format!("{op:?}: CuTe keeps a run-time extent of 1 for a mode:"));
            continue;
        }
        assert_same_function(&format!("{op:?}({layout})"), op, &result, seen, &cute, i);
        tally.add(format!("{op:?}: the same:"));
    }
}

fn assert_same_function(case: &str, op: Unary, ours: &Layout, seen: &[i64], cute: &Values, i: usize) {
    if op == Unary::RightInverse {
        // CuTe stops at the first run-time stride: its result is the beginning of ours.
        assert!(ours.size() >= seen.len() as i64, "{case}: {ours} is shorter than CuTe's");
    } else {
        assert_eq!(Some(ours.size()), cute.size(i), "{case}: {ours} is of another size");
    }
    for (j, value) in seen.iter().enumerate() {
        assert_eq!(ours.at(j as i64).as_ref(), Ok(value), "{case}: {ours} at {j}");
    }
}

fn with_unit_stride(layouts: &[Layout], profile: Profile) -> (Batch, Vec<Layout>) {
    let ints = |t: &cute_layout::layout::IntTuple| -> Vec<i64> {
        t.flatten().modes().map(|leaf| leaf.as_int().expect("an integer")).collect()
    };
    let (mut shape, mut stride, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for layout in layouts {
        let s = ints(layout.shape());
        let mut d = ints(layout.stride());
        d[0] = 1;
        out.push(Layout::new(tuple(profile, &s), tuple(profile, &d)).expect("as before"));
        shape.extend(s);
        stride.extend(d);
    }
    (Batch::new(profile, shape, stride).expect("as before"), out)
}

/// Coordinates: integers, some past the end, and tuples congruent to the shape.
fn coordinates(random: &mut Random, tally: &mut Tally, profile: Profile, cases: usize) {
    let (a, layouts) = random::batch(random, profile, cases, true);
    let leaves = profile.leaves();
    let indices: Vec<i64> = layouts.iter().map(|l| random.between(0, 2 * l.size())).collect();
    let coords: Vec<i64> = (0..cases * leaves).map(|_| random.between(0, 9)).collect();
    let by_int = oracle::crd2idx(&a, &indices).expect("one for each");
    let by_tuple = oracle::crd2idx_congruent(&a, &coords).expect("one for each leaf");
    let split = oracle::idx2crd(&a, &indices).expect("one for each");
    let joined = oracle::crd2crd(&a, &coords).expect("one for each leaf");
    let cosizes = oracle::cosize(&a).expect("always");
    for (i, layout) in layouts.iter().enumerate() {
        let leaf = i * leaves..(i + 1) * leaves;
        let coord = tuple(profile, &coords[leaf.clone()]);
        assert_eq!(layout.at(indices[i]), Ok(by_int[i]), "crd2idx({}, {layout})", indices[i]);
        assert_eq!(crd2idx_int(&coord, layout), Ok(by_tuple[i]), "crd2idx({coord}, {layout})");
        let back = idx2crd(&indices[i].into(), layout.shape());
        assert_eq!(back, Ok(tuple(profile, &split[leaf])), "idx2crd({}, {})", indices[i], layout.shape());
        let index = crd2crd(&coord, layout.shape(), &layout.size().into());
        assert_eq!(index, Ok(joined[i].into()), "crd2crd({coord}, {}, {})", layout.shape(), layout.size());
        assert_eq!(layout.cosize(), Ok(cosizes[i]), "cosize({layout})");
        tally.add("coordinates: the same:");
    }
}

/// A part of the cases, with random numbers of its own.
type Part = Box<dyn Fn(&mut Random, &mut Tally) + Send + Sync>;

/// One case in so many of the whole.
fn parts(one_in: usize) -> Vec<Part> {
    let number = move |whole: usize| whole.div_ceil(one_in);
    let left = || Profile::ALL.into_iter().filter(|p| *p != Profile::P12);
    let pairs_of: Vec<_> = left().flat_map(|a| Profile::RIGHT.iter().map(move |b| (a, *b))).collect();
    let each = number(1_000_000).div_ceil(pairs_of.len());
    let mut parts: Vec<Part> = Vec::new();
    for pair in pairs_of {
        parts.push(Box::new(move |r, t| pairs(r, t, Binary::Composition, pair, each, composition)));
    }
    for profile in Profile::ALL {
        let pair = (profile, Profile::P1);
        let divide = |a: &Layout, b: &Layout| logical_divide(a, &b.clone().into());
        parts.push(Box::new(move |r, t| pairs(r, t, Binary::LogicalDivide, pair, number(15_000), divide)));
        let zipped = |a: &Layout, b: &Layout| zipped_divide(a, &b.clone().into());
        parts.push(Box::new(move |r, t| pairs(r, t, Binary::ZippedDivide, pair, number(5_000), zipped)));
        for (op, ours) in unary_operations() {
            parts.push(Box::new(move |r, t| singles(r, t, op, profile, number(10_000), ours)));
        }
        parts.push(Box::new(move |r, t| coordinates(r, t, profile, number(1_000_000).div_ceil(Profile::ALL.len()))));
    }
    parts.push(Box::new(move |r, t| {
        singles(r, t, Unary::Complement, Profile::P1, number(20_000), complement_in_cosize)
    }));
    for profile in Profile::RIGHT {
        let product = |a: &Layout, b: &Layout| logical_product(a, &b.clone().into());
        let pair = (Profile::P1, profile);
        parts.push(Box::new(move |r, t| pairs(r, t, Binary::LogicalProduct, pair, number(20_000), product)));
    }
    parts
}

#[test]
fn compositions_and_coordinates_of_all_profiles() {
    let whole = variables::switch("CUTEMPLATE_WHOLE");
    let (parts, next, all) = (parts(if whole { 1 } else { 4 }), AtomicUsize::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(number) else { break };
            let mut tally = Tally::default();
            part(&mut Random::new(0x5eed_0001 + number as u64), &mut tally);
            all.lock().expect("no worker panics with it").merge(tally);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let tally = all.into_inner().expect("no worker panics with it");
    let counted = if whole {
        expect_test::expect_file!["../ledger/volume_whole.txt"]
    } else {
        expect_test::expect_file!["../ledger/volume.txt"]
    };
    counted.assert_eq(&tally.text());
}

type OfOne = fn(&Layout) -> Result<Layout, LayoutError>;

fn unary_operations() -> [(Unary, OfOne); 5] {
    [
        (Unary::Layout, |l| Ok(l.clone())),
        (Unary::Coalesce, cute_layout::layout::coalesce),
        (Unary::MakeLayout, |l| make_layout(l.shape())),
        (Unary::MakeLayoutRight, |l| make_layout_right(l.shape())),
        (Unary::RightInverse, right_inverse),
    ]
}
