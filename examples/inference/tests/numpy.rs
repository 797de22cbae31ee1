//! Contract: every step of the forward pass is what NumPy computes of the step before, within the bounds that `decoder.py` argues.

#[path = "../../../tests/support/numpy.rs"]
mod numpy;

use std::path::Path;
use std::process::{Command, Output};

/// Tokens, vocabulary, features, heads, heads of keys, experts, and hidden features.
const SIZES: &str = "50, 496, 160, 4, 2, 4, 96";
const STEPS: [&str; 28] = [
    "x",
    "normal",
    "normal_scales",
    "normal_8",
    "qkv",
    "turned",
    "mixed",
    "mixed_scales",
    "mixed_8",
    "attended",
    "x1",
    "hidden_normal",
    "router",
    "expert",
    "weight",
    "token",
    "slot",
    "ends",
    "gate_up",
    "hidden",
    "down",
    "combined",
    "y",
    "final_normal",
    "final_normal_scales",
    "final_normal_8",
    "logits",
    "log_probabilities",
];

/// Runs lines of Python behind the script without its last ones, which read a command line.
fn python(lines: &str, folder: &str) -> String {
    let definitions = include_str!("../decoder.py").split_once("if __name__").expect("it has a main").0;
    numpy::run(&format!("{definitions}\nfolder = Path(sys.argv[1])\n{lines}"), &[folder])
}

/// What the script's check prints, and returns: 0 where all is right.
fn check(folder: &str) -> String {
    python("print('returns', check(folder, 4, 2))", folder)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_inference")).args(arguments).output().expect("it runs")
}

/// A forward pass that succeeds, and what it prints.
fn forward(folder: &str) -> String {
    let output = run(&[folder, "4", "2"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
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
    python(&format!("make(folder, {SIZES})"), path);
    let said = forward(path);
    let next = python("print(np.load(folder / 'log_probabilities.npy')[-1].argmax())", path);
    assert!(said.starts_with(&format!("next: token {}, with probability 0.", next.trim())), "{said}");
    let told = check(path);
    assert!(told.ends_with("returns 0\n"), "{told}");
    // A step that another's numbers replace is wrong, and so is what comes of them.
    for (step, instead, wrong) in [
        ("x", "y", &["x", "normal", "x1", "hidden_normal"][..]),
        ("normal_8", "final_normal_8", &["normal_8", "qkv"]),
        ("normal_scales", "mixed_scales", &["normal_scales", "normal_8", "qkv"]),
        ("turned", "mixed", &["turned", "mixed"]),
        ("attended", "combined", &["attended", "x1", "hidden_normal"]),
        ("expert", "token", &["expert", "token", "slot", "ends"]),
        ("weight", "x", &["weight", "combined"]),
        ("slot", "expert", &["slot", "combined"]),
        ("ends", "token", &["ends", "gate_up", "down"]),
        ("y", "x1", &["y"]),
        ("logits", "gate_up", &["logits", "log_probabilities"]),
    ] {
        let file = |name: &str| Path::new(path).join(format!("{name}.npy"));
        let kept = std::fs::read(file(step)).expect("it was written");
        // Of other columns, the first ones, in the type that the step has.
        let replace = format!(
            "a, b = (np.load(folder / (name + '.npy')) for name in ('{step}', '{instead}'))\n\
             np.save(folder / '{step}.npy', np.resize(b, a.shape).astype(a.dtype))"
        );
        python(&replace, path);
        let told = check(path);
        assert!(told.ends_with("returns 1\n"), "{told}");
        for name in STEPS {
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
    let large = format!(
        "make(folder, {SIZES})\nfile = folder / 'qkv_weight_scales.npy'\nscales = np.load(file)\n\
         scales[: 4 * HEAD // BLOCK] *= 200\nnp.save(file, scales)"
    );
    python(&large, path);
    forward(path);
    let greatest = "turned = np.load(folder / 'turned.npy').astype(np.float64)\n\
                    print((turned[:, :HEAD] @ turned[:, 4 * HEAD : 5 * HEAD].T).max() / np.sqrt(HEAD) > 200)";
    assert_eq!(python(greatest, path), "True\n");
    let told = check(path);
    assert!(told.ends_with("returns 0\n"), "{told}");
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
    assert_eq!(refused(&[]), "usage: inference FOLDER HEADS KEY_HEADS\n");
    assert!(refused(&[path, "4", "2"]).contains("ids.npy"));
    python("make(folder, 3, 40, 32, 4, 2, 3, 64)", path);
    assert!(refused(&[path, "4", "3"]).contains("found 4 heads and 3 of keys, required a multiple of them"));
    assert!(refused(&[path, "8", "2"]).contains("qkv_weights.npy: found [256, 32], required [384, 32]"));
    // A token outside of the vocabulary has no probabilities, and those that see it have none.
    python("np.save(folder / 'ids.npy', np.array([1, 40, 2], dtype=np.int32))", path);
    forward(path);
    let nan = "print(np.isnan(np.load(folder / 'log_probabilities.npy')).any(-1)[1:])";
    assert_eq!(python(nan, path), "[ True  True]\n");
}
