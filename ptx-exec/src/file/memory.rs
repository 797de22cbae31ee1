//! Memory in a launch file: arrays, bytes, and uninitialised memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::check::{Checked, hex};
use super::expect::Expected;
use super::json::Json;
use super::keys::BUFFER;
use super::{array, bad, map};
use crate::TensorMap;
use crate::launch::Data;
use crate::map_image::MAP_BYTES;
use crate::{DeviceMemory, Error, Launch, Module};

/// A buffer, or the contents of a variable.
#[derive(Debug)]
pub(super) struct Held {
    /// Its name in findings; for a variable, its name in the PTX.
    pub(super) name: String,
    /// Its path in the launch file.
    pub(super) path: String,
    /// The header of its output file.
    header: Vec<u8>,
    /// Its contents before the launch.
    pub(super) memory: DeviceMemory,
    /// Whether it is one of the file's buffers, which pass from one launch to the next.
    pub(super) is_kept: bool,
    /// Whether the kernel may write it.
    pub(super) is_output: bool,
    pub(super) out: Option<PathBuf>,
    pub(super) expected: Option<Expected>,
    is_used: bool,
}

impl Held {
    pub(super) fn bytes(&self) -> u64 {
        self.memory.bytes().len() as u64
    }

    /// A copy of the contents for the launch to write; empty for an input.
    pub(super) fn copy(&self) -> DeviceMemory {
        if self.is_output { self.memory.clone() } else { DeviceMemory::new(Vec::new()) }
    }

    /// As a launch takes it; `copy` is its [`Held::copy`].
    pub(super) fn contents<'a>(&'a self, copy: &'a mut DeviceMemory) -> Data<'a> {
        if self.is_output { Data::Keep(copy) } else { Data::Read(self.memory.bytes()) }
    }

    /// The bytes of the output file.
    pub(super) fn file(&self, bytes: &[u8]) -> Vec<u8> {
        [&self.header[..], bytes].concat()
    }
}

/// A tensor map in a buffer.
#[derive(Debug)]
struct HeldMap {
    holder: usize,
    at: u64,
    buffer: usize,
    byte: u64,
    spec: TensorMap,
}

/// The memory of a launch.
#[derive(Debug, Default)]
pub(super) struct LaunchMemory {
    pub(super) held: Vec<Held>,
    /// The buffer of each argument, by number.
    of_argument: Vec<Option<usize>>,
    of_name: BTreeMap<String, usize>,
    /// Tensor maps that lie in buffers.
    maps: Vec<HeldMap>,
    pub(super) notes: Vec<String>,
}

impl LaunchMemory {
    /// The file's buffers alone, for the next launch. They are what a launch left, and their tensor maps are made.
    pub(super) fn keep(mut self, left: Vec<DeviceMemory>) -> LaunchMemory {
        self.held.retain(|held| held.is_kept);
        for (held, memory) in self.held.iter_mut().zip(left).filter(|(held, _)| held.is_output) {
            held.memory = memory;
        }
        self.of_name.retain(|_, number| *number < self.held.len());
        LaunchMemory { held: self.held, of_name: self.of_name, ..LaunchMemory::default() }
    }
}

/// The path of an output; its folder must exist.
fn out(value: &Checked<'_>, folder: &Path) -> Result<Option<PathBuf>, Error> {
    let Some(path) = value.text("out").map(|out| folder.join(out)) else { return Ok(None) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.file_name().is_none() || !parent.is_dir() || path.is_dir() {
        return Err(bad(format!("`{}` cannot be written", value.at("out")))
            .found(path.display().to_string())
            .required("the path of a file in a folder that exists"));
    }
    Ok(Some(path))
}

impl LaunchMemory {
    /// Reads the buffers of `buffers`, then the buffers of the arguments. `memory` has the buffers of the file.
    pub(super) fn read(launch: &Checked<'_>, folder: &Path, mut memory: LaunchMemory) -> Result<LaunchMemory, Error> {
        for (name, buffer) in launch.named("buffers") {
            let number = memory.hold(&buffer, name, folder)?;
            memory.of_name.insert(name.to_owned(), number);
        }
        for argument in launch.list("args") {
            let number = memory.own(&argument, folder)?;
            memory.of_argument.push(number);
        }
        for (name, buffer) in launch.named("buffers") {
            let holder = memory.of_name.get(name).copied().unwrap_or_default();
            for (at, value) in (0..).step_by(MAP_BYTES as usize).zip(buffer.list("tensor_maps")) {
                let spec = map::read(&value)?;
                let own = if value.has("npy") { Some(memory.hold(&value, "", folder)?) } else { None };
                let buffer = own.map_or_else(|| memory.of(&value), Ok)?;
                memory.held[buffer].is_used = true;
                let byte = memory.byte(&value, buffer)?;
                memory.maps.push(HeldMap { holder, at, buffer, byte, spec });
            }
        }
        Ok(memory)
    }

    /// The buffer that an argument brought with it.
    pub(super) fn of_argument(&self, number: usize) -> Option<usize> {
        self.of_argument.get(number).copied().flatten()
    }

    /// The buffer that an argument or a member brings with it.
    pub(super) fn own(&mut self, value: &Checked<'_>, folder: &Path) -> Result<Option<usize>, Error> {
        let map = value.one("tensor_map");
        let value = map.as_ref().unwrap_or(value);
        if !value.has("npy") && !value.has("scratch") {
            return Ok(None);
        }
        let number = self.hold(value, "", folder)?;
        self.held[number].is_used = true;
        Ok(Some(number))
    }

    /// Adds a buffer. A buffer without a name gets the name of its file or its path.
    fn hold(&mut self, value: &Checked<'_>, name: &str, folder: &Path) -> Result<usize, Error> {
        let out = out(value, folder)?;
        let is_written = value.flag("written").unwrap_or(true) && !value.has("scratch");
        let mut called = name.to_owned();
        let mut expected = None;
        let (header, data) = match value.text("npy") {
            Some(file) => {
                let path = folder.join(file);
                let array = array::read(&path, &value.at("npy"))?;
                expected = Expected::read(value, folder, array.data.len() as u64, Some(&array))?;
                if array.is_fortran {
                    self.notes.push(format!(
                        "{file} is in Fortran order: the kernel gets the elements in the order of the file, the first index fastest"
                    ));
                }
                if called.is_empty() {
                    called = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
                }
                (array.header, array.data)
            }
            None => {
                let data = match value.text("bytes").and_then(hex) {
                    Some(bytes) => bytes,
                    None if value.has("tensor_maps") => {
                        vec![0; value.list("tensor_maps").count() * MAP_BYTES as usize]
                    }
                    None => room(value)?,
                };
                (array::header("|u1", Some(data.len() as u64)), data)
            }
        };
        if called.is_empty() {
            called = value.path.clone();
        }
        if !value.has("npy") {
            expected = Expected::read(value, folder, data.len() as u64, None)?;
        }
        // Kernels change maps in place.
        let is_output = out.is_some() || expected.is_some() || !is_written || value.has("tensor_maps");
        let path = value.path.clone();
        let memory = if is_written { DeviceMemory::new(data) } else { DeviceMemory::uninitialized(data.len()) };
        let is_kept = false;
        self.held.push(Held { name: called, path, header, memory, is_kept, is_output, out, expected, is_used: false });
        Ok(self.held.len() - 1)
    }

    /// The buffer that `of` refers to.
    pub(super) fn of(&mut self, value: &Checked<'_>) -> Result<usize, Error> {
        let key = value.at("of");
        let number = match value.get("of") {
            Some(Json::Text(name)) => self.of_name.get(name).copied(),
            Some(number) => {
                let number = number.whole().and_then(|n| usize::try_from(n).ok());
                number.and_then(|n| self.of_argument(n))
            }
            None => None,
        };
        let Some(number) = number else {
            let arguments = self.of_argument.iter().enumerate().filter(|(_, own)| own.is_some());
            let known =
                arguments.map(|(i, _)| i.to_string()).chain(self.of_name.keys().map(|name| format!("{name:?}")));
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(bad(format!("`{key}` does not refer to memory"))
                .found(value.get("of").map_or_else(String::new, Json::to_string))
                .required(match known.as_str() {
                    "" => "an argument with `npy` or `scratch`, or a name in `buffers`".to_owned(),
                    known => format!("one of {known}"),
                }));
        };
        self.held[number].is_used = true;
        Ok(number)
    }

    /// The offset of a pointer in its buffer.
    pub(super) fn byte(&self, value: &Checked<'_>, number: usize) -> Result<u64, Error> {
        let (byte, bytes) = (value.whole("byte").unwrap_or(0), self.held[number].bytes());
        if byte > bytes {
            return Err(bad(format!("`{}` lies outside of the memory", value.at("byte")))
                .found(byte.to_string())
                .required(format!("at most {bytes}, the bytes of {}", self.held[number].name)));
        }
        Ok(byte)
    }

    /// Adds the tensor maps in these buffers to a launch.
    pub(super) fn tell<'a>(&self, launch: Launch<'a>) -> Launch<'a> {
        let tell = |launch: Launch<'a>, m: &HeldMap| launch.tensor_map_in(m.holder, m.at, m.buffer, m.byte, m.spec);
        self.maps.iter().fold(launch, tell)
    }

    /// Checks that an argument uses every buffer.
    pub(super) fn is_used(&self) -> Result<(), Error> {
        match self.held.iter().find(|held| !held.is_used && !held.is_kept) {
            None => Ok(()),
            Some(unused) => Err(bad(format!("`{}` is not used by an argument", unused.path))
                .found(format!("the {} `{}`", BUFFER.name.trim_start_matches("the "), unused.name))
                .required(format!("{{\"of\": {:?}}} in `args`", unused.name))),
        }
    }
}

/// Uninitialised memory.
fn room(value: &Checked<'_>) -> Result<Vec<u8>, Error> {
    let bytes = value.whole("scratch").unwrap_or(0);
    let mut data = Vec::new();
    data.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(|e| {
        bad(format!("`{}` is more memory than this machine has", value.at("scratch")))
            .found(format!("{bytes} B"))
            .required(e.to_string())
    })?;
    data.resize(bytes as usize, 0);
    Ok(data)
}

/// The contents of the module's variables.
pub(super) fn variables(launch: &Checked<'_>, folder: &Path, module: &Module, entry: &str) -> Result<Vec<Held>, Error> {
    let code = module.code(entry)?;
    let mut all: Vec<Held> = Vec::new();
    for (part, value) in launch.named("variables") {
        let variable = &code.globals[find(code, part, &value.path)?];
        if all.iter().any(|known| known.name == variable.name) {
            return Err(bad(format!("`{}` names a variable a second time", value.path))
                .found(part)
                .required("each variable once"));
        }
        if value.value.entries().is_empty() {
            return Err(bad(format!("`{}` says nothing", value.path))
                .found("an empty object")
                .required("npy or bytes for what it holds before, expect or out for what it holds then"));
        }
        let elements = variable.is_array.then(|| variable.bytes.len() as u64 / variable.ty.bytes().max(1));
        let (mut header, mut data) = (array::header(array::descr(variable.ty), elements), variable.bytes.clone());
        let mut own = None;
        let given = match (value.text("npy"), value.text("bytes").and_then(hex)) {
            (Some(file), _) => {
                let mut array = array::read(&folder.join(file), &value.at("npy"))?;
                header = array.header.clone();
                let data = core::mem::take(&mut array.data);
                own = Some(array);
                Some(data)
            }
            (None, bytes) => bytes,
        };
        if given.is_none() && !variable.addresses.is_empty() {
            return Err(bad(format!("`{}` holds addresses", value.path))
                .found(variable.name.as_str())
                .required("a variable of numbers, or npy or bytes for what it holds before"));
        }
        if let Some(given) = given {
            if given.len() != data.len() {
                return Err(bad(format!("`{}` does not fit its variable", value.path))
                    .found(format!("{} B", given.len()))
                    .required(format!("{} B for {}", data.len(), variable.name)));
            }
            data = given;
        }
        let (name, out) = (variable.name.clone(), out(&value, folder)?);
        let path = value.path.clone();
        let expected = Expected::read(&value, folder, data.len() as u64, own.as_ref())?;
        let is_output = out.is_some() || expected.is_some();
        let (memory, is_kept) = (DeviceMemory::new(data), false);
        all.push(Held { name, path, header, memory, is_kept, is_output, out, expected, is_used: true });
    }
    Ok(all)
}

/// The variable with this name, or the only one whose name contains it.
fn find(code: &crate::code::Code, part: &str, path: &str) -> Result<usize, Error> {
    let named = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..code.globals.len()).filter(|i| fits(&code.globals[*i].name)).collect()
    };
    let exact = named(&|name| name == part);
    let found = if exact.is_empty() { named(&|name| !part.is_empty() && name.contains(part)) } else { exact };
    if let [one] = found[..] {
        return Ok(one);
    }
    let names =
        |which: &[usize]| which.iter().take(20).map(|i| code.globals[*i].name.as_str()).collect::<Vec<_>>().join(", ");
    let all: Vec<usize> = (0..code.globals.len()).collect();
    let (what, required) = match (found.is_empty(), all.is_empty()) {
        (_, true) => ("names no variable", "a text with variables in global or constant memory".to_owned()),
        (true, _) => ("names no variable", format!("one of {}", names(&all))),
        (false, _) => ("names several variables", format!("a part of one of {}", names(&found))),
    };
    Err(bad(format!("`{path}` {what}")).found(part).required(required))
}
