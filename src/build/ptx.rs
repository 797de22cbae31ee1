//! The PTX of a kernel, which executors run: with the lines of the text, and without the paths of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::jobs;
use super::nvcc::{Compiler, compute};
use crate::arch::Targets;
use crate::emit::Unit;
use crate::store::{Entry, Stage};

/// The PTX of a kernel, as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    text: String,
    path: PathBuf,
    inputs: Vec<PathBuf>,
}

impl Ptx {
    fn open(entry: &Entry, name: &str) -> Result<Ptx, String> {
        let text = String::from_utf8(entry.read(name)?).map_err(|_| format!("{name} is no text"))?;
        Ok(Ptx { text, path: entry.path(name), inputs: entry.inputs().map(Path::to_path_buf).collect() })
    }

    /// The text, whose sha256 was checked.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its file in the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files outside of the kernel's own text that nvcc read, and its programs.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }
}

impl Compiler {
    /// The PTX of a kernel for the oldest of the targets, with line tables: from the store, or made into it.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn ptx(&self, unit: &Unit, targets: &Targets) -> Result<Ptx, Error> {
        let mut asked = vec!["--ptx".to_owned(), "-lineinfo".to_owned()];
        asked.extend(targets.archs().first().copied().map(compute));
        let argv = self.argv(unit, asked, "ptx");
        let name = format!("{}.ptx", unit.name());
        let make = |stage: &Stage| -> Result<Vec<PathBuf>, Error> {
            let (_, inputs) = self.run(unit, &argv, stage)?;
            let path = stage.dir.join(&name);
            let text = fs::read_to_string(&path).map_err(|e| self.output(unit, &argv, &e.to_string(), "PTX"))?;
            fs::write(&path, self.without_paths(&text)).map_err(|e| Error::io("write", &path, e))?;
            Ok(inputs)
        };
        Ok(self.store.find_or_make(&self.key(unit, &argv), |entry| Ptx::open(entry, &name), make)?.0)
    }

    /// The PTX of several kernels, as [`Compiler::compile_all`] compiles them.
    pub fn ptx_all(&self, units: &[(Unit, Targets)]) -> Vec<Result<Ptx, Error>> {
        jobs::in_parallel(units, jobs::limit(&self.env), |(unit, targets)| self.ptx(unit, targets))
    }

    /// Names files as they are included, `cute/layout.hpp`, and the kernel's own by their names.
    fn without_paths(&self, text: &str) -> String {
        let headers = &self.toolchain.nvcc.headers.include_dirs;
        let roots = core::iter::once(&self.toolchain.cutlass.include).chain(headers);
        let roots: Vec<&Path> = roots.map(PathBuf::as_path).collect();
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            match line.trim_start().starts_with(".file").then(|| line.split_once('"')).flatten() {
                Some((before, rest)) if rest.contains('"') => {
                    let (path, after) = rest.split_once('"').unwrap_or_default();
                    out.extend([before, "\"", &relative(Path::new(path), &roots), "\"", after]);
                }
                _ => out.push_str(line),
            }
        }
        out
    }
}

/// The path below the first of the folders that it lies in, else its file's name.
fn relative(path: &Path, roots: &[&Path]) -> String {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    let name = below.or_else(|| path.file_name().map(Path::new)).unwrap_or(path);
    name.to_string_lossy().replace('\\', "/")
}
