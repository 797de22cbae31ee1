//! Compiled programs, found again by a digest of everything that they were made of.
//!
//! An entry is a directory with the files and, in `sha256`, what they were when the compiler had made them. What is found is
//! compared with that before it is used: a program that was cut off by a full disk, or replaced, never runs, and is compiled again.
//! An entry that other users can write, or that belongs to one, is no better than none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::{Error, error};
use crate::build::owner::{claim, trusted};
use crate::digest::Digest;

/// Entries that nobody has used for so long are removed.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// How stale the time of last use may be.
const TOUCH: Duration = Duration::from_secs(24 * 3600);
/// The file of an entry that says what the others are: a line `sha256  name` for each.
const SUMS: &str = "sha256";
/// Raised when entries look otherwise than before.
const FORMAT: &str = "entries with sha256";

/// A digest of texts, each with its length, so that no two sequences look alike.
pub(super) struct Key(Sha256);

impl Key {
    pub(super) fn new() -> Key {
        let mut key = Key(Sha256::new());
        key.add(FORMAT);
        key
    }

    pub(super) fn add(&mut self, text: impl AsRef<[u8]>) -> &mut Key {
        let text = text.as_ref();
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
        self
    }

    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A file that was compared with its sha256, and how to tell that nobody has touched it since.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    path: PathBuf,
    digest: Digest,
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
    /// Reads the file and compares it; `Err` says why it is not to be used.
    fn new(path: PathBuf, digest: Digest) -> Result<Checked, String> {
        let cannot = |e: io::Error| format!("{} cannot be read: {e}", path.display());
        let meta = path.symlink_metadata().map_err(cannot)?;
        trusted(&meta).map_err(|why| format!("{}: {why}", path.display()))?;
        // The stamp is older than what is read, so that a change meanwhile is seen later.
        let stamp = Stamp::of(&meta);
        let found = Digest::of(&fs::read(&path).map_err(cannot)?);
        if found != digest {
            return Err(format!("{}: sha256 {found}, and {digest} when it was made", path.display()));
        }
        Ok(Checked { path, digest, stamp })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails where the file is no longer the one that was compared.
    pub(super) fn still(&self) -> Result<(), Error> {
        let unchanged = self.path.symlink_metadata().is_ok_and(|meta| Stamp::of(&meta) == self.stamp);
        if unchanged {
            return Ok(());
        }
        let again = Checked::new(self.path.clone(), self.digest);
        again.map(|_| ()).map_err(|why| error::changed(&why))
    }
}

/// The files of an entry, in the order of their names, each compared; `Err` says why it is not to be used.
fn open(entry: &Path) -> Result<Vec<Checked>, String> {
    let cannot = |e: io::Error| format!("{} cannot be read: {e}", entry.display());
    trusted(&entry.symlink_metadata().map_err(cannot)?).map_err(|why| format!("{}: {why}", entry.display()))?;
    let sums = fs::read_to_string(entry.join(SUMS)).map_err(cannot)?;
    let file = |line: &str| {
        let (digest, name) = line.split_once("  ").ok_or_else(|| format!("`{line}` in {SUMS}"))?;
        Checked::new(entry.join(name), digest.parse().map_err(|e| format!("{SUMS}: {e}"))?)
    };
    let files = sums.lines().map(file).collect::<Result<Vec<_>, _>>()?;
    if files.is_empty() { Err(format!("{} is empty", entry.join(SUMS).display())) } else { Ok(files) }
}

/// The entry of that name, if it is there and whole.
fn find(dir: &Path, name: &str) -> Option<Vec<Checked>> {
    let path = dir.join(name);
    let used = path.metadata().ok()?.modified().ok()?;
    let files = open(&path).ok()?;
    if SystemTime::now().duration_since(used).unwrap_or_default() > TOUCH {
        // What cannot be touched is only removed, and made again, earlier than need be.
        let _ = fs::File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
    }
    Some(files)
}

/// The entry of that name, whose files `make` makes in a directory of its own where it is missing or not whole. It appears at once
/// and whole; whoever else wants it meanwhile waits, in this process or another.
pub(super) fn find_or_make(
    dir: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<Vec<PathBuf>, Error>,
) -> Result<Vec<Checked>, Error> {
    if let Some(found) = find(dir, name) {
        return Ok(found);
    }
    fs::create_dir_all(dir).map_err(|e| error::cache("be made", dir, &e))?;
    let lock_path = dir.join(format!("{name}.lock"));
    let lock = fs::File::create(&lock_path).map_err(|e| error::cache("be written", &lock_path, &e))?;
    // The lock goes with the file handle, however this process ends.
    lock.lock().map_err(|e| error::cache("be locked", &lock_path, &e))?;
    if let Some(found) = find(dir, name) {
        return Ok(found);
    }
    remove_unused(dir);
    let work =
        tempfile::Builder::new().prefix("making-").tempdir_in(dir).map_err(|e| error::cache("be written", dir, &e))?;
    let made = make(work.path())?;
    let entry = work.path().join("entry");
    seal(&entry, made).map_err(|e| error::cache("be written", &entry, &e))?;
    let path = dir.join(name);
    // What is there could not be used.
    remove(&path).and_then(|()| fs::rename(&entry, &path)).map_err(|e| error::cache("be written", &path, &e))?;
    let found = open(&path).map_err(|why| error::changed(&why));
    // Who waits for the lock finds the entry; who comes later never asks for it.
    let _ = fs::remove_file(&lock_path);
    found
}

/// Moves files into an entry, which only their owner can change, and writes down what they are.
fn seal(entry: &Path, mut files: Vec<PathBuf>) -> io::Result<()> {
    fs::create_dir(entry)?;
    files.sort();
    let mut sums = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = entry.join(&name);
        fs::rename(&file, &place)?;
        sums += &format!("{}  {name}\n", Digest::of(&fs::read(&place)?));
        claim(&place)?;
    }
    let list = entry.join(SUMS);
    fs::write(&list, sums)?;
    claim(&list)?;
    claim(entry)
}

/// Removes what is there, whatever it is.
fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    }
}

/// Removes what was not used for long, and what was left by processes that were killed. Failing to is no harm.
fn remove_unused(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if SystemTime::now().duration_since(used).unwrap_or_default() > KEEP {
            let _ = remove(&entry.path());
        }
    }
}
