//! The result of a launch, as text and as JSON.

use serde_json::{Value, json};

use super::output::{Output, write};
use crate::{Counts, Finding, Profile, Report, Site};

fn site(site: &Site) -> Value {
    let source: Vec<String> = site.source.iter().map(ToString::to_string).collect();
    let line = site.user_line().map(ToString::to_string);
    json!({ "ptx_line": site.ptx_line, "opcode": site.opcode, "line": line, "source": source })
}

/// A finding as JSON; docs/guide.md has the names.
fn object(finding: &Finding, launch: Option<usize>) -> Value {
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
        "code": kind.as_str(), "rule": rule.as_str(), "launch": launch, "entry": finding.entry,
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

/// Prints the kernel's output, its findings, and its profile. `launch` is its number, where it is of a file.
pub(super) fn tell(report: &Report, launch: Option<usize>, out: Output) {
    if !out.json {
        write(&report.printed);
    }
    for finding in &report.findings {
        out.text(finding);
        out.object(object(finding, launch));
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

/// Prints the profile: by PTX line, then by source line.
fn show(profile: &Profile, out: Output) {
    for p in &profile.instructions {
        out.text(format_args!("  {:>5} {}: {}", p.site.ptx_line, p.site.opcode, p.counts));
        out.object(json!({ "profile": { "at": site(&p.site), "counts": counts(&p.counts) } }));
    }
    for (line, sum) in profile.by_source() {
        out.text(format_args!("  {line}: {sum}"));
        out.object(json!({ "profile": { "source": line.to_string(), "counts": counts(&sum) } }));
    }
}
