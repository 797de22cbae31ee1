//! Contract: recipes that take other ways through the template than the catalogue's are right too:
//! short vectors, nested modes, few threads, tall tiles, steps, both rasters; ragged and padded.

use crate::judge;
use crate::kernels::{Kernel, Problem, Tally};
use crate::ptx_set::{Source, as_it_is};
use crate::together::KERNELS;

use cutemplate::arch::Targets;
use cutemplate::recipe::{ElementwiseAdd, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::{Fill, TensorLayout};

/// Settings, and what they are there for.
const VARIATIONS: &[(&str, &str)] = &[
    ("dtype=f32\nvector=4\nval=(16,16):(16,1)\nraster=m", "one element a vector: the unrolled mode is nested, (4,16)"),
    (
        "dtype=f32\nvector=8\nunroll=4\nthr=(2,16):(1,2)\nval=(16,16):(16,1)",
        "two vectors a row, steps, threads down the columns",
    ),
    ("dtype=f32\nthr=(64,4):(4,1)\nval=(2,32):(32,1)\nraster=m", "a tall tile, two vectors a row"),
    ("dtype=f32\nthr=(1,1):(0,0)\nval=(1,16):(16,1)", "one thread, one vector"),
    ("dtype=f32\nval=((2,2),(4,4)):((16,32),(1,4))\nthr=((2,2),8):((16,1),2)", "nested layouts"),
];

/// Ragged, one after the other and padded.
fn problems(_: &Kernel) -> Vec<Problem> {
    let layouts =
        [TensorLayout::contiguous(3, 12), TensorLayout::contiguous(67, 131), TensorLayout::padded(130, 260, 264)];
    let of = |(seed, layout)| Problem {
        layouts: vec![layout; 3],
        in_place: vec![None; 2],
        scalars: Vec::new(),
        fills: vec![Fill::Specials; 2],
        planted: Vec::new(),
        seed,
    };
    (1..).zip(layouts).map(of).collect()
}

fn kernels() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let recipe = |(settings, what): &(&str, &str)| {
        ElementwiseAdd::from_settings(&Settings::parse_lines(settings)).unwrap_or_else(|e| panic!("{what}: {e}"))
    };
    let kernels = tally.plan("variation", (0..).zip(VARIATIONS.iter().map(recipe)), &Targets::default());
    assert_eq!(kernels.len(), VARIATIONS.len(), "{tally}");
    (tally, kernels)
}

/// What the test of this module runs as PTX.
pub(crate) fn of_nvcc() -> Vec<Source> {
    kernels().1.into_iter().map(as_it_is).collect()
}

#[test]
fn every_variation_is_right() {
    let (mut tally, kernels) = kernels();
    judge::run(&mut tally, &KERNELS, &kernels, problems);
    tally.finish("variations");
}
