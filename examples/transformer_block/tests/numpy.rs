//! Contract: every step of the forward pass is what NumPy computes of the step before, within the bounds that `block.py` argues.

#[path = "../../../tests/support/numpy.rs"]
mod numpy;

use std::path::Path;
use std::process::Command;

/// The script without its last lines, which read a command line.
fn definitions() -> &'static str {
    include_str!("../block.py").split_once("if __name__").expect("it has a main").0
}

/// What the script's check prints, and returns: 0 where all is right.
fn check(folder: &str) -> String {
    numpy::run(&format!("{}\nprint('returns', check(Path(sys.argv[1]), 4))", definitions()), &[folder])
}

/// Whether a step is wrong by this text.
fn is_wrong(told: &str, step: &str) -> bool {
    let line = told.lines().find(|line| line.starts_with(&format!("{step}: "))).unwrap_or_else(|| panic!("{told}"));
    !line.starts_with(&format!("{step}: 0 of "))
}

#[test]
fn every_step_is_right_and_what_is_wrong_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let make = format!("{}\nmake(Path(sys.argv[1]), 64, 128, 4, 512)", definitions());
    numpy::run(&make, &[path]);
    let output = Command::new(env!("CARGO_BIN_EXE_transformer_block")).args([path, "4"]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = check(path);
    assert!(told.ends_with("returns 0\n"), "{told}");
    for (step, instead, wrong) in [
        // A step that another's numbers replace is wrong, and so is what comes of them.
        ("key", "value", &["key", "parts"][..]),
        ("mixed", "value", &["mixed", "x1"]),
        ("x1", "mixed", &["x1", "hidden_normal", "y"]),
        ("y", "x1", &["y"]),
    ] {
        let file = |name: &str| Path::new(path).join(format!("{name}.npy"));
        let kept = std::fs::read(file(step)).expect("it was written");
        std::fs::copy(file(instead), file(step)).expect("copied");
        let told = check(path);
        assert!(told.ends_with("returns 1\n"), "{told}");
        for name in ["normal", "query", "key", "value", "parts", "mixed", "x1", "hidden_normal", "hidden", "y"] {
            assert_eq!(is_wrong(&told, name), wrong.contains(&name), "{step} is {instead}, {name}: {told}");
        }
        std::fs::write(file(step), kept).expect("writable");
    }
}

/// exp of the scores alone would be infinite in f32.
#[test]
fn large_queries_leave_no_nan() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let make = format!(
        "{}\nfolder = Path(sys.argv[1])\nmake(folder, 33, 64, 4, 64)\n\
         for part in ('weights', 'bias'):\n    file = folder / f'query_{{part}}.npy'\n    \
         np.save(file, (200 * np.load(file)).astype(np.float16))\n",
        definitions()
    );
    numpy::run(&make, &[path]);
    let output = Command::new(env!("CARGO_BIN_EXE_transformer_block")).args([path, "4"]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let greatest = format!(
        "{}\nload = lambda name: split(Bounded(np.load(Path(sys.argv[1]) / (name + '.npy')).astype(np.float64)), 4).value\n\
         print((load('query') @ load('key').transpose(0, 2, 1) / 4).max() > 200)",
        definitions()
    );
    assert_eq!(numpy::run(&greatest, &[path]), "True\n");
    let told = check(path);
    assert!(told.ends_with("returns 0\n"), "{told}");
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_transformer_block")).args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(run(&[]), "usage: transformer_block FOLDER HEADS\n");
    assert!(run(&[path, "4"]).contains("x.npy"));
    let make = format!("{}\nmake(Path(sys.argv[1]), 8, 24, 4, 32)", definitions());
    numpy::run(&make, &[path]);
    assert!(run(&[path, "5"]).contains("found 24 features and 5 heads, required as many for each head"));
    std::fs::copy(folder.path().join("query_bias.npy"), folder.path().join("out_weights.npy")).expect("copied");
    assert!(run(&[path, "4"]).contains("out_weights.npy: found [24], required [24, 24]"));
}
