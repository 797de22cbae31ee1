//! Contract: a program that uses a library with compiled kernels, and knows nothing of cutemplate, computes right.

use std::process::Command;

#[test]
fn the_means_are_right() {
    let output = Command::new(env!("CARGO_BIN_EXE_row_means")).output().expect("it runs");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with('['), "{said}");
}
