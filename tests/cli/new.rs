//! Contract: `cutemplate new` makes a crate that builds and passes as it is, and overwrites nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect;

use crate::tool::{bad, good};

/// The build script of the crate is what this version of the library takes.
#[path = "../../src/cli/new/build.rs"]
#[allow(dead_code)]
mod build_script;

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of Unicode")
}

fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(root).expect("below it").display().to_string()),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_crate_is_made_where_nothing_is() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("my-kernels");
    let told = good(&["new", text(&root)]);
    assert!(
        told.contains("crate `my-kernels` with kernels row_sums (a recipe), fused (a function) and scale (CUDA C++)"),
        "{told}"
    );
    let made = files(&root);
    assert_eq!(
        made,
        [
            ".github/workflows/test.yml",
            ".gitignore",
            "Cargo.toml",
            "build.rs",
            "kernels/scale.cu",
            "src/lib.rs",
            "tests/executor.rs"
        ]
    );
    for file in &made {
        let text = fs::read_to_string(root.join(file)).expect("text");
        assert!(!["@name@", "@crate@", "@source@", "@rust@"].iter().any(|left| text.contains(left)), "{file}: {text}");
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    assert!(
        manifest.contains("name = \"my-kernels\"") && manifest.contains("cutemplate = { git = \"https://"),
        "{manifest}"
    );
    assert!(fs::read_to_string(root.join("tests/executor.rs")).expect("tests").contains("use my_kernels::{"));
    // An empty folder is taken, under a name of its own.
    let empty = place.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    good(&["new", text(&empty), "--name", "fast_kernels", "--cutemplate", env!("CARGO_MANIFEST_DIR")]);
    let manifest = fs::read_to_string(empty.join("Cargo.toml")).expect("a manifest");
    assert!(
        manifest.contains("name = \"fast_kernels\"") && manifest.contains("cutemplate = { path = '/"),
        "{manifest}"
    );
}

#[test]
fn nothing_is_overwritten_and_no_impossible_crate_is_made() {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("mine.txt"), "mine").expect("a file");
    let refused = |arguments: &[&str], found: &str, required: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_cutemplate")).arg("new").args(arguments).output();
        let output = output.expect("the tool runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in ["error[new]: ", found, required, "\n  because:  ", "\n  help:     "] {
            assert!(said.contains(part), "{part}: {said}");
        }
    };
    let [full, free] = [place.path(), &place.path().join("free")].map(|path| text(path).to_owned());
    refused(&[&full, "--name", "full"], "found:    mine.txt in it", "required: a folder that is empty, or not there");
    refused(
        &[&format!("{full}/mine.txt"), "--name", "a"],
        "found:    Not a directory",
        "required: a folder that is empty",
    );
    for name in ["", "0a", "a b", "fn", "test", "cutemplate", "a/b", "ä", "crate", &"a".repeat(65)] {
        refused(&[&free, "--name", name], "the crate cannot be called", "required: a letter, then letters");
    }
    refused(&[&format!("{full}/..")], "the crate cannot be called ``", "required: a letter");
    assert!(!Path::new(&free).exists());
    assert_eq!(files(place.path()), ["mine.txt"]);
    bad(
        &["new", &free, "--cutemplate", "/nowhere"],
        1,
        expect![[r#"
        error[new]: --cutemplate /nowhere is not a checkout of cutemplate
          found:    no Cargo.toml of the package `cutemplate` there, or a path that TOML cannot hold
          required: the folder of its Cargo.toml
          because:  the crate would not build
          help:     leave --cutemplate out to depend on its repository
    "#]],
    );
}

/// `cargo test --test cli -- --ignored --nocapture new::`. With `CUTEMPLATE_NEW_TARGET=folder` a second run compiles less.
#[test]
#[ignore = "compiles this crate anew: minutes"]
fn the_crate_builds_and_passes_as_it_is() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("my-kernels");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    good(&["new", text(&root), "--cutemplate", text(here)]);
    // The same versions as here.
    fs::copy(here.join("Cargo.lock"), root.join("Cargo.lock")).expect("a lock file");
    let target = std::env::var_os("CUTEMPLATE_NEW_TARGET").map_or_else(|| place.path().join("target"), PathBuf::from);
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).current_dir(&root).env("CARGO_TARGET_DIR", &target).env("CUTEMPLATE_FETCH", "1");
        assert!(command.status().expect("cargo runs").success(), "cargo {arguments:?}");
    };
    cargo(&["fmt", "--check"]);
    let start = std::time::Instant::now();
    cargo(&["test"]);
    println!("cargo test: {:.0} s", start.elapsed().as_secs_f64());
    // What was made is warned of nowhere.
    cargo(&["clippy", "--all-targets", "--", "-D", "warnings"]);
}
