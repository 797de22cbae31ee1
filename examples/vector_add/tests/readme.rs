//! Contract: the README's crate is this example, whole. Its commands make this manifest, its texts are these files, and the program is
//! right.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The blocks of the README's section on crates of one's own, by their language.
fn blocks(language: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let section = readme.split("## In your crate").nth(1).unwrap().split("\n## ").next().unwrap();
    let begin = format!("```{language}\n");
    section.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A file of this example without the comment on it.
fn file(path: &str) -> String {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    text.split_once("\n\n").unwrap().1.to_owned()
}

#[test]
fn the_texts_are_those_of_the_readme() {
    assert_eq!(blocks("rust,no_run"), [file("build.rs")]);
    assert_eq!(blocks("rust,ignore"), [file("src/main.rs")]);
}

#[test]
fn the_program_is_right() {
    let output = Command::new(env!("CARGO_BIN_EXE_vector_add")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && said.starts_with("1023 x 511 elements on ") && said.ends_with(": right\n"),
        "{said}"
    );
}

/// The commands run in an empty folder beside the repository, as a reader would type them.
#[cfg(unix)]
#[test]
fn the_commands_make_a_crate_with_these_dependencies() {
    let folder = std::env::temp_dir().join(format!("cutemplate-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(root(), folder.join("cutemplate")).unwrap();
    let [commands] = &blocks("sh")[..] else { panic!("one block of commands") };
    let run = Command::new("sh")
        .args(["-ec", commands])
        .current_dir(&folder)
        .env("CARGO_NET_OFFLINE", "true")
        .output()
        .unwrap();
    let made = std::fs::read_to_string(folder.join("app/Cargo.toml"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let made = made.unwrap();
    let own = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let dependencies = |text: &str| -> Vec<String> {
        let mut lines: Vec<String> = text
            .lines()
            .skip_while(|line| !line.contains("dependencies]"))
            .take_while(|line| !line.starts_with("[lints"))
            .map(|line| line.replace("../../cutemplate", "../..").replace("../cutemplate", "../.."))
            .map(|line| line.replace("version = \"0.1.0\", ", ""))
            .filter(|line| !line.is_empty())
            .collect();
        // Which section comes first is cargo's.
        lines.sort();
        lines
    };
    assert_eq!(dependencies(&made), dependencies(&own));
}
