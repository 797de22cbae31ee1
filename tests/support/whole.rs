//! What a run compiles: one of each, unless `CUTEMPLATE_WHOLE=1` asks for all.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeSet;

use cutemplate::emit::Unit;

use crate::variables;

pub(crate) fn is_asked_for() -> bool {
    variables::switch("CUTEMPLATE_WHOLE")
}

/// How many of what is counted: of all, or of a sample.
pub(crate) fn or(all: u64, sample: u64) -> u64 {
    if is_asked_for() { all } else { sample }
}

/// Those that stand for all, or all.
pub(crate) fn of<T: Copy>(sample: &[T], others: &[T]) -> Vec<T> {
    let others = if is_asked_for() { others } else { &[] };
    sample.iter().chain(others).copied().collect()
}

/// The first that each template makes, or all.
pub(crate) fn first_of_each_template<T>(mut all: Vec<T>, unit: impl Fn(&T) -> &Unit) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(template(unit(one)).to_owned()) || is_asked_for());
    all
}

/// As the first line of a text names it.
fn template(unit: &Unit) -> &str {
    let line = unit.header().text.lines().next().unwrap_or_default();
    line.rsplit(" from template ").next().expect("a part")
}
