//! Contract: blocks over sequences of several lengths are what NumPy computes of the step before, for each kind of sight.

#[path = "../../../tests/support/numpy.rs"]
mod numpy;

use std::process::{Command, Output};

/// Features, heads, heads of keys, hidden features and blocks.
const SIZES: &str = "96, 4, 2, 128, 2";
/// Longer than a tile of queries, of one token, and no multiple of a step of keys.
const LENGTHS: &str = "70, 1, 17, 33";

fn python(lines: &str, folder: &str) -> String {
    let imports = "import sys\nsys.path.insert(0, sys.argv[2])\nsys.dont_write_bytecode = True\nfrom embed import *";
    let text = format!("{imports}\nfolder = Path(sys.argv[1])\n{lines}");
    numpy::run(&text, &[folder, env!("CARGO_MANIFEST_DIR")])
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_embed")).args(arguments).output().expect("it runs")
}

fn embed(folder: &str, [causal, left, right]: [&str; 3]) {
    let output = run(&[folder, "4", "2", causal, left, right]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn check(folder: &str, [causal, left, right]: [&str; 3]) -> String {
    python(&format!("print('returns', check(folder, 4, 2, {causal}, {left}, {right}))"), folder)
}

#[test]
fn every_sight_is_right_and_another_one_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    python(&format!("make(folder, {SIZES}, {LENGTHS})"), path);
    let all = [["0", "-1", "-1"], ["1", "-1", "-1"], ["0", "9", "20"], ["1", "24", "3"]];
    for sight in all {
        embed(path, sight);
        for other in all {
            let told = check(path, other);
            assert_eq!(told.ends_with("returns 0\n"), sight == other, "{sight:?}, checked as {other:?}: {told}");
            let mixed = told.lines().find(|line| line.starts_with("0_mixed: ")).expect("a step");
            assert_eq!(mixed.starts_with("0_mixed: 0 of "), sight == other, "{mixed}");
        }
    }
    // Slopes and starts that are not those of the launch.
    for (file, instead) in [("slopes", "a[:] = 0"), ("starts", "a[1] -= 3")] {
        let name = folder.path().join(format!("{file}.npy"));
        let kept = std::fs::read(&name).expect("it was made");
        python(&format!("a = np.load(folder / '{file}.npy')\n{instead}\nnp.save(folder / '{file}.npy', a)"), path);
        let told = check(path, all[3]);
        assert!(told.ends_with("returns 1\n") && !told.contains("0_mixed: 0 of "), "{file}: {told}");
        std::fs::write(name, kept).expect("writable");
    }
    assert!(check(path, all[3]).ends_with("returns 0\n"));
}

/// A sequence has the same embedding alone and beside others.
#[test]
fn sequences_do_not_see_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let sight = ["0", "-1", "-1"];
    python(&format!("make(folder, {SIZES}, {LENGTHS})"), path);
    embed(path, sight);
    let alone = "kept = np.load(folder / 'embeddings.npy')[2]\nnp.save(folder / 'kept.npy', kept)\n\
                 np.save(folder / 'ids.npy', np.load(folder / 'ids.npy')[71:88])\n\
                 np.save(folder / 'starts.npy', np.array([0, 17], np.int32))";
    python(alone, path);
    embed(path, sight);
    let same = "print((np.load(folder / 'embeddings.npy')[0] == np.load(folder / 'kept.npy')).all())";
    assert_eq!(python(same, path), "True\n");
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(refused(&[]), "usage: embed FOLDER HEADS KEY_HEADS CAUSAL LEFT RIGHT\n");
    assert!(refused(&[path, "4", "2", "0", "-1", "-1"]).contains("table.npy"));
    python("make(folder, 96, 4, 2, 128, 2, 3, 2)", path);
    let found = refused(&[path, "4", "3", "0", "-1", "-1"]);
    assert!(found.contains("found 4 heads and 3 of keys, required a multiple of them"), "{found}");
    let found = refused(&[path, "8", "2", "0", "-1", "-1"]);
    assert!(found.contains("qkv_weights.npy: found [2, 96, 256], required [2, 96, 384]"), "{found}");
    for starts in ["[0, 3, 3, 5]", "[1, 5]", "[0, 4]", "[0, 6]", "[]"] {
        python(&format!("np.save(folder / 'starts.npy', np.array({starts}, np.int32))"), path);
        let found = refused(&[path, "4", "2", "0", "-1", "-1"]);
        assert!(
            found.contains("starts.npy: found") && found.contains("required rising numbers from 0 to 5"),
            "{found}"
        );
    }
}
