//! Contract: what the tool prints and returns: text for a person, one JSON object a line for machines, exit 0 only where
//! everything is right, and one clear message for each kind of bad input.
#![cfg(feature = "cli")]

use std::path::Path;
use std::process::{Command, Output};

use cutemplate::dtype::DType;
use cutemplate::launch::Gpu;
use cutemplate::verify::{Fill, Tensor, TensorLayout, npy};
use expect_test::{Expect, expect};

fn tool(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutemplate")).args(arguments).output().expect("the tool runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The tool succeeds and says nothing on standard error but progress.
fn good(arguments: &[&str]) -> String {
    let output = tool(arguments);
    assert!(output.status.success(), "{arguments:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn objects(arguments: &[&str]) -> Vec<serde_json::Value> {
    let lines = good(arguments);
    lines.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// The tool fails with exactly this on standard error.
fn bad(arguments: &[&str], code: i32, message: Expect) {
    let output = tool(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    message.assert_eq(&text(&output.stderr));
}

#[test]
fn list_names_every_family_and_setting() {
    let listed = good(&["list"]);
    let rows = objects(&["list", "--json"]);
    assert_eq!(rows.len(), cutemplate::recipe::FAMILIES.len());
    for row in rows {
        assert!(listed.contains(row["family"].as_str().expect("a name")));
        for setting in row["settings"].as_array().expect("settings") {
            assert!(listed.contains(setting["doc"].as_str().expect("a doc")), "{setting}");
        }
    }
}

/// Tensor cores are run by the PTX executor, and not by that of C++.
#[test]
fn a_kernel_of_tensor_cores_runs_as_ptx() {
    let run = ["run", "gemm", "--problem", "65x130x72", "--mode", "races"];
    let said = good(&[&run[..], &["--on", "cpu"]].concat());
    assert!(said.contains("right: all 8450 elements of gemm_f16") && said.contains("the PTX executor"), "{said}");
    let output = tool(&[&run[..], &["--on", "cxx"]].concat());
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("gemm_f16 cannot run on the C++ executor") && told.contains("run it on a GPU"), "{told}");
    // Both texts are emitted.
    let emitted = good(&["emit", "gemm"]);
    assert!(emitted.contains("---- gemm_f16_sm80.cuh") && emitted.contains("---- gemm_f16_sm90a.cuh"));
}

#[test]
fn check_prints_the_plan_or_every_diagnostic() {
    let plan = good(&["check", "elementwise_add", "--arch", "sm_90a"]);
    assert!(plan.contains("((64,4),(8,16)):((512,16),(64,1))") && plan.contains("(64,512)"), "{plan}");
    let json = objects(&["check", "elementwise_add", "--json"]);
    assert_eq!(json[0]["plan"]["entries"][0]["threads"], 256);

    let output = tool(&["check", "elementwise_add", "--json", "--set", "vector=5", "--set", "thr=(4,64):(0,1)"]);
    assert_eq!(output.status.code(), Some(1));
    let codes: Vec<String> = text(&output.stdout)
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).expect("an object")["error"]["code"].to_string())
        .collect();
    assert_eq!(codes, ["\"CT005\"", "\"CT003\""]);
}

/// Four parts of K: the products, then the kernel that adds them up.
#[test]
fn check_shows_every_entry_of_a_plan_and_of_a_launch() {
    let split = ["check", "sgemm", "--set", "split_k=4", "--set", "tile=64x128x16", "--set", "stages=3"];
    let rows = objects(&[&split[..], &["--problem", "256x256x4096", "--json"]].concat());
    let (plan, launch) = (&rows[0]["plan"]["entries"], &rows[1]["launch"]);
    let names = |entries: &serde_json::Value| -> Vec<String> {
        entries.as_array().expect("entries").iter().map(|e| e["name"].as_str().expect("a name").to_owned()).collect()
    };
    let expected = ["sgemm_pipelined_tt_64x128x16_split4", "sgemm_pipelined_tt_64x128x16_split4_reduce"];
    assert_eq!(
        (names(plan), names(&launch["entries"])),
        (expected.map(Into::into).into(), expected.map(Into::into).into())
    );
    // A tile of A and one of B for each stage, in f32, and nothing for the sums.
    assert!(plan[0]["smem_bytes"].as_u64() >= Some(3 * 4 * (64 + 128) * 16), "{plan}");
    assert_eq!((&plan[0]["dynamic_smem_bytes"], &plan[1]["smem_bytes"]), (&plan[0]["smem_bytes"], &0.into()));
    assert_eq!(launch["entries"][0]["grid"], serde_json::json!([2, 4, 4]));
    assert_eq!(launch["entries"][0]["block"], serde_json::json!([128, 1, 1]));
    assert_eq!(launch["entries"][0]["dynamic_smem_bytes"], plan[0]["dynamic_smem_bytes"]);
    assert_eq!(launch["entries"][1]["grid"], serde_json::json!([256, 1, 1]));
    assert_eq!(launch["workspace_bytes"], 4 * 4 * 256 * 256);
    let said = good(&[&split[..], &["--problem", "256x256x4096"]].concat());
    assert!(said.contains("_reduce: 256 x 1 x 1 blocks of 256 x 1 x 1 threads"), "{said}");
    assert!(said.contains("workspace: 1048576 B"), "{said}");
}

/// A rung whose threads meet in the banks, with a level.
fn conflicts(command: &'static str, level: &'static str, more: &[&'static str]) -> Output {
    tool(&[&[command, "sgemm", "--set", "variant=block_2d", "--set", level], more].concat())
}

#[test]
fn conflicts_are_denied_warned_of_or_allowed() {
    for command in ["check", "emit"] {
        let warned = conflicts(command, "conflicts=warn", &[]);
        let said = text(&warned.stderr);
        assert!(warned.status.success() && said.starts_with("warning[CT023]: threads of a warp meet"), "{said}");
        assert!(said.contains("  help:     smem_b=Sw<") && said.contains("lanes 8-15"), "{said}");
        let allowed = conflicts(command, "conflicts=allow", &[]);
        assert!(allowed.status.success() && allowed.stderr.is_empty(), "{}", text(&allowed.stderr));
        assert_eq!(text(&allowed.stdout).is_empty(), text(&warned.stdout).is_empty());
        let denied = conflicts(command, "conflicts=deny", &[]);
        assert_eq!((denied.status.code(), denied.stdout.is_empty()), (Some(1), true));
        assert!(text(&denied.stderr).starts_with("error[CT023]: "), "{}", text(&denied.stderr));
    }
    let lines = text(&conflicts("check", "conflicts=warn", &["--json"]).stdout);
    let objects: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).expect("an object")).collect();
    assert_eq!(
        (&objects[0]["warning"]["code"], &objects[0]["warning"]["severity"]),
        (&"CT023".into(), &"warning".into())
    );
    let plan = &objects.last().expect("a plan")["plan"];
    let load = &plan["shared"][0]["accesses"][1];
    assert!(load["wavefronts"].as_u64() > load["least"].as_u64() && load["conflict"].is_string(), "{load}");
}

#[test]
fn emit_writes_the_same_files_that_it_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("kernels");
    let printed = good(&["emit", "elementwise_add", "--set", "dtype=f32"]);
    let paths = good(&["emit", "elementwise_add", "--set", "dtype=f32", "--out", out.to_str().expect("UTF-8")]);
    assert_eq!(paths.lines().count(), 3);
    for path in paths.lines() {
        let file = std::fs::read_to_string(path).expect("written");
        assert!(printed.contains(&file), "{path}");
    }
}

#[test]
fn run_verifies_on_the_executor() {
    for (settings, mode, on, executor) in [
        ("dtype=f16", "plain", "cpu", "PTX"),
        ("dtype=bf16", "bounds", "cxx", "C++"),
        ("dtype=f16", "races", "cpu", "PTX"),
    ] {
        let arguments = ["run", "elementwise_add", "--set", settings, "--problem", "67x130", "--ld", "144"];
        let rows = objects(&[&arguments[..], &["--on", on, "--mode", mode, "--fill", "specials", "--json"]].concat());
        let last = rows.last().expect("a verdict");
        assert_eq!(last["right"], true, "{last}");
        assert_eq!(last["verdict"]["elements"], 67 * 130);
        assert_eq!(last["device"], format!("the {executor} executor, mode {mode}"));
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

/// Where nvcc is missing the C++ executor runs the text, and says so.
#[cfg(unix)]
#[test]
fn without_nvcc_the_text_runs() {
    let env = cutlass_sys::Env::current();
    let tools = env.cache_dir().expect("a cache").join("toolchain");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("toolchain")).expect("made");
    let fetched = std::fs::read_dir(&tools).into_iter().flatten().flatten();
    let mut kept = 0;
    for entry in
        fetched.filter(|e| ["cutlass-", "cuda-headers-"].iter().any(|n| e.file_name().to_string_lossy().starts_with(n)))
    {
        kept += 1;
        std::os::unix::fs::symlink(entry.path(), folder.path().join("toolchain").join(entry.file_name()))
            .expect("made");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
    command.env("CUTEMPLATE_CACHE_DIR", folder.path()).env("CUTEMPLATE_FETCH", "0");
    let output = command.args(["run", "elementwise_add", "--on", "cpu", "--problem", "3x5"]).output().expect("it runs");
    let said = text(&output.stdout);
    if kept < 2 || said.contains("the PTX executor") {
        eprintln!("nvcc or the headers come from elsewhere: not run");
        return;
    }
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    let why = "the C++ executor runs the text, since there is no PTX of it: ";
    assert!(said.starts_with(why) && said.contains("on the C++ executor, mode plain"), "{said}");
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
    let epilogue = ["--set", "epilogue=relu(a)"];
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
        &["run", "elementwise_add", "--problem", "0x511"],
        2,
        expect![[r#"
        error: invalid value '0x511' for '--problem <MxN>': `0`: an extent must be at least 1; there is nothing to compute otherwise

        For more information, try '--help'.
    "#]],
    );
    bad(
        &["run", "elementwise_add", "--problem=-3x5"],
        2,
        expect![[r#"
        error: invalid value '-3x5' for '--problem <MxN>': `-3`: an extent must be at least 1; there is nothing to compute otherwise

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
        error: --mode is for the CPU executors: leave out --on gpu
    "#]],
    );
    bad(
        &["run", "elementwise_add", "--profile", "--on", "cxx"],
        1,
        expect![[r#"
        error: --profile counts instructions of PTX: leave out --on cxx
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

/// A request a warp for its whole vectors; the warp whose last vector ends past the row makes one more for each of the 7 elements.
#[test]
fn check_predicts_every_family() {
    for family in cutemplate::recipe::FAMILIES {
        let problem = family.problem.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        let rows = objects(&["check", family.name, "--problem", &problem, "--json"]);
        let prediction = rows.last().expect("a prediction");
        assert!(prediction["seconds"].as_f64().is_some_and(|s| s > 0.0), "{}: {prediction}", family.name);
    }
    for (ld, problem, requests, sectors) in
        [("512", "1024x512", 1024 * 512 / 8 / 32, 1024 * 512 / 16), ("512", "1024x511", 1024 * (1 + 1 + 7), 0)]
    {
        let rows = objects(&["check", "elementwise_add", "--problem", problem, "--ld", ld, "--json"]);
        let traffic = rows.last().expect("a prediction")["prediction"]["traffic"].as_array().expect("operands").clone();
        let names: Vec<_> = traffic.iter().map(|t| t["operand"].as_str().expect("a name")).collect();
        assert_eq!(names, ["A", "B", "C"]);
        for t in &traffic {
            assert_eq!(t["requests"], requests, "{problem}: {t}");
            assert!(sectors == 0 || t["sectors"] == sectors, "{problem}: {t}");
        }
    }
    let said = good(&["check", "elementwise_add", "--problem", "16384x8192"]);
    assert!(
        said.contains("predicted for 16384x8192\n") && said.contains("limit: bandwidth of device memory"),
        "{said}"
    );
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
    let gpu_alone = told(&["run", "gemm", "--on", "cxx", "--json"]);
    assert_eq!(gpu_alone["code"], "host-instructions", "{gpu_alone}");
    let message = gpu_alone["message"].as_str().expect("a message");
    assert!(message.starts_with("gemm_f16 cannot run on the C++ executor\n  found:"), "{message}");
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
            error: invalid value 'x.png' for '--svg <FILE>': a picture is SVG, and its name ends in .svg: --svg x.svg

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
    let Ok(output) = Command::new("script").args(["-qefc", &command, "/dev/null"]).env("TERM", "xterm").output() else {
        eprintln!("there is no `script`: not run");
        return;
    };
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("verifies 522753 elements"), "{said}");
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
    let mut ran = 0;
    for command in ["", "demo", "list", "check", "emit", "run", "bench", "tune", "layout", "cache", "ptx", "doctor"] {
        let help = good(&[command, "--help"].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>());
        for example in help.lines().filter_map(|line| line.strip_prefix("  cutemplate ")) {
            let needs_gpu = ["bench", "tune"].contains(&command);
            if needs_gpu && has_gpu {
                continue;
            }
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("cutemplate {example}")]).current_dir(folder.path()).env("PATH", &path);
            if command == "cache" {
                shell.env("CUTEMPLATE_CACHE_DIR", folder.path().join("cache"));
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
    assert!(ran >= 15 || has_gpu, "{ran} examples");
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

#[test]
fn a_bench_without_a_gpu_says_so() {
    if Gpu::find().is_ok() {
        eprintln!("there is a GPU: not run");
        return;
    }
    let rungs = ["bench", "sgemm", "--variant", "naive", "--variant", "pipelined", "--problem", "64x64x64"];
    for (arguments, what) in [
        (&["bench", "elementwise_add", "--problem", "64x64"][..], "a bench needs a GPU"),
        (&["bench", "sgemm"], "a bench needs a GPU"),
        (&["bench", "sgemm", "--set", "conflicts=allow", "--ladder", "--problem", "64x64x64"], "a bench needs a GPU"),
        (&rungs, "a bench needs a GPU"),
        (&["bench", "elementwise_apply", "--ladder"], "a bench needs a GPU"),
        (&["bench", "gemm"], "a bench needs a GPU"),
        (&["tune", "sgemm", "--problem", "64x64x64"], "tuning needs a GPU"),
    ] {
        let output = tool(arguments);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{said}");
        assert!(said.contains(&format!("error: {what}; no GPU: ")), "{said}");
    }
}

/// Before a GPU is looked for.
#[test]
fn a_bench_of_nothing_that_is_a_product_is_refused_in_words() {
    bad(
        &["bench", "sgemm", "--problem", "64x64"],
        1,
        expect![[r#"
        error: --problem 64x64 has 2 extents, required 3: MxNxK
    "#]],
    );
    bad(
        &["bench", "sgemm", "--fill", "specials"],
        1,
        expect![[r#"
        error: --fill specials: cuBLAS's product must be finite to check by; `cutemplate run` takes any
    "#]],
    );
    bad(
        &["bench", "sgemm", "--variant", "naive", "--variant", "coalesced", "--name", "k"],
        1,
        expect![[r#"
        error: --name k: found several kernels, required one
    "#]],
    );
    bad(
        &["tune", "elementwise_add", "--problem", "64x64x64"],
        1,
        expect![[r#"
        error: `elementwise_add` has no candidates to tune; those that have are sgemm
    "#]],
    );
    bad(
        &["bench", "elementwise_add", "--ladder"],
        1,
        expect![[r#"
        error: --ladder: `elementwise_add` has no rungs; those that have are elementwise_apply, sgemm
    "#]],
    );
    bad(
        &["bench", "sgemm", "--variant", "fastest"],
        1,
        expect![[r#"
        error: --variant fastest: `sgemm` has the rungs naive, coalesced, smem_tiled, block_1d, block_2d, vectorized, warp_tiled, pipelined
    "#]],
    );
    bad(
        &["bench", "sgemm", "--set", "tile=0x64x8", "--variant", "naive"],
        1,
        expect![[r#"
        error[CT015]: the tile is empty or too large
          recipe:   Sgemm { epilogue: |a, b; alpha, beta| alpha * a + beta * b, a: row, b: row, batched: false, variant: naive, tile: 0x64x8, thread_tile: 1x1, smem_a: pad0, smem_b: pad0, conflicts: warn, min_blocks: 0 } for sm_80, sm_90a
          found:    BM = 0
          required: 1 to 1024 elements
          because:  a tile is what one block computes; larger ones fit in no shared memory
          help:     tile=128x128x16 thread=8x8
    "#]],
    );
    bad(
        &["bench", "sgemm", "--variant", "naive", "--scalar", "gamma=1", "--problem", "4x4x4", "--ld", "3"],
        1,
        expect![[r#"
            error: leading dimension 3 is smaller than a row of A with strides (?,1) in --problem 4x4x4
        "#]],
    );
}

#[test]
fn the_cache_is_listed_measured_and_pruned() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("host/0123456789");
    std::fs::create_dir(folder.path().join("host")).expect("made");
    std::fs::write(&program, [0; 3000]).expect("written");
    let age = std::time::SystemTime::now() - std::time::Duration::from_secs(31 * 24 * 3600);
    std::fs::File::open(&program).and_then(|file| file.set_modified(age)).expect("set");
    let cache = |arguments: &[&str]| -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
        let output = command.arg("cache").args(arguments).env("CUTEMPLATE_CACHE_DIR", folder.path()).output();
        let output = output.expect("the tool runs");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let object =
        |arguments: &[&str]| -> serde_json::Value { serde_json::from_str(&cache(arguments)).expect("an object") };
    assert!(cache(&["list"]).starts_with("program       2.9 KiB   31 days idle  "), "{}", cache(&["list"]));
    let entry = object(&["list", "--json"]);
    assert_eq!((&entry["entry"]["kind"], &entry["entry"]["days_idle"]), (&"program".into(), &31.into()));
    assert_eq!(object(&["size", "--json"])["kinds"]["program"], serde_json::json!({ "entries": 1, "bytes": 3000 }));
    assert!(cache(&["size"]).contains("\n  program         1    2.9 KiB\n"), "{}", cache(&["size"]));
    assert_eq!(cache(&["prune", "--max-size", "3K"]), "removed 0 entries of 0 B, 2.9 KiB are left\n");
    assert_eq!(cache(&["prune", "--older-than", "32"]), "removed 0 entries of 0 B, 2.9 KiB are left\n");
    assert_eq!(cache(&["prune"]), "removed 1 entry of 2.9 KiB, 0 B are left\n");
    assert!(!program.exists());
    assert_eq!(object(&["prune", "--json"])["left_bytes"], 0);
    bad(
        &["cache", "prune", "--max-size", "2T"],
        2,
        expect![[r#"
        error: invalid value '2T' for '--max-size <SIZE>': found `2T`, required bytes, or a number with K, M or G, for example 2G

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn doctor_lists_every_part() {
    let rows = objects(&["doctor", "--json"]);
    let parts: Vec<&str> = rows.iter().filter_map(|r| r["part"]["name"].as_str()).collect();
    assert!(parts.contains(&"CUTLASS") && parts.contains(&"nvcc") && parts.contains(&"C++ compiler"), "{parts:?}");
    assert!(rows.iter().any(|r| r.get("gpu").is_some()));
}

/// Exit 1 tells of what building or running a kernel needs, and of nothing that only tests need.
#[test]
fn doctor_is_content_without_what_only_tests_need() {
    let run = |vars: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
        command.args(["doctor", "--json"]).envs(vars.iter().copied());
        let output = command.output().expect("the tool runs");
        let rows: Vec<serde_json::Value> =
            text(&output.stdout).lines().map(|l| serde_json::from_str(l).expect("an object")).collect();
        let part = |name: &str| rows.iter().map(|r| &r["part"]).find(|p| p["name"] == name).expect("a part").clone();
        (output.status.code(), ["libclang", "C++ compiler"].map(part))
    };
    let (code, [libclang, cxx]) = run(&[("LIBCLANG_PATH", "/no/such/library")]);
    assert_eq!((&libclang["state"], &libclang["tests_only"]), (&"wrong".into(), &true.into()), "{libclang}");
    assert_eq!((code, &cxx["state"]), (Some(0), &"found".into()));
    let (code, [_, cxx]) = run(&[("CXX", "/no/such/compiler")]);
    assert_eq!((code, &cxx["state"], &cxx["tests_only"]), (Some(1), &"wrong".into(), &false.into()));
}
