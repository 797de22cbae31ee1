//! `cutemplate ptx check` and `cutemplate ptx run`.

use std::path::Path;
use std::process::ExitCode;

use cutemplate::draw::{self, Series, Steps};
use cutemplate::exec::ptx::{Entry, Error, FileReport, LaunchFile, Module, Param, RunOptions};
use cutemplate::exec::{Counts, Finding, Profile, Report, Site, Stages};
use serde_json::{Value, json};

use crate::args::PtxCommand;
use crate::output::{Failure, Output, complain, counted, write};

/// Malformed, or not run here.
const REFUSED: u8 = 2;

pub(crate) fn run(command: &PtxCommand, out: &Output) -> Result<ExitCode, Failure> {
    let result = match command {
        PtxCommand::Check { file } => check(file, out),
        PtxCommand::Run { launch, profile, seed, seeds } => {
            launches(launch, &RunOptions { profile: *profile, seed: *seed, seeds: *seeds }, out)
        }
    };
    Ok(result.unwrap_or_else(|error| {
        refuse(&error, out);
        ExitCode::from(REFUSED)
    }))
}

fn refuse(error: &Error, out: &Output) {
    if out.is_json() {
        let position = error.position.map(|p| json!({ "line": p.line, "column": p.column }));
        out.object(json!({ "error": {
            "code": error.kind.as_str(), "what": error.what, "entry": error.entry, "position": position, "found": error.found,
            "required": error.required, "help": error.help,
        } }));
    } else {
        complain(error);
    }
}

fn check(file: &Path, out: &Output) -> Result<ExitCode, Error> {
    let module = Module::read(file)?;
    let (major, minor) = module.version();
    out.text(format_args!("PTX {major}.{minor} for {}", module.target()));
    out.object(json!({ "version": [major, minor], "target": module.target() }));
    let mut all_run = true;
    for entry in module.entries() {
        match entry {
            Ok(entry) => describe(&entry, out),
            Err((name, error)) => {
                let params = module.params(name).unwrap_or_default();
                all_run = false;
                out.text(format_args!("entry {name}: is not run here"));
                out.object(json!({ "entry": name, "runs": false, "params": objects(&params) }));
                list(&params, out);
                refuse(error, out);
            }
        }
    }
    Ok(if all_run { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

fn describe(entry: &Entry, out: &Output) {
    out.object(json!({
        "entry": entry.name, "runs": true, "instructions": entry.instructions, "shared": entry.shared,
        "local": entry.local, "dynamic_smem": entry.has_dynamic_smem, "reqntid": entry.reqntid, "maxntid": entry.maxntid,
        "params": objects(&entry.params),
    }));
    out.text(format_args!("entry {}: {} instructions", entry.name, entry.instructions));
    let block = |what: &str, n: Option<[u32; 3]>| {
        if let Some([x, y, z]) = n {
            out.text(format_args!("  {what} ({x},{y},{z})"));
        }
    };
    block("block", entry.reqntid);
    block("block of at most", entry.maxntid);
    let dynamic = if entry.has_dynamic_smem { ", and dynamic" } else { "" };
    out.text(format_args!(
        "  {} B of shared memory{dynamic}, {} B of local memory a thread",
        entry.shared, entry.local
    ));
    list(&entry.params, out);
}

fn objects(params: &[Param]) -> Vec<Value> {
    let object = |p: &Param| json!({ "name": p.name, "type": format!("{:?}", p.ty).to_lowercase(), "bytes": p.bytes, "offset": p.offset });
    params.iter().map(object).collect()
}

fn list(params: &[Param], out: &Output) {
    for Param { name, ty, bytes, offset, is_array, pointee } in params {
        let ty = format!("{ty:?}").to_lowercase();
        let what = match (pointee, is_array) {
            (Some((space, align)), _) => format!("pointer to {}, aligned to {align} B", space.as_str()),
            (None, true) => format!("{bytes} B, a struct"),
            (None, false) => ty,
        };
        out.text(format_args!("  parameter at byte {offset}: {what} ({name})"));
    }
}

fn site(site: &Site) -> Value {
    let source: Vec<String> = site.source.iter().map(ToString::to_string).collect();
    let line = site.user_line().map(ToString::to_string);
    json!({ "ptx_line": site.ptx_line, "opcode": site.opcode, "line": line, "source": source })
}

/// A finding as JSON; docs/ptx.md has the names.
fn object(finding: &Finding) -> Value {
    let Finding { kind, rule, who, .. } = finding;
    let other = finding.other.as_ref().map(|o| {
        json!({
            "block": o.who.block, "thread": o.who.thread, "warp": o.who.warp, "lanes": o.who.lanes,
            "write": o.write, "in_flight": o.in_flight, "at": o.site.as_ref().map(site),
        })
    });
    let origin = finding.origin.as_ref().map(|o| {
        json!({
            "block": o.who.block, "thread": o.who.thread, "warp": o.who.warp, "lanes": o.who.lanes,
            "target": o.target.to_string(), "at": site(&o.site),
        })
    });
    json!({ "finding": {
        "code": kind.as_str(), "rule": rule.as_str(), "entry": finding.entry,
        "required": rule.required(), "because": rule.because(), "section": rule.section(), "help": rule.help(),
        "count": finding.count, "threads": finding.threads, "blocks": finding.blocks, "places": finding.places,
        "further": finding.further,
        "block": who.map(|w| w.block), "thread": who.map(|w| w.thread),
        "warp": who.map(|w| w.warp), "lanes": who.map(|w| w.lanes),
        "at": finding.site.as_ref().map(site), "target": finding.target.as_ref().map(ToString::to_string),
        "bytes": finding.bytes, "write": finding.write, "other": other,
        "origin": origin, "detail": finding.detail,
    } })
}

fn counts(c: &Counts) -> Value {
    json!({
        "executions": c.executions, "lanes": c.lanes, "requests": c.requests, "sectors": c.sectors,
        "shared_requests": c.shared_requests, "wavefronts": c.wavefronts,
    })
}

/// What a kernel printed, what it did wrong, and what its instructions did.
pub(crate) fn tell(report: &Report, out: &Output) {
    if !out.is_json() {
        write(&report.printed);
    }
    for finding in &report.findings {
        out.text(finding);
        out.object(object(finding));
    }
    if report.unfinished() > 0 {
        out.text(format_args!("{} of {} blocks did not run to their end", report.unfinished(), report.blocks));
    }
    if report.dropped > 0 {
        out.text(format_args!("... and {} more findings", report.dropped));
    }
    if let Some(profile) = &report.profile {
        show(profile, out);
    }
}

/// Draws what was under way in the first block.
pub(crate) fn draw_stages(path: &Path, name: &str, profile: &Profile) -> Result<(), Failure> {
    let Some(last) = profile.stages.last() else {
        return Err(Failure::message(format_args!(
            "{name} fills no stages by bulk copies, and has no wgmma products to draw"
        )));
    };
    let series = |label: &str, of: fn(&Stages) -> u32| {
        let mut points: Vec<(u64, u32)> = profile.stages.iter().map(|s| (s.turn, of(s))).collect();
        points.dedup_by_key(|p| p.1);
        Series { label: label.to_owned(), points }
    };
    let chart = Steps {
        title: format!("{name}: what is under way in its first block or cluster"),
        time: "turns of warps".to_owned(),
        end: last.turn + 1,
        series: vec![series("stages being filled", |s| s.filling), series("wgmma products of a warp", |s| s.products)],
        caption: vec!["Copies and products come as late as the rules allow: what waits for them ends them.".to_owned()],
    };
    let options = draw::Options { most_cells: draw::Options::LIMIT };
    let svg = draw::steps(&chart, &options).map_err(Failure::message)?;
    std::fs::write(path, svg).map_err(|e| Failure::message(format_args!("{}: {e}", path.display())))
}

/// What the instructions did: by PTX line, then by source line.
fn show(profile: &Profile, out: &Output) {
    for p in &profile.instructions {
        out.text(format_args!("  {:>5} {}: {}", p.site.ptx_line, p.site.opcode, p.counts));
        out.object(json!({ "profile": { "at": site(&p.site), "counts": counts(&p.counts) } }));
    }
    for (line, sum) in profile.by_source() {
        out.text(format_args!("  {line}: {sum}"));
        out.object(json!({ "profile": { "source": line.to_string(), "counts": counts(&sum) } }));
    }
}

fn launches(path: &Path, options: &RunOptions, out: &Output) -> Result<ExitCode, Error> {
    let file = LaunchFile::read(path)?;
    for index in 0..file.len() {
        let done = file.run(index, options)?;
        result(&done, path, out);
        let failed = done.seeds.as_ref().is_some_and(|seeds| !seeds.failing.is_empty());
        if failed || !done.report.is_clean() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What came of a launch.
fn result(done: &FileReport, path: &Path, out: &Output) {
    let report = &done.report;
    tell(report, out);
    for note in &done.notes {
        out.text(format_args!("note: {note}"));
    }
    for by in &done.allowed {
        match by.findings {
            0 => out.text(format_args!("allowed: {}: found nothing", by.rule)),
            n => out.text(format_args!(
                "allowed: {}: {}, {}",
                by.rule,
                counted(n as u64, "finding", "findings"),
                counted(by.times, "time", "times")
            )),
        }
    }
    let found = report.findings.len() as u64 + report.dropped;
    let verdict = if report.is_clean() { "right".to_owned() } else { counted(found, "finding", "findings") };
    out.text(format_args!(
        "{}: {verdict} with seed {}, {} warp instructions",
        done.entry, done.seed, report.instructions
    ));
    let replay = format!("cutemplate ptx run {} --seed {}", path.display(), done.seed);
    match &done.seeds {
        None => out.text("  other seeds order warps and asynchronous work otherwise: --seeds 8 tries eight"),
        Some(seeds) => {
            let last = seeds.first.wrapping_add(seeds.count - 1);
            match seeds.failing.len() {
                0 => out.text(format_args!("  right with each seed from {} to {last}", seeds.first)),
                n => {
                    out.text(format_args!(
                        "  {n} of the {} seeds from {} to {last} found something",
                        seeds.count, seeds.first
                    ));
                    out.text(format_args!("  again: {replay}"));
                }
            }
            for what in &seeds.differing {
                out.text(format_args!("  depends on the seed: {what}"));
            }
        }
    }
    let files: Vec<String> = done.written.iter().map(|p| p.display().to_string()).collect();
    for file in &files {
        out.text(format_args!("  wrote {file}"));
    }
    let allowed = done
        .allowed
        .iter()
        .map(|by| json!({ "rule": by.rule.to_string(), "findings": by.findings, "times": by.times }));
    let seeds = done.seeds.as_ref().map(|seeds| {
        json!({
            "first": seeds.first, "count": seeds.count, "failing": seeds.failing, "differing": seeds.differing,
            "replay": (!seeds.failing.is_empty()).then_some(&replay),
        })
    });
    out.object(json!({
        "entry": done.entry, "clean": report.is_clean(), "seed": done.seed, "seeds": seeds,
        "instructions": report.instructions, "lane_instructions": report.lane_instructions, "written": files,
        "printed": report.printed, "allowed": allowed.collect::<Vec<_>>(), "notes": done.notes,
    }));
}
