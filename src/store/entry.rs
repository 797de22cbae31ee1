//! An entry of the store: a directory with files, and a list of what they were when they were made, and of what they were made of.
//!
//! What is found is compared with the list before it is used: a program that was cut off by a full disk, or replaced, never runs.
//! An entry that other users can write, or that belongs to one, is no better than none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::owner::{claim, trusted};
use crate::digest::Digest;

/// A file, by content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Its name, without a folder.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its sha256.
    pub sha256: Digest,
}

impl FileDigest {
    pub(crate) fn of(name: &str, bytes: &[u8]) -> FileDigest {
        FileDigest { name: name.to_owned(), bytes: bytes.len() as u64, sha256: Digest::of(bytes) }
    }

    /// Why some bytes are not this file.
    pub(crate) fn mismatch(&self, bytes: &[u8]) -> Option<String> {
        if bytes.len() as u64 != self.bytes {
            return Some(format!("{} has {} bytes, and should have {}", self.name, bytes.len(), self.bytes));
        }
        (Digest::of(bytes) != self.sha256)
            .then(|| format!("{} is not what was compiled: its sha256 differs", self.name))
    }
}

/// The list.
pub(super) const LIST: &str = "entry.json";

#[derive(Serialize, Deserialize)]
struct List {
    files: Vec<FileDigest>,
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
    dir: PathBuf,
    list: List,
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

    /// What a file holds, compared; `Err` says why it is not to be used.
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

    /// Every file, in the order of their names, each compared; `Err` says why one is not to be used.
    pub(crate) fn checked(&self) -> Result<Vec<Checked>, String> {
        self.list.files.iter().map(|file| Checked::new(self.dir.join(&file.name), file.clone())).collect()
    }
}

/// Reads a file of an entry, which only its owner may be able to write.
fn read(dir: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = dir.join(name);
    safe(&path)?;
    fs::read(&path).map_err(|e| format!("{name} cannot be read: {e}"))
}

/// What is not there is trusted: reading it fails.
fn safe(path: &Path) -> Result<(), String> {
    let meta = path.symlink_metadata();
    meta.map_or(Ok(()), |meta| trusted(&meta)).map_err(|why| format!("{}: {why}", path.display()))
}

/// Writes down what lies in a directory and what it was made of, takes from others the right to change it, and waits until it is on
/// the disk. Fails with the file and what could not be done with it.
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

/// A file that was compared with the list, and how to tell that nobody has touched it since.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    path: PathBuf,
    listed: FileDigest,
    stamp: Stamp,
}

/// What the system changes whenever a file's content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Inode, and the time of its last change, which no program sets.
    #[cfg(unix)]
    inode: (u64, i64, i64),
}

impl Stamp {
    fn of(meta: &fs::Metadata) -> Stamp {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Stamp {
            bytes: meta.len(),
            modified: meta.modified().ok(),
            #[cfg(unix)]
            inode: (meta.ino(), meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl Checked {
    fn new(path: PathBuf, listed: FileDigest) -> Result<Checked, String> {
        let cannot = |e: io::Error| format!("{} cannot be read: {e}", path.display());
        // The stamp is older than what is read, so that a change meanwhile is seen later.
        let stamp = Stamp::of(&path.symlink_metadata().map_err(cannot)?);
        safe(&path)?;
        match listed.mismatch(&fs::read(&path).map_err(cannot)?) {
            Some(damage) => Err(format!("{}: {damage}", path.display())),
            None => Ok(Checked { path, listed, stamp }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `Err` says why the file is no longer the one that was compared.
    pub(crate) fn still(&self) -> Result<(), String> {
        let unchanged = self.path.symlink_metadata().is_ok_and(|meta| Stamp::of(&meta) == self.stamp);
        if unchanged { Ok(()) } else { Checked::new(self.path.clone(), self.listed.clone()).map(|_| ()) }
    }
}
