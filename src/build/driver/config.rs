//! The API of a user's `build.rs`.

use std::path::{Path, PathBuf};

use cutlass_sys::{Env, Finder};

use super::compiled::Compiled;
use super::dispatch::Dispatch;
use super::error::Error;
use super::heard::{Heard, fetching};
use super::left::{leave, leave_stub, made, said, stub_wanted, stub_warning, write};
use super::nvcc::Compiler;
use super::own;
use super::ptx::Ptx;
use super::watch::Watch;
use crate::arch::{Arch, Targets};
use crate::bundle::{self, Embedded, Manifest};
use crate::diagnostic::{Diagnostics, PlanError};
use crate::emit::{self, Unit};
use crate::plan::Plan;
use crate::recipe::{FAMILIES, Family, Recipe};
use crate::settings::Settings;
use crate::store::Store;

pub(super) type Planner = Box<dyn Fn(&Targets) -> Result<Plan, PlanError>>;

/// The kernels that a build script generates and compiles.
///
/// If nvcc, CUTLASS or a C++ compiler is missing, the build fails and says what to do: a crate without its kernels is
/// useless. Three settings make *stubs* instead: [`Config::optional`], and the variables `CUTEMPLATE_STUB=1` and
/// `DOCS_RS`, which skip the search for tools. Stubs have types and text, and loading one gives an error.
///
/// cargo runs the script again where a variable that it reads or a file that a kernel was made of changes, `PATH`, the compilers
/// and every header that nvcc read among them. A tool that appears in a place of higher rank than the one in use is not waited
/// for; a missing one is, at every build.
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
pub struct Config {
    pub(super) finder: Option<Finder>,
    pub(super) archs: Vec<Arch>,
    /// Those that a kernel is compiled for if it can be.
    wanted: Vec<Arch>,
    pub(super) kernels: Vec<Asked>,
    /// Families that files of recipes may name.
    pub(super) families: Vec<Family>,
    pub(super) dispatches: Vec<Dispatch>,
    /// In place of compiling.
    pub(super) bundle: Option<PathBuf>,
    /// The name of this crate in the user's crate.
    pub(super) root: String,
    /// Files that the recipes were read from.
    pub(super) watched: Vec<PathBuf>,
    /// Files that could not be read, and why.
    pub(super) failed: Vec<(PathBuf, std::io::Error)>,
    out_dir: Option<PathBuf>,
    store: Option<Store>,
    flags: Vec<String>,
    optional: bool,
    deny_spills: bool,
}

/// A kernel that is asked for.
pub(super) struct Asked {
    pub(super) name: String,
    /// Its family and all its settings; `None` where it was planned already.
    pub(super) identity: Option<(&'static str, Settings)>,
    pub(super) planner: Planner,
}

/// What became of one kernel, or of one of its [texts](Plan::texts).
#[derive(Clone, Debug)]
pub struct Built {
    /// The decisions.
    pub plan: Plan,
    /// The kernel's name.
    pub name: String,
    /// The fatbin in the output directory; `None` for a stub.
    pub fatbin: Option<PathBuf>,
    /// What nvcc made of it; `None` for a stub.
    pub manifest: Option<Manifest>,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// No kernel yet; `sm_80` and `sm_90a`.
    #[must_use]
    pub fn new() -> Config {
        Config {
            finder: None,
            archs: Vec::new(),
            wanted: Vec::new(),
            kernels: Vec::new(),
            families: FAMILIES.to_vec(),
            dispatches: Vec::new(),
            bundle: None,
            root: "::cutemplate".to_owned(),
            watched: Vec::new(),
            failed: Vec::new(),
            out_dir: None,
            store: None,
            flags: Vec::new(),
            optional: false,
            deny_spills: false,
        }
    }

    /// The name that the crate gives this one in its Cargo.toml, where that is another than `cutemplate`.
    #[must_use]
    pub fn crate_name(mut self, name: &str) -> Config {
        self.root = format!("::{name}");
        self
    }

    pub(super) fn ask(&mut self, name: &str, identity: Option<(&'static str, Settings)>, planner: Planner) {
        self.kernels.push(Asked { name: name.to_owned(), identity, planner });
    }

    /// Compiles for this architecture; may be called several times. Without a call, for `sm_80` and `sm_90a`.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> Config {
        self.archs.push(arch);
        self
    }

    /// Compiles for this architecture too, if it has the instructions of a kernel: elementwise kernels run on `sm_75`,
    /// kernels with `cp.async` do not. May be called several times.
    #[must_use]
    pub fn arch_if_possible(mut self, arch: Arch) -> Config {
        self.wanted.push(arch);
        self
    }

    /// Adds a kernel. `name` becomes the name of its entry, of its files and of its module.
    #[must_use]
    pub fn recipe<R: Recipe>(mut self, name: &str, recipe: &R) -> Config {
        let identity = Some((R::FAMILY, recipe.settings()));
        let (recipe, plan_name) = (recipe.clone(), name.to_owned());
        let planner = move |targets: &Targets| recipe.plan_as(&plan_name, targets);
        self.ask(name, identity, Box::new(planner));
        self
    }

    /// Adds a kernel that is planned already, for the architectures of its plan.
    #[must_use]
    pub fn plan(mut self, plan: Plan) -> Config {
        let name = plan.name().to_owned();
        self.ask(&name, None, Box::new(move |_| Ok(plan.clone())));
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

    /// Makes stubs where nvcc, CUTLASS or a C++ compiler is missing, with a warning, and looks again at the next build. A variable
    /// that names something wrong, and a download that fails, are errors all the same.
    ///
    /// # Examples
    /// ```no_run
    /// // build.rs of a crate that has another way where there is no GPU
    /// use cutemplate::{build::Config, recipe::ElementwiseAdd};
    /// Config::new().recipe("vector_add", &ElementwiseAdd::default()).optional().compile();
    /// ```
    #[must_use]
    pub fn optional(mut self) -> Config {
        self.optional = true;
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

    /// Takes the kernels of [`Config::bundle`] where that is there, and returns nothing. Else plans every recipe, writes the C++ text, compiles it, and writes `<name>.fatbin`, `<name>.ptx`, `<name>.json` (the
    /// manifest) and `cutemplate.rs` (the Rust side of all kernels). Files that stay the same are left alone. Where cargo runs it,
    /// prints when cargo should run it again.
    ///
    /// # Errors
    /// Recipes that are refused, with every reason of every one of them; a toolchain that is wrong, or missing unless
    /// [`Config::optional`]; what nvcc refuses; kernels that spill where that is denied; files that cannot be written.
    pub fn try_compile(&self) -> Result<Vec<Built>, Error> {
        let finder = self.finder.clone().unwrap_or_else(Finder::from_env);
        let (out, script) = self.place(finder.env())?;
        self.whole()?;
        if let Some(path) = self.given(finder.env()) {
            made(&out)?;
            let mut modules = self.take(path, &out)?;
            modules.extend(self.dispatch_texts());
            write(&out.join(bundle::MODULES), modules.as_bytes())?;
            self.tell(script, &out, Watch::new().lines());
            return Ok(Vec::new());
        }
        let plans = self.plans()?;
        made(&out)?;
        let parts: Vec<Plan> = plans.iter().flat_map(Plan::texts).cloned().collect();
        let units: Vec<(Unit, Targets)> = parts.iter().map(|p| (emit::render(p), p.targets().clone())).collect();
        for file in units.iter().flat_map(|(unit, _)| unit.files()) {
            write(&out.join(&file.name), file.text.as_bytes())?;
        }
        for part in &parts {
            write(&out.join(format!("{}.abi.json", part.name())), part.abi().to_json().as_bytes())?;
        }
        let mut say = said(&plans);
        let mut watch = Watch::new();
        let made = match stub_wanted(finder.env()) {
            Some(why) => Made::Stubs { why: why.to_owned() },
            None => self.make(&finder, &units, &mut watch)?,
        };
        say.extend(watch.lines());
        let (mut built, mut modules) = (Vec::new(), String::new());
        match &made {
            Made::Kernels(compiled) => {
                self.check_spills(&parts, compiled.iter().map(|(compiled, _)| compiled.manifest()))?;
                let sums: Vec<String> =
                    compiled.iter().map(|(one, _)| one.manifest().fatbin.sha256.to_string()).collect();
                self.leave_bundle(&finder, &plans, compiled)?;
                let mut codes = sums.iter().map(|sha256| Embedded::Fatbin { sha256 });
                modules.extend(plans.iter().map(|plan| bundle::plan_module(&self.root, plan, &mut codes)));
                for (plan, compiled) in parts.into_iter().zip(compiled) {
                    built.push(leave(&out, plan, compiled, &mut say)?);
                }
            }
            Made::Stubs { why } => {
                say.push(format!("warning={}", stub_warning(&plans, why)));
                let mut codes = core::iter::repeat(Embedded::Stub { why });
                modules.extend(plans.iter().map(|plan| bundle::plan_module(&self.root, plan, &mut codes)));
                for plan in parts {
                    built.push(leave_stub(&out, plan)?);
                }
            }
        }
        modules.extend(self.dispatch_texts());
        write(&out.join(bundle::MODULES), modules.as_bytes())?;
        self.tell(script, &out, say);
        Ok(built)
    }

    /// Refuses files that could not be read.
    pub(super) fn whole(&self) -> Result<(), Error> {
        let Some((path, why)) = self.failed.first() else { return Ok(()) };
        let source = std::io::Error::new(why.kind(), why.to_string());
        let help = "a path begins at the crate's folder, where cargo runs build.rs";
        Err(Error::Io { verb: "read", path: path.clone(), source, help })
    }

    /// Prints the directives for cargo.
    fn tell(&self, script: bool, out: &Path, say: Vec<String>) {
        let watched =
            self.watched.iter().chain(&self.bundle).map(|path| format!("rerun-if-changed={}", path.display()));
        let variable = self.bundle.as_ref().map(|_| format!("rerun-if-env-changed={}", super::bundle::VARIABLE));
        let included = Some(bundle::included(out));
        for line in say.into_iter().chain(included).chain(watched).chain(variable).filter(|_| script) {
            println!("cargo::{line}");
        }
    }

    /// Refuses what spills where that is denied, all kernels at once.
    pub(super) fn check_spills<'m>(
        &self,
        plans: &[Plan],
        manifests: impl Iterator<Item = &'m Manifest>,
    ) -> Result<(), Error> {
        let mut failed = Vec::new();
        for (plan, manifest) in plans.iter().zip(manifests) {
            if self.deny_spills || plan.spills_denied() {
                failed.extend(own::deny_spills(plan, manifest).err());
            }
            failed.extend(own::limit_registers(plan, manifest).err());
        }
        Error::all(failed).map_or(Ok(()), Err)
    }

    /// The architectures that every kernel is compiled for.
    pub(super) fn targets(&self) -> Targets {
        Targets::new(self.archs.iter().copied()).unwrap_or_default()
    }

    /// Every plan, or every reason why there are not.
    pub(super) fn plans(&self) -> Result<Vec<Plan>, Error> {
        let targets = self.targets();
        let more = self.wanted.iter().map(|arch| Targets::new(targets.archs().iter().chain([arch]).copied()));
        let more: Vec<Targets> = more.flatten().collect();
        let mut plans = Vec::new();
        let mut refused = Vec::new();
        for (index, Asked { name, planner, .. }) in self.kernels.iter().enumerate() {
            let dispatched = self.dispatches.iter().any(|d| d.name == *name);
            if dispatched || self.kernels[..index].iter().any(|other| other.name == *name) {
                return Err(Error::NameTwice { name: name.clone() });
            }
            let has = |targets: &&Targets| planner(targets).is_ok();
            let own = more.iter().filter(has).flat_map(Targets::archs).chain(targets.archs()).copied();
            match planner(&Targets::new(own).unwrap_or_default()) {
                Ok(plan) => plans.push(plan),
                Err(PlanError::Refused(found)) => refused.extend(found),
                Err(defect @ PlanError::Defect(_)) => return Err(defect.into()),
            }
        }
        match Diagnostics::new(refused) {
            None => Ok(plans),
            Some(refused) => Err(PlanError::from(refused).into()),
        }
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

    /// The compiled units, or why there are none.
    pub(super) fn make(&self, finder: &Finder, units: &[(Unit, Targets)], watch: &mut Watch) -> Result<Made, Error> {
        let needs_cutlass = units.iter().any(|(unit, _)| unit.needs_cutlass());
        let of = if needs_cutlass { Compiler::new } else { Compiler::of_cuda };
        let compiler = match of(finder, &mut fetching()) {
            Ok(compiler) => compiler,
            Err(Error::Toolchain(missing)) if missing.is_missing() => {
                if !self.optional {
                    let kernels = units.iter().map(|(unit, _)| unit.name().to_owned()).collect();
                    return Err(Error::NoToolchain { kernels, missing: Box::new(missing) });
                }
                watch.files(finder.searched());
                return Ok(Made::Stubs { why: missing.what() });
            }
            Err(error) => return Err(error),
        };
        watch.toolchain(compiler.toolchain());
        let heard = Heard::default();
        let made = heard.clone();
        let compiler = compiler.with_flags(self.flags.iter().cloned()).telling(move |done| made.made(done));
        let compiler = match &self.store {
            Some(store) => compiler.with_store(store.clone()),
            None => compiler,
        };
        let (texts, text_of) = own::texts(units);
        let compiled = whole(compiler.compile_all(&texts))?;
        watch.files(compiled.iter().flat_map(|one| one.inputs().iter().cloned()));
        let ptx = whole(compiler.ptx_all(&texts))?;
        watch.files(ptx.iter().flat_map(|one| one.inputs().iter().cloned()));
        watch.say(heard.lines());
        let made = units.iter().zip(text_of).filter_map(|((unit, _), text)| {
            Some((compiled.get(text)?.clone().of_abi(unit.abi()), ptx.get(text)?.clone()))
        });
        Ok(Made::Kernels(made.collect()))
    }
}

/// All results, or all errors.
fn whole<T>(results: Vec<Result<T, Error>>) -> Result<Vec<T>, Error> {
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(one) => all.push(one),
            Err(error) => failed.push(error),
        }
    }
    Error::all(failed).map_or(Ok(all), Err)
}

/// What became of all kernels.
pub(super) enum Made {
    Kernels(Vec<(Compiled, Ptx)>),
    Stubs { why: String },
}

#[cfg(test)]
mod tests;
