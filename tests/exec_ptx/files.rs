//! Launch files.

use std::fs;
use std::path::Path;

use cutemplate::exec::ptx::{ErrorKind, run_file};

const SCALE: &str = include_str!("../data/scale.ptx");

fn npy(values: &[f32]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len());
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).expect("short").to_le_bytes());
    file.extend(header.bytes());
    file.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    file
}

fn folder(launch: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("writable");
    let x: Vec<f32> = (0..70_u16).map(f32::from).collect();
    write("k.ptx", SCALE.as_bytes());
    write("x.npy", &npy(&x));
    write("y.npy", &npy(&[f32::NAN; 70]));
    write("launch.json", launch.as_bytes());
    folder
}

fn launch(n: u32) -> String {
    format!(
        r#"{{"ptx": "k.ptx", "entry": "scale", "grid": [3], "block": [32], "cluster": [1], "dynamic_smem": 0, "args": [{{"npy": "x.npy"}},
        {{"npy": "y.npy", "out": "z.npy"}}, {{"f32": 0.5}}, {{"i32": {n}}}], "modes": ["bounds", "init", "races"]}}"#
    )
}

fn result(folder: &Path) -> f32 {
    let z = fs::read(folder.join("z.npy")).expect("written");
    f32::from_le_bytes(z[z.len() - 4..].try_into().expect("4 bytes"))
}

#[test]
fn a_launch_file_runs_and_writes_its_arrays() {
    let folder = folder(&launch(70));
    let reports = run_file(&folder.path().join("launch.json"), false).expect("it runs");
    assert!(reports[0].report.is_clean());
    assert_eq!(result(folder.path()), 34.5);
    // A list runs in order: the second reads what the first wrote.
    let second = launch(70).replace("x.npy", "z.npy");
    fs::write(folder.path().join("two.json"), format!("[{}, {second}]", launch(70))).expect("writable");
    assert_eq!(run_file(&folder.path().join("two.json"), false).expect("it runs").len(), 2);
    assert_eq!(result(folder.path()), 17.25);
}

#[test]
fn a_stray_of_one_element_is_a_finding() {
    let folder = folder(&launch(71));
    let reports = run_file(&folder.path().join("launch.json"), false).expect("it runs");
    let found = &reports[0].report.findings;
    assert!(found.iter().any(|f| f.to_string().contains(" at byte 280 of x[280 B]\n")), "{found:?}");
}

#[test]
fn malformed_files_are_refused() {
    let good = launch(70);
    for (from, to, what) in [
        ("\"entry\"", "\"entri\"", "unknown key"),
        ("\"scale\"", "\"skale\"", "no such entry"),
        ("k.ptx", "nothing.ptx", "cannot be read"),
        ("[32]", "[2048]", "1 to 1024 threads"),
        ("{\"f32\": 0.5}", "{\"f32\": 0.5, \"i32\": 1}", "argument"),
        ("{\"f32\": 0.5}", "{\"f64\": 0.5}", "does not fit its parameter"),
        ("{\"f32\": 0.5},", "", "fewer arguments"),
        ("\"races\"", "\"raises\"", "mode is unknown"),
        ("\"cluster\": [1]", "\"cluster\": [2]", "clusters"),
        ("\"npy\": \"x.npy\"", "\"npy\": \"k.ptx\"", "no .npy file"),
        ("]}", "", "no JSON"),
    ] {
        assert!(good.contains(from), "{from}");
        let folder = folder(&good.replacen(from, to, 1));
        let error = run_file(&folder.path().join("launch.json"), false).expect_err(what);
        assert!(error.to_string().contains(what), "{what}: {error}");
        assert!(!folder.path().join("z.npy").exists());
    }
    let error = run_file(Path::new("/nowhere/launch.json"), false).expect_err("no file");
    assert_eq!(error.kind, ErrorKind::File);
}
