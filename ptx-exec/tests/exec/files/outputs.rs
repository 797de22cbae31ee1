//! Outputs: one file for each, and no output replaces an input of a launch.

use std::fs;

use super::{elements, error_of, folder, launch, run};

#[test]
fn nothing_is_written_over_an_input() {
    let good = launch(70);
    let folder = folder(&good);
    let before: Vec<Vec<u8>> =
        ["k.ptx", "x.npy", "y.npy"].map(|name| fs::read(folder.path().join(name)).expect("there")).to_vec();
    let inside = folder.path().file_name().expect("named").to_str().expect("UTF-8").to_owned();
    let mut names = vec!["x.npy", "y.npy", "k.ptx", "launch.json", "./x.npy", "nowhere/z.npy", ".", "x.npy/z.npy"];
    let around = format!("../{inside}/x.npy");
    names.push(&around);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("x.npy", folder.path().join("link.npy")).expect("a link");
        names.push("link.npy");
    }
    for name in names {
        let e = error_of(&folder, &good.replace("\"z.npy\"", &format!("{name:?}")));
        assert!(
            e.contains("`args[1].out`") && (e.contains("over an input") || e.contains("cannot be written")),
            "{name}: {e}"
        );
    }
    let after: Vec<Vec<u8>> =
        ["k.ptx", "x.npy", "y.npy"].map(|name| fs::read(folder.path().join(name)).expect("there")).to_vec();
    assert!(before == after);
}

#[test]
fn two_outputs_are_two_files() {
    let good = launch(70);
    let folder = folder(&good);
    for (from, to) in [
        (r#"{"npy": "x.npy"}"#, r#"{"npy": "x.npy", "out": "z.npy"}"#),
        (r#"{"npy": "x.npy"}"#, r#"{"npy": "x.npy", "out": "./z.npy"}"#),
        (r#""modes""#, r#""buffers": {"b": {"npy": "x.npy", "out": "z.npy"}}, "modes""#),
        (r#""modes""#, r#""variables": {"b": {"out": "z.npy"}}, "modes""#),
    ] {
        let e = error_of(&folder, &good.replacen(from, to, 1));
        assert!(e.contains("are one file") && e.contains("z.npy"), "{e}");
    }
    // Equal arguments are two buffers, and the file keeps the last.
    let same = good.replacen(r#"{"npy": "x.npy"}"#, r#"{"npy": "y.npy", "out": "z.npy"}"#, 1);
    let report = run(&folder, &same).expect("it runs").remove(0);
    assert!(
        report.notes.iter().any(|note| note.contains("`args[0].out` and `args[1].out`: it keeps what the last")),
        "{:?}",
        report.notes
    );
    assert_eq!(report.written.len(), 1);
}

/// A list may replace its own outputs, but not its inputs.
#[test]
fn a_list_writes_over_its_own_files_alone() {
    let folder = folder("{}");
    let again = launch(70).replace("x.npy", "z.npy");
    run(&folder, &format!("[{}, {again}]", launch(70))).expect("it runs");
    assert_eq!(elements(&folder, "z.npy")[276..], 17.25_f32.to_le_bytes());
    // Now z.npy is there before the first launch, which reads it.
    let e =
        error_of(&folder, &format!("[{}, {}]", again.replace("\"out\": \"z.npy\"", "\"out\": \"w.npy\""), launch(70)));
    assert!(e.contains("`[1].args[1].out` is written over an input") && e.contains("`[0].args[0].npy`"), "{e}");
}
