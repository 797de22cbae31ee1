//! Contract: sums along rows are refused with a reason, or right as PTX for every shape, layout, address and input:
//! sums of integers to the bit, of others within the bound of any order of additions.

use crate::judge::{self, Defect};
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;
use crate::whole;
use cutemplate::arch::Targets;
use cutemplate::recipe::{Recipe, Sum};
use cutemplate::settings::Settings;

fn recipe(settings: &str) -> Sum {
    Sum::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

fn own(count: u64, elements: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| kernel.problems(count, elements).collect()
}

fn kernels() -> (Tally, Vec<Kernel>) {
    let more = [
        "expr=exp(a) * b\nin=f32:(1,?), f32:(0,0)\nout=f64\nthreads=32\nby=block",
        "expr=|y, n, lda; m| relu(m * y + n) - lda\nin=i8:(?,1), bf16:(?,0), f32:(?,?)\nout=i32\nthreads=1024\nby=block",
        "expr=a\nin=u8:(?,1)\nout=f32\nthreads=1024",
    ];
    let mut tally = Tally::default();
    let settings = Sum::CATALOGUE.iter().copied().chain(more);
    let kernels = tally.plan("sum", (0..).zip(settings.map(recipe)), &Targets::default());
    assert_eq!(kernels.len(), 6, "{tally}");
    (tally, kernels)
}

/// What the tests of this module run as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    kernels().1.into_iter().map(as_it_is).chain(judge::planted(DEFECTS, recipe)).collect()
}

#[test]
fn sums_are_refused_or_right() {
    let (mut tally, kernels) = kernels();
    judge::run(&mut tally, &KERNELS, &kernels, own(whole::or(40, 12), 6000));
    tally.finish("sums");
}

const DEFECTS: &[Defect] = &[
    Defect { what: "a lane is left out", settings: "expr=a", from: "lanes = Lanes / 2", to: "lanes = Lanes / 4" },
    Defect { what: "one row too many", settings: "expr=a", from: "m < params.m", to: "m <= params.m" },
    Defect { what: "one column too many", settings: "expr=a\nby=block", from: "< width", to: "<= width" },
    Defect { what: "the last tile is left out", settings: "expr=a\nby=block", from: "i < tiles", to: "i < tiles - 1" },
    Defect {
        what: "sums of warps are read before they are there",
        settings: "expr=a\nby=block",
        from: "__syncthreads();",
        to: "",
    },
];

#[test]
fn planted_defects_are_found() {
    judge::find(DEFECTS, &KERNELS, recipe, own(12, 4000));
}
