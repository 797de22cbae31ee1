//! Launch files: a launch, or a list of them, as JSON.

mod args;
mod array;
mod check;
mod expect;
mod json;
mod kept;
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
pub use expect::Difference;
use json::Json;
use keys::{FILE, LAUNCH, Need, OBJECTS};
use memory::{Held, LaunchMemory};
pub use seeds::Seeds;

use super::Module;
use super::allow::Allow;
use super::error::{Error, ErrorKind};
use super::parse::MAX_TEXT;
use crate::npy::source;
use crate::{Buffer, DeviceMemory, Report};

/// The result of one launch of a file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// Its number among the launches of the file, from 1.
    pub launch: usize,
    /// The entry.
    pub entry: String,
    /// The report: of the first seed with findings or differences, or of the first seed.
    pub report: Report,
    /// Memory that does not hold what the file expects; nothing is compared after a launch with findings.
    pub differences: Vec<Difference>,
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

impl FileReport {
    /// Whether there are neither findings nor differences.
    pub fn is_right(&self) -> bool {
        self.report.is_clean() && self.differences.is_empty()
    }
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
/// Paths in the file are relative to it. An object is one launch, a list holds several, and an object with `launches` holds several that
/// share memory. [`launch_keys`] lists the keys. An unknown, missing or repeated key, or one of another type, is refused.
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
        let whole = file.whole()?;
        if file.is_empty() {
            return Err(bad("a launch file has no launch")
                .found(format!("{}: an empty list", path.display()))
                .required("an object, or a list of objects, each a launch"));
        }
        let launches = (0..file.len()).map(|i| file.launch(i)).collect::<Result<Vec<_>, _>>()?;
        if let Some(whole) = &whole {
            kept::check(whole, &launches)?;
        }
        file.notes = outputs::check(whole.as_ref(), &launches, folder, path)?;
        Ok(file)
    }

    /// Number of launches; at least one.
    pub fn len(&self) -> usize {
        match self.all() {
            Some((_, all)) => all.len(),
            None => 1,
        }
    }

    /// Whether it has no launch; [`LaunchFile::read`] refuses such files.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The launches of a list, or of an object with several, and the path of the list.
    fn all(&self) -> Option<(&'static str, &[Json])> {
        match &self.value {
            Json::List(all) => Some(("", all)),
            value if is_whole(value) => Some(("launches", value.get("launches").map_or(&[], Json::items))),
            _ => None,
        }
    }

    /// The object with several launches, if it is one.
    fn whole(&self) -> Result<Option<Checked<'_>>, Error> {
        is_whole(&self.value).then(|| check(&FILE, &self.value, "")).transpose()
    }

    fn launch(&self, index: usize) -> Result<Checked<'_>, Error> {
        let Some((path, all)) = self.all() else { return check(&LAUNCH, &self.value, "") };
        check(&LAUNCH, &all[index], &format!("{path}[{index}]"))
    }

    /// Runs the launches in order, each when the iterator is asked for it, and writes their outputs. After a launch with findings or
    /// differences there is no further one, since later launches read the results of earlier ones.
    ///
    /// Errors are of files that cannot be read or written, of launches that do not fit their entries, and of entries that are unsupported.
    pub fn launches(&self, options: &RunOptions) -> Launches<'_> {
        Launches { file: self, options: *options, next: 0, memory: None }
    }
}

/// Whether a file has launches that share memory: it has nothing that a single launch has besides `buffers`.
fn is_whole(value: &Json) -> bool {
    let is_of_launch = |name: &str| name != "buffers" && LAUNCH.keys().any(|key| key.name == name);
    value.get("launches").is_some()
        || !value.entries().is_empty() && !value.entries().iter().any(|(name, _)| is_of_launch(name))
}

/// The launches of a file, run in order: an iterator over their reports.
#[derive(Debug)]
pub struct Launches<'f> {
    file: &'f LaunchFile,
    options: RunOptions,
    next: usize,
    /// The buffers of the file, after the first launch.
    memory: Option<LaunchMemory>,
}

impl Iterator for Launches<'_> {
    type Item = Result<FileReport, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next;
        if index >= self.file.len() {
            return None;
        }
        let done = self.run(index);
        let is_right = done.as_ref().is_ok_and(FileReport::is_right);
        self.next = if is_right { index + 1 } else { usize::MAX };
        Some(done)
    }
}

impl Launches<'_> {
    fn run(&mut self, index: usize) -> Result<FileReport, Error> {
        let (file, launch) = (self.file, self.file.launch(index)?);
        let memory = match (self.memory.take(), file.whole()?) {
            (Some(memory), _) => memory,
            (None, Some(whole)) => kept::read(&whole, &file.folder)?,
            (None, None) => LaunchMemory::default(),
        };
        let mut ready = Ready::read(&launch, &file.folder, memory)?;
        ready.notes.extend(file.notes.get(index).cloned().unwrap_or_default());
        let is_last = index + 1 == file.len();
        let (mut done, left) = seeds::run(&launch, &ready, &self.options, is_last)?;
        done.launch = index + 1;
        done.written = ready.save(&left, is_last || !done.is_right())?;
        self.memory = Some(ready.memory.keep(left));
        Ok(done)
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

/// The memory after a launch: of each buffer, then of each variable.
type FinalBytes = Vec<DeviceMemory>;

impl Ready {
    fn read(launch: &Checked<'_>, folder: &Path, memory: LaunchMemory) -> Result<Ready, Error> {
        let module = Module::read(&folder.join(launch.text("ptx").unwrap_or_default()))?;
        let entry = module.entry_of(launch.text("entry").unwrap_or_default())?.to_owned();
        module.code(&entry)?;
        let allow = launch.list("allow").map(|rule| settings::allow(&rule)).collect::<Result<Vec<_>, _>>()?;
        let mut memory = LaunchMemory::read(launch, folder, memory)?;
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
        for (held, copy) in self.memory.held.iter().zip(buffers) {
            launch = launch.buffer(Buffer::new(held.name.clone(), held.contents(copy)));
        }
        for (held, copy) in self.variables.iter().zip(variables) {
            launch = launch.variable(held.name.clone(), held.contents(copy));
        }
        for rule in &self.allow {
            launch = launch.allow(rule.clone());
        }
        let report = launch.run()?;
        Ok((report, left))
    }

    /// Writes the outputs of a launch, and behind the last one those of the file.
    fn save(&self, left: &FinalBytes, is_last: bool) -> Result<Vec<PathBuf>, Error> {
        let mut written = Vec::new();
        for (held, memory) in self.held().zip(left).filter(|(held, _)| is_last || !held.is_kept) {
            let Some(out) = &held.out else { continue };
            save(out, &held.file(memory.bytes()))?;
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

/// Runs the launches of a file in order and writes their outputs. A launch with findings ends the run. [`LaunchFile::launches`] runs
/// several seeds.
///
/// With `profile`, reports have a profile.
///
/// # Errors
/// A file cannot be read or written, or is malformed; or the entry is unsupported.
pub fn run_file(path: &Path, profile: bool) -> Result<Vec<FileReport>, Error> {
    LaunchFile::read(path)?.launches(&RunOptions { profile, ..RunOptions::default() }).collect()
}
