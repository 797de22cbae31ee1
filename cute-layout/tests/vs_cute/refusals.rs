//! Needless refusals: how often an operation refuses although a result exists that satisfies its law.
//!
//! Whether one exists is found without the algebra, from values alone. The counts are pinned in `tests/ledger/needless.txt`
//! and may only fall.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use cute_layout::layout::{
    Layout, complement, composition, laws, left_inverse, max_alignment, max_common_vector, right_inverse, upcast,
};
use cutlass_sys::oracle::Profile;

use crate::random::{Random, batch};

const CASES: usize = 4000;

/// How many were refused, and how many of those without need.
#[derive(Default, Clone, Copy)]
struct Count {
    refused: u64,
    needless: u64,
}

/// Whether a function of `0 .. values.len()` with value 0 at 0 is a layout of that size. Every first mode is tried.
fn is_layout(values: &[i64]) -> bool {
    let n = values.len();
    if n == 1 {
        return true;
    }
    (2..=n).filter(|first| n.is_multiple_of(*first)).any(|first| {
        let splits = (0..n).all(|i| {
            let (low, high) = (i % first, i / first);
            values[i] == low as i64 * values[1] + values[high * first]
        });
        splits && is_layout(&values.iter().step_by(first).copied().collect::<Vec<_>>())
    })
}

/// The value at coordinates of independent parts is the sum of the values of the parts, and each part is a layout.
fn representable(extents: &[i64], value: impl Fn(&[i64]) -> i64) -> bool {
    let parts: Vec<Vec<i64>> = (0..extents.len())
        .map(|k| {
            let mut c = vec![0; extents.len()];
            (0..extents[k])
                .map(|i| {
                    c[k] = i;
                    value(&c)
                })
                .collect()
        })
        .collect();
    let mut c = vec![0i64; extents.len()];
    loop {
        let sum: i64 = c.iter().zip(&parts).map(|(i, part)| part[*i as usize]).sum();
        if sum != value(&c) {
            return false;
        }
        let Some(k) = (0..c.len()).find(|&k| c[k] + 1 < extents[k]) else { break };
        c[k] += 1;
        c[..k].fill(0);
    }
    parts.iter().all(|part| is_layout(part))
}

fn ints(tuple: &cute_layout::layout::IntTuple) -> Vec<i64> {
    tuple.flatten().modes().map(|leaf| leaf.as_int().expect("an integer")).collect()
}

/// A layout compatible with B has the values A(B(c)).
fn composition_exists(a: &Layout, b: &Layout) -> bool {
    let strides = ints(b.stride());
    representable(&ints(b.shape()), |c| a.at(c.iter().zip(&strides).map(|(c, d)| c * d).sum()).expect("small"))
}

/// A layout with as many modes as B, of the same sizes, has the values A(B(i)).
fn composition_exists_by_mode(a: &Layout, b: &Layout) -> bool {
    let sizes: Vec<i64> = b.modes().map(|mode| mode.size()).collect();
    representable(&sizes, |c| {
        let index: i64 = b.modes().zip(c).map(|(mode, c)| mode.at(*c).expect("small")).sum();
        a.at(index).expect("small")
    })
}

/// An increasing layout C tiles `0 .. size(A) * size(C)` together with A, for some C that reaches the cotarget. The least
/// number that is not covered must be in C, so there is one candidate for each size.
fn complement_exists(a: &Layout, cotarget: i64) -> bool {
    let image: Vec<i64> = (0..a.size()).map(|i| a.at(i).expect("small")).collect();
    if image.iter().any(|v| *v < 0) {
        return false;
    }
    let mut covered: Vec<bool> = Vec::new();
    let mut steps: Vec<i64> = Vec::new();
    while steps.len() < 256 {
        let next = covered.iter().position(|c| !c).unwrap_or(covered.len());
        if next == steps.len() * image.len() && next as i64 >= cotarget && covered.len() == next && is_layout(&steps) {
            return true;
        }
        for v in &image {
            let at = next + *v as usize;
            if covered.len() <= at {
                covered.resize(at + 1, false);
            }
            if std::mem::replace(&mut covered[at], true) {
                return false;
            }
        }
        steps.push(next as i64);
    }
    false
}

/// A layout of up to two leaves leads back from every value of A. Its first extent and both strides are tried.
fn left_inverse_exists(a: &Layout) -> bool {
    let image: Vec<i64> = (0..a.size()).map(|i| a.at(i).expect("small")).collect();
    let Some(last) = image.iter().max().copied().filter(|_| image.iter().all(|v| *v >= 0)) else { return false };
    (1..=last + 1).any(|extent| {
        (0..a.size()).any(|low| {
            (0..a.size()).any(|high| {
                image.iter().all(|v| {
                    let back = v % extent * low + v / extent * high;
                    back < a.size() && image[back as usize] == *v
                })
            })
        })
    })
}

/// Whether a layout of the same profile covers the same bytes: every way to share the factor among the modes is tried.
fn upcast_exists(layout: &Layout, factor: i64) -> bool {
    fn shared(layout: &Layout, factor: i64, left: i64, parts: &mut Vec<i64>) -> bool {
        let (extents, strides) = (ints(layout.shape()), ints(layout.stride()));
        let at = parts.len();
        if at < extents.len() {
            return (1..=left).filter(|part| left % part == 0 && extents[at] % part == 0).any(|part| {
                parts.push(part);
                let found = shared(layout, factor, left / part, parts);
                parts.pop();
                found
            });
        }
        let modes = || extents.iter().zip(&strides).zip(parts.iter());
        let whole = left == 1 && modes().all(|((s, d), part)| s == part || d * part % factor == 0);
        let result = Layout::from_modes(modes().map(|((s, d), part)| {
            Layout::mode_of(s / part, if s == part { 0 } else { d * part / factor }).expect("an extent of at least 1")
        }));
        let flat = Layout::from_modes(modes().map(|((s, d), _)| Layout::mode_of(*s, *d).expect("a mode")));
        whole && laws::recast(&flat.expect("few modes"), factor, 1, &result.expect("few modes")).is_ok()
    }
    shared(layout, factor, factor, &mut Vec::new())
}

fn count() -> BTreeMap<&'static str, Count> {
    let mut random = Random::new(0x5eed_0003);
    let mut counts: BTreeMap<&'static str, Count> = BTreeMap::new();
    let mut note = |op: &'static str, refused: bool, exists: &dyn Fn() -> bool| {
        let count = counts.entry(op).or_default();
        count.refused += u64::from(refused);
        count.needless += u64::from(refused && exists());
    };
    for pa in Profile::ALL {
        let (_, layouts) = batch(&mut random, pa, CASES, true);
        let (_, plain) = batch(&mut random, pa, CASES, false);
        for pb in [Profile::P1, Profile::P2, Profile::P3, Profile::P12, Profile::P21] {
            let (_, right) = batch(&mut random, pb, CASES, true);
            for (a, b) in layouts.iter().zip(&right) {
                let result = composition(a, b);
                note("composition", result.is_err(), &|| composition_exists(a, b));
                note("composition_by_top_level_mode", result.is_err(), &|| composition_exists_by_mode(a, b));
            }
        }
        for a in &plain {
            let cotarget = *random.pick(&[1, 12, 24, 64, 100]);
            note("complement", complement(a, &cotarget.into()).is_err(), &|| complement_exists(a, cotarget));
            if a.size() <= 16 {
                note("left_inverse", left_inverse(a).is_err(), &|| left_inverse_exists(a));
            }
            let factor = *random.pick(&[2, 3, 4, 8]);
            note("upcast", upcast(a, factor).is_err(), &|| upcast_exists(a, factor));
            note("right_inverse", right_inverse(a).is_err(), &|| true);
            note("max_alignment", max_alignment(a).is_err(), &|| true);
        }
        for (a, b) in plain.iter().zip(&layouts) {
            note("max_common_vector", max_common_vector(a, b).is_err(), &|| true);
        }
    }
    counts
}

#[test]
fn needless_refusals_only_fall() {
    let counts = count();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger/needless.txt");
    let text = std::fs::read_to_string(&path).expect("the pinned counts");
    let pinned: BTreeMap<&str, u64> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(op, n)| (op, n.parse().expect("a count"))).collect();
    let mut now = String::new();
    let mut moved = Vec::new();
    for (op, count) in &counts {
        println!("{op}: {} refused, {} without need", count.refused, count.needless);
        let before = pinned.get(op).copied().unwrap_or(0);
        assert!(count.needless <= before, "{op}: {} needless refusals, pinned at {before}", count.needless);
        if count.needless < before {
            moved.push(*op);
        }
        writeln!(now, "{op} {}", count.needless).expect("a string");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, now).expect("the repository can be written");
    } else {
        assert!(moved.is_empty() && now == text, "fewer needless refusals in {moved:?}: pin them with UPDATE_EXPECT=1");
    }
}
