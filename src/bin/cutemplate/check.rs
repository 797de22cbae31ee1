//! `cutemplate check`.

use std::process::ExitCode;

use cutemplate::plan::{AccessReport, H200, Plan, SharedAnalysis};
use cutemplate::units::Elements;
use cutemplate::view::ViewRef;
use serde_json::{Map, Value, json};

use crate::args::{CheckArgs, Problem};
use crate::output::{Failure, Output};
use crate::run;

pub(crate) fn run(args: &CheckArgs, out: &Output) -> Result<ExitCode, Failure> {
    let plan = args.kernel.plan(out)?;
    out.text(&plan);
    out.object(json!({ "plan": object(&plan) }));
    if let Some(problem) = &args.problem {
        predict(&plan, problem, args.ld, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn predict(plan: &Plan, problem: &Problem, ld: Option<i64>, out: &Output) -> Result<(), Failure> {
    let layouts = run::layouts(plan, &problem.0, ld)?;
    // Addresses as an allocator gives them: aligned, and apart.
    let views = plan.operands().iter().zip(&layouts).zip(1_u64..).map(|((operand, layout), k)| ViewRef {
        dtype: operand.dtype,
        ptr: k << 48,
        available: Elements(layout.layout.span().unwrap_or(0)),
        layout: layout.layout,
        access: operand.access,
    });
    let Some(prediction) = plan.predict(&views.collect::<Vec<_>>())? else {
        return Err(Failure::message(format_args!("there is no model of `{}` yet", plan.family())));
    };
    let (seconds, limit) = prediction.seconds(&H200);
    out.text(format_args!("predicted for {problem}\n{prediction}"));
    out.object(json!({
        "prediction": prediction, "machine": H200.name, "seconds": seconds, "limit": limit,
    }));
    Ok(())
}

/// A plan for machines.
pub(crate) fn object(plan: &Plan) -> Value {
    let settings: Map<String, Value> = plan.settings().iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
    let facts: Vec<Value> =
        plan.facts().iter().map(|f| json!({ "name": f.name, "value": f.value, "why": f.why })).collect();
    let archs: Vec<&str> = plan.targets().archs().iter().map(|a| a.name()).collect();
    let shared: Vec<Value> = plan.shared().iter().map(shared).collect();
    json!({
        "family": plan.family(), "name": plan.name(), "recipe": plan.recipe(), "settings": settings,
        "targets": archs, "threads": plan.threads(), "smem_bytes": plan.smem().0, "facts": facts, "shared": shared,
    })
}

/// A tensor in shared memory.
fn shared(tensor: &SharedAnalysis) -> Value {
    let access = |access: &AccessReport| {
        json!({
            "what": access.what, "bytes": access.bytes.0, "requests": access.requests, "wavefronts": access.wavefronts,
            "least": access.least, "worst": access.worst, "conflict": access.conflict.as_ref().map(ToString::to_string),
        })
    };
    let accesses: Vec<Value> = tensor.accesses.iter().map(access).collect();
    json!({ "name": tensor.name, "layout": tensor.layout, "memory_bytes": tensor.memory.0, "accesses": accesses })
}
