//! Recipes and problems of `append`, drawn at random: sequences of any lengths, tables with entries that name no page.

use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::Append;
use cutemplate::recipe::append::Pairs;
use cutemplate::verify::Fill;

use super::attention::{layouts, sized};
use super::{Problem, Random};

/// The recipe of a number: the same on every machine.
pub(crate) fn drawn(index: u64) -> Append {
    let random = &mut Random::new(92, index);
    let any = random.chance(10);
    let heads: &[u32] = if any { &[0, 12, 264] } else { &[8, 16, 40, 48, 64, 80, 96, 112, 128, 192, 256] };
    let head = random.pick(heads);
    let whole = head / 16 * 16;
    let rotary = random.pick(&[
        Some(whole),
        Some(0),
        Some(whole.min(32)),
        Some(whole.min(48)),
        if any { Some(20) } else { Some(whole) },
    ]);
    let dtype = random.pick(if any { &[DType::F32, DType::F16] } else { &[DType::F16, DType::Bf16] });
    let kept = if any { [None, Some(dtype), Some(DType::E5m2)] } else { [None, Some(DType::E4m3), Some(DType::E4m3)] };
    Append {
        dtype,
        dtype_kv: random.pick(&kept),
        head,
        value: random.chance(60).then(|| random.pick(&[8, 24, 64, 72, 128, 256])),
        rotary,
        pairs: random.pick(&[Pairs::Half, Pairs::Interleaved]),
        queries: random.chance(60) && (any || rotary != Some(0)),
        varlen: Random::new(93, index).chance(50),
    }
}

/// New rows of up to three sequences, or of many short ones, some of them ahead of position 0, or past the table. Queries may be rotated
/// in place.
pub(super) fn problem(plan: &Plan, random: &mut Random) -> Problem {
    let names = plan.problem_shape().expect("a problem").extents();
    let has = |name: &str| names.iter().any(|own| own == name);
    let packed = has("STARTS");
    let counts: &[i64] = if packed { &[0, 1, 2, 3, 3, 40] } else { &[1, 1, 2, 3] };
    let (batches, new) = (random.pick(counts), random.pick(&[0, 1, 1, 1, 2, 5, 17]));
    let (page, heads) = (random.pick(&[1, 3, 16, 48]), random.pick(&[1, 2, 3]));
    let (page, heads) = if batches > 3 { (1, 1) } else { (page, heads) };
    let count = |random: &mut Random| if packed { random.pick(&[0, 1, 1, 2, new]) } else { new };
    let news: Vec<i64> = (0..batches).map(|_| count(random)).collect();
    let length = |new: &i64| match batches {
        ..=3 => random.pick(&[0, 1, new - 1, *new, new + 1, 20, 47, 48, 49, 65]),
        _ => random.pick(&[0, 1, 2, 3]),
    };
    let lengths: Vec<i64> = news.iter().map(length).collect();
    let longest = lengths.iter().max().copied().unwrap_or(0).max(0);
    // One entry less than the longest sequence needs, as many, or more.
    let entries = ((longest + page - 1) / page + random.pick(&[0, 0, 1, 2, -1])).max(0);
    let mut numbers: Vec<i64> = (0..=batches * entries).collect();
    random.shuffle(&mut numbers);
    let starts = if packed { starts(&news, random) } else { Vec::new() };
    let rows = if packed { [batches + 1, random.pick(&[0, 0, 1, 9]) + starts[news.len()]] } else { [batches, new] };
    let mut extents = vec![rows[0], rows[1], entries, heads, numbers.len() as i64, page];
    extents.extend(packed.then_some(batches));
    extents.extend(has("POSITIONS").then(|| random.pick(&[1, 40, 200])));
    extents.extend(has("HQ").then(|| random.pick(&[1, 4, 6])));
    let fill = random.pick(&[Fill::Integers, Fill::Normal, Fill::Normal, Fill::Specials]);
    let seed = random.word() >> 32;
    let mut problem = sized(plan, &extents, &[], fill, seed);
    let number = |name: &str| plan.operands().iter().position(|operand| operand.name == name);
    let (table, of_lengths) = (number("Table").expect("a table"), number("Lengths").expect("lengths"));
    // Some starts go back, or lie outside.
    let spoiled = packed && random.chance(40);
    for (at, start) in (0..).zip(starts) {
        let start = if spoiled && random.chance(30) { random.pick(&[-3, 2, rows[1] + 1, 1 << 20]) } else { start };
        problem.planted.push((number("StartsQ").expect("starts"), vec![at], start as f32));
    }
    for batch in 0..batches {
        problem.planted.push((of_lengths, vec![batch as u64], lengths[batch as usize] as f32));
        for entry in 0..entries {
            let page = numbers[(batch * entries + entry) as usize];
            let page = if random.chance(10) { random.pick(&[-1, 1 << 20]) } else { page };
            problem.planted.push((table, vec![batch as u64, entry as u64], page as f32));
        }
    }
    let shapes: Vec<Vec<i64>> = problem.layouts.iter().map(|layout| layout.layout.shape().to_vec()).collect();
    problem.layouts = layouts(plan, random, &shapes);
    if let (Some(queries), Some(rotated), true) = (number("Q"), number("Rotated"), random.chance(40)) {
        problem.layouts[queries] = problem.layouts[rotated];
        problem.in_place[queries] = Some(2);
    }
    problem
}

/// Where sequences with so many rows begin, and where the last one ends. The first begins behind rows that are nobody's.
fn starts(news: &[i64], random: &mut Random) -> Vec<i64> {
    let mut all = vec![random.pick(&[0, 0, 1, 3])];
    for (number, new) in news.iter().enumerate() {
        all.push(all[number] + new);
    }
    all
}
