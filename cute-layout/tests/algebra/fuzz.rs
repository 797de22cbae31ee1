//! Contract: no text makes the parsers, the evaluator, the protocol, an operation or a derivation panic, hang,
//! answer slowly or hold much memory; what is accepted satisfies its law and prints text that reads back.
//!
//! Inputs come from a grammar and from mutations, of bytes and of structure, of a corpus; what behaves in a new way is
//! mutated further. All from a fixed seed: `CUTE_LAYOUT_FUZZ_RUNS` and `CUTE_LAYOUT_FUZZ_SEED` set others, and
//! `CUTE_LAYOUT_FUZZ_KEEP` names a file that the inputs found are written to.

mod grammar;
mod mutate;
mod targets;
mod watch;

use std::collections::HashSet;

use crate::random::Random;
use crate::variables;
use cute_layout::algebra_tool::{Op, ops};
use grammar::Grammar;
use watch::Watch;

const CORPUS: &str = include_str!("../data/layout_corpus.txt");

/// The most inputs that are kept because they behaved in a new way.
const MOST_KEPT: usize = 1 << 13;

fn variable(name: &str, otherwise: u64) -> u64 {
    variables::number(name).unwrap_or(otherwise)
}

/// What is mutated: the corpus, and what was found since.
struct Pool {
    inputs: Vec<String>,
    seen: HashSet<String>,
    first_found: usize,
}

impl Pool {
    fn new() -> Pool {
        let inputs: Vec<String> = CORPUS.lines().map(str::to_owned).collect();
        Pool { first_found: inputs.len(), inputs, seen: HashSet::new() }
    }

    fn pick(&self, random: &mut Random) -> &str {
        // The corpus itself as often as all that was found.
        let bound = if random.once_in(2) { self.first_found } else { self.inputs.len() };
        &self.inputs[random.below(bound)]
    }

    /// Keeps an input whose behaviour is new.
    fn learn(&mut self, input: &str, behaviour: String) {
        if self.inputs.len() < MOST_KEPT && input.len() < 600 && self.seen.insert(behaviour) {
            self.inputs.push(input.to_owned());
        }
    }
}

fn input(pool: &Pool, ops: &[&Op], grammar: &mut Grammar, random: &mut Random) -> String {
    let mut text = if random.once_in(3) { grammar.program(ops, random) } else { pool.pick(random).to_owned() };
    for _ in 0..random.below(4) {
        if random.once_in(3) {
            mutate::bytes(&mut text, random);
        } else {
            mutate::structure(&mut text, pool.pick(random), ops, grammar, random);
        }
    }
    text
}

#[test]
fn nothing_panics_or_hangs() {
    let runs = variable("CUTE_LAYOUT_FUZZ_RUNS", 30_000);
    let mut random = Random::new(variable("CUTE_LAYOUT_FUZZ_SEED", 1));
    let (mut grammar, mut pool, mut watch) = (Grammar::new(), Pool::new(), Watch::start());
    let names: Vec<&Op> = ops().collect();
    let (mut accepted, mut refused) = (0u64, 0u64);
    for run in 0..runs {
        let rare = random.below(64) as u64;
        match random.below(8) {
            0..=3 => {
                let text = input(&pool, &names, &mut grammar, &mut random);
                let (fine, behaviour) = watch.run(&text, |text| targets::expression(text, rare));
                if fine {
                    accepted += 1
                } else {
                    refused += 1
                }
                pool.learn(&text, behaviour);
            }
            4..=6 => {
                let line = targets::line(&pool.inputs, &names, &mut grammar, &mut random);
                watch.run(&line, targets::protocol);
            }
            _ if run % 2 == 0 => {
                let question = targets::Question::new(&mut grammar, &mut random);
                watch.run(&question.to_string(), |_| question.ask(rare));
            }
            _ => {
                let text = input(&pool, &names, &mut grammar, &mut random);
                watch.run(&text, targets::parsers);
            }
        }
    }
    println!("{runs} runs, {accepted} accepted, {refused} refused, {} found", pool.inputs.len() - pool.first_found);
    println!("slowest {:?}: {:?}", watch.slowest.0, watch.slowest.1);
    println!("largest {} bytes: {:?}", watch.largest.0, watch.largest.1);
    if let Ok(file) = std::env::var("CUTE_LAYOUT_FUZZ_KEEP") {
        std::fs::write(file, pool.inputs[pool.first_found..].join("\n")).expect("the inputs found are written");
    }
    assert!(accepted > runs / 20 && refused > runs / 20, "{accepted} accepted and {refused} refused: not a useful mix");
}

#[test]
fn every_input_of_the_corpus_is_looked_at_in_every_way() {
    let mut watch = Watch::start();
    for text in CORPUS.lines() {
        for rare in [0, 1, 2, 63] {
            watch.run(text, |text| targets::expression(text, rare));
        }
        watch.run(text, targets::parsers);
        watch.run(text, targets::protocol);
    }
}
