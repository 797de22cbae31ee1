//! Programs of the host: the C++ compiler, and python3.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::find::{Env, Error, ErrorKind, Origin, Tool, Version, defined, wrong_variable};

/// Whose options and builtins a C++ compiler has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// GCC.
    Gnu,
    /// Clang, Apple's included.
    Clang,
}

/// The host's C++ compiler. It is asked for C++17, which CuTe needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCompiler {
    /// The program.
    pub path: PathBuf,
    /// GCC or Clang.
    pub family: Family,
    /// Its version.
    pub version: Version,
    /// Where it was found.
    pub origin: Origin,
}

impl HostCompiler {
    /// `CXX`, else the first of `c++`, `g++` and `clang++` that works.
    pub(crate) fn find(env: &Env) -> Result<HostCompiler, Error> {
        if let Some(value) = env.get("CXX") {
            let named = Path::new(value);
            let required = "one C++17 compiler, GCC or Clang: a path or a name on PATH, without options";
            let path =
                env.program_named(value).ok_or_else(|| wrong_variable("CXX", named, "no such program", required))?;
            let origin = Origin::Variable("CXX");
            return HostCompiler::ask(&path, origin).map_err(|found| wrong_variable("CXX", named, found, required));
        }
        let mut tried = Vec::new();
        for name in ["c++", "g++", "clang++"] {
            let Some(path) = env.program(name) else {
                tried.push(format!("{name}: not on PATH"));
                continue;
            };
            match HostCompiler::ask(&path, Origin::Path) {
                Ok(found) => return Ok(found),
                Err(why) => tried.push(format!("{}: {why}", path.display())),
            }
        }
        Err(Error::new(
            ErrorKind::NoCompiler,
            "there is no C++ compiler",
            tried.join("\n"),
            "a C++17 compiler, GCC or Clang",
            "install one (Debian: g++), or set CXX",
        ))
    }

    /// Asks a program which macros it predefines in C++17; `Err` says why it is no compiler.
    fn ask(path: &Path, origin: Origin) -> Result<HostCompiler, String> {
        let output = Command::new(path)
            .args(["-std=c++17", "-x", "c++", "-E", "-dM", "-"])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}", output.status, text.trim()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let number = |name| defined(&text, name).and_then(|v| u32::try_from(v).ok());
        let version = |a, b, c| Some(Version::new(number(a)?, number(b)?, number(c)?));
        let clang = version("__clang_major__", "__clang_minor__", "__clang_patchlevel__");
        let gnu = version("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__");
        // Clang defines GCC's macros too.
        let (family, version) = match (clang, gnu) {
            (Some(version), _) => (Family::Clang, version),
            (None, Some(version)) => (Family::Gnu, version),
            (None, None) => return Err("neither GCC nor Clang".to_owned()),
        };
        Ok(HostCompiler { path: path.to_path_buf(), family, version, origin })
    }
}

/// What nvcc preprocesses with, where `NVCC_CCBIN` says so, is there: nvcc itself would only tell that it failed.
pub(crate) fn nvcc_ccbin(env: &Env) -> Result<(), Error> {
    const NAME: &str = "NVCC_CCBIN";
    let Some(value) = env.get(NAME) else { return Ok(()) };
    let named = Path::new(value);
    let found = match (named.is_absolute(), named.components().count()) {
        (true, _) if named.is_dir() || env.program_named(value).is_some() => return Ok(()),
        (false, 1) if env.program_named(value).is_some() => return Ok(()),
        (false, 1) => "no such program on PATH",
        (false, _) => "a relative path, and nvcc runs in a folder of its own",
        (true, _) if named.exists() => "a file that cannot be run",
        (true, _) => "nothing there",
    };
    let required = "a C++ compiler, the absolute path of one, or of the directory that holds it";
    Err(wrong_variable(NAME, named, found, required).because("nvcc preprocesses with the compiler that it names"))
}

/// `python3`, which runs pip.
pub(crate) fn python(env: &Env) -> Result<Tool, Error> {
    let name = if cfg!(windows) { "python" } else { "python3" };
    let path = env.program(name).ok_or_else(|| {
        Error::new(
            ErrorKind::NoPython,
            "there is no python3",
            "no python3 on PATH",
            "python3 with pip, which downloads and checks the pinned wheels",
            "install python3 and pip (Debian: python3-pip), or name installed copies: CUTLASS_PATH, CUDA_HOME",
        )
    })?;
    Ok(Tool { path, origin: Origin::Path })
}
