//! Fetching a component: one directory per component and version, shared by every checkout of this user.
//!
//! Under a file lock: pip downloads into a staging directory beside the target, every wheel's sha256 is checked, the
//! wheels are unpacked and synced, the marker is written last, and one rename makes the component appear. A process
//! that dies half way leaves a staging directory, which the next holder of the lock removes.

mod pip;
#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
mod unpack;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::find::{Component, Env, Error, ErrorKind, File, MARKER, Wheel, claim, trusted_below};
use crate::progress::{Progress, Step};

/// A component to be made: the wheels, and where they go.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// The finished directory. Its parent holds the lock and the staging directory.
    pub(crate) dir: PathBuf,
    /// What the marker in the finished directory says.
    pub(crate) marker: String,
    pub(crate) wheels: Vec<(Wheel, File)>,
}

impl Job {
    pub(crate) fn new(component: Component, env: &Env) -> Result<Job, Error> {
        let files = component.files()?;
        Ok(Job {
            name: component.name(),
            dir: component.dir(env)?,
            marker: component.marker()?,
            wheels: files.into_iter().map(|(w, f)| (*w, *f)).collect(),
        })
    }

    /// The size of all wheels in bytes.
    fn total(&self) -> u64 {
        self.wheels.iter().map(|(_, file)| file.bytes).sum()
    }

    fn is_done(&self) -> bool {
        let whole = fs::read_to_string(self.dir.join(MARKER)).is_ok_and(|found| found == self.marker);
        // What others could have changed is fetched again.
        whole && trusted_below(&self.dir).is_ok()
    }

    /// The target's name with a suffix, in the same parent.
    fn beside(&self, prefix: &str, suffix: &str) -> PathBuf {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        self.dir.with_file_name(format!("{prefix}{name}{suffix}"))
    }
}

/// Makes sure that the job's directory is there and whole.
pub(crate) fn provide(job: &Job, env: &Env, progress: &mut dyn Progress) -> Result<PathBuf, Error> {
    if job.is_done() {
        return Ok(job.dir.clone());
    }
    let parent = job.dir.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(|e| cache_error("make", parent, &e))?;
    let _lock = lock(job, progress)?;
    // Whoever held the lock before may have done the work.
    if !job.is_done() {
        remove_stale(job)?;
        let staging = Staging::new(job)?;
        let wheels = pip::download(job, &staging.path, env, progress)?;
        let root = staging.path.join("root");
        unpack::unpack(job, &wheels, &root, progress)?;
        publish(job, &root)?;
    }
    progress.step(Step::Ready { component: job.name, path: &job.dir });
    Ok(job.dir.clone())
}

/// The lock that one process holds while it makes the component; the system drops it when that process ends.
fn lock(job: &Job, progress: &mut dyn Progress) -> Result<fs::File, Error> {
    let path = job.beside(".", ".lock");
    let fail = |e: &io::Error| cache_error("lock", &path, e);
    let file = fs::File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| fail(&e))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(fs::TryLockError::WouldBlock) => {}
        Err(fs::TryLockError::Error(e)) => return Err(fail(&e)),
    }
    progress.step(Step::Wait { component: job.name, lock: &path });
    file.lock().map_err(|e| fail(&e))?;
    Ok(file)
}

/// Removes what earlier tries left: staging directories, and a target without a valid marker.
fn remove_stale(job: &Job) -> Result<(), Error> {
    let parent = job.dir.parent().unwrap_or(Path::new("/"));
    let prefix = job.beside(".staging-", "-");
    let prefix = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries = fs::read_dir(parent).map_err(|e| cache_error("read", parent, &e))?;
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            // A download that outlived its parent may still write there: what it leaves goes at the next try.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    if job.dir.exists() {
        fs::remove_dir_all(&job.dir).map_err(|e| cache_error("remove", &job.dir, &e))?;
    }
    Ok(())
}

/// Marks the unpacked root complete and renames it into place.
fn publish(job: &Job, root: &Path) -> Result<(), Error> {
    let marker = root.join(MARKER);
    fs::write(&marker, &job.marker).map_err(|e| cache_error("write", &marker, &e))?;
    claim(&marker).map_err(|e| cache_error("protect", &marker, &e))?;
    sync(&marker)?;
    sync(root)?;
    fs::rename(root, &job.dir).map_err(|e| cache_error("rename into place", &job.dir, &e))?;
    sync(job.dir.parent().unwrap_or(Path::new("/")))
}

/// Asks the system to put a file, or a directory's entries, on the disk.
fn sync(path: &Path) -> Result<(), Error> {
    if cfg!(windows) && path.is_dir() {
        // Windows does not open directories as files.
        return Ok(());
    }
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|e| cache_error("sync", path, &e))
}

/// A directory that is removed when it goes out of use, whatever happened.
struct Staging {
    path: PathBuf,
}

impl Staging {
    /// A directory that nobody else has: a download that outlived its parent may still write to an older one.
    fn new(job: &Job) -> Result<Staging, Error> {
        let mut number = std::process::id();
        let staging = loop {
            let path = job.beside(".staging-", &format!("-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => break Staging { path },
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number = number.wrapping_add(1),
                Err(e) => return Err(cache_error("make", &path, &e)),
            }
        };
        for name in ["wheels", "tmp", "root", "work"] {
            let dir = staging.path.join(name);
            fs::create_dir(&dir).map_err(|e| cache_error("make", &dir, &e))?;
        }
        Ok(staging)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Nothing is lost where this fails: the next holder of the lock removes the rest.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// An error of the file system under the cache directory.
fn cache_error(verb: &str, path: &Path, e: &io::Error) -> Error {
    let full =
        matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge);
    let what = format!("cannot {verb} {}", path.display());
    if full {
        return no_space(what, e.to_string());
    }
    let help = match e.kind() {
        io::ErrorKind::Unsupported => "set CUTEMPLATE_CACHE_DIR to a directory on a local file system",
        _ => "make it writable, or set CUTEMPLATE_CACHE_DIR to a directory that is",
    };
    Error::new(ErrorKind::Cache, what, e.to_string(), "a cache directory that this user can write", help)
}

fn no_space(what: String, found: String) -> Error {
    Error::new(
        ErrorKind::NoSpace,
        what,
        found,
        "room in the cache directory: 1 GiB holds every component, with its wheels while they are unpacked",
        "free some space, or set CUTEMPLATE_CACHE_DIR to a directory on another disk; nothing half done is kept",
    )
}
