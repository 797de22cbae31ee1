//! The text of the kernels, and what a plan says about them.

mod common;
mod tiled;

use askama::Template;

use super::copy::{F32, Tile};
use super::decide::{Decision, REDUCE_THREADS};
use super::{Variant, launch, predict};
use crate::diagnostic::BindError;
use crate::emit;
use crate::layout::Layout;
use crate::model::{Prediction, SharedOp};
use crate::plan::{Computes, Fact, Geometry, KernelPlan, Plan};
use crate::recipe::product::Major;
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

fn layout_text(text: &str) -> String {
    match text.parse::<Layout>() {
        Ok(layout) => emit::layout_type(&layout),
        Err(defect) => unreachable!("{text} is a layout: {defect}"),
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
    bytes: i64,
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

/// `(BX,BK)` or, where `stages` are given, `(BX,BK,STAGES)`; `k_first` for B as `(BK,BN)`.
fn smem(tile: &Tile, modes: &'static str, stages: Option<i64>, k_first: bool) -> Smem {
    let layout = tile.layout(stages, k_first);
    Smem {
        name: tile.name,
        param: tile.param(),
        layout: tile.swizzle.map_or_else(|| emit::layout_type(&layout), |s| emit::swizzled_type(s, &layout)),
        modes,
        banks: banks(tile),
        bytes: F32 * tile.cosize(stages.unwrap_or(1)),
        alignment: tile.alignment().0,
        columns: usize::from(tile.smem_k == k_first),
        staged: stages.is_some(),
        swizzled: tile.swizzle.is_some(),
        load_bits: 8 * tile.at_once(SharedOp::Load),
        store_bits: 8 * tile.at_once(SharedOp::Store),
    }
}

/// The passes over the banks that a warp's accesses take.
fn banks(tile: &Tile) -> String {
    let passes = |worst: u32| if worst == 1 { "1 pass".to_owned() } else { format!("{worst} passes") };
    let accesses = tile.analysis.iter().flat_map(|a| &a.accesses);
    let texts: Vec<String> = accesses.map(|a| format!("{} of a warp: {}", a.what, passes(a.worst))).collect();
    texts.join(", ")
}

/// A layout of threads, `lanes[0]` of them along the contiguous mode, which is the second where `second`.
fn threads_of([fast, slow]: [i64; 2], second: bool) -> String {
    layout_text(&if second { format!("({slow},{fast}):({fast},1)") } else { format!("({fast},{slow}):(1,{fast})") })
}

fn block<'a>(decision: &Decision, plan: &'a Plan, tiles: &[Tile; 2]) -> Block<'a> {
    let [a, b] = tiles;
    let [tm, tn] = decision.thread_tile();
    let [thr_m, thr_n] = decision.thr;
    Block {
        c: common(decision, plan, "sgemm/block.cuh"),
        what: decision.recipe.variant.what(),
        smem: [smem(a, "(BM,BK)", None, false), smem(b, "(BK,BN)", None, true)],
        thr_a: threads_of(a.lanes, a.global_k),
        thr_b: threads_of(b.lanes, !b.global_k),
        thr_c: emit::shape_type([thr_n, thr_m]),
        tile_tc: emit::shape_type([tm, tn]),
    }
}

impl KernelPlan for Decision {
    fn header(&self, plan: &Plan) -> String {
        let what = self.recipe.variant.what();
        let [bm, bn, _] = self.tile();
        match (&self.tiles, self.recipe.variant) {
            (None, variant) => emit::text(&Element {
                c: common(self, plan, "sgemm/element.cuh"),
                what,
                thr_d: layout_text(&match variant {
                    Variant::Naive => format!("({bm},{bn}):(1,{bm})"),
                    _ => format!("({bm},{bn}):({bn},1)"),
                }),
            }),
            (Some(tiles), Variant::Pipelined) => {
                let c = common(self, plan, "sgemm/pipelined.cuh");
                let t = tiled(self, &c, tiles);
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
            (Some(tiles), variant) if variant.has_mma() => {
                let c = common(self, plan, "sgemm/vectorized.cuh");
                let t = tiled(self, &c, tiles);
                emit::text(&Vectorized { c, t, what })
            }
            (Some(tiles), _) => emit::text(&block(self, plan, tiles)),
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
    let [thr_m, thr_n] = decision.thr;
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
    for tile in decision.tiles.iter().flatten() {
        let how = if tile.global_k == tile.smem_k { "as it lies" } else { "turned" };
        let layout = tile.layout(None, false);
        let swizzle = tile.swizzle.map_or_else(String::new, |s| format!("{s} o "));
        facts.push(fact(
            if tile.name == "A" { "sA" } else { "sB" },
            format!("{swizzle}{layout}, {how}, {} B at once", F32 * tile.vec),
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
