//! Files of the store that are run from where they lie.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Entry;
use super::entry::safe;
use crate::bundle::FileDigest;

impl Entry {
    /// Every file, in the order of their names, each compared; `Err` says why one is not to be used.
    pub(crate) fn checked(&self) -> Result<Vec<Checked>, String> {
        self.list.files.iter().map(|file| Checked::new(self.dir.join(&file.name), file.clone())).collect()
    }
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
