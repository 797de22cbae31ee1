//! The environment, as a value: what a search depends on is passed in, never read behind the caller's back.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Error, ErrorKind};

/// The variables and system directories that a search reads.
///
/// An empty variable counts as unset.
///
/// # Examples
/// ```
/// let env = cutlass_sys::Env::from_pairs([("CUTEMPLATE_FETCH", "1"), ("NVCC", "")]);
/// assert!(env.fetch_allowed());
/// assert!(env.get("NVCC").is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    system: SystemDirs,
}

/// Directories of the system, searched after the variables and `PATH`, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemDirs {
    /// CUDA roots: each would hold `bin/nvcc` and `include/cuda_runtime_api.h`.
    pub cuda: Vec<PathBuf>,
    /// CUTLASS roots: each would hold `include/cutlass/version.h`.
    pub cutlass: Vec<PathBuf>,
    /// Library directories: each would hold a `libclang` shared library.
    pub llvm: Vec<PathBuf>,
}

impl SystemDirs {
    /// Where distributions and NVIDIA's installers put these things on Unix.
    #[must_use]
    pub fn usual() -> SystemDirs {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        let mut llvm: Vec<PathBuf> = paths(&["/usr/lib64", "/usr/lib", "/usr/local/lib"]);
        let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let mut versions: Vec<PathBuf> = versions
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm-"))
            .map(|entry| entry.path().join("lib"))
            .collect();
        versions.sort();
        llvm.extend(versions.into_iter().rev());
        SystemDirs {
            cuda: paths(&["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr"]),
            cutlass: paths(&["/usr/local", "/usr", "/opt/cutlass"]),
            llvm,
        }
    }
}

impl Env {
    /// The variables that decide what is found, apart from `PATH`.
    pub const VARIABLES: [&'static str; 9] = [
        "CUTLASS_PATH",
        "NVCC",
        "CUDA_HOME",
        "CUDA_PATH",
        "CXX",
        "LIBCLANG_PATH",
        "CUTEMPLATE_CACHE_DIR",
        "XDG_CACHE_HOME",
        "HOME",
    ];

    /// A snapshot of this process's environment, with the usual system directories.
    #[must_use]
    pub fn current() -> Env {
        Env { vars: std::env::vars_os().collect(), system: SystemDirs::usual() }
    }

    /// Exactly these variables and no system directory: for tests, and for builds that must not look around.
    pub fn from_pairs<K, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Env
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let vars = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Env { vars, system: SystemDirs::default() }
    }

    /// Replaces the system directories that are searched.
    #[must_use]
    pub fn with_system(mut self, system: SystemDirs) -> Env {
        self.system = system;
        self
    }

    /// The system directories that are searched.
    #[must_use]
    pub fn system(&self) -> &SystemDirs {
        &self.system
    }

    /// A variable's value; `None` where it is unset or empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// Whether pinned wheels may be downloaded: `CUTEMPLATE_FETCH=1`.
    #[must_use]
    pub fn fetch_allowed(&self) -> bool {
        self.get("CUTEMPLATE_FETCH") == Some(OsStr::new("1"))
    }

    /// The first executable of that name on `PATH`.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.on_path(name).into_iter().find(|path| is_executable(path))
    }

    /// Where on `PATH` a program of that name is looked for, in order.
    pub(crate) fn on_path(&self, name: &str) -> Vec<PathBuf> {
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let dirs = self.get("PATH").into_iter().flat_map(std::env::split_paths);
        dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join(&file)).collect()
    }

    /// The program that a variable names: a path, or a name to be looked up on `PATH`.
    pub(crate) fn program_named(&self, value: &OsStr) -> Option<PathBuf> {
        let path = Path::new(value);
        if path.components().count() > 1 {
            return is_executable(path).then(|| path.to_path_buf());
        }
        self.program(value.to_str()?)
    }

    /// The directory for everything that is fetched or compiled once per user: `CUTEMPLATE_CACHE_DIR`, else
    /// `cutemplate` under `XDG_CACHE_HOME`, the platform's cache directory, or `HOME/.cache`.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] where no variable names an absolute directory.
    pub fn cache_dir(&self) -> Result<PathBuf, Error> {
        if let Some(dir) = self.get("CUTEMPLATE_CACHE_DIR") {
            return absolute("CUTEMPLATE_CACHE_DIR", dir);
        }
        let dir = if cfg!(windows) {
            self.get("LOCALAPPDATA").map(PathBuf::from)
        } else if let Some(dir) = self.get("XDG_CACHE_HOME") {
            Some(absolute("XDG_CACHE_HOME", dir)?)
        } else {
            let below = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
            self.get("HOME").map(|home| Path::new(home).join(below))
        };
        dir.filter(|dir| dir.is_absolute()).map(|dir| dir.join("cutemplate")).ok_or_else(|| {
            Error::new(
                ErrorKind::Cache,
                "there is no cache directory",
                "neither CUTEMPLATE_CACHE_DIR nor XDG_CACHE_HOME nor HOME names one",
                "an absolute directory that this user can write",
                "set CUTEMPLATE_CACHE_DIR",
            )
        })
    }
}

fn absolute(name: &str, dir: &OsStr) -> Result<PathBuf, Error> {
    let path = PathBuf::from(dir);
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Error::new(
        ErrorKind::Cache,
        format!("{name} is not usable"),
        format!("the relative path {}", path.display()),
        "an absolute path, since each build script runs in a directory of its own",
        format!("set {name} to an absolute path, or unset it"),
    ))
}

/// Whether the path is a file that can be run.
fn is_executable(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        meta.is_file() && meta.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    meta.is_file()
}
