//! The layout algebra beside CuTe's own, in one run: `cargo bench -p cute-layout`.
//!
//! CuTe is compiled with `-O2` for run-time integers, of 64 bits as here and of 32 bits as in most kernels, and loops over
//! the same arrays inside C++. Both sides make every result in full and throw it away. CuTe checks nothing; what is
//! refused here is part of the cases named `any`.
//!
//! With run-time integers CuTe's `coalesce` merges nothing: its rate is that of copying.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use cute_layout::layout::{Layout, Tiler, coalesce, complement_in_cosize, composition, logical_divide};
use cutlass_sys::oracle::{self, Batch, Binary, Profile, Unary, Width};

#[path = "../tests/vs_cute/random.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod random;

use random::Random;

const COUNT: usize = 4096;
const WIDTHS: [(Width, &str); 2] = [(Width::Bits64, "cute int64"), (Width::Bits32, "cute int32")];

type Cases<B> = (Batch, Batch, Vec<Layout>, Vec<B>);

type OfTwo<B> = fn(&Layout, &B) -> bool;

/// Random pairs that the operation accepts, or any.
fn pairs<B: From<Layout>>(pa: Profile, pb: Profile, accepts: OfTwo<B>) -> Cases<B> {
    let mut random = Random::new(0x5eed_0004);
    let (mut a, mut b, mut la, mut lb) = (Leaves::default(), Leaves::default(), Vec::new(), Vec::new());
    while la.len() < COUNT {
        let (xs, x) = one(&mut random, pa);
        let (ys, y) = one(&mut random, pb);
        let y = B::from(y);
        if accepts(&x, &y) {
            a.push(xs);
            b.push(ys);
            la.push(x);
            lb.push(y);
        }
    }
    (a.batch(pa), b.batch(pb), la, lb)
}

#[derive(Default)]
struct Leaves(Vec<i64>, Vec<i64>);

impl Leaves {
    fn push(&mut self, (shape, stride): (Vec<i64>, Vec<i64>)) {
        self.0.extend(shape);
        self.1.extend(stride);
    }

    fn batch(self, profile: Profile) -> Batch {
        Batch::new(profile, self.0, self.1).expect("whole layouts")
    }
}

fn one(random: &mut Random, profile: Profile) -> ((Vec<i64>, Vec<i64>), Layout) {
    let s = random::extents(random, profile.leaves());
    let d = random::strides(random, &s, false);
    let layout = Layout::new(random::tuple(profile, &s), random::tuple(profile, &d)).expect("positive extents");
    ((s, d), layout)
}

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(COUNT as u64));
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(30);
    group
}

fn binary<B>(c: &mut Criterion, name: &str, op: Binary, cases: &Cases<B>, ours: OfTwo<B>) {
    let mut group = group(c, name);
    let (a, b, la, lb) = cases;
    group.bench_function("cute-layout", |bench| {
        bench.iter(|| la.iter().zip(lb).filter(|(a, b)| ours(black_box(a), black_box(b))).count());
    });
    for (width, label) in WIDTHS {
        group
            .bench_function(label, |bench| bench.iter(|| oracle::repeat_binary(op, width, a, b).expect("compiled in")));
    }
    group.finish();
}

fn unary(c: &mut Criterion, name: &str, op: Unary, profile: Profile, ours: fn(&Layout) -> bool) {
    let mut group = group(c, name);
    let (a, layouts) = random::batch(&mut Random::new(0x5eed_0005), profile, COUNT, false);
    group.bench_function("cute-layout", |bench| {
        bench.iter(|| layouts.iter().filter(|layout| ours(black_box(layout))).count());
    });
    for (width, label) in WIDTHS {
        group.bench_function(label, |bench| bench.iter(|| oracle::repeat_unary(op, width, &a).expect("compiled in")));
    }
    group.finish();
}

fn crd2idx(c: &mut Criterion, name: &str, profile: Profile) {
    let mut group = group(c, name);
    let mut random = Random::new(0x5eed_0006);
    let (a, layouts) = random::batch(&mut random, profile, COUNT, false);
    let coords: Vec<i64> = layouts.iter().map(|l| random.between(0, l.size() - 1)).collect();
    let ours = || layouts.iter().zip(&coords).fold(0u64, |sum, (l, c)| sum.wrapping_add(l.at(*c).unwrap_or(0) as u64));
    let theirs = oracle::repeat_crd2idx(Width::Bits64, &a, &coords).expect("one for each");
    assert_eq!(ours(), theirs, "both sides sum the same indices");
    group.bench_function("cute-layout", |bench| bench.iter(|| black_box(ours())));
    for (width, label) in WIDTHS {
        group.bench_function(label, |bench| bench.iter(|| oracle::repeat_crd2idx(width, &a, &coords)));
    }
    group.finish();
}

fn layouts(c: &mut Criterion) {
    use Profile::{P1, P2, P3, P4, P12, P22};
    let composed: OfTwo<Layout> = |a, b| black_box(&composition(a, b)).is_ok();
    binary(c, "composition rank 3 o rank 2", Binary::Composition, &pairs(P3, P2, composed), composed);
    binary(c, "composition rank 3 o rank 2, any", Binary::Composition, &pairs(P3, P2, |_, _| true), composed);
    binary(c, "composition nested", Binary::Composition, &pairs(P22, P12, composed), composed);
    let divided: OfTwo<Tiler> = |a, b| black_box(&logical_divide(a, b)).is_ok();
    binary(c, "logical_divide rank 3 by rank 1", Binary::LogicalDivide, &pairs(P3, P1, divided), divided);
    binary(c, "logical_divide rank 3 by rank 1, any", Binary::LogicalDivide, &pairs(P3, P1, |_, _| true), divided);
    unary(c, "coalesce rank 4", Unary::Coalesce, P4, |l| black_box(&coalesce(l)).is_ok());
    unary(c, "coalesce nested", Unary::Coalesce, P22, |l| black_box(&coalesce(l)).is_ok());
    unary(c, "complement rank 1", Unary::Complement, P1, |l| black_box(&complement_in_cosize(l)).is_ok());
    crd2idx(c, "crd2idx rank 3", P3);
    crd2idx(c, "crd2idx nested", P22);
}

criterion_group!(benches, layouts);
criterion_main!(benches);
