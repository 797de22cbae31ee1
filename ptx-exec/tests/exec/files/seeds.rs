//! Several seeds: the first failing seed is reported and can be replayed. Outputs that depend on the seed are named.

use std::fs;

use ptx_exec::{FileReport, LaunchFile, RunOptions};

use super::{elements, folder, launch};

/// The warp that comes last writes its number. `TRAP` stops the kernel if that is not the last warp.
pub(super) const ORDER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .pred %p;\n.reg .b32 %r<4>;\n\
    .reg .b64 %d<3>;\nld.param.u64 %d1, [a];\nmov.u32 %r1, %tid.x;\nshr.u32 %r1, %r1, 5;\nst.global.u32 [%d1], %r1;\nbar.sync 0;\n\
    ld.global.u32 %r2, [%d1];\nsetp.eq.u32 %p, %r2, 0;\nTRAP\nret;\n}\n";

fn of(trap: &str, options: &RunOptions, rest: &str) -> (FileReport, tempfile::TempDir) {
    let folder = folder(&format!(
        r#"{{"ptx": "p.ptx", "entry": "k", "grid": [1], "block": [128], "args": [{{"npy": "x.npy", "out": "z.npy"}}]{rest}}}"#
    ));
    fs::write(folder.path().join("p.ptx"), ORDER.replace("TRAP", trap)).expect("writable");
    let file = LaunchFile::read(&folder.path().join("launch.json")).expect("it is one");
    assert_eq!(file.len(), 1);
    (file.launches(options).next().expect("a launch").expect("it runs"), folder)
}

#[test]
fn the_first_failing_seed_is_told_and_fails_again() {
    let many = RunOptions { seeds: 32, ..RunOptions::default() };
    let (report, _folder) = of("@%p trap;", &many, "");
    let seeds = report.seeds.expect("several were asked for");
    assert!(!seeds.failing.is_empty() && seeds.failing.len() < 32, "{seeds:?}");
    assert_eq!((seeds.first, seeds.count, report.seed), (0, 32, seeds.failing[0]));
    assert!(!report.report.is_clean());
    for seed in 0..32 {
        let (one, _folder) = of("@%p trap;", &RunOptions { seed: Some(seed), ..RunOptions::default() }, "");
        assert_eq!((one.report.is_clean(), one.seed), (!seeds.failing.contains(&seed), seed));
        assert!(one.seeds.is_none());
    }
    // The file's own seed is the first of several, unless another is asked for.
    let (report, _folder) =
        of("", &RunOptions { seeds: 3, ..RunOptions::default() }, r#", "seed": 18446744073709551614"#);
    assert_eq!(report.seeds.expect("several").first, u64::MAX - 1);
    assert_eq!(of("", &RunOptions { seed: Some(7), ..RunOptions::default() }, r#", "seed": 5"#).0.seed, 7);
}

#[test]
fn what_depends_on_the_seed_is_named() {
    let many = RunOptions { seeds: 16, ..RunOptions::default() };
    let (report, folder) = of("", &many, "");
    let seeds = report.seeds.expect("several were asked for");
    assert!(report.report.is_clean() && seeds.failing.is_empty());
    assert!(matches!(&seeds.differing[..], [one] if one.starts_with("`args[0]` (x) from byte 0 on")), "{seeds:?}");
    // The file holds the output of the first seed.
    let first = elements(&folder, "z.npy");
    let (_, alone) = of("", &RunOptions::default(), "");
    assert_eq!(first, elements(&alone, "z.npy"));
    // Outputs that do not depend on the seed are not named.
    let folder = super::folder(&launch(70));
    let file = LaunchFile::read(&folder.path().join("launch.json")).expect("it is one");
    let seeds = file.launches(&many).next().expect("a launch").expect("it runs").seeds.expect("several");
    assert!(seeds.failing.is_empty() && seeds.differing.is_empty(), "{seeds:?}");
}
