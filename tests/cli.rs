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
    assert_eq!(codes, ["\"CT003\"", "\"CT005\""]);
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
    for (settings, mode) in [("dtype=f16", "plain"), ("dtype=bf16", "bounds"), ("dtype=f32", "races")] {
        let arguments = ["run", "elementwise_add", "--set", settings, "--problem", "67x130", "--ld", "144"];
        let rows =
            objects(&[&arguments[..], &["--on", "cpu", "--mode", mode, "--fill", "specials", "--json"]].concat());
        let last = rows.last().expect("a verdict");
        assert_eq!(last["right"], true, "{last}");
        assert_eq!(last["verdict"]["elements"], 67 * 130);
    }
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
        &["bench", "elementwise_add", "--ladder"],
        1,
        expect![[r#"
        error: --ladder: the rungs are those of `sgemm`
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
    assert_eq!(cache(&["prune"]), "removed 1 entries of 2.9 KiB, 0 B are left\n");
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
