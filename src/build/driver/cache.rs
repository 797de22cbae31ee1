//! The user's cache directory: its contents, and how to make it smaller.
//!
//! | folder | what | made again by | goes |
//! |---|---|---|---|
//! | `kernels` | compiled kernels: fatbin and manifest, or PTX, and the state of the headers that were read | nvcc | by [`Cache::prune`], after 30 days without use, and beyond a size |
//! | `host`, `runtime` | what an executor of earlier versions left | nothing | by [`Cache::prune`], always |
//! | `toolchain` | pinned tools that were fetched | downloading | by hand |
//!
//! If kernels take more than `CUTEMPLATE_CACHE_SIZE`, 10 GiB by default, every compilation removes the least recently
//! used ones.
//!
//! All but the tools are [`Store`]s.
//! Any of it may be removed by hand where nothing runs. Pruning is safe while other processes work: a kernel is read whole and
//! copied when it is asked for, so a process finds all of it or makes it again, and one that is being made is locked.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cutlass_sys::Env;

use super::error::Error;
use crate::store::Store;
use crate::units::Bytes;

/// The variable that says how large the kernels of the user's cache may be together: `20G`, `512M`.
pub const SIZE_VARIABLE: &str = "CUTEMPLATE_CACHE_SIZE";

/// How large they may be where it is not set.
pub const USUAL_SIZE: Bytes = Bytes(10 << 30);

/// The folders of a cache, with the kind of their entries.
const FOLDERS: [(&str, Kind); 4] =
    [("kernels", Kind::Kernel), ("host", Kind::Unfinished), ("runtime", Kind::Unfinished), ("toolchain", Kind::Tool)];

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A compiled kernel.
    Kernel,
    /// Files that a process is making, or left when it was killed; also files of earlier versions.
    Unfinished,
    /// A fetched part of the toolchain.
    Tool,
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Kind] = &[Kind::Kernel, Kind::Unfinished, Kind::Tool];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Kernel => "kernel",
            Kind::Unfinished => "unfinished",
            Kind::Tool => "tool",
        })
    }
}

/// One thing in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind of the entry.
    pub kind: Kind,
    /// The kernel that it belongs to, if any.
    pub kernel: Option<String>,
    /// Its file or directory.
    pub path: PathBuf,
    /// Size of its files.
    pub bytes: Bytes,
    /// When it was last used, to the hour; for tools and unfinished entries, when it was made.
    pub used: SystemTime,
}

/// Limits: entries beyond them are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Removes kernels that were not used for this long.
    pub older_than: Option<Duration>,
    /// Limit for all kernels together: the least recently used ones are removed first.
    pub max_size: Option<Bytes>,
}

/// What pruning did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// The removed entries.
    pub removed: Vec<Entry>,
    /// Entries that should have been removed, but are in use or may be.
    pub in_use: Vec<Entry>,
    /// Size of the kernels that are left.
    pub left: Bytes,
}

/// A cache directory.
///
/// ```no_run
/// use std::time::{Duration, SystemTime};
/// use cutemplate::build::cache::{Cache, Limits};
///
/// let cache = Cache::of_user(&cutlass_sys::Env::current())?;
/// let month = Duration::from_secs(30 * 24 * 3600);
/// let pruned = cache.prune(&Limits { older_than: Some(month), max_size: None }, SystemTime::now())?;
/// println!("{} entries gone, {} left", pruned.removed.len(), pruned.left);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// A cache in a directory, which need not be there.
    pub fn at(root: impl Into<PathBuf>) -> Cache {
        Cache { root: root.into() }
    }

    /// The user's: `CUTEMPLATE_CACHE_DIR`, else `cutemplate` in the platform's directory for caches.
    ///
    /// # Errors
    /// No variable names a cache directory.
    pub fn of_user(env: &Env) -> Result<Cache, cutlass_sys::Error> {
        Ok(Cache::at(env.cache_dir()?))
    }

    /// How large kernels may be together: `CUTEMPLATE_CACHE_SIZE`, or [`USUAL_SIZE`].
    ///
    /// # Errors
    /// The variable has no size.
    pub fn size_of_user(env: &Env) -> Result<Bytes, Error> {
        let Some(value) = env.get(SIZE_VARIABLE) else { return Ok(USUAL_SIZE) };
        let found = value.to_string_lossy();
        found.parse().map_err(|_| Error::Size { found: found.into_owned() })
    }

    /// Removes the least recently used kernels until they take no more than this. If this fails, the next compilation
    /// tries again.
    pub(crate) fn keep_within(&self, most: Bytes) {
        let limits = Limits { older_than: None, max_size: Some(most) };
        let _ = self.prune(&limits, SystemTime::now());
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All entries, least recently used first, except locks and entries that disappear meanwhile.
    ///
    /// # Errors
    /// A directory that is there cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut all = Vec::new();
        for (folder, usual) in FOLDERS {
            let folder = self.root.join(folder);
            let listed = match fs::read_dir(&folder) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                listed => listed.map_err(|e| Error::io("read", &folder, e))?,
            };
            for entry in listed.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let kind = match name.as_str() {
                    "locks" => continue,
                    name if Store::is_staging(name) => Kind::Unfinished,
                    _ => usual,
                };
                let path = entry.path();
                let (used, kernel) = (Store::used(&path).ok(), kernel(&path));
                all.extend(used.map(|used| Entry { kind, kernel, bytes: size(&path), path, used }));
            }
        }
        all.sort_by(|x, y| (x.used, &x.path).cmp(&(y.used, &y.path)));
        Ok(all)
    }

    /// Removes entries beyond the limits, and files that killed processes left. Tools stay.
    ///
    /// # Errors
    /// Something cannot be read, or not be removed.
    pub fn prune(&self, limits: &Limits, now: SystemTime) -> Result<Pruned, Error> {
        if !self.root.is_dir() {
            return Ok(Pruned { removed: Vec::new(), in_use: Vec::new(), left: Bytes(0) });
        }
        let _lock = Store::at(&self.root).lock_removal()?;
        let mut entries = self.entries()?;
        entries.retain(|entry| entry.kind != Kind::Tool);
        let left = Bytes(entries.iter().map(|entry| entry.bytes.0).sum());
        let mut pruned = Pruned { removed: Vec::new(), in_use: Vec::new(), left };
        for entry in entries {
            let idle = now.duration_since(entry.used).unwrap_or_default();
            let old = limits.older_than.is_some_and(|most| idle > most);
            let too_much = limits.max_size.is_some_and(|most| pruned.left > most);
            if !old && !too_much && entry.kind != Kind::Unfinished {
                continue;
            }
            if self.remove(&entry)? {
                pruned.left.0 -= entry.bytes.0;
                pruned.removed.push(entry);
            } else if entry.kind != Kind::Unfinished {
                pruned.in_use.push(entry);
            }
        }
        Ok(pruned)
    }

    /// Whether it is gone; else somebody uses it, or may.
    fn remove(&self, entry: &Entry) -> Result<bool, Error> {
        let (Some(root), Some(name)) = (entry.path.parent(), entry.path.file_name()) else { return Ok(false) };
        Ok(Store::at(root).remove_unused(&name.to_string_lossy(), entry.used)?)
    }
}

/// The name of the fatbin or PTX in an entry.
fn kernel(entry: &Path) -> Option<String> {
    let files = fs::read_dir(entry).into_iter().flatten().flatten().map(|file| file.path());
    let is_code = |file: &PathBuf| file.extension().is_some_and(|end| end == "fatbin" || end == "ptx");
    Some(files.filter(is_code).min()?.file_stem()?.to_string_lossy().into_owned())
}

/// Size of all files below. A file that disappears meanwhile counts as empty.
fn size(path: &Path) -> Bytes {
    let Ok(meta) = path.symlink_metadata() else { return Bytes(0) };
    if !meta.is_dir() {
        return Bytes(meta.len());
    }
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    Bytes(below.map(|entry| size(&entry.path()).0).sum())
}
