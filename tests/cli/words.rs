//! Contract: one clear message for each kind of bad input, progress for a terminal, and examples of help that run.

#[cfg(unix)]
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use cutemplate::dtype::DType;
use cutemplate::launch::Gpu;
use cutemplate::verify::{Fill, Tensor, TensorLayout, npy};
use expect_test::expect;

use crate::tool::{bad, good, text, tool};

#[test]
fn bad_input_is_refused_in_words() {
    bad(
        &["check", "elementwise_ad"],
        1,
        expect![[r#"
        error: there is no kernel family `elementwise_ad`; did you mean `elementwise_add`?
    "#]],
    );
    bad(
        &["check", "elementwise_add", "--set", "dtyp=f32"],
        1,
        expect![[r#"
        error[CT001]: the recipe has no such setting
          recipe:   elementwise_add
          found:    dtyp=f32
          required: one of dtype, thr, val, vector, unroll, raster
          because:  a setting that is silently ignored would leave you with another kernel than you asked for
          help:     did you mean `dtype`?
    "#]],
    );
    bad(
        &["check", "elementwise_add", "--set", "dtype"],
        1,
        expect![[r#"
        error: --set dtype: found no `=`, required KEY=VALUE, for example --set dtype=f32
    "#]],
    );
    bad(
        &["bench", "elementwise_add", "--problem", "0x511"],
        1,
        expect![[r#"
        error: --problem 0x511: found an extent of 0, required at least 1: an empty launch takes no time
    "#]],
    );
    bad(
        &["run", "elementwise_add", "--problem=-3x5"],
        2,
        expect![[r#"
        error: invalid value '-3x5' for '--problem <MxN>': `-3`: an extent must be at least 0

        For more information, try '--help'.
    "#]],
    );
    bad(
        &["run", "elementwise_add", "--problem", "64x200", "--ld", "199", "--on", "cpu"],
        1,
        expect![[r#"
            error: leading dimension 199 is smaller than a row of A with strides (?,1) in --problem 64x200
        "#]],
    );
    bad(
        &["run", "elementwise_add", "--mode", "races", "--on", "gpu"],
        1,
        expect![[r#"
        error: --mode is for the CPU executor: leave out --on gpu
    "#]],
    );
    bad(
        &["run", "elementwise_add", "--input", "a.npy"],
        1,
        expect![[r#"
        error: found 1 --input, required 2: one for each of A, B
    "#]],
    );
}

/// One word `error`, before the code where there is one.
#[test]
fn an_error_is_called_one_once() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
    let output = command.args(["run", "elementwise_add", "--on", "cpu"]).env("CXX", "/no/such/compiler").output();
    let output = output.expect("the tool runs");
    assert_eq!(output.status.code(), Some(1));
    let help = "  help:     correct CXX, or unset it to look on the system instead\n";
    let required = "  required: one C++17 compiler, GCC or Clang: a path or a name on PATH, without options\n";
    let said = text(&output.stderr);
    let expected =
        format!("error[variable]: CXX=/no/such/compiler is not usable\n  found:    no such program\n{required}{help}");
    assert!(said.starts_with("error[variable]: ") && !said.contains("error: error"), "{said}");
    assert_eq!(said, expected);
}

#[test]
fn an_expression_that_cannot_be_read_is_told_in_words() {
    bad(
        &["layout", "(2,4"],
        1,
        expect![[r#"
            error: Parse: the text cannot be read
              text:     (2,4
              found:    the end of the text at position 4
              required: `,` or `)`
        "#]],
    );
}

/// A machine finds the code of an error in a field of its own, and the message without it.
#[test]
fn the_code_of_an_error_is_a_field() {
    let told = |arguments: &[&str]| {
        let output = tool(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        serde_json::from_str::<serde_json::Value>(text(&output.stdout).trim_end()).expect("one object")["error"].take()
    };
    let missing = told(&["inspect", "no/such.bundle", "--json"]);
    assert_eq!(missing["code"], "bundle-file", "{missing}");
    let message = missing["message"].as_str().expect("a message");
    assert!(message.starts_with("cannot read no/such.bundle\n  found:"), "{message}");
    let unread = told(&["layout", "(2,4", "--json"]);
    assert!(
        unread["code"].is_null() && unread["message"].as_str().is_some_and(|m| m.starts_with("Parse: ")),
        "{unread}"
    );
}

#[test]
fn a_picture_is_called_svg() {
    bad(
        &["layout", "(2,4):(1,2)", "--svg", "x.png"],
        2,
        expect![[r#"
            error: invalid value 'x.png' for '--svg <FILE>': a picture is SVG, and its name ends in .svg: x.svg

            For more information, try '--help'.
        "#]],
    );
    assert!(!Path::new("x.png").exists());
}

/// A terminal sees how far the verification is; what is no terminal sees the result alone.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_sees_progress() {
    let run = "run elementwise_add --set dtype=f32 --on cpu --problem 1023x511";
    good(&run.split(' ').collect::<Vec<_>>());
    let piped = tool(&run.split(' ').collect::<Vec<_>>());
    assert!(!text(&piped.stderr).contains("verifies"), "{}", text(&piped.stderr));
    let command = format!("{} {run}", env!("CARGO_BIN_EXE_cutemplate"));
    // util-linux's script gives a command a terminal.
    let mut script = Command::new("script");
    let output =
        script.args(["-qefc", &command, "/dev/null"]).env("TERM", "xterm").output().expect("util-linux's script");
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("verifies 522753 elements"), "{said}");
}

/// Runs the examples in the help of these commands, those aside that need a GPU where there is one; how many.
#[cfg(unix)]
fn examples(commands: &[&str], folder: &Path, path: &OsStr, has_gpu: bool) -> usize {
    let mut ran = 0;
    for command in commands {
        let help = good(&[*command, "--help"].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>());
        for example in help.lines().filter_map(|line| line.strip_prefix("  cutemplate ")) {
            let needs_gpu = ["bench", "tune"].contains(command);
            if needs_gpu && has_gpu {
                continue;
            }
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("cutemplate {example}")]).current_dir(folder).env("PATH", path);
            if *command == "cache" {
                shell.env("CUTEMPLATE_CACHE_DIR", folder.join("cache"));
            }
            let output = shell.output().expect("the shell runs");
            let said = text(&output.stdout) + &text(&output.stderr);
            if needs_gpu {
                assert!(
                    said.contains(" needs a GPU; no GPU: ") && output.status.code() == Some(1),
                    "{example}: {said}"
                );
            } else {
                assert!(output.status.success(), "{example}: {said}");
            }
            ran += 1;
        }
    }
    ran
}

/// Every example of every `--help` runs as it stands, and ends well; those that need a GPU say so where there is none.
#[cfg(unix)]
#[test]
fn the_examples_of_help_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).expect("made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cutemplate"), bin.join("cutemplate")).expect("linked");
    for (name, seed) in [("a.npy", 1), ("b.npy", 2)] {
        let mut matrix = Tensor::new(DType::F32, TensorLayout::contiguous(31, 45)).expect("small");
        matrix.fill(Fill::Normal, seed);
        npy::write(&folder.path().join(name), &matrix).expect("written");
    }
    std::fs::write(folder.path().join("requests.jsonl"), "{\"expr\": \"coalesce((2,4):(1,2))\"}\n").expect("written");
    std::fs::write(folder.path().join("kernels.txt"), "vector_add elementwise_add dtype=f32; unroll=4\n")
        .expect("written");
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n  .reg .b64 %rd<2>;\n  \
               ld.param.u64 %rd1, [p];\n  st.global.f32 [%rd1], 0f3f800000;\n  ret;\n}\n";
    std::fs::write(folder.path().join("kernel.ptx"), ptx).expect("written");
    let launch =
        r#"{"ptx": "kernel.ptx", "entry": "k", "grid": [1], "block": [1], "args": [{"npy": "a.npy", "out": "y.npy"}]}"#;
    std::fs::write(folder.path().join("launch.json"), launch).expect("written");
    let path = std::env::join_paths(
        [bin.clone()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let path = path.expect("a PATH");
    let has_gpu = Gpu::find().is_ok();
    let others = [
        "",
        "demo",
        "list",
        "check",
        "emit",
        "bench",
        "tune",
        "bundle",
        "inspect",
        "layout",
        "cache",
        "ptx",
        "explain",
        "completions",
        "doctor",
    ];
    // Those of `run` wait for nvcc.
    let (of_run, of_others) = std::thread::scope(|scope| {
        let of_run = scope.spawn(|| examples(&["run"], folder.path(), &path, has_gpu));
        let of_others = examples(&others, folder.path(), &path, has_gpu);
        (of_run.join(), of_others)
    });
    let ran = of_run.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) + of_others;
    assert!(ran >= 15 || has_gpu, "{ran} examples");
}
