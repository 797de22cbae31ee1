//! Unpacks wheels into one directory. No entry leaves it, no entry is a link, none is written twice.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component as Part, Path, PathBuf};

use zip::ZipArchive;
use zip::read::ZipFile;

use super::{Job, cache_error, sync};
use crate::find::{Error, ErrorKind, Wheel, claim};
use crate::progress::{Progress, Step};

/// Unpacks the kept entries of each wheel, then syncs every file and directory.
pub(super) fn unpack(job: &Job, wheels: &[PathBuf], root: &Path, progress: &mut dyn Progress) -> Result<(), Error> {
    let total = job.total();
    let mut done = 0;
    let mut written = Vec::new();
    for ((wheel, file), path) in job.wheels.iter().zip(wheels) {
        progress.step(Step::Unpack { component: job.name, done, total });
        written.extend(unpack_wheel(wheel, path, root)?);
        done += file.bytes;
    }
    // All data is written before the first sync waits for it.
    let dirs: BTreeSet<&Path> =
        written.iter().flat_map(|file| file.ancestors().skip(1)).filter(|dir| dir.starts_with(root)).collect();
    for path in written.iter().map(PathBuf::as_path).chain(dirs) {
        // A umask may let others write.
        claim(path).map_err(|e| cache_error("protect", path, &e))?;
        sync(path)?;
    }
    progress.step(Step::Unpack { component: job.name, done: total, total });
    Ok(())
}

fn unpack_wheel(wheel: &Wheel, path: &Path, root: &Path) -> Result<Vec<PathBuf>, Error> {
    let bad = |found: String| bad_archive(wheel, found);
    let file = fs::File::open(path).map_err(|e| cache_error("read", path, &e))?;
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(|e| bad(e.to_string()))?;
    let mut written = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| bad(e.to_string()))?;
        let name = entry.name().map_err(|e| bad(e.to_string()))?.into_owned();
        if entry.is_dir() {
            continue;
        }
        let Some(target) = kept(wheel, &name) else {
            continue;
        };
        let target = inside(&target).ok_or_else(|| bad(format!("the entry {name:?} leaves its folder")))?;
        if entry.unix_mode().is_some_and(|mode| !is_regular(mode)) {
            return Err(bad(format!("the entry {name:?} is a link or a device")));
        }
        let target = root.join(target);
        write_entry(&mut entry, &target).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => bad(format!("the entry {name:?} is there twice")),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                bad(format!("the entry {name:?}: {e}"))
            }
            _ => cache_error("write", &target, &e),
        })?;
        written.push(target);
    }
    if written.is_empty() {
        return Err(bad("nothing of what is needed".to_owned()));
    }
    Ok(written)
}

/// Where an entry goes, if it is kept.
fn kept(wheel: &Wheel, name: &str) -> Option<String> {
    wheel.keep.iter().find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?)))
}

/// The path of an entry, if it stays below the directory that it is joined to.
fn inside(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let plain = path.components().all(|part| matches!(part, Part::Normal(_)));
    (plain && !name.contains(['\\', '\0', ':'])).then(|| path.to_path_buf())
}

/// Whether a Unix mode is that of a plain file; archives may leave the type out.
fn is_regular(mode: u32) -> bool {
    matches!(mode & 0o170_000, 0 | 0o100_000)
}

fn write_entry<R: io::Read>(entry: &mut ZipFile<'_, R>, target: &Path) -> io::Result<()> {
    if let Some(dir) = target.parent() {
        fs::create_dir_all(dir)?;
    }
    let mut options = fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let runs = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
        options.mode(if runs { 0o755 } else { 0o644 });
    }
    let mut file = options.open(target)?;
    io::copy(entry, &mut file)?;
    Ok(())
}

fn bad_archive(wheel: &Wheel, found: String) -> Error {
    Error::new(
        ErrorKind::BadArchive,
        format!("the wheel {} {} cannot be unpacked", wheel.name, wheel.version),
        found,
        "a zip archive of plain files, each below its folder and there once",
        "this is a defect of this crate or of the wheel: please report it, and name an installed copy meanwhile (CUTLASS_PATH, CUDA_HOME)",
    )
}
