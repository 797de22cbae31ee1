//! Contract: attention is refused with a reason, or right as PTX for every length, mask, group of heads, layout and input: within the
//! bound of an online softmax, element by element.

use crate::judge::{self, Defect};
use crate::kernels::attention::drawn;
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{PtxSet, Source, as_it_is};
use crate::whole;
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Attention, Recipe};
use cutemplate::settings::Settings;

fn recipe(settings: &str) -> Attention {
    Attention::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

fn own(count: u64, scores: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| kernel.problems(count, scores).collect()
}

/// Random recipes: a few, or with `CUTEMPLATE_WHOLE=1` more.
fn kernels() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let targets = Targets::new([Arch::Sm80]).expect("an architecture");
    let count = whole::or(40, 6);
    let kernels = tally.plan("attention", (0..count).map(|index| (index, drawn(index))), &targets);
    (tally, kernels)
}

/// By themselves: they share little with kernels of other families.
static KERNELS: PtxSet = PtxSet::new(of_nvcc);

/// What the tests of this module run as PTX.
fn of_nvcc() -> Vec<Source> {
    kernels().1.into_iter().map(as_it_is).chain(judge::planted(DEFECTS, recipe)).collect()
}

#[test]
fn random_recipes_are_refused_or_right() {
    let (mut tally, kernels) = kernels();
    judge::run(&mut tally, &KERNELS, &kernels, own(10, if whole::is_asked_for() { 20_000 } else { 6_000 }));
    tally.finish("attention at random");
}

#[test]
fn every_refusal_has_a_reason() {
    let mut tally = Tally::default();
    let targets = Targets::new([Arch::Sm80]).expect("an architecture");
    let kernels = tally.plan("refused", (0..300).map(|index| (index, drawn(index))), &targets);
    assert!(tally.failures.is_empty() && kernels.len() > 150 && kernels.len() < 300, "{tally}");
}

/// Small, so that every place of it has work to do.
const SMALL: &str = "head=24\nmask=window\nlse=true\nsm80_tile=64x16\nsm80_stages=2";

const DEFECTS: &[Defect] = &[
    Defect { what: "a key too many", settings: SMALL, from: "query + own + right + 1", to: "query + own + right + 2" },
    Defect { what: "a key too few", settings: SMALL, from: "query + own - left", to: "query + own - left + 1" },
    Defect {
        what: "a finite number for -inf",
        settings: SMALL,
        from: "scores(row,n) = -INFINITY",
        to: "scores(row,n) = -5e4f",
    },
    Defect {
        what: "NaN for a row without a key",
        settings: SMALL,
        from: "most[row] == -INFINITY ? 0 : most[row]",
        to: "most[row]",
    },
    Defect { what: "no factor for O", settings: SMALL, from: "__fmul_rn(output(row,n), factor)", to: "output(row,n)" },
    Defect {
        what: "no factor for sums",
        settings: SMALL,
        from: "__fmaf_rn(sum[row], factor, added)",
        to: "sum[row] + added",
    },
    Defect {
        what: "the sum of one lane",
        settings: SMALL,
        from: "return of_lanes(sum[row]",
        to: "return sum[row]; of_lanes(sum[row]",
    },
    Defect {
        what: "the sign of the scale is lost",
        settings: SMALL,
        from: "? -float(tQsQ(i))",
        to: "? float(tQsQ(i))",
    },
    Defect {
        what: "the head of another group",
        settings: SMALL,
        from: "head / (params.hq / params.hk)",
        to: "head % params.hk",
    },
    Defect {
        what: "K is multiplied before it is there",
        settings: SMALL,
        from: "cp_async_wait<2 * (stages - 1)>();\n    __syncthreads();  // K",
        to: "__syncthreads();  // K",
    },
    Defect {
        what: "V is multiplied before it is there",
        settings: SMALL,
        from: "cp_async_wait<2 * (stages - 1)>();\n    __syncthreads();  // V",
        to: "__syncthreads();  // V",
    },
    Defect {
        what: "K is overwritten while it is read",
        settings: SMALL,
        from: "__syncthreads();  // V of",
        to: "// V of",
    },
    Defect {
        what: "V is overwritten while it is read",
        settings: SMALL,
        from: "__syncthreads();  // K of",
        to: "// K of",
    },
    Defect {
        what: "O is written over stages that are read",
        settings: SMALL,
        from: "__syncthreads();  // all warps",
        to: "// all warps",
    },
    Defect {
        what: "O is stored before it is whole",
        settings: SMALL,
        from: "__syncthreads();  // the tile",
        to: "// the tile",
    },
];

#[test]
fn planted_defects_are_found() {
    judge::find(DEFECTS, &KERNELS, recipe, own(16, 20_000));
}
