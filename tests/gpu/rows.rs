//! Contract: on a GPU, row programs are right for every shape, layout, address and input. Where there is no GPU the test says that
//! it did not run. `CUTEMPLATE_ROWS_RECIPES` sets how many random ones are drawn.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::apply::{fits, marks_arrive};
use crate::batch;
use crate::gpu;

use crate::kernels::Tally;
use crate::row_recipes::{drawn, problems};
use crate::variables;
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Recipe, Rows};
use cutemplate::settings::Settings;
use cutemplate::view::ViewLayout;

#[test]
#[ignore = "needs a GPU"]
fn row_programs_are_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let recipe = |settings: &&str| Rows::from_settings(&Settings::parse_lines(settings)).expect("settings");
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let kernels = tally.plan("rows", (0..).zip(Rows::CATALOGUE.iter().map(recipe)), &targets);
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| problems(kernel, 20, 100_000));
    tally.finish("row programs");
}

/// Every third with a cluster.
#[test]
#[ignore = "needs a GPU"]
fn random_recipes_are_refused_or_right() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let of = |i: u64| match i % 3 {
        0 => Rows { cluster: Some([1, 2, 4, 8][i as usize / 3 % 4]), ..drawn(i, true) },
        _ => drawn(i, false),
    };
    let recipes = variables::number("CUTEMPLATE_ROWS_RECIPES").unwrap_or(60);
    let kernels = tally.plan("random_rows", (0..recipes).map(|i| (i, of(i))), &targets);
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel| problems(kernel, 6, 40_000));
    tally.finish("random row programs");
}

/// Rows behind 2^31 elements have 64-bit offsets.
#[test]
#[ignore = "needs a GPU"]
fn more_than_two_to_the_31_elements_have_their_places() {
    let gpu = gpu::find();
    for (name, hold) in
        [("large_rows_registers", "registers"), ("large_rows_memory", "memory"), ("large_rows_shared", "shared")]
    {
        let text = format!("expr=|a| 5 - 2 * a + 0 * max(a)\nin=u8:(?,1)\nout=u8:(?,1)\ncolumns=32771\nhold={hold}");
        let recipe = Rows::from_settings(&Settings::parse_lines(&text)).expect("settings");
        let plan = recipe.plan_as(name, &Targets::new([Arch::Sm90a]).expect("not empty")).expect("a right recipe");
        let Some(kernel) = gpu::load(gpu.as_ref(), plan) else { continue };
        let Some(gpu) = gpu.as_ref().filter(|gpu| fits(gpu, 2, 1 << 31)) else { continue };
        let (m, n) = (65_539_i64, 32_771_i64);
        let marks = [(1 << 31) + 1, m * n - 1].map(|at: i64| [at / n, at % n]);
        let layout = || ViewLayout::strided(&[m, n], &[n, 1]).expect("a matrix");
        marks_arrive(gpu, &kernel, &marks, layout(), layout());
    }
}
