//! Contract: no text makes a picture panic, hang, answer slowly or hold much memory. What is drawn is SVG, and what is not is
//! refused in words. The texts are those that `cute-layout` is tried with: its grammar, its corpus, its watch.

use cutemplate::algebra_tool::{Op, Step, Value, evaluate_steps, ops};
use cutemplate::atom::{self, CopyAtom, MmaAtom, TiledMma};
use cutemplate::draw::{self, DrawError, Options, SharedAccess};
use cutemplate::layout::{AnyLayout, IntTuple, Layout, Tiler};

use crate::grammar::Grammar;
use crate::random::Random;
use crate::variables;
use crate::watch::Watch;

const CORPUS: &str = include_str!("../../cute-layout/tests/data/layout_corpus.txt");
const OPTIONS: Options = Options { most_cells: 512 };

fn judge(drawn: Result<String, DrawError>, of: &dyn std::fmt::Display) -> bool {
    match &drawn {
        Ok(svg) => assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{of}"),
        Err(error) => assert!(!error.to_string().is_empty(), "{of}"),
    }
    drawn.is_ok()
}

/// How many pictures an expression has.
fn expression(text: &str) -> usize {
    let Ok((value, steps)) = evaluate_steps(text) else { return 0 };
    match &value {
        Value::Layout(AnyLayout::Plain(layout)) => {
            let tv = judge(draw::tv(layout, &IntTuple::from((8, 8)), &OPTIONS), layout);
            let step = steps.last().is_some_and(|step| operation(step, layout));
            [tv, step, judge(draw::layout(layout, &OPTIONS), layout)].into_iter().map(usize::from).sum()
        }
        Value::Layout(AnyLayout::Composed(composed)) => {
            let access = SharedAccess::new(2, 1).expect("halves");
            usize::from(judge(draw::swizzle(composed, access, &OPTIONS), composed))
        }
        _ => 0,
    }
}

fn operation(step: &Step, result: &Layout) -> bool {
    let layouts = step.arguments.iter().filter_map(|argument| match argument {
        Value::Layout(AnyLayout::Plain(layout)) => Some(layout),
        _ => None,
    });
    let inputs: Vec<(&'static str, &Layout)> = ["A", "B"].into_iter().zip(layouts).collect();
    judge(draw::operation(&step.op, &inputs, result, &OPTIONS), result)
}

/// How many of two layouts and a tiler are a tiled copy or a tiled MMA that is drawn.
fn tiled(text: &str) -> usize {
    let parts: Vec<&str> = text.split(" | ").collect();
    let [threads, values, tiler] = parts[..] else { panic!("three parts: {text}") };
    let (Ok(threads), Ok(values)) = (threads.parse::<Layout>(), values.parse::<Layout>()) else { return 0 };
    let tiler = tiler.parse().unwrap_or_else(|_| Tiler::Shape(values.shape().clone()));
    let copy = CopyAtom::named("UniversalCopy<uint64_t>", 16).expect("an atom");
    let copy = atom::make_tiled_copy(&copy, &threads, &values);
    let mma = MmaAtom::named("SM80_16x8x8_F32F16F16F32_TN").expect("an atom");
    let mma = TiledMma::new(mma, &threads, &tiler);
    let copy = copy.is_ok_and(|copy| judge(draw::tiled_copy(&copy, &OPTIONS), &text));
    usize::from(copy) + usize::from(mma.is_ok_and(|mma| judge(draw::tiled_mma(&mma, &OPTIONS), &text)))
}

#[test]
fn no_text_makes_a_picture_panic_or_hang() {
    let runs = variables::number("CUTE_LAYOUT_FUZZ_RUNS").unwrap_or(3_000);
    let mut random = Random::new(variables::number("CUTE_LAYOUT_FUZZ_SEED").unwrap_or(1));
    let (mut grammar, mut watch) = (Grammar::new(), Watch::start());
    let names: Vec<&Op> = ops().collect();
    let (mut expressions, mut atoms) = (0, 0);
    for text in CORPUS.lines() {
        expressions += watch.run(text, expression);
    }
    for _ in 0..runs {
        let text = grammar.program(&names, &mut random);
        expressions += watch.run(&text, expression);
        let [threads, values] = [(); 2].map(|()| grammar.layout(&mut random));
        let text = format!("{threads} | {values} | {}", grammar.tiler(&mut random, 2));
        atoms += watch.run(&text, tiled);
    }
    println!("{expressions} pictures of expressions, {atoms} of tiled copies and MMAs");
    assert!(expressions > 500 && atoms > 5, "{expressions} of expressions, {atoms} of atoms: not a useful mix");
}
