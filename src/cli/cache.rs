//! `cutemplate cache`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use cutemplate::build::cache::{Cache, Entry, Kind, Limits, Pruned};
use cutemplate::units::Bytes;
use cutlass_sys::Env;
use serde_json::{Value, json};

use crate::cli::args::{CacheCommand, PruneArgs};
use crate::cli::output::{self, Failure, Output, counted};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Days without use after which entries go, where no limit is given.
const USUAL_DAYS: u32 = 30;

pub(crate) fn run(command: &CacheCommand, out: &Output) -> Result<ExitCode, Failure> {
    let cache = Cache::of_user(&Env::current()).map_err(Failure::message)?;
    match command {
        CacheCommand::List => list(&cache, out)?,
        CacheCommand::Size => size(&cache, out)?,
        CacheCommand::Prune(args) => prune(&cache, args, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `1.5 MiB`.
fn shown(Bytes(bytes): Bytes) -> String {
    let unit = [("GiB", 30), ("MiB", 20), ("KiB", 10)].into_iter().find(|(_, shift)| bytes >> shift > 0);
    match unit {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

fn days_idle(entry: &Entry, now: SystemTime) -> u64 {
    now.duration_since(entry.used).unwrap_or_default().as_secs() / DAY.as_secs()
}

fn object(entry: &Entry, now: SystemTime) -> Value {
    let Entry { kind, kernel, path, bytes, .. } = entry;
    json!({ "kind": kind, "kernel": kernel, "path": output::path(path), "bytes": bytes.0, "days_idle": days_idle(entry, now) })
}

fn list(cache: &Cache, out: &Output) -> Result<(), Failure> {
    let now = SystemTime::now();
    for entry in cache.entries().map_err(Failure::message)? {
        let (kind, days, path) = (entry.kind.to_string(), days_idle(&entry, now), entry.path.display());
        let kernel = entry.kernel.as_deref().unwrap_or("-");
        out.text(format_args!("{kind:10} {:>10} {days:4} days idle  {kernel}  {path}", shown(entry.bytes)));
        out.object(json!({ "entry": object(&entry, now) }));
    }
    Ok(())
}

fn size(cache: &Cache, out: &Output) -> Result<(), Failure> {
    let entries = cache.entries().map_err(Failure::message)?;
    let (mut text, mut kinds) = (cache.root().display().to_string(), serde_json::Map::new());
    for kind in Kind::ALL {
        let of_kind = || entries.iter().filter(|entry| entry.kind == *kind);
        let (count, bytes) = (of_kind().count(), of_kind().map(|entry| entry.bytes.0).sum());
        let _ = write!(text, "\n  {:10} {count:6} {:>10}", kind.to_string(), shown(Bytes(bytes)));
        kinds.insert(kind.to_string(), json!({ "entries": count, "bytes": bytes }));
    }
    out.text(text);
    out.object(json!({ "cache_dir": output::path(cache.root()), "kinds": kinds }));
    Ok(())
}

fn prune(cache: &Cache, args: &PruneArgs, out: &Output) -> Result<(), Failure> {
    let age = args.older_than.map(|age| age.0).or(args.max_size.is_none().then_some(USUAL_DAYS * DAY));
    let limits = Limits { older_than: age, max_size: args.max_size };
    let now = SystemTime::now();
    let Pruned { removed, in_use, left } = cache.prune(&limits, now).map_err(Failure::message)?;
    let total = |entries: &[Entry]| shown(Bytes(entries.iter().map(|entry| entry.bytes.0).sum()));
    let entries = |all: &[Entry]| counted(all.len() as u64, "entry", "entries");
    out.text(format_args!("removed {} of {}, {} are left", entries(&removed), total(&removed), shown(left)));
    if !in_use.is_empty() {
        let (kept, bytes) = (entries(&in_use), total(&in_use));
        out.text(format_args!(
            "kept {kept} of {bytes} beyond the limits: they are being made, or were used in the last two days"
        ));
    }
    let objects = |entries: &[Entry]| entries.iter().map(|entry| object(entry, now)).collect::<Vec<_>>();
    out.object(json!({ "removed": objects(&removed), "in_use": objects(&in_use), "left_bytes": left.0 }));
    Ok(())
}
