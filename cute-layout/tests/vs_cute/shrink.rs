//! Smaller cases that still differ from compiled CuTe in the same way.

use cute_layout::layout::Layout;

use crate::compile::{Answer, Cute};
use crate::cpp::Case;
use crate::exact::{Verdict, verdict};
use crate::ops::ours;

const ROUNDS: usize = 12;
const WIDTH: usize = 64;

/// The way in which the two sides differ: who refuses, and why; `None` where they do not differ.
fn way(case: &Case, answer: &Answer) -> Option<(String, bool)> {
    let ours = ours(case);
    let class = ours.as_ref().err().map_or("accepts", |e| e.class().as_str()).to_owned();
    match verdict(&ours, answer) {
        Verdict::Same => None,
        Verdict::Differs(_) => Some((class, matches!(answer, Answer::Refused(_)))),
    }
}

/// The smallest case that was found, in a few rounds of one batch each.
pub(crate) fn shrink(cute: &Cute, case: &Case, answer: &Answer) -> (Case, Answer) {
    let mut best = (case.clone(), answer.clone());
    let wanted = way(case, answer);
    for _ in 0..ROUNDS {
        let mut tried = smaller(&best.0);
        tried.truncate(WIDTH);
        let answers = cute.answers(&tried, |case| ours(case).is_err());
        let next = tried.into_iter().zip(answers).find(|(case, answer)| way(case, answer) == wanted);
        match next {
            Some(next) => best = next,
            None => break,
        }
    }
    best
}

/// Cases that are smaller by one step, the largest steps first.
pub(crate) fn smaller(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (i, input) in case.inputs.iter().enumerate() {
        for text in without_a_mode(input).into_iter().chain(with_a_smaller_number(input)) {
            let mut inputs = case.inputs.clone();
            inputs[i] = text;
            let smaller = Case { op: case.op.clone(), inputs };
            if !found.contains(&smaller) {
                found.push(smaller);
            }
        }
    }
    found
}

fn without_a_mode(input: &str) -> Vec<String> {
    let Ok(layout) = input.parse::<Layout>() else { return Vec::new() };
    let mut found = Vec::new();
    let modes: Vec<Layout> = layout.modes().collect();
    for drop in (0..modes.len()).filter(|_| modes.len() > 1) {
        let rest = modes.iter().enumerate().filter(|(i, _)| *i != drop).map(|(_, mode)| mode.clone());
        found.extend(Layout::from_modes(rest).map(|layout| layout.to_string()));
    }
    found.push(cute_layout::layout::flatten(&layout).to_string());
    found.retain(|text| text != input);
    found
}

fn with_a_smaller_number(input: &str) -> Vec<String> {
    let bytes = input.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if end > at {
            let number: i64 = input[at..end].parse().unwrap_or(0);
            let mut steps = vec![1, 2, number / 2, number - 1];
            steps.retain(|step| *step > 0 && *step < number);
            steps.dedup();
            found.extend(steps.iter().map(|step| format!("{}{step}{}", &input[..at], &input[end..])));
        }
        at = end.max(at + 1);
    }
    found
}

#[test]
fn smaller_cases_are_smaller() {
    let case = Case::new("composition", ["((4,2),6):((1,4),8)", "3:5"]);
    let tried = smaller(&case);
    assert!(tried.contains(&Case::new("composition", ["(6):(8)", "3:5"])));
    assert!(tried.contains(&Case::new("composition", ["((4,2),6):((1,4),8)", "3:1"])));
    assert!(tried.contains(&Case::new("composition", ["(4,2,6):(1,4,8)", "3:5"])));
    assert!(!tried.contains(&case));
}
