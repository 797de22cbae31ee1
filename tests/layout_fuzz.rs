//! Contract: no text makes the parser, the evaluator, the protocol or an operation panic or hang.
//!
//! Expressions of a corpus are mutated, from a fixed seed; `CUTEMPLATE_FUZZ_RUNS` sets how many are run (ten million and
//! more were). What is accepted must also print text that reads back as the same value.

use cutemplate::layout::explain;
use cutemplate::layout::protocol::{Op, Value, answer, evaluate, evaluate_steps, ops};

const CORPUS: &str = include_str!("data/layout_corpus.txt");

/// xorshift64*, enough to choose mutations.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

const TOKENS: &[&str] = &[
    "(",
    ")",
    ",",
    ":",
    "_",
    "[",
    "]",
    " o ",
    "@",
    "0",
    "1",
    "2",
    "3",
    "4",
    "6",
    "8",
    "16",
    "-1",
    "-3",
    "1@0",
    "1@1",
    "2@0@1",
    "Sw<2,0,3>",
    "Sw<1,3,-2>",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "M",
    "4*N{div=8}",
    "let a = ",
    ";",
    "a",
    "(4,8):(1,4)",
    "((2,2),4):((1,8),2)",
    "(1,1)",
    "0b11",
    "static coord",
    "é",
    "\u{0}",
    "\"",
    "\\",
];

fn mutate(random: &mut Random, corpus: &[&str], names: &[&Op]) -> String {
    let mut text = corpus[random.below(corpus.len())].to_owned();
    for _ in 0..random.below(6) {
        let boundaries: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
        let (i, j) = (random.below(boundaries.len()), random.below(boundaries.len()));
        let (from, to) = (boundaries[i.min(j)], boundaries[i.max(j)]);
        let near = boundaries[(i.min(j) + 8).min(i.max(j))];
        match random.below(7) {
            0 => text.insert_str(from, TOKENS[random.below(TOKENS.len())]),
            1 => text.replace_range(from..near, ""),
            2 if text.len() < 400 => {
                let again = text[from..to].to_owned();
                text.insert_str(from, &again);
            }
            3 => {
                // Another number where there is one.
                if let Some(at) = text[from..].find(|c: char| c.is_ascii_digit()) {
                    text.replace_range(from + at..from + at + 1, TOKENS[9 + random.below(10)]);
                }
            }
            4 => {
                // Another operation on the same arguments.
                if let Some(open) = text.find('(') {
                    text.replace_range(..open, names[random.below(names.len())].name);
                }
            }
            5 => {
                let other = corpus[random.below(corpus.len())];
                text = format!("{}({text}, {other})", names[random.below(names.len())].name);
            }
            _ => text.truncate(to),
        }
    }
    text
}

#[test]
fn nothing_panics_or_hangs() {
    let runs: u64 = std::env::var("CUTEMPLATE_FUZZ_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let corpus: Vec<&str> = CORPUS.lines().collect();
    let names: Vec<&Op> = ops().collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0u64, 0u64);
    let mut out = String::new();
    for _ in 0..runs {
        let text = mutate(&mut random, &corpus, &names);
        match evaluate(&text) {
            Ok(value) => {
                accepted += 1;
                let printed = value.to_string();
                if let Value::Layout(_) | Value::Tuple(_) = value {
                    let back: Result<Value, _> = printed.parse();
                    assert!(back.is_ok(), "`{text}` gives {printed}, which is not read: {back:?}");
                    assert_eq!(back.map(|b| b.to_string()).unwrap_or_default(), printed, "{text}");
                }
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
        if random.below(16) == 0
            && let Ok((_, steps)) = evaluate_steps(&text)
        {
            for step in &steps {
                let told = explain(&step.op, &step.arguments).expect("an operation that was applied");
                assert!(told.ends_with(&format!("= {}\n", step.result)), "{told}");
            }
        }
        if random.below(8) == 0 {
            out.clear();
            answer(
                &format!(
                    "{{\"op\": \"{}\", \"inputs\": [\"{text}\", \"4:1\"]}}",
                    names[random.below(names.len())].name
                ),
                &mut out,
            );
            assert_eq!(out.lines().count(), 1, "{text}");
            out.clear();
            answer(&text, &mut out);
        }
    }
    assert!(accepted > runs / 50 && refused > runs / 50, "{accepted} accepted and {refused} refused: not a useful mix");
}
