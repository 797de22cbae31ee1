//! Recipes and problems of `gemm`, drawn at random: legal and illegal ones.

use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::DType;
use cutemplate::emit::render;
use cutemplate::expr::{Compute, Function};
use cutemplate::plan::{Groups, Operand, Plan, ProblemShape};
use cutemplate::recipe::gemm::{Block, Consumers, Factors, ScaleType};
use cutemplate::recipe::product::{Extents, Major};
use cutemplate::recipe::{Gemm, Raster, Recipe};
use cutemplate::verify::{Fill, TensorLayout};
use cutemplate::view::Access;

use super::sgemm::{aux, epilogue, last_extent};
use super::{Kernel, Problem, Random};

/// Recipes from this number on are of pairs of columns.
pub(crate) const OF_PAIRS: u64 = 100_000;

/// The recipe of a number: the same on every machine. Every value of every setting comes; most of them are kernels.
pub(crate) fn drawn(index: u64) -> Gemm {
    if index >= OF_PAIRS { paired(index) } else { unpaired(index) }
}

/// An epilogue of pairs, and one in ten times a recipe that is none: columns, pieces of K and tiles as they were drawn.
fn paired(index: u64) -> Gemm {
    let (random, recipe) = (&mut Random::new(86, index), unpaired(index));
    let any = random.chance(10);
    let Gemm { out, batched, groups, mut tile, .. } = recipe;
    let l = if batched || matches!(groups, Groups::Masked | Groups::K) { ",?" } else { "" };
    let (bias, weight) = (format!("{}:(0,1{l})", random.pick(&["f32", "f16"])), format!("f32:(1,0{l})"));
    let all = [
        ("|gate, up| silu(gate) * up", vec![]),
        ("|gate, up, c; beta| gate * up + beta * c", vec![]),
        ("|gate, up, weight, s, t| (gate + s) * (up - t) * weight", vec![weight.clone(), bias.clone()]),
        ("|gate, up, c, s, t, weight| max(gate, s) * weight - up * t + c, up", vec![bias, weight]),
    ];
    let all = if out == DType::I32 { &all[1..2] } else { &all[..] };
    let (text, aux) = all[random.below(all.len())].clone();
    let aux = aux.iter().map(|spec| spec.parse().expect("a tensor")).collect();
    if any {
        return Gemm { pairs: true, ..recipe }.with_epilogue(text.parse().expect("a function"), aux);
    }
    // A swizzle's length of columns of D for each CTA of a tile; 128 of them share a scale.
    let least = 32 * if out.bytes().0 == 1 { 2 } else { 1 } * recipe.split_k.max(1);
    let scale_d = recipe.scale_d.filter(|_| recipe.scale_a.is_none() && !text.contains(", up"));
    tile.0[1] = if scale_d.is_some() { 256 } else { tile.0[1].next_multiple_of(least) };
    let (stream_k, sm80_stream_k, stages) = (0, 0, recipe.stages.min(3));
    let paired = Gemm { pairs: true, d: Major::Row, tile, stages, stream_k, sm80_stream_k, scale_d, ..recipe };
    paired.with_epilogue(text.parse().expect("a function"), aux)
}

fn unpaired(index: u64) -> Gemm {
    let random = &mut Random::new(83, index);
    // One in ten is anything, and the others fit in registers and in shared memory.
    let any = random.chance(10);
    let dtype = random.pick(Factors::ALL);
    let factors = dtype.dtype();
    let is_narrow = matches!(factors, DType::E4m3 | DType::E5m2);
    let bytes = factors.bytes().0 as u32;
    let tile = |random: &mut Random, columns: &[u32], capacity: u32| {
        let k = random.pick(if any { &[16, 32, 96, 256] } else { &[32, 64, 128, 128] }) / bytes;
        let [m, n] = loop {
            let rows: &[u32] = if any { &[0, 64, 96, 256, 512] } else { &[64, 128, 192, 256, 128] };
            let tile = [random.pick(rows), random.pick(columns)];
            if any || tile[0] * tile[1] <= 49152 {
                break tile;
            }
        };
        let most = (capacity / (bytes * (m + n) * k).max(1)).clamp(2, 16);
        let stages = if any { random.pick(&[1, 3, 8, 17]) } else { 2 + random.below(most as usize - 1) as u32 };
        (Extents([m, n, k]), stages)
    };
    // Others want a header of CuTe's that takes nvcc 10 s.
    let usual = !random.chance(15);
    let columns: &[u32] =
        if usual { &[16, 32, 64, 96, 128, 192, 256] } else { &[48, 80, 112, 144, 160, 176, 208, 224, 240] };
    let own = tile(random, columns, 160_000);
    let older = tile(random, &[32, 64, 96, 128, 256], 98_000);
    let outs: &[DType] = match factors {
        _ if any => &[DType::F16, DType::Bf16, DType::I8],
        _ if is_narrow => &[DType::F16, DType::Bf16, DType::F32, DType::E4m3],
        DType::I8 => &[DType::I32, DType::I32, DType::F16, DType::Bf16, DType::F32],
        _ => &[factors, DType::F32],
    };
    let out = random.pick(outs);
    let major = |random: &mut Random| random.pick(Major::ALL);
    let [a, b, d] = [0, 1, 2].map(|_| major(random));
    let batched = random.chance(30);
    let large = random.pick(&[[4, 1], [1, 4], [4, 2], [2, 4]]);
    let mut recipe = Gemm {
        dtype,
        out,
        a,
        b,
        d,
        batched,
        tile: own.0,
        stages: own.1,
        cluster: Extents(random.pick(&[[1, 1], [2, 1], [1, 2], [2, 2], large, if any { [3, 1] } else { [2, 1] }])),
        group: random.pick(&[None, None, Some(1), Some(2), Some(3), Some(64), Some(if any { 0 } else { 8 })]),
        ctas: random.pick(&[4, 7, 66, 132, 128, 1000]),
        sm80_tile: older.0,
        sm80_stages: older.1,
        ..Gemm::default()
    };
    if random.chance(60) {
        recipe.epilogue = epilogue(random);
        let count = recipe.epilogue.inputs().saturating_sub(2);
        recipe.aux = (0..count).map(|_| aux(random, batched)).collect();
    }
    // Integers have no roots, and other operations that floats have.
    if recipe.out == DType::I32 && recipe.epilogue.check(Compute::I32).is_err() {
        let sum = "|a, c; beta| max(a + beta * c, 7 - a)".parse().expect("a function");
        (recipe.epilogue, recipe.aux) = (sum, Vec::new());
    }
    if random.chance(40) {
        recipe.schedule = Consumers::Pingpong;
        let [m, n, _] = &mut recipe.tile.0;
        // A warpgroup has the accumulators of a whole tile.
        if !any {
            *m = if *n > 192 { 64 } else { 128.min(*m) };
        }
    }
    if random.chance(40) {
        recipe.split_k = random.pick(if any { &[0, 1, 2, 3, 4, 8] } else { &[2, 2, 4] });
        // What follows is a kernel: those that take turns have a tile each, of eight CTAs a cluster is, and each stores columns.
        if !any {
            recipe.schedule = Consumers::Cooperative;
            recipe.stages = recipe.stages.min(2);
            let [m, n, _] = &mut recipe.tile.0;
            (*m, *n) = ((*m).min(128), (*n).max(16 * recipe.split_k).next_multiple_of(64).min(128));
            if recipe.split_k * recipe.cluster.0.iter().product::<u32>() > 8 {
                recipe.cluster = Extents([1, 2]);
            }
            recipe.ctas = recipe.ctas.max(8);
        }
    }
    if random.chance(30) {
        recipe.stream_k = random.pick(if any { &[1, 2, 65537] } else { &[1, 1, 2, 16] });
        if !any {
            (recipe.schedule, recipe.split_k) = (Consumers::Cooperative, 1);
        }
    }
    if random.chance(30) {
        recipe.sm80_stream_k = random.pick(if any { &[1, 16, 65537] } else { &[1, 1, 2, 16] });
    }
    if random.chance(60) {
        recipe.sm80_ctas = random.pick(if any { &[0, 7, 65537] } else { &[1, 3, 7, 66, 264] });
    }
    let is_full = !any && random.chance(30);
    if !any {
        // A cluster is launched as a whole.
        recipe.ctas = recipe.ctas.max(recipe.cluster.0.iter().product());
    }
    recipe.raster = random.pick(&[None, None, Some(Raster::AlongM), Some(Raster::AlongN)]);
    if random.chance(25) && recipe.epilogue.outputs() == 1 {
        recipe.epilogue = with_second(random, &recipe.epilogue);
    }
    if is_narrow || any {
        recipe.dtype_b = random.pick(&[None, Some(Factors::E4m3), Some(Factors::E5m2)]);
        let k = recipe.tile.0[2];
        recipe.promote = random.pick(&[0, k, 2 * k, if any { 1 } else { 128 }]);
        let n = &mut recipe.tile.0[1];
        if !any {
            *n = if recipe.out == DType::E4m3 { n.next_multiple_of(32) } else { *n };
            *n = if recipe.promote > 0 { (*n).min(128) } else { *n };
        }
    }
    // Scales come with k-tiles of as many elements as they are of.
    if is_narrow && (any || recipe.tile.0[2] == 128) && random.chance(50) {
        let block = |random: &mut Random| Some(random.pick(Block::ALL));
        (recipe.promote, recipe.scale_a, recipe.scale_b) = (128, block(random), block(random));
        let n = &mut recipe.tile.0[1];
        *n = if any { *n } else { (*n).min(128) };
    }
    if recipe.scale_a.is_some() || any {
        recipe.scale_type = random.pick(ScaleType::ALL);
    }
    let whole = recipe.split_k == 1 && recipe.stream_k == 0 && recipe.d == Major::Row && recipe.epilogue.outputs() == 1;
    if recipe.out == DType::E4m3 && (any || whole && recipe.tile.0[1] % 128 == 0) && random.chance(50) {
        recipe.scale_d = Some(random.pick(if any { Block::ALL } else { &[Block::Row] }));
    }
    // Groups are drawn by numbers of their own.
    let of_groups = &mut Random::new(84, index);
    if of_groups.chance(25) {
        recipe.groups = of_groups.pick(&[Groups::Rows, Groups::Rows, Groups::Masked, Groups::K]);
        if !any {
            match (recipe.groups, recipe.dtype) {
                (Groups::K, Factors::F16 | Factors::Bf16) => {
                    (recipe.a, recipe.b, recipe.schedule) = (Major::Col, Major::Row, Consumers::Cooperative);
                }
                (Groups::K, _) => recipe.groups = Groups::Rows,
                _ => {}
            }
            (recipe.batched, recipe.d, recipe.split_k) = (false, Major::Row, 1);
            (recipe.stream_k, recipe.sm80_stream_k) = (0, 0);
            if recipe.groups == Groups::Rows && recipe.scale_a.is_some() {
                recipe.scale_a = Some(Block::Row);
            }
        }
    }
    if of_groups.chance(20) {
        (recipe.gather, recipe.scatter) = of_groups.pick(&[(true, false), (false, true), (true, true)]);
        if !any {
            (recipe.batched, recipe.d, recipe.stream_k, recipe.sm80_stream_k) = (false, Major::Row, 0, 0);
            recipe.a = if recipe.gather { Major::Row } else { recipe.a };
            recipe.groups = if recipe.groups == Groups::Rows { Groups::Rows } else { Groups::None };
        }
    }
    if is_full {
        as_full_as_it_is_right(&mut recipe);
    }
    recipe
}

/// The same with a second output: an input, or something else that is made of it.
fn with_second(random: &mut Random, epilogue: &Function) -> Function {
    let inputs: Vec<&str> = epilogue.input_names().collect();
    let of = random.pick(&inputs);
    let second = random.pick(&[of.to_owned(), format!("{of} * 3"), format!("relu({of} + 1)")]);
    let (names, scalars) = (inputs.join(", "), epilogue.scalars().join(", "));
    let scalars = if scalars.is_empty() { scalars } else { format!("; {scalars}") };
    format!("|{names}{scalars}| {}, {second}", epilogue.body()).parse().expect("a function")
}

/// As many stages as there is room for, so that little of shared memory is left for D.
fn as_full_as_it_is_right(recipe: &mut Gemm) {
    let sm90a = Targets::new([Arch::Sm90a]).expect("an architecture");
    let fits = |stages: &u32| Gemm { stages: *stages, ..recipe.clone() }.plan(&sm90a).is_ok();
    recipe.stages = (2..=16).rev().find(fits).unwrap_or(recipe.stages);
}

/// The kernels of a plan's parts that are of one architecture.
pub(crate) fn parts(index: u64, plan: &Plan, arch: Arch) -> Vec<Kernel> {
    let of = |part: &&Plan| part.targets().archs().contains(&arch);
    plan.texts().iter().filter(of).map(|part| Kernel { index, unit: render(part), plan: part.clone() }).collect()
}

/// A problem of these extents, with three batches, or groups, where there are any: rows begin at multiples of 16 bytes, with so many elements
/// behind each, but those of D anywhere where M is odd.
pub(crate) fn sized(plan: &Plan, extents: &[i64; 3], gap: Option<i64>, fill: Fill, seed: u64) -> Problem {
    let batches = last_extent(plan).then_some(3);
    let extents: Vec<i64> = extents.iter().copied().chain(batches).collect();
    let mut problem = placed(plan, &named(plan, &extents), gap, fill, seed);
    problem.planted.extend(drawn_indices(plan, &mut Random::new(85, seed), &extents, problem.is_in_place()));
    problem
}

/// The same of groups of rows with these ends, or counts, where it has groups. Where an index names rows, A has half as many as the product,
/// and D more. Some indices name no row.
pub(crate) fn grouped(
    plan: &Plan,
    [m, n, k]: [i64; 3],
    ends: &[i64],
    gap: Option<i64>,
    fill: Fill,
    seed: u64,
) -> Problem {
    let mut problem = placed(plan, &named(plan, &[m, n, k, ends.len() as i64]), gap, fill, seed);
    problem.planted.extend(indices(plan, [m, m / 2 + 3, m + 41], ends, seed as i64));
    problem
}

/// The extents of a problem in its order, of M, N, K and what counts batches or groups: where an index names rows, A has half as many as the
/// product, and D more.
pub(super) fn named(plan: &Plan, extents: &[i64]) -> Vec<i64> {
    let names = plan.problem_shape().map_or(&[][..], ProblemShape::extents);
    let extent = |name: &String| match name.as_str() {
        "M" => extents[0],
        "N" => extents[1],
        "K" => extents[2],
        "R" => extents[0] / 2 + 3,
        "S" => extents[0] + 41,
        _ => extents.get(3).copied().unwrap_or(1),
    };
    names.iter().map(extent).collect()
}

/// What ends of groups and indices of rows hold. Some indices name no row, and no two the same row of D.
fn indices(
    plan: &Plan,
    [m, of_a, of_d]: [i64; 3],
    ends: &[i64],
    step: i64,
) -> impl Iterator<Item = (usize, Vec<u64>, f32)> {
    let values = move |(operand, of): (usize, &Operand)| {
        let values: Vec<i64> = match &*of.name {
            "Offsets" | "Counts" => ends.to_vec(),
            "Gather" => (0..m).map(|row| (row * 31 + step) % (of_a + 4) - 2).collect(),
            // Each row once: 7919 is a prime.
            "Scatter" => (0..m)
                .map(|row| if row % 11 == 7 { [-1, of_d][row as usize % 2] } else { (row * 7919 + step) % of_d })
                .collect(),
            _ => Vec::new(),
        };
        (0..).zip(values).map(move |(at, value)| (operand, vec![at], value as f32)).collect::<Vec<_>>()
    };
    plan.operands().iter().enumerate().flat_map(values)
}

/// The same for a problem of M, N, K and so many groups: ends or counts within its rows, or its K, now and then outside. `whole` leaves no
/// row out: what lies in the place of an output is not what an output holds before it is written.
pub(super) fn drawn_indices(
    plan: &Plan,
    random: &mut Random,
    extents: &[i64],
    whole: bool,
) -> Vec<(usize, Vec<u64>, f32)> {
    let names = ["Offsets", "Counts", "Gather", "Scatter"];
    if !plan.operands().iter().any(|operand| names.contains(&&*operand.name)) {
        return Vec::new();
    }
    let along_k = plan.settings().get("groups").is_some_and(|groups| groups == "k");
    let most = if along_k { extents[2] } else { extents[0] };
    let outside = if random.chance(10) { 70 } else { 0 };
    let mut end = |_| random.below((most + 1 + 2 * outside) as usize) as i64 - outside;
    let mut ends: Vec<i64> = (0..extents.get(3).copied().unwrap_or(0)).map(&mut end).collect();
    if random.chance(90) && plan.operands().iter().any(|operand| &*operand.name == "Offsets") {
        ends.sort_unstable();
        // Behind the last group there are rows of none, or there are not.
        if random.chance(50)
            && let Some(last) = ends.last_mut()
        {
            *last = most;
        }
    }
    if whole {
        let counts = plan.operands().iter().any(|operand| &*operand.name == "Counts");
        ends.iter_mut().for_each(|end| *end = if counts { most } else { (*end).clamp(0, most) });
        ends.sort_unstable();
        ends.iter_mut().next_back().into_iter().for_each(|last| *last = most);
    }
    indices(plan, [extents[0], extents[0] / 2 + 3, extents[0] + 41], &ends, random.below(1000) as i64).collect()
}

fn placed(plan: &Plan, extents: &[i64], gap: Option<i64>, fill: Fill, seed: u64) -> Problem {
    let shapes = plan.shapes(extents).expect("extents of a product");
    let layouts = plan.operands().iter().zip(&shapes).map(|(operand, shape)| {
        let longest = shape.iter().max().map_or(0, |extent| extent.max(&1) + 7) / 8 * 8;
        let odd = i64::from(operand.access == Access::Write && extents[0] % 2 == 1);
        let ld = gap.map(|gap| longest + gap + odd);
        TensorLayout::from(operand.layout(shape, ld).expect("few elements"))
    });
    let inputs = plan.operands().iter().filter(|operand| operand.access == Access::Read).count();
    let fills = (0..inputs).map(|_| fill).collect();
    let scalars = plan.scalars().iter().map(|_| 2.0).collect();
    let planted = exponents(plan, &shapes, fill, seed);
    Problem { layouts: layouts.collect(), in_place: vec![None; inputs], scalars, fills, planted, seed }
}

/// Scales that are powers of two: small integers beside integers, else numbers around 1, and with special values the smallest one and NaN.
fn exponents(plan: &Plan, shapes: &[Vec<i64>], fill: Fill, seed: u64) -> Vec<(usize, Vec<u64>, f32)> {
    let of_bytes =
        plan.operands().iter().zip(shapes).enumerate().filter(|(_, (operand, _))| operand.dtype == DType::U8);
    let mut planted = Vec::new();
    for (operand, (_, shape)) in of_bytes {
        let mut coordinate = vec![0; shape.len()];
        for element in 0..shape.iter().product::<i64>() as u64 {
            let mut rest = element;
            for (at, extent) in coordinate.iter_mut().zip(shape).rev() {
                (*at, rest) = (rest % *extent as u64, rest / *extent as u64);
            }
            let drawn = (element * 7919 + seed * 31 + operand as u64) % 101;
            let exponent = match fill {
                Fill::Integers | Fill::Small => 127 + drawn % 3,
                Fill::Specials if drawn == 0 => 255,
                Fill::Specials if drawn == 1 => 0,
                _ => 120 + drawn % 14,
            };
            planted.push((operand, coordinate.clone(), exponent as f32));
        }
    }
    planted
}
