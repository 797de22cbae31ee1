//! What can go wrong between a recipe and its fatbin, with the command, the compiler's own words and the source line.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::signature::SignatureError;
use crate::bundle::{BundleError, Manifest, RecipesError, Resources, StaleBundle};
use crate::cuda::DECLARED;
use crate::diagnostic::{PlanError, debug_as_display};
use crate::emit::Unit;
use crate::plan::Own;
use crate::store::StoreError;

/// A kernel could not be built.
///
/// `Debug` prints what `Display` prints, so that `fn main() -> Result<(), Error>` shows a message and not a struct.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Recipes were refused: every reason of every one of them.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// A part of the toolchain is missing or wrong.
    #[error("{0}")]
    Toolchain(#[from] cutlass_sys::ToolchainError),
    /// Parts of the toolchain are missing, so no kernel can be compiled.
    #[error("{}", without_tools(kernels, missing))]
    NoToolchain {
        /// The kernels that were to be compiled.
        kernels: Vec<String>,
        /// The missing parts.
        missing: Box<cutlass_sys::ToolchainError>,
    },
    /// nvcc refused the text of a kernel.
    #[error("{0}")]
    Compile(#[from] Box<CompileError>),
    /// The compiler spills registers of a kernel for which that is denied.
    #[error("{0}")]
    Spills(#[from] Box<SpillError>),
    /// A thread of a kernel takes more registers than it may.
    #[error("{0}")]
    Registers(#[from] Box<RegisterError>),
    /// An entry of one's own is not what it is declared to be.
    #[error("{0}")]
    Signature(#[from] Box<SignatureError>),
    /// ptxas makes the tensor cores of a kernel wait.
    #[error("{0}")]
    Serialized(#[from] Box<SerializedError>),
    /// Several kernels failed, each for its own reason.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Error>),
    /// nvcc succeeded, but its output is not the requested one.
    #[error(
        "error[build]: nvcc ended well, but made nothing usable of {unit}\n  found:    {found}\n  required: {required}\n  \
         because:  what is kept in {} is used without asking nvcc again, so this was not kept\n  command:  {}\n  \
         help:     build again where a disk was full or nvcc was killed; else check that this nvcc is the CUDA compiler, and no \
         wrapper that swallows its output", store.display(), quoted(argv)
    )]
    Output {
        /// The kernel.
        unit: String,
        /// What nvcc left.
        found: String,
        /// The requested output.
        required: String,
        /// The store.
        store: Box<Path>,
        /// The command.
        argv: Vec<String>,
    },
    /// A file could not be read or written.
    #[error("error[build]: cannot {verb} {}\n  found:    {source}\n  required: a file system that can be written, with room\n  help:     {help}", path.display())]
    Io {
        /// The attempted operation: `write`, `read`, `lock`.
        verb: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
        /// What to do.
        help: &'static str,
    },
    /// A build script's variable is missing.
    #[error(
        "error[build]: {name} is not set\n  found:    no {name}\n  required: a build script run by cargo, which sets it\n  help:     {help}"
    )]
    Variable {
        /// The variable.
        name: &'static str,
        /// What to do.
        help: &'static str,
    },
    /// `CUTEMPLATE_CACHE_SIZE` is not a size.
    #[error(
        "error[build]: CUTEMPLATE_CACHE_SIZE is not a size\n  found:    `{found}`\n  required: bytes, or a number with K, M, G or T, \
         for example 20G\n  because:  above it, the least recently used kernels are removed from the cache"
    )]
    Size {
        /// The value.
        found: String,
    },
    /// A bundle cannot be used.
    #[error("{0}")]
    Bundle(#[from] BundleError),
    /// A bundle is of other recipes.
    #[error("{0}")]
    Stale(#[from] StaleBundle),
    /// There is nothing to put into a bundle.
    #[error(
        "error[bundle]: there are no compiled kernels to put into a bundle\n  because:  {why}\n  \
         help:     build it where nvcc is, without CUTEMPLATE_STUB"
    )]
    StubBundle {
        /// Why.
        why: String,
    },
    /// A file of recipes cannot be used.
    #[error("{0}")]
    Recipes(#[from] RecipesError),
    /// Two kernels were given one name.
    #[error(
        "error[build]: two kernels are called `{name}`\n  found:    one name twice\n  required: one name for each kernel, since files and modules are named by it\n  \
         help:     give the second another name"
    )]
    NameTwice {
        /// The name.
        name: String,
    },
}

debug_as_display!(Error);

impl From<cutlass_sys::Error> for Error {
    fn from(error: cutlass_sys::Error) -> Error {
        Error::Toolchain(error.into())
    }
}

impl From<StoreError> for Error {
    fn from(StoreError { verb, path, source }: StoreError) -> Error {
        Error::io(verb, &path, source)
    }
}

impl Error {
    pub(super) fn io(verb: &'static str, path: &Path, source: io::Error) -> Error {
        let help =
            "free some space or make it writable; for the kernel store, CUTEMPLATE_CACHE_DIR names another place";
        Error::Io { verb, path: path.to_path_buf(), source, help }
    }

    /// One error for all that failed; `None` where nothing did.
    pub(super) fn all(mut errors: Vec<Error>) -> Option<Error> {
        if errors.len() > 1 {
            return Some(Error::Several(errors));
        }
        errors.pop()
    }
}

/// What is missing for these kernels; the last of the errors says why it is one, and what else helps.
fn without_tools(kernels: &[String], missing: &cutlass_sys::ToolchainError) -> String {
    let indented = |text: &str| text.replace('\n', "\n            ");
    let whole = |error: &cutlass_sys::Error| {
        let (code, what, help) = (error.kind().as_str(), error.what(), error.help());
        let (found, required) = (indented(error.found()), indented(error.required()));
        let are = if kernels.len() == 1 { "is" } else { "are" };
        format!(
            "error[{code}]: {what}\n  found:    {found}\n  required: {required}\n  because:  the {} of this crate {are} compiled when \
             it is built: without, it would fail where it runs\n  help:     {help}\n            for `cargo check` and documentation \
             CUTEMPLATE_STUB=1 builds without kernels; in build.rs, Config::optional() does where a tool is missing",
            named(kernels)
        )
    };
    let Some((last, others)) = missing.errors().split_last() else { return String::new() };
    others.iter().map(ToString::to_string).chain([whole(last)]).collect::<Vec<_>>().join("\n")
}

/// `kernel a`, or `kernels a, b`.
pub(super) fn named(kernels: &[String]) -> String {
    format!("kernel{} {}", if kernels.len() == 1 { "" } else { "s" }, kernels.join(", "))
}

/// The compiler spills registers of a kernel for which that is denied.
#[derive(Clone, PartialEq, Eq)]
pub struct SpillError {
    /// The kernel.
    pub kernel: String,
    /// Its resources on each architecture where it spills.
    pub on: Vec<Resources>,
}

debug_as_display!(SpillError);

impl fmt::Display for SpillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[build]: {} spills registers", self.kernel)?;
        for (place, Resources { entry, arch, registers, spill_stores, spill_loads, .. }) in self.on.iter().enumerate() {
            let label = if place == 0 { "found:   " } else { "         " };
            writeln!(
                f,
                "  {label} {entry} on {arch}: {spill_stores} bytes stored and {spill_loads} loaded by each thread, with {registers} \
                 registers"
            )?;
        }
        writeln!(f, "  required: no spills, as the recipe or Config::deny_spills asks")?;
        writeln!(
            f,
            "  because:  spilled values go through local memory, which is as slow as DRAM where it leaves the caches"
        )?;
        write!(f, "  help:     fewer values for each thread, fewer threads in a block, or allow spills")
    }
}

impl std::error::Error for SpillError {}

/// A thread of a kernel takes more registers than its declaration allows.
#[derive(Clone, PartialEq, Eq)]
pub struct RegisterError {
    /// The kernel.
    pub kernel: String,
    /// The most that is allowed.
    pub most: u64,
    /// Its resources on each architecture where it takes more.
    pub on: Vec<Resources>,
}

debug_as_display!(RegisterError);

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[build]: {} takes too many registers", self.kernel)?;
        for (place, Resources { entry, arch, registers, .. }) in self.on.iter().enumerate() {
            let label = if place == 0 { "found:   " } else { "         " };
            writeln!(f, "  {label} {entry} on {arch}: {registers} registers of each thread")?;
        }
        writeln!(f, "  required: at most {}, as Entry::max_registers asks", self.most)?;
        writeln!(f, "  because:  with more registers fewer warps fit on a multiprocessor")?;
        write!(f, "  help:     fewer values for each thread, `__launch_bounds__` in the text, or another limit")
    }
}

impl std::error::Error for RegisterError {}

/// ptxas does not overlap the tensor cores' instructions of a kernel, or ignores how it shares out registers.
#[derive(Clone, PartialEq, Eq)]
pub struct SerializedError {
    /// The kernel.
    pub kernel: String,
    /// The messages C75xx of ptxas.
    pub told: Vec<String>,
}

debug_as_display!(SerializedError);

impl fmt::Display for SerializedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[build]: ptxas makes the tensor cores of {} wait", self.kernel)?;
        for (place, told) in self.told.iter().enumerate() {
            writeln!(f, "  {} {told}", if place == 0 { "found:   " } else { "         " })?;
        }
        writeln!(f, "  required: WGMMA that runs while the next is asked for, and no message C75xx of ptxas")?;
        writeln!(
            f,
            "  because:  the kernel would be right, and slow: each instruction would wait for the one before it"
        )?;
        write!(
            f,
            "  help:     nvcc 13.0, or another tile; with nvcc 13.0 this is a defect of cutemplate's text, please report it"
        )
    }
}

impl std::error::Error for SerializedError {}

/// The compiler refused the text of a kernel, or could not be run.
pub struct CompileError {
    /// The kernel.
    pub unit: String,
    /// The command, one element for each argument.
    pub argv: Vec<String>,
    /// How the compiler ended; `None` where it could not be started.
    pub status: Option<ExitStatus>,
    /// The compiler's output, unchanged; the system's reason if it could not be started.
    pub text: String,
    /// The line of the kernel's own text that the first message belongs to, where it belongs to one.
    pub at: Option<SourceLine>,
    /// The variables that are set, and that nvcc reads.
    pub variables: Vec<&'static str>,
    /// What to do, where the text is one's own; empty where it is generated.
    pub mend: String,
}

debug_as_display!(CompileError);

/// A line of a kernel's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file's name.
    pub file: String,
    /// The line's number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

impl SourceLine {
    /// The line of `unit` that a compiler's text speaks of first: `file(12): error`, `file:12:3: error`, or, for an
    /// error inside an included header, `at line 12 of file`.
    pub(super) fn find(unit: &Unit, text: &str) -> Option<SourceLine> {
        let first_error = text.lines().position(|line| line.contains("error"))?;
        let mut lines = text.lines().skip(first_error);
        if let Some(own) = unit.own() {
            return SourceLine::of_own(own, unit, lines);
        }
        lines.find_map(|line| unit.files().iter().find_map(|file| SourceLine::named(&file.name, &file.text, line)))
    }

    /// The same in a text of one's own, by the path that it was read from: a line of the text, or of the declaration of an entry.
    fn of_own<'t>(own: &Own, unit: &Unit, mut lines: impl Iterator<Item = &'t str>) -> Option<SourceLine> {
        let declared: String =
            own.entries().iter().map(|entry| format!("Entry::new({:?})\n", entry.function)).collect();
        lines.find_map(|line| {
            let text = unit.params();
            let found = SourceLine::named(&text.name, &text.text, line);
            let found = found.map(|at| SourceLine { file: own.place(), ..at });
            found.or_else(|| SourceLine::named(DECLARED, &declared, line))
        })
    }

    fn named(name: &str, source: &str, message: &str) -> Option<SourceLine> {
        let digits = |rest: &str| -> Option<usize> {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().ok()
        };
        let at_start = || {
            let rest = message.trim_start().strip_prefix(name)?;
            digits(rest.strip_prefix('(').or_else(|| rest.strip_prefix(':'))?)
        };
        let instantiated = || {
            let (before, after) = message.rsplit_once(" of ")?;
            let here = after.trim_end().trim_matches(['"', '\'']) == name;
            here.then(|| digits(before.rsplit_once("at line ")?.1)).flatten()
        };
        let line = at_start().or_else(instantiated)?;
        let text = source.lines().nth(line.checked_sub(1)?)?.trim().to_owned();
        Some(SourceLine { file: name.to_owned(), line, text })
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => writeln!(f, "error[nvcc]: nvcc refused {} ({status})", self.unit)?,
            None => writeln!(f, "error[nvcc]: nvcc could not be run for {}", self.unit)?,
        }
        if let Some(at) = &self.at {
            writeln!(f, "  at:       {}:{}: {}", at.file, at.line, at.text)?;
        }
        let text = self.text.trim();
        let first = text.lines().find(|line| line.contains("error") || line.contains("fatal"));
        writeln!(f, "  found:    {}", first.or(text.lines().next()).unwrap_or("no word").trim())?;
        writeln!(f, "  command:  {}", quoted(&self.argv))?;
        let help = match self.status {
            Some(_) if !self.variables.is_empty() => format!(
                "nvcc reads {}, which {} set: try without; if it is refused all the same, report it with this text",
                self.variables.join(", "),
                if self.variables.len() == 1 { "is" } else { "are" }
            ),
            Some(_) if !self.mend.is_empty() => self.mend.clone(),
            Some(_) => {
                "an accepted recipe must compile: report it with this text, unless flags or headers were changed; \
                 where the family is yours, mend its template"
                    .into()
            }
            None => "check NVCC and CUDA_HOME; `cutemplate doctor` shows the tools that it finds".to_owned(),
        };
        write!(f, "  help:     {help}")?;
        if text.lines().count() > 1 {
            write!(f, "\n  all that nvcc says:\n{text}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CompileError {}

/// A command as it could be typed into a shell.
pub(super) fn quoted(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    let word = |arg: &String| match arg.chars().all(plain) && !arg.is_empty() {
        true => arg.clone(),
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

impl Manifest {
    /// Refuses a kernel that spills registers on any architecture.
    ///
    /// # Errors
    /// Where it does: how much, on which.
    pub fn deny_spills(&self) -> Result<(), Error> {
        let on: Vec<Resources> = self.resources.iter().filter(|row| row.spills()).cloned().collect();
        if on.is_empty() {
            return Ok(());
        }
        Err(Box::new(SpillError { kernel: self.name.clone(), on }).into())
    }
}
