//! `check`: the entries of a text, their parameters, and unsupported instructions.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::REFUSED;
use super::output::Output;
use crate::{Entry, Error, Module, Param};

pub(super) fn check(file: &Path, out: Output) -> Result<ExitCode, Error> {
    let module = Module::read(file)?;
    let (major, minor) = module.version();
    out.text(format_args!("PTX {major}.{minor} for {}", module.target()));
    out.object(json!({ "version": [major, minor], "target": module.target() }));
    let mut all_run = true;
    for entry in module.entries() {
        match entry {
            Ok(entry) => describe(&entry, out),
            Err((name, error)) => {
                let params = module.params(name).unwrap_or_default();
                all_run = false;
                out.text(format_args!("entry {name}: is not run here"));
                out.object(json!({ "entry": name, "runs": false, "params": objects(&params) }));
                list(&params, out);
                super::refuse(error, out);
            }
        }
    }
    Ok(if all_run { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

fn describe(entry: &Entry, out: Output) {
    out.object(json!({
        "entry": entry.name, "runs": true, "instructions": entry.instructions, "shared": entry.shared,
        "local": entry.local, "dynamic_smem": entry.has_dynamic_smem, "reqntid": entry.reqntid, "maxntid": entry.maxntid,
        "params": objects(&entry.params),
    }));
    out.text(format_args!("entry {}: {} instructions", entry.name, entry.instructions));
    let block = |what: &str, n: Option<[u32; 3]>| {
        if let Some([x, y, z]) = n {
            out.text(format_args!("  {what} ({x},{y},{z})"));
        }
    };
    block("block", entry.reqntid);
    block("block of at most", entry.maxntid);
    let dynamic = if entry.has_dynamic_smem { ", and dynamic" } else { "" };
    out.text(format_args!(
        "  {} B of shared memory{dynamic}, {} B of local memory a thread",
        entry.shared, entry.local
    ));
    list(&entry.params, out);
}

fn objects(params: &[Param]) -> Vec<Value> {
    let object = |p: &Param| json!({ "name": p.name, "type": format!("{:?}", p.ty).to_lowercase(), "bytes": p.bytes, "offset": p.offset });
    params.iter().map(object).collect()
}

fn list(params: &[Param], out: Output) {
    for Param { name, ty, bytes, offset, is_array, pointee } in params {
        let ty = format!("{ty:?}").to_lowercase();
        let what = match (pointee, is_array) {
            (Some((space, align)), _) => format!("pointer to {}, aligned to {align} B", space.as_str()),
            (None, true) => format!("{bytes} B, a struct"),
            (None, false) => ty,
        };
        out.text(format_args!("  parameter at byte {offset}: {what} ({name})"));
    }
}
