//! Files that a build leaves.

use std::io::{self, Write};
use std::path::Path;

/// Writes a file whole or not at all, and leaves it alone where it has these bytes already, so that its time stays.
/// Returns whether it was written.
///
/// # Errors
/// Those of the file system.
///
/// # Examples
/// ```
/// let dir = std::env::temp_dir().join(format!("cutemplate-{}", std::process::id()));
/// std::fs::create_dir_all(&dir)?;
/// let file = dir.join("kernel.cuh");
/// assert!(cutemplate::build::write_if_changed(&file, b"text")?);
/// assert!(!cutemplate::build::write_if_changed(&file, b"text")?);
/// std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg_attr(not(feature = "build"), allow(unreachable_pub, reason = "build offers it"))]
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    match std::fs::read(path) {
        Ok(found) if found == bytes => return Ok(false),
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A temporary file is private; generated files are not.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(true)
}
