//! Whose a file of the cache is. What others can write, a process of this user must neither run nor load.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Whether nobody but this user, and the system, can have written a file; `Err` says who can.
#[cfg(unix)]
pub(crate) fn trusted(meta: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    if meta.mode() & 0o022 != 0 {
        return Err(format!("others than its owner can write it (mode {:o})", meta.mode() & 0o7777));
    }
    // Where the system does not say who this is, the mode has to do.
    let own = std::fs::metadata("/proc/self").map_or(meta.uid(), |process| process.uid());
    if meta.uid() != own && meta.uid() != 0 {
        return Err(format!("it belongs to user {}, and this is user {own}", meta.uid()));
    }
    Ok(())
}

/// Elsewhere the directory of a user's caches is the user's alone.
#[cfg(not(unix))]
pub(crate) fn trusted(_: &Metadata) -> Result<(), String> {
    Ok(())
}

/// Takes from others the right to write.
#[cfg(unix)]
pub(crate) fn claim(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata()?.permissions().mode();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & !0o022))
}

#[cfg(not(unix))]
pub(crate) fn claim(_: &Path) -> io::Result<()> {
    Ok(())
}
