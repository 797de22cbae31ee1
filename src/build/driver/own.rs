//! Kernels of one's own in the driver: reading their text, and what their declarations allow.

use std::fs;
use std::sync::Arc;

use super::config::Config;
use super::error::{Error, RegisterError, SpillError};
use crate::arch::Targets;
use crate::bundle::{Manifest, Resources};
use crate::cuda::{Cuda, FAMILY};
use crate::emit::Unit;
use crate::plan::Plan;

impl Config {
    /// Adds the kernels of CUDA C++ of one's own: one for each of its [entries](crate::cuda::Entry). A single one is called `name`, several
    /// have the function behind it. The text is compiled once.
    ///
    /// # Examples
    /// ```no_run
    /// // build.rs
    /// use cutemplate::build::Config;
    /// use cutemplate::cuda::{Cuda, Entry};
    /// use cutemplate::dtype::DType;
    /// use cutemplate::view::Access;
    ///
    /// let entry = Entry::new("scale").operand("x", DType::F32, Access::ReadWrite, "n:1").extent("n", "x.0");
    /// let entry = entry.grid("ceil_div(n, 256)").block(256);
    /// Config::new().cuda("scale", Cuda::file("kernels/scale.cu").entry(entry)).compile();
    /// ```
    #[must_use]
    pub fn cuda(mut self, name: &str, cuda: Cuda) -> Config {
        let text = match cuda.path() {
            None => cuda.given_text().unwrap_or_default().to_owned(),
            Some(path) => {
                self.watched.push(path.to_path_buf());
                fs::read_to_string(path).unwrap_or_else(|e| {
                    self.failed.push((path.to_path_buf(), e));
                    String::new()
                })
            }
        };
        let (text, cuda): (Arc<str>, Arc<Cuda>) = (text.into(), Arc::new(cuda));
        let names = cuda.names(name);
        for index in 0..names.len().max(1) {
            let kernel = names.get(index).map_or(name, String::as_str);
            let identity = (FAMILY, cuda.settings(name, index, &text));
            let (name, text, cuda) = (name.to_owned(), text.clone(), cuda.clone());
            let planner = move |targets: &Targets| cuda.plan(&name, index, &text, targets);
            self.ask(kernel, Some(identity), Box::new(planner));
        }
        self
    }
}

/// Each text once, and for each unit the number of its text: several kernels of one's own share one.
pub(super) fn texts(units: &[(Unit, Targets)]) -> (Vec<(Unit, Targets)>, Vec<usize>) {
    let (mut texts, mut text_of): (Vec<(Unit, Targets)>, Vec<usize>) = (Vec::new(), Vec::new());
    for (unit, targets) in units {
        let is_same = |(known, of): &(Unit, Targets)| {
            unit.own().is_some() && known.own() == unit.own() && known.name() == unit.name() && of == targets
        };
        let known = texts.iter().position(is_same);
        text_of.push(known.unwrap_or(texts.len()));
        if known.is_none() {
            texts.push((unit.clone(), targets.clone()));
        }
    }
    (texts, text_of)
}

/// The resources of a plan's own entries: a text of one's own may have others.
fn resources(plan: &Plan, manifest: &Manifest) -> Vec<Resources> {
    let is_of_plan = |row: &&Resources| plan.entries().iter().any(|entry| entry.name == row.entry);
    manifest.resources.iter().filter(is_of_plan).cloned().collect()
}

/// Refuses a kernel that spills registers.
pub(super) fn deny_spills(plan: &Plan, manifest: &Manifest) -> Result<(), Error> {
    let on: Vec<Resources> = resources(plan, manifest).into_iter().filter(Resources::spills).collect();
    if on.is_empty() { Ok(()) } else { Err(Box::new(SpillError { kernel: plan.name().to_owned(), on }).into()) }
}

/// Refuses a kernel that takes more registers than it may.
pub(super) fn limit_registers(plan: &Plan, manifest: &Manifest) -> Result<(), Error> {
    let Some(most) = plan.max_registers() else { return Ok(()) };
    let on: Vec<Resources> = resources(plan, manifest).into_iter().filter(|row| row.registers > most).collect();
    if on.is_empty() {
        Ok(())
    } else {
        Err(Box::new(RegisterError { kernel: plan.name().to_owned(), most, on }).into())
    }
}
