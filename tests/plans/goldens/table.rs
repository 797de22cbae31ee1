//! The table of the emitted files: what each is, and the facts that a reader checks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cutemplate::digest::Digest;
use cutemplate::plan::{Entry, Plan};

use super::emitted::Files;
use super::text_facts::Text;
use super::whole;

const HEAD: &str = "\
# The files that the kernels of the catalogue are emitted as. `UPDATE_EXPECT=1 cargo test --test plans goldens::` writes this table.
# A block is a kernel, or one of its texts. Entries that are alike share a line. A file is kept whole in this folder, or has its sha256
# here; `text` is read off the text, all else is what the plan says, and `goldens::agree` compares the two: what must be equal stands
# here once.
";
const FILE: &str = "  file";

/// What the table says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// It lies in the folder.
    Whole,
    /// Its digest.
    Digest(Digest),
}

fn line(block: &mut String, label: &str, value: &str) {
    let _ = writeln!(block, "  {label:10}  {value}");
}

fn file(block: &mut String, name: &str, files: &Files) {
    let Some(text) = files.get(name) else { return };
    let is = match whole::reason(name) {
        Some(why) => format!("whole: {why}"),
        None => format!("sha256 {}", Digest::of(text.as_bytes())),
    };
    let _ = writeln!(block, "{FILE}  {name}  {} lines  {is}", text.lines().count());
}

/// Entries of a text of which the same is said.
struct Alike<'p> {
    names: Vec<&'p str>,
    is: String,
    /// On which architectures a multiprocessor has room for how many of its blocks.
    room: Vec<(String, String)>,
}

/// Architectures of one occupancy share a line.
fn room(plan: &Plan, entry: &Entry) -> Vec<(String, String)> {
    let mut occupancies: Vec<(String, Vec<&str>)> = Vec::new();
    for arch in plan.targets().archs() {
        let (Some(registers), Some(occupancy)) = (entry.registers, entry.occupancy(*arch)) else { continue };
        let text = format!("{occupancy}, if it takes {registers} registers");
        match occupancies.iter_mut().find(|(of, _)| *of == text) {
            Some((_, archs)) => archs.push(arch.name()),
            None => occupancies.push((text, vec![arch.name()])),
        }
    }
    occupancies.into_iter().map(|(occupancy, archs)| (archs.join(", "), occupancy)).collect()
}

/// The entries of a text.
fn alike(plan: &Plan) -> Vec<Alike<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for entry in plan.entries() {
        let (name, is, room) = (entry.function(plan.name()), entry.to_string(), room(plan, entry));
        match all.iter_mut().find(|known| known.is == is && known.room == room) {
            Some(known) => known.names.push(name),
            None => all.push(Alike { names: vec![name], is, room }),
        }
    }
    all
}

/// What is decided for one text, and what stands in it.
fn text(block: &mut String, plan: &Plan, files: &Files) {
    for entries in alike(plan) {
        line(block, &entries.names.join(", "), &entries.is);
        entries.room.iter().for_each(|(archs, occupancy)| line(block, archs, occupancy));
    }
    for tensor in plan.shared() {
        // The example of a conflict follows from the counts.
        let counts = tensor.to_string();
        let counts = counts.lines().filter(|text| !text.starts_with("    ")).map(str::trim);
        line(block, "shared", &counts.collect::<Vec<_>>().join("; "));
    }
    // Of a tensor whose banks were counted the layout stands there.
    let has_banks = |name: &str| plan.shared().iter().any(|tensor| tensor.name == name);
    for fact in plan.facts().iter().filter(|fact| !has_banks(&fact.name)) {
        // Of a copy and a mix, the reason says which and what of.
        let why = if ["copies", "mix"].contains(&&*fact.name) { format!(" {}", fact.why) } else { String::new() };
        line(block, &fact.name, &format!("{}{why}", fact.value));
    }
    for suffix in [".cuh", ".cu", "_params.h"] {
        file(block, &format!("{}{suffix}", plan.name()), files);
    }
    for (label, value) in Text::of(plan.name(), files).facts() {
        line(block, "text", &format!("{label}: {value}"));
    }
}

/// The table of these plans and files: the same for the same, sorted by the names of kernels and texts.
pub(super) fn table(plans: &[Plan], files: &Files) -> String {
    let mut blocks: BTreeMap<&str, String> = BTreeMap::new();
    for plan in plans {
        let block = blocks.entry(plan.name()).or_default();
        let _ = writeln!(block, "{} for {}", plan.name(), plan.targets());
        line(block, "recipe", plan.recipe());
        let operands = plan.operands().iter().map(|o| {
            let access = format!("{:?}", o.access).to_lowercase();
            format!("{access} {} {} {}", o.name, o.dtype, o.stride_text())
        });
        line(block, "operands", &operands.collect::<Vec<_>>().join(", "));
        for suffix in [".plan.txt", ".rs.txt"] {
            file(block, &format!("{}{suffix}", plan.name()), files);
        }
        for part in plan.texts() {
            let block = blocks.entry(part.name()).or_default();
            if part.name() != plan.name() {
                let _ = writeln!(block, "{} for {}", part.name(), part.targets());
            }
            text(block, part, files);
        }
    }
    blocks.into_values().fold(HEAD.to_owned(), |table, block| format!("{table}\n{block}"))
}

/// What a table says of each file.
///
/// # Errors
/// The line that says nothing of one, though it should.
pub(super) fn stamps(table: &str) -> Result<BTreeMap<String, Stamp>, String> {
    let mut stamps = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with(FILE)) {
        let mut words = line[FILE.len()..].split_whitespace();
        let mut of_name = || {
            let (name, _, _) = (words.next()?, words.next()?, words.next()?);
            let stamp = match (words.next()?, words.next()) {
                ("whole:", _) => Stamp::Whole,
                ("sha256", Some(digest)) => Stamp::Digest(digest.parse().ok()?),
                _ => return None,
            };
            Some((name.to_owned(), stamp))
        };
        let (name, stamp) =
            of_name().ok_or_else(|| format!("found `{line}`, required `file NAME N lines sha256 DIGEST`"))?;
        if stamps.insert(name, stamp).is_some() {
            return Err(format!("found `{line}`, required one line of each file"));
        }
    }
    Ok(stamps)
}

/// A table without its digests: the facts.
pub(super) fn facts(table: &str) -> String {
    let fact = |line: &str| match line.split_once("  sha256 ") {
        Some((file, _)) if line.starts_with(FILE) => format!("{file}\n"),
        _ => format!("{line}\n"),
    };
    table.lines().map(fact).collect()
}
