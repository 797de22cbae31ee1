//! A launch with one seed, or with several.

use super::check::Checked;
use super::{AllowedBy, FileReport, FinalBytes, Ready, RunOptions};
use crate::Report;
use crate::{Allow, Error};

/// The results of a launch with several seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The first seed.
    pub first: u64,
    /// Number of consecutive seeds.
    pub count: u64,
    /// Seeds with findings.
    pub failing: Vec<u64>,
    /// Outputs that differ between seeds without a finding.
    pub differing: Vec<String>,
}

/// Runs a launch with one or several seeds.
pub(super) fn run(
    launch: &Checked<'_>,
    ready: &Ready,
    options: &RunOptions,
) -> Result<(FileReport, FinalBytes), Error> {
    let first = options.seed.or_else(|| launch.whole("seed")).unwrap_or(0);
    let count = options.seeds.max(1);
    let (mut shown, mut shown_left) = ready.once(launch, first, options.profile)?;
    let mut seed = first;
    let mut seeds = Seeds { first, count, failing: Vec::new(), differing: Vec::new() };
    if !shown.is_clean() {
        seeds.failing.push(first);
    }
    for next in (1..count).map(|i| first.wrapping_add(i)) {
        let (report, left) = ready.once(launch, next, options.profile)?;
        let is_clean = report.is_clean();
        if is_clean && shown.is_clean() {
            differences(ready, (seed, &shown, &shown_left), (next, &report, &left), &mut seeds.differing);
        }
        if !is_clean {
            seeds.failing.push(next);
        }
        if !is_clean && shown.is_clean() {
            (shown, shown_left, seed) = (report, left, next);
        }
    }
    let allowed = allowed(&ready.allow, &shown);
    let seeds = (count > 1).then_some(seeds);
    let (entry, notes) = (ready.entry.clone(), ready.notes.clone());
    let report = FileReport { launch: 1, entry, report: shown, seed, seeds, allowed, notes, written: Vec::new() };
    Ok((report, shown_left))
}

/// The outputs that differ between two runs.
fn differences(
    ready: &Ready,
    (one, first, left): (u64, &Report, &FinalBytes),
    (other, second, right): (u64, &Report, &FinalBytes),
    into: &mut Vec<String>,
) {
    for ((held, a), b) in ready.held().zip(left).zip(right).filter(|((held, ..), _)| held.out.is_some() || held.is_kept)
    {
        if let Some(byte) = a.bytes().iter().zip(b.bytes()).position(|(a, b)| a != b)
            && !into.iter().any(|known| known.starts_with(&format!("`{}`", held.path)))
        {
            into.push(format!("`{}` ({}) from byte {byte} on, with seeds {one} and {other}", held.path, held.name));
        }
    }
    if first.printed != second.printed && !into.iter().any(|known| known.starts_with("what")) {
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
