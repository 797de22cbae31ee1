//! Contract: the largest elements of a row and their columns are right as PTX, to the bit, for every width, layout and fill.

use crate::judge::{self, Defect};
use crate::kernels::{Kernel, Tally};
use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;
use cutemplate::arch::Targets;
use cutemplate::recipe::{Recipe, TopK};
use cutemplate::settings::Settings;

/// One result and many, rows of one tile and of several, more candidates than there is room for.
const SETTINGS: [&str; 5] = [
    "dtype=bf16",
    "dtype=f32\nk=1\nthreads=32\nchunks=1",
    "dtype=f32\nk=32\nthreads=32\nchunks=1",
    "dtype=f16\nk=7\nthreads=64\nchunks=3",
    "dtype=bf16\nk=128",
];

fn recipe(settings: &str) -> TopK {
    TopK::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

fn kernels() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let kernels = tally.plan("top_k", (0..).zip(SETTINGS.map(recipe)), &Targets::default());
    assert_eq!(kernels.len(), SETTINGS.len(), "{tally}");
    (tally, kernels)
}

/// What the tests of this module run as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    kernels().1.into_iter().map(as_it_is).chain(judge::planted(DEFECTS, recipe)).collect()
}

#[test]
fn largest_elements_are_right() {
    let (mut tally, kernels) = kernels();
    judge::run(&mut tally, &KERNELS, &kernels, |kernel| kernel.problems(16, 4000).collect());
    tally.finish("top k");
}

const TILES: &str = "dtype=f32\nk=32\nthreads=32\nchunks=1";

const DEFECTS: &[Defect] = &[
    Defect {
        what: "what equals the bound is no candidate",
        settings: TILES,
        from: "!(number_of(rX(i)) < least)",
        to: "!(number_of(rX(i)) <= least)",
    },
    Defect {
        what: "NaN is no candidate",
        settings: TILES,
        from: "!(number_of(rX(i)) < least)",
        to: "number_of(rX(i)) >= least",
    },
    Defect { what: "NaN is not above what a thread has", settings: TILES, from: "max.NaN.f32", to: "max.f32" },
    Defect { what: "-0 is less than 0", settings: TILES, from: "__fadd_rn(x, 0.0f)", to: "x" },
    Defect { what: "one column too many", settings: TILES, from: "c, tile)) < params.n", to: "c, tile)) <= params.n" },
    Defect {
        what: "candidates without room are lost",
        settings: TILES,
        from: "in_turns = n > 2 * Threads",
        to: "in_turns = false",
    },
    Defect {
        what: "the lists of other warps are read before they are written",
        settings: "dtype=bf16",
        from: "  __syncthreads();\n  int const kept",
        to: "  int const kept",
    },
    Defect {
        what: "the bound is the largest of a warp's",
        settings: "dtype=bf16",
        from: "min(bound, shared.bounds[i])",
        to: "max(bound % ~0u, shared.bounds[i])",
    },
    Defect {
        what: "warps that name no bound have one",
        settings: "dtype=bf16\nk=128",
        from: "full = place < 32 ? full : 0;",
        to: "",
    },
    Defect {
        what: "a candidate's own list counts twice",
        settings: "dtype=bf16",
        from: "other != list ?",
        to: "true ?",
    },
];

#[test]
fn planted_defects_are_found() {
    judge::find(DEFECTS, &KERNELS, recipe, |kernel| kernel.problems(12, 4000).collect());
}
