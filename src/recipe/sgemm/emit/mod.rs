//! The text of the kernels, and what a plan says about them.

mod common;

use askama::Template;

use super::decide::{Decision, operands};
use super::{Variant, launch};
use crate::diagnostic::BindError;
use crate::emit;
use crate::model::Prediction;
use crate::plan::{Computes, Fact, Geometry, KernelPlan, Plan};
use crate::recipe::product::{Launch, Parts};
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

impl Decision {
    fn block<'a>(&'a self, plan: &'a Plan) -> Block<'a> {
        let thr = [0, 1].map(|factor| match self.tiling.of_global_memory().nth(factor).map(|copy| &copy.engine) {
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

impl KernelPlan for Decision {
    fn header(&self, plan: &Plan) -> String {
        match self.recipe.variant {
            Variant::Naive | Variant::Coalesced => emit::text(&Element {
                c: common(self, plan, "sgemm/element.cuh"),
                thr_d: emit::layout_type(&self.tiling.mmas[0].atoms),
            }),
            Variant::SmemTiled | Variant::Block1d | Variant::Block2d => emit::text(&self.block(plan)),
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
        let Self { tiling, shared, product, recipe, .. } = self;
        Launch { tiling, shared, product, operands: &operands(self), views, parts: recipe.parts() }.predict()
    }

    fn geometry(&self, plan: &Plan, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, BindError> {
        launch::geometry(self, plan, views, scalars)
    }
}

pub(super) fn facts(decision: &Decision) -> Vec<Fact> {
    let recipe = &decision.recipe;
    let spare = |scalar: Option<usize>| match scalar {
        Some(s) => format!("not where {} = 0", recipe.epilogue.scalars()[s]),
        None => "read always".to_owned(),
    };
    let [alpha, beta] = [decision.product.alpha(), decision.product.beta()].map(spare);
    let each = "a accumulator, b C, c.. auxiliary; each operation rounded by itself";
    let mut facts = vec![
        Fact::new("variant", recipe.variant, recipe.variant.what()),
        Fact::new("epilogue", &recipe.epilogue, each),
        Fact::new("A and B", alpha, "whether they are read; elsewhere the sum counts as 0"),
    ];
    if decision.product.has_c() {
        facts.push(Fact::new("C", beta, "whether it is read; elsewhere it counts as 0"));
    }
    facts.extend(Fact::of_tiling(&decision.tiling));
    if decision.registers > 0 {
        let registers = format!("about {}", decision.registers);
        facts.push(Fact::new("registers", registers, "values and addresses; ptxas tells exactly"));
    }
    let [bm, bn, _] = decision.tile();
    let tiles = format!("ceil_div(N,{bn}), ceil_div(M,{bm})");
    facts.push(match recipe.parts() {
        Parts::Each(1) => Fact::new("grid", tiles, "and batches along z"),
        Parts::Each(_) => Fact::new("grid", tiles, "and batches and parts of K along z; a second kernel sums in order"),
        Parts::Wave(_) => Fact::new("tiles", tiles, "and batches, along N first; what fills no wave is cut along K"),
    });
    facts
}
