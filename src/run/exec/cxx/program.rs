//! A kernel's text, compiled for the CPU.

use std::fs;
use std::path::Path;

use super::compile::Compiler;
use super::error::{self, not_elf};
use super::{Mode, Options, elf, process};
use crate::artifact::Artifact;
use crate::build::cache::Cache;
use crate::emit::{self, SourceFile, Unit};
use crate::exec::extent::Extent;
use crate::exec::job::Job;
use crate::exec::{Error, Executor, Kernel, Report};
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::store::{Checked, Entry, Outcome, Stage, Store, failed};
use cutlass_sys::Env;

/// The text of a kernel: `<name>.cu` among the files defines `extern "C" __global__ void <name>(Params)`, with one
/// parameter, a struct that is passed by value; and any further entries, with the same parameter.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The stem of the file.
    pub name: &'a str,
    /// The names of the entries, in the order in which jobs number them; none where there is one of the file's name.
    pub entries: &'a [String],
    /// The entries and what they include.
    pub files: &'a [SourceFile],
}

impl<'a> Source<'a> {
    /// A kernel of one entry.
    pub fn new(name: &'a str, files: &'a [SourceFile]) -> Self {
        Source { name, entries: &[], files }
    }

    /// The names of all entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = &'a str> {
        let only = self.entries.is_empty().then_some(self.name);
        only.into_iter().chain(self.entries.iter().map(String::as_str))
    }
}

impl<'a> From<&'a Unit> for Source<'a> {
    fn from(unit: &'a Unit) -> Self {
        Source { name: unit.name(), entries: unit.entries(), files: unit.files() }
    }
}

/// A variable in `__shared__` memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedVariable {
    pub(super) name: String,
    /// Bytes from the start of the block's shared memory.
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// A kernel compiled for the CPU in one [`Mode`]: an executable in the cache. It runs only as long as it is what the compiler made.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) file: Checked,
    pub(super) mode: Mode,
    pub(super) options: Options,
    pub(super) entries: Vec<String>,
    pub(super) files: Vec<String>,
    pub(super) shared: Vec<SharedVariable>,
}

impl Program {
    /// Compiles a kernel, or finds it compiled.
    ///
    /// # Errors
    /// The compiler refuses the text (its own words are in the error), or the cache cannot be written.
    ///
    /// # Examples
    /// ```no_run
    /// use cutemplate::emit::SourceFile;
    /// use cutemplate::exec::cxx::{Mode, Options, Program, Source};
    ///
    /// let text = "struct Params { float* c; };\n\
    ///     extern \"C\" __global__ void ones(Params p) { p.c[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }\n";
    /// let files = [SourceFile { name: "ones.cu".into(), text: text.into() }];
    /// let options = Options::from_env(&mut ())?;
    /// let program = Program::compile(Source::new("ones", &files), Mode::Bounds, &options)?;
    /// # Ok::<(), cutemplate::exec::Error>(())
    /// ```
    pub fn compile<'a>(source: impl Into<Source<'a>>, mode: Mode, options: &Options) -> Result<Program, Error> {
        let source = source.into();
        let compiler = Compiler { tools: &options.toolchain, mode };
        let key = compiler.key(source);
        let make = |stage: &Stage| compiler.program(source, &options.cache, stage);
        let (files, outcome) = Store::at(options.cache.join("host")).find_or_make(&key, Entry::checked, make)?;
        if let (Ok(most), false) = (Cache::size_of_user(&Env::current()), outcome == Outcome::Cached) {
            Cache::at(&options.cache).keep_within(most);
        }
        let [file] = <[Checked; 1]>::try_from(files).map_err(|_| error::changed("the entry is not of one program"))?;
        Ok(Program {
            shared: shared_variables(file.path())?,
            file,
            mode,
            options: options.clone(),
            entries: source.entries().map(str::to_owned).collect(),
            files: source.files.iter().map(|f| f.name.clone()).collect(),
        })
    }

    /// The mode that it was compiled for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The executable.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Executor for Program {
    fn entries(&self) -> &[String] {
        &self.entries
    }

    unsafe fn run_on(&self, job: &Job<'_>, extents: &[Extent]) -> Result<Report, Error> {
        // SAFETY: as for this function.
        unsafe { process::run(self, job, extents) }
    }
}

impl<R: Recipe> Kernel<R, Program> {
    /// Compiles the kernel of an artifact that a build script left, or finds it compiled: in [`Mode::Plain`], with
    /// [`Options::from_env`].
    ///
    /// # Errors
    /// The artifact belongs to another version of the crate, a part of the toolchain is missing, or the text does not
    /// compile.
    pub fn load(artifact: &Artifact<'_>) -> Result<Self, Error> {
        Self::load_with(artifact, Mode::Plain, &Options::from_env(&mut ())?)
    }

    /// As `load`, in any mode.
    ///
    /// # Errors
    /// As `load`.
    pub fn load_with(artifact: &Artifact<'_>, mode: Mode, options: &Options) -> Result<Self, Error> {
        let plan = artifact.plan::<R>()?;
        Self::compile(plan, mode, options)
    }

    /// Compiles the kernel of a plan, or finds it compiled. The plan must be one of recipe `R`: each launch checks its
    /// views against it.
    ///
    /// # Errors
    /// The text does not compile, or the cache cannot be written.
    pub fn compile(plan: Plan, mode: Mode, options: &Options) -> Result<Self, Error> {
        if let Some(what) = plan.needs_gpu() {
            return Err(Error::needs_gpu(plan.name(), what));
        }
        let program = Program::compile(&emit::render(&plan), mode, options)?;
        Ok(Kernel::new(plan.abi().clone(), program))
    }
}

/// The shared variables of a program, ascending.
fn shared_variables(program: &Path) -> Result<Vec<SharedVariable>, Error> {
    let elf = fs::read(program).map_err(failed("read", program))?;
    let symbols = elf::tls_symbols(&elf).ok_or_else(|| not_elf(program))?;
    let bound = |name: &str| symbols.iter().find(|s| s.name == name);
    let (Some(head), Some(tail)) = (bound("cutemplate_host_shared_begin"), bound("cutemplate_host_shared_end")) else {
        return Err(not_elf(program));
    };
    let mut shared: Vec<SharedVariable> = symbols
        .iter()
        .filter(|s| s.defined && s.value > head.value && s.value < tail.value && s.size > 0)
        .map(|s| SharedVariable {
            name: elf::source_name(&s.name).to_owned(),
            offset: s.value - head.value,
            size: s.size,
        })
        .collect();
    shared.sort_by_key(|v| v.offset);
    Ok(shared)
}
