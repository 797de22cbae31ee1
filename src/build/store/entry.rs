//! An entry of the store: a directory with files, and a list of their digests and of the inputs that they were made
//! from.
//!
//! An entry is compared with its list before it is used. So a program that a full disk cut off, or that was replaced,
//! never runs. An entry that other users own or can write counts as missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use cutlass_sys::{claim, trusted};

use crate::bundle::FileDigest;

/// The list.
pub(super) const LIST: &str = "entry.json";

#[derive(Serialize, Deserialize)]
pub(super) struct List {
    pub(super) files: Vec<FileDigest>,
    inputs: Vec<Input>,
}

/// A file that was read when the entry was made, as it was then. Its content is not kept: a change of size or time tells enough.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Input {
    path: PathBuf,
    bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    changed: u64,
}

impl Input {
    /// The file as it is now.
    fn now(path: &Path) -> io::Result<Input> {
        let meta = path.metadata()?;
        let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = u64::try_from(changed.as_nanos()).unwrap_or(u64::MAX);
        Ok(Input { path: path.to_path_buf(), bytes: meta.len(), changed })
    }
}

/// An entry whose inputs are as they were. Its files are compared when they are asked for.
pub(crate) struct Entry {
    pub(super) dir: PathBuf,
    pub(super) list: List,
}

impl Entry {
    /// `Err` says why it is not to be used.
    pub(super) fn open(dir: &Path) -> Result<Entry, String> {
        safe(dir)?;
        let bytes = read(dir, LIST)?;
        let list: List = serde_json::from_slice(&bytes).map_err(|e| format!("{LIST} is damaged: {e}"))?;
        for input in &list.inputs {
            if Input::now(&input.path).ok().as_ref() != Some(input) {
                return Err(format!("{} was changed since", input.path.display()));
            }
        }
        Ok(Entry { dir: dir.to_path_buf(), list })
    }

    /// The files outside of the entry that it was made of.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.list.inputs.iter().map(|input| input.path.as_path())
    }

    /// A file's contents, compared with the list; `Err` says why it must not be used.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let listed = self.list.files.iter().find(|file| file.name == name);
        let bytes = read(&self.dir, name)?;
        match listed.map_or_else(|| Some(format!("{LIST} has no {name}")), |listed| listed.mismatch(&bytes)) {
            Some(damage) => Err(damage),
            None => Ok(bytes),
        }
    }

    /// Where a file is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Reads a file of an entry, which only its owner may be able to write.
fn read(dir: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = dir.join(name);
    safe(&path)?;
    fs::read(&path).map_err(|e| format!("{name} cannot be read: {e}"))
}

/// A missing path is trusted: reading it fails.
pub(super) fn safe(path: &Path) -> Result<(), String> {
    let meta = path.symlink_metadata();
    meta.map_or(Ok(()), |meta| trusted(&meta)).map_err(|why| format!("{}: {why}", path.display()))
}

/// Writes the list of a directory's files and of their inputs, removes the right of others to change it, and waits
/// until it is on the disk. Fails with the file and the failed operation.
pub(super) fn seal(dir: &Path, inputs: &[PathBuf]) -> Result<(), (&'static str, PathBuf, io::Error)> {
    let doing = |verb: &'static str, path: &Path| {
        let path = path.to_path_buf();
        move |e| (verb, path, e)
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(doing("read", dir))? {
        let path = entry.map_err(doing("read", dir))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push(FileDigest::of(&name, &fs::read(&path).map_err(doing("read", &path))?));
    }
    files.sort_by(|x, y| x.name.cmp(&y.name));
    let inputs = inputs.iter().map(|path| Input::now(path).map_err(doing("read", path))).collect::<Result<_, _>>()?;
    let list = dir.join(LIST);
    let names: Vec<PathBuf> = files.iter().map(|file| dir.join(&file.name)).collect();
    let text = serde_json::to_vec_pretty(&List { files, inputs }).map_err(io::Error::from);
    text.and_then(|text| fs::write(&list, text)).map_err(doing("write", &list))?;
    for path in names.iter().chain([&list]).map(PathBuf::as_path).chain([dir]) {
        claim(path).map_err(doing("protect", path))?;
        sync(path).map_err(doing("sync", path))?;
    }
    Ok(())
}

pub(super) fn sync(path: &Path) -> io::Result<()> {
    if cfg!(windows) && path.is_dir() {
        // Windows does not open directories as files.
        return Ok(());
    }
    fs::File::open(path)?.sync_all()
}
