//! Calls of the tool: good ones print text, or one JSON object a line for machines, and exit with 0; bad ones say why, and do not.

use std::process::{Command, Output};

use expect_test::Expect;

pub(crate) fn tool(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutemplate")).args(arguments).output().expect("the tool runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The tool succeeds and says nothing on standard error but progress.
pub(crate) fn good(arguments: &[&str]) -> String {
    let output = tool(arguments);
    assert!(output.status.success(), "{arguments:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn objects(arguments: &[&str]) -> Vec<serde_json::Value> {
    let lines = good(arguments);
    lines.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// The tool fails with exactly this on standard error.
pub(crate) fn bad(arguments: &[&str], code: i32, message: Expect) {
    let output = tool(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    message.assert_eq(&text(&output.stderr));
}
