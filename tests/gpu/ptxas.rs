//! A text with values in local memory, or with products that wait for each other, runs right: nothing but what ptxas says tells. It is
//! read where tests compile, and by the script that compiles elsewhere.
#![cfg(feature = "build")]

use cutemplate::emit::SourceFile;

use crate::gpu;

const NONE: &str = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
const SOME: &str = "    48 bytes stack frame, 40 bytes spill stores, 0 bytes spill loads";
const OTHER: &str = "    8 bytes stack frame, 4 bytes spill stores, 10 bytes spill loads";
const ARRAY: &str = "    256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
const USED: &str = "ptxas info    : Used 168 registers, 256 bytes cumulative stack size";
const WAITS: &str =
    "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized in 'one'";

/// What is denied of a text with such a call.
fn denied(call: &str, spills_denied: bool) -> &'static [&'static str] {
    gpu::denied(&[SourceFile { name: "a.cuh".into(), text: call.into() }], spills_denied)
}

#[test]
fn what_it_says_is_read() {
    let report = [NONE, SOME, USED, OTHER, WAITS, ARRAY, NONE].join("\n");
    assert_eq!(gpu::told(&report, denied("expf(x)", true)), [SOME, OTHER, WAITS, ARRAY]);
    assert_eq!(gpu::told(&report, denied("cosf(x)", true)), [SOME, OTHER, WAITS]);
    assert_eq!(gpu::told(&report, denied("expf(x)", false)), [WAITS]);
}

/// `compile.sh` in a folder of its own, with an nvcc that says what a kernel's text has.
#[cfg(unix)]
#[test]
fn the_script_reads_it_too() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    // Of `-o NAME.part NAME.cu`, the last two.
    let nvcc =
        "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\ncat \"$2\"; echo fatbin > \"$1\"; ! grep -q refused \"$2\"\n";
    fs::write(at("nvcc"), nvcc).expect("writable");
    fs::set_permissions(at("nvcc"), fs::Permissions::from_mode(0o755)).expect("writable");
    fs::create_dir(at("include")).expect("writable");
    fs::write(at("compile.sh"), gpu::COMPILE).expect("writable");
    let kernel = |name: &str, text: &str, patterns: Option<String>| {
        let own = at(&format!("{name}.src"));
        fs::create_dir(&own).expect("writable");
        fs::write(own.join("flags"), "-O3\n").expect("writable");
        fs::write(own.join("unit"), format!("{name}.cu")).expect("writable");
        fs::write(own.join(format!("{name}.cu")), text).expect("writable");
        if let Some(patterns) = patterns {
            fs::write(own.join("denied"), patterns).expect("writable");
        }
    };
    let all = || Some(gpu::patterns(denied("expf(x)", true)));
    kernel("silent", &[NONE, USED].join("\n"), all());
    kernel("spills_loads", OTHER, all());
    kernel("spills_stores", SOME, all());
    kernel("has_array", ARRAY, all());
    kernel("has_array_of_cos", ARRAY, Some(gpu::patterns(denied("cosf(x)", true))));
    kernel("spills_and_may", SOME, Some(gpu::patterns(denied("expf(x)", false))));
    kernel("waits", WAITS, all());
    kernel("waits_where_it_may_spill", WAITS, Some(gpu::patterns(denied("expf(x)", false))));
    kernel("is_refused", "refused", all());
    kernel("knows_nothing", NONE, None);
    kernel("knows_of_nothing", NONE, Some(String::new()));

    let mut sh = Command::new("sh");
    let sh = sh.arg(at("compile.sh")).current_dir(folder.path()).env("CUTLASS", "include").env("NVCC", at("nvcc"));
    let output = sh.env("JOBS", "2").output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    let mut failed: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(" failed")).collect();
    failed.sort_unstable();
    let wrong = [
        "has_array",
        "is_refused",
        "knows_nothing",
        "knows_of_nothing",
        "spills_loads",
        "spills_stores",
        "waits",
        "waits_where_it_may_spill",
    ];
    assert_eq!(failed, wrong, "{said}");
    assert!(!output.status.success());
    let names = fs::read_dir(folder.path()).expect("there").map(|entry| entry.expect("there").file_name());
    let mut made: Vec<String> = names.filter_map(|name| Some(name.to_str()?.strip_suffix(".fatbin")?.into())).collect();
    made.sort_unstable();
    assert_eq!(made, ["has_array_of_cos", "silent", "spills_and_may"]);
    for name in wrong {
        fs::remove_dir_all(at(&format!("{name}.src"))).expect("there");
    }
    assert!(sh.status().expect("a shell").success());
}
