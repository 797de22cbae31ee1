//! Contract: row programs that others had wrong are right here, for each fill and around each border.

use crate::judge;
use crate::kernels::{Kernel, Tally};
use crate::ptx_set::{PtxSet, as_it_is};
use crate::row_recipes::problems;
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Recipe, Rows};
use cutemplate::settings::Settings;

/// What was wrong elsewhere, and a program that shows it.
const KNOWN: [(&str, &str); 9] = [
    (
        "padding took part in a variance whose mean is far from 0",
        "expr=|x| { let h = x + 1000; let d = h - mean(h); d * rsqrt(mean(d * d) + 1) }\nin=f16:(?,1)\ncolumns=300",
    ),
    ("the weight of an ignored target was read", "preset=cross_entropy\ndtype=bf16\ncolumns=300"),
    ("eps made a kernel compute in f64", "preset=rms_norm\ndtype=f16\ncolumns=129"),
    (
        "a softmax without its maximum overflowed",
        "expr=|x| { let h = x * 2000; let e = exp(h - max(h)); e / sum(e) }\nin=bf16:(?,1)\ncolumns=257",
    ),
    ("a row sum overflowed in f16", "expr=|x| sum(x * 30000)\nin=f16:(?,1)\nout=f32:1\ncolumns=513"),
    (
        "rows below a finite sentinel became zeros",
        "expr=|x| { let h = x - 1e6; let e = exp(h - max(h)); e / sum(e) }\nin=f32:(?,1)\ncolumns=33",
    ),
    (
        "a maximum lost NaN in a row of -inf",
        "expr=|x| { let h = select(col() == 3, x * inf, -inf); let e = exp(h - max(h)); (e / sum(e), max(h)) }\n\
         in=f32:(?,1)\nout=f32:(?,1), f32:1\ncolumns=65",
    ),
    ("of equal ones the last was taken", "expr=|x| argmax(select(x > 0, 1, 0))\nin=i8:(?,1)\nout=i32:1\ncolumns=1025"),
    (
        "rows that are read again were overwritten in place",
        "expr=|x| { let d = x - mean(x); d / (1 + max(abs(d))) }\nin=f32:(?,1)\ncolumns=200\nhold=memory\nthreads=32\nchunks=1",
    ),
];

/// CTAs of a row without a vector of it: others counted theirs twice.
const CLUSTERS: [&str; 4] = [
    "preset=rms_norm\ndtype=bf16\ncolumns=64\ncluster=8",
    "preset=softmax\ndtype=f16\ncolumns=1100\ncluster=2",
    "preset=argmax\ndtype=bf16\ncolumns=4096\ncluster=8\nthreads=128",
    "preset=layer_norm\ndtype=f32\ncolumns=1030\ncluster=4\nhold=shared\nthreads=128\nchunks=1",
];

/// Rows that wait in shared memory: by `cp.async`, and element by element; rows that are read tile by tile, and tiles that are by themselves.
const SHARED: [&str; 7] = [
    "expr=|x| { let h = select(col() == 3, x * inf, -inf); let e = exp(h - max(h)); (e / sum(e), max(h)) }\n\
     in=f32:(?,1)\nout=f32:(?,1), f32:1\ncolumns=65\nhold=memory\nthreads=32\nchunks=1",
    "expr=|x| (argmax(x), argmin(x * x))\nin=f16:(?,1)\nout=i32:1, i32:1\ncolumns=600\nhold=memory\nthreads=32\nchunks=2",
    "expr=|x| { let m = max_group16(abs(x)); (saturate(e4m3, x / m), m, x + width()) }\nin=f16:(?,1)\n\
     out=e4m3:(?,1), f32:(?,1), f16:(?,1)\ncolumns=200\nthreads=4\nchunks=1",
    "expr=|x, y| (x * y, sum_column(x - y))\nin=f16:(?,1), f32:(?,1)\nout=f16:(?,1), f32:1\ncolumns=200\nthreads=8\nctas=9",
    "preset=softmax\ndtype=bf16\ncolumns=2048\nhold=shared\nthreads=64\nchunks=1",
    "preset=residual_rms_norm\ndtype=f32\ncolumns=1030\nhold=shared\nthreads=32\nchunks=2",
    "expr=|x, y| (x - max(y), argmin(x * y))\nin=i8:(?,1), f64:(?,?)\nout=f32:(?,1), i32:1\ncolumns=600\nhold=shared\nthreads=16",
];

/// Rows of which no element is read, or moved.
const UNREAD: [&str; 2] = [
    "expr=|x, y| y * 2\nin=f32:(?,1), bf16:?\nout=f32:1\ncolumns=4100",
    "expr=|x, z; beta| (z, -beta)\nin=bool:(1,?), f32:?\nout=bool:(?,1), bf16:(?,?)\ncolumns=4100\nthreads=256\nhold=shared",
];

static OF_ALL: PtxSet = PtxSet::new(|| kernels(&settings(), &Targets::default()).1.into_iter().map(as_it_is).collect());
static OF_HOPPER: PtxSet = PtxSet::new(|| kernels(&CLUSTERS, &hopper()).1.into_iter().map(as_it_is).collect());

fn hopper() -> Targets {
    Targets::new([Arch::Sm90a]).expect("not empty")
}

fn settings() -> Vec<&'static str> {
    KNOWN.iter().map(|(_, settings)| *settings).chain(SHARED).chain(UNREAD).collect()
}

fn kernels(settings: &[&str], targets: &Targets) -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let recipe = |text: &&str| Rows::from_settings(&Settings::parse_lines(text)).expect("settings");
    let kernels = tally.plan("known_rows", (0..).zip(settings.iter().map(recipe)), targets);
    assert_eq!(kernels.len(), settings.len(), "{tally}");
    (tally, kernels)
}

#[test]
fn programs_that_others_had_wrong_are_right() {
    let (mut tally, kernels) = kernels(&settings(), &Targets::default());
    judge::run(&mut tally, &OF_ALL, &kernels, |kernel| problems(kernel, 12, 4000));
    tally.finish("known programs");
}

#[test]
fn clusters_with_more_ctas_than_vectors_count_each_column_once() {
    let (mut tally, kernels) = kernels(&CLUSTERS, &hopper());
    judge::run(&mut tally, &OF_HOPPER, &kernels, |kernel| problems(kernel, 8, 4000));
    tally.finish("wide clusters");
}
