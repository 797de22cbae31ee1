//! Contract: an `sgemm` recipe of any rung, tile, epilogue and storage is refused with a reason, or its kernel is right on the
//! CPU executor for every problem, layout, address and input, and touches nothing else.
//!
//! `CUTEMPLATE_SGEMM_RECIPES` sets how many recipes are drawn, for a longer run.
#![cfg(feature = "host")]

#[path = "host_common/batch.rs"]
mod batch;
#[path = "support/expr/mod.rs"]
mod expr;
mod host_common;
#[path = "host_common/judge.rs"]
mod judge;
#[path = "support/kernels/mod.rs"]
mod kernels;

use cutemplate::arch::Targets;
use cutemplate::host::Mode;
use cutemplate::recipe::sgemm::{CATALOGUE, Extents};
use cutemplate::recipe::{Recipe, Settings, Sgemm};
use kernels::sgemm::{drawn, of};
use kernels::{Kernel, Problem, Random, Tally};

fn recipes() -> u64 {
    std::env::var("CUTEMPLATE_SGEMM_RECIPES").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

/// Problems of a kernel's own.
fn own(count: u64, products: i64) -> impl Fn(&Kernel) -> Vec<Problem> {
    move |kernel| kernel.problems(count, products).collect()
}

fn recipe(settings: &str) -> Sgemm {
    Sgemm::from_settings(&Settings::parse_lines(settings)).expect("settings")
}

fn catalogue() -> (Tally, Vec<Kernel>) {
    let mut tally = Tally::default();
    let all = (0..).zip(CATALOGUE.iter().map(|settings| recipe(settings)));
    let kernels = tally.plan("rung", all, &Targets::default());
    assert_eq!(kernels.len(), CATALOGUE.len(), "{tally}");
    (tally, kernels)
}

/// Extents up to 130, the kernel's own borders among them.
fn edges(kernel: &Kernel, count: u64) -> Vec<Problem> {
    let Extents(tile): Extents<3> = kernel.plan.settings().get("tile").expect("a tile").parse().expect("extents");
    let batched = kernel.plan.operands()[0].strides.len() == 3;
    (0..count)
        .map(|i| {
            let random = &mut Random::new(60 + i, kernel.index);
            let extent = |random: &mut Random, tile: u32| {
                let tile = i64::from(tile).min(129);
                let near = [tile - 1, tile, tile + 1];
                let any = [1, 2, 3, 5, 7, 13, 31, 61, 97, 127, 130];
                let all: Vec<i64> = near.into_iter().chain(near).chain(any).filter(|e| *e > 0).collect();
                random.pick(&all)
            };
            let mut extents: Vec<i64> = tile.iter().map(|t| extent(random, *t)).collect();
            extents.extend(batched.then(|| random.pick(&[1, 2, 3])));
            of(&kernel.plan, random, &extents)
        })
        .collect()
}

#[test]
fn every_rung_is_right_at_its_edges() {
    let (mut tally, kernels) = catalogue();
    judge::run(&mut tally, &kernels, Mode::Plain, |kernel| edges(kernel, 40));
    judge::run(&mut tally, &kernels, Mode::Bounds, |kernel| edges(kernel, 8));
    judge::run(&mut tally, &kernels, Mode::Races, |kernel| edges(kernel, 4));
    tally.finish("the catalogue");
}

#[test]
fn random_recipes_are_refused_or_right() {
    let mut tally = Tally::default();
    let kernels = tally.plan("sgemm", (0..recipes()).map(|i| (i, drawn(i))), &Targets::default());
    let (races, rest) = kernels.split_at(kernels.len() / 20);
    let (bounds, plain) = rest.split_at(kernels.len() / 10);
    judge::run(&mut tally, races, Mode::Races, own(3, 20_000));
    judge::run(&mut tally, bounds, Mode::Bounds, own(5, 60_000));
    judge::run(&mut tally, plain, Mode::Plain, own(8, 300_000));
    tally.finish("random recipes");
}
