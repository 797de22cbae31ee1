//! The nvcc driver: one kernel in, one fatbin for all its architectures out, through the store.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compiled::{Compiled, MANIFEST};
use super::error::{CompileError, Error, SourceLine};
use super::{jobs, ptxas};
use crate::arch::{Arch, Targets};
use crate::bundle::{FileDigest, Manifest};
use crate::digest::Digest;
use crate::emit::{self, Unit};
use crate::fatbin;
use crate::store::{self, Stage, Store};
use cutlass_sys::{Env, Finder, Progress, Toolchain};

/// Variables that nvcc and the host compiler read, and that change what comes out.
pub(super) const VARIABLES: [&str; 6] =
    ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"];

/// Compiles kernels with nvcc, or takes them from the store.
///
/// # Examples
/// ```no_run
/// use cutemplate::{arch::Targets, build::Compiler, emit, recipe::{ElementwiseAdd, Recipe}};
/// let plan = ElementwiseAdd::default().plan(&Targets::default())?;
/// let compiler = Compiler::new(&cutlass_sys::Finder::from_env(), &mut ())?;
/// let compiled = compiler.compile(&emit::render(&plan), plan.targets())?;
/// println!("{}", compiled.manifest());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compiler {
    pub(super) toolchain: Toolchain,
    pub(super) env: Env,
    pub(super) store: Store,
    flags: Vec<String>,
}

impl Compiler {
    /// A compiler with the toolchain that is found, or fetched where that is allowed, and the user's store.
    ///
    /// # Errors
    /// A part of the toolchain is missing or wrong.
    pub fn new(finder: &Finder, progress: &mut dyn Progress) -> Result<Compiler, Error> {
        let store = Store::of_user(finder.env())?;
        let toolchain = finder.toolchain(progress)?;
        Ok(Compiler { toolchain, env: finder.env().clone(), store, flags: Vec::new() })
    }

    /// Uses another store.
    #[must_use]
    pub fn with_store(mut self, store: Store) -> Compiler {
        self.store = store;
        self
    }

    /// Passes further arguments to nvcc, after the driver's own.
    #[must_use]
    pub fn with_flags(mut self, flags: impl IntoIterator<Item = impl Into<String>>) -> Compiler {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// The toolchain that is used.
    #[must_use]
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// The command that compiles a kernel, in the folder that holds its files.
    #[must_use]
    pub fn command_line(&self, unit: &Unit, targets: &Targets) -> Vec<String> {
        let mut asked: Vec<String> = ["--fatbin", "-Xptxas", "-v"].map(str::to_owned).to_vec();
        asked
            .extend(targets.archs().iter().map(|arch| format!("-gencode=arch=compute_{0},code=sm_{0}", arch.suffix())));
        asked.extend(targets.ptx().map(compute));
        self.argv(unit, asked, "fatbin")
    }

    /// The command that makes a file with this suffix of a kernel, by what is asked for.
    pub(super) fn argv(&self, unit: &Unit, asked: Vec<String>, suffix: &str) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let Toolchain { cutlass, nvcc, cxx } = &self.toolchain;
        let mut argv = vec![text(&nvcc.path)];
        let mut add = |args: &[&str]| argv.extend(args.iter().map(|arg| (*arg).to_owned()));
        if self.env.get("NVCC_CCBIN").is_none() {
            add(&["-ccbin", &text(&cxx.path)]);
        }
        add(&["-std=c++17", "-O3", "--expt-relaxed-constexpr"]);
        // What a text sets or declares and never uses is left over: 177 and 550 are nvcc's numbers of these warnings.
        add(&["--diag-error", "177,550"]);
        asked.iter().for_each(|arg| add(&[arg]));
        // As system headers: what they warn of is not the user's to change.
        add(&["-isystem", &text(&cutlass.include)]);
        if nvcc.headers.origin != nvcc.origin {
            // nvcc knows its own headers; these are others.
            for dir in &nvcc.headers.include_dirs {
                add(&["-isystem", &text(dir)]);
            }
        }
        for flag in &self.flags {
            add(&[flag]);
        }
        let name = unit.name();
        add(&["-MD", "-MF", &format!("{name}.d"), "-o", &format!("{name}.{suffix}"), &unit.entry().name]);
        argv
    }

    /// The kernel's fatbin: from the store, or compiled into it. One process at a time compiles a key; the others wait
    /// and take what it made.
    ///
    /// # Errors
    /// nvcc refuses the text, or leaves no usable fatbin; the store cannot be read or written.
    pub fn compile(&self, unit: &Unit, targets: &Targets) -> Result<Compiled, Error> {
        let argv = self.command_line(unit, targets);
        let abi = unit.abi();
        let key = self.key(unit, &argv);
        let make = |stage: &Stage| self.build(unit, targets, &argv, stage);
        let (compiled, outcome) = self.store.find_or_make(&key, |entry| Compiled::open(entry, abi), make)?;
        Ok(compiled.with_outcome(outcome))
    }

    /// Compiles several kernels, as many at once as cores, memory and `NUM_JOBS` allow; results in the order given.
    pub fn compile_all(&self, units: &[(Unit, Targets)]) -> Vec<Result<Compiled, Error>> {
        jobs::in_parallel(units, jobs::limit(&self.env), |(unit, targets)| self.compile(unit, targets))
    }

    /// The digest of everything that decides what comes out, apart from the content of headers and compiler.
    pub(super) fn key(&self, unit: &Unit, argv: &[String]) -> String {
        let versions = self.versions();
        let count = (argv.len() as u64).to_le_bytes();
        let versions =
            [emit::VERSION, store::FORMAT].into_iter().chain(versions.iter().map(String::as_str)).map(str::as_bytes);
        let variables = VARIABLES.iter().map(|name| self.env.get(name).unwrap_or_default().as_encoded_bytes());
        let files = unit.files().iter().flat_map(|file| [file.name.as_bytes(), file.text.as_bytes()]);
        let parts = versions.chain(variables).chain([&count[..]]).chain(argv.iter().map(|arg| arg.as_bytes()));
        Digest::of_parts(parts.chain(files)).to_string()
    }

    /// nvcc, CUTLASS, host compiler.
    fn versions(&self) -> [String; 3] {
        let Toolchain { cutlass, nvcc, cxx } = &self.toolchain;
        [nvcc.version.to_string(), cutlass.version.to_string(), format!("{:?} {}", cxx.family, cxx.version)]
    }

    /// Runs nvcc in the staged folder; returns what it read.
    fn build(&self, unit: &Unit, targets: &Targets, argv: &[String], stage: &Stage) -> Result<Vec<PathBuf>, Error> {
        let (report, inputs) = self.run(unit, argv, stage)?;
        let staged = &stage.dir;
        let path = staged.join(format!("{}.fatbin", unit.name()));
        let bytes = fs::read(&path).map_err(|e| self.output(unit, argv, &e.to_string(), "a fatbin"))?;
        if let Err(why) = fatbin::images(&bytes) {
            return Err(self.output(unit, argv, &why.to_string(), "a whole fatbin"));
        }
        let mut manifest = self.manifest(unit, targets, &bytes, &report);
        for (entry, arch) in unit.entries().iter().flat_map(|e| targets.archs().iter().map(move |arch| (e, arch))) {
            if manifest.entry_on(entry, arch.name()).is_none() {
                let required = format!("`ptxas -v` for {entry} on {arch}");
                return Err(self.output(unit, argv, "no report of ptxas", &required));
            }
        }
        manifest.measure(&bytes);
        let path = staged.join(MANIFEST);
        let written = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::from);
        written.and_then(|text| fs::write(&path, text)).map_err(|e| Error::io("write", &path, e))?;
        Ok(inputs)
    }

    /// Runs nvcc in the stage; returns what it said and what it read.
    pub(super) fn run(&self, unit: &Unit, argv: &[String], stage: &Stage) -> Result<(String, Vec<PathBuf>), Error> {
        for file in unit.files() {
            let path = stage.dir.join(&file.name);
            fs::write(&path, &file.text).map_err(|e| Error::io("write", &path, e))?;
        }
        let report = self.start(unit, argv, stage)?;
        let deps = stage.dir.join(format!("{}.d", unit.name()));
        let text =
            fs::read_to_string(&deps).map_err(|e| self.output(unit, argv, &e.to_string(), "a dependency file"))?;
        fs::remove_file(&deps).map_err(|e| Error::io("remove", &deps, e))?;
        Ok((report, self.inputs(&text)))
    }

    fn start(&self, unit: &Unit, argv: &[String], stage: &Stage) -> Result<String, Error> {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).current_dir(&stage.dir);
        // Messages are read, so they are asked for in one language; temporary files do not outlive this build.
        command.env("LC_ALL", "C").env("TMPDIR", stage.scratch.path());
        for name in VARIABLES {
            match self.env.get(name) {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let failed = |status, text: String| {
            let at = SourceLine::find(unit, &text);
            Error::from(Box::new(CompileError { unit: unit.name().to_owned(), argv: argv.to_vec(), status, text, at }))
        };
        let output = command.output().map_err(|e| failed(None, e.to_string()))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        match output.status.success() {
            true => Ok(text),
            false => Err(failed(Some(output.status), text)),
        }
    }

    fn manifest(&self, unit: &Unit, targets: &Targets, bytes: &[u8], report: &str) -> Manifest {
        let [nvcc, cutlass, cxx] = self.versions();
        let mut warnings: Vec<String> = Vec::new();
        for line in report.lines().map(str::trim).filter(|line| line.contains("warning")) {
            // Each architecture repeats them.
            if !warnings.iter().any(|seen| seen == line) {
                warnings.push(line.to_owned());
            }
        }
        let mut resources: Vec<_> = unit.entries().iter().flat_map(|entry| ptxas::resources(entry, report)).collect();
        let order = |arch: &str| targets.archs().iter().position(|a| a.name() == arch);
        resources.sort_by_key(|row| order(&row.arch));
        Manifest {
            name: unit.name().to_owned(),
            generator: emit::VERSION.to_owned(),
            nvcc,
            cutlass,
            cxx,
            targets: targets.archs().iter().map(|arch| arch.name().to_owned()).collect(),
            ptx: targets.ptx().map(|arch| arch.name().to_owned()),
            sources: unit.files().iter().map(|file| FileDigest::of(&file.name, file.text.as_bytes())).collect(),
            fatbin: FileDigest::of(&format!("{}.fatbin", unit.name()), bytes),
            resources,
            warnings,
        }
    }

    /// The files outside of the unit that decide what comes out: headers, as nvcc lists them, and the compilers.
    fn inputs(&self, deps: &str) -> Vec<PathBuf> {
        let nvcc = &self.toolchain.nvcc.path;
        let nvcc = nvcc.canonicalize().unwrap_or_else(|_| nvcc.clone());
        let mut paths = dependencies(deps);
        let root = nvcc.parent().and_then(Path::parent);
        let tools = ["bin/ptxas", "bin/cudafe++", "bin/fatbinary", "nvvm/bin/cicc"];
        paths.extend(tools.iter().filter_map(|tool| Some(root?.join(tool))).filter(|path| path.is_file()));
        paths.extend([nvcc, self.toolchain.cxx.path.clone()]);
        paths.sort();
        paths.dedup();
        paths
    }

    pub(super) fn output(&self, unit: &Unit, argv: &[String], found: &str, required: &str) -> Error {
        Error::Output {
            unit: unit.name().to_owned(),
            found: found.to_owned(),
            required: required.to_owned(),
            argv: argv.to_vec(),
        }
    }
}

/// PTX of an architecture.
pub(super) fn compute(arch: Arch) -> String {
    format!("-gencode=arch=compute_{0},code=compute_{0}", arch.suffix())
}

/// The absolute paths in a dependency file for make; the unit's own files are named relative to their folder.
fn dependencies(text: &str) -> Vec<PathBuf> {
    let mut paths = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = c == '\\' && chars.peek().is_some_and(|next| matches!(next, ' ' | '#' | '\\'));
        if let (true, Some(next), Some(path)) = (escaped, chars.peek(), paths.last_mut()) {
            path.push(*next);
            chars.next();
        } else if c.is_whitespace() {
            paths.push(String::new());
        } else if let Some(path) = paths.last_mut() {
            path.push(c);
        }
    }
    paths.into_iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect()
}

#[cfg(all(test, unix))]
mod tests;
