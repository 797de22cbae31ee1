//! The store of compiled kernels: one directory per key, checked before it is used, made under a lock by rename.
//!
//! The key covers the sources, the whole command line, the variables that nvcc reads, and the versions of nvcc, CUTLASS
//! and this crate. What the key cannot cover, the content of the headers and of the compiler, is remembered as the size
//! and time of each file that nvcc read: a change in any of them makes the entry stale.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cutlass_sys::Env;
use serde::{Deserialize, Serialize};

use super::cache::remove;
use super::error::Error;
use super::manifest::Manifest;
use super::owner::{claim, trusted};
use crate::digest::Digest;
use crate::fatbin::Vouched;

const MANIFEST: &str = "manifest.json";
const INPUTS: &str = "inputs.json";
const STAGING: &str = ".staging-";
/// How stale the time of last use, that of the manifest, may be.
const TOUCH: Duration = Duration::from_secs(24 * 3600);

/// Whether a kernel had to be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was in the store, and whole.
    Cached,
    /// It was not in the store.
    Built,
    /// It was in the store but could not be used, for this reason.
    Rebuilt(String),
}

/// A compiled kernel. Only [`Compiler`](super::Compiler) makes one, so it vouches for its machine code: that is what nvcc made of
/// the text, and its sha256 is the one that was written down when nvcc had returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    manifest: Manifest,
    fatbin: Vec<u8>,
    path: PathBuf,
    outcome: Outcome,
    unit: Digest,
    inputs: Vec<PathBuf>,
}

impl Compiled {
    /// What is known about it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The fatbin, whose sha256 was checked.
    pub fn fatbin(&self) -> &[u8] {
        &self.fatbin
    }

    /// The fatbin's file in the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it had to be compiled.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The files outside of the kernel's own text that nvcc read, and its programs.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// The fatbin, to be loaded.
    pub fn vouched(&self) -> Vouched<'_> {
        Vouched::new(&self.fatbin, self.unit)
    }

    pub(super) fn with_outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    #[cfg(test)]
    pub(super) fn for_test(manifest: Manifest) -> Self {
        let (fatbin, unit) = (Vec::new(), Digest::of(b""));
        Self { manifest, fatbin, path: PathBuf::new(), outcome: Outcome::Cached, unit, inputs: Vec::new() }
    }
}

/// The right to make entries. Given back at once when it is dropped: another thread may just be starting a process, which holds
/// the file open too until it runs a program of its own.
pub(super) struct Lock(fs::File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Where this fails, it goes with the file.
        let _ = self.0.unlock();
    }
}

/// What the store has for a key.
pub(super) enum Lookup {
    Hit(Box<Compiled>),
    Miss,
    /// There is an entry that cannot be used.
    Unusable(String),
}

/// A file that a compilation read, as it was then.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Input {
    path: PathBuf,
    bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    changed: u64,
}

impl Input {
    /// The file as it is now.
    pub(super) fn now(path: &Path) -> io::Result<Input> {
        let meta = path.metadata()?;
        let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = u64::try_from(changed.as_nanos()).unwrap_or(u64::MAX);
        Ok(Input { path: path.to_path_buf(), bytes: meta.len(), changed })
    }
}

/// A directory of compiled kernels, shared by every checkout of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// A store in the given directory, which is made when it is first needed.
    pub fn at(root: impl Into<PathBuf>) -> Store {
        Store { root: root.into() }
    }

    /// The user's store: `kernels` in the cache directory.
    ///
    /// # Errors
    /// No variable names a cache directory.
    pub fn of_user(env: &Env) -> Result<Store, cutlass_sys::Error> {
        Ok(Store::at(env.cache_dir()?.join("kernels")))
    }

    /// The store's directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Waits for the right to make the entry of a key. A lock serves the keys that start with the same two digits; the
    /// system drops it when its holder ends.
    pub(super) fn lock(&self, key: &str) -> Result<Lock, Error> {
        let file = self.open_lock(key)?;
        file.lock().map_err(|e| Error::io("lock", &self.lock_path(key), e))?;
        Ok(Lock(file))
    }

    /// The same without waiting.
    fn try_lock(&self, key: &str) -> Result<Option<Lock>, Error> {
        let file = self.open_lock(key)?;
        Ok(file.try_lock().is_ok().then_some(Lock(file)))
    }

    fn open_lock(&self, key: &str) -> Result<fs::File, Error> {
        let path = self.lock_path(key);
        let dir = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(dir).map_err(|e| Error::io("make", dir, e))?;
        let file = fs::File::options().create(true).truncate(false).write(true).open(&path);
        file.map_err(|e| Error::io("open", &path, e))
    }

    /// Whether this is the name of what is being made, or was.
    pub(super) fn is_staging(name: &str) -> bool {
        name.starts_with(STAGING)
    }

    /// When an entry was last used, to the day.
    pub(super) fn used(entry: &Path) -> io::Result<SystemTime> {
        entry.join(MANIFEST).metadata().or_else(|_| entry.metadata())?.modified()
    }

    /// Removes an entry, or what a killed build left of one; `false` where it is being made. Who reads it meanwhile finds that a
    /// part is missing, and makes it again.
    pub(super) fn remove_unused(&self, name: &str) -> Result<bool, Error> {
        let key = name.strip_prefix(STAGING).unwrap_or(name);
        if key.len() < 2 || !key.is_ascii() {
            // Nothing that a store makes.
            return Ok(false);
        }
        let Some(_lock) = self.try_lock(key)? else { return Ok(false) };
        let path = self.root.join(name);
        let away = if Self::is_staging(name) {
            path
        } else {
            let away = self.root.join(format!("{STAGING}{key}-pruned"));
            remove(&away)?;
            match fs::rename(&path, &away) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
                done => done.map_err(|e| Error::io("move away", &path, e))?,
            }
            away
        };
        remove(&away)?;
        Ok(true)
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.root.join("locks").join(&key[..2])
    }

    /// An empty directory to make the entry of a key in. Its name depends on the key alone, since nvcc derives names of
    /// symbols from it: the same key gives the same bytes. The lock of the key must be held.
    pub(super) fn stage(&self, key: &str) -> Result<PathBuf, Error> {
        self.remove_abandoned(key);
        let dir = self.root.join(format!("{STAGING}{key}"));
        if dir.exists() {
            // A compiler whose parent was killed may still write there. It goes on in a directory that was moved away,
            // and not in the one that is made now; what cannot be removed yet is removed by a later build.
            let away = self.scratch(key)?;
            fs::rename(&dir, away.path().join("left")).map_err(|e| Error::io("move away", &dir, e))?;
        }
        fs::create_dir(&dir).map_err(|e| Error::io("make", &dir, e))?;
        Ok(dir)
    }

    /// A directory of its own for what is not kept; it goes when it is dropped.
    pub(super) fn scratch(&self, key: &str) -> Result<tempfile::TempDir, Error> {
        let prefix = format!("{STAGING}{key}-");
        tempfile::Builder::new().prefix(&prefix).tempdir_in(&self.root).map_err(|e| Error::io("write", &self.root, e))
    }

    /// Removes what builds left when they were killed: scratch of this key, and whatever of a key whose lock is free.
    fn remove_abandoned(&self, key: &str) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(other) = name.to_str().and_then(|name| name.strip_prefix(STAGING)) else { continue };
            if other.len() < 2 || !other.is_ascii() || other == key {
                continue;
            }
            // The lock of this key is held here, and is that of every key with the same digits.
            let own = other[..2] == key[..2];
            // Where this fails, the next build tries again.
            let _ =
                if own { remove(&entry.path()) } else { self.remove_unused(&format!("{STAGING}{other}")).map(drop) };
        }
    }

    /// What there is for a key of such a text, every part of it checked.
    pub(super) fn look_up(&self, key: &str, unit: Digest) -> Lookup {
        let dir = self.root.join(key);
        if !dir.is_dir() {
            return Lookup::Miss;
        }
        match load(&dir, unit) {
            Ok(compiled) => {
                touch(&dir.join(MANIFEST));
                Lookup::Hit(Box::new(compiled))
            }
            Err(why) => Lookup::Unusable(why),
        }
    }

    /// Completes a staged entry and renames it into place. The lock of the key must be held.
    pub(super) fn publish(&self, key: &str, staged: &Path, manifest: &Manifest, inputs: &[Input]) -> Result<(), Error> {
        write_json(&staged.join(MANIFEST), manifest)?;
        write_json(&staged.join(INPUTS), &inputs)?;
        for entry in fs::read_dir(staged).map_err(|e| Error::io("read", staged, e))?.flatten() {
            claim(&entry.path()).map_err(|e| Error::io("protect", &entry.path(), e))?;
            sync(&entry.path())?;
        }
        claim(staged).map_err(|e| Error::io("protect", staged, e))?;
        sync(staged)?;
        let place = self.root.join(key);
        remove(&place)?;
        fs::rename(staged, &place).map_err(|e| Error::io("rename into place", &place, e))?;
        sync(&self.root)
    }
}

/// Reads an entry; `Err` says why it cannot be used.
fn load(dir: &Path, unit: Digest) -> Result<Compiled, String> {
    let safe = |path: &Path| {
        let meta = path.symlink_metadata();
        meta.map_or(Ok(()), |meta| trusted(&meta)).map_err(|why| format!("{}: {why}", path.display()))
    };
    safe(dir)?;
    safe(&dir.join(MANIFEST))?;
    let manifest: Manifest = read_json(&dir.join(MANIFEST))?;
    let path = dir.join(&manifest.fatbin.name);
    safe(&path)?;
    let fatbin = fs::read(&path).map_err(|e| format!("{} cannot be read: {e}", manifest.fatbin.name))?;
    if let Some(damage) = manifest.fatbin.mismatch(&fatbin) {
        return Err(damage);
    }
    let inputs: Vec<Input> = read_json(&dir.join(INPUTS))?;
    for input in &inputs {
        if Input::now(&input.path).ok().as_ref() != Some(input) {
            return Err(format!("{} was changed since", input.path.display()));
        }
    }
    let inputs = inputs.into_iter().map(|input| input.path).collect();
    Ok(Compiled { manifest, fatbin, path, outcome: Outcome::Cached, unit, inputs })
}

/// Makes it look used, unless it does. What cannot be touched only goes, and is made again, earlier than need be.
fn touch(path: &Path) {
    let used = path.metadata().and_then(|meta| meta.modified()).unwrap_or(UNIX_EPOCH);
    if SystemTime::now().duration_since(used).unwrap_or_default() > TOUCH {
        let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bytes = fs::read(path).map_err(|e| format!("{name} cannot be read: {e}"))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("{name} is damaged: {e}"))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_vec_pretty(value).map_err(|e| Error::io("write", path, e.into()))?;
    fs::write(path, text).map_err(|e| Error::io("write", path, e))
}

fn sync(path: &Path) -> Result<(), Error> {
    if cfg!(windows) && path.is_dir() {
        // Windows does not open directories as files.
        return Ok(());
    }
    fs::File::open(path).and_then(|file| file.sync_all()).map_err(|e| Error::io("sync", path, e))
}
