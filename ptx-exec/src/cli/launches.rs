//! `run`: the launches of files.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::junit::Results;
use super::output::Output;
use super::{REFUSED, RunArgs, counted, refuse, report};
use crate::{AllowedBy, Difference, Error, FileReport, LaunchFile, RunOptions, Seeds};

/// Runs all files, even after a failure, and writes the file of `--junit`.
pub(super) fn run(args: &RunArgs, program: &str, out: Output) -> Result<ExitCode, Error> {
    let options = RunOptions { profile: args.profile, seed: args.seed, seeds: args.seeds };
    let mut results = Results::new(program);
    let (mut refused, mut wrong) = (false, false);
    for path in &args.launch {
        let replay = |seed: u64| format!("{program} run {} --seed {seed}", path.display());
        match launches(path, &options, &replay, &mut results, out) {
            Ok(is_right) => wrong |= !is_right,
            Err(error) => {
                refused = true;
                results.refused(path, &error);
                refuse(&error, out);
            }
        }
    }
    if let Some(path) = &args.junit {
        results.write(path)?;
    }
    Ok(match (refused, wrong) {
        (true, _) => ExitCode::from(REFUSED),
        (_, true) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Runs the launches of a file up to the first failure, since later launches read results of earlier ones.
fn launches(
    path: &Path,
    options: &RunOptions,
    replay: &dyn Fn(u64) -> String,
    results: &mut Results,
    out: Output,
) -> Result<bool, Error> {
    let file = LaunchFile::read(path)?;
    for done in file.launches(options) {
        let done = done?;
        let name = match file.len() {
            1 => done.entry.clone(),
            _ => format!("launch {}, {}", done.launch, done.entry),
        };
        tell(&done, &name, &replay(done.seed), out);
        results.launch(path, &name, &done, &replay(done.seed));
        if !done.is_right() {
            results.left_out(path, file.len() - done.launch);
            return Ok(false);
        }
    }
    Ok(true)
}

/// Prints the result of a launch of this name.
fn tell(done: &FileReport, name: &str, replay: &str, out: Output) {
    let report = &done.report;
    if *name != done.entry && !done.is_right() {
        out.text(format_args!("{name}:"));
    }
    report::tell(report, Some(done.launch), out);
    done.differences.iter().for_each(|difference| out.text(difference));
    done.notes.iter().for_each(|note| out.text(format_args!("note: {note}")));
    done.allowed.iter().for_each(|by| out.text(allowed(by)));
    let found = report.findings.len() as u64 + report.dropped;
    let verdict = match (report.is_clean(), done.differences.len() as u64) {
        (true, 0) => "right".to_owned(),
        (true, count) => counted(count, "difference"),
        _ => counted(found, "finding"),
    };
    out.text(format_args!("{name}: {verdict} with seed {}, {} warp instructions", done.seed, report.instructions));
    match &done.seeds {
        None => out.text("  other seeds give other orders of warps and asynchronous work: --seeds 8 tries eight"),
        Some(seeds) => of_seeds(seeds, replay, out),
    }
    done.written.iter().for_each(|file| out.text(format_args!("  wrote {}", file.display())));
    out.object(object(done, replay));
}

fn allowed(by: &AllowedBy) -> String {
    match by.findings {
        0 => format!("allowed: {}: found nothing", by.rule),
        n => format!("allowed: {}: {}, {}", by.rule, counted(n as u64, "finding"), counted(by.times, "time")),
    }
}

fn of_seeds(seeds: &Seeds, replay: &str, out: Output) {
    let last = seeds.first.wrapping_add(seeds.count - 1);
    let range = format!("from {} to {last}", seeds.first);
    match seeds.failing.len() {
        0 => out.text(format_args!("  right with each seed {range}")),
        n => {
            out.text(format_args!("  {n} of the {} seeds {range} are not right", seeds.count));
            out.text(format_args!("  again: {replay}"));
        }
    }
    seeds.differing.iter().for_each(|what| out.text(format_args!("  depends on the seed: {what}")));
}

fn object(done: &FileReport, replay: &str) -> Value {
    let report = &done.report;
    let allowed = |by: &AllowedBy| json!({ "rule": by.rule.to_string(), "findings": by.findings, "times": by.times });
    let seeds = done.seeds.as_ref().map(|seeds| {
        json!({
            "first": seeds.first, "count": seeds.count, "failing": seeds.failing, "differing": seeds.differing,
            "replay": (!seeds.failing.is_empty()).then_some(replay),
        })
    });
    let difference = |d: &Difference| {
        json!({
            "path": d.path, "name": d.name, "expected": d.expected.display().to_string(), "elements": d.elements, "count": d.count,
            "index": d.index, "found": d.found, "required": d.required, "largest": d.largest,
        })
    };
    let written: Vec<String> = done.written.iter().map(|path| path.display().to_string()).collect();
    json!({
        "launch": done.launch, "entry": done.entry, "clean": report.is_clean(), "right": done.is_right(),
        "differences": done.differences.iter().map(difference).collect::<Vec<_>>(), "seed": done.seed, "seeds": seeds,
        "instructions": report.instructions, "lane_instructions": report.lane_instructions, "written": written,
        "printed": report.printed, "allowed": done.allowed.iter().map(allowed).collect::<Vec<_>>(), "notes": done.notes,
    })
}
