//! What memory has to hold after a launch: arrays of any type of numbers, within tolerances, with each seed.

use std::fs;

use ptx_exec::{Difference, FileReport, LaunchFile, RunOptions};

use super::{error_of, folder, launch, run};

/// A `.npy` file of elements of this type, as bytes.
fn array(descr: &str, shape: &str, order: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).expect("short").to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

/// Halves of 0 to 69, which `scale` writes; one of them changed.
fn halves(changed: Option<(usize, f32)>) -> Vec<f32> {
    let mut all: Vec<f32> = (0..70_u16).map(|i| f32::from(i) * 0.5).collect();
    if let Some((at, value)) = changed {
        all[at] = value;
    }
    all
}

fn bytes<const N: usize, T: Copy>(values: &[T], of: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| of(*value)).collect()
}

/// The launch of `scale`, whose result has to be this array.
fn expecting(rest: &str) -> String {
    launch(70).replace(r#""out": "z.npy""#, &format!(r#""expect": {{"npy": "want.npy"{rest}}}"#))
}

/// The differences of a launch with that expected array.
fn differences(want: &[u8], rest: &str) -> Vec<Difference> {
    let folder = folder("{}");
    fs::write(folder.path().join("want.npy"), want).expect("writable");
    let reports = run(&folder, &expecting(rest)).expect("it runs");
    assert!(reports[0].report.is_clean() && reports[0].written.is_empty());
    assert_eq!(reports[0].is_right(), reports[0].differences.is_empty());
    reports[0].differences.clone()
}

fn of_f32(values: &[f32]) -> Vec<u8> {
    array("<f4", "70,", "False", &bytes(values, f32::to_le_bytes))
}

#[test]
fn an_element_that_differs_is_named() {
    assert_eq!(differences(&of_f32(&halves(None)), ""), []);
    let found = differences(&of_f32(&halves(Some((5, 2.25)))), "");
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.name.as_str(), one.path.as_str(), &one.index[..]), ("y", "args[1]", &[5][..]));
    assert_eq!((one.count, one.elements, one.largest), (1, 70, 0.25));
    assert_eq!((one.found.as_str(), one.required.as_str()), ("2.5", "2.25"));
    let text = one.to_string();
    assert!(text.starts_with("error[exec-difference]: y is not what the launch file expects\n"), "{text}");
    // Coordinates are those of the expected array.
    let rows = array("<f4", "7, 10", "False", &bytes(&halves(Some((23, f32::NAN))), f32::to_le_bytes));
    let found = differences(&rows, "");
    assert_eq!((&found[0].index[..], found[0].largest), (&[2, 3][..], f64::INFINITY));
}

#[test]
fn tolerances_are_absolute_and_relative() {
    let near = of_f32(&halves(Some((40, 20.125))));
    assert_eq!(differences(&near, r#", "absolute": 0.125"#), []);
    assert_eq!(differences(&near, r#", "absolute": 0.1249"#).len(), 1);
    assert_eq!(differences(&near, r#", "relative": 0.00622"#), []);
    assert_eq!(differences(&near, r#", "relative": 0.0062"#).len(), 1);
    assert_eq!(differences(&near, r#", "relative": 0.0062, "absolute": 0.001"#), []);
    // No tolerance makes a number of an infinity, or of a NaN.
    assert_eq!(differences(&of_f32(&halves(Some((40, f32::INFINITY)))), r#", "relative": 1e300"#).len(), 1);
    assert_eq!(differences(&of_f32(&halves(Some((0, -0.0)))), ""), []);
}

#[test]
fn arrays_of_other_types_are_compared_by_value() {
    let wide: Vec<f64> = halves(None).into_iter().map(f64::from).collect();
    assert_eq!(differences(&array("<f8", "70,", "False", &bytes(&wide, f64::to_le_bytes)), ""), []);
    let whole: Vec<i8> = (0..70).map(|i| i / 2).collect();
    let found = differences(&array("|i1", "70,", "False", &bytes(&whole, i8::to_le_bytes)), "");
    assert_eq!((found[0].count, found[0].largest), (35, 0.5));
    // As bits, with the type said: two numbers of f16 lie in each f32.
    let bits: Vec<u16> = halves(None).iter().flat_map(|v| [v.to_bits() as u16, (v.to_bits() >> 16) as u16]).collect();
    assert_eq!(differences(&array("<u2", "140,", "False", &bytes(&bits, u16::to_le_bytes)), r#", "dtype": "u16""#), []);
    let upper: Vec<u8> = bytes(&bits, u16::to_le_bytes);
    assert_eq!(differences(&array("|V2", "140,", "False", &upper), r#", "dtype": "bf16""#), []);
    let mut wrong = upper.clone();
    wrong[2 * 140 - 1] ^= 0x80;
    let found = differences(&array("|V2", "140,", "False", &wrong), r#", "dtype": "bf16""#);
    assert_eq!((found[0].found.as_str(), found[0].required.as_str()), ("34.5", "-34.5"));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let floats = bytes(&halves(None), f32::to_le_bytes);
    let order = array("<f4", "7, 10", "True", &floats);
    for (want, rest, what) in [
        (array("<f4", "69,", "False", &floats[4..]), "", "`args[1].expect` does not fit the memory"),
        (array("<f4", "70,", "False", &floats), r#", "dtype": "u16""#, "required: 140: 280 B of elements of 2 B"),
        (array("|V4", "70,", "False", &floats), "", "`args[1].expect` has elements of another kind"),
        (array("<f4", "70,", "False", &floats), r#", "absolute": -1"#, "a tolerance that no element meets"),
        (array("<f4", "70,", "False", &floats), r#", "relative": "nan""#, "a tolerance that no element meets"),
        (array("<f4", "70,", "False", &floats), r#", "within": 1"#, "unknown key"),
        (array("|O8", "70,", "False", &floats), "", "elements of a type that kernels do not read"),
        (order.clone(), "", ""),
    ] {
        let folder = folder("{}");
        fs::write(folder.path().join("want.npy"), &want).expect("writable");
        // The memory's own array has two modes, too, in the other order.
        if what.is_empty() {
            fs::write(folder.path().join("y.npy"), array("<f4", "7, 10", "False", &floats)).expect("writable");
        }
        let error = error_of(&folder, &expecting(rest));
        let what = if what.is_empty() { "`args[1].expect` has another order of elements" } else { what };
        assert!(error.contains(what), "{what}: {error}");
    }
    // An output may not be written over an expected array.
    let folder = folder("{}");
    fs::write(folder.path().join("want.npy"), of_f32(&halves(None))).expect("writable");
    let text = expecting("").replace(r#""expect""#, r#""out": "want.npy", "expect""#);
    assert!(error_of(&folder, &text).contains("is written over an input"));
}

/// The file's memory is compared behind the last launch; a launch that differs ends the run.
#[test]
fn memory_that_passes_on_is_compared_at_the_end() {
    let folder = folder("{}");
    let quarters: Vec<f32> = halves(None).iter().map(|value| value * 0.5).collect();
    fs::write(folder.path().join("want.npy"), of_f32(&quarters)).expect("writable");
    fs::write(folder.path().join("half.npy"), of_f32(&halves(None))).expect("writable");
    let one = |from: &str| {
        let head = r#"{"ptx": "k.ptx", "entry": "scale", "grid": [3], "block": [32]"#;
        format!(r#"{head}, "args": [{from}, {{"of": "h"}}, {{"f32": 0.5}}, {{"i32": 70}}]}}"#)
    };
    let both = |first: &str| {
        let buffers = r#"{"h": {"scratch": 280, "expect": {"npy": "want.npy", "dtype": "f32"}}}"#;
        format!(r#"{{"buffers": {buffers}, "launches": [{}, {}]}}"#, one(first), one(r#"{"of": "h"}"#))
    };
    let right = |reports: Vec<FileReport>| reports.iter().map(FileReport::is_right).collect::<Vec<_>>();
    assert_eq!(right(run(&folder, &both(r#"{"npy": "x.npy"}"#)).expect("it runs")), [true, true]);
    assert_eq!(right(run(&folder, &both(r#"{"npy": "y.npy"}"#)).expect("it runs")), [true, false]);
    let input = r#"{"npy": "x.npy", "expect": {"npy": "half.npy"}}"#;
    assert_eq!(right(run(&folder, &both(input)).expect("it runs")), [false]);
}

/// Nothing is compared after a finding; and a seed that computes another result is named, with its difference.
#[test]
fn each_seed_is_compared() {
    let folder = folder("{}");
    fs::write(folder.path().join("want.npy"), of_f32(&halves(None))).expect("writable");
    let stray = run(&folder, &expecting("").replace("\"i32\": 70", "\"i32\": 71")).expect("it runs");
    assert!(!stray[0].report.is_clean() && stray[0].differences.is_empty());

    let text = r#"{"ptx": "p.ptx", "entry": "k", "grid": [1], "block": [128], "args": [{"scratch": 4, "expect": {"npy": "w.npy"}}]}"#;
    fs::write(folder.path().join("p.ptx"), super::seeds::ORDER.replace("TRAP", "")).expect("writable");
    fs::write(folder.path().join("w.npy"), array("<i4", "1,", "False", &3_i32.to_le_bytes())).expect("writable");
    fs::write(folder.path().join("launch.json"), text).expect("writable");
    let file = LaunchFile::read(&folder.path().join("launch.json")).expect("it is one");
    let many = RunOptions { seeds: 32, ..RunOptions::default() };
    let report = file.launches(&many).next().expect("a launch").expect("it runs");
    let seeds = report.seeds.clone().expect("several");
    assert!(!seeds.failing.is_empty() && seeds.failing.len() < 32, "{seeds:?}");
    assert_eq!((report.seed, report.is_right(), report.report.is_clean()), (seeds.failing[0], false, true));
    assert_eq!((report.differences[0].required.as_str(), report.differences[0].elements), ("3", 1));
}
