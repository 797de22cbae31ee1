//! Launch files.

mod allow;
mod arrays;
mod expect;
mod kept;
mod keys;
mod memory;
mod outputs;
mod seeds;
mod types;

use std::fs;
use std::path::Path;

use ptx_exec::{Error, ErrorKind, FileReport, run_file};

const SCALE: &str = include_str!("../data/scale.ptx");

fn npy(values: &[f32]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len());
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).expect("short").to_le_bytes());
    file.extend(header.bytes());
    file.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    file
}

fn folder(launch: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("writable");
    let x: Vec<f32> = (0..70_u16).map(f32::from).collect();
    write("k.ptx", SCALE.as_bytes());
    write("x.npy", &npy(&x));
    write("y.npy", &npy(&[f32::NAN; 70]));
    write("launch.json", launch.as_bytes());
    folder
}

/// Runs a launch file of that text, in the folder.
fn run(folder: &tempfile::TempDir, text: &str) -> Result<Vec<FileReport>, Error> {
    fs::write(folder.path().join("launch.json"), text).expect("writable");
    run_file(&folder.path().join("launch.json"), false)
}

/// The findings as printed.
fn error_of(folder: &tempfile::TempDir, text: &str) -> String {
    match run(folder, text) {
        Ok(_) => panic!("this runs: {text}"),
        Err(e) => e.to_string(),
    }
}

/// The elements of a file that a launch wrote, as bytes.
fn elements(folder: &tempfile::TempDir, name: &str) -> Vec<u8> {
    let file = fs::read(folder.path().join(name)).expect("written");
    let header = usize::from(u16::from_le_bytes([file[8], file[9]]));
    assert!((header + 10).is_multiple_of(64), "the elements are aligned as NumPy aligns them");
    file[header + 10..].to_vec()
}

fn launch(n: u32) -> String {
    format!(
        r#"{{"ptx": "k.ptx", "entry": "scale", "grid": [3], "block": [32], "cluster": [1], "dynamic_smem": 0, "args": [{{"npy": "x.npy"}},
        {{"npy": "y.npy", "out": "z.npy"}}, {{"f32": 0.5}}, {{"i32": {n}}}], "modes": ["bounds", "init", "races"]}}"#
    )
}

fn result(folder: &Path) -> f32 {
    let z = fs::read(folder.join("z.npy")).expect("written");
    f32::from_le_bytes(z[z.len() - 4..].try_into().expect("4 bytes"))
}

#[test]
fn a_launch_file_runs_and_writes_its_arrays() {
    let folder = folder(&launch(70));
    let reports = run_file(&folder.path().join("launch.json"), false).expect("it runs");
    assert!(reports[0].report.is_clean());
    assert_eq!(result(folder.path()), 34.5);
    // A list runs in order: the second launch reads the output of the first.
    let second = launch(70).replace("x.npy", "z.npy");
    fs::write(folder.path().join("two.json"), format!("[{}, {second}]", launch(70))).expect("writable");
    assert_eq!(run_file(&folder.path().join("two.json"), false).expect("it runs").len(), 2);
    assert_eq!(result(folder.path()), 17.25);
}

#[test]
fn a_stray_of_one_element_is_a_finding() {
    let folder = folder(&launch(71));
    let reports = run_file(&folder.path().join("launch.json"), false).expect("it runs");
    let found = &reports[0].report.findings;
    assert!(found.iter().any(|f| f.to_string().contains(" at byte 280 of x[280 B]\n")), "{found:?}");
}

#[test]
fn malformed_files_are_refused() {
    let good = launch(70);
    for (from, to, what) in [
        ("\"entry\"", "\"entri\"", "the nearest key is `entry`"),
        ("\"scale\"", "\"skale\"", "no such entry"),
        ("k.ptx", "nothing.ptx", "cannot be read"),
        ("[32]", "[2048]", "1 to 1024 threads"),
        ("[32]", "[32, 1, 1, 1]", "`block` cannot be read"),
        ("[32]", "[0]", "`block` cannot be read"),
        ("{\"f32\": 0.5}", "{\"f32\": 0.5, \"i32\": 1}", "the argument `args[2]` says two things"),
        ("{\"f32\": 0.5}", "{}", "the argument `args[2]` does not name its kind"),
        ("{\"f32\": 0.5}", "{\"f32\": 0.5, \"out\": \"w.npy\"}", "`args[2].out` has no meaning here"),
        ("{\"f32\": 0.5}", "{\"f64\": 0.5}", "does not fit its parameter"),
        ("{\"f32\": 0.5}", "{\"f32\": 1e39}", "`args[2].f32` cannot be read"),
        ("{\"f32\": 0.5},", "", "fewer arguments"),
        ("{\"f32\": 0.5}", "{\"f32\": 0.5}, {\"i32\": 5}", "more arguments"),
        ("\"races\"", "\"raises\"", "the nearest word is `races`"),
        ("[\"bounds\", \"init\", \"races\"]", "\"races\"", "`modes` cannot be read"),
        ("[\"bounds\", \"init\", \"races\"]", "null", "`modes` cannot be read"),
        ("[\"bounds\", \"init\", \"races\"]", "{\"races\": true}", "`modes` cannot be read"),
        ("\"grid\": [3], ", "", "the launch has no `grid`"),
        ("\"block\": [32], ", "", "the launch has no `block`"),
        ("\"grid\": [3]", "\"grid\": [3], \"grid\": [3]", "`grid` occurs twice"),
        ("\"cluster\": [1]", "\"cluster\": [2]", "the cluster cannot be run"),
        ("\"cluster\": [1]", "\"placement\": true", "`placement` cannot be read"),
        ("\"cluster\": [1]", "\"tensor_cores\": 90", "`tensor_cores` cannot be read"),
        ("\"cluster\": [1]", "\"step_budget\": 1e9", "`step_budget` cannot be read"),
        ("\"cluster\": [1]", "\"step_budget\": 0", "`step_budget` cannot be read"),
        ("\"npy\": \"x.npy\"", "\"npy\": \"k.ptx\"", "not a .npy file"),
        ("]}", "", "not JSON"),
    ] {
        assert!(good.contains(from), "{from}");
        let folder = folder(&good.replacen(from, to, 1));
        let error = run_file(&folder.path().join("launch.json"), false).expect_err(what);
        assert!(error.to_string().contains(what), "{what}: {error}");
        assert!(!folder.path().join("z.npy").exists());
    }
    let error = run_file(Path::new("/nowhere/launch.json"), false).expect_err("no file");
    assert_eq!(error.kind, ErrorKind::File);
    let folder = folder(&good);
    let no_args = r#"{"ptx": "k.ptx", "entry": "scale", "grid": [3], "block": [32]}"#;
    for (text, what) in [
        ("[]".to_owned(), "a launch file has no launch"),
        ("5".to_owned(), "the launch is not an object"),
        (no_args.to_owned(), "the launch has no `args`"),
        // The whole file is checked before the first launch.
        (format!("[{good}, {{}}]"), "the launch `[1]` has no `ptx`"),
    ] {
        let error = error_of(&folder, &text);
        assert!(error.contains(what), "{error}");
        assert!(!folder.path().join("z.npy").exists());
    }
}

/// The step budget ends an endless polling loop, and the message tells how to raise it.
#[test]
fn a_launch_ends_within_its_budget() {
    assert_eq!(ptx_exec::STEP_BUDGET, 1_000_000_000);
    let folder = folder("{}");
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry poll(.param .u64 p)\n{\n.reg .pred %p;\n.reg .b32 %r;\n\
        .reg .b64 %d;\nld.param.u64 %d, [p];\nLOOP:\nld.volatile.global.u32 %r, [%d];\nsetp.eq.u32 %p, %r, 0;\n@%p bra LOOP;\nret;\n}\n";
    fs::write(folder.path().join("poll.ptx"), ptx).expect("writable");
    let text = r#"{"ptx": "poll.ptx", "entry": "poll", "grid": [1], "block": [32], "args": [{"npy": "x.npy"}], "step_budget": 60000}"#;
    let reports = run(&folder, text).expect("it runs");
    let found = &reports[0].report.findings;
    assert!(
        found.iter().any(|f| f.kind.as_str() == "exec-timeout" && f.to_string().contains("step_budget")),
        "{found:?}"
    );
}

/// Tensor maps of an array of their own and of another argument's array, and a cluster.
#[test]
fn tensor_maps_and_clusters_are_told() {
    let ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n\
        .visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{\n.reg .pred %p;\n.reg .b32 %r<9>;\n.reg .b64 %d<5>;\n\
        .shared .align 128 .b8 s[128];\n.shared .align 8 .b8 bar[8];\nmov.u32 %r1, s;\nmov.u32 %r2, bar;\nmov.b64 %d1, map;\n\
        cvta.param.u64 %d1, %d1;\nld.param.u64 %d2, [out];\nmov.u32 %r3, 0;\nmov.u32 %r4, %cluster_ctarank;\n\
        mbarrier.init.shared.b64 [%r2], 1;\nfence.mbarrier_init.release.cluster;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n\
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r3, %r4}], [%r2];\n\
        WAIT:\nmbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;\n@!%p bra WAIT;\nld.shared.b32 %r5, [%r1];\n\
        mul.wide.u32 %d3, %r4, 4;\nadd.u64 %d2, %d2, %d3;\nst.global.b32 [%d2], %r5;\nret;\n}\n";
    let launch = |own: &str, rest: &str| {
        format!(
            r#"{{"ptx": "map.ptx", "entry": "k", "grid": [2], "block": [1], "cluster": [2], "args": [{{"tensor_map": {{{own}, "dtype": "f32",
            "dims": [32, 2], "strides": [128], "box": [16, 1], "swizzle": 0{rest}}}}}, {{"npy": "y.npy", "out": "z.npy"}}], "modes": ["all"]}}"#
        )
    };
    let folder = folder(&launch(r#""npy": "x.npy""#, ""));
    fs::write(folder.path().join("map.ptx"), ptx).expect("writable");
    let run = |text: &str| {
        fs::write(folder.path().join("launch.json"), text).expect("writable");
        run_file(&folder.path().join("launch.json"), true)
    };
    let reports = run(&launch(r#""npy": "x.npy""#, "")).expect("it runs");
    assert!(reports[0].report.is_clean(), "{}", reports[0].report);
    let z = fs::read(folder.path().join("z.npy")).expect("written");
    let first = z.len() - 280;
    assert_eq!(z[first..first + 8], [0.0_f32.to_le_bytes(), 32.0_f32.to_le_bytes()].concat());
    let other_stride = launch(r#""npy": "x.npy""#, "").replace("[128]", "[120]");
    assert!(run(&other_stride).expect_err("malformed").to_string().contains("no driver encodes this tensor map"));
    // Malformed maps: no tensor, a repeated key, an unknown key.
    for (own, rest, word) in [
        (r#""of": 0"#, "", "`args[0].tensor_map.of` does not refer to memory"),
        (r#""npy": "x.npy""#, r#", "swizzle": 0"#, "`swizzle` occurs twice"),
        (r#""npy": "x.npy""#, r#", "interleave": 1"#, "unknown key"),
    ] {
        let error = run(&launch(own, rest)).expect_err("malformed").to_string();
        assert!(error.contains(word), "{error}");
    }
}
