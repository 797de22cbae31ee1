//! A launch with one seed, or with several.

use super::check::Checked;
use super::expect::{Difference, compare};
use super::{AllowedBy, FileReport, FinalBytes, Held, Ready, RunOptions};
use crate::Report;
use crate::{Allow, Error};

/// The results of a launch with several seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first seed.
    pub first: u64,
    /// Number of consecutive seeds.
    pub count: u64,
    /// Seeds with findings or differences.
    pub failing: Vec<u64>,
    /// Outputs that differ between seeds without a finding.
    pub differing: Vec<String>,
}

/// A launch with one seed.
struct Once {
    seed: u64,
    report: Report,
    left: FinalBytes,
    differences: Vec<Difference>,
}

impl Once {
    fn run(launch: &Checked<'_>, ready: &Ready, seed: u64, profile: bool, is_last: bool) -> Result<Self, Error> {
        let (report, left) = ready.once(launch, seed, profile)?;
        let held = ready.held().zip(&left).filter(|_| report.is_clean());
        let differences = compare(held.map(|(held, memory)| (held, memory.bytes())), is_last);
        Ok(Self { seed, report, left, differences })
    }

    fn is_right(&self) -> bool {
        self.report.is_clean() && self.differences.is_empty()
    }
}

/// Runs a launch with one or several seeds. The file's own memory is compared if it is the last.
pub(super) fn run(
    launch: &Checked<'_>,
    ready: &Ready,
    options: &RunOptions,
    is_last: bool,
) -> Result<(FileReport, FinalBytes), Error> {
    let first = options.seed.or_else(|| launch.whole("seed")).unwrap_or(0);
    let count = options.seeds.max(1);
    let once = |seed| Once::run(launch, ready, seed, options.profile, is_last);
    let mut shown = once(first)?;
    let mut seeds = Seeds { first, count, failing: Vec::new(), differing: Vec::new() };
    if !shown.is_right() {
        seeds.failing.push(first);
    }
    for next in (1..count).map(|i| first.wrapping_add(i)) {
        let other = once(next)?;
        if other.report.is_clean() && shown.report.is_clean() {
            differences(ready, &shown, &other, &mut seeds.differing);
        }
        if !other.is_right() {
            seeds.failing.push(next);
            if shown.is_right() {
                shown = other;
            }
        }
    }
    let allowed = allowed(&ready.allow, &shown.report);
    let seeds = (count > 1).then_some(seeds);
    let (entry, notes) = (ready.entry.clone(), ready.notes.clone());
    let Once { seed, report, left, differences } = shown;
    let report = FileReport { launch: 1, entry, report, differences, seed, seeds, allowed, notes, written: Vec::new() };
    Ok((report, left))
}

/// The outputs that differ between two runs.
fn differences(ready: &Ready, first: &Once, second: &Once, into: &mut Vec<String>) {
    let [one, other] = [first.seed, second.seed];
    let is_read = |held: &Held| held.out.is_some() || held.expected.is_some() || held.is_kept;
    for ((held, a), b) in ready.held().zip(&first.left).zip(&second.left).filter(|((held, ..), _)| is_read(held)) {
        if let Some(byte) = a.bytes().iter().zip(b.bytes()).position(|(a, b)| a != b)
            && !into.iter().any(|known| known.starts_with(&format!("`{}`", held.path)))
        {
            into.push(format!("`{}` ({}) from byte {byte} on, with seeds {one} and {other}", held.path, held.name));
        }
    }
    if first.report.printed != second.report.printed && !into.iter().any(|known| known.starts_with("what")) {
        into.push(format!("the output of the kernel's printf, with seeds {one} and {other}"));
    }
}

/// The findings that each rule allowed.
fn allowed(rules: &[Allow], report: &Report) -> Vec<AllowedBy> {
    let mut all: Vec<AllowedBy> =
        rules.iter().map(|rule| AllowedBy { rule: rule.clone(), findings: 0, times: 0 }).collect();
    for finding in &report.allowed {
        if let Some(by) = all.iter_mut().find(|by| by.rule.allows(finding)) {
            by.findings += 1;
            by.times += finding.count;
        }
    }
    all
}
