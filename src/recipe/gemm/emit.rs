//! The text of a part: its joining template with the values of its tiling.

use askama::Template;

use super::decide::{Isa, Part};
use crate::emit;
use crate::emit::{Alias, Assertion};
use crate::plan::Plan;
use crate::tiling::{SmemTensor, Task, Tiling};
use crate::units::Bytes;

/// What the texts of both instruction sets are made of.
struct Common<'a> {
    banner: String,
    plan: &'a Plan,
    tile: [i64; 3],
    threads: u32,
    smem_bytes: u64,
    element: &'static str,
    element_d: &'static str,
    aliases: Vec<Alias>,
    assertions: Vec<Assertion>,
    tensors: Vec<Shared>,
    /// What shared memory begins at a multiple of.
    align: u64,
}

/// An array in shared memory.
struct Shared {
    name: &'static str,
    param: String,
    align: Bytes,
    ty: &'static str,
}

#[derive(Template)]
#[template(path = "gemm/sm80.cuh")]
struct Sm80<'a> {
    c: Common<'a>,
}

#[derive(Template)]
#[template(path = "gemm/sm90a.cuh")]
struct Sm90a<'a> {
    c: Common<'a>,
    cluster: [u32; 3],
    cluster_type: String,
    group: u32,
    produce_registers: Option<u32>,
    consume_registers: Option<u32>,
}

fn common<'a>(part: &'a Part, plan: &'a Plan, template: &str) -> Common<'a> {
    let tiling = &part.tiling;
    // What the other entry has besides.
    let more = |known: &[Alias]| -> Vec<Alias> {
        let all = part.direct.iter().flat_map(Tiling::aliases);
        all.filter(|alias| known.iter().all(|known| known.name != alias.name)).collect()
    };
    let mut aliases = tiling.aliases();
    aliases.extend(more(&aliases));
    Common {
        banner: emit::banner(plan, template),
        plan,
        tile: tiling.tile,
        threads: tiling.threads(),
        smem_bytes: part.smem.0,
        element: emit::element(part.recipe.dtype),
        element_d: emit::element(part.recipe.out),
        aliases,
        assertions: tiling.assertions(),
        tensors: tiling.smem.iter().map(shared).collect(),
        align: tiling.smem.iter().map(|tensor| tensor.align.0).max().unwrap_or(16),
    }
}

fn shared(tensor: &SmemTensor) -> Shared {
    let ty = emit::element(tensor.dtype);
    Shared { name: tensor.name, param: tensor.name.to_lowercase(), align: tensor.align, ty }
}

pub(super) fn header(part: &Part, plan: &Plan) -> String {
    match part.isa {
        Isa::Sm80 => emit::text(&Sm80 { c: common(part, plan, "gemm/sm80.cuh") }),
        Isa::Sm90a => {
            let registers = |task| part.tiling.roles.iter().find(|role| role.task == task)?.registers;
            let cluster = part.tiling.cluster;
            emit::text(&Sm90a {
                c: common(part, plan, "gemm/sm90a.cuh"),
                cluster,
                cluster_type: emit::shape_type([cluster[0].into(), cluster[1].into()]),
                group: part.recipe.group,
                produce_registers: registers(Task::Produce),
                consume_registers: registers(Task::Consume),
            })
        }
    }
}
