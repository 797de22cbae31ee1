//! Contract: `sanitize.sh` succeeds where each tool is silent on what is right and reports the defect that is meant for it, and
//! fails, naming the run, where one of them does not.
#![cfg(target_os = "linux")]

use std::process::Command;

/// Exit status and report, with a stand-in that is told so.
fn run(settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let mut script = Command::new("sh");
    script.arg(format!("{tests}/sanitize.sh")).arg("gpu");
    script.env("COMPUTE_SANITIZER", format!("{tests}/fake/compute-sanitizer")).envs(settings.iter().copied());
    let output = script.output().expect("sh runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn silence_and_four_defects_are_a_success() {
    let (status, said) = run(&[]);
    assert_eq!(status, Some(0), "{said}");
    for tool in ["memcheck", "racecheck", "initcheck", "synccheck"] {
        assert!(said.contains(&format!("{tool} clean: exit 0, 0 errors: silent\n")), "{said}");
        assert!(said.contains(&format!("{tool} planted_{tool}: exit 99, 7 errors: caught\n")), "{said}");
    }
}

#[test]
fn anything_else_is_a_failure() {
    for tool in ["memcheck", "racecheck", "initcheck", "synccheck"] {
        let planted = format!("planted_{tool}: exit");
        let ways = [
            ("FAKE_NOISY", "clean: exit 99, 7 errors"),
            ("FAKE_IDLE", "clean: exit 0, 0 errors"),
            ("FAKE_DEAD", "clean: exit 101, no summary"),
            ("FAKE_BLIND", &format!("{planted} 0, 0 errors")),
            ("FAKE_ASIDE", &format!("{planted} 99, 7 errors")),
        ];
        for (how, told) in ways {
            let (status, said) = run(&[(how, tool)]);
            assert_eq!((status, said.matches("FAILED").count()), (Some(1), 1), "{how} {tool}: {said}");
            assert!(said.contains(&format!("{tool} {told}: FAILED\n")), "{how} {tool}: {said}");
        }
    }
}

/// What was found before counts for nothing: the tool may have been about to say something else.
#[test]
fn a_run_that_does_not_end_is_a_failure() {
    let (status, said) = run(&[("FAKE_STUCK", "racecheck"), ("SANITIZE_SECONDS", "3")]);
    assert_eq!((status, said.matches("FAILED").count()), (Some(1), 1), "{said}");
    assert!(said.contains("racecheck planted_racecheck: exit 124, no summary: FAILED\n"), "{said}");
}

#[test]
fn a_tool_that_is_not_there_is_a_failure() {
    let (status, said) = run(&[("COMPUTE_SANITIZER", "no-such-tool")]);
    assert_eq!((status, said.matches("FAILED").count()), (Some(1), 8), "{said}");
}
