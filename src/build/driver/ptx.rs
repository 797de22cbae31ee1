//! The PTX of a kernel, which executors run and of which machine code is made: with the lines of the text, and the same in every
//! folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::error::Error;
use super::jobs;
use super::nvcc::{Compiler, Done};
use super::ptx_text::{with_module_id, without_folders};
use super::ptx_whole::whole;
use super::signature;
use crate::arch::Targets;
use crate::digest::Digest;
use crate::emit::Unit;
use crate::store::{Entry, Outcome, Stage};
use cutlass_sys::Toolchain;

/// What nvcc warned of, in an entry of the store.
const WARNINGS: &str = "warnings.json";

/// The PTX of a kernel, as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    text: String,
    path: PathBuf,
    inputs: Vec<PathBuf>,
    warnings: Vec<String>,
    outcome: Outcome,
}

impl Ptx {
    /// Reads an entry; `Err` says why it cannot be used. PTX of an older version is checked again.
    fn open(entry: &Entry, unit: &Unit) -> Result<Ptx, String> {
        let name = &format!("{}.ptx", unit.name());
        let text = String::from_utf8(entry.read(name)?).map_err(|_| format!("{name} is not text"))?;
        whole(&text, unit.entries()).map_err(|why| format!("{name} is not complete PTX: {why}"))?;
        let warnings =
            serde_json::from_slice(&entry.read(WARNINGS)?).map_err(|e| format!("{WARNINGS} is damaged: {e}"))?;
        let inputs = entry.inputs().map(Path::to_path_buf).collect();
        Ok(Ptx { text, path: entry.path(name), inputs, warnings, outcome: Outcome::Cached })
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

    /// What nvcc warned of.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether it had to be made.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl Compiler {
    /// The PTX of a kernel, for the oldest of the targets, with line tables: from the store, or made into it. The machine code of every target
    /// is made of it.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn ptx(&self, unit: &Unit, targets: &Targets) -> Result<Ptx, Error> {
        let ptx = self.ptx_one(unit, targets);
        self.keep_within_bound(ptx.as_ref().is_ok_and(|one| one.outcome != Outcome::Cached));
        ptx
    }

    pub(super) fn ptx_one(&self, unit: &Unit, targets: &Targets) -> Result<Ptx, Error> {
        let (argv, start) = (self.ptx_command(unit, targets), Instant::now());
        let name = format!("{}.ptx", unit.name());
        let make = |stage: &Stage| -> Result<Vec<PathBuf>, Error> {
            let (report, inputs) = self.run(unit, &argv, stage)?;
            let path = stage.dir.join(&name);
            let text = fs::read_to_string(&path).map_err(|e| self.output(unit, &argv, &e.to_string(), "PTX"))?;
            let text = self.entries_of_own(unit, &argv, text)?;
            let required = "PTX with the body of each entry";
            whole(&text, unit.entries()).map_err(|why| self.output(unit, &argv, &why, required))?;
            let warnings = serde_json::to_vec(&warnings(&report)).map_err(std::io::Error::from);
            let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).map_err(|e| Error::io("write", path, e));
            write(&path, self.portable(unit, &text).as_bytes())?;
            let path = stage.dir.join(WARNINGS);
            write(&path, &warnings.map_err(|e| Error::io("write", &path, e))?)?;
            Ok(inputs)
        };
        let key = self.ptx_key(unit, targets);
        let (ptx, outcome) = self.store.find_or_make(&key, |entry| Ptx::open(entry, unit), make)?;
        self.tell(&outcome, &Done { unit: unit.name(), what: "PTX", targets, took: start.elapsed() });
        Ok(Ptx { outcome, ..ptx })
    }

    /// The PTX as it is kept: of a text of one's own, with each entry compared with its declaration.
    fn entries_of_own(&self, unit: &Unit, argv: &[String], text: String) -> Result<String, Error> {
        let Some(own) = unit.own() else { return Ok(text) };
        signature::checked(own, &text).map_err(|error| match error {
            Ok(failed) => {
                let failed = failed.into_iter().map(|one| Error::from(Box::new(one))).collect();
                Error::all(failed).unwrap_or_else(|| self.output(unit, argv, "no entry", "the declared entries"))
            }
            Err(why) => self.output(unit, argv, &why, "PTX that tells what each entry is"),
        })
    }

    /// The PTX of several kernels, as [`Compiler::compile_all`] compiles them.
    pub fn ptx_all(&self, units: &[(Unit, Targets)]) -> Vec<Result<Ptx, Error>> {
        let all = jobs::in_parallel(units, self.places.all(), |(unit, targets)| self.ptx_one(unit, targets));
        self.keep_within_bound(all.iter().flatten().any(|one| one.outcome != Outcome::Cached));
        all
    }

    /// The command that makes PTX of a kernel, in the folder that holds its files.
    fn ptx_command(&self, unit: &Unit, targets: &Targets) -> Vec<String> {
        let code = format!("-gencode=arch=compute_{0},code=compute_{0}", targets.virtual_arch().suffix());
        let asked = ["--ptx", "-lineinfo", &code];
        self.text_command(unit, asked.map(str::to_owned).to_vec(), "ptx")
    }

    /// The command that makes a file with this suffix of a kernel's text.
    pub(super) fn text_command(&self, unit: &Unit, asked: Vec<String>, suffix: &str) -> Vec<String> {
        let name = unit.name();
        let mut argv = self.nvcc();
        let mut add = |args: &[&str]| argv.extend(args.iter().map(|arg| (*arg).to_owned()));
        // CuTe's `assert`s of addresses are calls wherever nvcc cannot tell that they hold, and none may stand among WGMMAs (C7510).
        add(&["-std=c++17", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr"]);
        match unit.own() {
            // Unused variables and declarations are mistakes in a text, and so is C++ beyond 17: 177, 550 and 3357 are
            // nvcc's numbers of these warnings.
            None => add(&["--diag-error=177,550,3357"]),
            Some(own) => own.include_dirs.iter().for_each(|dir| {
                // nvcc runs elsewhere.
                let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
                add(&["-I", &dir.to_string_lossy()]);
            }),
        }
        asked.iter().for_each(|arg| add(&[arg]));
        // As system headers: the user cannot change the causes of their warnings.
        let Toolchain { nvcc, .. } = &self.toolchain;
        if let Some(cutlass) = self.cutlass_of(unit) {
            add(&["-isystem", &cutlass.include.to_string_lossy()]);
        }
        if nvcc.headers.origin != nvcc.origin {
            // nvcc knows its own headers; these are others.
            for dir in &nvcc.headers.include_dirs {
                add(&["-isystem", &dir.to_string_lossy()]);
            }
        }
        self.flags.iter().for_each(|flag| add(&[flag]));
        add(&["-MD", "-MF", &format!("{name}.d"), "-o", &format!("{name}.{suffix}"), &unit.entry().name]);
        argv
    }

    pub(super) fn ptx_key(&self, unit: &Unit, targets: &Targets) -> String {
        let files: Vec<&str> = unit.files().iter().flat_map(|file| [file.name.as_str(), file.text.as_str()]).collect();
        self.key(unit, &self.ptx_command(unit, targets), &files)
    }

    /// The same text wherever it was made: names of files, and of entities without linkage, do not depend on folders.
    fn portable(&self, unit: &Unit, text: &str) -> String {
        let headers = &self.toolchain.nvcc.headers.include_dirs;
        let roots = self.toolchain.cutlass.iter().map(|cutlass| &cutlass.include).chain(headers);
        let roots: Vec<&Path> = roots.map(PathBuf::as_path).collect();
        let files = unit.files().iter().flat_map(|file| [file.name.as_bytes(), file.text.as_bytes()]);
        let id = Digest::of_parts(files).to_string();
        with_module_id(&without_folders(text, &roots), &unit.entry().name, &id[..8])
    }
}

/// The warnings among nvcc's words, each once.
pub(super) fn warnings(report: &str) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for line in report.lines().map(str::trim).filter(|line| line.contains("warning")) {
        if !warnings.iter().any(|seen| seen == line) {
            warnings.push(line.to_owned());
        }
    }
    warnings
}
