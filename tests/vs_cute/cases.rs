//! Random cases for every operation of the line protocol.

use cutemplate::layout::{IntTuple, Layout};

use crate::cpp::Case;
use crate::random::{Random, extents, strides};

/// Every operation, with how many of 64 cases it gets.
pub(crate) const OPERATIONS: [(&str, usize); 55] = [
    ("coalesce", 2),
    ("filter", 2),
    ("filter_zeros", 2),
    ("flatten", 1),
    ("unflatten", 1),
    ("nullspace", 1),
    ("right_inverse", 3),
    ("left_inverse", 4),
    ("cosize", 1),
    ("coshape", 1),
    ("size", 1),
    ("rank", 1),
    ("depth", 1),
    ("max_alignment", 2),
    ("make_layout", 1),
    ("make_layout_right", 1),
    ("make_layout_like", 2),
    ("make_fragment_like", 2),
    ("make_identity_layout", 1),
    ("make_ordered_layout", 2),
    ("make_layout_tv", 2),
    ("zip", 1),
    ("complement", 5),
    ("composition", 12),
    ("logical_divide", 4),
    ("zipped_divide", 2),
    ("tiled_divide", 2),
    ("flat_divide", 2),
    ("logical_product", 4),
    ("zipped_product", 2),
    ("tiled_product", 2),
    ("flat_product", 2),
    ("blocked_product", 2),
    ("raked_product", 2),
    ("tile_to_shape", 2),
    ("upcast", 2),
    ("downcast", 2),
    ("recast_layout", 2),
    ("max_common_vector", 2),
    ("max_common_layout", 2),
    ("domain_distribute", 1),
    ("crd2idx", 2),
    ("eval", 1),
    ("idx2crd", 1),
    ("crd2crd", 1),
    ("compatible", 1),
    ("congruent", 1),
    ("weakly_congruent", 1),
    ("evenly_divides", 2),
    ("ceil_div", 1),
    ("shape_div", 2),
    ("append", 1),
    ("prepend", 1),
    ("replace", 1),
    ("group", 1),
];

/// The rest: operations whose operands need more words.
pub(crate) const MORE: [(&str, usize); 6] =
    [("take", 1), ("select", 1), ("slice", 2), ("dice", 2), ("slice_and_offset", 2), ("vals", 1)];

/// `count` cases, spread over all operations by their weights.
pub(crate) fn random_cases(seed: u64, count: usize) -> Vec<Case> {
    let table: Vec<&str> =
        OPERATIONS.iter().chain(&MORE).flat_map(|(op, weight)| std::iter::repeat_n(*op, *weight)).collect();
    let mut random = Random::new(seed);
    let mut cases = Vec::with_capacity(count);
    while cases.len() < count {
        for op in &table {
            if cases.len() < count {
                cases.push(random_case(&mut random, op));
            }
        }
    }
    cases
}

/// A nesting of so many leaves, at most three levels deep.
fn profile(random: &mut Random, leaves: usize, level: usize) -> String {
    if leaves == 1 && (level > 0 || !random.one_in(12)) {
        return "#".to_owned();
    }
    let mut modes = Vec::new();
    let mut left = leaves;
    while left > 0 {
        let most = if level < 2 { left.min(3) } else { 1 };
        let take = if modes.is_empty() && left == leaves && leaves > 1 {
            random.below(most.min(leaves - 1)) + 1
        } else {
            random.below(most) + 1
        };
        modes.push(if take > 1 && random.one_in(2) && level < 2 {
            profile(random, take, level + 1)
        } else {
            vec!["#"; take].join(",")
        });
        left -= take;
    }
    format!("({})", modes.join(","))
}

fn fill(profile: &str, leaves: &[i64]) -> String {
    let mut leaves = leaves.iter();
    profile
        .chars()
        .map(|c| if c == '#' { leaves.next().map_or(String::new(), i64::to_string) } else { c.to_string() })
        .collect()
}

/// A layout of up to `most` leaves, as text.
fn layout(random: &mut Random, most: usize) -> String {
    let leaves = 1 + random.below(most);
    let form = profile(random, leaves, 0);
    let s = extents(random, leaves);
    let mut d = strides(random, &s, false);
    for (stride, extent) in d.iter_mut().zip(&s) {
        if random.one_in(8) || (*extent == 1 && random.one_in(2)) {
            *stride = 0;
        }
    }
    format!("{}:{}", fill(&form, &s), fill(&form, &d))
}

/// A compact layout, as text: what products and inverses are mostly used with.
fn compact(random: &mut Random, most: usize) -> String {
    let leaves = 1 + random.below(most);
    let form = profile(random, leaves, 0);
    let s = extents(random, leaves);
    let mut order: Vec<usize> = (0..leaves).collect();
    random.shuffle(&mut order);
    let mut d = vec![0; leaves];
    let mut current = 1;
    for i in order {
        d[i] = current;
        current *= s[i];
    }
    format!("{}:{}", fill(&form, &s), fill(&form, &d))
}

fn either(random: &mut Random, most: usize) -> String {
    if random.one_in(2) { layout(random, most) } else { compact(random, most) }
}

fn shape(random: &mut Random, most: usize) -> String {
    let leaves = 1 + random.below(most);
    let form = profile(random, leaves, 0);
    fill(&form, &extents(random, leaves))
}

fn parsed(text: &str) -> Layout {
    text.parse().expect("the generator writes layouts")
}

/// A tiler for a layout: a layout, a shape, or an entry for each of some modes.
fn tiler(random: &mut Random, of: &str, keep: bool) -> String {
    let rank = parsed(of).rank();
    match random.below(4) {
        0 => {
            let modes: Vec<String> =
                (0..1 + random.below(rank)).map(|_| random.pick(&["1", "2", "2", "4", "3"]).to_string()).collect();
            format!("({})", modes.join(","))
        }
        1 => {
            let entry = |random: &mut Random| match random.below(if keep { 4 } else { 3 }) {
                0 => random.pick(&["2", "4", "1"]).to_string(),
                1 => format!("{}:{}", random.pick(&[2, 4]), random.pick(&[1, 1, 2])),
                2 => compact(random, 1),
                _ => "_".to_owned(),
            };
            let entries: Vec<String> = (0..1 + random.below(rank)).map(|_| entry(random)).collect();
            format!("[{}]", entries.join(","))
        }
        _ => either(random, 2),
    }
}

/// A coordinate that fits: integers for modes, perhaps tuples, `_` where asked.
fn coord(random: &mut Random, shape: &IntTuple, underscores: bool) -> String {
    if underscores && random.one_in(2) {
        return "_".to_owned();
    }
    if shape.is_leaf() || random.one_in(3) {
        return random.below(shape.size().expect("small").max(2) as usize).to_string();
    }
    let modes: Vec<String> = shape.modes().map(|mode| coord(random, &mode, underscores)).collect();
    format!("({})", modes.join(","))
}

/// A coordinate with at least one `_` and at least one integer, for a layout of rank 2 or more.
fn mixed(random: &mut Random, layout: &str) -> String {
    let shape = parsed(layout).shape().clone();
    let mut modes: Vec<String> = shape.modes().map(|mode| coord(random, &mode, true)).collect();
    let (keep, fix) = (random.below(modes.len()), random.below(modes.len()));
    modes[keep] = "_".to_owned();
    let fix = if fix == keep { (keep + 1) % modes.len() } else { fix };
    modes[fix] = "1".to_owned();
    format!("({})", modes.join(","))
}

/// A layout of at least two modes.
fn wide(random: &mut Random) -> String {
    loop {
        let layout = layout(random, 4);
        if parsed(&layout).rank() > 1 {
            return layout;
        }
    }
}

fn random_case(random: &mut Random, op: &str) -> Case {
    let one = |input: String| Case::new(op, [input]);
    match op {
        "size" | "rank" | "depth" | "cosize" | "coshape" | "flatten" | "nullspace" | "vals" | "make_layout_like"
        | "make_fragment_like" => one(layout(random, 4)),
        "right_inverse" | "left_inverse" | "max_alignment" => one(either(random, 4)),
        "coalesce" | "filter" if random.one_in(2) => one(layout(random, 5)),
        "filter_zeros" if random.one_in(2) => one(layout(random, 4)),
        "coalesce" | "filter" => {
            let a = wide(random);
            let modes = 1 + random.below(parsed(&a).rank());
            let profile = format!("({})", vec!["1"; modes].join(","));
            Case::new(op, [a, profile])
        }
        "filter_zeros" => {
            let a = wide(random);
            let marks: Vec<&str> = (0..parsed(&a).rank()).map(|_| *random.pick(&["0", "1"])).collect();
            Case::new(op, [a, format!("({})", marks.join(","))])
        }
        "unflatten" => {
            let leaves = 2 + random.below(3);
            let flat = format!("({})", vec!["#"; leaves].join(","));
            let s = extents(random, leaves);
            let d = strides(random, &s, false);
            let profile = profile(random, leaves, 0).replace('#', "1");
            Case::new(op, [format!("{}:{}", fill(&flat, &s), fill(&flat, &d)), profile])
        }
        "make_layout" | "make_layout_right" | "make_identity_layout" => one(shape(random, 4)),
        "make_ordered_layout" => {
            let leaves = 2 + random.below(3);
            let s = extents(random, leaves);
            let mut order: Vec<i64> = (0..leaves as i64).collect();
            random.shuffle(&mut order);
            if random.one_in(4) {
                order[0] = order[leaves - 1];
            }
            let form = profile(random, leaves, 0);
            Case::new(op, [fill(&form, &s), fill(&form, &order)])
        }
        "make_layout_tv" => Case::new(op, [compact(random, 2), compact(random, 2)]),
        "zip" => {
            let (s, rank) = (extents(random, 4), random.below(2));
            let form = if rank == 0 { "((#,#),(#,#))" } else { "((#,(#,#)),(#,#))" };
            let s = [s, vec![2]].concat();
            one(format!("{}:{}", fill(form, &s), fill(form, &strides(random, &s, false))))
        }
        "complement" => {
            let a = either(random, 3);
            match random.below(3) {
                0 => one(a),
                1 => Case::new(op, [a, random.pick(&[1, 12, 16, 24, 64, 100]).to_string()]),
                _ => Case::new(op, [a, shape(random, 2)]),
            }
        }
        "composition" => {
            let a = either(random, 4);
            let b = if random.one_in(4) { tiler(random, &a, true) } else { either(random, 3) };
            Case::new(op, [a, b])
        }
        _ => random_case_of_two(random, op),
    }
}

fn random_case_of_two(random: &mut Random, op: &str) -> Case {
    match op {
        "logical_divide" | "zipped_divide" | "tiled_divide" | "flat_divide" => {
            let a = either(random, 3);
            let keep = op == "logical_divide";
            let t = tiler(random, &a, keep);
            Case::new(op, [a, t])
        }
        "logical_product" | "zipped_product" | "tiled_product" | "flat_product" => {
            let a = compact(random, 3);
            let t = tiler(random, &a, false);
            Case::new(op, [a, t])
        }
        "blocked_product" | "raked_product" => Case::new(op, [compact(random, 2), compact(random, 2)]),
        "tile_to_shape" => {
            let (m, n) = (*random.pick(&[2, 4]), *random.pick(&[2, 8]));
            let block = if random.one_in(2) { format!("({m},{n}):({n},1)") } else { format!("({m},{n}):(1,{m})") };
            let (x, y) = (m * random.between(1, 4) + i64::from(random.one_in(8)), n * random.between(1, 3));
            let mut inputs = vec![block, format!("({x},{y})")];
            if random.one_in(2) {
                inputs.push(random.pick(&["(1,0)", "(0,1)"]).to_string());
            }
            Case::new(op, inputs)
        }
        "upcast" | "downcast" => Case::new(op, [either(random, 3), random.pick(&["2", "4", "3", "8"]).to_string()]),
        "recast_layout" => {
            let bits = ["4", "8", "16", "32", "6"];
            Case::new(op, [compact(random, 3), random.pick(&bits).to_string(), random.pick(&bits[..4]).to_string()])
        }
        "max_common_vector" | "max_common_layout" => {
            let a = compact(random, 3);
            let b = if random.one_in(3) { a.clone() } else { either(random, 3) };
            Case::new(op, [a, b])
        }
        "domain_distribute" => Case::new(op, [shape(random, 3), random.between(2, 24).to_string()]),
        "crd2idx" => {
            let a = layout(random, 4);
            Case::new(op, [coord(random, parsed(&a).shape(), false), a])
        }
        "eval" => {
            let a = layout(random, 4);
            let c = coord(random, parsed(&a).shape(), false);
            Case::new(op, [a, c])
        }
        "idx2crd" => Case::new(op, [random.below(40).to_string(), shape(random, 4)]),
        "crd2crd" => {
            let leaves = 2 + random.below(2);
            let (from, to) = (extents(random, leaves), extents(random, leaves));
            let c: Vec<i64> = from.iter().map(|s| random.below(*s as usize) as i64).collect();
            let form = format!("({})", vec!["#"; leaves].join(","));
            Case::new(op, [fill(&form, &c), fill(&form, &from), fill(&form, &to)])
        }
        "compatible" | "congruent" | "weakly_congruent" => {
            let a = shape(random, 3);
            let b = if random.one_in(2) { a.replacen('4', "(2,2)", 1) } else { shape(random, 3) };
            Case::new(op, [a, b])
        }
        "evenly_divides" => {
            let a = wide(random);
            let t = tiler(random, &a, false);
            Case::new(op, [parsed(&a).shape().to_string(), t])
        }
        "ceil_div" => {
            let a = shape(random, 3);
            let b = if random.one_in(2) {
                random.between(1, 12).to_string()
            } else {
                a.replace('4', "3").replace('6', "4")
            };
            Case::new(op, [a, b])
        }
        "shape_div" => {
            let a = shape(random, 3);
            let b = if random.one_in(2) {
                random.pick(&["1", "2", "4", "12"]).to_string()
            } else {
                a.replace('4', "2").replace('6', "3")
            };
            Case::new(op, [a, b])
        }
        _ => random_case_of_modes(random, op),
    }
}

fn random_case_of_modes(random: &mut Random, op: &str) -> Case {
    let a = wide(random);
    let rank = parsed(&a).rank();
    match op {
        "append" | "prepend" => {
            let mut inputs = vec![a, (rank + random.below(3)).to_string()];
            if random.one_in(2) {
                inputs.push(layout(random, 2));
            }
            Case::new(op, inputs)
        }
        "replace" => Case::new(op, [a, random.below(rank).to_string(), layout(random, 2)]),
        "group" | "take" => {
            let begin = random.below(rank);
            let end = begin + 1 + random.below(rank - begin);
            Case::new(op, [a, begin.to_string(), end.to_string()])
        }
        "select" => {
            let indices: Vec<String> = (0..1 + random.below(3)).map(|_| random.below(rank).to_string()).collect();
            Case::new(op, std::iter::once(a).chain(indices))
        }
        "slice" | "dice" | "slice_and_offset" => {
            let c = mixed(random, &a);
            Case::new(op, [a, c])
        }
        op => panic!("{op} has no generator"),
    }
}
