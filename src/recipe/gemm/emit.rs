//! The text of a part: its joining template with the values of its tiling.

use askama::Template;

use super::decide::{Isa, Part};
use crate::dtype::DType;
use crate::emit;
use crate::emit::{Alias, Assertion};
use crate::plan::Plan;
use crate::tiling::{SmemTensor, Task};

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
    tensors: &'a [SmemTensor],
    /// What shared memory begins at a multiple of.
    align: u64,
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
    consumer_warps: u32,
}

fn cute(dtype: DType) -> &'static str {
    if dtype == DType::F16 { "half_t" } else { "float" }
}

fn common<'a>(part: &'a Part, plan: &'a Plan, template: &str) -> Common<'a> {
    let tiling = &part.tiling;
    Common {
        banner: emit::banner(plan, template),
        plan,
        tile: tiling.tile,
        threads: tiling.threads(),
        smem_bytes: part.smem.0,
        element: cute(super::tilings::FACTOR),
        element_d: cute(part.recipe.out),
        aliases: tiling.aliases(),
        assertions: tiling.assertions(),
        tensors: &tiling.smem,
        align: tiling.smem.iter().map(|tensor| tensor.align.0).max().unwrap_or(16),
    }
}

pub(super) fn header(part: &Part, plan: &Plan) -> String {
    match part.isa {
        Isa::Sm80 => emit::text(&Sm80 { c: common(part, plan, "gemm/sm80.cuh") }),
        Isa::Sm90a => {
            let consumer_warps = part.tiling.threads_of(Task::Consume) / 32;
            emit::text(&Sm90a { c: common(part, plan, "gemm/sm90a.cuh"), consumer_warps })
        }
    }
}
