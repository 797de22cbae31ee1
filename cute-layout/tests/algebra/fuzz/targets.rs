//! What an input is run through, and what must hold then.

use std::fmt;

use super::grammar::Grammar;
use super::mutate;
use crate::random::Random;
use cute_layout::algebra_tool::{Op, Step, Value, answer_with, apply, evaluate_steps, explain, table};
use cute_layout::atom::{self, CopyAtom, TiledMma};
use cute_layout::layout::{
    AnyLayout, ComposedLayout, IntTuple, Layout, LayoutError, Swizzle, Tiler, domain_offset, inner_partition,
    inner_product, laws, local_partition, local_partition_step, local_tile, local_tile_step, outer_partition,
    product_each,
};

/// The largest domain that a law is checked on, and the most leaves: a check looks at every leaf of every coordinate.
const MOST_JUDGED: i64 = 1 << 10;
const MOST_LEAVES: usize = 32;

/// A refusal that tells what was found and what is required, in a text of bounded length.
fn told(error: &LayoutError, input: &dyn fmt::Display) {
    let text = error.to_string();
    assert!(!error.what_was_found().is_empty(), "{input}: nothing found: {text}");
    assert!(!error.what_is_required().is_empty(), "{input}: nothing required: {text}");
    assert!(text.len() < 16_000, "{input}: {} bytes: {text}", text.len());
    for (at, _) in text.match_indices(" mod ") {
        remainder(&text, at);
    }
    let twice = format!("{0}: {0}", error.operation());
    assert!(!text.contains(&twice), "{input}: the operation twice: {text}");
}

/// Where the text has `a mod b = r` in it, that is so.
fn remainder(text: &str, at: usize) {
    let number = |c: char| c.is_ascii_digit() || c == '-';
    let before = text[..at].rfind(|c| !number(c)).map_or(0, |i| i + 1);
    let Some((by, rest)) = text[at + 5..].split_once(" = ") else { return };
    let rest = &rest[..rest.find(|c| !number(c)).unwrap_or(rest.len())];
    if let (Ok(a), Ok(b), Ok(r)) = (text[before..at].parse::<i64>(), by.parse::<i64>(), rest.parse::<i64>()) {
        assert_eq!(a.checked_rem(b), Some(r), "{text}");
    }
}

/// An expression: evaluated, printed, read back, explained, tabled. Whether it is accepted, and how it behaved.
pub(crate) fn expression(text: &str, rare: u64) -> (bool, String) {
    let (value, steps) = match evaluate_steps(text) {
        Ok(done) => done,
        Err(error) => {
            told(&error, &text);
            let required: String = error.what_is_required().chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
            return (false, format!("{}: {}: {required}", error.operation(), error.class()));
        }
    };
    reads_back(text, &value);
    if rare.is_multiple_of(8) {
        steps.iter().for_each(judge);
    }
    if rare % 16 == 1 {
        for step in &steps {
            let told = explain(&step.op, &step.arguments).expect("an operation that was applied");
            assert!(told.ends_with(&format!("= {}\n", step.result)), "{told}");
        }
    }
    if rare == 2 {
        shown(&value);
    }
    let names: Vec<&str> = steps.iter().rev().take(2).map(|step| step.op.as_str()).collect();
    (true, format!("{} {}", names.join(" "), kind(&value)))
}

fn kind(value: &Value) -> String {
    match value {
        Value::Layout(AnyLayout::Plain(layout)) => format!("layout {} {}", layout.rank().min(4), layout.depth().min(3)),
        Value::Layout(AnyLayout::Composed(_)) => "composed".to_owned(),
        Value::Layout(AnyLayout::Swizzle(_)) => "swizzle".to_owned(),
        Value::Tuple(tuple) => format!("tuple {}", tuple.depth().min(3)),
        Value::Tiler(_) => "tiler".to_owned(),
        Value::Bool(value) => format!("{value}"),
        Value::Word(_) => "word".to_owned(),
        Value::List(values, _) => format!("list of {}", values.len().min(3)),
    }
}

fn reads_back(text: &str, value: &Value) {
    match value {
        Value::Layout(_) | Value::Tuple(_) | Value::Tiler(_) => {
            let printed = value.to_string();
            let back: Result<Value, _> = printed.parse();
            assert_eq!(back.map(|back| back.to_string()), Ok(printed), "{text}");
        }
        Value::List(values, _) => values.iter().take(8).for_each(|value| reads_back(text, value)),
        Value::Bool(_) | Value::Word(_) => {}
    }
}

/// The law of an operation, where it is known and the domain is small.
fn judge(step: &Step) {
    let plain = |value: Option<&Value>| match value {
        Some(Value::Layout(AnyLayout::Plain(layout)))
            if layout.stride().ints().is_some()
                && layout.shape().ints().is_some()
                && layout.size() <= MOST_JUDGED
                && layout.shape().leaf_count() <= MOST_LEAVES =>
        {
            Some(layout.clone())
        }
        _ => None,
    };
    let (Some(first), Some(result)) = (plain(step.arguments.first()), plain(Some(&step.result))) else { return };
    let second = plain(step.arguments.get(1));
    let judged = match (step.op.as_str(), &second, step.arguments.len()) {
        ("coalesce", None, 1) => laws::coalesce(&first, &result),
        ("composition", Some(second), _) => laws::composition(&first, second, &result),
        ("complement", _, _) => laws::complement(&first, &result),
        ("right_inverse", _, _) => laws::right_inverse(&first, &result),
        ("left_inverse", _, _) => laws::left_inverse(&first, &result),
        ("nullspace", _, _) => laws::nullspace(&first, &result),
        ("logical_divide", Some(second), _) => laws::logical_divide(&first, second, &result),
        ("logical_product", Some(second), _) => laws::logical_product(&first, second, &result),
        ("max_common_layout", Some(second), _) => laws::max_common_layout(&first, second, &result),
        ("flatten" | "group", _, _) => laws::same_function("the same function", &first, &result),
        _ => Ok(()),
    };
    // Indices that do not fit in 64 bits are no fault of the result.
    if let Err(violation) = judged
        && violation.law != "every value fits in 64 bits"
        && !violation.at.contains("more coordinates")
    {
        panic!("{}({:?}) = {}: {violation}", step.op, step.arguments, step.result);
    }
}

/// The value as a table.
fn shown(value: &Value) {
    if let Value::Layout(layout) = value {
        match table(layout) {
            Ok(text) => assert!(text.contains('|'), "{text}"),
            Err(error) => told(&error, value),
        }
    }
}

const ATOM_INPUTS: &[&str] = &[
    "SM80_16x8x16_F32F16F16F32_TN,Layout<Shape<_2,_1,_1>>{},Tile<_32,Layout<Shape<_8,_2,_2>,Stride<_1,_16,_8>>,_16>{}",
    "SM80_16x8x16 2x2 warps tile 32x32x16",
    "SM70_8x8x4_F32F16F16F32_NT,(2,2):(2,1),[(4,4,2):(1,8,4),32,4]",
    "Copy_Atom<UniversalCopy<uint128_t>,half_t>",
    "Copy_Atom<SM75_U32x4_LDSM_N,half_t>",
    "Layout<Shape<_8,_4>,Stride<_4,_1>>{}",
    "(2,4):(4,1)",
    "SM90_64x128x16_F32F16F16_SS",
];
const ATOM_OPS: &[&str] = &[
    "tiled_mma_layoutA_TV",
    "tiled_mma_layoutB_TV",
    "tiled_mma_layoutC_TV",
    "make_tiled_copy.layoutS_TV",
    "make_tiled_copy.layoutD_TV",
    "make_tiled_copy_A.layoutS_TV",
    "make_tiled_copy_B.layoutD_TV",
    "make_tiled_copy_C.layoutS_TV",
    "make_tiled_copy_C.layoutX",
    "make_tiled_copy_C_atom.layoutD_TV",
    "make_cotiled_copy.layoutS_TV",
];

/// A request: of an operation with arguments of its grammar, of one with other arguments, of an atom, or hardly JSON.
pub(crate) fn line(pool: &[String], ops: &[&Op], grammar: &mut Grammar, random: &mut Random) -> String {
    let (mut op, mut inputs) = {
        let op = random.pick(ops);
        (op.name.to_owned(), grammar.arguments(op, random))
    };
    match random.below(16) {
        0 => op = random.pick(ops).name.to_owned(),
        1 => {
            op = random.pick(ATOM_OPS).to_owned();
            inputs = (0..1 + random.below(3)).map(|_| random.pick(ATOM_INPUTS).to_owned()).collect();
        }
        2 => inputs.push(pool[random.below(pool.len())].clone()),
        _ => {}
    }
    for input in &mut inputs {
        match random.below(24) {
            0 => mutate::bytes(input, random),
            1 => mutate::structure(input, &pool[random.below(pool.len())], ops, grammar, random),
            _ => {}
        }
    }
    let inputs: Vec<String> = inputs.iter().map(|input| quoted(input, random)).collect();
    let mut line = format!("{{\"op\": {}, \"inputs\": [{}]}}", quoted(&op, random), inputs.join(", "));
    match random.below(24) {
        0 => mutate::bytes(&mut line, random),
        1 => line.insert_str(1, "\"note\": {\"a\": [1, true, \"\\u00e9\", null, {}], \"b\": -1.5e3}, "),
        2 => line.insert_str(1, &format!("\"deep\": {}, ", "[".repeat(random.below(100)))),
        _ => {}
    }
    line
}

/// A JSON string, some of its characters escaped without need.
fn quoted(text: &str, random: &mut Random) -> String {
    let mut out = String::from("\"");
    let escape = random.once_in(32);
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 || escape && (c as u32) < 0x80 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A line of the protocol has one line for an answer, which is JSON.
pub(crate) fn protocol(line: &str) {
    let mut out = String::new();
    answer_with(line, &mut out, atom::answer);
    assert!(out.ends_with('\n') && out.matches('\n').count() == 1, "{line:?}: {out:?}");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{line:?}: {why}: {out:?}"));
    let member =
        |value: &serde_json::Value, name: &str| value.get(name).and_then(|text| text.as_str().map(str::to_owned));
    let error = answer.get("error").map(|error| (member(error, "class"), member(error, "message")));
    match (member(&answer, "ok"), error) {
        (Some(text), None) => assert!(!text.is_empty(), "{line:?}"),
        (None, Some((Some(class), Some(message)))) => assert!(!class.is_empty() && !message.is_empty(), "{line:?}"),
        _ => panic!("{line:?}: {out}"),
    }
}

/// The text as each thing that can be read.
pub(crate) fn parsers(text: &str) {
    fn read<T: std::str::FromStr<Err = LayoutError> + fmt::Display>(text: &str) {
        match text.parse::<T>() {
            Ok(value) => {
                let printed = value.to_string();
                assert_eq!(printed.parse::<T>().map(|back| back.to_string()), Ok(printed), "{text:?}");
            }
            Err(error) => told(&error, &text),
        }
    }
    read::<Layout>(text);
    read::<IntTuple>(text);
    read::<Tiler>(text);
    read::<AnyLayout>(text);
    read::<ComposedLayout>(text);
    read::<Swizzle>(text);
    read::<Value>(text);
    for error in [text.parse::<CopyAtom>().err(), text.parse::<TiledMma>().err()].into_iter().flatten() {
        told(&error, &text);
    }
}

/// Operands of operations that the protocol does not have: tiles, partitions, offsets.
pub(crate) struct Question {
    layout: String,
    other: String,
    tiler: String,
    coord: String,
    index: String,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {} | {} | {} | {}", self.layout, self.other, self.tiler, self.coord, self.index)
    }
}

impl Question {
    pub(crate) fn new(grammar: &mut Grammar, random: &mut Random) -> Question {
        Question {
            layout: grammar.layout(random),
            other: grammar.layout(random),
            tiler: grammar.tiler(random, 2),
            coord: grammar.tiler(random, 0),
            index: grammar.integer(random),
        }
    }

    pub(crate) fn ask(&self, rare: u64) {
        let (Ok(layout), Ok(other)) = (self.layout.parse::<Layout>(), self.other.parse::<Layout>()) else { return };
        let tiler = self.tiler.parse().unwrap_or_else(|_| Tiler::Shape(other.shape().clone()));
        let coord = self.coord.parse().unwrap_or_else(|_| IntTuple::any());
        let index = self.index.parse().unwrap_or(5);
        let asked = |result: Result<String, LayoutError>| {
            if let Err(error) = result {
                told(&error, self);
            }
        };
        let text = |(layout, offset): (Layout, IntTuple)| format!("{layout} {offset}");
        asked(local_tile(&layout, &tiler, &coord).map(text));
        asked(local_tile_step(&layout, &tiler, &coord, &coord).map(text));
        asked(inner_partition(&layout, &tiler, &coord).map(text));
        asked(outer_partition(&layout, &tiler, &coord).map(text));
        asked(local_partition(&layout, &other, index).map(text));
        asked(local_partition_step(&layout, &other, index, &coord).map(text));
        asked(domain_offset(&coord, &layout).map(text));
        asked(inner_product(layout.shape(), layout.stride()).map(|sum| sum.to_string()));
        asked(product_each(layout.shape()).map(|shape| shape.to_string()));
        if rare < 8 {
            let copy = CopyAtom::named("UniversalCopy<uint64_t>", 16).expect("an atom");
            asked(atom::make_tiled_copy(&copy, &layout, &other).and_then(|copy| {
                Ok(text((copy.tidfrg_s(&layout)?, IntTuple::int(copy.partition_d(index, &other)?.1))))
            }));
            let mma = atom::MmaAtom::named("SM80_16x8x8_F32F16F16F32_TN").expect("an atom");
            asked(TiledMma::new(mma, &layout, &tiler).and_then(|mma| {
                Ok(text((
                    mma.layout_tv(atom::Operand::A)?,
                    IntTuple::int(mma.partition(atom::Operand::C, index, &other)?.1),
                )))
            }));
        }
        // Operations with arguments of the wrong kinds.
        if let (Ok(first), Ok(second)) = (self.tiler.parse::<Value>(), self.coord.parse::<Value>()) {
            for name in ["composition", "crd2idx", "slice", "tile_to_shape", "recast_layout", "select"] {
                asked(apply(name, &[first.clone(), second.clone()]).map(|value| value.to_string()));
            }
        }
    }
}
