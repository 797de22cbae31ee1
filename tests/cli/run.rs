//! Contract: `run` exits with 0 only where every element is right and every file is whole.

use std::path::Path;
use std::process::Command;

use cutemplate::dtype::DType;
use cutemplate::verify::{Fill, Tensor, TensorLayout, npy};
use expect_test::{Expect, expect};

use crate::tool::{bad, good, objects, text, tool};

#[test]
fn a_kernel_of_tensor_cores_runs_as_ptx() {
    let said = good(&["run", "gemm", "--problem", "65x130x72", "--mode", "races", "--on", "cpu"]);
    assert!(said.contains("right: all 8450 elements of gemm_f16") && said.contains("the PTX executor"), "{said}");
    // Both texts are emitted.
    let emitted = good(&["emit", "gemm"]);
    assert!(emitted.contains("---- gemm_f16_sm80.cuh") && emitted.contains("---- gemm_f16_sm90a.cuh"));
}

#[test]
fn run_verifies_on_the_executor() {
    for (settings, mode) in [("dtype=f16", "plain"), ("dtype=bf16", "bounds"), ("dtype=f16", "races")] {
        let arguments = ["run", "elementwise_add", "--set", settings, "--problem", "67x130", "--ld", "144"];
        let rows =
            objects(&[&arguments[..], &["--on", "cpu", "--mode", mode, "--fill", "specials", "--json"]].concat());
        let last = rows.last().expect("a verdict");
        assert_eq!(last["right"], true, "{last}");
        assert_eq!(last["verdict"]["elements"], 67 * 130);
        assert_eq!(last["device"], format!("the PTX executor, mode {mode}"));
    }
}

/// By lines of PTX and of the text: each element is loaded twice and stored once, 16 bytes at a time.
#[test]
fn run_counts_what_a_kernel_does() {
    let rows = objects(&["run", "elementwise_add", "--problem", "64x512", "--profile", "--json"]);
    let own = |row: &&serde_json::Value| row["profile"]["source"].as_str().is_some_and(|s| s.contains(".cuh:"));
    assert!(rows.iter().any(|row| own(&row)), "lines of the kernel's own text: {rows:?}");
    let sectors = |opcode: &str| -> u64 {
        let at =
            |row: &&serde_json::Value| row["profile"]["at"]["opcode"].as_str().is_some_and(|o| o.starts_with(opcode));
        rows.iter().filter(at).map(|row| row["profile"]["counts"]["sectors"].as_u64().expect("a number")).sum()
    };
    assert_eq!(sectors("ld.global"), 2 * 64 * 512 * 2 / 32);
    assert!(sectors("st.global") >= 64 * 512 * 2 / 32);
}

/// The text of the newest architecture, and that of the one which is asked for.
#[test]
fn run_takes_the_text_of_an_architecture() {
    for (arch, opcode) in [(&[][..], "wgmma.mma_async"), (&["--arch", "sm_80"], "mma.sync")] {
        let rows =
            objects(&[&["run", "gemm", "--on", "cpu", "--problem", "64x64x64", "--profile", "--json"], arch].concat());
        let multiplies = |word: &str| {
            rows.iter().any(|row| row["profile"]["at"]["opcode"].as_str().is_some_and(|o| o.starts_with(word)))
        };
        assert!(multiplies(opcode), "{opcode}");
        assert_ne!(multiplies("mma.sync"), multiplies("wgmma"), "{arch:?}");
    }
}

#[test]
fn run_draws_the_stages_of_a_pipeline() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stages.svg");
    let file = path.to_str().expect("UTF-8");
    let run = ["run", "gemm", "--on", "cpu", "--problem", "64x64x512"];
    let said = good(&[&run[..], &["--profile", "--stages", file]].concat());
    assert!(said.contains(&format!("wrote {file}")), "{said}");
    let svg = std::fs::read_to_string(&path).expect("a picture");
    // Producers that run ahead fill all of their stages at once: four in each block of a cluster of two.
    assert!(
        svg.contains("stages being filled, at most 8") && svg.contains("wgmma products of a warp, at most"),
        "{svg}"
    );
    let none = tool(&["run", "sgemm", "--on", "cpu", "--problem", "8x8x8", "--profile", "--stages", file]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("fills no stages by bulk copies"), "{}", text(&none.stderr));
}

/// Where nvcc is missing, the tool says what to do.
#[cfg(unix)]
#[test]
fn without_nvcc_a_run_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
    command.env("CUTEMPLATE_CACHE_DIR", folder.path()).env("CUTEMPLATE_FETCH", "0");
    let output = command.args(["run", "elementwise_add", "--on", "cpu", "--problem", "3x5"]).output().expect("it runs");
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    if said.contains("the PTX executor") {
        eprintln!("nvcc comes from elsewhere: not run");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{said}{told}");
    expect![[r#"
        error[fetch-not-allowed]: CUTLASS and nvcc not found, and fetching is not allowed
          found:    CUTLASS_PATH is not set, and no include/cute/tensor.hpp is in the usual places
                    NVCC, CUDA_HOME and CUDA_PATH are not set, and no new enough nvcc is on PATH or in the usual places; nothing is cached, and CUTEMPLATE_FETCH is not 1
          required: CUTLASS 4.2.0 or newer
                    nvcc of CUDA 12.0.0 or newer
          help:     set CUTLASS_PATH to a checkout; install the CUDA toolkit, or set CUDA_HOME to its root; or set CUTEMPLATE_FETCH=1 to download the pinned, verified wheels once
    "#]].assert_eq(&told);
}

/// What is missing and what is wrong are told together.
#[cfg(unix)]
#[test]
fn a_wrong_cuda_home_is_told_beside_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
    command.env("CUTEMPLATE_CACHE_DIR", folder.path()).env("CUTEMPLATE_FETCH", "0");
    command.env("CUDA_HOME", "/nowhere/cuda").env("CUTLASS_PATH", "/nowhere/cutlass");
    let output = command.args(["run", "elementwise_add", "--on", "cpu", "--problem", "3x5"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        error[variable]: CUTLASS_PATH=/nowhere/cutlass is not usable
          found:    nothing there
          required: a CUTLASS checkout, with include/cutlass/version.h and include/cute/tensor.hpp
          help:     correct CUTLASS_PATH, or unset it to look on the system instead
        error[variable]: CUDA_HOME=/nowhere/cuda is not usable
          found:    nothing there
          required: a CUDA toolkit's root, with cuda_runtime_api.h, crt and cuda/std in include
          help:     correct CUDA_HOME, or unset it to look on the system instead
    "#]]
    .assert_eq(&text(&output.stderr));
}

/// C, then a product of it, which a second run reads as A: shapes come from the files.
#[test]
fn run_verifies_products() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let run = ["run", "sgemm", "--set", "variant=naive", "--on", "cpu", "--json"];
    let scalars = ["--scalar", "alpha=0.5", "--scalar", "beta=2"];
    let (first, second) = (file("first.npy"), file("second.npy"));
    let verdict = |rows: Vec<serde_json::Value>| rows.last().expect("a verdict").clone();
    let last = verdict(objects(&[&run[..], &scalars, &["--problem", "7x5x9", "--output", &first]].concat()));
    assert_eq!((&last["right"], &last["verdict"]["elements"]), (&true.into(), &35.into()), "{last}");
    // A kernel that `arrays` runs too.
    let epilogue = ["--set", "a=col", "--set", "b=col", "--set", "epilogue=relu(a)"];
    objects(&[&run[..], &epilogue, &["--problem", "5x7x9", "--output", &second]].concat());
    let last = verdict(objects(&[&run[..], &epilogue, &["--input", &first, "--input", &second]].concat()));
    assert_eq!((&last["right"], &last["verdict"]["elements"]), (&true.into(), &49.into()), "{last}");
    let swapped = tool(&[&run[..], &epilogue, &["--input", &first, "--input", &first]].concat());
    let said = text(&swapped.stdout) + &text(&swapped.stderr);
    assert!(!swapped.status.success() && said.contains("is 7x5, and a problem of 7x5x5 needs 5x5"), "{said}");
    let extents = tool(&[&run[..], &epilogue, &["--problem", "7x5"]].concat());
    let said = text(&extents.stdout) + &text(&extents.stderr);
    assert!(!extents.status.success() && said.contains("--problem 7x5 has 2 extents, required 3: MxNxK"), "{said}");
}

/// `alpha` is 1 and `beta` 0 where nothing is said of them; a scalar that is neither has to be given.
#[test]
fn scalars_have_usual_values_or_are_asked_for() {
    let run = ["run", "sgemm", "--set", "variant=naive", "--on", "cpu", "--problem", "7x5x9", "--fill", "integers"];
    assert!(good(&run).contains("right: all 35 elements of sgemm"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let bytes = |scalars: &[&str], name: &str| {
        good(&[&run[..], scalars, &["--output", &file(name)]].concat());
        std::fs::read(file(name)).expect("written")
    };
    let usual = bytes(&[], "usual.npy");
    assert_eq!(usual, bytes(&["--scalar", "alpha=1", "--scalar", "beta=0"], "given.npy"));
    assert_ne!(usual, bytes(&["--scalar", "beta=1"], "other.npy"));
    bad(
        &["run", "elementwise_apply", "--set", "expr=|a; gamma| gamma * a", "--set", "in=f32:1", "--on", "cpu"],
        1,
        expect![[r#"
            error: `gamma` has no value: --scalar gamma=0.5 gives it one
        "#]],
    );
}

/// What is refused before anything is computed.
#[test]
fn places_of_outputs_are_looked_at_first() {
    let run = ["run", "elementwise_add", "--on", "cpu", "--problem", "3x5"];
    let output = |files: &[&str], message: Expect| {
        let files = files.iter().flat_map(|file| ["--output", file]);
        bad(&run.into_iter().chain(files).collect::<Vec<_>>(), 1, message);
    };
    output(
        &["a.npy", "b.npy"],
        expect![[r#"
            error: found 2 --output, required at most 1: one for each of C
        "#]],
    );
    output(
        &["no/such/folder/c.npy"],
        expect![[r#"
            error: --output no/such/folder/c.npy: found no folder no/such/folder, required the name of a file in a folder that exists
        "#]],
    );
    output(
        &["src"],
        expect![[r#"
            error: --output src: found a folder, required the name of a file in a folder that exists
        "#]],
    );
}

/// Where the system lets no file grow to its size, there is an error, and no file.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_whole_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.npy");
    let run = ["run", "elementwise_add", "--set", "dtype=f32", "--on", "cpu", "--problem", "67x130"];
    // The kernel's program is in the cache then, and the limit is met by the file alone.
    good(&run);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_cutemplate")]).args(run);
    let output = shell.arg("--output").arg(&path).output().expect("the shell runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}{said}", text(&output.stdout));
    assert!(said.contains(&format!("error: {}: File too large", path.display())), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("exists").count(), 0, "nothing is left");
}

#[test]
fn a_malformed_npy_file_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let mut matrix = Tensor::new(DType::F16, TensorLayout::contiguous(3, 4)).expect("small");
    matrix.fill(Fill::Normal, 1);
    npy::write(Path::new(&path("good.npy")), &matrix).expect("written");
    let bytes = std::fs::read(path("good.npy")).expect("read");
    std::fs::write(path("short.npy"), &bytes[..bytes.len() - 1]).expect("written");
    for (file, says) in [("short.npy", "short.npy"), ("absent.npy", "absent.npy")] {
        let out = path("c.npy");
        let output =
            tool(&["run", "elementwise_add", "--input", &path("good.npy"), "--input", &path(file), "--output", &out]);
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(message.starts_with("error: ") && message.contains(says), "{message}");
        assert!(!Path::new(&out).exists(), "a failed run leaves no output");
    }
    let output = tool(&[
        "run",
        "elementwise_add",
        "--set",
        "dtype=f32",
        "--input",
        &path("good.npy"),
        "--input",
        &path("good.npy"),
    ]);
    assert!(text(&output.stderr).contains("f32"), "{}", text(&output.stderr));
}
