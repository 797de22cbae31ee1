//! Recipes and problems of `sgemm`, drawn at random: legal and illegal ones.

use cutemplate::dtype::{self, DType};
use cutemplate::expr::Function;
use cutemplate::layout::Swizzle;
use cutemplate::plan::ModeStride::{Broadcast, Dynamic, Unit};
use cutemplate::plan::{ConflictLevel, Plan, ProblemShape, Product};
use cutemplate::recipe::product::{Extents, Major};
use cutemplate::recipe::sgemm::{SmemLayout, Variant};
use cutemplate::recipe::{Sgemm, TensorSpec};
use cutemplate::verify::Fill;

use super::gemm::{drawn_indices, named};
use super::problem::SCALARS as SCALAR_VALUES;
use super::{Kernel, Problem, Random};
use crate::expr::{SCALARS, Sample};
use crate::variables;

/// Epilogues, with auxiliary tensors as they are drawn.
const EPILOGUES: &[&str] = &[
    "|a, b; alpha, beta| alpha * a + beta * b",
    "a",
    "|a; alpha| alpha * a",
    "|a, b; beta| fma(beta, b, relu(a))",
    "|a, b, c| relu(a + c)",
    "|a, b, c; alpha, beta| gelu(alpha * a + beta * b + c)",
    "|sum, c, scale, lda| silu(sum * scale) + lda - c",
    "|a, c, int, x, part; n| select(a > int, n * a + c, x) * part",
];

const EXTENTS: &[i64] =
    &[1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 20, 31, 32, 33, 36, 37, 61, 64, 67, 97, 100, 127, 128, 129, 130];

/// The recipes that `CUTEMPLATE_SGEMM_RECIPES` and `CUTEMPLATE_SGEMM_FIRST` ask for, each with its index: the first `count`
/// where they are not set.
pub(crate) fn asked(count: u64) -> impl Iterator<Item = (u64, Sgemm)> {
    let first = variables::number("CUTEMPLATE_SGEMM_FIRST").unwrap_or(0);
    let count = variables::number("CUTEMPLATE_SGEMM_RECIPES").unwrap_or(count);
    (first..).take(count as usize).map(|i| (i, drawn(i)))
}

/// The recipe of a number: the same on every machine. Every value of every setting comes, of which `kinds` tells the kinds; seven
/// in ten have tiles that fit.
pub(crate) fn drawn(index: u64) -> Sgemm {
    let random = &mut Random::new(40, index);
    let variant = random.pick(Variant::ALL);
    // The top rung has the most to choose.
    let variant = if random.chance(25) { Variant::Pipelined } else { variant };
    let mut recipe = Sgemm::rung(variant);
    match random.below(10) {
        0 => {}
        1 => any_tiles(random, &mut recipe),
        _ => tiles(random, &mut recipe),
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
    recipe.min_blocks = random.pick(&[0, 0, 0, 1, 1, 2, 3, 4]);
    recipe.conflicts = [ConflictLevel::Allow, ConflictLevel::Warn, ConflictLevel::Deny][random.weighted(&[80, 12, 8])];
    if variant == Variant::Pipelined {
        pipeline(random, &mut recipe);
    }
    recipe.smem_a = smem(random);
    recipe.smem_b = smem(random);
    spoil(random, &mut recipe);
    recipe
}

fn pipeline(random: &mut Random, recipe: &mut Sgemm) {
    recipe.stages = random.pick(&[2, 2, 3, 4, 5, 6, 7, 16]);
    recipe.split_k = random.pick(&[1, 1, 1, 2, 3, 5, 8, 64]);
    if recipe.split_k == 1 {
        recipe.wave = random.pick(&[0, 1, 2, 3, 5, 8, 13, 40, 264, 65535]);
    }
    recipe.warp_sync = random.chance(30);
}

/// Tiles of any extents, most of which fit nothing.
fn any_tiles(random: &mut Random, recipe: &mut Sgemm) {
    let extents = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 36, 48, 60, 64, 96, 100, 128, 256, 1024];
    let pick = |random: &mut Random, most: usize| random.pick(&extents[..most]);
    recipe.tile = Extents([pick(random, 22), pick(random, 22), pick(random, 13)]);
    recipe.thread_tile = Extents([pick(random, 10), pick(random, 10)]);
    recipe.warp = warp(random);
}

/// The threads of a warp along M and N, in every way.
fn warp(random: &mut Random) -> Extents<2> {
    Extents(random.pick(&[[1, 32], [2, 16], [4, 8], [8, 4], [16, 2], [32, 1]]))
}

/// Other tiles: mostly such that they fit.
fn tiles(random: &mut Random, recipe: &mut Sgemm) {
    let pick = |random: &mut Random, all: &[u32]| random.pick(all);
    let single = matches!(recipe.variant, Variant::Naive | Variant::Coalesced | Variant::SmemTiled);
    // Elements of a thread: powers of two, and any.
    let of_thread = [1, 2, 4, 4, 8, 8, 8, 1, 2, 3, 5, 6, 7, 9, 10, 12, 16];
    let (tm, tn) = match recipe.variant {
        _ if single => (1, 1),
        Variant::Block1d => (pick(random, &of_thread), 1),
        _ => (pick(random, &of_thread), pick(random, &of_thread)),
    };
    // Threads along M and N.
    let tiled = matches!(recipe.variant, Variant::WarpTiled | Variant::Pipelined);
    recipe.warp = warp(random);
    let Extents([lanes_m, lanes_n]) = recipe.warp;
    let threads = match tiled {
        true => [lanes_m * pick(random, &[1, 1, 2, 2, 3, 4]), lanes_n * pick(random, &[1, 1, 2, 3])],
        false => [4, 16].map(|most| pick(random, &[4, 8, 16, 8, 1, 2, 3, 6, 12, most, 2 * most])),
    };
    let [bm, bn] = [tm * threads[0], tn * threads[1]];
    // Such that every thread copies as much as any other; loops over k are unrolled, and long ones take long to compile.
    let count = threads[0] * threads[1];
    let even = recipe.variant != Variant::Pipelined;
    let fits = |bk: &u32| {
        let whole = (bm * bk).is_multiple_of(count) && (bn * bk).is_multiple_of(count);
        whole && bk * tm * tn <= 384 && (even || bk.is_multiple_of(2))
    };
    let all = [4, 8, 16, 32, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 24, 32, 36, 40, 48, 64];
    let fitting: Vec<u32> = all.into_iter().filter(fits).collect();
    let bk = if fitting.is_empty() || random.chance(5) { pick(random, &all[..12]) } else { random.pick(&fitting) };
    recipe.thread_tile = Extents([tm, tn]);
    recipe.tile = Extents([bm, bn, bk]);
}

fn smem(random: &mut Random) -> SmemLayout {
    match random.below(10) {
        0..4 => SmemLayout::Auto,
        4 => SmemLayout::Pad(0),
        5..8 => SmemLayout::Pad(random.pick(&[1, 2, 3, 4, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 31, 33, 100])),
        8 => ["Sw<2,3,3>", "Sw<2,2,3>", "Sw<1,2,3>", "Sw<3,2,3>", "Sw<3,2,5>", "Sw<2,0,3>"]
            .map(|text| SmemLayout::Swizzled(text.parse().expect("a swizzle")))[random.below(6)],
        _ => {
            let (bits, base) = (random.below(4) as i64, random.below(5) as i64);
            let shift = (bits + random.below(4) as i64).max(1) * random.pick(&[1, 1, 1, -1]);
            SmemLayout::Swizzled(Swizzle::new(bits, base, shift).expect("a shift of as many bits"))
        }
    }
}

type Kind = (String, Box<dyn Fn(&Sgemm) -> bool>);

fn kind(what: impl ToString, is: impl Fn(&Sgemm) -> bool + 'static) -> Kind {
    (what.to_string(), Box::new(is))
}

/// The kinds of value that a setting has, of which each is to come among the recipes that are accepted.
pub(crate) fn kinds(key: &str) -> Vec<Kind> {
    fn power(extents: &[u32]) -> bool {
        extents.iter().all(|e| e.is_power_of_two())
    }
    fn each<T: ToString + PartialEq + Copy + 'static>(all: &[T], of: fn(&Sgemm) -> T) -> Vec<Kind> {
        all.iter().copied().map(|value| kind(value.to_string(), move |r| of(r) == value)).collect()
    }
    fn mma(r: &Sgemm) -> bool {
        matches!(r.variant, Variant::Vectorized | Variant::WarpTiled | Variant::Pipelined)
    }
    fn tiles_of(r: &Sgemm) -> bool {
        !matches!(r.variant, Variant::Naive | Variant::Coalesced)
    }
    fn memory(of: fn(&Sgemm) -> SmemLayout, major: fn(&Sgemm) -> Major) -> Vec<Kind> {
        let pad = move |r: &Sgemm| if let SmemLayout::Pad(pad) = of(r) { Some(pad) } else { None };
        let mut all = Vec::new();
        for has in [false, true] {
            for row in [Major::Row, Major::Col] {
                let here = move |r: &Sgemm| tiles_of(r) && mma(r) == has && major(r) == row;
                let at = format!("MMA {has}, {row}");
                all.push(kind(format!("auto, {at}"), move |r| here(r) && of(r) == SmemLayout::Auto));
                all.push(kind(format!("pad4, {at}"), move |r| here(r) && pad(r).is_some_and(|p| p > 0 && p % 4 == 0)));
                let swizzled = move |r: &Sgemm| matches!(of(r), SmemLayout::Swizzled(_));
                all.push(kind(format!("a swizzle, {at}"), move |r| here(r) && swizzled(r)));
            }
        }
        all.push(kind("none", move |r| pad(r) == Some(0)));
        all.push(kind("odd padding", move |r| pad(r).is_some_and(|p| p % 2 == 1)));
        all
    }
    match key {
        "epilogue" => {
            let of_list = |text: &'static &str| kind(text, |r| r.epilogue == text.parse().expect("a function"));
            let other = |r: &Sgemm| !EPILOGUES.iter().any(|text| r.epilogue == text.parse().expect("a function"));
            EPILOGUES.iter().map(of_list).chain([kind("any other", other)]).collect()
        }
        "a" => each(Major::ALL, |r| r.a),
        "b" => each(Major::ALL, |r| r.b),
        "aux" => {
            let of = |what: &str, is: fn(&TensorSpec) -> bool| kind(what, move |r: &Sgemm| r.aux.iter().any(is));
            let types = DType::ALL.iter().map(|t| kind(t, move |r: &Sgemm| r.aux.iter().any(|aux| aux.dtype == *t)));
            let strides = [
                of("a row for all", |aux| aux.strides[..2] == [Broadcast, Unit]),
                of("a column for all", |aux| aux.strides[..2] == [Unit, Broadcast]),
                of("columns", |aux| aux.strides[..2] == [Unit, Dynamic]),
                of("one for all", |aux| aux.strides[..2] == [Broadcast, Broadcast]),
                of("any strides", |aux| aux.strides[..2] == [Dynamic, Dynamic]),
                kind("none", |r| r.aux.is_empty()),
            ];
            types.chain(strides).collect()
        }
        "batched" => each(&[false, true], |r| r.batched),
        "variant" => each(Variant::ALL, |r| r.variant),
        "tile" => vec![
            kind("the rung's", |r| r.tile == Sgemm::rung(r.variant).tile),
            kind("no powers of two", |r| !power(&r.tile.0[..1]) && !power(&r.tile.0[1..2])),
            kind("narrower than a warp", |r| r.tile.0[1] < 32),
            kind("an odd BK", |r| r.tile.0[2] % 2 == 1 && r.tile.0[2] > 1),
            kind("a BK of 1", |r| r.tile.0[2] == 1),
            kind("an even BK that is no power of two", |r| r.tile.0[2] % 2 == 0 && !power(&r.tile.0[2..])),
        ],
        "thread" => vec![
            kind("1x1 and an MMA", |r| mma(r) && r.thread_tile.0 == [1, 1]),
            kind("8x8", |r| r.thread_tile.0 == [8, 8]),
            kind("of odd extents", |r| r.thread_tile.0.iter().all(|e| e % 2 == 1 && *e > 1)),
            kind("3 by a multiple of 4", |r| r.thread_tile.0[0] == 3 && r.thread_tile.0[1] % 4 == 0),
            kind("more than 8", |r| r.thread_tile.0.iter().any(|e| *e > 8)),
        ],
        "warp" => {
            let all = [[1, 32], [2, 16], [4, 8], [8, 4], [16, 2], [32, 1]];
            let used = |r: &Sgemm| matches!(r.variant, Variant::WarpTiled | Variant::Pipelined);
            all.map(|warp| kind(Extents(warp), move |r| used(r) && r.warp.0 == warp)).into()
        }
        "stages" => each(&[1, 2, 3, 4, 5, 6, 7], |r| r.stages),
        "vector" => each(&[16, 4], |r| r.vector),
        "smem_a" => memory(|r| r.smem_a, |r| r.a),
        "smem_b" => memory(|r| r.smem_b, |r| r.b),
        "conflicts" => each(&[ConflictLevel::Allow, ConflictLevel::Warn, ConflictLevel::Deny], |r| r.conflicts),
        "split_k" => each(&[1, 2, 3, 5, 8, 64], |r| r.split_k),
        "wave" => each(&[0, 1, 2, 3, 40, 264, 65535], |r| r.wave),
        "min_blocks" => each(&[0, 1, 2, 3, 4], |r| r.min_blocks),
        "warp_sync" => each(&[false, true], |r| r.warp_sync),
        _ => Vec::new(),
    }
}

pub(super) fn epilogue(random: &mut Random) -> Function {
    if random.chance(70) {
        return random.pick(EPILOGUES).parse().expect("a function");
    }
    let inputs = 1 + random.weighted(&[10, 40, 30, 15, 5]);
    let scalars = &SCALARS[..random.below(3)];
    Sample::drawn(false, 1, &mut || random.word()).trace_of(inputs, scalars, false)
}

pub(super) fn aux(random: &mut Random, batched: bool) -> TensorSpec {
    let floats: Vec<DType> = DType::ALL.iter().copied().filter(|d| d.kind() == dtype::Kind::Float).collect();
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
pub(super) fn problem(plan: &Plan, random: &mut Random, products: i64) -> Problem {
    let tile = plan.settings().get("tile").and_then(|text| text.parse().ok());
    let Extents(tile): Extents<3> = tile.unwrap_or(Extents([32; 3]));
    let mut problem: Vec<i64> = tile.iter().map(|t| extent(random, i64::from(*t))).collect();
    // Batches, or groups of rows.
    problem.extend(last_extent(plan).then(|| random.pick(&[1, 2, 2, 3])));
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
    // Tiles that are all whole may have a loop of their own. The others stay as they are drawn.
    let mut apart = random.clone();
    if !deep && apart.chance(20) {
        problem
            .iter_mut()
            .zip(&tile[..2])
            .for_each(|(extent, tile)| *extent = i64::from(*tile) * apart.pick(&[1, 1, 2]));
        let room = products / problem.iter().enumerate().filter(|(i, _)| *i != 2).map(|(_, e)| e).product::<i64>();
        let long = i64::from(tile[2]) * 16 + apart.below(tile[2] as usize) as i64;
        problem[2] = apart.pick(&[problem[2], long]).min(room).max(1);
    }
    if random.chance(8) {
        let mode = random.pick(&[0, 1, 2, 2, 2, 3]);
        problem.iter_mut().skip(mode).take(1).for_each(|extent| *extent = 0);
    }
    if plan.settings().get("pairs").is_some_and(|pairs| pairs == "true") {
        problem[1] += problem[1] % 2;
    }
    of(plan, random, &problem)
}

/// Whether the problems of a product have an extent beside M, N and K.
pub(super) fn last_extent(plan: &Plan) -> bool {
    plan.problem_shape()
        .is_some_and(|shape| shape.extents().iter().any(|name| !["M", "N", "K", "R", "S"].contains(&name.as_str())))
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
    let shapes = plan.shapes(&named(plan, extents)).expect("extents of a product");
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
    planted.extend(drawn_indices(plan, random, extents, in_place.iter().any(Option::is_some)));
    Problem { layouts, in_place, scalars, fills, planted, seed: random.word() >> 32 }
}
