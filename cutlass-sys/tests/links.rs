//! Contract: a crate that depends on this one sees `DEP_CUTLASS_*` for what is found, and builds where nothing is.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = r#"
[package]
name = "dependent"
edition = "2024"
links = "dependent"

[dependencies]
cutlass-sys = { path = "CRATE" }

[workspace]
"#;

const BUILD: &str = r#"
fn main() {
    let seen = |name: &str| std::env::var(format!("DEP_CUTLASS_{name}")).unwrap_or("nothing".into());
    let names = ["INCLUDE", "VERSION", "CUDA_INCLUDE", "CUDA_VERSION", "NVCC", "NVCC_VERSION"];
    let text: String = names.iter().map(|name| format!("{name}={}\n", seen(name))).collect();
    std::fs::write("seen", text).unwrap();
}
"#;

/// Checks a crate that depends on this one, with `CUTLASS_PATH` set, and returns what its build script saw and what
/// cargo said.
fn check(crate_dir: &Path, cutlass_path: &Path) -> (String, String) {
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline"])
        .current_dir(crate_dir)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("links"))
        .env("CUTLASS_PATH", cutlass_path)
        .env("CUTEMPLATE_CACHE_DIR", crate_dir.join("cache"))
        // A build script must not fetch even where its caller may.
        .env("CUTEMPLATE_FETCH", "1")
        .env_remove("NVCC")
        .env_remove("CUDA_HOME")
        .env_remove("CUDA_PATH")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(!crate_dir.join("cache").exists(), "nothing was fetched");
    (fs::read_to_string(crate_dir.join("seen")).unwrap(), text)
}

#[test]
fn dependents_see_what_is_found_and_build_where_nothing_is() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(dir.join("src")).unwrap();
    fs::write(dir.join("src/lib.rs"), "").unwrap();
    fs::write(dir.join("build.rs"), BUILD).unwrap();
    fs::write(dir.join("Cargo.toml"), MANIFEST.replace("CRATE", here.to_str().unwrap())).unwrap();
    fs::copy(here.join("../Cargo.lock"), dir.join("Cargo.lock")).unwrap();

    let include = dir.join("cutlass/include");
    for file in ["cutlass/version.h", "cute/tensor.hpp"] {
        fs::create_dir_all(include.join(file).parent().unwrap()).unwrap();
        fs::write(include.join(file), "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 5\n").unwrap();
    }
    let (seen, _) = check(dir, &dir.join("cutlass"));
    assert!(seen.starts_with(&format!("INCLUDE={}\nVERSION=4.5.0\n", include.display())), "{seen}");

    let (seen, said) = check(dir, Path::new("/nowhere"));
    assert!(seen.starts_with("INCLUDE=nothing\nVERSION=nothing\n"), "{seen}");
    assert!(said.contains("CUTLASS_PATH=/nowhere is not usable: nothing there"), "{said}");
}
