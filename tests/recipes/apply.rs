//! Contract: an elementwise recipe of any function, types, strides and settings is refused with a reason, or its kernel is
//! right as PTX for every shape, layout, address and input, and touches nothing else.
//!
//! `CUTEMPLATE_APPLY_RECIPES` sets how many recipes are drawn, for a longer run.

use std::collections::BTreeSet;

use crate::{judge, whole};

use crate::kernels::apply::{drawn, systematic};
use crate::kernels::{Kernel, Problem, Tally};
use cutemplate::arch::Targets;
use cutemplate::recipe::{ElementwiseApply, Recipe};
use cutemplate::settings::Settings;
use judge::Defect;

use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;
use crate::variables;

fn recipes() -> u64 {
    variables::number("CUTEMPLATE_APPLY_RECIPES").unwrap_or(whole::or(100, 16))
}

/// Problems of a kernel's own.
fn own(count: u64, elements: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| kernel.problems(count, elements).collect()
}

fn random() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let kernels = tally.plan("apply", (0..recipes()).map(|i| (i, drawn(i))), &Targets::default());
    (tally, kernels)
}

#[test]
fn random_recipes_are_refused_or_right() {
    let (mut tally, kernels) = random();
    judge::run(&mut tally, &KERNELS, &kernels, own(whole::or(10, 6), 5000));
    tally.finish("random recipes");
}

/// Whether a kernel of the grid is compiled in any run: those in tiles have every second class of layouts, the others the classes
/// between, and all have what few have.
fn stands_for_others(kernel: &Kernel) -> bool {
    let variant = kernel.plan.settings().get("variant");
    let tiled = matches!(variant, Some("tv" | "remapped"));
    let rare = variant == Some("transposed") || kernel.plan.operands()[0].strides.len() > 3;
    // A variant has an even number of classes.
    rare || kernel.index.is_multiple_of(2) != tiled
}

/// The variants, types and classes of layouts of kernels.
fn kinds(kernels: &[Kernel]) -> BTreeSet<String> {
    let of = |kernel: &Kernel| {
        let operands = kernel.plan.operands();
        let strides: Vec<_> = operands.iter().map(|operand| &operand.strides).collect();
        let variant = kernel.plan.settings().get("variant").expect("a variant");
        [variant.to_owned(), operands[0].dtype.to_string(), format!("{strides:?}")]
    };
    kernels.iter().flat_map(of).collect()
}

fn grid() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let mut kernels = tally.plan("grid", (0..).zip(systematic(11)), &Targets::default());
    let all = kinds(&kernels);
    kernels.retain(|kernel| whole::is_asked_for() || stands_for_others(kernel));
    assert_eq!(kinds(&kernels), all);
    (tally, kernels)
}

#[test]
fn every_variant_and_layout_is_refused_or_right() {
    let (mut tally, kernels) = grid();
    judge::run(&mut tally, &KERNELS, &kernels, own(whole::or(10, 4), 5000));
    tally.finish("variants and layouts");
}

const ROWS: &str = "expr=a * 2 - b\nin=f16:(?,1), f16:(?,1)";
const TURNED: &str = "expr=a * 2 - b\nin=f16:(1,?), f16:(?,1)\nout=f16:(?,1)\nvariant=transposed";

const DEFECTS: &[Defect] = &[
    Defect { what: "another function", settings: "expr=a * 2 - b\nvariant=naive", from: "- b", to: "+ b" },
    Defect {
        what: "one thread too many",
        settings: "expr=a * 2 - b\nvariant=naive",
        from: ">= size(shape_MN)",
        to: "> size(shape_MN)",
    },
    Defect { what: "rows begin one element late", settings: ROWS, from: "-shift(crd)", to: "1 - shift(crd)" },
    Defect { what: "the first elements of a shifted row are left out", settings: ROWS, from: ">= 0", to: ">= 1" },
    Defect {
        what: "the predicate takes one column more",
        settings: ROWS,
        from: "elem_less(crd, shape_MN)",
        to: "elem_leq(crd, shape_MN)",
    },
    Defect {
        what: "the predicate takes one column more, in tiles",
        settings: "expr=a * 2 - b\nvariant=tv",
        from: "elem_less(crd, shape_MN)",
        to: "elem_leq(crd, shape_MN)",
    },
    Defect {
        what: "the second tile of a row is the first again",
        settings: "expr=a * 2 - b\nvariant=remapped\nthr=(4,8):(8,1)\nval=(2,16):(16,1)",
        from: "int(blockIdx.x)",
        to: "int(blockIdx.x & ~1u)",
    },
    Defect { what: "tiles are read before they are there", settings: TURNED, from: "__syncthreads();", to: "" },
    Defect {
        what: "the second word of a turned pair is the first again",
        settings: TURNED,
        from: "j + 1), 0x7632",
        to: "j + 1), 0x5410",
    },
    Defect {
        what: "vectors of an edge tile lie across the edge",
        settings: TURNED,
        from: "all_inside ? params.aligned : params.whole,",
        to: "params.aligned,",
    },
    Defect { what: "vectors at any address", settings: ROWS, from: "params.aligned && tYpY(0)", to: "tYpY(0)" },
    Defect {
        what: "inputs are read up to the end of the last vector",
        settings: ROWS,
        from: "copy_all_if(tYpY, vector(gA, v)",
        to: "copy_all(vector(gA, v)",
    },
    Defect {
        what: "a vector that begins before its row counts as whole",
        settings: "expr=a * 2 - b\nthreads=32\nunroll=1",
        from: "n >= 0 && n <= params.n",
        to: "n <= params.n",
    },
    Defect {
        what: "a vector that goes on past the end of its row counts as whole",
        settings: "expr=a * 2 - b\nthreads=32\nunroll=1",
        from: "n <= params.n - size<0>(Fragment{})",
        to: "n < params.n",
    },
    Defect {
        what: "a warp is whole where one of its vectors is",
        settings: "expr=a * 2 - b\nthreads=32\nunroll=1",
        from: "__all_sync(~0u, all_inside)",
        to: "__any_sync(~0u, all_inside)",
    },
    Defect {
        what: "vectors behind the last row count as whole",
        settings: "expr=a * 2 - b\nthreads=32\nunroll=1",
        from: "u)) < size(shape_NM);",
        to: "u)) >= 0;",
    },
    Defect {
        what: "every tile counts as inside",
        settings: "expr=a * 2 - b\nvariant=tv\nthr=(4,8):(8,1)\nval=(2,16):(16,1)",
        from: "params.aligned && elem_less(gI(size(gI) - _1{}), shape_MN)",
        to: "params.aligned",
    },
];

fn recipe(settings: &str) -> ElementwiseApply {
    ElementwiseApply::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

/// What the tests of this module run as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    let kernels = random().1.into_iter().chain(grid().1);
    kernels.map(as_it_is).chain(judge::planted(DEFECTS, recipe)).collect()
}

#[test]
fn planted_defects_are_found() {
    judge::find(DEFECTS, &KERNELS, recipe, own(120, 4000));
}
