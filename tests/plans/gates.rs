//! Rules of the texts themselves. A test that a run leaves out is ignored, with its reason: none passes by doing nothing.
//! `Debug` of a public error is its `Display`: `main` and `unwrap` show it.

use std::fs;
use std::path::{Path, PathBuf};

/// Tests that end early where the machine has what they need to be missing.
const MAY_END_EARLY: [&str; 1] = ["without_nvcc_a_run_is_refused_in_words"];

fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            texts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The tests of a text that are not ignored and return before their end.
fn early(text: &str) -> Vec<&str> {
    let tests = text.split("\n#[test]\n").skip(1);
    let bodies = tests.filter_map(|test| test.split("\n}\n").next()).filter(|test| !test.starts_with("#[ignore"));
    let ends = |test: &&str| test.contains("return;") || test.contains("{ return }");
    bodies.filter(ends).filter_map(|test| test.split_once("fn ")?.1.split('(').next()).collect()
}

#[test]
fn no_test_passes_by_ending_early() {
    let planted = "\n#[test]\nfn planted() {\n    let Some(gpu) = find() else { return };\n}\n";
    assert_eq!(early(planted), ["planted"]);
    assert!(early(&planted.replace("#[test]\n", "#[test]\n#[ignore = \"needs a GPU\"]\n")).is_empty());
    let mut all = Vec::new();
    for folder in ["tests", "examples", "cutlass-sys/tests", "cutlass-sys/src", "src"] {
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut all);
    }
    assert!(all.len() > 100, "{} texts", all.len());
    for path in all {
        let text = fs::read_to_string(&path).expect("a text");
        let found: Vec<&str> = early(&text).into_iter().filter(|name| !MAY_END_EARLY.contains(name)).collect();
        assert!(found.is_empty() || path.ends_with("gates.rs"), "{}: {found:?}", path.display());
    }
}

/// The errors of a text whose `Debug` is derived.
fn debug_derived(text: &str) -> Vec<&str> {
    let of = |line: &'static str| move |text: &&str| text.contains(line);
    let items = text.split("#[derive(").skip(1);
    let derived = items.filter(of("Debug")).filter_map(|item| {
        let (derives, rest) = item.split_once(")]")?;
        let (before, rest) = rest.split_once("pub enum ").or_else(|| rest.split_once("pub struct "))?;
        let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
        let by_hand = ["core", "std"].iter().any(|of| text.contains(&format!("impl {of}::error::Error for {name} ")));
        let error = derives.contains("thiserror::Error") || by_hand;
        (derives.contains("Debug") && error && !before.contains("#[derive(")).then_some(name)
    });
    derived.collect()
}

#[test]
fn errors_are_shown_in_words_by_debug_too() {
    let planted = "#[derive(Clone, Debug, thiserror::Error)]\n#[error(\"no\")]\npub struct Planted;\n";
    assert_eq!(debug_derived(planted), ["Planted"]);
    let planted = "#[derive(Debug)]\npub enum Planted { One }\nimpl core::error::Error for Planted {}\n";
    assert_eq!(debug_derived(planted), ["Planted"]);
    let mut all = Vec::new();
    for folder in ["src", "ptx-exec/src", "cutlass-sys/src"] {
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut all);
    }
    for path in all {
        let text = fs::read_to_string(&path).expect("a text");
        assert_eq!(debug_derived(&text), [""; 0], "{}", path.display());
    }
}
