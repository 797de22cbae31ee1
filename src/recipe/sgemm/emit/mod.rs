//! The text of the kernels, and what a plan says about them.

mod common;

use askama::Template;

use super::decide::{Decision, REDUCE_THREADS};
use super::tilings::F32;
use super::{Variant, launch, predict};
use crate::diagnostic::BindError;
use crate::emit;
use crate::model::Prediction;
use crate::plan::{Computes, Fact, Geometry, KernelPlan, Plan};
use crate::recipe::product::Major;
use crate::tiling::Engine;
use crate::view::ViewRef;
use common::{Common, common};

#[derive(Template)]
#[template(path = "sgemm/element.cuh")]
struct Element<'a> {
    c: Common<'a>,
    thr_d: String,
}

#[derive(Template)]
#[template(path = "sgemm/block.cuh")]
struct Block<'a> {
    c: Common<'a>,
    /// Threads that copy A, and B.
    thr: [String; 2],
    thr_c: String,
    tile_tc: String,
}

#[derive(Template)]
#[template(path = "sgemm/vectorized.cuh")]
struct Vectorized<'a> {
    c: Common<'a>,
}

#[derive(Template)]
#[template(path = "sgemm/pipelined.cuh")]
struct Pipelined<'a> {
    c: Common<'a>,
}

impl KernelPlan for Decision {
    fn header(&self, plan: &Plan) -> String {
        match self.recipe.variant {
            Variant::Naive | Variant::Coalesced => emit::text(&Element {
                c: common(self, plan, "sgemm/element.cuh"),
                thr_d: emit::layout_type(&self.tiling.mmas[0].atoms),
            }),
            Variant::SmemTiled | Variant::Block1d | Variant::Block2d => {
                let [thr_m, thr_n] = self.thr();
                let thr = [0, 1].map(|factor| match &self.copy(factor).engine {
                    Engine::Threads { threads, .. } => emit::layout_type(threads),
                    Engine::Fragments(_) | Engine::Tma { .. } => String::new(),
                });
                emit::text(&Block {
                    c: common(self, plan, "sgemm/block.cuh"),
                    thr,
                    thr_c: emit::shape_type([thr_n, thr_m]),
                    tile_tc: emit::shape_type(self.thread_tile()),
                })
            }
            Variant::Vectorized | Variant::WarpTiled => {
                emit::text(&Vectorized { c: common(self, plan, "sgemm/vectorized.cuh") })
            }
            Variant::Pipelined => emit::text(&Pipelined { c: common(self, plan, "sgemm/pipelined.cuh") }),
        }
    }

    fn computes(&self) -> Option<Computes<'_>> {
        Some(Computes::Product(&self.product))
    }

    fn predict(&self, views: &[ViewRef]) -> Option<Prediction> {
        predict::predict(self, views)
    }

    fn geometry(&self, plan: &Plan, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError> {
        launch::geometry(self, plan, views, scalars)
    }
}

pub(super) fn facts(decision: &Decision) -> Vec<Fact> {
    let recipe = &decision.recipe;
    let fact = |name, value: String, why: &str| Fact { name, value, why: why.to_owned() };
    let [bm, bn, bk] = decision.tile();
    let [thr_m, thr_n] = decision.thr();
    let scalars = recipe.epilogue.scalars();
    let spare = |scalar: Option<usize>, what: &str| match scalar {
        Some(s) => format!("not where {} = 0", scalars[s]),
        None => format!("{what} always"),
    };
    let mut facts = vec![
        fact("variant", recipe.variant.to_string(), recipe.variant.what()),
        fact(
            "epilogue",
            recipe.epilogue.to_string(),
            "a accumulator, b C, c.. auxiliary; each operation rounded by itself",
        ),
        fact(
            "A and B",
            spare(decision.product.alpha(), "read"),
            "whether they are read; elsewhere the sum counts as 0",
        ),
    ];
    if decision.product.has_c() {
        facts.push(fact("C", spare(decision.product.beta(), "read"), "whether it is read; elsewhere it counts as 0"));
    }
    facts.push(fact("tile", format!("({bm},{bn},{bk})"), "(BM,BN,BK)"));
    facts.push(fact("threads", format!("({thr_m},{thr_n})"), "along M and N, each with a thread tile"));
    for (factor, tensor) in decision.tiling.smem.iter().enumerate() {
        let how = if recipe.turns(factor) { "turned" } else { "as it lies" };
        let swizzle = tensor.swizzle.map_or_else(String::new, |s| format!("{s} o "));
        facts.push(fact(
            ["sA", "sB"][factor],
            format!("{swizzle}{}, {how}, {} B at once", tensor.stage(), F32 * decision.vector(factor)),
            "one stage in shared memory, and bytes of one load of global memory",
        ));
    }
    if recipe.variant == Variant::Pipelined {
        facts.push(fact("stages", recipe.stages.to_string(), "tiles in shared memory at a time"));
        facts.push(fact("split_k", recipe.split_k.to_string(), "parts of K, summed in order by a second kernel"));
        let cut = "blocks that run at a time; tiles that do not fill a wave are cut along K, and summed in order";
        facts.push(fact("wave", recipe.wave.to_string(), cut));
    }
    if decision.registers > 0 {
        facts.push(fact(
            "registers",
            format!("about {}", decision.registers),
            "values and addresses; ptxas tells exactly",
        ));
    }
    let major = |m: Major| if m == Major::Row { "rows" } else { "columns" };
    facts.push(fact("storage", format!("A in {}, B in {}", major(recipe.a), major(recipe.b)), "what is contiguous"));
    let tiles = format!("ceil_div(N,{bn}), ceil_div(M,{bm})");
    facts.push(match recipe.wave {
        0 => fact("grid", tiles, "and batches and parts of K along z"),
        _ => fact("tiles", tiles, "and batches; numbered along N first, as blocks are"),
    });
    facts
}
