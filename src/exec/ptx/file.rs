//! Launch files: a launch, or a list of them, as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::{Error, ErrorKind};
use super::file_map::{self, Map as TensorMap};
use super::launch::{Buffer, Data, Modes, Placement, TensorCores};
use super::num::format::{BF16, F16};
use super::{Launch, Module};
use crate::exec::Report;

/// The largest file that is read.
const MOST: u64 = 16 << 30;

/// What came of one launch of a file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The entry.
    pub entry: String,
    /// What came of it.
    pub report: Report,
    /// The files that were written.
    pub written: Vec<PathBuf>,
}

pub(super) fn bad(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::File, what)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let fail = |e: std::io::Error| bad("a file cannot be read").found(format!("{}: {e}", path.display()));
    let bytes = fs::metadata(path).map_err(fail)?.len();
    if bytes > MOST {
        return Err(bad("a file is too large").found(format!("{}: {bytes} B", path.display())));
    }
    fs::read(path).map_err(fail)
}

impl Module {
    /// Reads a PTX file.
    ///
    /// # Errors
    /// The file cannot be read, or is no PTX.
    pub fn read(path: &Path) -> Result<Module, Error> {
        let text = String::from_utf8(read(path)?);
        Module::parse(text.map_err(|_| bad("a PTX file is no text").found(path.display().to_string()))?)
    }
}

/// A NumPy array: its header and its elements.
struct Array {
    header: Vec<u8>,
    data: Vec<u8>,
    out: Option<PathBuf>,
    name: String,
}

/// The format is NumPy's: `numpy.lib.format`.
fn array(path: &Path, out: Option<PathBuf>) -> Result<Array, Error> {
    let mut header = read(path)?;
    let fail =
        |what: &str| bad(what.to_owned()).found(path.display().to_string()).required("a file that numpy.save wrote");
    if !header.starts_with(b"\x93NUMPY") || header.len() < 12 {
        return Err(fail("a file is no .npy file"));
    }
    let (at, length) = match header[6] {
        1 => (10, usize::from(u16::from_le_bytes([header[8], header[9]]))),
        _ => (12, u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize),
    };
    if header.len() < at + length {
        return Err(fail("a .npy file ends in its header"));
    }
    let text = String::from_utf8_lossy(&header[at..at + length]).into_owned();
    let data = header.split_off(at + length);
    let (size, count) = shape(&text).ok_or_else(|| fail("the header of a .npy file cannot be read"))?;
    if size.checked_mul(count) != Some(data.len() as u64) {
        return Err(fail("a .npy file has another length than its header says"));
    }
    let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    Ok(Array { header, data, out, name })
}

/// Bytes of an element, and elements.
fn shape(header: &str) -> Option<(u64, u64)> {
    let descr = header.split("'descr':").nth(1)?.trim_start().strip_prefix('\'')?.split('\'').next()?;
    let size: u64 = descr.get(2..)?.parse().ok()?;
    if descr.starts_with('>') && size > 1 || !descr.is_ascii() {
        return None;
    }
    let shape = header.split("'shape':").nth(1)?.split_once('(')?.1.split_once(')')?.0;
    let mut count = 1_u64;
    for n in shape.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        count = count.checked_mul(n.parse().ok()?)?;
    }
    Some((size, count))
}

/// A parameter of a launch file.
enum Arg {
    Array(usize),
    Bytes(Vec<u8>),
    /// A tensor map, and the array of its memory where it is no other argument's.
    Map(TensorMap, Option<usize>),
}

fn float(v: &Value) -> Option<f64> {
    match v {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => s.parse().ok(),
        _ => None,
    }
}

fn argument(value: &Value, folder: &Path, arrays: &mut Vec<Array>) -> Result<Arg, Error> {
    let what = || {
        bad("an argument cannot be read")
            .found(value.to_string().chars().take(80).collect::<String>())
            .required("{\"npy\": file}, with \"out\": file where it is written, {\"tensor_map\": {..}}, or one of i8 to i64, u8 to u64, f16, bf16, f32, f64, bytes")
    };
    let object = value.as_object().ok_or_else(what)?;
    let mut memory = |object: &Map<String, Value>, file: &Value| {
        let path = folder.join(file.as_str().ok_or_else(what)?);
        let out = match object.get("out") {
            Some(out) => Some(folder.join(out.as_str().ok_or_else(what)?)),
            None => None,
        };
        arrays.push(array(&path, out)?);
        Ok(arrays.len() - 1)
    };
    if let Some(file) = object.get("npy") {
        if object.keys().any(|k| k != "npy" && k != "out") {
            return Err(what());
        }
        return memory(object, file).map(Arg::Array);
    }
    if let Some(Value::Object(map)) = object.get("tensor_map").filter(|_| object.len() == 1) {
        let own = map.get("npy").map(|file| memory(map, file)).transpose()?;
        return Ok(Arg::Map(file_map::read(map)?, own));
    }
    let mut items = object.iter();
    let (Some((key, v)), None) = (items.next(), items.next()) else { return Err(what()) };
    macro_rules! integer {
        ($t:ty, $get:ident) => {
            v.$get().and_then(|n| <$t>::try_from(n).ok()).map(|n| n.to_le_bytes().to_vec())
        };
    }
    let bytes = match key.as_str() {
        "i8" => integer!(i8, as_i64),
        "i16" => integer!(i16, as_i64),
        "i32" => integer!(i32, as_i64),
        "i64" => integer!(i64, as_i64),
        "u8" => integer!(u8, as_u64),
        "u16" => integer!(u16, as_u64),
        "u32" => integer!(u32, as_u64),
        "u64" => integer!(u64, as_u64),
        "f32" => float(v).map(|f| (f as f32).to_le_bytes().to_vec()),
        "f64" => float(v).map(|f| f.to_le_bytes().to_vec()),
        "f16" => float(v).map(|f| (F16.from_f64(f, 0, false) as u16).to_le_bytes().to_vec()),
        "bf16" => float(v).map(|f| (BF16.from_f64(f, 0, false) as u16).to_le_bytes().to_vec()),
        "bytes" => v.as_str().and_then(hex),
        _ => None,
    };
    bytes.map(Arg::Bytes).ok_or_else(what)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    digits.chunks(2).map(|p| u8::from_str_radix(core::str::from_utf8(p).ok()?, 16).ok()).collect()
}

const KEYS: [&str; 13] = [
    "ptx",
    "entry",
    "grid",
    "block",
    "cluster",
    "programmatic",
    "dynamic_smem",
    "args",
    "modes",
    "seed",
    "step_budget",
    "placement",
    "tensor_cores",
];

fn dimensions(object: &Map<String, Value>, key: &str) -> Result<Vec<u32>, Error> {
    let Some(value) = object.get(key) else { return Ok(vec![1]) };
    let all = value.as_array().filter(|a| (1..=3).contains(&a.len()));
    let all =
        all.and_then(|a| a.iter().map(|n| n.as_u64().and_then(|n| u32::try_from(n).ok())).collect::<Option<Vec<_>>>());
    all.ok_or_else(|| {
        bad(format!("`{key}` cannot be read")).found(value.to_string()).required("1 to 3 numbers, as [4, 2]")
    })
}

fn number(object: &Map<String, Value>, key: &str) -> Result<Option<u64>, Error> {
    match object.get(key) {
        None => Ok(None),
        Some(v) => v.as_u64().map(Some).ok_or_else(|| bad(format!("`{key}` is no number")).found(v.to_string())),
    }
}

fn text<'v>(object: &'v Map<String, Value>, key: &str) -> Result<&'v str, Error> {
    object
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| bad(format!("the launch has no `{key}`")).required("a string"))
}

fn modes(object: &Map<String, Value>) -> Result<Modes, Error> {
    let mut modes = Modes::PLAIN;
    for value in object.get("modes").and_then(Value::as_array).into_iter().flatten() {
        match value.as_str() {
            Some("plain") => {}
            Some("bounds") => modes.bounds = true,
            Some("init") => modes.init = true,
            Some("races") => modes.races = true,
            Some("all") => modes = Modes::ALL,
            _ => {
                return Err(bad("a mode is unknown")
                    .found(value.to_string())
                    .required("plain, bounds, init, races or all"));
            }
        }
    }
    Ok(modes)
}

fn settings<'a>(mut launch: Launch<'a>, object: &Map<String, Value>) -> Result<Launch<'a>, Error> {
    launch = launch.grid(&dimensions(object, "grid")?).block(&dimensions(object, "block")?).modes(modes(object)?);
    if object.contains_key("cluster") {
        launch = launch.cluster(&dimensions(object, "cluster")?);
    }
    if let Some(value) = object.get("programmatic") {
        let wrong = || bad("`programmatic` cannot be read").found(value.to_string()).required("true or false");
        launch = launch.programmatic(value.as_bool().ok_or_else(wrong)?);
    }
    if let Some(bytes) = number(object, "dynamic_smem")? {
        let bytes = u32::try_from(bytes).map_err(|_| bad("`dynamic_smem` is too large").found(bytes.to_string()))?;
        launch = launch.dynamic_smem(bytes);
    }
    if let Some(seed) = number(object, "seed")? {
        launch = launch.seed(seed);
    }
    if let Some(budget) = number(object, "step_budget")? {
        launch = launch.step_budget(budget);
    }
    match object.get("placement").and_then(Value::as_str) {
        None | Some("driver") => {}
        Some("exact") => launch = launch.placement(Placement::Exact),
        Some(other) => return Err(bad("a placement is unknown").found(other).required("driver or exact")),
    }
    match object.get("tensor_cores").and_then(Value::as_str) {
        None | Some("fast") => {}
        Some("hopper") => launch = launch.tensor_cores(TensorCores::Hopper),
        Some("ampere") => launch = launch.tensor_cores(TensorCores::Ampere),
        Some(other) => {
            return Err(bad("a model of tensor cores is unknown").found(other).required("fast, hopper or ampere"));
        }
    }
    Ok(launch)
}

fn one(value: &Value, folder: &Path, profile: bool) -> Result<FileReport, Error> {
    let object =
        value.as_object().ok_or_else(|| bad("a launch is no object").required("{\"ptx\": .., \"entry\": ..}"))?;
    if let Some(key) = object.keys().find(|k| !KEYS.contains(&k.as_str())) {
        return Err(bad("a launch has an unknown key").found(key.as_str()).required(KEYS.join(", ")));
    }
    let path = folder.join(text(object, "ptx")?);
    let module = Module::read(&path)?;
    let entry = text(object, "entry")?;
    let mut arrays = Vec::new();
    let mut args = Vec::new();
    for value in object.get("args").and_then(Value::as_array).into_iter().flatten() {
        args.push(argument(value, folder, &mut arrays)?);
    }
    let mut launch = settings(module.launch(entry)?, object)?.profile(profile);
    let mut rest: Vec<Option<&mut Array>> = arrays.iter_mut().map(Some).collect();
    // Of each argument: the number of its buffer.
    let (mut numbers, mut next) = (Vec::new(), 0);
    for arg in &args {
        let own = match arg {
            Arg::Array(i) | Arg::Map(_, Some(i)) => rest[*i].take().map(|array| {
                let data = if array.out.is_some() { Data::Write(&mut array.data) } else { Data::Read(&array.data) };
                Buffer::new(array.name.clone(), data)
            }),
            _ => None,
        };
        let number = own.as_ref().map(|_| next);
        next += usize::from(own.is_some());
        launch = match (arg, own) {
            (Arg::Bytes(bytes), _) => launch.arg_bytes(bytes),
            (Arg::Array(_), Some(buffer)) => launch.arg_buffer(buffer),
            (Arg::Map(map, _), Some(buffer)) => launch.buffer(buffer).arg_tensor_map(next - 1, map.byte, map.spec),
            (Arg::Map(map, _), None) => launch.arg_tensor_map(map.number(&numbers)?, map.byte, map.spec),
            (Arg::Array(_), None) => launch,
        };
        numbers.push(number);
    }
    let report = launch.run()?;
    let mut written = Vec::new();
    for array in &arrays {
        let Some(out) = &array.out else { continue };
        let bytes = [&array.header[..], &array.data[..]].concat();
        save(out, &bytes)?;
        written.push(out.clone());
    }
    Ok(FileReport { entry: entry.to_owned(), report, written })
}

/// Whole or not at all.
fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fail = |e: std::io::Error| bad("a file cannot be written").found(format!("{}: {e}", path.display()));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    fs::write(&part, bytes).map_err(fail)?;
    fs::rename(&part, path).map_err(|e| {
        // What was not moved is of no use.
        let _ = fs::remove_file(&part);
        fail(e)
    })
}

/// Runs the launches of a file, one after the other, and writes the arrays that they say. A launch with findings ends the run.
///
/// Paths in the file are relative to it. Arguments are `{"npy": "a.npy"}`, with `"out": "b.npy"` where the kernel writes, numbers by
/// type as `{"i32": 5}`, or `{"bytes": "00ff"}`. With `profile` the reports count what each instruction did.
///
/// # Errors
/// A file cannot be read or written, or is malformed; or the entry uses what this executor does not run.
pub fn run_file(path: &Path, profile: bool) -> Result<Vec<FileReport>, Error> {
    let bytes = read(path)?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|e| bad("a launch file is no JSON").found(format!("{}: {e}", path.display())))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let launches = match &value {
        Value::Array(all) => &all[..],
        one => core::slice::from_ref(one),
    };
    let mut reports = Vec::new();
    for launch in launches {
        let report = one(launch, folder, profile)?;
        let clean = report.report.is_clean();
        reports.push(report);
        if !clean {
            break;
        }
    }
    Ok(reports)
}
