//! Checks the output files of a launch: each array has its own file, and no output replaces an input.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::bad;
use super::check::Checked;
use super::json::Json;
use crate::Error;

/// The names of one file: its path, and the target of links.
fn names(path: &Path) -> Vec<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let inside = fs::canonicalize(parent).ok().zip(path.file_name()).map(|(parent, name)| parent.join(name));
    [inside, fs::canonicalize(path).ok()].into_iter().flatten().collect()
}

/// A file that a launch names.
struct Named<'j> {
    /// Its path in the launch file.
    key: String,
    path: PathBuf,
    names: Vec<PathBuf>,
    /// The key and path that name it.
    by: &'j Json,
}

/// The files that a launch names by `key`, at any depth.
fn named<'j>(value: &'j Json, path: &str, key: &str, folder: &Path, all: &mut Vec<Named<'j>>) {
    for (name, inner) in value.entries() {
        let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match inner {
            Json::Text(file) if name == key => {
                let path = folder.join(file);
                all.push(Named { key: at, names: names(&path), path, by: value });
            }
            _ => named(inner, &at, key, folder, all),
        }
    }
    for (i, item) in value.items().iter().enumerate() {
        named(item, &format!("{path}[{i}]"), key, folder, all);
    }
}

/// Checks the outputs of all launches of a file. Returns notes for each launch.
///
/// The file's own buffers are read before the first launch and written after the last one.
pub(super) fn check(
    whole: Option<&Checked<'_>>,
    launches: &[Checked<'_>],
    folder: &Path,
    file: &Path,
) -> Result<Vec<Vec<String>>, Error> {
    // Files that exist before the first launch, each with the key that names it.
    let mut before: BTreeMap<PathBuf, String> =
        names(file).into_iter().map(|name| (name, "the launch file".to_owned())).collect();
    let mut made: BTreeSet<PathBuf> = BTreeSet::new();
    let mut notes = Vec::new();
    let (mut outs, mut last) = (Vec::new(), Vec::new());
    if let Some(buffers) = whole.and_then(|whole| whole.one("buffers")) {
        let mut inputs = Vec::new();
        named(buffers.value, &buffers.path, "npy", folder, &mut inputs);
        named(buffers.value, &buffers.path, "out", folder, &mut last);
        for input in inputs {
            input.names.into_iter().for_each(|name| drop(before.insert(name, format!("`{}`", input.key))));
        }
    }
    for (number, launch) in launches.iter().enumerate() {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        named(launch.value, &launch.path, "ptx", folder, &mut inputs);
        named(launch.value, &launch.path, "npy", folder, &mut inputs);
        named(launch.value, &launch.path, "out", folder, &mut outputs);
        for input in inputs {
            for name in input.names.into_iter().filter(|name| !made.contains(name)) {
                before.entry(name).or_insert_with(|| format!("`{}`", input.key));
            }
        }
        if number + 1 == launches.len() {
            outputs.append(&mut last);
        }
        notes.push(together(&outputs)?);
        made.extend(outputs.iter().flat_map(|output| output.names.iter().cloned()));
        outs.push(outputs);
    }
    for output in outs.iter().flatten() {
        if let Some(what) = output.names.iter().find_map(|name| before.get(name)) {
            return Err(bad(format!("`{}` is written over an input", output.key))
                .found(format!("{}, which is {what}", output.path.display()))
                .required("a file that no launch reads before it is written"));
        }
    }
    Ok(notes)
}

/// The outputs of one launch. Arguments that are equal in every key may share a file, which keeps the last of them. A note says so.
fn together(outputs: &[Named<'_>]) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for (i, output) in outputs.iter().enumerate() {
        let is_same = |other: &&Named<'_>| other.names.iter().any(|name| output.names.contains(name));
        let earlier: Vec<&Named<'_>> = outputs[..i].iter().filter(is_same).collect();
        let Some(first) = earlier.first() else { continue };
        if first.by != output.by {
            return Err(bad(format!("`{}` and `{}` are one file", first.key, output.key))
                .found(output.path.display().to_string())
                .required("a file for each output"));
        }
        if !outputs[i + 1..].iter().any(|other| is_same(&other)) {
            let lost: Vec<String> = earlier.iter().map(|other| format!("`{}`", other.key)).collect();
            notes.push(format!(
                "{} is written by {} and `{}`: it keeps what the last one holds",
                output.path.display(),
                lost.join(", "),
                output.key
            ));
        }
    }
    Ok(notes)
}
