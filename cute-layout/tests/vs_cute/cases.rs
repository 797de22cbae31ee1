//! Random cases for every operation of the line protocol.
#![allow(clippy::explicit_auto_deref, reason = "without the star the element type is inferred as str")]

use cute_layout::atom::MmaAtom;

use crate::cpp::Case;
use crate::random::{Random, extents, strides};
use crate::texts::{
    compact, coord, either, fill, layout, mixed, parsed, profile, shape, swizzle, swizzled, tiler, wide,
};

/// The operations that CuTe has, with how many of about a hundred cases each gets.
const OPERATIONS: &str = "append 1, blocked_product 2, ceil_div 1, coalesce 2, compatible 1, complement 5, composition 12, \
congruent 1, coshape 1, cosize 1, crd2crd 1, crd2idx 2, depth 1, dice 2, domain_distribute 1, downcast 2, eval 1, \
evenly_divides 2, filter 2, filter_zeros 2, flat_divide 2, flat_product 2, flatten 1, group 1, idx2crd 1, \
left_inverse 4, logical_divide 4, logical_product 4, make_fragment_like 2, make_identity_layout 1, make_layout 1, \
make_layout_like 2, make_layout_right 1, make_layout_tv 2, make_ordered_layout 2, make_swizzle 1, max_alignment 2, \
max_common_layout 2, max_common_vector 2, nullspace 1, prepend 1, raked_product 2, rank 1, recast_layout 2, replace 1, \
right_inverse 3, round_up 1, select 1, shape_div 2, size 1, slice 2, slice_and_offset 2, swizzle_vals 1, take 1, \
tile_to_shape 2, tiled_divide 2, tiled_product 2, unflatten 1, upcast 2, vals 1, weakly_congruent 1, with_shape 3, zip 1, \
zipped_divide 2, zipped_product 2";

/// Those that CuTe does not have.
const OURS_ALONE: [&str; 6] =
    ["is_admissible_for_complement", "is_bijective", "is_compact", "is_injective", "is_tractable", "sorted"];

/// In place of an operation: one with a swizzle or a swizzled layout.
const SWIZZLED: &str = "swizzled";

fn table() -> Vec<(&'static str, usize)> {
    let entry = |entry: &'static str| {
        let (op, weight) = entry.trim().split_once(' ').expect("an operation and a weight");
        (op, weight.parse().expect("a number"))
    };
    OPERATIONS.split(',').map(entry).chain([(SWIZZLED, 12)]).collect()
}

/// `count` cases, spread over all operations by their weights.
pub(crate) fn random_cases(seed: u64, count: usize) -> Vec<Case> {
    let mut table: Vec<&str> = table().into_iter().flat_map(|(op, weight)| std::iter::repeat_n(op, weight)).collect();
    let mut random = Random::new(seed);
    random.shuffle(&mut table);
    (0..count)
        .map(|i| match table[i % table.len()] {
            SWIZZLED => random_swizzled_case(&mut random),
            op => random_case(&mut random, op),
        })
        .collect()
}

#[test]
fn every_operation_has_cases() {
    let mut known: Vec<&str> = table().into_iter().map(|(op, _)| op).filter(|op| *op != SWIZZLED).collect();
    known.extend(OURS_ALONE);
    known.sort_unstable();
    let mut all: Vec<&str> = cute_layout::algebra_tool::ops().map(|op| op.name).collect();
    all.sort_unstable();
    assert_eq!(known, all);
}

fn random_swizzled_case(random: &mut Random) -> Case {
    let sw = swizzled(random);
    match random.below(12) {
        0 => Case::new("composition", [swizzle(random), layout(random, 2)]),
        1 => Case::new("composition", [swizzle(random), swizzle(random)]),
        2 => Case::new("composition", [compact(random, 2), swizzle(random)]),
        3 => Case::new("composition", [sw, either(random, 2)]),
        4 => Case::new("logical_divide", [sw, random.pick(&["(4,2)", "[2:1,_]", "4:1", "(2,4)"]).to_string()]),
        5 => Case::new("zipped_divide", [sw, random.pick(&["(4,2)", "(4,8)", "8:1"]).to_string()]),
        6 => Case::new(*random.pick(&["coalesce", "flatten", "size", "cosize", "vals", "rank"]), [sw]),
        7 => {
            let bits = *random.pick(&[("8", "16"), ("16", "8"), ("8", "32"), ("32", "8"), ("16", "16")]);
            Case::new("recast_layout", [sw.as_str(), bits.0, bits.1])
        }
        8 | 9 => {
            let coord = *random.pick(&["(_,0)", "(1,_)", "(_,3)", "(2,_)", "(3,_)"]);
            let kind = *random.pick(&["static coord", "dynamic coord"]);
            Case::new("slice_and_offset", [sw.as_str(), coord, kind])
        }
        10 => Case::new(*random.pick(&["right_inverse", "left_inverse", "max_alignment"]), [sw]),
        _ => {
            let other = if random.one_in(2) { sw.clone() } else { swizzled(random) };
            match random.below(2) {
                0 => Case::new("max_common_vector", [sw, other]),
                // CuTe has no max_common_layout of two swizzled layouts.
                _ => Case::new("max_common_layout", [sw, compact(random, 2)]),
            }
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
        "make_swizzle" => {
            let (bits, low, high) = (random.between(1, 3), random.below(3), 3 + random.below(3));
            let mask = |at: usize| format!("0b{:b}", ((1 << bits) - 1) << at);
            let (y, z) = if random.one_in(4) { (low, high) } else { (high, low) };
            Case::new(op, [mask(y), mask(z)])
        }
        "swizzle_vals" => Case::new(op, [swizzle(random), "64".to_owned()]),
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
        "with_shape" => Case::new(op, [either(random, 3), shape(random, 3)]),
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
        "round_up" => {
            let a = shape(random, 3);
            let b = a.replace('4', "3").replace('6', "4");
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

/// An atom that wants headers stands in one of them, and any other in the one that is always included.
#[test]
fn atoms_that_want_headers_are_those_of_the_extended_ones() {
    let cutlass = cutlass_sys::Finder::from_env().locate_cutlass().expect("readable").expect("CUTLASS is fetched here");
    let read = |name: &str| std::fs::read_to_string(cutlass.include.join("cute/atom").join(name)).expect(name);
    let (usual, extended) = (read("mma_traits_sm90_gmma.hpp"), read("mma_traits_sm90_gmma_ext.hpp"));
    let mut counts = [0; 2];
    for (types, n) in ["16_F32F16F16_SS", "16_F32BF16BF16_SS", "8_F32TF32TF32_SS_TN"]
        .into_iter()
        .flat_map(|types| (8..=256).step_by(8).map(move |n| (types, n)))
    {
        let name = format!("SM90_64x{n}x{types}");
        let wants =
            MmaAtom::named(&name).expect("an atom").headers().contains(&"cute/atom/mma_traits_sm90_gmma_ext.hpp");
        let defined = format!("using {name} =");
        assert_eq!([&usual, &extended].map(|text| text.contains(&defined)), [!wants, wants], "{name}");
        counts[usize::from(wants)] += 1;
    }
    assert_eq!(counts, [24, 72]);
}
