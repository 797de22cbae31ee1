//! Compiled programs, found again by a digest of everything that they were made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::{Error, error};

/// Entries that nobody has used for so long are removed.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// How stale the time of last use may be.
const TOUCH: Duration = Duration::from_secs(24 * 3600);

/// A digest of texts, each with its length, so that no two sequences look alike.
pub(super) struct Key(Sha256);

impl Key {
    pub(super) fn new() -> Key {
        Key(Sha256::new())
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

/// The entry of that name, if it is there.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let path = dir.join(name);
    let used = path.metadata().ok()?.modified().ok()?;
    if SystemTime::now().duration_since(used).unwrap_or_default() > TOUCH {
        // A file that cannot be touched is only removed, and made again, earlier than need be.
        let _ = fs::File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
    }
    Some(path)
}

/// The entry of that name, which `make` puts, where it is missing, at a path in a directory of its own. It appears at
/// once and whole; whoever else wants it meanwhile waits, in this process or another.
pub(super) fn find_or_make(
    dir: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<PathBuf, Error>,
) -> Result<PathBuf, Error> {
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
    let path = dir.join(name);
    fs::rename(&made, &path).map_err(|e| error::cache("be written", &path, &e))?;
    // Who waits for the lock finds the entry; who comes later never asks for it.
    let _ = fs::remove_file(&lock_path);
    Ok(path)
}

/// Removes what was not used for long, and what was left by processes that were killed. Failing to is no harm.
fn remove_unused(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if SystemTime::now().duration_since(used).unwrap_or_default() > KEEP {
            let _ = if meta.is_dir() { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        }
    }
}
