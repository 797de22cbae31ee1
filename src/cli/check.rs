//! `cutemplate check`.

use std::process::ExitCode;

use cutemplate::model::{AccessReport, Machine, SharedAnalysis};
use cutemplate::plan::{Binding, Entry, EntryLaunch, Plan};
use cutemplate::units::{Bytes, Elements};
use cutemplate::view::ViewRef;
use serde_json::{Map, Value, json};

use crate::cli::args::{CheckArgs, Problem};
use crate::cli::families::Families;
use crate::cli::output::{Failure, Output};
use crate::cli::own;
use crate::cli::progress::on_terminal;
use crate::cli::run::layouts;

pub(crate) fn run(args: &CheckArgs, families: &Families, out: &Output) -> Result<ExitCode, Failure> {
    if own::is_file(&args.kernel.kernel) {
        return own::check(args, out);
    }
    let plan = args.kernel.plan(families, out)?;
    out.prose(&plan);
    out.object(json!({ "plan": object(&plan) }));
    if let Some(problem) = &args.problem {
        predict(&plan, problem, args.ld, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn predict(plan: &Plan, problem: &Problem, ld: Option<i64>, out: &Output) -> Result<(), Failure> {
    let layouts = layouts(plan, &problem.0, ld)?;
    // Addresses as an allocator gives them: aligned, and apart.
    let views = plan.operands().iter().zip(&layouts).zip(1_u64..).map(|((operand, layout), k)| ViewRef {
        dtype: operand.dtype,
        ptr: k << 48,
        available: Elements(layout.layout.span().unwrap_or(0)),
        layout: layout.layout,
        access: operand.access,
    });
    let views: Vec<ViewRef> = views.collect();
    plan.texts().iter().try_for_each(|text| predict_text(text, problem, &views, out))
}

fn predict_text(plan: &Plan, problem: &Problem, views: &[ViewRef], out: &Output) -> Result<(), Failure> {
    let name = plan.name();
    // No scalar is 0, so that every entry has something to do.
    let binding = plan.bind_with(views, &vec![1.0; plan.scalars().len()])?;
    out.prose(format_args!("a launch of {problem}\n{}", launches(plan, &binding)));
    out.object(json!({ "launch": launch_object(plan, &binding) }));
    if binding.launches().is_empty() {
        return Ok(());
    }
    let what = format!("counts the requests of every warp for {problem}");
    let Some(prediction) = on_terminal(out, &what, || plan.predict(views))? else {
        return Err(Failure::message(format_args!("there is no model of `{}` yet", plan.family())));
    };
    out.prose(format_args!("predicted for {problem}\n{prediction}"));
    for arch in plan.targets().archs() {
        let machine = Machine::of(*arch);
        let waves = waves(plan, &binding, &machine);
        out.prose(format_args!("on {arch}\n{}{}", waves.text, prediction.on(&machine)));
        let (seconds, limit) = prediction.seconds(&machine);
        out.object(json!({
            "kernel": name, "prediction": prediction, "machine": machine.name, "seconds": seconds, "limit": limit,
            "waves": waves.counts,
        }));
    }
    Ok(())
}

/// How the blocks of each entry fill a machine, one wave after the other.
struct Waves {
    text: String,
    counts: Vec<Option<f64>>,
}

fn waves(plan: &Plan, binding: &Binding, machine: &Machine) -> Waves {
    let mut waves = Waves { text: String::new(), counts: Vec::new() };
    for launch in binding.launches() {
        let Some(entry) = plan.entries().get(launch.entry) else { continue };
        // Without an estimate of registers: the blocks that the other resources allow.
        let (most, occupancy) = match entry.occupancy(machine.arch) {
            Some(occupancy) => ("", occupancy),
            None => ("at most ", entry.occupancy_with(machine.arch, 0)),
        };
        let blocks: u64 = launch.grid.iter().map(|extent| u64::from(*extent)).product();
        let count = occupancy.waves(blocks, machine.sms);
        if let Some(count) = count {
            let tail = (count - (count.ceil() - 1.0).max(0.0)) * 100.0;
            waves.text += &format!(
                "  {}: {blocks} blocks, {most}{} on each of {} multiprocessors: {count:.2} waves, the last {tail:.0}% full\n",
                entry.name, occupancy.blocks, machine.sms
            );
        }
        waves.counts.push(count);
    }
    waves
}

/// The grid of each entry, and the workspace between them.
fn launches(plan: &Plan, binding: &Binding) -> String {
    let triple = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
    let line = |l: &EntryLaunch| {
        let (grid, block) = (triple(l.grid), triple(l.block));
        let early = if l.overlaps { ", begins while the kernel before it ends" } else { "" };
        format!(
            "  {}: {grid} blocks of {block} threads, {} B of dynamic shared memory{early}\n",
            name(plan, l),
            l.dynamic_smem
        )
    };
    let grids: String = binding.launches().iter().map(line).collect();
    if grids.is_empty() {
        return "  nothing: no output has an element".to_owned();
    }
    format!("{grids}  workspace: {}", binding.workspace().map_or(Bytes(0), |w| w.bytes))
}

fn name<'a>(plan: &'a Plan, launch: &EntryLaunch) -> &'a str {
    plan.entries().get(launch.entry).map_or("", |entry| &entry.name)
}

fn launch_object(plan: &Plan, binding: &Binding) -> Value {
    let entry = |l: &EntryLaunch| json!({ "name": name(plan, l), "grid": l.grid, "block": l.block, "dynamic_smem_bytes": l.dynamic_smem, "overlaps": l.overlaps });
    let entries: Vec<Value> = binding.launches().iter().map(entry).collect();
    json!({ "entries": entries, "workspace_bytes": binding.workspace().map_or(0, |w| w.bytes.0) })
}

/// A `__global__` function of a plan.
fn entry(entry: &Entry) -> Value {
    json!({
        "name": entry.name, "threads": entry.threads, "smem_bytes": entry.shared_memory().0,
        "dynamic_smem_bytes": entry.dynamic_smem.0, "registers": entry.registers, "min_blocks": entry.min_blocks,
    })
}

/// A plan for machines.
pub(crate) fn object(plan: &Plan) -> Value {
    let settings: Map<String, Value> = plan.settings().iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
    let texts: Vec<Value> = plan.texts().iter().map(text).collect();
    json!({
        "family": plan.family(), "name": plan.name(), "recipe": plan.recipe(), "settings": settings,
        "targets": archs(plan), "texts": texts,
    })
}

fn archs(plan: &Plan) -> Vec<&str> {
    plan.targets().archs().iter().map(|arch| arch.name()).collect()
}

/// The decisions of one text.
fn text(plan: &Plan) -> Value {
    let facts: Vec<Value> =
        plan.facts().iter().map(|f| json!({ "name": f.name, "value": f.value, "why": f.why })).collect();
    let entries: Vec<Value> = plan.entries().iter().map(entry).collect();
    let shared: Vec<Value> = plan.shared().iter().map(shared).collect();
    json!({ "name": plan.name(), "targets": archs(plan), "entries": entries, "facts": facts, "shared": shared })
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
