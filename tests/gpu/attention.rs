//! Contract: on a GPU, attention is right for every length, mask, group of heads, layout, address and input, and touches nothing else.
//! Outputs hold NaN before each launch, with guards around them.
#![cfg(all(feature = "cuda", feature = "build"))]

use crate::batch;
use crate::gpu;
use crate::kernels::attention::{drawn, is_packed, is_paged, packed, paged, sized};
use crate::kernels::{Kernel, Tally};
use crate::variables;
use cutemplate::arch::{Arch, Targets};
use cutemplate::recipe::{Attention, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::Fill;

/// `[B, SQ, SK, HQ, HK]`: one, a tile, less and more; no keys; more queries than keys; 40 heads on 4; long ones.
const SIZES: &[[i64; 5]] = &[
    [1, 1, 1, 1, 1],
    [1, 127, 128, 2, 1],
    [2, 128, 127, 3, 3],
    [1, 129, 300, 40, 4],
    [2, 300, 129, 5, 1],
    [1, 5, 0, 2, 1],
    [1, 0, 5, 2, 1],
    [3, 1, 2049, 14, 2],
    [1, 513, 513, 16, 16],
    [1, 1025, 777, 2, 1],
];

#[test]
#[ignore = "needs a GPU"]
fn the_catalogue_is_right_around_its_tiles() {
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let recipe = |settings: &&str| Attention::from_settings(&Settings::parse_lines(settings)).expect("settings");
    let mut kernels = Vec::new();
    for arch in [Arch::Sm80, Arch::Sm90a] {
        let targets = Targets::new([arch]).expect("not empty");
        let recipes = (0..).zip(Attention::CATALOGUE.iter().map(recipe));
        kernels.extend(tally.plan(&format!("attention_{arch}"), recipes, &targets));
    }
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel: &Kernel| {
        let fills = [Fill::Integers, Fill::Normal, Fill::Specials];
        let cases = SIZES.iter().flat_map(|size| fills.map(|fill| (size, fill)));
        let scalars = [0.125, 70.0, 5.0, 3.0];
        let sized = cases.map(|(size, fill)| match size {
            // Three sequences, of the queries, of the keys, and of both.
            [_, queries, keys, hq, hk] if is_packed(&kernel.plan) && !is_paged(&kernel.plan) => {
                let lengths: [&[i64]; 2] = [&[*queries, 3, 129], &[*keys, 1, 300]];
                packed(&kernel.plan, lengths, [*hq, *hk], &scalars, fill, 7)
            }
            [_, queries, keys, hq, hk] if is_paged(&kernel.plan) => {
                let lengths = [*keys, 0, 3 * *keys];
                paged(&kernel.plan, [(*queries).min(5), 16], &lengths, [*hq, *hk], &scalars, fill, 7)
            }
            size => sized(&kernel.plan, size, &scalars, fill, 7),
        });
        sized.chain(kernel.problems(40, 400_000)).collect()
    });
    tally.finish("attention's catalogue");
}

#[test]
#[ignore = "needs a GPU"]
fn random_recipes_are_refused_or_right() {
    let first = variables::number("CUTEMPLATE_ATTENTION_FIRST").unwrap_or(0);
    let count = variables::number("CUTEMPLATE_ATTENTION_RECIPES").unwrap_or(12);
    let gpu = gpu::find();
    let mut tally = Tally::default();
    let mut kernels = Vec::new();
    for arch in [Arch::Sm80, Arch::Sm90a] {
        let targets = Targets::new([arch]).expect("not empty");
        let recipes = (first..).take(count as usize).map(|index| (index, drawn(index)));
        kernels.extend(tally.plan(&format!("attention_random_{arch}"), recipes, &targets));
    }
    batch::run(&mut tally, gpu.as_ref(), &kernels, |kernel: &Kernel| kernel.problems(10, 400_000).collect());
    tally.finish("attention at random");
}
