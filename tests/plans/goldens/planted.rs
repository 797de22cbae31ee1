//! Contract: each change of an emitted file is found, and shown with its diff where the text of before is here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cutemplate::plan::Plan;

use super::compared::{Goldens, TABLE, diff};
use super::emitted::{CATALOGUE, FILES, Files, catalogue, files};
use super::table::{Stamp, stamps, table};
use super::whole;

/// The files of a kernel.
const KINDS: [&str; 5] = [".cuh", ".cu", "_params.h", ".plan.txt", ".rs.txt"];

/// Goldens of their own, in an empty folder, which a run has passed with.
struct Passed {
    goldens: Goldens,
    plans: &'static [Plan],
    files: &'static Files,
}

impl Passed {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("goldens_planted").join(name);
        let _ = fs::remove_dir_all(&folder);
        let (plans, files) = (&*CATALOGUE, &*FILES);
        let goldens = Goldens { golden: folder.join("golden"), left: folder.join("left") };
        goldens.update(&table(plans, files), files);
        let passed = Self { goldens, plans, files };
        assert_eq!(passed.report(passed.files), None);
        passed
    }

    fn report(&self, files: &Files) -> Option<String> {
        self.goldens.compare(&table(self.plans, files), files)
    }

    /// The files with one that has other text.
    fn with(&self, name: &str, text: String) -> Files {
        let mut files = self.files.clone();
        files.insert(name.to_owned(), text);
        files
    }
}

/// A text with another character in its middle, and the line with it, before and after.
fn changed(text: &str) -> (String, String, String) {
    let is_code = |(_, line): &(usize, &str)| line.chars().any(|c| c.is_ascii_lowercase());
    let middle = text.lines().count() / 2;
    let (at, line) = text.lines().enumerate().skip(middle).find(is_code).expect("a line of code");
    let letter = line.find(|c: char| c.is_ascii_lowercase()).expect("a letter");
    let other = if line.as_bytes()[letter] == b'x' { "y" } else { "x" };
    let new = format!("{}{other}{}", &line[..letter], &line[letter + 1..]);
    let now: String = text.lines().enumerate().map(|(i, l)| format!("{}\n", if i == at { &new } else { l })).collect();
    (now, line.to_owned(), new)
}

#[test]
fn one_character_in_a_file_is_found_and_shown() {
    let passed = Passed::new("one_character");
    // A text, an entry, parameters, a plan and a module by digest, and the same kept whole.
    let of_kind = |suffix: &str, is_whole: bool| {
        let mut names = passed.files.keys().filter(|name| name.ends_with(suffix));
        names.find(|name| whole::reason(name).is_some() == is_whole).expect(suffix)
    };
    for (suffix, is_whole) in KINDS.iter().flat_map(|suffix| [(suffix, true), (suffix, false)]) {
        let name = of_kind(suffix, is_whole);
        let (text, before, now) = changed(&passed.files[name]);
        let report = passed.report(&passed.with(name, text)).unwrap_or_else(|| panic!("{name}: `{now}` is not found"));
        assert!(report.contains(&format!("  {name}  -1 +1\n")), "{report}");
        assert!(
            report.contains(&format!("\n-{before}\n+{now}\n")),
            "{name}: no diff of `{before}` and `{now}`:\n{report}"
        );
        assert!(!report.contains("git worktree"), "{report}");
    }
}

#[test]
fn one_character_in_every_file_is_found_in_each() {
    let passed = Passed::new("every_file");
    let change = |(name, text): (&String, &String)| (name.clone(), changed(text));
    let changes: BTreeMap<String, (String, String, String)> = passed.files.iter().map(change).collect();
    let files = changes.iter().map(|(name, (text, ..))| (name.clone(), text.clone())).collect();
    let report = passed.report(&files).expect("found");
    let diffs = fs::read_to_string(passed.goldens.left.join("changes.diff")).expect("all diffs");
    for (name, (_, before, now)) in &changes {
        assert!(report.contains(&format!("  {name}  -1 +1\n")), "{name}:\n{report}");
        let of_file = diffs.split(&format!("--- {name} before\n")).nth(1).expect(name);
        let of_file = of_file.split("\n--- ").next().expect("a part");
        assert!(of_file.contains(&format!("\n-{before}\n+{now}\n")), "{name}:\n{of_file}");
    }
}

#[test]
fn of_a_file_without_its_text_of_before_it_is_said_how_to_get_it() {
    let passed = Passed::new("unknown");
    let name = "gemm_f16_sm90a.cuh";
    assert_eq!(whole::reason(name), None);
    let (text, _, now) = changed(&passed.files[name]);
    let changed = passed.with(name, text.clone());
    let kept = passed.goldens.left.join("kept").join(name);
    // Another version left this text: a diff against it would mislead.
    fs::write(&kept, format!("{}// another version\n", passed.files[name])).expect("written");
    let told = format!("  {name}  its text of before is not here\n");
    for report in [passed.report(&changed), {
        fs::remove_file(&kept).expect("there");
        passed.report(&changed)
    }] {
        let report = report.expect("found");
        assert!(report.contains(&told) && report.contains("git worktree add --detach"), "{report}");
        assert!(!report.contains(&now), "{report}");
    }
    // What this run leaves can be compared with what another version leaves.
    let left = fs::read_to_string(passed.goldens.left.join("now").join(name)).expect("left");
    assert_eq!(left, text);
}

#[test]
fn facts_that_change_are_shown_by_name() {
    let passed = Passed::new("facts");
    let name = "gemm_f16_sm90a.cuh";
    let text = passed.files[name].replace("CUTE_UNROLL", "CUTE_NO_UNROLL");
    let report = passed.report(&passed.with(name, text)).expect("found");
    let shown = ["-  text        counts: ", ", 0 CUTE_UNROLL\n"];
    assert!(shown.iter().all(|of| report.contains(of)), "{report}");

    // A plan that asks for other blocks is found by its own facts, though its text stays.
    let mut plans = CATALOGUE.clone();
    let at = plans.iter().position(|plan| plan.name() == "sum_f16_block").expect("in the catalogue");
    let other = cutemplate::settings::Settings::parse_lines(
        "expr=|a, b; alpha| alpha * a * b\nin=f16:(?,1), f32:(0,1)\nout=f16\nby=block\nthreads=128",
    );
    let family = cutemplate::recipe::family("sum").expect("registered");
    plans[at] = family.plan(&other, None, plans[at].targets()).expect("a plan");
    let report = passed.goldens.compare(&table(&plans, passed.files), passed.files).expect("found");
    assert!(
        report.contains("-  kernel, elements  256 a block") && report.contains("+  kernel, elements  128 a block"),
        "{report}"
    );
}

#[test]
fn files_that_come_go_or_belong_to_no_kernel_are_named() {
    let passed = Passed::new("come_and_go");
    let mut files = passed.files.clone();
    let (name, text) = files.pop_first().expect("a file");
    files.insert("new.cuh".to_owned(), text.clone());
    let table_of_before = fs::read_to_string(passed.goldens.golden.join(TABLE)).expect("the table");
    let report = passed.goldens.compare(&table_of_before, &files).expect("found");
    let lines = text.lines().count();
    for change in [format!("  {name}  -{lines} +0\n"), format!("  new.cuh  -0 +{lines}\n")] {
        assert!(report.contains(&change), "no `{change}`:\n{report}");
    }

    fs::write(passed.goldens.golden.join("old.cuh"), "of a kernel that went").expect("written");
    let report = passed.report(passed.files).expect("found");
    assert!(report.contains("  old.cuh  is in the folder, but no kernel"), "{report}");
    passed.goldens.update(&table_of_before, passed.files);
    assert_eq!(passed.report(passed.files), None);
}

#[test]
fn a_damaged_table_is_refused_with_the_line() {
    let passed = Passed::new("damaged");
    let path = passed.goldens.golden.join(TABLE);
    let table = fs::read_to_string(&path).expect("the table");
    let line = table.lines().find(|line| line.contains("  sha256 ")).expect("a digest");
    for damaged in [&line[..line.len() - 1], line.split("  sha256").next().expect("a part"), &format!("{line}\n{line}")]
    {
        fs::write(&path, table.replacen(line, damaged, 1)).expect("written");
        let report = passed.report(passed.files).expect("refused");
        assert!(report.contains("found `  file  ") && report.contains("required "), "{report}");
    }
}

#[test]
fn the_same_catalogue_gives_the_same_table_with_a_line_for_each_file() {
    let passed = Passed::new("same");
    let again = catalogue();
    let text = table(&again, &files(&again));
    assert_eq!(text, table(passed.plans, passed.files));
    let stamps = stamps(&text).expect("well-formed");
    assert!(stamps.keys().eq(passed.files.keys()));
    let is_whole = |name: &String| whole::reason(name).is_some();
    assert!(stamps.iter().all(|(name, stamp)| (*stamp == Stamp::Whole) == is_whole(name)));
    assert_eq!(stamps.iter().filter(|(name, stamp)| name.ends_with(".cuh") && **stamp == Stamp::Whole).count(), 8);
}

#[test]
fn a_diff_is_unified_and_names_no_path() {
    let (before, now) = ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nD\ne\nf\n");
    assert_eq!(
        diff("x.cuh", before, now),
        "--- x.cuh before\n+++ x.cuh now\n@@ -1,6 +1,6 @@\n a\n b\n c\n-d\n+D\n e\n f\n"
    );
}
