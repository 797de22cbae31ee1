//! `cutemplate check`.

use std::process::ExitCode;

use cutemplate::plan::Plan;
use serde_json::{Map, Value, json};

use crate::args::KernelArgs;
use crate::output::{Failure, Output};

pub(crate) fn run(args: &KernelArgs, out: &Output) -> Result<ExitCode, Failure> {
    let plan = args.plan()?;
    out.text(&plan);
    out.object(json!({ "plan": object(&plan) }));
    Ok(ExitCode::SUCCESS)
}

/// A plan for machines.
pub(crate) fn object(plan: &Plan) -> Value {
    let settings: Map<String, Value> = plan.settings().iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
    let facts: Vec<Value> =
        plan.facts().iter().map(|f| json!({ "name": f.name, "value": f.value, "why": f.why })).collect();
    let archs: Vec<&str> = plan.targets().archs().iter().map(|a| a.name()).collect();
    json!({
        "family": plan.family(), "name": plan.name(), "recipe": plan.recipe(), "settings": settings,
        "targets": archs, "threads": plan.threads(), "smem_bytes": plan.smem().0, "facts": facts,
    })
}
