//! Libraries of NVIDIA's, looked for before anything is asked of them.
//!
//! cudarc opens them when a function is first called, and panics if one is missing. Or it is linked to them, if another
//! crate of the program asks for that (candle does). Looking for them here is right in both cases: the system's loader
//! returns libraries that are already open.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

use libloading::Library;

/// The names of the driver, which are among those that cudarc tries.
pub(super) const DRIVER: &[&str] = if cfg!(windows) { &["nvcuda"] } else { &["cuda"] };

/// The first of the libraries that the system's loader finds: by its name, or by that with the version of its
/// interface, which is all that there is where no toolkit is installed.
pub(super) fn find(names: &[&str]) -> Option<Library> {
    let versions: &[&str] = if cfg!(windows) { &[""] } else { &["", ".1", ".13"] };
    let mut files =
        names.iter().flat_map(|name| versions.iter().map(move |v| format!("{DLL_PREFIX}{name}{DLL_SUFFIX}{v}")));
    // SAFETY: loading a library runs its initialisers; it is NVIDIA's, or a stand-in that someone put there.
    files.find_map(|file| unsafe { Library::new(file) }.ok())
}

/// Whether the system's loader finds a library of one of these names, without `lib` and `.so`: `cublas`. cudarc panics where one is missing
/// that it needs.
///
/// ```
/// assert!(!cutemplate::launch::has_library(&["no_such_library"]));
/// ```
pub fn has_library(names: &[&str]) -> bool {
    find(names).is_some()
}
