//! Allowed findings: a launch allows exactly the findings that it names, and counts them.

use std::fs;

use ptx_exec::FindingKind;
use ptx_exec::{Allow, FileReport, Modes, Module};

use super::{error_of, folder, run};

/// Two races, at lines 7 and 8 of k.cu, which is inlined at line 30 of main.cu; a stray at line 9.
const RACY: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"/src/k.cu\"\n.file 2 \"/src/main.cu\"\n\
    .visible .entry _Z4racyPj(.param .u64 a)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n.loc 2 30 1\nld.param.u64 %d1, [a];\n\
    mov.u32 %r1, %tid.x;\n.loc 1 7 1, function_name L, inlined_at 2 30 1\nst.global.u32 [%d1], %r1;\n.loc 1 8 1, function_name L, inlined_at 2 30 1\n\
    st.global.u32 [%d1+4], %r1;\n.loc 1 9 1\nld.global.u32 %r2, [%d1+280];\nret;\n}\n.section .debug_str\n{\nL:\n.b8 0\n}\n";

fn with() -> tempfile::TempDir {
    let folder = folder("{}");
    fs::write(folder.path().join("p.ptx"), RACY).expect("writable");
    folder
}

fn text(allow: &str, modes: &str) -> String {
    format!(
        r#"{{"ptx": "p.ptx", "entry": "racy", "grid": [1], "block": [64], "args": [{{"npy": "x.npy", "out": "z.npy"}}], "modes": [{modes}],
        "allow": [{allow}]}}"#
    )
}

fn report(allow: &str) -> FileReport {
    run(&with(), &text(allow, r#""races""#)).expect("it runs").remove(0)
}

#[test]
fn what_is_allowed_is_counted_and_the_rest_is_found() {
    let lines = |r: &FileReport| -> Vec<u32> {
        let mut lines: Vec<u32> = r.report.findings.iter().filter_map(|f| f.line().map(|l| l.line)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    };
    let all = report("");
    assert_eq!(lines(&all), [7, 8, 9], "{}", all.report);
    let second = all.report.findings.iter().find(|f| f.line().is_some_and(|l| l.line == 8));
    let ptx = second.and_then(|f| f.site.as_ref()).expect("a place").ptx_line;
    for (rule, left) in [
        (r#"{"source": "k.cu:7"}"#.to_owned(), vec![8, 9]),
        (r#"{"source": "src/k.cu:7"}"#.to_owned(), vec![8, 9]),
        (r#"{"source": "/src/k.cu:8"}"#.to_owned(), vec![7, 9]),
        (r#"{"source": "main.cu:30"}"#.to_owned(), vec![9]),
        (format!(r#"{{"ptx_line": {}}}"#, ptx), vec![7, 9]),
        (r#"{"entry": "racy"}"#.to_owned(), vec![]),
        (r#"{"entry": "racy", "finding": "exec-race"}"#.to_owned(), vec![9]),
        (r#"{"source": "k.cu:9", "finding": "exec-out-of-bounds", "because": "padded"}"#.to_owned(), vec![7, 8]),
        (r#"{"source": "k.cu:7"}, {"source": "k.cu:9"}"#.to_owned(), vec![8]),
        // These allow no finding: another file, a part of a name, another line, entry or kind.
        (r#"{"source": "ak.cu:7"}"#.to_owned(), vec![7, 8, 9]),
        (r#"{"source": ".cu:7"}"#.to_owned(), vec![7, 8, 9]),
        (r#"{"source": "k.cu:10"}"#.to_owned(), vec![7, 8, 9]),
        (r#"{"entry": "other"}"#.to_owned(), vec![7, 8, 9]),
        (r#"{"source": "k.cu:7", "finding": "exec-uninitialized"}"#.to_owned(), vec![7, 8, 9]),
        (r#"{"source": "k.cu:7", "entry": "other"}"#.to_owned(), vec![7, 8, 9]),
    ] {
        let r = report(&rule);
        assert_eq!(lines(&r), left, "{rule}");
        assert_eq!(r.report.findings.len() + r.report.allowed.len(), all.report.findings.len(), "{rule}");
        assert_eq!(r.report.is_clean(), left.is_empty());
        assert_eq!(r.allowed.iter().map(|by| by.findings).sum::<usize>(), r.report.allowed.len(), "{rule}");
        assert!(r.allowed.iter().all(|by| by.times >= by.findings as u64));
    }
    assert_eq!(
        report(r#"{"source": "k.cu:9", "because": "padded"}"#).allowed[0].rule.to_string(),
        "findings at k.cu:9 (padded)"
    );
}

#[test]
fn rules_that_say_nothing_or_too_much_are_refused() {
    let folder = with();
    for (rule, words) in [
        ("{}", "allows everything"),
        (r#"{"finding": "exec-race"}"#, "allows everything"),
        (r#"{"entry": ""}"#, "allows everything"),
        (r#"{"source": "k.cu"}"#, "`allow[0].source` cannot be read"),
        (r#"{"source": ":7"}"#, "`allow[0].source` cannot be read"),
        (r#"{"source": "k.cu:0"}"#, "`allow[0].source` cannot be read"),
        (r#"{"source": "k.cu:-7"}"#, "`allow[0].source` cannot be read"),
        (r#"{"ptx_line": 0}"#, "`allow[0].ptx_line` cannot be read"),
        (r#"{"ptx_line": 7, "finding": "race"}"#, "unknown word"),
        (r#"{"ptx_line": 7, "finding": "exec-deadlock"}"#, "unknown word"),
        (r#"{"line": 7}"#, "unknown key"),
        (r#""exec-race""#, "is not an object"),
    ] {
        let e = error_of(&folder, &text(rule, ""));
        assert!(e.contains(words) && e.contains("allow[0]"), "{rule}: {e}");
    }
}

/// If a kernel stops early, its rest is unchecked, so no finding is allowed.
#[test]
fn a_kernel_that_stops_is_not_right() {
    let ptx = RACY.replace("ret;", "trap;");
    let module = Module::parse(ptx).expect("it is PTX");
    let mut memory = [0_u8; 280];
    let launch = module.launch("racy").expect("an entry").block(&[64]).output("a", &mut memory).modes(Modes::ALL);
    let report = launch.allow(Allow::entry("racy")).run().expect("it runs");
    assert!(report.allowed.is_empty() && report.findings.iter().any(|f| f.kind == FindingKind::Trap), "{report}");
}

/// Any number of allowed findings leaves room for other findings.
#[test]
fn the_last_of_many_findings_is_found() {
    let strays =
        (0..600).map(|i| format!("ld.global.u32 %r1, [%d1+{}];\nbar.sync 0;\n", 1024 + 4 * i)).collect::<String>();
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n\
        ld.param.u64 %d1, [a];\n{strays}ld.global.u32 %r1, [%d1+1];\nret;\n}}\n"
    );
    let module = Module::parse(ptx).expect("it is PTX");
    let of = |allow: &[Allow]| {
        let launch = module.launch("k").expect("an entry").input("a", &[0; 64]);
        allow.iter().cloned().fold(launch, ptx_exec::Launch::allow).run().expect("it runs")
    };
    let all = of(&[]);
    assert!(all.findings.len() as u64 + all.dropped >= 601 && all.allowed.is_empty());
    let one = of(&[Allow::entry("k").kind(FindingKind::OutOfBounds)]);
    assert_eq!((one.findings.len(), one.dropped, one.allowed.len()), (1, 0, 600));
    assert!(!one.is_clean());
    let none = of(&[Allow::entry("k")]);
    assert!(none.is_clean() && none.allowed.len() == 601);
}

/// A finding with several places is allowed if each place is.
#[test]
fn a_finding_of_two_places_is_allowed_at_both() {
    let ptx = RACY.replace(
        "st.global.u32 [%d1+4], %r1;\n.loc 1 9 1\n",
        "st.global.u32 [%d1+4], %r1;\nst.global.u32 [%d1+8], %r1;\n.loc 1 9 1\n",
    );
    assert_ne!(ptx, RACY);
    let module = Module::parse(ptx).expect("it is PTX");
    let mut memory = [0_u8; 284];
    let mut of = |rules: &[Allow]| {
        let launch = module.launch("racy").expect("an entry").block(&[32]).output("a", &mut memory).modes(Modes::ALL);
        let report = rules.iter().cloned().fold(launch, ptx_exec::Launch::allow).run().expect("it runs");
        report.findings.iter().filter_map(|f| f.line().map(|l| l.line)).collect::<Vec<u32>>()
    };
    assert_eq!(of(&[]), [7, 8]);
    assert_eq!(of(&[Allow::source("k.cu", 8)]), [7]);
    // Line 8 stands in two lines of the PTX.
    assert_eq!(of(&[Allow::ptx_line(16)]), [7, 8]);
    assert_eq!(of(&[Allow::ptx_line(17)]), [7, 8]);
    assert_eq!(of(&[Allow::ptx_line(16), Allow::ptx_line(17)]), [7]);
}
