//! What a toolchain lacks, before something fails for it.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::find::{Component, Env, Error};
use crate::finder::Finder;
use crate::missing::not_found;
use crate::programs::nvcc_ccbin;

/// How a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is there.
    Found,
    /// It is not there, and is fetched when it is first needed.
    Fetchable,
    /// It is not there.
    Missing,
    /// A variable names something wrong.
    Wrong,
}

/// One part of the toolchain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The part: `CUTLASS`, `nvcc`, ...
    pub name: &'static str,
    /// What needs it.
    pub needed_for: &'static str,
    /// Whether only tests need it: no kernel is built or run by it.
    pub tests_only: bool,
    /// How it stands.
    pub state: State,
    /// Its file or directory, where it is found.
    #[serde(serialize_with = "as_text")]
    pub path: Option<PathBuf>,
    /// Its version, where it is found and known.
    pub version: Option<String>,
    /// From where: `variable NVCC`, `PATH`, `system`, `pinned wheels`.
    pub origin: Option<String>,
    /// What to do, where it is not found.
    pub help: Option<String>,
}

/// All parts, found or missing.
///
/// # Examples
/// ```
/// let report = cutlass_sys::doctor();
/// assert!(report.parts.iter().any(|part| part.name == "nvcc"));
/// println!("{report}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One row for each part, in a fixed order.
    pub parts: Vec<Part>,
    /// Where fetched parts and compiled kernels are kept; absent where no variable names a place.
    #[serde(serialize_with = "as_text")]
    pub cache_dir: Option<PathBuf>,
    /// Whether `CUTEMPLATE_FETCH=1`.
    pub fetch_allowed: bool,
}

/// A path as text: what is not Unicode in it is replaced, since no serialised text could hold it.
fn as_text<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

/// What the parts are needed for that get the others.
const FETCHING: &str = "fetching";

/// What a search gave: path, version, origin.
type Row = (PathBuf, Option<String>, String);

impl Report {
    pub(crate) fn of(finder: &Finder) -> Report {
        let env = finder.env();
        let row =
            |path: PathBuf, version: Option<String>, origin: &dyn fmt::Display| (path, version, origin.to_string());
        let cutlass =
            finder.locate_cutlass().map(|found| found.map(|c| row(c.include, Some(c.version.to_string()), &c.origin)));
        let headers = finder.locate_cuda_headers().map(|found| {
            found.and_then(|h| Some(row(h.include_dirs.first()?.clone(), Some(h.version.to_string()), &h.origin)))
        });
        let nvcc = finder.locate_nvcc().map(|found| found.map(|n| row(n.path, Some(n.version.to_string()), &n.origin)));
        let disassembler =
            finder.locate_disassembler().map(|found| found.map(|d| row(d.cuobjdump.path, None, &d.cuobjdump.origin)));
        let libclang = finder.locate_libclang().map(|found| found.map(|l| row(l.path, None, &l.origin)));
        let cxx = finder.host_compiler().and_then(|cxx| nvcc_ccbin(env).map(|()| cxx));
        let cxx = cxx.map(|c| row(c.path, Some(format!("{:?} {}", c.family, c.version)), &c.origin));
        let python = finder.python().map(|p| row(p.path, None, &p.origin));
        let parts = vec![
            fetched(env, Component::Cutlass, "CUTLASS", "every compilation", cutlass),
            fetched(env, Component::CudaHeaders, "CUDA headers", "every compilation", headers),
            fetched(env, Component::Nvcc, "nvcc", "fatbins", nvcc),
            fetched(env, Component::Disassembler, "cuobjdump, nvdisasm", "SASS checks", disassembler).in_tests(),
            fetched(env, Component::Libclang, "libclang", "bindgen", libclang).in_tests(),
            only_found("C++ compiler", "every compilation", cxx),
            only_found("python3", FETCHING, python),
            pip(finder),
        ];
        Report { parts, cache_dir: env.cache_dir().ok(), fetch_allowed: env.fetch_allowed() }
    }

    /// Whether kernels can be built and run: all that they need is found, or is fetched when it is needed. What only tests need
    /// may be missing, and so may what fetches, where nothing is to be fetched.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let needed = || self.parts.iter().filter(|part| !part.tests_only);
        let fetches = needed().any(|part| part.state == State::Fetchable);
        needed()
            .filter(|part| fetches || part.needed_for != FETCHING)
            .all(|part| matches!(part.state, State::Found | State::Fetchable))
    }
}

/// The row of a part that has pinned wheels.
fn fetched(
    env: &Env,
    component: Component,
    name: &'static str,
    needed_for: &'static str,
    found: Result<Option<Row>, Error>,
) -> Part {
    let (state, row, help) = match found {
        Ok(Some(row)) => (State::Found, Some(row), None),
        Ok(None) => match component.dir(env) {
            Ok(_) if env.fetch_allowed() => {
                let help = format!("fetched when it is first needed, version {}", component.version());
                (State::Fetchable, None, Some(help))
            }
            Ok(_) => {
                let missing = not_found(&[component], env);
                let why = component.distrusted(env).map_or(String::new(), |(_, why)| format!("{why}\n"));
                (State::Missing, None, Some(format!("{why}{}", missing.help())))
            }
            Err(error) => (State::Missing, None, Some(error.help().to_owned())),
        },
        Err(error) => (State::Wrong, None, Some(error.to_string())),
    };
    part(name, needed_for, state, row, help)
}

/// The row of a part that has to be installed.
fn only_found(name: &'static str, needed_for: &'static str, found: Result<Row, Error>) -> Part {
    match found {
        Ok(row) => part(name, needed_for, State::Found, Some(row), None),
        Err(error) if error.kind() == crate::ErrorKind::Variable => {
            part(name, needed_for, State::Wrong, None, Some(error.to_string()))
        }
        Err(error) => part(name, needed_for, State::Missing, None, Some(error.help().to_owned())),
    }
}

/// pip is a module of python3: it is asked for its version.
fn pip(finder: &Finder) -> Part {
    let found = finder.python().ok().and_then(|python| {
        let mut command = Command::new(&python.path);
        // As where it downloads.
        command.args(["-I", "-m", "pip", "--disable-pip-version-check", "--version"]);
        let output = command.stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.strip_prefix("pip ")?.split_whitespace().next()?.to_owned();
        output.status.success().then(|| (python.path, Some(version), python.origin.to_string()))
    });
    let help = "install pip (Debian: python3-pip), or run python3 -m ensurepip".to_owned();
    match found {
        Some(row) => part("pip", FETCHING, State::Found, Some(row), None),
        None => part("pip", FETCHING, State::Missing, None, Some(help)),
    }
}

fn part(name: &'static str, needed_for: &'static str, state: State, row: Option<Row>, help: Option<String>) -> Part {
    let (path, version, origin) = match row {
        Some((path, version, origin)) => (Some(path), version, Some(origin)),
        None => (None, None, None),
    };
    Part { name, needed_for, tests_only: false, state, path, version, origin, help }
}

impl Part {
    /// The same, which only tests need.
    fn in_tests(self) -> Part {
        Part { tests_only: true, ..self }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Found => "found",
            State::Fetchable => "fetch",
            State::Missing if self.tests_only => "missing",
            State::Missing => "MISSING",
            State::Wrong => "WRONG",
        };
        write!(f, "{:<20} {state:<8}", self.name)?;
        if let Some(path) = &self.path {
            write!(f, "{:<14} {}", self.version.as_deref().unwrap_or("-"), path.display())?;
        }
        if let Some(origin) = &self.origin {
            write!(f, "  ({origin})")?;
        }
        if let Some(help) = &self.help {
            let help = help.replace('\n', "\n    ");
            let tests = if self.tests_only { ", in the tests only" } else { "" };
            write!(f, "needed for {}{tests}\n    {help}", self.needed_for)?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            writeln!(f, "{part}")?;
        }
        match &self.cache_dir {
            Some(dir) => writeln!(f, "{:<20} {}", "cache", dir.display())?,
            None => writeln!(f, "{:<20} none: set CUTEMPLATE_CACHE_DIR", "cache")?,
        }
        let fetch = if self.fetch_allowed { "allowed" } else { "not allowed (CUTEMPLATE_FETCH is not 1)" };
        write!(f, "{:<20} {fetch}", "fetching")
    }
}
