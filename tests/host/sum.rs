//! Contract: sums along rows are refused with a reason, or right as PTX and as C++ for every shape, layout, address and input:
//! sums of integers to the bit, of others within the bound of any order of additions. The same launch gives the same bits.

use half::f16;

use crate::host_common::options;
use crate::judge::{self, Defect};
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;
use crate::whole;
use cutemplate::arch::Targets;
use cutemplate::dtype::DType;
use cutemplate::exec::cxx::{self, Mode};
use cutemplate::expr::Function;
use cutemplate::recipe::sum::{Group, SumArgs};
use cutemplate::recipe::{Recipe, Sum};
use cutemplate::settings::Settings;
use cutemplate::view::{View, ViewLayout, ViewMut};

fn recipe(settings: &str) -> Sum {
    Sum::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

fn own(count: u64, elements: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| kernel.problems(count, elements).collect()
}

fn kernels() -> (Tally, Vec<Kernel>) {
    let more = [
        "expr=exp(a) * b\nin=f32:(1,?), f32:(0,0)\nout=f64\nthreads=32\nby=block",
        "expr=|a, b, c; alpha| relu(alpha * a + b) - c\nin=i8:(?,1), bf16:(?,0), f32:(?,?)\nout=i32\nthreads=1024\nby=block",
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
    judge::run_ptx(&mut tally, &KERNELS, &kernels, own(whole::or(40, 12), 6000));
    judge::run(&mut tally, &kernels[..2], Mode::Bounds, own(6, 1500));
    tally.finish("sums");
}

const DEFECTS: &[Defect] = &[
    Defect { what: "a lane is left out", mode: None, settings: "expr=a", from: "lanes = 16", to: "lanes = 8" },
    Defect { what: "one row too many", mode: None, settings: "expr=a", from: "m >= params.m", to: "m > params.m" },
    Defect {
        what: "one column too many",
        mode: None,
        settings: "expr=a\nby=block",
        from: "n < params.n",
        to: "n <= params.n",
    },
    Defect {
        what: "the first warp counts twice",
        mode: None,
        settings: "expr=a\nby=block",
        from: "int warp = 1",
        to: "int warp = 0",
    },
    Defect {
        what: "sums of warps are read before they are there",
        mode: None,
        settings: "expr=a\nby=block",
        from: "__syncthreads();",
        to: "",
    },
];

#[test]
fn planted_defects_are_found() {
    judge::find(DEFECTS, &KERNELS, recipe, own(12, 4000));
}

/// Rows without elements, infinities and NaN, and 1000 terms that no order but one adds up to the same bits.
#[test]
fn rows_may_be_empty_and_the_order_is_fixed() {
    for by in [Group::Warp, Group::Block] {
        let sum = Sum { by, ..Sum::new(Function::binary(|a, b| a * b), DType::F16) };
        let plan = sum.plan(&Targets::default()).expect("legal");
        let kernel: cxx::Kernel<Sum> = cxx::Kernel::compile(plan, Mode::Plain, &options()).expect("compiles");
        let launch = |a: &[f16], n: i64| {
            let mut y = [7.0_f32; 3];
            let view = || View::host(a, [3, n], n.max(1));
            let sums = ViewMut::host_strided(&mut y, ViewLayout::strided(&[3], &[1]).expect("small"));
            kernel
                .launch(SumArgs::new().input(view()).input(view()).output(sums))
                .unwrap_or_else(|e| panic!("{by}: {e}"));
            y.map(f32::to_bits)
        };
        assert_eq!(launch(&[], 0), [0; 3], "{by}");
        let mut a: Vec<f16> = (0..3000).map(|i| f16::from_f32((i % 613) as f32 * 0.37 - 100.0)).collect();
        (a[500], a[1500]) = (f16::INFINITY, f16::NAN);
        let [up, nan, rest] = launch(&a, 1000).map(f32::from_bits);
        assert!(up == f32::INFINITY && nan.is_nan() && rest.is_finite(), "{by}: {up}, {nan}, {rest}");
        // No two launches differ, whatever else they read.
        let again = a.clone();
        assert_eq!(launch(&again, 1000)[2], rest.to_bits(), "{by}");
    }
}
