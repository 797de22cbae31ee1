//! NumPy for tests: the system's, or a pinned one, installed once for this target folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Wheels that exist for every Python from 3.9 on.
const PINNED: &[&str] = &[
    "numpy==2.0.2; python_version < '3.10'",
    "numpy==2.2.6; python_version >= '3.10' and python_version < '3.13'",
    "numpy==2.3.4; python_version >= '3.13'",
    "ml_dtypes==0.5.3",
];

/// Where the pinned one is installed; part of the path is the pin, so that another pin is another folder.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("numpy-2-ml_dtypes-0.5.3")
}

fn python(arguments: &[&str], with: Option<&Path>) -> Output {
    let mut command = Command::new("python3");
    command.args(arguments).env_remove("PYTHONPATH");
    if let Some(folder) = with {
        command.env("PYTHONPATH", folder);
    }
    command.output().expect("python3 runs")
}

fn has_numpy(with: Option<&Path>) -> bool {
    python(&["-c", "import numpy, ml_dtypes"], with).status.success()
}

/// The folder for `PYTHONPATH`, empty for the system's own.
fn find() -> PathBuf {
    if has_numpy(None) {
        return PathBuf::new();
    }
    let folder = folder();
    if has_numpy(Some(&folder)) {
        return folder;
    }
    let fetches = std::env::var_os("CUTEMPLATE_FETCH").is_some_and(|v| v == "1");
    assert!(fetches, "found no NumPy with ml_dtypes, required them, or CUTEMPLATE_FETCH=1, which fetches them");
    let beside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder in target");
    let target = beside.path().join("packages");
    let target_text = target.to_str().expect("UTF-8");
    let mut arguments = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"];
    arguments.extend(["--target", target_text]);
    arguments.extend(PINNED);
    let pip = python(&arguments, None);
    assert!(pip.status.success(), "pip: {}", String::from_utf8_lossy(&pip.stderr));
    // Another process may have been faster.
    if std::fs::rename(&target, &folder).is_err() {
        assert!(has_numpy(Some(&folder)), "cannot move NumPy to {}", folder.display());
    }
    folder
}

/// Runs a script with `numpy` and `ml_dtypes`, and returns what it prints.
pub(crate) fn run(script: &str, arguments: &[&str]) -> String {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(find);
    let all: Vec<&str> = ["-c", script].into_iter().chain(arguments.iter().copied()).collect();
    let output = python(&all, Some(folder).filter(|f| !f.as_os_str().is_empty()).map(PathBuf::as_path));
    assert!(output.status.success(), "python3: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
