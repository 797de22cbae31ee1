//! Recipes and problems of `attention`, drawn at random: legal and illegal recipes, strides of any order, heads in groups of any size.

use cutemplate::dtype::DType;
use cutemplate::expr::Function;
use cutemplate::plan::{Operand, ParamType, Plan};
use cutemplate::recipe::attention::Mask;
use cutemplate::recipe::product::Extents;
use cutemplate::recipe::{Attention, TensorSpec};
use cutemplate::units::Elements;
use cutemplate::verify::{Fill, TensorLayout};
use cutemplate::view::{Access, ViewLayout};

use super::{Problem, Random};

/// Queries and keys around the borders of warps, steps and tiles.
const LENGTHS: &[i64] = &[0, 1, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 130, 191, 257, 300];

/// Query heads of a key head.
const GROUPS: &[i64] = &[1, 1, 2, 3, 5, 7, 8, 10, 16];

const SCALES: &[f64] = &[0.125, 0.125, 0.088_388_35, 1.0, 0.0, -0.5, 1e-4, 30.0];

/// Keys ahead and behind, and all.
const WINDOWS: &[f64] = &[-1.0, 0.0, 1.0, 5.0, 16.0, 31.0, 64.0, 130.0, 1000.0];

/// Functions of scores, with the tensors that they read: soft cap, ALiBi, bias, documents, a mask, more than a thread would like.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("|s; cap| cap * tanh(s / cap)", &[]),
    ("|s, b, h, q, k| s - exp2(-0.5 * (h + 1)) * abs(q - k)", &[]),
    ("|s, b, h, q, k, slope| s - slope * abs(q - k)", &["f32:(0,1,0,0)"]),
    ("|s, b, h, q, k, bias| s + bias", &["bf16:(?,?,?,1)"]),
    ("|s, b, h, q, k, bias; alpha| alpha * s + bias", &["f32:(0,?,?,?)"]),
    ("|s, b, h, q, k, mine, other| select(mine == other, s, -inf)", &["i8:(?,0,1,0)", "i8:(?,0,0,1)"]),
    ("|s, b, h, q, k; reach| select(b < 2 && (k <= q && q - k < reach * (h + 1) || k < 3), s, -inf)", &[]),
    ("|s, b, h, q, k, x, y, z| min(s, x * y) + z", &["f16:(?,?,?,?)", "f32:(0,0,0,0)", "e4m3:(?,?,1,?)"]),
];

/// A function and its tensors; of sequences one after the other they have no mode of batches.
fn function(random: &mut Random, varlen: bool) -> (Function, Vec<TensorSpec>) {
    let (text, aux) = random.pick(FUNCTIONS);
    let spec = |text: &&str| {
        let mut spec: TensorSpec = text.parse().expect("a tensor");
        spec.strides.drain(..usize::from(varlen));
        spec
    };
    (text.parse().expect("a function"), aux.iter().map(spec).collect())
}

/// The recipe of a number: the same on every machine.
pub(crate) fn drawn(index: u64) -> Attention {
    let random = &mut Random::new(89, index);
    let any = random.chance(10);
    let heads: &[u32] = if any { &[0, 4, 12, 264] } else { &[8, 16, 24, 32, 40, 64, 64, 72, 80, 96, 128, 192, 256] };
    let (head, value) = (random.pick(heads), random.chance(40).then(|| random.pick(&[8, 32, 48, 64, 104, 128, 256])));
    let long = head.max(value.unwrap_or(0)) > 128;
    let rows: &[u32] = if any { &[16, 48, 512] } else { &[64, 64, 128] };
    let steps: &[u32] = if any { &[0, 8, 144] } else { &[16, 32, 48, 64, 96] };
    let tile = random.chance(70).then(|| Extents([random.pick(rows), random.pick(steps)]));
    let tile = if long && !any { random.chance(50).then_some(Extents([64, 32])) } else { tile };
    // Those of sm_90a by numbers of their own.
    let own = &mut Random::new(90, index);
    let rows: &[u32] = if any { &[32, 96, 128] } else { &[64, 64, 128, 192] };
    let (varlen, mask) = (random.chance(30), random.pick(&[Mask::Full, Mask::Causal, Mask::Window]));
    let packed = varlen != (any && random.chance(20));
    let scored = random.chance(40).then(|| function(random, packed));
    let (score, aux) = scored.unwrap_or_else(|| (Attention::default().score, Vec::new()));
    let warps = if any { random.pick(&[0, 3, 16]) } else { random.pick(&[4, 4, 4, 2]) };
    // Pages are drawn by numbers of their own too.
    let of_pages = &mut Random::new(91, index);
    let paged = of_pages.chance(25);
    let drawn = Attention {
        score,
        aux,
        sinks: random.chance(25),
        tile: own.chance(80).then(|| Extents([own.pick(rows), own.pick(steps)])),
        stages: own.pick(&[None, Some(1), Some(2), Some(3)]),
        pingpong: own.pick(&[None, Some(true), Some(false)]),
        ctas: own.pick(&[1, 3, 132]),
        dtype: random.pick(if any { &[DType::F32, DType::F16] } else { &[DType::F16, DType::Bf16] }),
        head,
        value,
        mask,
        varlen,
        lse: random.chance(50),
        sm80_tile: tile,
        sm80_stages: if long { None } else { random.pick(&[None, Some(1), Some(2), Some(3)]) },
        sm80_warps: Some(warps),
        ..Attention::default()
    };
    let drawn = with_keys_of_8_bits(drawn, index, any);
    if !paged {
        return drawn;
    }
    let (score, aux) = match &drawn.aux[..] {
        [] => (drawn.score.clone(), Vec::new()),
        _ if any => (drawn.score.clone(), drawn.aux.clone()),
        _ => function(of_pages, drawn.varlen),
    };
    let ([rows, warps], step) = (of_pages.pick(&[[16, 1], [16, 1], [32, 1], [32, 2]]), of_pages.pick(&[16, 32, 48]));
    // Pages of a size that is known, which TMA copies, by numbers of their own.
    let of_boxes = &mut Random::new(93, index);
    let pages: &[u32] = if any { &[0, 12, 48, 64] } else { &[8, 16, 32, 64, 128, 256] };
    let page = of_boxes.chance(60).then(|| of_boxes.pick(pages));
    let tile = page.map_or(drawn.tile, |_| Some(Extents([of_boxes.pick(&[64, 128]), of_boxes.pick(&[32, 64])])));
    Attention {
        score,
        aux,
        paged,
        page,
        tile,
        split: Some(if any { of_pages.pick(&[0, 8, 96]) } else { step * of_pages.pick(&[1, 2, 5]) })
            .filter(|_| any || (index % 3 != 0 && page.is_none())),
        sm80_tile: of_pages.chance(80).then_some(Extents([rows, step])),
        sm80_stages: of_pages.pick(&[None, Some(1), Some(3)]),
        sm80_warps: Some(warps),
        ..drawn
    }
}

/// Some have keys of 8 bits, by numbers of their own, with rows of whole vectors unless they may be refused.
fn with_keys_of_8_bits(drawn: Attention, index: u64, any: bool) -> Attention {
    let random = &mut Random::new(92, index);
    if !random.chance(25) {
        return drawn;
    }
    let whole = |elements: u32| if any { elements } else { elements.next_multiple_of(16) };
    let dtype_kv = Some(if any { random.pick(&[DType::E5m2, DType::E4m3, DType::F16]) } else { DType::E4m3 });
    Attention { dtype_kv, head: whole(drawn.head), value: drawn.value.map(whole), ..drawn }
}

/// A problem with at most about so many scores.
pub(super) fn problem(plan: &Plan, random: &mut Random, scores: i64) -> Problem {
    let (keys, group) = (random.pick(&[1, 1, 2, 3]), random.pick(GROUPS));
    let lengths = |random: &mut Random, count: usize| (0..count).map(|_| random.pick(LENGTHS)).collect::<Vec<i64>>();
    let count = if is_packed(plan) && !is_paged(plan) { random.pick(&[0, 1, 2, 3, 5, 40]) } else { 1 };
    let (mut of_queries, mut of_keys) = (lengths(random, count), lengths(random, count));
    let mut heads = [keys * group, keys];
    let size = |queries: &[i64], keys: &[i64]| queries.iter().zip(keys).map(|(q, k)| q * k).sum::<i64>();
    if size(&of_queries, &of_keys) * heads[0] > scores {
        heads = [group.min(3), 1];
    }
    while size(&of_queries, &of_keys) * heads[0] > scores {
        of_queries.iter_mut().chain(&mut of_keys).filter(|length| **length > 5).for_each(|length| *length /= 2);
    }
    let fill = random.pick(&[Fill::Integers, Fill::Normal, Fill::Normal, Fill::Specials]);
    let mut scalar = |name: &String| match name.as_str() {
        "scale" => random.pick(SCALES),
        "left" | "right" => random.pick(WINDOWS),
        _ => random.pick(&[20.0, 2.0, 0.5, -1.0, 0.0]),
    };
    let scalars: Vec<f64> = plan.scalars().iter().map(&mut scalar).collect();
    let seed = random.word() >> 32;
    let problem = if is_paged(plan) {
        let batches = random.pick(&[1, 2, 3]);
        let keys: Vec<i64> = (0..batches).map(|_| random.pick(LENGTHS)).collect();
        let page = random.pick(&[1, 3, 16, 48, 256]);
        let page = page_of(plan).unwrap_or(page);
        paged(plan, [of_queries[0].min(9), page], &keys, heads, &scalars, fill, seed)
    } else if is_packed(plan) {
        packed(plan, [&of_queries, &of_keys], heads, &scalars, fill, seed)
    } else {
        let batches = random.pick(&[1, 1, 2, 3]);
        sized(plan, &[batches, of_queries[0], of_keys[0], heads[0], heads[1]], &scalars, fill, seed)
    };
    let shapes: Vec<Vec<i64>> = problem.layouts.iter().map(|layout| layout.layout.shape().to_vec()).collect();
    Problem { layouts: layouts(plan, random, &shapes), ..problem }
}

/// Whether sequences lie one after the other.
pub(crate) fn is_packed(plan: &Plan) -> bool {
    plan.operands().iter().any(|operand| operand.name == "StartsQ")
}

/// Whether keys lie in pages.
pub(crate) fn is_paged(plan: &Plan) -> bool {
    plan.operands().iter().any(|operand| operand.name == "Table")
}

/// The keys of a page, where the recipe says them.
fn page_of(plan: &Plan) -> Option<i64> {
    plan.settings().get("page")?.parse().ok()
}

/// So many queries of sequences of these lengths, whose keys lie in pages of so many. Pages lie in no order, one of them belongs to
/// nobody, and entries behind the last page of a sequence name none. The row behind a sequence's last key holds NaN.
pub(crate) fn paged(
    plan: &Plan,
    [queries, page]: [i64; 2],
    lengths: &[i64],
    heads: [i64; 2],
    scalars: &[f64],
    fill: Fill,
    seed: u64,
) -> Problem {
    let used: Vec<i64> = lengths.iter().map(|length| (length + page - 1) / page).collect();
    let entries = used.iter().max().copied().unwrap_or(0) + (seed % 3) as i64;
    let mut numbers: Vec<i64> = (0..=used.iter().sum()).collect();
    Random::new(seed, 0).shuffle(&mut numbers);
    let (packed, count) = (is_packed(plan), lengths.len() as i64);
    // Sequences of several numbers of queries, and queries of none around them.
    let mut starts = vec![(seed % 3) as i64];
    for number in 0..lengths.len() {
        starts.push(starts[number] + [queries, 1, queries / 2][number % 3]);
    }
    let all = [count, queries];
    let all = if packed { [count + 1, starts[lengths.len()] + (seed / 3 % 5) as i64] } else { all };
    let mut extents = vec![all[0], all[1], entries, heads[0], heads[1], numbers.len() as i64, page];
    extents.extend(packed.then_some(count));
    if plan.problem_shape().is_some_and(|shape| shape.extents().len() > extents.len()) {
        // Elements for one key less than the longest sequence has, as many, or one more.
        extents.push((lengths.iter().max().copied().unwrap_or(0) + (seed / 3 % 3) as i64 - 1).max(0));
    }
    let mut problem = sized(plan, &extents, scalars, fill, seed);
    let at = |name: &str| plan.operands().iter().position(|operand| operand.name == name).expect("an operand");
    let (table, of_lengths, mut next) = (at("Table"), at("Lengths"), numbers.into_iter());
    if packed {
        let start = |(number, start): (u64, i64)| (at("StartsQ"), vec![number], start as f32);
        problem.planted.extend((0..).zip(starts).map(start));
    }
    for (batch, (length, used)) in (0..).zip(lengths.iter().zip(used)) {
        problem.planted.push((of_lengths, vec![batch], *length as f32));
        for entry in 0..entries {
            let number = if entry < used { next.next() } else { None };
            let other = if seed % 2 == 0 { -1 } else { 1 << 20 };
            problem.planted.push((table, vec![batch, entry as u64], number.unwrap_or(other) as f32));
            let tail = number.filter(|_| length % page > 0 && entry + 1 == used).into_iter();
            let rows = tail.flat_map(|number| (0..heads[1] as u64).map(move |head| [number as u64, head]));
            let nan = rows.flat_map(|[number, head]| {
                [at("K"), at("V")].map(|tensor| (tensor, vec![number, (length % page) as u64, head, 0], f32::NAN))
            });
            problem.planted.extend(nan.collect::<Vec<_>>());
        }
    }
    problem
}

/// The same of these extents, `[B, SQ, SK, HQ, HK]`: (B,S,H,D) without gaps.
pub(crate) fn sized(plan: &Plan, extents: &[i64], scalars: &[f64], fill: Fill, seed: u64) -> Problem {
    let shapes = plan.shapes(extents).expect("extents of attention");
    let dense = |(operand, shape): (&Operand, &Vec<i64>)| {
        TensorLayout::from(operand.layout(shape, None).expect("few elements"))
    };
    let layouts = plan.operands().iter().zip(&shapes).map(dense).collect();
    assert!(plan.scalars().len() <= scalars.len(), "{} has {} scalars", plan.name(), plan.scalars().len());
    let scalars = scalars.iter().copied().take(plan.scalars().len()).collect();
    let inputs = plan.operands().iter().filter(|operand| operand.access == Access::Read).count();
    Problem { layouts, in_place: vec![None; inputs], scalars, fills: vec![fill; inputs], planted: Vec::new(), seed }
}

/// The same of sequences of these lengths, one after the other, with rows ahead of the first and behind the last.
pub(crate) fn packed(
    plan: &Plan,
    lengths: [&[i64]; 2],
    heads: [i64; 2],
    scalars: &[f64],
    fill: Fill,
    seed: u64,
) -> Problem {
    let around = [seed % 3, seed / 3 % 70].map(|rows| rows as i64);
    let starts = lengths.map(|lengths| {
        lengths.iter().fold(vec![around[0]], |mut starts, length| {
            starts.push(starts[starts.len() - 1] + length);
            starts
        })
    });
    let [queries, keys] = [0, 1].map(|of| starts[of][starts[of].len() - 1] + around[1]);
    let extents = [starts[0].len() as i64, queries, keys, heads[0], heads[1]];
    let mut problem = sized(plan, &extents, scalars, fill, seed);
    for (of, starts) in (3..).zip(&starts) {
        let start = |(number, start): (u64, &i64)| (of, vec![number], *start as f32);
        problem.planted.extend((0..).zip(starts).map(start));
    }
    problem
}

/// Modes of any order, with gaps that leave rows at multiples of 16 bytes; an input may repeat what it has along a mode.
pub(super) fn layouts(plan: &Plan, random: &mut Random, shapes: &[Vec<i64>]) -> Vec<TensorLayout> {
    let by_tma = plan.params().fields().iter().any(|field| field.ty == ParamType::TensorMap);
    let layout = |(operand, shape): (&Operand, &Vec<i64>)| {
        if !["Q", "K", "V", "O", "Lse", "NewK", "NewV", "Rotated"].contains(&operand.name) {
            return TensorLayout::from(operand.layout(shape, None).expect("few elements"));
        }
        let (of_vectors, reads) = (operand.dtype != DType::F32, operand.access == Access::Read);
        let mut order: Vec<usize> = (0..shape.len() - usize::from(of_vectors)).collect();
        random.shuffle(&mut order);
        let mut stride = vec![1; shape.len()];
        let mut next = if of_vectors { shape[shape.len() - 1] } else { 1 };
        let vector = 16 / operand.dtype.bytes().0 as i64;
        let gaps: &[i64] = if of_vectors { &[0, 0, vector, 3 * vector] } else { &[0, 1, 3] };
        for mode in order {
            // TMA has no rows that are all the same one.
            if reads && random.chance(6) && !(by_tma && mode + 3 == shape.len()) {
                stride[mode] = 0;
                continue;
            }
            stride[mode] = if of_vectors { (next + vector - 1) / vector * vector } else { next } + random.pick(gaps);
            next = stride[mode] * shape[mode].max(1);
            if shape[mode] == 1 && random.chance(30) {
                stride[mode] = random.pick(&[0, 1, 5]);
            }
        }
        let offset = if of_vectors { vector as u64 * random.pick(&[0, 1, 2, 5]) } else { random.pick(&[0, 1, 5]) };
        TensorLayout::from(ViewLayout::strided(shape, &stride).expect("rank 2 to 4")).at_offset(Elements(offset))
    };
    plan.operands().iter().zip(shapes).map(layout).collect()
}
