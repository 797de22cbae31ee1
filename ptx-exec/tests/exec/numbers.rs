//! Every opcode form against results of an H200.
//!
//! `data/h200_ptx.bin` has an entry for each form of [`forms`], in order. For exact forms it holds a digest of each of the 64 warps, and
//! the first 22 results, which are edge cases. For other forms it holds all results, 32 bits each. `PTX_EXEC_FORMS=folder` writes the
//! programs and operands to a folder, for a machine with a GPU. If the folder has that machine's `results.bin`, it makes the data file.

use std::fs;
use std::path::Path;

use ptx_exec::{Module, TensorCores};

use crate::forms::{ALL_INPUTS, Compare, Form, LANES, PLANES, forms, module, operand};

const WARPS: usize = LANES / 32;
const EDGES: usize = 22;

fn digest(results: &[u64]) -> u32 {
    // FNV-1a, over words.
    let mix = |h: u64, v: &u64| (h ^ v).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    let h = results.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    (h ^ h >> 32) as u32
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("8 bytes"))).collect()
}

/// The bytes that the file keeps of a form's results.
fn kept(form: &Form, results: &[u64]) -> Vec<u8> {
    if form.compare != Compare::Exact {
        return results.iter().flat_map(|r| (*r as u32).to_le_bytes()).collect();
    }
    let warp = |w: usize| -> Vec<u64> {
        (0..form.results).flat_map(|r| results[r * LANES + w * 32..][..32].to_vec()).collect()
    };
    let mut kept: Vec<u8> = (0..WARPS).flat_map(|w| digest(&warp(w)).to_le_bytes()).collect();
    kept.extend(results[..EDGES].iter().flat_map(|r| r.to_le_bytes()));
    kept
}

fn inputs(form: &Form) -> Vec<u8> {
    (0..PLANES).flat_map(|p| (0..LANES).flat_map(move |l| operand(form.inputs, p, l).to_le_bytes())).collect()
}

fn compute(module: &Module, number: usize, form: &Form) -> Vec<u64> {
    compute_on(module, number, form, TensorCores::Hopper, None)
}

/// A form's results with a chip's sums, on a number of host threads, or one for each core.
pub(crate) fn compute_on(
    module: &Module,
    number: usize,
    form: &Form,
    cores: TensorCores,
    workers: Option<usize>,
) -> Vec<u64> {
    let input = inputs(form);
    let mut out = vec![0; LANES * 8 * form.results];
    let launch = module.launch(&format!("f{number}")).unwrap_or_else(|e| panic!("{}: {e}", form.name));
    let launch = launch.grid(&[16]).block(&[128]).output("out", &mut out).input("in", &input);
    let launch = workers.into_iter().fold(launch.tensor_cores(cores), |launch, n| launch.workers(n));
    let report = launch.run().unwrap_or_else(|e| panic!("{}: {e}", form.name));
    assert!(report.is_clean(), "{}: {}", form.name, report.findings[0]);
    words(&out)
}

/// Units in the last place between two floats.
fn ulps(a: u32, b: u32) -> u64 {
    let key = |v: u32| if v as i32 >= 0 { i64::from(v) } else { -i64::from(v & 0x7fff_ffff) };
    key(a).abs_diff(key(b))
}

fn emit(folder: &Path, forms: &[Form], data: &Path) {
    fs::create_dir_all(folder).expect("writable");
    fs::write(folder.join("forms.ptx"), module(forms)).expect("writable");
    let line = |(i, f): (usize, &Form)| format!("f{i} {} {} {}\n", f.inputs as u32, f.results, f.name);
    fs::write(folder.join("forms.txt"), forms.iter().enumerate().map(line).collect::<String>()).expect("writable");
    for k in ALL_INPUTS {
        let bytes: Vec<u8> =
            (0..PLANES).flat_map(|p| (0..LANES).flat_map(move |l| operand(k, p, l).to_le_bytes())).collect();
        fs::write(folder.join(format!("in_{}.bin", k as u32)), bytes).expect("writable");
    }
    if let Ok(results) = fs::read(folder.join("results.bin")) {
        let results = words(&results);
        let mut at = 0;
        let mut file = Vec::new();
        for form in forms {
            file.extend(kept(form, &results[at..at + LANES * form.results]));
            at += LANES * form.results;
        }
        fs::write(data, file).expect("writable");
    }
}

#[test]
fn every_form_computes_what_an_h200_computed() {
    let forms = forms();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/h200_ptx.bin");
    if let Some(folder) = std::env::var_os("PTX_EXEC_FORMS") {
        emit(Path::new(&folder), &forms, &data);
    }
    let truth = fs::read(&data).expect("data/h200_ptx.bin");
    let module = Module::parse(module(&forms)).expect("PTX");
    let mut at = 0;
    let (mut wrong, mut furthest) = (Vec::new(), Vec::new());
    for (number, form) in forms.iter().enumerate() {
        let results = compute(&module, number, form);
        let mine = kept(form, &results);
        let theirs = &truth[at..at + mine.len()];
        at += mine.len();
        match form.compare {
            Compare::Exact if mine != theirs => {
                let edge = (0..EDGES).find(|i| mine[WARPS * 4 + i * 8..][..8] != theirs[WARPS * 4 + i * 8..][..8]);
                let warps = (0..WARPS).filter(|w| mine[w * 4..][..4] != theirs[w * 4..][..4]).count();
                wrong.push(format!("{}: {warps} warps differ, of the edge cases lane {edge:?}", form.name));
            }
            Compare::Exact => {}
            Compare::Within(most, absolute) => {
                let pairs = mine.chunks_exact(4).zip(theirs.chunks_exact(4));
                let mut far = 0;
                for (lane, (a, b)) in pairs.enumerate() {
                    let [a, b] = [a, b].map(|v| u32::from_le_bytes(v.try_into().expect("4 bytes")));
                    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
                    if x.is_nan() && y.is_nan() || f64::from((x - y).abs()) <= absolute {
                        continue;
                    }
                    far = far.max(ulps(a, b));
                    if ulps(a, b) > u64::from(most) {
                        wrong.push(format!("{} {:?}: lane {lane}: {x:e} and {y:e}", form.name, form.inputs));
                    }
                }
                furthest.push(format!("{} {:?}: {far} ulp of {most}", form.name, form.inputs));
            }
        }
    }
    println!("{} forms of {LANES} lanes; approximate ones:\n{}", forms.len(), furthest.join("\n"));
    assert_eq!(at, truth.len(), "the forms are not those of the data");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_changed_result_is_noticed() {
    let forms = forms();
    let module = Module::parse(module(&forms)).expect("PTX");
    let number = forms.iter().position(|f| f.name == "add.rn.f32").expect("a form");
    let mut results = compute(&module, number, &forms[number]);
    let before = kept(&forms[number], &results);
    results[1234] ^= 1;
    assert_ne!(kept(&forms[number], &results), before);
}
