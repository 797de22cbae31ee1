//! Kernels as Triton compiles them, from `kernels.py`: products of tensor cores, attention, softmax, reductions and atomics.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cutemplate::exec::ptx::run_file;
use cutlass_sys::Finder;
use half::f16;
use serde_json::{Value, json};

use super::{downloaded, values};

/// A folder with what the script writes.
fn made() -> PathBuf {
    let (requirements, script) = (include_str!("requirements.txt"), include_str!("kernels.py"));
    // Another script makes others.
    let key =
        format!("{requirements}# {}\n", script.bytes().fold(0_u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into())));
    let make = |folder: &Path| {
        let python = Finder::from_env().python().expect("python3").path;
        let file = folder.join("kernels.py");
        fs::write(&file, script).expect("writable");
        let packages = downloaded("triton", requirements, install);
        let status = Command::new(python)
            .arg(&file)
            .arg(folder)
            .env("PYTHONPATH", packages.join("packages"))
            .env("TRITON_CACHE_DIR", folder.join("cache"))
            .status();
        assert!(status.expect("python3 runs").success(), "Triton does not compile the kernels");
    };
    super::kept("kernels", &key, make)
}

fn install(folder: &Path) {
    let python = Finder::from_env().python().expect("python3").path;
    let files = fs::read_dir(folder).expect("readable").flatten().map(|e| e.path());
    let wheels: Vec<PathBuf> = files.filter(|f| f.extension().is_some_and(|e| e == "whl")).collect();
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target"]);
    let status = pip.arg(folder.join("packages")).args(&wheels).status().expect("pip runs");
    assert!(status.success(), "the wheels cannot be installed");
    wheels.iter().for_each(|wheel| fs::remove_file(wheel).expect("it is there"));
}

/// The numbers of an array that NumPy saved.
fn numbers(path: &Path, ty: &str) -> Vec<f64> {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let data = &bytes[header..];
    match ty {
        "float16" => values(data, |b| f16::from_le_bytes(b).to_f64()),
        "float32" => values(data, |b| f32::from_le_bytes(b).into()),
        "int32" => values(data, |b| i32::from_le_bytes(b).into()),
        _ => panic!("{ty} is no type of an output"),
    }
}

fn is_right(folder: &Path, program: &Value) -> Result<(), String> {
    let within = program["within"].as_f64().expect("a number");
    for out in program["outs"].as_array().expect("a list") {
        let text = |key: &str| out[key].as_str().expect("a word");
        let read = |key: &str| numbers(&folder.join(text(key)), text("type"));
        let (found, expected) = (read("out"), read("expected"));
        let far = |(f, e): (&f64, &f64)| (f - e).abs() > within || f.is_nan() != e.is_nan();
        if found.len() != expected.len() {
            return Err(format!("{}: {} elements", text("out"), found.len()));
        }
        if let Some(at) = found.iter().zip(&expected).position(far) {
            return Err(format!("{}: element {at} is {}, and has to be {}", text("out"), found[at], expected[at]));
        }
    }
    Ok(())
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn kernels_of_triton_are_right_and_silent() {
    let folder = made();
    let listed = fs::read_to_string(folder.join("programs.json")).expect("written");
    let listed: Vec<Value> = serde_json::from_str(&listed).expect("JSON");
    for program in &listed {
        let name = program["name"].as_str().expect("a name");
        println!("{name}");
        for (modes, seeds) in [(json!(["plain"]), 3), (json!(["bounds", "init"]), 1), (json!(["all"]), 4)] {
            for seed in 0..seeds {
                for cores in ["fast", "hopper"] {
                    let mut launch = program["launch"].clone();
                    launch["modes"] = modes.clone();
                    launch["seed"] = seed.into();
                    launch["tensor_cores"] = cores.into();
                    let file = folder.join("launch.json");
                    fs::write(&file, launch.to_string()).expect("writable");
                    let reports = run_file(&file, false).unwrap_or_else(|e| panic!("{name}: {e}"));
                    assert!(reports[0].report.is_clean(), "{name}, {modes}, seed {seed}\n{}", reports[0].report);
                    is_right(&folder, program).unwrap_or_else(|e| panic!("{name}, {modes}, seed {seed}, {cores}: {e}"));
                }
            }
        }
    }
    println!("{} kernels", listed.len());
}
