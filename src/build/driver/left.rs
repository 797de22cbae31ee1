//! The output directory of a build, and its directives for cargo.

use std::path::{Path, PathBuf};

use cutlass_sys::Env;

use super::config::Built;
use super::error::{Error, named};
use super::{Compiled, Ptx, watch, write_if_changed};
use crate::diagnostic::Diagnostic;
use crate::plan::Plan;
use crate::store;

/// Makes the output directory.
pub(super) fn made(out: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(out).map_err(|e| Error::io("make", out, e))
}

/// The warnings of the plans, as lines for cargo.
pub(super) fn said(plans: &[Plan]) -> Vec<String> {
    let line = |plan: &Plan, warning: &Diagnostic| format!("warning={}: {}", plan.name(), warning.one_line());
    plans.iter().flat_map(|plan| plan.warnings().iter().map(move |warning| line(plan, warning))).collect()
}

/// Why no kernel is to be compiled, if so.
pub(super) fn stub_wanted(env: &Env) -> Option<&'static str> {
    let set = |name: &str| env.get(name).is_some_and(|value| value == "1");
    match (set(watch::STUB), env.get(watch::DOCS_RS).is_some()) {
        (true, _) => Some("CUTEMPLATE_STUB=1 was set when it was built"),
        (false, true) => Some("it was built for documentation: DOCS_RS was set"),
        (false, false) => None,
    }
}

/// What cargo tells of stubs, in a line.
pub(super) fn stub_warning(plans: &[Plan], why: &str) -> String {
    let kernels = named(&plans.iter().map(|plan| plan.name().to_owned()).collect::<Vec<_>>());
    let are = if plans.len() == 1 { "is a stub" } else { "are stubs" };
    format!(
        "{kernels} {are}, which neither a GPU nor the executor can load: {why}. A build that finds nvcc, CUTLASS and a C++ compiler \
         compiles them; CUTEMPLATE_FETCH=1 fetches the first two"
    )
}

/// Writes the fatbin, the PTX and the manifest of a kernel.
pub(super) fn leave(
    out: &Path,
    plan: Plan,
    (compiled, ptx): &(Compiled, Ptx),
    say: &mut Vec<String>,
) -> Result<Built, Error> {
    let name = plan.name().to_owned();
    let [fatbin, text, row] = files(out, plan.stem());
    let manifest = compiled.manifest().clone();
    write(&fatbin, compiled.fatbin())?;
    write(&text, ptx.text().as_bytes())?;
    let json = serde_json::to_vec_pretty(&manifest).map_err(|e| Error::io("write", &row, e.into()))?;
    write(&row, &json)?;
    say.extend(manifest.warnings.iter().map(|line| format!("warning={name}: {line}")));
    if manifest.uses_local_memory() {
        let counts = row.display();
        say.push(format!("warning={name} keeps values in slow local memory; {counts} has the counts"));
    }
    Ok(Built { plan, name, fatbin: Some(fatbin), manifest: Some(manifest) })
}

/// Removes the files that an earlier build left of a kernel that is a stub now.
pub(super) fn leave_stub(out: &Path, plan: Plan) -> Result<Built, Error> {
    let name = plan.name().to_owned();
    files(out, plan.stem()).iter().try_for_each(|file| store::remove(file))?;
    Ok(Built { plan, name, fatbin: None, manifest: None })
}

/// The fatbin, the PTX and the manifest of a kernel.
fn files(out: &Path, name: &str) -> [PathBuf; 3] {
    ["fatbin", "ptx", "json"].map(|suffix| out.join(format!("{name}.{suffix}")))
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_if_changed(path, bytes).map(|_| ()).map_err(|e| Error::io("write", path, e))
}
