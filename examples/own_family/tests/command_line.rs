//! Contract: a program of three lines has the whole command line for a family of its own.
#![cfg(feature = "cli")]

use std::path::Path;
use std::process::Command;

/// Output and exit code.
fn gated(arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gated"));
    // Hides a GPU that is there.
    let output = command.args(arguments).env("CUDA_VISIBLE_DEVICES", "-1").output().expect("the tool runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The kernel that the build script compiled.
const KERNEL: [&str; 5] = ["gated", "--set", "dtype=bf16", "--name", "gated"];

fn of_kernel<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command], &KERNEL[..], more].concat()
}

#[test]
fn the_family_is_listed_beside_the_others() {
    let (all, _, code) = gated(&["list"]);
    assert_eq!(code, Some(0));
    assert!(all.contains("\ngated\n  silu(gate) * up") && all.contains("elementwise_add\n"), "{all}");
    let (one, _, _) = gated(&["list", "gated"]);
    assert!(one.contains("rows [8]\n    rows of a CTA, each of a warp, 1 to 32"), "{one}");
    let (_, said, code) = gated(&["check", "gatd"]);
    assert_eq!((said.as_str(), code), ("error: there is no kernel family `gatd`; did you mean `gated`?\n", Some(1)));
}

#[test]
fn a_recipe_is_checked_or_refused() {
    let (plan, _, code) = gated(&of_kernel("check", &[]));
    assert_eq!(code, Some(0));
    let copy = "LoadGate: load of Gate; TiledCopy of UniversalCopy<uint64_t>, thr (8,32):(32,1), val (1,4):(0,1)";
    assert!(plan.starts_with("gated for sm_80, sm_90a\n") && plan.contains(copy), "{plan}");
    let (_, said, code) = gated(&["check", "gated", "--set", "dtype=f32"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("found:    dtype=f32") && said.contains("required: f16 or bf16"), "{said}");
    let (text, _, code) = gated(&of_kernel("emit", &[]));
    assert_eq!(code, Some(0));
    assert!(text.contains("// ---- gated.cuh\n"), "{text}");
}

#[test]
fn a_run_is_verified_on_the_executor() {
    let (said, error, code) = gated(&of_kernel("run", &["--problem", "9x384", "--on", "cpu", "--mode", "races"]));
    assert_eq!(code, Some(0), "{error}");
    for output in ["all 3456 elements of Q of", "all 27 elements of S of"] {
        assert!(said.contains(output), "{said}");
    }
}

#[test]
fn a_bench_has_a_row_of_the_family_s_own() {
    let (row, said, code) = gated(&["bench", "gated"]);
    // 16384 x 4096: two factors of 2 bytes, an e4m3, an f32 for 128 columns; 8 operations an element.
    let numbers =
        "gated_f16 16384x4096: 337.641 MB read and written, 0.537 GFLOP; baseline: a device copy of as many bytes\n";
    assert_eq!((row.as_str(), code), (numbers, Some(1)));
    assert!(said.starts_with("error: a bench needs a GPU"), "{said}");
    let (_, said, _) = gated(&["tune", "gated", "--problem", "64x64x64"]);
    assert!(said.contains("`gated` has no candidates to tune; those that have are sgemm, gemm"), "{said}");
}

#[test]
fn files_of_recipes_name_the_family() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (recipes, bundle) = (folder.join("gated.txt"), folder.join("gated.bundle"));
    std::fs::write(&recipes, "gated gated dtype=bf16\n").expect("a temporary file");
    let [recipes, bundle] = [&recipes, &bundle].map(|path| path.to_str().expect("a path of Unicode"));
    let more = [bundle, "--recipes", recipes, "--arch", "sm_80", "--arch", "sm_90a"];
    let (said, error, code) = gated(&[&["bundle"], &more[..]].concat());
    assert_eq!(code, Some(0), "{error}");
    assert!(said.contains("1 kernel"), "{said}");
    let (said, error, code) = gated(&[&["bundle"], &more[..], &["--check"]].concat());
    assert_eq!(code, Some(0), "{error}");
    assert!(said.ends_with("is of these recipes\n"), "{said}");
    let (said, error, _) = gated(&["inspect", bundle, "--on", "9.0"]);
    assert!(said.contains("Gated { dtype: bf16, rows: 8 }"), "{said}{error}");
}
