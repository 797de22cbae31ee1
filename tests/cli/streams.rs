//! Contract: whatever becomes of standard output and error, and whatever bytes a path has, no command panics; what could
//! not be written is told, and is no success.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::pipe;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

use crate::tool::text;

/// Commands that print, and one that fails; each also for a machine.
const COMMANDS: [&[&str]; 12] = [
    &["--help"],
    &["list"],
    &["check", "elementwise_add"],
    &["check", "elementwise_add", "--problem", "64x64"],
    &["emit", "elementwise_add"],
    &["inspect", concat!(env!("CARGO_MANIFEST_DIR"), "/examples/row_sums/kernels.bundle"), "--on", "8.6"],
    &["layout", "composition((16,256):(512,1), ((32,4),(8,4)):((128,4),(16,1)))", "--explain"],
    &["layout", "atoms"],
    &["cache", "list"],
    &["cache", "size"],
    &["ptx", "check", "no_such.ptx"],
    &["check", "no_such_family"],
];

fn command(arguments: &[&str], home: &OsStr) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutemplate"));
    command.args(arguments).env("HOME", home).env_remove("XDG_CACHE_HOME").env_remove("CUTEMPLATE_CACHE_DIR");
    command
}

fn each(run: impl Fn(&[&str])) {
    for arguments in COMMANDS {
        run(arguments);
        run(&[arguments, &["--json"]].concat());
    }
}

fn no_panic(arguments: &[&str], output: &Output) -> i32 {
    let said = text(&output.stderr);
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    output.status.code().unwrap_or_else(|| panic!("{arguments:?} was killed: {}", output.status))
}

#[test]
fn a_full_output_is_told() {
    let full = || File::options().write(true).open("/dev/full").expect("Linux has it");
    let home = tempfile::tempdir().expect("a folder");
    each(|arguments| {
        let usual = command(arguments, home.path().as_os_str()).output().expect("it runs");
        let output = command(arguments, home.path().as_os_str()).stdout(full()).output().expect("it runs");
        let code = no_panic(arguments, &output);
        // clap prints help, and says nothing where it cannot.
        if !usual.stdout.is_empty() && !arguments.contains(&"--help") {
            let said = text(&output.stderr);
            assert!(code == 1 && said.contains("cannot write standard output: No space left"), "{arguments:?}: {said}");
        }
        // Nor where there is no place to tell of it.
        let output = command(arguments, home.path().as_os_str()).stdout(full()).stderr(full()).output();
        assert_ne!(no_panic(arguments, &output.expect("it runs")), 101, "{arguments:?}");
    });
}

#[test]
fn a_reader_that_has_gone_ends_the_command_without_a_word() {
    let home = tempfile::tempdir().expect("a folder");
    each(|arguments| {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let output = command(arguments, home.path().as_os_str()).stdout(writer).output().expect("it runs");
        let code = no_panic(arguments, &output);
        assert!(!text(&output.stderr).contains("standard output"), "{arguments:?}");
        assert_ne!(code, 101, "{arguments:?}");
    });
}

#[test]
fn closed_streams_are_no_panic() {
    each(|arguments| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" >&- 2>&- <&-", "sh", env!("CARGO_BIN_EXE_cutemplate")]).args(arguments);
        let code = shell.stdin(Stdio::null()).status().expect("it runs").code();
        assert!(code.is_some_and(|code| code != 101), "{arguments:?}: {code:?}");
    });
}

/// Paths are bytes, and text only nearly always.
#[test]
fn a_home_that_is_not_unicode_is_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir_all(home.join(".cache/cutemplate/kernels/0123")).expect("made");
    each(|arguments| {
        let output = command(arguments, home.as_os_str()).output().expect("it runs");
        assert_ne!(no_panic(arguments, &output), 101, "{arguments:?}");
    });
    for arguments in
        [&["doctor"][..], &["doctor", "--json"], &["cache", "size", "--json"], &["cache", "list", "--json"]]
    {
        let output = command(arguments, home.as_os_str()).output().expect("it runs");
        no_panic(arguments, &output);
        assert!(text(&output.stdout).contains("caf\u{fffd}"), "{arguments:?}: {}", text(&output.stdout));
    }
    let emitted = ["emit", "elementwise_add", "--json", "--out"];
    let output = command(&emitted, home.as_os_str()).arg(home.join("out")).output().expect("it runs");
    assert_eq!(no_panic(&emitted, &output), 0);
}
