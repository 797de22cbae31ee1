//! Contract: the kernel that is chosen for a problem computes it right, whatever the problem.

use std::process::Command;

#[test]
fn each_batch_is_right_by_the_kernel_for_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_dispatch")).output().expect("it runs");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    let [flat, tall] = lines[..] else { panic!("{said}") };
    assert!(flat.starts_with("5 x 64 x 96 by layer_0 on ") && flat.ends_with(": 0 wrong"), "{flat}");
    assert!(tall.starts_with("3000 x 16 x 32 by layer_1 on ") && tall.ends_with(": 0 wrong"), "{tall}");
}
