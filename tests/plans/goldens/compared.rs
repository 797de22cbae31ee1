//! The emitted files against those of before, and the report where they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cutemplate::digest::Digest;
use similar::TextDiff;

use super::emitted::Files;
use super::table::{Stamp, facts, stamps};
use super::whole;

pub(super) const TABLE: &str = "table.txt";
/// Lines of a diff that a report shows; the file of all diffs has the rest.
const SHOWN: usize = 80;

/// Where the files of before lie.
pub(super) struct Goldens {
    /// The table and the files that are kept whole.
    pub(super) golden: PathBuf,
    /// What runs leave: in `kept` the files of the last run that passed, in `now` those of the last one that did not.
    pub(super) left: PathBuf,
}

/// A file that is not what it was.
struct Change {
    name: String,
    /// Against the file of before, where it is here.
    diff: Option<String>,
}

/// A unified diff, without a path in it.
pub(super) fn diff(name: &str, before: &str, now: &str) -> String {
    let (of_before, of_now) = (format!("{name} before"), format!("{name} now"));
    TextDiff::from_lines(before, now).unified_diff().context_radius(3).header(&of_before, &of_now).to_string()
}

/// Lines that a diff takes away and adds: `-2 +3`.
fn size(diff: &str) -> String {
    let count = |sign: char, head: &str| diff.lines().filter(|l| l.starts_with(sign) && !l.starts_with(head)).count();
    format!("-{} +{}", count('-', "--- "), count('+', "+++ "))
}

/// The first lines of a diff.
fn shown(diff: &str) -> String {
    let mut lines = diff.lines();
    let mut text: String = lines.by_ref().take(SHOWN).map(|line| format!("{line}\n")).collect();
    let rest = lines.count();
    if rest > 0 {
        let _ = writeln!(text, ".. and {rest} more lines");
    }
    text
}

fn write_all(folder: &Path, files: &Files) {
    fs::create_dir_all(folder).expect("a folder below target");
    for (name, text) in files {
        write(&folder.join(name), text);
    }
}

/// Leaves a file alone that has the text already.
fn write(path: &Path, text: &str) {
    if fs::read(path).ok().as_deref() != Some(text.as_bytes()) {
        fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

impl Goldens {
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.golden.join(name)).unwrap_or_default()
    }

    /// The text of before, if it is here: kept whole, or left by a run that passed, which the digest proves.
    fn before(&self, name: &str, stamp: &Stamp) -> Option<String> {
        match stamp {
            Stamp::Whole => fs::read_to_string(self.golden.join(name)).ok(),
            Stamp::Digest(digest) => {
                let text = fs::read_to_string(self.left.join("kept").join(name)).ok()?;
                (Digest::of(text.as_bytes()) == *digest).then_some(text)
            }
        }
    }

    /// The files that are not what the table says, files without an entry and entries without a file among them.
    fn changes(&self, stamps: &BTreeMap<String, Stamp>, files: &Files) -> Vec<Change> {
        let names: BTreeSet<&String> = stamps.keys().chain(files.keys()).collect();
        let change = |name: &String| {
            let (stamp, now) = (stamps.get(name), files.get(name));
            let before = stamp.and_then(|stamp| self.before(name, stamp));
            let same = match (stamp, now) {
                (Some(Stamp::Whole), Some(now)) => before.as_ref() == Some(now),
                (Some(Stamp::Digest(digest)), Some(now)) => Digest::of(now.as_bytes()) == *digest,
                _ => false,
            };
            // An absent file of the folder, and a file that is new, are as an empty one.
            let before =
                if matches!(stamp, None | Some(Stamp::Whole)) { Some(before.unwrap_or_default()) } else { before };
            let now = now.map_or("", String::as_str);
            (!same).then(|| Change { name: name.clone(), diff: before.map(|before| diff(name, &before, now)) })
        };
        names.into_iter().filter_map(change).collect()
    }

    /// Files of the folder that are neither the table nor kept whole.
    fn strays(&self, files: &Files) -> Vec<String> {
        let entries = fs::read_dir(&self.golden).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name != TABLE && !(files.contains_key(name) && whole::reason(name).is_some())).collect()
    }

    /// What differs from before, in words, with the shortest diffs; `None` where nothing does. Leaves the files of a run that differs
    /// in `now`, with all diffs, and those of one that does not in `kept`.
    pub(super) fn compare(&self, table: &str, files: &Files) -> Option<String> {
        let before = self.read(TABLE);
        let changes = match stamps(&before) {
            Ok(stamps) => self.changes(&stamps, files),
            Err(message) => return Some(format!("{}: {message}", self.golden.join(TABLE).display())),
        };
        let strays = self.strays(files);
        if before == table && changes.is_empty() && strays.is_empty() {
            write_all(&self.left.join("kept"), files);
            return None;
        }
        write_all(&self.left.join("now"), files);
        let facts = diff("facts", &facts(&before), &facts(table));
        let diffs = changes.iter().filter_map(|change| change.diff.clone());
        let all: String = core::iter::once(facts.clone()).chain(diffs).collect();
        write(&self.all_diffs(), &all);
        Some(self.report(&changes, &strays, &facts))
    }

    fn all_diffs(&self) -> PathBuf {
        self.left.join("changes.diff")
    }

    fn report(&self, changes: &[Change], strays: &[String], facts: &str) -> String {
        let mut text = format!("Files that differ from those of {}: {}\n", self.golden.display(), changes.len());
        for Change { name, diff } in changes {
            let how = diff.as_ref().map_or_else(|| "its text of before is not here".to_owned(), |diff| size(diff));
            let _ = writeln!(text, "  {name}  {how}");
        }
        for stray in strays {
            let _ = writeln!(text, "  {stray}  is in the folder, but no kernel is kept whole there under this name");
        }
        if !facts.is_empty() {
            let _ = write!(text, "\nThe facts that differ:\n{}", shown(facts));
        }
        let shortest = changes.iter().filter_map(|change| change.diff.as_ref()).min_by_key(|diff| diff.len());
        if let Some(shortest) = shortest {
            let _ = write!(text, "\nThe shortest diff:\n{}", shown(shortest));
        }
        let _ = writeln!(
            text,
            "\nAll diffs are in {}, all files in {}.",
            self.all_diffs().display(),
            self.left.join("now").display()
        );
        if changes.iter().any(|change| change.diff.is_none()) {
            text.push_str(&self.how_to_get_before());
        }
        text + "If the change is meant: UPDATE_EXPECT=1 cargo test --test plans goldens::\n"
    }

    /// A run that passes keeps its files: one of the version of before, with the same target folder, keeps those that are asked for.
    fn how_to_get_before(&self) -> String {
        let kept = self.left.join("kept");
        format!(
            "For the diffs of files whose text of before is not here, let the version of before leave its files in {}:\n  \
             git worktree add --detach target/before HEAD  # or the commit that the table is of\n  \
             (cd target/before && CARGO_TARGET_DIR=../../target cargo test --test plans goldens::)\n  \
             cargo test --test plans goldens::\n  \
             git worktree remove target/before\n",
            kept.display()
        )
    }

    /// Writes the table and the whole files, and removes what does not belong to them. Leaves all diffs, too.
    pub(super) fn update(&self, table: &str, files: &Files) {
        // The diffs are for whoever reads them before committing.
        if self.compare(table, files).is_none() {
            let _ = fs::remove_file(self.all_diffs());
        }
        for stray in self.strays(files) {
            fs::remove_file(self.golden.join(stray)).expect("a file of the folder");
        }
        let whole: Files = files
            .iter()
            .filter(|(name, _)| whole::reason(name).is_some())
            .map(|(n, t)| (n.clone(), t.clone()))
            .collect();
        write_all(&self.golden, &whole);
        write(&self.golden.join(TABLE), table);
    }
}
