//! The nvcc driver: one kernel in, one fatbin for all its architectures out, through the store.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::assemble::{FATBIN, codes, generations};
use super::cache::Cache;
use super::compiled::Compiled;
use super::error::{CompileError, Error, SourceLine};
use super::jobs::{self, Places};
use crate::arch::Targets;
use crate::cuda::DECLARED;
use crate::digest::Digest;
use crate::emit::{self, Unit};
use crate::store::{self, Entry, Outcome, Stage, Store};
use crate::units::Bytes;
use cutlass_sys::{Cutlass, Env, Finder, Progress, Toolchain, ToolchainError};

/// Variables that nvcc and the host compiler read, and that change what comes out.
pub(super) const VARIABLES: [&str; 6] =
    ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"];

/// The variable that names a launcher for nvcc where it reads CUDA C++: `sccache`. The launcher gets nvcc's command as
/// arguments. The output is the same, so it is not part of a key. Machine code is made of PTX without it: sccache 0.16
/// does not know that command.
const LAUNCHER: &str = "CUTEMPLATE_NVCC_LAUNCHER";

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
    pub(super) flags: Vec<String>,
    pub(super) places: Arc<Places>,
    /// The user's cache and how large it may be, where that is the store's.
    bound: Option<(Cache, Bytes)>,
    told: Told,
}

impl Compiler {
    /// A compiler with the toolchain that is found, or fetched where that is allowed, and the user's store.
    ///
    /// # Errors
    /// A part of the toolchain is missing or wrong.
    pub fn new(finder: &Finder, progress: &mut dyn Progress) -> Result<Compiler, Error> {
        Self::with_tools(finder, || finder.toolchain(progress))
    }

    /// The same for plain CUDA C++: CUTLASS is neither looked for nor fetched, and no text finds its headers.
    ///
    /// # Errors
    /// nvcc or the C++ compiler is missing or wrong.
    pub fn of_cuda(finder: &Finder, progress: &mut dyn Progress) -> Result<Compiler, Error> {
        Self::with_tools(finder, || finder.cuda_toolchain(progress))
    }

    fn with_tools(
        finder: &Finder,
        tools: impl FnOnce() -> Result<Toolchain, ToolchainError>,
    ) -> Result<Compiler, Error> {
        let store = Store::of_user(finder.env())?;
        let bound = Some((Cache::of_user(finder.env())?, Cache::size_of_user(finder.env())?));
        let toolchain = tools()?;
        let (env, flags) = (finder.env().clone(), Vec::new());
        let places = Arc::new(Places::of(&env));
        Ok(Compiler { toolchain, env, store, flags, places, bound, told: Told::default() })
    }

    /// Uses another store, without a size limit.
    #[must_use]
    pub fn with_store(mut self, store: Store) -> Compiler {
        self.store = store;
        self.bound = None;
        self
    }

    /// Passes further arguments to nvcc, after the driver's own.
    #[must_use]
    pub fn with_flags(mut self, flags: impl IntoIterator<Item = impl Into<String>>) -> Compiler {
        self.flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// Calls this for each kernel, and each text of PTX, that was not in the store, when it is made. Any thread may call it.
    ///
    /// # Examples
    /// ```no_run
    /// use cutemplate::build::Compiler;
    /// let compiler = Compiler::new(&cutlass_sys::Finder::from_env(), &mut ())?;
    /// // "vector_add: machine code for sm_80, sm_90a in 10.3 s"
    /// let compiler = compiler.telling(|made| eprintln!("{made}"));
    /// # Ok::<(), cutemplate::build::Error>(())
    /// ```
    #[must_use]
    pub fn telling(mut self, told: impl Fn(&Done<'_>) + Send + Sync + 'static) -> Compiler {
        self.told = Told(Some(Arc::new(told)));
        self
    }

    /// The toolchain that is used.
    #[must_use]
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// The one command by which nvcc makes a fatbin with the same machine code of a kernel, in the folder that holds
    /// its files. Use it to compile elsewhere.
    #[must_use]
    pub fn command_line(&self, unit: &Unit, targets: &Targets) -> Vec<String> {
        let codes = generations(unit, targets).into_iter().flat_map(|own| codes(targets, &own));
        self.text_command(unit, FATBIN.map(str::to_owned).into_iter().chain(codes).collect(), "fatbin")
    }

    /// How every command begins.
    pub(super) fn nvcc(&self) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let Toolchain { nvcc, cxx, .. } = &self.toolchain;
        let mut argv = vec![text(&nvcc.path)];
        if self.env.get("NVCC_CCBIN").is_none() {
            argv.extend(["-ccbin".to_owned(), text(&cxx.path)]);
        }
        argv
    }

    /// The kernel's fatbin: from the store, or compiled into it. One process at a time compiles a key; the others wait
    /// and use its result.
    ///
    /// # Errors
    /// nvcc refuses the text, or leaves no usable fatbin; the store cannot be read or written.
    pub fn compile(&self, unit: &Unit, targets: &Targets) -> Result<Compiled, Error> {
        let compiled = self.compile_one(unit, targets);
        self.keep_within_bound(compiled.as_ref().is_ok_and(|one| *one.outcome() != Outcome::Cached));
        compiled
    }

    fn compile_one(&self, unit: &Unit, targets: &Targets) -> Result<Compiled, Error> {
        let (key, abi, start) = (self.fatbin_key(unit, targets), unit.abi(), Instant::now());
        let open = |entry: &Entry| Compiled::open(entry, abi);
        if let Some(compiled) = self.store.find(&key, open) {
            return Ok(compiled);
        }
        let generations = generations(unit, targets);
        let ptx = jobs::in_parallel(&generations, self.places.all(), |own| self.ptx_one(unit, own));
        let ptx = ptx.into_iter().collect::<Result<Vec<_>, _>>()?;
        let make = |stage: &Stage| self.assemble(unit, targets, &ptx, stage);
        let (compiled, outcome) = self.store.find_or_make(&key, open, make)?;
        self.tell(&outcome, &Done { unit: unit.name(), what: "machine code", targets, took: start.elapsed() });
        Ok(compiled.with_outcome(outcome))
    }

    /// Compiles several kernels, as many at once as cores, memory and `NUM_JOBS` allow; results in the order given.
    pub fn compile_all(&self, units: &[(Unit, Targets)]) -> Vec<Result<Compiled, Error>> {
        let all = jobs::in_parallel(units, self.places.all(), |(unit, targets)| self.compile_one(unit, targets));
        self.keep_within_bound(all.iter().flatten().any(|one| *one.outcome() != Outcome::Cached));
        all
    }

    /// Once for all that was made together: the whole cache is looked through.
    pub(super) fn keep_within_bound(&self, made: bool) {
        if let (Some((cache, most)), true) = (&self.bound, made) {
            cache.keep_within(*most);
        }
    }

    pub(super) fn tell(&self, outcome: &Outcome, made: &Done<'_>) {
        if let (Some(told), false) = (&self.told.0, *outcome == Outcome::Cached) {
            told(made);
        }
    }

    /// The digest of everything that decides what comes out of a command, apart from the content of headers and compiler.
    pub(super) fn key(&self, unit: &Unit, argv: &[String], read: &[&str]) -> String {
        let versions = self.versions(unit);
        let count = (argv.len() as u64).to_le_bytes();
        let versions =
            [emit::VERSION, store::FORMAT].into_iter().chain(versions.iter().map(String::as_str)).map(str::as_bytes);
        let variables = VARIABLES.iter().map(|name| self.env.get(name).unwrap_or_default().as_encoded_bytes());
        let parts = versions.chain(variables).chain([&count[..]]).chain(argv.iter().map(|arg| arg.as_bytes()));
        Digest::of_parts(parts.chain(read.iter().map(|text| text.as_bytes()))).to_string()
    }

    /// nvcc, CUTLASS, empty where the text does not find it, and host compiler.
    pub(super) fn versions(&self, unit: &Unit) -> [String; 3] {
        let Toolchain { nvcc, cxx, .. } = &self.toolchain;
        let cutlass = self.cutlass_of(unit).map_or(String::new(), |cutlass| cutlass.version.to_string());
        [nvcc.version.to_string(), cutlass, format!("{:?} {}", cxx.family, cxx.version)]
    }

    /// CUTLASS, where the text may include it.
    pub(super) fn cutlass_of(&self, unit: &Unit) -> Option<&Cutlass> {
        self.toolchain.cutlass.as_ref().filter(|_| unit.needs_cutlass())
    }

    /// Runs nvcc on the kernel's files, in the stage. Returns its output and the files that it read.
    pub(super) fn run(&self, unit: &Unit, argv: &[String], stage: &Stage) -> Result<(String, Vec<PathBuf>), Error> {
        for file in unit.files() {
            let path = stage.dir.join(&file.name);
            fs::write(&path, &file.text).map_err(|e| Error::io("write", &path, e))?;
        }
        let launcher = self.env.get(LAUNCHER).filter(|launcher| !launcher.is_empty());
        let report = self.start(unit, launcher, argv, stage)?;
        let deps = stage.dir.join(format!("{}.d", unit.name()));
        let text =
            fs::read_to_string(&deps).map_err(|e| self.output(unit, argv, &e.to_string(), "a dependency file"))?;
        fs::remove_file(&deps).map_err(|e| Error::io("remove", &deps, e))?;
        Ok((report, self.inputs(&text)))
    }

    /// Runs nvcc in the stage, when a place is free. Returns its output.
    pub(super) fn start(
        &self,
        unit: &Unit,
        launcher: Option<&OsStr>,
        argv: &[String],
        stage: &Stage,
    ) -> Result<String, Error> {
        let _place = self.places.take();
        let argv: Vec<String> = launcher
            .iter()
            .map(|launcher| launcher.to_string_lossy().into_owned())
            .chain(argv.iter().cloned())
            .collect();
        let mut command = Command::new(launcher.unwrap_or(OsStr::new(&argv[0])));
        command.args(&argv[1..]).current_dir(&stage.dir);
        // Messages are read, so they are asked for in one language.
        command.env("LC_ALL", "C");
        if launcher.is_none() {
            // Temporary files do not outlive this build; a launcher's server does.
            command.env("TMPDIR", stage.scratch.path());
        }
        for name in VARIABLES {
            match self.env.get(name) {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let failed = |status, text: String| {
            let at = SourceLine::find(unit, &text);
            let variables = VARIABLES.into_iter().filter(|name| self.env.get(name).is_some()).collect();
            let mend =
                unit.own().map_or_else(String::new, |own| own.mend(at.as_ref().is_some_and(|at| at.file == DECLARED)));
            let unit = unit.name().to_owned();
            Error::from(Box::new(CompileError { unit, argv: argv.clone(), status, text, at, variables, mend }))
        };
        let output = command.output().map_err(|e| failed(None, e.to_string()))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        match output.status.success() {
            true => Ok(text),
            false => Err(failed(Some(output.status), text)),
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
            store: self.store.root().into(),
            argv: argv.to_vec(),
        }
    }
}

/// A finished compilation, and the time from the request to the result.
#[derive(Clone, Copy, Debug)]
pub struct Done<'m> {
    /// The kernel.
    pub unit: &'m str,
    /// `PTX` or `machine code`.
    pub what: &'static str,
    /// For what.
    pub targets: &'m Targets,
    /// How long it took; waiting for others is in it.
    pub took: Duration,
}

impl fmt::Display for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { unit, what, targets, took } = self;
        write!(f, "{unit}: {what} for {targets} in {:.1} s", took.as_secs_f64())
    }
}

/// The callback that hears of finished compilations.
type Tell = dyn Fn(&Done<'_>) + Send + Sync;

/// The callback, if there is one.
#[derive(Clone, Default)]
struct Told(Option<Arc<Tell>>);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "somebody" } else { "nobody" })
    }
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
