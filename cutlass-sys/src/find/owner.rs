//! Whose a file of the cache is. What others can write, a process of this user must neither run nor load.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

/// Whether nobody but this user, and the system, can have written a file.
///
/// # Errors
/// Somebody else can: who.
#[cfg(unix)]
pub fn trusted(meta: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    if meta.mode() & 0o022 != 0 {
        return Err(format!("others than its owner can write it (mode {:o})", meta.mode() & 0o7777));
    }
    // Where the system does not say who this is, the mode has to do.
    let own = fs::metadata("/proc/self").map_or(meta.uid(), |process| process.uid());
    if meta.uid() != own && meta.uid() != 0 {
        return Err(format!("it belongs to user {}, and this is user {own}", meta.uid()));
    }
    Ok(())
}

/// Elsewhere the directory of a user's caches is the user's alone.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn trusted(_: &Metadata) -> Result<(), String> {
    Ok(())
}

/// Takes from others the right to write.
///
/// # Errors
/// The system refuses.
#[cfg(unix)]
pub fn claim(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata()?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode & !0o022))
}

/// Elsewhere others have none.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn claim(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether a directory and all that is below it is [`trusted`]; a link is what it leads to.
pub(crate) fn trusted_below(path: &Path) -> Result<(), String> {
    let told = |why: String| format!("{}: {why}", path.display());
    let meta = path.metadata().map_err(|e| told(e.to_string()))?;
    trusted(&meta).map_err(told)?;
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(|e| told(e.to_string()))? {
        trusted_below(&entry.map_err(|e| told(e.to_string()))?.path())?;
    }
    Ok(())
}
