//! Bundles in the driver: using one instead of compiling, and making one of compiled kernels.

use std::path::{Path, PathBuf};

use cutlass_sys::{Env, Finder};

use super::config::{Config, Made};
use super::error::Error;
use super::watch::Watch;
use super::write_if_changed;
use crate::arch::Targets;
use crate::bundle::{self, Contents, Difference, Listed, Packed, StaleBundle, differences, read_recipes, superfluous};
use crate::digest::Digest;
use crate::emit::{self, Unit};
use crate::plan::Plan;
use crate::recipe::Family;
use crate::settings::Settings;

/// The variable by which [`Config::bundle`] writes the bundle: `CUTEMPLATE_BUNDLE=write`.
pub(super) const VARIABLE: &str = "CUTEMPLATE_BUNDLE";

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
        for Listed { name, family, settings, whole } in read_recipes(path, &self.families)? {
            let planner = {
                let name = name.clone();
                Box::new(move |targets: &Targets| family.plan(&settings, Some(&name), targets))
            };
            self.ask(&name, Some((family.name, whole)), planner);
        }
        self.watched.push(path.to_owned());
        Ok(self)
    }

    /// Adds a family of another crate to those that files of recipes may name. Comes before [`Config::recipes`]. Of two with one
    /// name, the first counts.
    #[must_use]
    pub fn family(mut self, family: Family) -> Config {
        self.families.push(family);
        self
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
        let parts = || plans.iter().flat_map(Plan::texts);
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
        let differences = differences(contents, self.asked(), self.targets().archs());
        if differences.is_empty() {
            return Ok(());
        }
        Err(StaleBundle { path: path.to_owned(), differences, help: format!("{VARIABLE}=write cargo build") }.into())
    }

    /// Where a bundle differs from the kernels that are asked for, those among them that it has and nobody asks for. It compiles nothing;
    /// architectures are compared where some are [named](Config::arch).
    ///
    /// # Errors
    /// The bundle cannot be read.
    pub fn differences(&self, bundle: &Path) -> Result<Vec<Difference>, Error> {
        let bundle = bundle::open(bundle)?;
        let mut found = differences(bundle.contents(), self.asked(), &self.archs);
        found.extend(superfluous(bundle.contents(), self.asked().map(|(name, _)| name)));
        Ok(found)
    }

    /// The name of each kernel, and its family with all settings where they are known.
    fn asked(&self) -> impl Iterator<Item = (&str, Option<(&str, &Settings)>)> {
        self.kernels.iter().map(|asked| {
            let identity = asked.identity.as_ref().map(|(family, settings)| (*family, settings));
            (asked.name.as_str(), identity)
        })
    }
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
    // Code that CUTLASS is compiled into comes with its licence.
    let licence = match compiled.iter().any(|(compiled, _)| !compiled.manifest().cutlass.is_empty()) {
        false => None,
        true => {
            let cutlass = finder.cutlass(&mut ())?;
            Some(cutlass.licence().ok_or_else(|| bundle::no_licence(&cutlass.include))?)
        }
    };
    let mut made = compiled.iter();
    let kernels = plans.into_iter().map(|plan| {
        let texts = made.by_ref().take(plan.texts().len());
        let texts = texts.map(|(compiled, ptx)| Packed {
            manifest: compiled.manifest(),
            fatbin: compiled.fatbin(),
            ptx: ptx.text(),
        });
        let texts = texts.collect();
        (plan, texts)
    });
    Ok(bundle::pack(&kernels.collect::<Vec<_>>(), licence.as_deref()))
}
