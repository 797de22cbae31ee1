//! Contract: a run that only writes texts writes every text that its tests load, each under a name of its own.
#![cfg(feature = "build")]

use std::fs;
use std::process::Command;

use cutemplate::arch::Targets;
use cutemplate::emit::render;
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::settings::Settings;
use tempfile::TempDir;

/// The folder that the ignored tests with these names write texts to.
fn texts_of(tests: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(std::env::current_exe().expect("this binary"));
    child.args(["--ignored", "--test-threads=2", "--skip", "random_recipes"]).args(tests);
    child.env("CUTEMPLATE_TEST_DATA", folder.path()).env("CUTEMPLATE_TEST_EMIT", "1");
    for chosen in ["CUTEMPLATE_WHOLE", "CUTEMPLATE_PLANTED", "CUTEMPLATE_APPLY_RECIPES"] {
        child.env_remove(chosen);
    }
    let output = child.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    folder
}

/// Where two tests give different texts one name, the child fails (`support/gpu.rs`).
#[test]
fn every_text_has_a_name_of_its_own() {
    let folder = texts_of(&["gemm::", "sum::", "apply::", "elementwise::", "sanitize::"]);
    let names = fs::read_dir(folder.path()).expect("there").map(|entry| entry.expect("there").path());
    let texts: Vec<_> = names.filter(|path| path.extension().is_some_and(|suffix| suffix == "src")).collect();
    assert!(texts.len() > 20, "{}", texts.len());
    for text in texts {
        assert!(["flags", "denied"].iter().all(|name| text.join(name).exists()), "{}", text.display());
    }
}

#[test]
fn a_typed_launch_gets_the_texts_of_all_parts() {
    let folder = texts_of(&["gemm::one_typed_launch_takes_the_part_of_the_gpu"]);
    let recipe = Gemm::from_settings(&Settings::parse_lines(Gemm::CATALOGUE[0])).expect("settings");
    let plan = recipe.plan(&Targets::default()).expect("a right recipe");
    assert_eq!(plan.texts().len(), 2);
    for part in plan.texts() {
        let header = render(part).header().clone();
        let at = folder.path().join(format!("{}.src", part.name())).join(&header.name);
        assert_eq!(fs::read_to_string(&at).ok(), Some(header.text), "{}", at.display());
    }
}
