//! The text of the kernels, and what a plan says about them.

mod common;
mod tiled;

use askama::Template;

use super::decide::{Decision, REDUCE_THREADS};
use super::tilings::F32;
use super::{Variant, launch, predict};
use crate::diagnostic::BindError;
use crate::emit;
use crate::layout::{Layout, LayoutError, select, take};
use crate::model::{Prediction, SharedAnalysis};
use crate::plan::{Computes, Fact, Geometry, KernelPlan, Plan};
use crate::recipe::product::Major;
use crate::tiling::{CopyOp, Engine, SmemTensor, TileCopy};
use crate::view::ViewRef;
use common::{Common, Tensor, common, sums};
use tiled::{Tiled, tiled};

#[derive(Template)]
#[template(path = "sgemm/element.cuh")]
struct Element<'a> {
    c: Common<'a>,
    what: &'static str,
    thr_d: String,
}

#[derive(Template)]
#[template(path = "sgemm/block.cuh")]
struct Block<'a> {
    c: Common<'a>,
    what: &'static str,
    smem: [Smem; 2],
    thr_a: String,
    thr_b: String,
    thr_c: String,
    tile_tc: String,
}

#[derive(Template)]
#[template(path = "sgemm/vectorized.cuh")]
struct Vectorized<'a> {
    c: Common<'a>,
    t: Tiled,
    what: &'static str,
}

#[derive(Template)]
#[template(path = "sgemm/pipelined.cuh")]
struct Pipelined<'a> {
    c: Common<'a>,
    t: Tiled,
    what: &'static str,
    reduce_threads: u32,
    /// Of those threads, for one tile.
    reduce_blocks: i64,
    reduce_tensors: Vec<Tensor>,
}

/// A layout that the plan's proofs have made.
fn made(layout: Result<Layout, LayoutError>) -> Layout {
    layout.unwrap_or_else(|defect| unreachable!("the modes of a layout are a layout: {defect}"))
}

/// (N,K) as (K,N).
fn turned(layout: &Layout) -> Layout {
    made(select(layout, &[1, 0]))
}

/// Threads and values of a copy of a tile.
fn threads_and_values(copy: &TileCopy) -> [&Layout; 2] {
    match &copy.engine {
        Engine::Threads { threads, values, .. } => [threads, values],
        engine => unreachable!("tiles are copied by threads, not by {engine:?}"),
    }
}

/// A tile in shared memory, as the templates name it.
struct Smem {
    /// `A` in `sA`.
    name: &'static str,
    /// `a` in `smem_a`.
    param: &'static str,
    layout: String,
    /// `(BM,BK)`.
    modes: &'static str,
    banks: String,
    bytes: u64,
    /// What its base, its columns and its stages begin at multiples of, in bytes.
    alignment: u64,
    /// The mode whose stride leads from one column to the next.
    columns: usize,
    staged: bool,
    swizzled: bool,
    /// Bits that a copy to registers, and one from them, may take at once.
    load_bits: u64,
    store_bits: u64,
}

impl Smem {
    /// Its layout without a swizzle, as a value.
    fn plain(&self) -> String {
        format!("Smem{}{{}}{}", self.name, if self.swizzled { ".layout_b()" } else { "" })
    }
}

/// The tile of A (0) or B (1), with its modes as the text has them.
fn smem(decision: &Decision, factor: usize, tensor: &SmemTensor, modes: &'static str) -> Smem {
    let (fill, load) = (decision.copy(factor), &decision.tiling.copies[2 * factor + 1]);
    // CuTe makes no vectors behind a swizzle; nvcc does.
    let bits = |op: Option<CopyOp>| match op {
        Some(CopyOp::Universal(bytes) | CopyOp::Through { store: bytes, .. }) if tensor.swizzle.is_none() => {
            8 * bytes.0
        }
        _ => 8 * F32 as u64,
    };
    Smem {
        name: tensor.name,
        param: PARAMS[factor],
        layout: tensor.ty(),
        modes,
        banks: banks(&decision.shared[factor]),
        bytes: tensor.bytes().map_or(0, |bytes| bytes.0),
        alignment: tensor.align.0,
        columns: 1 - tensor.contiguous(),
        staged: tensor.layout.rank() > 2,
        swizzled: tensor.swizzle.is_some(),
        load_bits: bits(load.op()),
        store_bits: bits(fill.op()),
    }
}

/// The parameters that hold the addresses of A and B.
const PARAMS: [&str; 2] = ["a", "b"];

/// The passes over the banks that a warp's accesses take.
fn banks(analysis: &SharedAnalysis) -> String {
    let passes = |worst: u32| if worst == 1 { "1 pass".to_owned() } else { format!("{worst} passes") };
    let accesses = analysis.accesses.iter();
    let texts: Vec<String> = accesses.map(|a| format!("{} of a warp: {}", a.what, passes(a.worst))).collect();
    texts.join(", ")
}

/// B is (K,N) in this text.
fn block<'a>(decision: &Decision, plan: &'a Plan) -> Block<'a> {
    let [a, b] = [0, 1].map(|factor| &decision.tiling.smem[factor]);
    let b = SmemTensor { layout: turned(&b.layout), ..b.clone() };
    let [[thr_a, _], [thr_b, _]] = [0, 1].map(|factor| threads_and_values(decision.copy(factor)));
    let [thr_m, thr_n] = decision.thr();
    Block {
        c: common(decision, plan, "sgemm/block.cuh"),
        what: decision.recipe.variant.what(),
        smem: [smem(decision, 0, a, a.modes), smem(decision, 1, &b, "(BK,BN)")],
        thr_a: emit::layout_type(thr_a),
        thr_b: emit::layout_type(&turned(thr_b)),
        thr_c: emit::shape_type([thr_n, thr_m]),
        tile_tc: emit::shape_type(decision.thread_tile()),
    }
}

impl KernelPlan for Decision {
    fn header(&self, plan: &Plan) -> String {
        let what = self.recipe.variant.what();
        let [bm, bn, _] = self.tile();
        match self.recipe.variant {
            Variant::Naive | Variant::Coalesced => emit::text(&Element {
                c: common(self, plan, "sgemm/element.cuh"),
                what,
                thr_d: emit::layout_type(&made(take(&self.tiling.mmas[0].atoms, 0, 2))),
            }),
            Variant::Pipelined => {
                let c = common(self, plan, "sgemm/pipelined.cuh");
                let t = tiled(self, &c);
                let batch = if self.recipe.batched { "(_,_,_,int(blockIdx.z))" } else { "" };
                let of_batch = |t: &Tensor| Tensor { slice: t.slice.replace('l', "int(blockIdx.z)"), ..t.clone() };
                let reduce_tensors = match self.recipe.wave {
                    0 => core::iter::once(sums(self, batch, "(M,N,SPLIT)"))
                        .chain(c.epilogue.iter().map(of_batch))
                        .collect(),
                    _ => c.epilogue.iter().cloned().chain([sums(self, "", "(BM,BN,(CUT,PARTS))")]).collect(),
                };
                let reduce_blocks = (bm * bn + i64::from(REDUCE_THREADS) - 1) / i64::from(REDUCE_THREADS);
                emit::text(&Pipelined { c, t, what, reduce_threads: REDUCE_THREADS, reduce_blocks, reduce_tensors })
            }
            variant if variant.has_mma() => {
                let c = common(self, plan, "sgemm/vectorized.cuh");
                let t = tiled(self, &c);
                emit::text(&Vectorized { c, t, what })
            }
            _ => emit::text(&block(self, plan)),
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
