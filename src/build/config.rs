//! The API of a user's `build.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use cutlass_sys::{Env, ErrorKind, Finder};

use super::error::Error;
use super::manifest::Manifest;
use super::nvcc::Compiler;
use super::store::{Compiled, Store};
use super::write_if_changed;
use crate::arch::{Arch, Targets};
use crate::emit::{self, Unit};
use crate::plan::{Diagnostic, Plan, PlanError};
use crate::recipe::sgemm::{Problem, Record};
use crate::recipe::{Recipe, Sgemm};

/// The file with the Rust side of all kernels.
const MODULES: &str = "cutemplate.rs";

type Planner = Box<dyn Fn(&Targets) -> Result<Plan, PlanError>>;

/// What a build script generates and compiles.
///
/// # Examples
/// ```no_run
/// // build.rs
/// use cutemplate::{arch::Arch, build::Config, recipe::ElementwiseAdd};
/// Config::new()
///     .arch(Arch::Sm80)
///     .arch(Arch::Sm90a)
///     .recipe("vector_add", &ElementwiseAdd { unroll: 4, ..Default::default() })
///     .compile();
/// ```
#[derive(Default)]
pub struct Config {
    finder: Option<Finder>,
    archs: Vec<Arch>,
    kernels: Vec<(String, Planner)>,
    dispatches: Vec<Dispatch>,
    out_dir: Option<PathBuf>,
    store: Option<Store>,
    flags: Vec<String>,
    require_cuda: bool,
    deny_spills: bool,
}

/// Which kernel for which problem.
struct Dispatch {
    name: String,
    device: String,
    rows: Vec<(Problem, String)>,
}

/// What became of one kernel.
#[derive(Clone, Debug)]
pub struct Built {
    /// What was decided.
    pub plan: Plan,
    /// The kernel's name.
    pub name: String,
    /// The fatbin in the output directory; an empty file where there was no CUDA toolkit.
    pub fatbin: PathBuf,
    /// What nvcc made of it; `None` where there was no CUDA toolkit.
    pub manifest: Option<Manifest>,
}

impl Config {
    /// No kernel yet; `sm_80` and `sm_90a`.
    #[must_use]
    pub fn new() -> Config {
        Config::default()
    }

    /// Compiles for this architecture; may be called several times. Without a call, for `sm_80` and `sm_90a`.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> Config {
        self.archs.push(arch);
        self
    }

    /// Adds a kernel. `name` becomes the name of its entry, of its files and of its module.
    #[must_use]
    pub fn recipe<R: Recipe>(mut self, name: &str, recipe: &R) -> Config {
        let (recipe, plan_name) = (recipe.clone(), name.to_owned());
        let planner = move |targets: &Targets| recipe.plan_as(&plan_name, targets);
        self.kernels.push((name.to_owned(), Box::new(planner)));
        self
    }

    /// Adds the kernels of a record of measurements, called `<name>_0` and so on, and a module `name` whose `select` gives the
    /// one for a problem.
    ///
    /// # Examples
    /// ```no_run
    /// // build.rs; sgemm::select(&Problem::rows(m, n, k)) then names the kernel.
    /// use cutemplate::{build::Config, recipe::sgemm::Record};
    /// Config::new().sgemm("sgemm", &Record::h200()).compile();
    /// ```
    #[must_use]
    pub fn sgemm(mut self, name: &str, record: &Record) -> Config {
        let mut recipes: Vec<&Sgemm> = Vec::new();
        let mut rows = Vec::new();
        for row in &record.rows {
            let index = recipes.iter().position(|known| **known == row.recipe).unwrap_or_else(|| {
                recipes.push(&row.recipe);
                recipes.len() - 1
            });
            rows.push((row.problem, format!("{name}_{index}")));
        }
        for (index, recipe) in recipes.into_iter().enumerate() {
            self = self.recipe(&format!("{name}_{index}"), recipe);
        }
        self.dispatches.push(Dispatch { name: name.to_owned(), device: record.device.clone(), rows });
        self
    }

    /// Adds a kernel that is planned already, for the architectures of its plan.
    #[must_use]
    pub fn plan(mut self, plan: Plan) -> Config {
        self.kernels.push((plan.name().to_owned(), Box::new(move |_| Ok(plan.clone()))));
        self
    }

    /// Writes into this directory, and not into cargo's `OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, dir: impl Into<PathBuf>) -> Config {
        self.out_dir = Some(dir.into());
        self
    }

    /// Keeps compiled kernels in this store, and not in the user's.
    #[must_use]
    pub fn store(mut self, store: Store) -> Config {
        self.store = Some(store);
        self
    }

    /// Finds the toolchain with this finder, and reads all variables from its environment.
    #[must_use]
    pub fn finder(mut self, finder: Finder) -> Config {
        self.finder = Some(finder);
        self
    }

    /// Passes a further argument to nvcc.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Config {
        self.flags.push(flag.into());
        self
    }

    /// Whether a missing CUDA toolkit is an error. By default it is a warning: the fatbin is empty, and the kernel runs
    /// on the CPU executor only.
    #[must_use]
    pub fn require_cuda(mut self, required: bool) -> Config {
        self.require_cuda = required;
        self
    }

    /// Whether a kernel whose registers nvcc spills is an error. By default it is a warning, unless the recipe denies it.
    ///
    /// # Examples
    /// ```no_run
    /// use cutemplate::{build::Config, recipe::ElementwiseAdd};
    /// Config::new().recipe("vector_add", &ElementwiseAdd::default()).deny_spills(true).compile();
    /// ```
    #[must_use]
    pub fn deny_spills(mut self, denied: bool) -> Config {
        self.deny_spills = denied;
        self
    }

    /// As [`Config::try_compile`]; prints the error and ends the process where that fails, as a build script should.
    pub fn compile(&self) -> Vec<Built> {
        match self.try_compile() {
            Ok(built) => built,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
    }

    /// Plans every recipe, writes the C++ text, compiles it, and writes `<name>.fatbin`, `<name>.json` (the manifest) and
    /// `cutemplate.rs` (the Rust side of all kernels). Files that stay the same are left alone. Where cargo runs it,
    /// prints when cargo should run it again.
    ///
    /// # Errors
    /// Recipes that are refused, with every reason of every one of them; a toolchain that is wrong, or missing where
    /// [`Config::require_cuda`]; what nvcc refuses; kernels that spill where that is denied; files that cannot be written.
    pub fn try_compile(&self) -> Result<Vec<Built>, Error> {
        let finder = self.finder.clone().unwrap_or_else(Finder::from_env);
        let plans = self.plans()?;
        let (out, script) = self.place(finder.env())?;
        fs::create_dir_all(&out).map_err(|e| Error::io("make", &out, e))?;
        let units: Vec<(Unit, Targets)> = plans.iter().map(|p| (emit::render(p), p.targets().clone())).collect();
        for file in units.iter().flat_map(|(unit, _)| unit.files()) {
            write(&out.join(&file.name), file.text.as_bytes())?;
        }
        let mut say = said(&plans);
        let compiled = self.compile_units(&finder, &units, &mut say)?;
        self.check_spills(&plans, &compiled)?;
        let mut built = Vec::new();
        for (plan, compiled) in plans.into_iter().zip(compiled) {
            built.push(leave(&out, plan, compiled, &mut say)?);
        }
        let kernels = built.iter().map(|b| emit::rust_module(&b.plan));
        let dispatches = self.dispatches.iter().map(|d| emit::dispatch_module(&d.name, &d.device, &d.rows));
        let modules: String = kernels.chain(dispatches).collect();
        write(&out.join(MODULES), modules.as_bytes())?;
        if script {
            for line in say {
                println!("cargo::{line}");
            }
        }
        Ok(built)
    }

    /// Refuses what spills where that is denied, all kernels at once.
    fn check_spills(&self, plans: &[Plan], compiled: &[Option<Compiled>]) -> Result<(), Error> {
        let denied = plans.iter().zip(compiled).filter(|(plan, _)| self.deny_spills || plan.spills_denied());
        let manifests = denied.filter_map(|(_, compiled)| Some(&compiled.as_ref()?.manifest));
        let failed = manifests.filter_map(|manifest| manifest.deny_spills().err()).collect();
        Error::all(failed).map_or(Ok(()), Err)
    }

    /// Every plan, or every reason why there are not.
    fn plans(&self) -> Result<Vec<Plan>, Error> {
        let targets = Targets::new(self.archs.iter().copied()).unwrap_or_default();
        let mut plans = Vec::new();
        let mut refused = Vec::new();
        for (index, (name, planner)) in self.kernels.iter().enumerate() {
            let dispatched = self.dispatches.iter().any(|d| d.name == *name);
            if dispatched || self.kernels[..index].iter().any(|(other, _)| other == name) {
                return Err(Error::NameTwice { name: name.clone() });
            }
            match planner(&targets) {
                Ok(plan) => plans.push(plan),
                Err(PlanError(found)) => refused.extend(found),
            }
        }
        if refused.is_empty() { Ok(plans) } else { Err(PlanError(refused).into()) }
    }

    /// The output directory, and whether a build script of cargo's asks.
    fn place(&self, env: &Env) -> Result<(PathBuf, bool), Error> {
        let cargo = env.get("OUT_DIR").map(PathBuf::from);
        let script = cargo.is_some();
        let out = self.out_dir.clone().or(cargo).ok_or(Error::Variable {
            name: "OUT_DIR",
            help: "call this from build.rs, or name a directory with Config::out_dir",
        })?;
        Ok((out, script))
    }

    /// The compiled units; `None` for each where there is no toolkit and that is allowed.
    fn compile_units(
        &self,
        finder: &Finder,
        units: &[(Unit, Targets)],
        say: &mut Vec<String>,
    ) -> Result<Vec<Option<Compiled>>, Error> {
        let variables =
            Env::VARIABLES.iter().chain(&["CUTEMPLATE_FETCH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"]);
        say.extend(variables.map(|name| format!("rerun-if-env-changed={name}")));
        let compiler = match Compiler::new(finder, &mut ()) {
            Ok(compiler) => compiler,
            Err(Error::Toolchain(missing)) if !self.require_cuda && may_be_missing(&missing) => {
                say.push(format!(
                    "warning={}; kernels run on the CPU executor only: {}",
                    missing.what(),
                    missing.help()
                ));
                return Ok(units.iter().map(|_| None).collect());
            }
            Err(error) => return Err(error),
        };
        let toolchain = compiler.toolchain();
        let watched = [&toolchain.nvcc.path, &toolchain.cutlass.include.join("cutlass/version.h")];
        say.extend(watched.map(|path| format!("rerun-if-changed={}", path.display())));
        let compiler = compiler.with_flags(self.flags.iter().cloned());
        let compiler = match &self.store {
            Some(store) => compiler.with_store(store.clone()),
            None => compiler,
        };
        let mut compiled = Vec::new();
        let mut failed = Vec::new();
        for result in compiler.compile_all(units) {
            match result {
                Ok(one) => compiled.push(Some(one)),
                Err(error) => failed.push(error),
            }
        }
        Error::all(failed).map_or(Ok(compiled), Err)
    }
}

/// What the plans warn of, as lines for cargo.
fn said(plans: &[Plan]) -> Vec<String> {
    let line = |plan: &Plan, warning: &Diagnostic| format!("warning={}: {}", plan.name(), warning.one_line());
    plans.iter().flat_map(|plan| plan.warnings().iter().map(move |warning| line(plan, warning))).collect()
}

/// Whether an error says only that there is no toolkit here, and none is to be fetched.
fn may_be_missing(error: &cutlass_sys::Error) -> bool {
    matches!(error.kind(), ErrorKind::FetchNotAllowed | ErrorKind::NoWheel)
}

/// Writes the fatbin and the manifest of a kernel.
fn leave(out: &Path, plan: Plan, compiled: Option<Compiled>, say: &mut Vec<String>) -> Result<Built, Error> {
    let name = plan.name().to_owned();
    let fatbin = out.join(format!("{name}.fatbin"));
    let row = out.join(format!("{name}.json"));
    let bytes = compiled.as_ref().map_or(&[][..], |compiled| &compiled.fatbin);
    write(&fatbin, bytes)?;
    let manifest = compiled.map(|compiled| compiled.manifest);
    match &manifest {
        Some(manifest) => {
            let text = serde_json::to_vec_pretty(manifest).map_err(|e| Error::io("write", &row, e.into()))?;
            write(&row, &text)?;
            say.extend(manifest.warnings.iter().map(|line| format!("warning={name}: {line}")));
            if manifest.uses_local_memory() {
                let counts = row.display();
                say.push(format!("warning={name} keeps values in slow local memory; {counts} has the counts"));
            }
        }
        // The manifest of an earlier build would speak of another fatbin.
        None if row.exists() => fs::remove_file(&row).map_err(|e| Error::io("remove", &row, e))?,
        None => {}
    }
    Ok(Built { plan, name, fatbin, manifest })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_if_changed(path, bytes).map(|_| ()).map_err(|e| Error::io("write", path, e))
}

#[cfg(test)]
mod tests;
