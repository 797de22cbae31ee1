//! Contract: the output of `ptx-exec check` and `ptx-exec run` as text and as JSON, which agree, and the exit codes.

#![cfg(feature = "cli")]

use std::fs;
use std::process::{Command, Output};

use expect_test::{Expect, expect};

fn tool(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptx-exec")).args(arguments).output().expect("the tool runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn objects(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = tool(arguments);
    assert!(output.status.success(), "{arguments:?}\n{}", text(&output.stderr));
    text(&output.stdout).lines().map(|l| serde_json::from_str(l).expect("an object a line")).collect()
}

/// Asserts that the tool fails with exactly this on standard error.
fn bad(arguments: &[&str], code: i32, message: Expect) {
    let output = tool(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    message.assert_eq(&text(&output.stderr));
}

/// Three entries: `first` is unsupported. In `order` the last warp writes its number, and the kernel stops if that is 0. In `racy` all
/// threads write one place.
const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry first(.param .u64 .ptr .global .align 16 a, .param .f32 b, \
    .param .align 8 .b8 c[24])\n{\n.reg .b32 %r<3>;\ntex.1d.v4.s32.s32 {%r1, %r1, %r1, %r1}, [t, {%r1}];\nret;\n}\n\
    .visible .entry order(.param .u64 a)\n{\n.reg .pred %p;\n.reg .b32 %r<4>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [a];\nmov.u32 %r1, %tid.x;\n\
    shr.u32 %r1, %r1, 5;\nst.global.u32 [%d1], %r1;\nbar.sync 0;\nld.global.u32 %r2, [%d1];\nsetp.eq.u32 %p, %r2, 0;\n@%p trap;\nret;\n}\n\
    .visible .entry _Z4racyPj(.param .u64 a)\n{\n.reg .b32 %r;\n.reg .b64 %d;\nld.param.u64 %d, [a];\nmov.u32 %r, %tid.x;\n\
    st.global.u32 [%d], %r;\nret;\n}\n";

/// A folder with the text, an array and a launch file; the path of a file in it.
fn folder(launch: &str) -> (tempfile::TempDir, impl Fn(&str) -> String + use<>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    array.extend(format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}").bytes());
    assert_eq!(array.len(), 128);
    array.extend([0; 16]);
    fs::write(folder.path().join("k.ptx"), TEXT).expect("written");
    fs::write(folder.path().join("x.npy"), array).expect("written");
    fs::write(folder.path().join("launch.json"), launch).expect("written");
    let root = folder.path().to_owned();
    (folder, move |name: &str| root.join(name).to_str().expect("UTF-8").to_owned())
}

fn launch(rest: &str) -> String {
    format!(
        r#"{{"ptx": "k.ptx", "entry": "order", "grid": [1], "block": [128], "args": [{{"npy": "x.npy", "out": "y.npy"}}]{rest}}}"#
    )
}

#[test]
fn an_entry_that_is_refused_has_its_name_and_its_parameters() {
    let (_folder, path) = folder("{}");
    let output = tool(&["check", &path("k.ptx")]);
    assert_eq!(output.status.code(), Some(2));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    for line in [
        "entry first: is not run here",
        "  parameter at byte 0: pointer to global, aligned to 16 B (a)",
        "  parameter at byte 8: f32 (b)",
        "  parameter at byte 16: 24 B, a struct (c)",
        "  parameter at byte 0: u64 (a)",
    ] {
        assert!(out.lines().any(|known| known == line), "{line}\n{out}");
    }
    assert!(err.lines().any(|line| line == "  entry:    first"), "{err}");
    let output = tool(&["--json", "check", &path("k.ptx")]);
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|l| serde_json::from_str(l).expect("an object")).collect();
    let first = rows.iter().find(|row| row["entry"] == "first").expect("it is listed");
    assert_eq!((first["runs"].as_bool(), first["params"].as_array().map(Vec::len)), (Some(false), Some(3)));
    assert!(rows.iter().any(|row| row["error"]["entry"] == "first"), "{rows:?}");
}

/// The printed command replays the printed findings.
#[test]
fn a_failing_seed_is_printed_with_the_command_that_replays_it() {
    let (_folder, path) = folder(&launch(""));
    let file = path("launch.json");
    let output = tool(&["run", &file, "--seeds", "32"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("error[exec-trap]") && out.contains("of the 32 seeds from 0 to 31 are not right"), "{out}");
    let again = out.lines().find_map(|line| line.strip_prefix("  again: ptx-exec ")).expect("a command");
    let words: Vec<&str> = again.split(' ').collect();
    let replayed = tool(&words);
    assert_eq!(replayed.status.code(), Some(1));
    let finding = |text: &str| text.split("\norder: ").next().expect("findings").to_owned();
    assert_eq!(finding(&text(&replayed.stdout)), finding(&out));
    // A seed that is right says that it is one of many, and a machine reads the same.
    let output = tool(&["--json", "run", &file, "--seeds", "32"]);
    let last: serde_json::Value =
        serde_json::from_str(text(&output.stdout).lines().last().expect("a row")).expect("an object");
    let failing: Vec<u64> = serde_json::from_value(last["seeds"]["failing"].clone()).expect("numbers");
    let right = (0..32).find(|seed| !failing.contains(seed)).expect("some are right").to_string();
    assert_eq!(last["seed"].as_u64(), failing.first().copied());
    let output = tool(&["run", &file, "--seed", &right]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains(&format!("order: right with seed {right}, ")) && out.contains("--seeds 8"), "{out}");
}

#[test]
fn what_is_allowed_is_counted_and_printed() {
    let racy = |rest: &str| launch(&format!(r#", "modes": ["races"]{rest}"#)).replace("\"order\"", "\"racy\"");
    let (folder, path) = folder(&racy(""));
    let file = path("launch.json");
    assert_eq!(tool(&["run", &file]).status.code(), Some(1));
    let allow =
        r#", "allow": [{"entry": "racy", "finding": "exec-race", "because": "any will do"}, {"source": "k.cu:1"}]"#;
    fs::write(folder.path().join("launch.json"), racy(allow)).expect("written");
    let output = tool(&["run", &file]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains("allowed: exec-race in racy (any will do): ") && out.contains(" times"), "{out}");
    assert!(out.contains("allowed: findings at k.cu:1: found nothing"), "{out}");
    let rows = objects(&["--json", "run", &file]);
    let rules = rows.last().expect("a row")["allowed"].as_array().expect("rules").clone();
    assert!(rules[0]["findings"].as_u64() > Some(0) && rules[1]["findings"].as_u64() == Some(0), "{rules:?}");
}

#[test]
fn a_launch_file_without_a_launch_is_malformed() {
    let (folder, path) = folder("[]");
    let output = tool(&["run", &path("launch.json")]);
    assert_eq!(output.status.code(), Some(2));
    fs::write(folder.path().join("launch.json"), launch(r#", "modes": "races""#)).expect("written");
    bad(
        &["run", &path("launch.json")],
        2,
        expect![[r#"
            error[ptx-file]: `modes` cannot be read
              found:    the string "races"
              required: a list of plain, bounds, init, races, all, as ["bounds", "races"]
        "#]],
    );
    fs::write(folder.path().join("launch.json"), launch(r#", "moods": ["races"]"#)).expect("written");
    bad(
        &["run", &path("launch.json")],
        2,
        expect![[r#"
            error[ptx-file]: the launch has an unknown key
              found:    `moods`
              required: one of ptx, entry, grid, block, args, cluster, cooperative, programmatic, dynamic_smem, buffers, variables, modes, seed, step_budget, placement, tensor_cores, allow
              help:     the nearest key is `modes`
        "#]],
    );
}

/// JUnit has a suite for each file and a case for each launch. Failed, refused and skipped launches are marked.
#[test]
fn results_are_written_as_junit() {
    let right = launch("");
    let racy = launch(r#", "modes": ["races"]"#).replace("\"order\"", "\"racy\"");
    let (folder, path) = folder(&format!("[{racy}, {}]", right.replace("y.npy", "z.npy")));
    fs::write(folder.path().join("right.json"), launch(r#", "seed": 1"#)).expect("written");
    fs::write(folder.path().join("bad.json"), "{}").expect("written");
    let (all, report) = ([path("right.json"), path("launch.json"), path("bad.json")], path("report.xml"));
    let output = tool(&["run", &all[0], &all[1], &all[2], "--junit", &report]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let xml = fs::read_to_string(&report).expect("written");
    let document = roxmltree::Document::parse(&xml).expect("XML");
    let named = |name: &'static str| document.descendants().filter(move |n| n.has_tag_name(name));
    assert_eq!(named("testsuite").filter_map(|n| n.attribute("name")).collect::<Vec<_>>(), all);
    let root = document.root_element();
    assert_eq!(["tests", "failures", "errors"].map(|n| root.attribute(n).expect("a number")), ["4", "1", "1"]);
    let failure = named("failure").next().expect("a failure");
    assert_eq!(failure.attribute("type"), Some("exec-race"));
    let words = failure.text().expect("what is wrong");
    assert!(words.contains("error[exec-race]") && words.contains("again: ptx-exec run "), "{words}");
    assert_eq!((named("skipped").count(), named("error").count()), (1, 1));
    // The same run is the same file.
    tool(&["run", &all[0], &all[1], &all[2], "--junit", &report]);
    assert_eq!(fs::read_to_string(&report).expect("written"), xml);
}

/// Launches of one file and one kernel: the output, JSON and JUnit say which of them has the finding.
#[test]
fn a_finding_names_its_launch() {
    let one =
        r#"{"ptx": "k.ptx", "entry": "racy", "grid": [1], "block": [1], "args": [{"of": "h"}], "modes": ["races"]}"#;
    let launches = [one, &one.replace("\"block\": [1]", "\"block\": [32]"), one].join(", ");
    let (_folder, path) = folder(&format!(r#"{{"buffers": {{"h": {{"scratch": 4}}}}, "launches": [{launches}]}}"#));
    let (file, junit) = (path("launch.json"), path("report.xml"));
    let output = tool(&["run", &file, "--junit", &junit]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.starts_with("launch 1, _Z4racyPj: right with seed 0, "), "{out}");
    assert!(out.contains("\nlaunch 2, _Z4racyPj:\nerror[exec-race]"), "{out}");
    assert!(out.contains("\nlaunch 2, _Z4racyPj: 1 finding with seed 0, ") && !out.contains("launch 3"), "{out}");
    let xml = fs::read_to_string(&junit).expect("written");
    assert!(xml.contains(r#"<testcase name="launch 2, _Z4racyPj""#), "{xml}");
    let output = tool(&["--json", "run", &file]);
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|row| serde_json::from_str(row).expect("an object")).collect();
    let finding = rows.iter().find_map(|row| row.get("finding")).expect("a finding");
    assert_eq!((&finding["launch"], &rows.last().expect("a row")["launch"]), (&2.into(), &2.into()));
}

/// Text, JSON, JUnit and the exit code say that memory is not what the file expects.
#[test]
fn a_difference_fails_the_run() {
    let (_folder, path) = folder(&launch("").replace(r#""out": "y.npy""#, r#""expect": {"npy": "x.npy"}"#));
    let (file, junit) = (path("launch.json"), path("report.xml"));
    let output = tool(&["run", &file, "--seed", "3", "--junit", &junit]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("error[exec-difference]: x is not what the launch file expects"), "{out}");
    assert!(out.contains("order: 1 difference with seed 3"), "{out}");
    let xml = fs::read_to_string(&junit).expect("written");
    assert!(xml.contains(r#"type="exec-difference""#) && xml.contains("again: ptx-exec run "), "{xml}");
    let output = tool(&["--json", "run", &file, "--seed", "3"]);
    let out = text(&output.stdout);
    let row: serde_json::Value = serde_json::from_str(out.lines().last().expect("a row")).expect("an object");
    assert_eq!((&row["clean"], &row["right"]), (&true.into(), &false.into()));
    assert_eq!(
        (&row["differences"][0]["index"], &row["differences"][0]["count"]),
        (&serde_json::json!([0]), &1.into())
    );
}

#[test]
fn the_sample_launch_has_no_findings() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scale.json");
    let output = tool(&["run", sample, "--seeds", "3"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    assert!(out.contains("scale: right with seed 0") && out.contains("right with each seed from 0 to 2"), "{out}");
}
