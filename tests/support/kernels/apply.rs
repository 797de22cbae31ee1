//! Elementwise recipes: drawn at random, legal and illegal, and one for each variant, type and class of layouts.

use cutemplate::dtype::{DType, Kind};
use cutemplate::expr::{Compute, Function, MAX_SCALARS};
use cutemplate::layout::Layout;
use cutemplate::plan::ModeStride::{self, Broadcast, Dynamic, Unit};
use cutemplate::recipe::ElementwiseApply;
use cutemplate::recipe::TensorSpec;
use cutemplate::recipe::elementwise_apply::Variant;
use cutemplate::units::Bytes;
use cutemplate::view::MAX_RANK;

use super::Random;
use crate::expr::Sample;

const THREADS: &[u32] = &[32, 64, 96, 100, 128, 256, 256, 512, 1024, 1, 31, 33];
const THR: &[&str] = &[
    "(4,64):(64,1)",
    "(1,32):(32,1)",
    "(8,8):(1,8)",
    "(4,32):(32,1)",
    "(16,16):(16,1)",
    "(2,64):(1,2)",
    "((2,2),8):((16,1),2)",
    "(1,1):(0,0)",
    "(4,64):(0,1)",
];
const VAL: &[&str] = &[
    "(16,16):(16,1)",
    "(4,16):(16,1)",
    "(1,16):(16,1)",
    "(2,32):(32,1)",
    "(1,64):(64,1)",
    "((2,2),(4,4)):((16,32),(1,4))",
    "(8,4):(4,1)",
    "(3,8):(8,1)",
    "(8,1):(1,0)",
    "(4,6):(1,4)",
];

/// Names that scalars may have; some are those of locals, types and functions of the text.
const NAMES: [&str; MAX_SCALARS] = [
    "alpha", "beta", "op", "kernel", "params", "i", "u", "v", "half", "inside", "whole", "size", "get", "copy", "step",
    "shape_mn",
];
/// Names of parameters, of functions and of outputs.
const TAKEN: [&str; 7] = ["m", "lda", "aligned", "vectors", "exp", "t0", "y"];
/// Names that inputs may have; some mean something in C++, in Rust, in expressions or in the text.
const INPUTS: [&str; 12] = ["x", "y", "n", "i", "inca", "int", "relu", "t1", "self", "blocks", "args", "out"];

/// The recipe of a number, the same on every machine: one in five is whatever can be typed, each setting by itself; the others
/// are drawn so that most are accepted.
pub(crate) fn drawn(index: u64) -> ElementwiseApply {
    let random = &mut Random::new(1, index);
    let anything = index % 5 == 4;
    let variant = match anything {
        true => random.pick(Variant::ALL),
        false => Variant::ALL[random.weighted(&[25, 12, 25, 13, 13, 12])],
    };
    let inputs = random.weighted(&[6, 20, 32, 16, 9, 6, 4, 2, 5]);
    let outputs = 1 + random.weighted(&[70, 16, 8, 6]);
    let (types, compute) = types(random, inputs + outputs);
    let integers = computes_integers(&types, compute) ^ random.chance(if anything { 20 } else { 1 });
    let function = named(index, function(random, inputs, outputs as u8, integers));
    // A sample may have fewer outputs than it was asked for.
    let outputs = function.outputs();
    let (mut inputs, mut outputs) = match anything {
        true => any_specs(random, &types, inputs, outputs),
        false => specs(random, variant, &types, inputs, outputs),
    };
    spoil(random, &mut inputs, &mut outputs);
    let default = ElementwiseApply::default();
    let set = |random: &mut Random| random.chance(if anything { 60 } else { 35 });
    ElementwiseApply {
        function,
        inputs,
        outputs,
        compute,
        variant,
        threads: if set(random) { threads(random) } else { 0 },
        vector: Bytes(if set(random) { vector(random) } else { 0 }),
        unroll: if set(random) { unroll(random) } else { 0 },
        thr_layout: if random.chance(75) { thr(random) } else { default.thr_layout },
        val_layout_bytes: if random.chance(75) { val(random, anything) } else { default.val_layout_bytes },
    }
}

fn threads(random: &mut Random) -> u32 {
    match random.weighted(&[45, 40, 12, 3]) {
        0 => random.pick(THREADS),
        1 => 1 + random.below(1024) as u32,
        2 => 32 * (1 + random.below(32) as u32),
        _ => 1025 + random.below(4000) as u32,
    }
}

fn vector(random: &mut Random) -> u64 {
    match random.weighted(&[94, 6]) {
        0 => 1 << random.below(5),
        _ => random.below(70) as u64,
    }
}

fn unroll(random: &mut Random) -> u32 {
    let most = if random.chance(80) { 4 } else { 40 };
    1 + random.below(most) as u32
}

fn thr(random: &mut Random) -> Layout {
    match random.weighted(&[40, 50, 10]) {
        0 => random.pick(THR).parse().expect("a layout"),
        1 => numbered(random, 1024, 1),
        _ => any_layout(random),
    }
}

fn val(random: &mut Random, anything: bool) -> Layout {
    match random.weighted(&[30, if anything { 20 } else { 50 }, 20]) {
        0 => random.pick(VAL).parse().expect("a layout"),
        1 => {
            let vector = random.pick(&[8, 16, 16, 32, 24, 48, 1, 4]);
            numbered(random, 512, vector)
        }
        _ => any_layout(random),
    }
}

/// A layout that numbers each of at most so many coordinates once, its modes nested and in any order; numbers go along the second
/// mode first, where `inner` of them do.
fn numbered(random: &mut Random, most: i64, inner: i64) -> Layout {
    let (mut leaves, mut size) = (vec![(1, inner)], inner);
    for _ in 0..1 + random.below(4) {
        let (mode, extent) = (random.below(2), random.pick(&[1, 2, 2, 3, 4, 4, 5, 8, 16, 32, 7]));
        if size * extent <= most {
            size *= extent;
            leaves.push((mode, extent));
        }
    }
    let mut next = 1;
    let mut modes: [Vec<(i64, i64)>; 2] = Default::default();
    for (mode, extent) in leaves {
        modes[mode].push((extent, next));
        next *= extent;
    }
    layout_of(random, modes)
}

/// Whatever can be typed: any extents, any strides.
fn any_layout(random: &mut Random) -> Layout {
    let modes = [(); 2].map(|()| {
        let leaf = |random: &mut Random| (1 + random.below(9) as i64, random.pick(&[0, 1, 1, 2, 3, 4, 8, 16, 64]));
        (0..1 + random.below(2)).map(|_| leaf(random)).collect()
    });
    layout_of(random, modes)
}

/// The leaves of each mode in any order.
fn layout_of(random: &mut Random, mut modes: [Vec<(i64, i64)>; 2]) -> Layout {
    for leaves in &mut modes {
        random.shuffle(leaves);
        if leaves.is_empty() {
            leaves.push((1, 0));
        }
    }
    let text = |of: fn(&(i64, i64)) -> i64| {
        let mode = |leaves: &Vec<(i64, i64)>| match leaves.as_slice() {
            [one] => of(one).to_string(),
            several => format!("({})", several.iter().map(|leaf| of(leaf).to_string()).collect::<Vec<_>>().join(",")),
        };
        format!("({},{})", mode(&modes[0]), mode(&modes[1]))
    };
    let text = format!("{}:{}", text(|leaf| leaf.0), text(|leaf| leaf.1));
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// One type for all, floats, integers, or any with a type to compute in.
fn types(random: &mut Random, count: usize) -> (Vec<DType>, Option<Compute>) {
    let of =
        |kinds: &[Kind]| -> Vec<DType> { DType::ALL.iter().copied().filter(|d| kinds.contains(&d.kind())).collect() };
    let some = |random: &mut Random| random.chance(30).then(|| random.pick(Compute::ALL));
    match random.weighted(&[40, 22, 13, 25]) {
        0 => (vec![random.pick(DType::ALL); count], some(random).filter(|c| *c != Compute::I32)),
        1 => {
            let floats = of(&[Kind::Float, Kind::Bool]);
            ((0..count).map(|_| random.pick(&floats)).collect(), some(random).filter(|c| *c != Compute::I32))
        }
        2 => {
            let integers = of(&[Kind::Int, Kind::Bool]);
            ((0..count).map(|_| random.pick(&integers)).collect(), some(random))
        }
        _ => {
            let types = (0..count).map(|_| random.pick(DType::ALL)).collect();
            (types, random.chance(85).then(|| random.pick(Compute::ALL)))
        }
    }
}

/// What the recipe's own rule makes of the types.
fn computes_integers(types: &[DType], compute: Option<Compute>) -> bool {
    let has = |kind: Kind| types.iter().any(|t| t.kind() == kind);
    compute.map_or(!has(Kind::Float) && has(Kind::Int), |c| c == Compute::I32)
}

/// Half of the functions tell every input from every other; the rest is anything.
fn function(random: &mut Random, inputs: usize, outputs: u8, integers: bool) -> Function {
    let mut names = NAMES.to_vec();
    random.shuffle(&mut names);
    names.truncate(match random.weighted(&[45, 40, 15]) {
        0 => 0,
        1 => 1 + random.below(3),
        _ => random.below(MAX_SCALARS + 1),
    });
    if !names.is_empty() && random.chance(10) {
        names[0] = random.pick(&TAKEN);
    }
    let scalars: &[&'static str] = &names;
    if random.chance(50) {
        return Sample::drawn(integers, outputs, &mut || random.word()).trace_of(inputs, scalars, integers);
    }
    match outputs {
        1 => weighted_sums::<1>(inputs, scalars),
        2 => weighted_sums::<2>(inputs, scalars),
        3 => weighted_sums::<3>(inputs, scalars),
        _ => weighted_sums::<4>(inputs, scalars),
    }
}

/// Half of the functions name their inputs.
fn named(index: u64, function: Function) -> Function {
    let random = &mut Random::new(7, index);
    let mut names = INPUTS.to_vec();
    random.shuffle(&mut names);
    names.retain(|name| !function.scalars().iter().any(|scalar| scalar == name));
    names.truncate(function.inputs());
    if random.chance(50) { function.named(&names).expect("names of their own") } else { function }
}

/// `3*a + 4*b + ..`, with other weights in each output.
fn weighted_sums<const N: usize>(inputs: usize, scalars: &[&'static str]) -> Function {
    Function::nary(inputs, |t, x| {
        let mut leaves = x.to_vec();
        leaves.extend(scalars.iter().map(|name| t.scalar(name)));
        core::array::from_fn::<_, N, _>(|output| {
            let terms = leaves.iter().enumerate().map(|(i, x)| *x * t.constant((3 + i + output) as i32));
            terms.reduce(|sum, term| sum + term).unwrap_or_else(|| t.constant(output as i32))
        })
    })
    .expect("the signature is fine")
}

/// Strides for each tensor.
fn specs(
    random: &mut Random,
    variant: Variant,
    types: &[DType],
    inputs: usize,
    outputs: usize,
) -> (Vec<TensorSpec>, Vec<TensorSpec>) {
    let tiled = matches!(variant, Variant::Tv | Variant::Remapped | Variant::Transposed);
    let rank = match tiled && random.chance(90) {
        true if variant == Variant::Transposed => 2 + random.weighted(&[60, 18, 12, 10]),
        true => random.pick(&[1, 2, 2, 2]),
        false => 1 + random.weighted(&[15, 42, 18, 13, 12]),
    };
    let last = rank - 1;
    let unit = if random.chance(75) { last } else { random.below(rank) };
    // One of the inputs of the variant that turns them has to be contiguous elsewhere.
    let turned =
        (variant == Variant::Transposed && rank > 1 && inputs > 0 && random.chance(85)).then(|| random.below(inputs));
    let spec = |random: &mut Random, i: usize| {
        let mut strides = vec![Dynamic; rank];
        let other = (unit + 1 + random.below(rank.max(2) - 1)) % rank;
        if turned == Some(i) {
            strides[other] = Unit;
            return TensorSpec { dtype: types[i], strides };
        }
        // Outputs first, then what only an input can be.
        let plain = turned.is_some() && i >= inputs;
        match if plain { 0 } else { random.weighted(&[72, 8, 7, if i < inputs { 24 } else { 0 }]) } {
            0 => strides[unit] = Unit,
            1 => strides[other] = Unit,
            2 => {}
            _ => {
                strides[unit] = Unit;
                strides.iter_mut().for_each(|s| *s = if random.chance(50) { Broadcast } else { *s });
            }
        }
        TensorSpec { dtype: types[i], strides }
    };
    let all: Vec<TensorSpec> = (0..inputs + outputs).map(|i| spec(random, i)).collect();
    (all[..inputs].to_vec(), all[inputs..].to_vec())
}

/// Strides of every kind in every mode, each by itself.
fn any_specs(
    random: &mut Random,
    types: &[DType],
    inputs: usize,
    outputs: usize,
) -> (Vec<TensorSpec>, Vec<TensorSpec>) {
    let rank = 1 + random.below(MAX_RANK);
    let spec = |random: &mut Random, i: usize| {
        let kinds: &[ModeStride] = if i < inputs { &[Unit, Dynamic, Broadcast] } else { &[Unit, Dynamic, Dynamic] };
        TensorSpec { dtype: types[i], strides: (0..rank).map(|_| random.pick(kinds)).collect() }
    };
    let all: Vec<TensorSpec> = (0..inputs + outputs).map(|i| spec(random, i)).collect();
    (all[..inputs].to_vec(), all[inputs..].to_vec())
}

/// What a user may get wrong, in one recipe of twelve.
fn spoil(random: &mut Random, inputs: &mut Vec<TensorSpec>, outputs: &mut Vec<TensorSpec>) {
    let all = inputs.len() + outputs.len();
    let tensor = random.below(all);
    let spec = match tensor.checked_sub(inputs.len()) {
        None => &mut inputs[tensor],
        Some(output) => &mut outputs[output],
    };
    match random.below(60) {
        0 => outputs[0].strides[0] = Broadcast,
        1 => spec.strides.iter_mut().for_each(|s| *s = Unit),
        2 if spec.strides.len() < 5 => spec.strides.push(Dynamic),
        3 => {
            inputs.pop();
        }
        4 => outputs.push(TensorSpec::row_major(DType::F32, 2)),
        _ => {}
    }
}

/// Strides of A, B and Y.
const CLASSES: &[[&str; 3]] = &[
    ["(?,1)", "(?,1)", "(?,1)"],
    ["(1,?)", "(1,?)", "(1,?)"],
    ["(1,?)", "(?,1)", "(?,1)"],
    ["(1,?)", "(1,?)", "(?,1)"],
    ["(?,1)", "(0,1)", "(?,1)"],
    ["(?,1)", "(1,0)", "(?,1)"],
    ["(0,0)", "(?,1)", "(?,1)"],
    ["(?,?)", "(?,1)", "(?,1)"],
    ["(?,1)", "(?,1)", "(?,?)"],
    ["1", "0", "1"],
    ["(?,?,1)", "(?,1,?)", "(?,?,1)"],
    ["(1,?,?)", "(?,0,1)", "(?,?,1)"],
    ["(?,1,?,?)", "(?,?,1,?)", "(?,?,?,1)"],
    ["(?,?,?,?,1)", "(0,?,0,?,1)", "(?,?,?,?,1)"],
];

/// Every variant, type and class of layouts, those that a variant refuses among them; `every` keeps one type of so many for
/// each variant and class, another each time.
pub(crate) fn systematic(every: usize) -> Vec<ElementwiseApply> {
    let mut all = Vec::new();
    for (v, variant) in Variant::ALL.iter().enumerate().skip(1) {
        for (c, class) in CLASSES.iter().enumerate() {
            for dtype in DType::ALL.iter().skip((v + c) % every).step_by(every) {
                let [a, b, y] = class.map(|strides| format!("{dtype}:{strides}").parse().expect("a specification"));
                let function = Function::binary(|a, b| a * 2 - b);
                let recipe = ElementwiseApply::new(function, *dtype);
                all.push(ElementwiseApply { inputs: vec![a, b], outputs: vec![y], variant: *variant, ..recipe });
            }
        }
    }
    all
}
