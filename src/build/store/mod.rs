//! The store of what nvcc made: kernels and their PTX. A directory for each key, checked before it is used, made under a lock by
//! rename.
//!
//! A key covers texts, command line, the variables that a compiler reads, and versions. It cannot cover the content of
//! the headers and of the compiler. An entry remembers the size and time of each such file: a change in any of them
//! makes the entry stale.

mod entry;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use entry::Entry;

/// Raised when entries look otherwise than before: part of each key.
pub(crate) const FORMAT: &str = "files and inputs in entry.json";

const STAGING: &str = ".staging-";
/// Entries that were not used for this long are removed.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// How stale the time of last use, that is of the list, may be.
const TOUCH: Duration = Duration::from_secs(3600);

/// Whether something had to be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was in the store, and whole.
    Cached,
    /// It was not in the store.
    Built,
    /// It was in the store but could not be used, for this reason.
    Rebuilt(String),
}

/// The store cannot be read or written, or somebody changed what had just been made.
#[derive(Debug)]
pub(crate) struct StoreError {
    pub(crate) verb: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Why `verb` could not be done with `path`.
pub(crate) fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError { verb, path, source }
}

/// The right to make entries, or to remove them. Given back at once when it is dropped: another thread may just be starting a process, which holds
/// the file open too until it runs a program of its own.
pub(crate) struct Lock(fs::File);

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, closing the file unlocks it.
        let _ = self.0.unlock();
    }
}

/// The store's answer for a key.
enum Found<T> {
    Whole(T),
    Nothing,
    /// There is an entry that cannot be used.
    Unusable(String),
}

/// Where an entry is made.
pub(crate) struct Stage {
    /// The final path of the entry. Its name depends on the key alone, because nvcc derives names of symbols from it:
    /// the same key gives the same bytes.
    pub(crate) dir: PathBuf,
    /// A folder for entries that are not kept.
    pub(crate) scratch: tempfile::TempDir,
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

    /// The user's store of kernels: `kernels` in the cache directory.
    ///
    /// # Errors
    /// No variable names a cache directory.
    pub fn of_user(env: &cutlass_sys::Env) -> Result<Store, cutlass_sys::Error> {
        Ok(Store::at(env.cache_dir()?.join("kernels")))
    }

    /// The store's directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The result of `open` on the entry of a key. `make` makes the entry if it is missing, or if `open` finds it
    /// damaged. One process at a time makes a key; the others wait and use its result. `make` returns the files outside
    /// of the stage that it read.
    pub(crate) fn find_or_make<T, E: From<StoreError>>(
        &self,
        key: &str,
        open: impl Fn(&Entry) -> Result<T, String>,
        make: impl FnOnce(&Stage) -> Result<Vec<PathBuf>, E>,
    ) -> Result<(T, Outcome), E> {
        let look_up = || self.look_up(key, &open);
        if let Found::Whole(found) = look_up() {
            return Ok((found, Outcome::Cached));
        }
        let _lock = self.lock(key)?;
        let outcome = match look_up() {
            Found::Whole(found) => return Ok((found, Outcome::Cached)),
            Found::Nothing => Outcome::Built,
            Found::Unusable(why) => Outcome::Rebuilt(why),
        };
        let stage = self.stage(key)?;
        let made = make(&stage).and_then(|inputs| Ok(self.publish(key, &stage.dir, &inputs)?));
        if made.is_err() {
            // The rest of a failed build is useless; the next build would remove it too.
            let _ = fs::remove_dir_all(&stage.dir);
        }
        made?;
        let changed = |why: String| E::from(failed("keep", &self.root.join(key))(io::Error::other(why)));
        match look_up() {
            Found::Whole(found) => Ok((found, outcome)),
            Found::Nothing => Err(changed("somebody removed it at once".into())),
            Found::Unusable(why) => Err(changed(why)),
        }
    }

    /// What `open` reads of the entry of a key, if it is there and whole.
    pub(crate) fn find<T>(&self, key: &str, open: impl Fn(&Entry) -> Result<T, String>) -> Option<T> {
        match self.look_up(key, open) {
            Found::Whole(found) => Some(found),
            Found::Nothing | Found::Unusable(_) => None,
        }
    }

    fn look_up<T>(&self, key: &str, open: impl Fn(&Entry) -> Result<T, String>) -> Found<T> {
        let dir = self.root.join(key);
        if !dir.is_dir() {
            return Found::Nothing;
        }
        match Entry::open(&dir).and_then(|entry| open(&entry)) {
            Ok(found) => {
                touch(&dir.join(entry::LIST));
                Found::Whole(found)
            }
            Err(why) => Found::Unusable(why),
        }
    }

    /// Waits for the lock of a key's entry. Keys that start with the same two digits share a lock, so a holder must not
    /// ask for another. The system drops the lock when its holder ends.
    fn lock(&self, key: &str) -> Result<Lock, StoreError> {
        let (file, path) = self.open_lock(key)?;
        file.lock().map_err(failed("lock", &path))?;
        Ok(Lock(file))
    }

    /// The same without waiting.
    fn try_lock(&self, key: &str) -> Result<Option<Lock>, StoreError> {
        let (file, _) = self.open_lock(key)?;
        Ok(file.try_lock().is_ok().then_some(Lock(file)))
    }

    /// Waits until nobody else removes entries. Otherwise two evictors would skip the entries that the other has
    /// locked.
    pub(crate) fn lock_removal(&self) -> Result<Lock, StoreError> {
        self.lock("removal")
    }

    fn open_lock(&self, key: &str) -> Result<(fs::File, PathBuf), StoreError> {
        let dir = self.root.join("locks");
        fs::create_dir_all(&dir).map_err(failed("make", &dir))?;
        let path = dir.join(&key[..2]);
        let file = fs::File::options().create(true).truncate(false).write(true).open(&path);
        file.map(|file| (file, path.clone())).map_err(failed("open", &path))
    }

    /// Whether this is the name of an unfinished entry.
    pub(crate) fn is_staging(name: &str) -> bool {
        name.starts_with(STAGING)
    }

    /// When an entry was last used, to the hour.
    pub(crate) fn used(entry: &Path) -> io::Result<SystemTime> {
        entry.join(entry::LIST).metadata().or_else(|_| entry.symlink_metadata())?.modified()
    }

    /// Removes an entry that was not used since, or the rest of a killed build; `false` if it is being made, or was
    /// used. A reader meanwhile finds that a part is missing, and makes the entry again.
    pub(crate) fn remove_unused(&self, name: &str, since: SystemTime) -> Result<bool, StoreError> {
        let key = name.strip_prefix(STAGING).unwrap_or(name);
        if key.len() < 2 || !key.is_ascii() {
            // Nothing that a store makes.
            return Ok(false);
        }
        let Some(_lock) = self.try_lock(key)? else { return Ok(false) };
        let path = self.root.join(name);
        if Self::used(&path).is_ok_and(|used| used > since) {
            return Ok(false);
        }
        let away = if Self::is_staging(name) {
            path
        } else {
            let away = self.root.join(format!("{STAGING}{key}-pruned"));
            remove(&away)?;
            match fs::rename(&path, &away) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
                done => done.map_err(failed("move away", &path))?,
            }
            away
        };
        remove(&away)?;
        Ok(true)
    }

    /// An empty directory to make the entry of a key in. The lock of the key must be held.
    fn stage(&self, key: &str) -> Result<Stage, StoreError> {
        self.tidy(key);
        let dir = self.root.join(format!("{STAGING}{key}"));
        if dir.exists() {
            // A compiler whose parent was killed may still write there. It goes on in a directory that was moved away,
            // and not in the one that is made now; what cannot be removed yet is removed by a later build.
            let away = self.scratch(key)?;
            fs::rename(&dir, away.path().join("left")).map_err(failed("move away", &dir))?;
        }
        fs::create_dir(&dir).map_err(failed("make", &dir))?;
        Ok(Stage { dir, scratch: self.scratch(key)? })
    }

    fn scratch(&self, key: &str) -> Result<tempfile::TempDir, StoreError> {
        let prefix = format!("{STAGING}{key}-");
        tempfile::Builder::new().prefix(&prefix).tempdir_in(&self.root).map_err(failed("write", &self.root))
    }

    /// Removes entries that were not used for long, and the rests of killed builds: scratch of this key, and of any key
    /// whose lock is free. If this fails, the next build tries again.
    fn tidy(&self, key: &str) {
        let now = SystemTime::now();
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(other) = name.strip_prefix(STAGING) else {
                let old = |used| now.duration_since(used).unwrap_or_default() > KEEP;
                if name != "locks" && name != key && Self::used(&entry.path()).is_ok_and(old) {
                    let _ = self.remove_unused(&name, now - KEEP);
                }
                continue;
            };
            if other == key {
                continue;
            }
            // The lock of this key is held here, and covers every key with the same digits.
            let own = other.get(..2).is_some_and(|digits| digits == &key[..2]);
            let _ = if own { remove(&entry.path()) } else { self.remove_unused(&name, now).map(drop) };
        }
    }

    /// Completes a staged entry and renames it into place. The lock of the key must be held.
    fn publish(&self, key: &str, staged: &Path, inputs: &[PathBuf]) -> Result<(), StoreError> {
        entry::seal(staged, inputs).map_err(|(verb, path, source)| StoreError { verb, path, source })?;
        let place = self.root.join(key);
        remove(&place)?;
        fs::rename(staged, &place).map_err(failed("rename into place", &place))?;
        entry::sync(&self.root).map_err(failed("sync", &self.root))
    }
}

/// Makes it look used, unless it does. What cannot be touched only goes, and is made again, earlier than need be.
fn touch(path: &Path) {
    let used = path.metadata().and_then(|meta| meta.modified()).unwrap_or(UNIX_EPOCH);
    if SystemTime::now().duration_since(used).unwrap_or_default() > TOUCH {
        let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// Removes a file or a directory that may be gone already.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    let is_dir = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let removed = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(e)),
        _ => Ok(()),
    }
}
