//! Bundles in the driver: using one instead of compiling, and making one of compiled kernels.

use std::fs;
use std::path::{Path, PathBuf};

use cutlass_sys::{Env, Finder};

use super::config::{Config, Made};
use super::error::Error;
use super::watch::Watch;
use super::write_if_changed;
use crate::arch::{Arch, Targets};
use crate::bundle::{self, Contents, KernelRow, Packed};
use crate::digest::Digest;
use crate::emit::{self, Unit};
use crate::plan::Plan;
use crate::recipe::family;
use crate::settings::Settings;

/// The variable by which [`Config::bundle`] writes the bundle: `CUTEMPLATE_BUNDLE=write`.
pub(super) const VARIABLE: &str = "CUTEMPLATE_BUNDLE";

/// A bundle's kernels are not those of the recipes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "error[bundle]: {} is not of this crate's recipes\n  found:    {found}\n  required: {required}\n  \
     because:  what is asked for in build.rs, and what is launched, would be two kernels\n  \
     help:     {VARIABLE}=write cargo build makes it again, where nvcc is", path.display()
)]
pub struct StaleBundle {
    /// The bundle.
    pub path: PathBuf,
    /// The bundle's value.
    pub found: String,
    /// The requested value.
    pub required: String,
}

impl Config {
    /// Takes the kernels of this bundle where it is there, and compiles them where it is not: a crate that ships the
    /// file is built without nvcc, CUTLASS and network. A path begins at the crate's folder. Where the bundle is of
    /// other recipes than are asked for, the build fails; `CUTEMPLATE_BUNDLE=write cargo build` compiles them and
    /// writes it, to be shipped.
    ///
    /// # Examples
    /// ```no_run
    /// // build.rs
    /// use cutemplate::{build::Config, recipe::ElementwiseAdd};
    /// Config::new().recipe("vector_add", &ElementwiseAdd::default()).bundle("kernels.bundle").compile();
    /// ```
    #[must_use]
    pub fn bundle(mut self, path: impl Into<PathBuf>) -> Config {
        self.bundle = Some(path.into());
        self
    }

    /// Adds the kernels of a file: one a line, `name family key=value; key=value`; lines that begin with `#` are
    /// remarks.
    ///
    /// ```text
    /// # name      family           settings
    /// vector_add  elementwise_add  dtype=f32; unroll=4
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, or a line is none.
    pub fn recipes(mut self, path: impl AsRef<Path>) -> Result<Config, Error> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |found: String| Error::RecipeLine { path: path.to_owned(), line: number, found };
            let next = |text: &'_ str| {
                text.split_once(char::is_whitespace).map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
            };
            let (name, rest) = next(line).ok_or_else(|| bad(format!("`{line}`")))?;
            let (word, rest) = next(&rest).unwrap_or((rest, String::new()));
            let family = family(&word).map_err(|e| bad(e.to_string()))?;
            let settings = Settings::parse_lines(&lines(&rest));
            let whole = family.complete(&settings)?;
            let planner = {
                let (name, settings) = (name.clone(), settings);
                Box::new(move |targets: &Targets| family.plan(&settings, Some(&name), targets))
            };
            self.ask(&name, Some((family.name, whole)), planner);
        }
        self.watched.push(path.to_owned());
        Ok(self)
    }

    /// Compiles every recipe, and gives the bytes of a bundle of them, and their sha256. It writes nothing but the
    /// store.
    ///
    /// # Errors
    /// As [`Config::try_compile`].
    pub fn pack(&self) -> Result<(Vec<u8>, Digest), Error> {
        let finder = self.finder.clone().unwrap_or_else(Finder::from_env);
        self.whole()?;
        let plans = self.plans()?;
        let parts = || plans.iter().flat_map(Plan::parts);
        let units: Vec<(Unit, Targets)> = parts().map(|p| (emit::render(p), p.targets().clone())).collect();
        match self.make(&finder, &units, &mut Watch::new())? {
            Made::Kernels(compiled) => {
                self.check_spills(
                    &parts().cloned().collect::<Vec<_>>(),
                    compiled.iter().map(|(compiled, _)| compiled.manifest()),
                )?;
                packed(plans, &compiled, &finder)
            }
            Made::Stubs { why } => Err(Error::StubBundle { why }),
        }
    }

    /// The bundle that stands for the kernels, if it is there and is not to be written.
    pub(super) fn given(&self, env: &Env) -> Option<&Path> {
        let path = self.bundle.as_deref()?;
        (!wants_writing(env) && path.exists()).then_some(path)
    }

    /// Writes the bundle where that is asked for.
    pub(super) fn leave_bundle(
        &self,
        finder: &Finder,
        plans: &[Plan],
        compiled: &[(super::Compiled, super::Ptx)],
    ) -> Result<(), Error> {
        let Some(path) = self.bundle.as_deref().filter(|_| wants_writing(finder.env())) else { return Ok(()) };
        let (bytes, _) = packed(plans.to_vec(), compiled, finder)?;
        write_if_changed(path, &bytes).map(|_| ()).map_err(|e| Error::io("write", path, e))
    }

    /// Puts the kernels of a bundle into the output directory; the text of their modules.
    pub(super) fn take(&self, path: &Path, out: &Path) -> Result<String, Error> {
        let bundle = bundle::open(path)?;
        self.compare(path, bundle.contents())?;
        Ok(bundle::unpack(out, &bundle, &self.root)?)
    }

    /// Compares the request with the bundle; nothing is planned.
    fn compare(&self, path: &Path, contents: &Contents) -> Result<(), Error> {
        let stale = |found: String, required: String| StaleBundle { path: path.to_owned(), found, required };
        let required = self.targets();
        let archs = |kernel: &KernelRow| -> Vec<Arch> {
            kernel.texts.iter().flat_map(|text| text.targets.archs()).copied().collect()
        };
        for asked in &self.kernels {
            let Some(kernel) = contents.kernel(&asked.name) else {
                let names: Vec<&str> = contents.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
                return Err(stale(names.join(", "), format!("kernel `{}`", asked.name)).into());
            };
            let Some((family, settings)) = &asked.identity else { continue };
            let (found, asked) = (format!("{} {}", kernel.family, one_line(&kernel.settings)), settings.to_string());
            let asked = format!("{family} {}", one_line(&asked));
            if found != asked {
                return Err(stale(found, asked).into());
            }
            let found = archs(kernel);
            if let Some(missing) = required.archs().iter().find(|arch| !found.contains(arch)) {
                let found = Targets::new(found).unwrap_or_default();
                return Err(stale(format!("`{}` for {found}", kernel.name), format!("for {missing} too")).into());
            }
        }
        Ok(())
    }
}

/// A setting on each line. The names of a function have a `;` of their own between bars: `|a, b; alpha| ..`.
fn lines(settings: &str) -> String {
    let mut inside = false;
    let mut line = |letter: char| {
        inside ^= letter == '|';
        if letter == ';' && !inside { '\n' } else { letter }
    };
    settings.chars().map(&mut line).collect()
}

fn one_line(settings: &str) -> String {
    settings.replace('\n', "; ")
}

fn wants_writing(env: &Env) -> bool {
    env.get(VARIABLE).is_some_and(|value| value == "write")
}

/// The bundle of plans, with the compiled form of each of their parts, in order.
fn packed(
    plans: Vec<Plan>,
    compiled: &[(super::Compiled, super::Ptx)],
    finder: &Finder,
) -> Result<(Vec<u8>, Digest), Error> {
    let cutlass = finder.cutlass(&mut ())?;
    let Some(licence) = cutlass.licence() else { return Err(bundle::no_licence(&cutlass.include).into()) };
    let mut made = compiled.iter();
    let kernels = plans.into_iter().map(|plan| {
        let texts = made.by_ref().take(plan.parts().len());
        let texts = texts.map(|(compiled, ptx)| Packed {
            manifest: compiled.manifest(),
            fatbin: compiled.fatbin(),
            ptx: ptx.text(),
        });
        let texts = texts.collect();
        (plan, texts)
    });
    Ok(bundle::pack(&kernels.collect::<Vec<_>>(), &licence))
}
