//! Recipes and problems of `sgemm`, drawn at random: legal and illegal ones.

use cutemplate::dtype::{DType, Kind};
use cutemplate::expr::Function;
use cutemplate::plan::ModeStride::{Broadcast, Dynamic, Unit};
use cutemplate::plan::{Plan, Product};
use cutemplate::recipe::sgemm::{Extents, Major, SmemLayout, Variant};
use cutemplate::recipe::{Sgemm, TensorSpec};
use cutemplate::verify::Fill;

use super::problem::SCALARS as SCALAR_VALUES;
use super::{Kernel, Problem, Random};
use crate::expr::{SCALARS, Sample};

/// Epilogues, with auxiliary tensors as they are drawn.
const EPILOGUES: &[&str] = &[
    "|a, b; alpha, beta| alpha * a + beta * b",
    "a",
    "|a; alpha| alpha * a",
    "|a, b; beta| fma(beta, b, relu(a))",
    "|a, b, c| relu(a + c)",
    "|a, b, c; alpha, beta| gelu(alpha * a + beta * b + c)",
    "|a, b, c, d| silu(a * c) + d - b",
    "|a, b, c, d, e; alpha| select(a > c, alpha * a + b, d) * e",
];

const EXTENTS: &[i64] =
    &[1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 20, 31, 32, 33, 36, 37, 61, 64, 67, 97, 100, 127, 128, 129, 130];

/// The recipe of a number: the same on every machine.
pub(crate) fn drawn(index: u64) -> Sgemm {
    let random = &mut Random::new(40, index);
    let variant = random.pick(Variant::ALL);
    // The top rung has the most to choose.
    let variant = if random.chance(25) { Variant::Pipelined } else { variant };
    let mut recipe = Sgemm::rung(variant);
    if random.chance(80) {
        tiles(random, &mut recipe);
    }
    let major = |random: &mut Random| random.pick(Major::ALL);
    (recipe.a, recipe.b) = (major(random), major(random));
    recipe.batched = random.chance(30);
    if random.chance(70) {
        recipe.epilogue = epilogue(random);
        let count = recipe.epilogue.inputs().saturating_sub(2);
        recipe.aux = (0..count).map(|_| aux(random, recipe.batched)).collect();
    }
    recipe.vector = random.pick(&[16, 16, 16, 4]);
    recipe.min_blocks = random.pick(&[0, 0, 1, 2]);
    recipe.conflicts = if random.chance(85) { "allow".parse().expect("a level") } else { recipe.conflicts };
    if variant == Variant::Pipelined {
        recipe.stages = random.pick(&[2, 2, 3, 4, 5]);
        recipe.split_k = random.pick(&[1, 1, 2, 3, 5]);
        if recipe.split_k == 1 {
            recipe.wave = random.pick(&[0, 1, 2, 3, 5, 8, 13, 40]);
        }
        recipe.warp_sync = random.chance(30);
    }
    recipe.smem_a = smem(random, recipe.smem_a);
    recipe.smem_b = smem(random, recipe.smem_b);
    spoil(random, &mut recipe);
    recipe
}

/// Other tiles: mostly such that they fit.
fn tiles(random: &mut Random, recipe: &mut Sgemm) {
    let pick = |random: &mut Random, all: &[u32]| random.pick(all);
    let single = matches!(recipe.variant, Variant::Naive | Variant::Coalesced | Variant::SmemTiled);
    let (tm, tn) = match recipe.variant {
        _ if single => (1, 1),
        Variant::Block1d => (pick(random, &[2, 4, 8]), 1),
        _ => (pick(random, &[1, 2, 4, 8, 8, 3]), pick(random, &[1, 2, 4, 8, 8, 6])),
    };
    // Threads along M and N.
    let tiled = matches!(recipe.variant, Variant::WarpTiled | Variant::Pipelined);
    let warp = random.pick(&[[4, 8], [8, 4], [2, 16], [16, 2], [1, 32]]);
    let threads = match tiled {
        true => [warp[0] * pick(random, &[1, 2, 4]), warp[1] * pick(random, &[1, 2])],
        false => [pick(random, &[4, 8, 16]), pick(random, &[4, 8, 16, 32])],
    };
    let odd = if random.chance(8) { 3 } else { 1 };
    let [bm, bn] = [tm * threads[0] * odd, tn * threads[1]];
    let all = [4, 8, 8, 16, 16, 32, 64, 1, 2, 3, 6];
    // Such that every thread copies as much as any other; loops over k are unrolled, and long ones take long to compile.
    let count = threads[0] * threads[1];
    let fits =
        |bk: &u32| (bm * bk).is_multiple_of(count) && (bn * bk).is_multiple_of(count) && bk * tm * tn * odd <= 256;
    let fitting: Vec<u32> = all.into_iter().filter(fits).collect();
    let bk = if fitting.is_empty() || random.chance(10) { pick(random, &all[..6]) } else { random.pick(&fitting) };
    recipe.warp = Extents(warp);
    recipe.thread_tile = Extents([tm, tn]);
    recipe.tile = Extents([bm, bn, bk]);
}

fn smem(random: &mut Random, default: SmemLayout) -> SmemLayout {
    match random.below(10) {
        0 | 1 => SmemLayout::Pad(random.pick(&[0, 1, 2, 4, 8])),
        2 => ["Sw<2,3,3>", "Sw<2,2,3>", "Sw<1,2,3>", "Sw<3,2,3>", "Sw<3,2,5>", "Sw<2,0,3>"]
            .map(|text| SmemLayout::Swizzled(text.parse().expect("a swizzle")))[random.below(6)],
        _ => default,
    }
}

fn epilogue(random: &mut Random) -> Function {
    if random.chance(70) {
        return random.pick(EPILOGUES).parse().expect("a function");
    }
    let inputs = 1 + random.weighted(&[10, 40, 30, 15, 5]);
    let scalars = &SCALARS[..random.below(3)];
    Sample::drawn(false, 1, &mut || random.word()).trace_of(inputs, scalars, false)
}

fn aux(random: &mut Random, batched: bool) -> TensorSpec {
    let floats: Vec<DType> = DType::ALL.iter().copied().filter(|d| d.kind() == Kind::Float).collect();
    let dtype = match random.below(3) {
        0 => DType::F32,
        1 => random.pick(&floats),
        _ => random.pick(DType::ALL),
    };
    let mut strides = random.pick(&[
        [Dynamic, Unit],
        [Dynamic, Unit],
        [Broadcast, Unit],
        [Unit, Dynamic],
        [Unit, Broadcast],
        [Dynamic, Broadcast],
        [Broadcast, Broadcast],
        [Dynamic, Dynamic],
    ]);
    let mut strides = strides.as_mut_slice().to_vec();
    strides.extend(batched.then(|| random.pick(&[Dynamic, Broadcast])));
    TensorSpec { dtype, strides }
}

/// What a user may get wrong, in one recipe of eight.
fn spoil(random: &mut Random, recipe: &mut Sgemm) {
    match random.below(80) {
        0 => recipe.aux.push(TensorSpec::row_major(DType::F32, 2)),
        1 => recipe.batched = !recipe.batched,
        2 => recipe.stages = random.pick(&[0, 1, 2, 17]),
        3 => recipe.split_k = random.pick(&[0, 2, 65]),
        4 => recipe.vector = 8,
        5 => recipe.thread_tile = Extents([5, 7]),
        6 => recipe.warp = Extents([3, 8]),
        7 => recipe.tile = Extents([0, 64, 8]),
        8 => recipe.stages = 16,
        9 => recipe.min_blocks = 16,
        10 => recipe.wave = 65536,
        _ => {}
    }
}

/// A problem of at most about `products` products, around the edges of the kernel's tiles.
pub(super) fn problem(plan: &Plan, product: &Product, random: &mut Random, products: i64) -> Problem {
    let tile = plan.settings().get("tile").and_then(|text| text.parse().ok());
    let Extents(tile): Extents<3> = tile.unwrap_or(Extents([32; 3]));
    let mut problem: Vec<i64> = tile.iter().map(|t| extent(random, i64::from(*t))).collect();
    problem.extend(product.is_batched().then(|| random.pick(&[1, 2, 2, 3])));
    // Tiles are cut only where there is much to cut.
    let deep = plan.settings().get("wave").is_some_and(|wave| wave != "0") && random.chance(60);
    if deep {
        problem[2] = i64::from(tile[2]) * (12 + random.below(40) as i64) + random.below(tile[2] as usize) as i64;
    }
    while problem.iter().product::<i64>() > products {
        let shrinks = |i: &usize| !deep || *i != 2 || problem[0] * problem[1] <= 16;
        let largest = (0..problem.len()).filter(shrinks).max_by_key(|i| problem[*i]).unwrap_or(0);
        problem[largest] = problem[largest] / 2 + random.below(2) as i64;
    }
    if random.chance(8) {
        let mode = random.pick(&[0, 1, 2, 2, 2, 3]);
        problem.iter_mut().skip(mode).take(1).for_each(|extent| *extent = 0);
    }
    of(plan, random, &problem)
}

/// Around a border of tiles, or any.
fn extent(random: &mut Random, tile: i64) -> i64 {
    match random.below(3) {
        0 => random.pick(EXTENTS),
        1 => (tile + random.pick(&[-1, 0, 1])).max(1),
        _ => tile * (1 + random.below(3) as i64) + random.below(tile as usize) as i64,
    }
}

/// Extents up to 130, the kernel's own borders among them; then problems without rows, columns or products, and with scalars of 0.
pub(crate) fn edges(kernel: &Kernel, count: u64) -> Vec<Problem> {
    let Extents(tile): Extents<3> = kernel.plan.settings().get("tile").expect("a tile").parse().expect("extents");
    let batched = kernel.plan.operands()[0].strides.len() == 3;
    let drawn = (0..count).map(|i| {
        let random = &mut Random::new(60 + i, kernel.index);
        let extent = |random: &mut Random, tile: u32| {
            let tile = i64::from(tile).min(129);
            let near = [tile - 1, tile, tile + 1];
            let any = [1, 2, 3, 4, 5, 7, 12, 13, 31, 36, 61, 97, 100, 127, 130];
            let all: Vec<i64> = near.into_iter().chain(near).chain(any).filter(|e| *e > 0).collect();
            random.pick(&all)
        };
        let mut extents: Vec<i64> = tile.iter().map(|t| extent(random, *t)).collect();
        extents.extend(batched.then(|| random.pick(&[1, 2, 3])));
        of(&kernel.plan, random, &extents)
    });
    drawn.chain(degenerate(kernel)).collect()
}

/// An extent of 0 in turn, with scalars of any value and with each of them 0.
fn degenerate(kernel: &Kernel) -> Vec<Problem> {
    let (plan, scalars) = (&kernel.plan, kernel.plan.scalars().len());
    let batches: &[i64] = if plan.operands()[0].strides.len() == 3 { &[2] } else { &[] };
    let mut all = Vec::new();
    for (seed, extents) in (200..).zip([[0, 33, 5], [33, 0, 5], [33, 34, 0], [33, 34, 35]]) {
        let random = &mut Random::new(seed, kernel.index);
        let extents = [&extents[..], batches].concat();
        all.push(of(plan, random, &extents));
        for zero in 0..scalars {
            let mut problem = of(plan, random, &extents);
            problem.scalars[zero] = 0.0;
            all.push(problem);
        }
    }
    all
}

/// One of these extents, with layouts, scalars and inputs of its own.
fn of(plan: &Plan, random: &mut Random, extents: &[i64]) -> Problem {
    let shapes = plan.computes().and_then(|c| c.shapes(plan.operands(), extents)).expect("extents of a product");
    let (layouts, in_place) = Problem::placed(plan.operands(), random, &shapes);
    let factors = random.pick(&[Fill::Integers, Fill::Integers, Fill::Normal]);
    // Whatever is not read may hold anything, and the rest is passed on.
    let others = random.pick(&[factors, factors, Fill::Specials]);
    let fills = (0..in_place.len()).map(|i| if i < 2 { factors } else { others }).collect();
    let scalars = plan.scalars().iter().map(|_| random.pick(SCALAR_VALUES)).collect();
    let mut planted = Vec::new();
    if random.chance(25) {
        for _ in 0..1 + random.below(3) {
            let input = random.below(2);
            if shapes[input].iter().all(|extent| *extent > 0) {
                let coordinate = shapes[input].iter().map(|extent| random.below(*extent as usize) as u64).collect();
                let value = random.pick(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-40]);
                planted.push((input, coordinate, value));
            }
        }
    }
    Problem { layouts, in_place, scalars, fills, planted, seed: random.word() >> 32 }
}
