//! The text of the kernels, and its facts.

mod common;

use askama::Template;

use super::Variant;
use super::decide::Decision;
use crate::emit;
use crate::plan::Plan;
use crate::recipe::product::{EpilogueRead, Parts};
use crate::tiling::Engine;
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

/// One tile a CTA.
#[derive(Template)]
#[template(path = "sgemm/pipelined.cuh")]
struct Pipelined<'a> {
    c: Common<'a>,
}

/// Each tile by several CTAs, each with a part of K.
#[derive(Template)]
#[template(path = "sgemm/pipelined_split.cuh")]
struct PipelinedSplit<'a> {
    c: Common<'a>,
}

/// The tiles that do not fill a wave by several CTAs each.
#[derive(Template)]
#[template(path = "sgemm/pipelined_wave.cuh")]
struct PipelinedWave<'a> {
    c: Common<'a>,
}

impl Decision {
    fn block<'a>(&'a self, plan: &'a Plan) -> Block<'a> {
        let thr = [0, 1].map(|factor| match self.moved(factor).map(|copy| &copy.engine) {
            Some(Engine::Threads { threads, .. }) => emit::layout_type(threads),
            _ => String::new(),
        });
        let ([m, n, _], [tm, tn]) = (self.tile(), self.recipe.thread_tile.0.map(i64::from));
        Block {
            c: common(self, plan, "sgemm/block.cuh"),
            thr,
            thr_c: emit::shape_type([n / tn, m / tm]),
            tile_tc: emit::shape_type([tm, tn]),
        }
    }
}

/// The text of the `.cuh` file.
pub(super) fn header(decision: &Decision, plan: &Plan) -> String {
    match decision.recipe.variant {
        Variant::Naive | Variant::Coalesced => emit::text(&Element {
            c: common(decision, plan, "sgemm/element.cuh"),
            thr_d: emit::layout_type(&decision.tiling.mmas[0].atoms),
        }),
        Variant::SmemTiled | Variant::Block1d | Variant::Block2d => emit::text(&decision.block(plan)),
        Variant::Vectorized | Variant::WarpTiled => {
            emit::text(&Vectorized { c: common(decision, plan, "sgemm/vectorized.cuh") })
        }
        Variant::Pipelined => match decision.recipe.parts() {
            Parts::Each(1) => emit::text(&Pipelined { c: common(decision, plan, "sgemm/pipelined.cuh") }),
            Parts::Each(_) => emit::text(&PipelinedSplit { c: common(decision, plan, "sgemm/pipelined_split.cuh") }),
            Parts::Wave(_) => emit::text(&PipelinedWave { c: common(decision, plan, "sgemm/pipelined_wave.cuh") }),
        },
    }
}
