//! Launch files: a launch, or a list of them, as JSON.

mod args;
mod array;
mod check;
mod json;
mod keys;
mod map;
mod memory;
mod outputs;
mod seeds;
mod settings;

use std::fs;
use std::path::{Path, PathBuf};

use args::Params;
use check::{Checked, check};
use json::Json;
use keys::{LAUNCH, Need, OBJECTS};
use memory::{Held, LaunchMemory};
pub use seeds::Seeds;

use super::Module;
use super::allow::Allow;
use super::error::{Error, ErrorKind};
use super::parse::MAX_TEXT;
use crate::Report;
use crate::npy::source;

/// The result of one launch of a file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The entry.
    pub entry: String,
    /// The report: of the first seed with findings, or of the first seed.
    pub report: Report,
    /// The seed of the report.
    pub seed: u64,
    /// The results of all seeds, if there are several.
    pub seeds: Option<Seeds>,
    /// The findings that the file allows, by the rules of its key `allow`, in their order.
    pub allowed: Vec<AllowedBy>,
    /// Notes on surprising effects of the file.
    pub notes: Vec<String>,
    /// The files that were written.
    pub written: Vec<PathBuf>,
}

/// The findings that one rule of the key `allow` allowed.
#[derive(Clone, Debug)]
pub struct AllowedBy {
    /// The rule.
    pub rule: Allow,
    /// Number of findings. If several rules allow a finding, it counts for the first.
    pub findings: usize,
    /// Number of occurrences.
    pub times: u64,
}

/// Options for running the launches of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Whether reports have a profile.
    pub profile: bool,
    /// The seed; it replaces the seed in the file.
    pub seed: Option<u64>,
    /// Number of consecutive seeds for each launch, from its own on; 0 means 1.
    pub seeds: u64,
}

/// A key of launch files.
#[derive(Clone, Debug)]
pub struct LaunchKey {
    /// Its object, such as `the launch` or `the argument`.
    pub object: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Whether it is required.
    pub is_required: bool,
    /// The accepted values, in words.
    pub takes: String,
    /// The accepted JSON types: `string`, `number`, `boolean`, `array`, `object`.
    pub json: &'static [&'static str],
    /// An accepted value, as JSON.
    pub example: &'static str,
    /// Its meaning, with the default in brackets.
    pub meaning: &'static str,
}

/// The keys of launch files, in the order in which the documentation lists them.
pub fn launch_keys() -> Vec<LaunchKey> {
    let keys = OBJECTS.iter().flat_map(|object| object.keys().map(move |key| (object.name, key)));
    let described = keys.map(|(object, key)| LaunchKey {
        object,
        name: key.name,
        is_required: key.need == Need::Always,
        takes: key.kind.takes(),
        json: key.kind.json(),
        example: key.example,
        meaning: key.meaning,
    });
    described.collect()
}

fn bad(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::File, what)
}

/// Reads a text file.
fn text(path: &Path, what: &str) -> Result<String, Error> {
    let fail =
        |e: &dyn core::fmt::Display| bad(format!("{what} cannot be read")).found(format!("{}: {e}", path.display()));
    let bytes = source::read(path, MAX_TEXT as u64).map_err(|e| fail(&e))?;
    String::from_utf8(bytes).map_err(|e| fail(&e.utf8_error()).required("UTF-8 text"))
}

impl Module {
    /// Reads a PTX file, or a pipe such as `/dev/stdin`. Devices and named pipes are refused: they may never end.
    ///
    /// # Errors
    /// The file cannot be read, or is not PTX.
    pub fn read(path: &Path) -> Result<Module, Error> {
        Module::parse(text(path, "a PTX file")?)
    }
}

/// A launch file that was read and checked.
///
/// Paths in the file are relative to it. An object is one launch, a list holds several. [`launch_keys`] lists the keys. An unknown,
/// missing or repeated key, or one of another type, is refused.
#[derive(Debug)]
pub struct LaunchFile {
    folder: PathBuf,
    value: Json,
    /// Notes on each launch.
    notes: Vec<Vec<String>>,
}

impl LaunchFile {
    /// Reads a launch file, and checks all its launches.
    ///
    /// # Errors
    /// The file cannot be read, is not JSON, or is malformed.
    pub fn read(path: &Path) -> Result<LaunchFile, Error> {
        let text = text(path, "a launch file")?;
        let value: Json = serde_json::from_str(&text).map_err(|e| {
            let found = format!("{}: {e}", path.display());
            if e.is_data() {
                bad("a launch file repeats a key").found(found).required("each key of an object once")
            } else {
                bad("a launch file is not JSON").found(found)
            }
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut file = LaunchFile { folder: folder.to_owned(), value, notes: Vec::new() };
        if file.is_empty() {
            return Err(bad("a launch file has no launch")
                .found(format!("{}: an empty list", path.display()))
                .required("an object, or a list of objects, each a launch"));
        }
        let launches = (0..file.len()).map(|i| file.launch(i)).collect::<Result<Vec<_>, _>>()?;
        file.notes = outputs::check(&launches, folder, path)?;
        Ok(file)
    }

    /// Number of launches; at least one.
    pub fn len(&self) -> usize {
        if matches!(self.value, Json::List(_)) { self.value.items().len() } else { 1 }
    }

    /// Whether it has no launch; [`LaunchFile::read`] refuses such files.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn launch(&self, index: usize) -> Result<Checked<'_>, Error> {
        match &self.value {
            Json::List(all) => match all.get(index) {
                Some(value) => check(&LAUNCH, value, &format!("[{index}]")),
                None => Err(bad("a launch file has fewer launches")
                    .found(format!("launch {index}, counted from 0"))
                    .required(format!("one of {}", all.len()))),
            },
            one if index == 0 => check(&LAUNCH, one, ""),
            _ => Err(bad("a launch file has one launch").found(format!("launch {index}, counted from 0"))),
        }
    }

    /// Runs a launch, counted from 0, and writes its outputs.
    ///
    /// # Errors
    /// A file cannot be read or written; the launch does not fit the entry; or the entry is unsupported.
    pub fn run(&self, index: usize, options: &RunOptions) -> Result<FileReport, Error> {
        let launch = self.launch(index)?;
        let mut ready = Ready::read(&launch, &self.folder)?;
        ready.notes.extend(self.notes.get(index).cloned().unwrap_or_default());
        seeds::run(&launch, ready, options)
    }
}

/// A launch with its inputs.
struct Ready {
    module: Module,
    entry: String,
    memory: LaunchMemory,
    variables: Vec<Held>,
    params: Params,
    allow: Vec<Allow>,
    notes: Vec<String>,
}

/// The memory after a launch: the bytes of each buffer, then of each variable.
type FinalBytes = Vec<Vec<u8>>;

impl Ready {
    fn read(launch: &Checked<'_>, folder: &Path) -> Result<Ready, Error> {
        let module = Module::read(&folder.join(launch.text("ptx").unwrap_or_default()))?;
        let entry = module.entry_of(launch.text("entry").unwrap_or_default())?.to_owned();
        module.code(&entry)?;
        let allow = launch.list("allow").map(|rule| settings::allow(&rule)).collect::<Result<Vec<_>, _>>()?;
        let mut memory = LaunchMemory::read(launch, folder)?;
        let params = Params::read(launch, folder, &module, &entry, &mut memory)?;
        memory.is_used()?;
        let variables = memory::variables(launch, folder, &module, &entry)?;
        let notes = core::mem::take(&mut memory.notes);
        Ok(Ready { module, entry, memory, variables, params, allow, notes })
    }

    fn held(&self) -> impl Iterator<Item = &Held> {
        self.memory.held.iter().chain(&self.variables)
    }

    /// Runs it once.
    fn once(&self, settings: &Checked<'_>, seed: u64, profile: bool) -> Result<(Report, FinalBytes), Error> {
        let mut left: FinalBytes = self.held().map(Held::copy).collect();
        let mut launch = settings::tell(self.module.launch(&self.entry)?, settings).seed(seed).profile(profile);
        launch = self.memory.tell(self.params.tell(launch));
        let (buffers, variables) = left.split_at_mut(self.memory.held.len());
        for (held, bytes) in self.memory.held.iter().zip(buffers) {
            launch = launch.buffer(held.buffer(bytes));
        }
        for (held, bytes) in self.variables.iter().zip(variables) {
            launch = launch.variable(held.name.clone(), held.contents(bytes));
        }
        for rule in &self.allow {
            launch = launch.allow(rule.clone());
        }
        let report = launch.run()?;
        Ok((report, left))
    }

    /// Writes the outputs of a launch.
    fn save(&self, left: &FinalBytes) -> Result<Vec<PathBuf>, Error> {
        let mut written = Vec::new();
        for (held, bytes) in self.held().zip(left) {
            let Some(out) = &held.out else { continue };
            save(out, &held.file(bytes))?;
            if !written.contains(out) {
                written.push(out.clone());
            }
        }
        Ok(written)
    }
}

/// Writes a file atomically. Writes into pipes and devices as they are.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fail = |e: std::io::Error| bad("a file cannot be written").found(format!("{}: {e}", path.display()));
    if path.exists() && !path.is_file() {
        return fs::write(path, bytes).map_err(fail);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    fs::write(&part, bytes).map_err(fail)?;
    fs::rename(&part, path).map_err(|e| {
        // The partial file is useless.
        let _ = fs::remove_file(&part);
        fail(e)
    })
}

/// Runs the launches of a file in order and writes their outputs. A launch with findings ends the run. [`LaunchFile`] runs single
/// launches, and several seeds.
///
/// With `profile`, reports have a profile.
///
/// # Errors
/// A file cannot be read or written, or is malformed; or the entry is unsupported.
pub fn run_file(path: &Path, profile: bool) -> Result<Vec<FileReport>, Error> {
    let file = LaunchFile::read(path)?;
    let mut reports = Vec::new();
    for index in 0..file.len() {
        let report = file.run(index, &RunOptions { profile, ..RunOptions::default() })?;
        let clean = report.report.is_clean();
        reports.push(report);
        if !clean {
            break;
        }
    }
    Ok(reports)
}
