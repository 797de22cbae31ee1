//! The text of the kernels, and what a plan says about them.

use askama::Template;

use super::copy::{F32, Tile};
use super::decide::{Decision, Lanes, REDUCE_THREADS, operands, zigzag};
use super::launch::{self, stride_params};
use super::predict;
use super::{Major, Variant};
use crate::emit;
use crate::expr::{Compute, Helpers};
use crate::layout::Layout;
use crate::plan::{Computes, Diagnostic, Fact, Geometry, KernelPlan, ModeStride, Operand, Plan, Prediction};
use crate::view::{Access, ViewRef};

/// A tensor as the templates name it.
#[derive(Clone)]
struct Tensor {
    /// `A` in `mA`.
    name: &'static str,
    /// `C` in `tCrC` would be the accumulators: what is read of C is `tCrX`.
    read_name: String,
    param: String,
    element: &'static str,
    pointee: String,
    shape: String,
    strides: String,
    /// Takes the matrix of this batch.
    slice: String,
    /// `(M,K)`.
    modes: &'static str,
    /// The vector type where it is contiguous along N, else empty.
    vector: String,
    /// When it is read at all; empty for always.
    guard: String,
    /// The conversion of `@` to f32.
    convert: String,
}

impl Tensor {
    /// The element at `place`, whose `@` is the tensor's name, or 0 where it need not be read.
    fn load(&self, place: &str) -> String {
        let element = self.convert.replace('@', &place.replace('@', self.name));
        if self.guard.is_empty() { element } else { format!("{} ? {element} : 0.0f", self.guard) }
    }
}

/// What all kernels of the family have in common.
struct Common<'a> {
    banner: String,
    plan: &'a Plan,
    function: String,
    inputs_doc: String,
    helpers: String,
    functor: String,
    scalars: String,
    /// As the kernel declares them.
    tensors: Vec<Tensor>,
    /// Those of the epilogue, D last.
    epilogue: Vec<Tensor>,
    /// Which input of the epilogue, from 1, is which tensor that is read; `None` for C where it is not used.
    inputs: Vec<Option<usize>>,
    bm: i64,
    bn: i64,
    tile_a: String,
    tile_b: String,
    tile_d: String,
    split: i64,
    batched: bool,
    /// `,L`, or nothing.
    l: &'static str,
    batches: &'static str,
    batches_doc: String,
    batches_doc_l: &'static str,
}

impl Common<'_> {
    /// What the epilogue reads.
    fn read(&self) -> &[Tensor] {
        &self.epilogue[..self.epilogue.len() - 1]
    }

    fn reads(&self) -> bool {
        self.epilogue.len() > 1
    }

    fn arguments_by(&self, value: impl Fn(&Tensor) -> String) -> String {
        let one = |input: &Option<usize>| input.map_or_else(|| "0.0f".to_owned(), |i| value(&self.epilogue[i]));
        self.inputs.iter().map(|input| format!(", {}", one(input))).collect()
    }

    /// The inputs after the accumulator, read where they lie.
    fn arguments(&self, place: &str) -> String {
        self.arguments_by(|t| t.load(place))
    }

    /// The same from registers, at `index`.
    fn registers(&self, index: &str) -> String {
        self.arguments_by(|t| format!("tCr{}{index}", t.read_name))
    }
}

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
    smem_a: String,
    smem_b: String,
    smem_bytes_a: i64,
    smem_bytes_b: i64,
    banks_a: String,
    banks_b: String,
    thr_a: String,
    thr_b: String,
    thr_c: String,
    tile_tc: String,
}

/// What the rungs with an MMA have besides.
struct Tiled {
    smem_a: String,
    smem_b: String,
    smem_modes_a: &'static str,
    smem_modes_b: &'static str,
    smem_bytes: i64,
    banks_a: String,
    banks_b: String,
    op_a: &'static str,
    op_b: &'static str,
    thr_a: String,
    thr_b: String,
    val_a: String,
    val_b: String,
    edge_a: String,
    edge_b: String,
    align_a: &'static str,
    align_b: &'static str,
    thr_c: String,
    perm_m: String,
    perm_n: String,
    vec_m: i64,
    vec_n: i64,
    vector_d: String,
    /// What the threads read and write at the end: of the epilogue, or the workspace.
    stores: Vec<Tensor>,
    /// Whether the epilogue is applied here.
    op: bool,
    target: &'static str,
    value: String,
    stages: i64,
    warp_sync: bool,
}

impl Tiled {
    fn reads(&self) -> &[Tensor] {
        &self.stores[..self.stores.len() - 1]
    }

    fn any_read(&self) -> bool {
        self.stores.len() > 1
    }

    fn value(&self) -> &str {
        &self.value
    }
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
    reduce_tensors: Vec<Tensor>,
}

fn layout_text(text: &str) -> String {
    match text.parse::<Layout>() {
        Ok(layout) => emit::layout_type(&layout),
        Err(defect) => unreachable!("{text} is a layout: {defect}"),
    }
}

/// A tensor whose matrix is `(rows,cols)`, turned where an MMA takes B as `(N,K)`.
fn tensor(decision: &Decision, operand: &Operand, helpers: &mut Helpers) -> Tensor {
    let mma = decision.recipe.variant.has_mma();
    let (extents, modes, turned) = match operand.name {
        "A" => (["m", "k"], "(M,K)", false),
        "B" if mma => (["n", "k"], "(N,K)", true),
        "B" => (["k", "n"], "(K,N)", false),
        _ => (["m", "n"], "(M,N)", false),
    };
    let stride = |(kind, param): (&ModeStride, Option<String>)| match (kind, param) {
        (ModeStride::Unit, _) => "_1{}".to_owned(),
        (_, Some(param)) => format!("params.{param}"),
        _ => "_0{}".to_owned(),
    };
    let mut strides: Vec<String> =
        operand.strides.iter().zip(stride_params(&operand.param, &operand.strides)).map(stride).collect();
    if turned {
        strides.swap(0, 1);
    }
    let batched = decision.recipe.batched;
    let mut shape: Vec<String> = extents.iter().map(|e| format!("params.{e}")).collect();
    shape.extend(batched.then(|| "params.l".to_owned()));
    let written = operand.access == Access::Write;
    let element = operand.dtype.cxx();
    let vec = decision.vectors()[1] as u64;
    let along_n = operand.strides.get(1) == Some(&ModeStride::Unit);
    let beta = decision.product.beta().filter(|_| operand.name == "C");
    let guard = beta.map(|s| format!("params.{} != 0.0f", decision.recipe.epilogue.scalars()[s]));
    Tensor {
        name: operand.name,
        read_name: if operand.name == "C" { "X".to_owned() } else { operand.name.to_owned() },
        param: operand.param.clone(),
        element,
        pointee: format!("{element}{}", if written { "" } else { " const" }),
        shape: format!("make_shape({})", shape.join(", ")),
        strides: format!("make_stride({})", strides.join(", ")),
        slice: if batched { "(_,_,l)".to_owned() } else { String::new() },
        modes,
        vector: if along_n { format!("uint{}_t", 8 * vec * operand.dtype.bytes().0) } else { String::new() },
        guard: guard.unwrap_or_default(),
        convert: helpers.load(operand.dtype, "@"),
    }
}

/// The workspace, `(M,N,SPLIT)`, rows without gaps.
fn sums(decision: &Decision, slice: &str, modes: &'static str) -> Tensor {
    let batched = decision.recipe.batched;
    let split = decision.split();
    let (shape_l, stride_l) =
        if batched { (", params.l", format!(", int64_t(params.m) * params.n * {split}")) } else { ("", String::new()) };
    Tensor {
        name: "W",
        read_name: "W".to_owned(),
        param: crate::plan::WORKSPACE.to_owned(),
        element: "float",
        pointee: "float".to_owned(),
        shape: format!("make_shape(params.m, params.n, _{split}{{}}{shape_l})"),
        strides: format!("make_stride(params.n, _1{{}}, int64_t(params.m) * params.n{stride_l})"),
        slice: slice.to_owned(),
        modes,
        vector: String::new(),
        guard: String::new(),
        convert: "@".to_owned(),
    }
}

fn common<'a>(decision: &Decision, plan: &'a Plan, template: &str) -> Common<'a> {
    let recipe = &decision.recipe;
    let mut helpers = Helpers::contracted(Compute::F32);
    let functor = decision.product.epilogue().functor("Op", &mut helpers);
    let all: Vec<Tensor> = operands(decision).iter().map(|o| tensor(decision, o, &mut helpers)).collect();
    let epilogue: Vec<Tensor> = all[2..].to_vec();
    let mut tensors = all;
    if decision.split() > 1 {
        tensors.truncate(2);
        let slice = if recipe.batched { "(_,_,split,l)" } else { "(_,_,split)" };
        tensors.push(sums(decision, slice, "(M,N)"));
    }
    let [bm, bn, bk] = decision.tile();
    let c = usize::from(decision.product.has_c());
    let inputs = (1..recipe.epilogue.inputs())
        .map(|input| if input == 1 { (c == 1).then_some(0) } else { Some(input - 2 + c) })
        .collect();
    let names = ["b = C(m,n)".to_owned()].into_iter().chain(
        recipe
            .epilogue
            .input_names()
            .skip(2)
            .zip(super::epilogue::AUX)
            .map(|(input, aux)| format!("{input} = {aux}(m,n)")),
    );
    let used = names.take(recipe.epilogue.inputs().saturating_sub(1));
    let tile_b = if recipe.variant.has_mma() { [bn, bk] } else { [bk, bn] };
    let split = decision.split();
    let z = match (recipe.batched, split) {
        (false, 1) => "1".to_owned(),
        (true, 1) => "L".to_owned(),
        (false, s) => s.to_string(),
        (true, s) => format!("{s}*L"),
    };
    Common {
        banner: emit::banner(plan, template),
        plan,
        function: recipe.epilogue.to_string(),
        inputs_doc: used.map(|name| format!(", {name}")).collect(),
        helpers: helpers.to_string(),
        functor,
        scalars: recipe.epilogue.scalars().iter().map(|s| format!("params.{s}")).collect::<Vec<_>>().join(", "),
        tensors,
        epilogue,
        inputs,
        bm,
        bn,
        tile_a: emit::shape_type([bm, bk]),
        tile_b: emit::shape_type(tile_b),
        tile_d: emit::shape_type([bm, bn]),
        split,
        batched: recipe.batched,
        l: if recipe.batched { ",L" } else { "" },
        batches: if recipe.batched { "params.l" } else { "_1{}" },
        batches_doc: z,
        batches_doc_l: if recipe.batched { "L" } else { "1" },
    }
}

fn smem_layout(tile: &Tile, stages: Option<i64>, k_first: bool) -> String {
    let layout = tile.layout(stages, k_first);
    tile.swizzle.map_or_else(|| emit::layout_type(&layout), |s| emit::swizzled_type(s, &layout))
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
        smem_a: smem_layout(a, None, false),
        smem_b: smem_layout(b, None, true),
        smem_bytes_a: F32 * a.cosize(1),
        smem_bytes_b: F32 * b.cosize(1),
        banks_a: banks(a),
        banks_b: banks(b),
        thr_a: threads_of(a.lanes, a.global_k),
        thr_b: threads_of(b.lanes, !b.global_k),
        thr_c: emit::shape_type([thr_n, thr_m]),
        tile_tc: emit::shape_type([tm, tn]),
    }
}

/// Threads and values of a copy of a tile `(BX,BK)`.
fn copy_layouts(tile: &Tile) -> (String, String) {
    let vec = tile.vec;
    let values = if tile.global_k { format!("(1,{vec}):({vec},1)") } else { format!("({vec},1):(1,{vec})") };
    (threads_of(tile.lanes, tile.global_k), layout_text(&values))
}

fn copy_op(decision: &Decision, tile: &Tile) -> &'static str {
    match (decision.recipe.variant, tile.vec) {
        (Variant::Pipelined, 4) => "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>",
        (Variant::Pipelined, 2) => "SM80_CP_ASYNC_CACHEALWAYS<uint64_t>",
        (Variant::Pipelined, _) => "SM80_CP_ASYNC_CACHEALWAYS<uint32_t>",
        (_, 4) => "UniversalCopy<uint128_t>",
        (_, 2) => "UniversalCopy<uint64_t>",
        _ => "UniversalCopy<uint32_t>",
    }
}

/// Threads that copy single elements.
fn edge(tile: &Tile) -> String {
    let threads = tile.lanes[0] * tile.lanes[1];
    let (contiguous, other) = if tile.global_k { (tile.k, tile.x) } else { (tile.x, tile.k) };
    let lanes = super::copy::lanes(contiguous, other, 1, threads, threads).unwrap_or(tile.lanes);
    threads_of(lanes, tile.global_k)
}

fn thr_c(decision: &Decision) -> String {
    let [m, n] = decision.thr;
    if decision.recipe.variant == Variant::Vectorized {
        return layout_text(&format!("({m},{n},1):({n},1,0)"));
    }
    let [lanes_m, lanes_n] = decision.recipe.warp.0.map(i64::from);
    let (warps_m, warps_n) = (m / lanes_m, n / lanes_n);
    let (along_m, along_n) = zigzag([lanes_m, lanes_n]);
    let mode = |lanes: [Lanes; 2], warps: i64, stride: i64| {
        let [low, high] = lanes;
        (format!("({},{},{warps})", low.count, high.count), format!("({},{},{stride})", low.stride, high.stride))
    };
    let ((shape_m, stride_m), (shape_n, stride_n)) = (mode(along_m, warps_m, 32), mode(along_n, warps_n, 32 * warps_m));
    layout_text(&format!("({shape_m},{shape_n},1):({stride_m},{stride_n},0)"))
}

fn tiled(decision: &Decision, c: &Common<'_>, [a, b]: &[Tile; 2]) -> Tiled {
    let stages = (decision.recipe.variant == Variant::Pipelined).then(|| decision.stages());
    let ((thr_a, val_a), (thr_b, val_b)) = (copy_layouts(a), copy_layouts(b));
    let [vec_m, vec_n] = decision.vectors();
    let [thr_m, thr_n] = decision.thr;
    let split = decision.split() > 1;
    let bytes = |tile: &Tile| F32 * tile.cosize(stages.unwrap_or(1));
    let modes = |x: &'static str, staged: &'static str| if stages.is_some() { staged } else { x };
    let stores = if split { c.tensors[2..].to_vec() } else { c.epilogue.clone() };
    let arguments = c.arguments_by(|t| t.convert.replace('@', &format!("tDr{}(i, n)", t.read_name)));
    let accumulator = "tDrC(at(n))(i)";
    Tiled {
        smem_a: smem_layout(a, stages, false),
        smem_b: smem_layout(b, stages, false),
        smem_modes_a: modes("(BM,BK)", "(BM,BK,STAGES)"),
        smem_modes_b: modes("(BN,BK)", "(BN,BK,STAGES)"),
        smem_bytes: bytes(a) + bytes(b),
        banks_a: banks(a),
        banks_b: banks(b),
        op_a: copy_op(decision, a),
        op_b: copy_op(decision, b),
        thr_a,
        thr_b,
        val_a,
        val_b,
        edge_a: edge(a),
        edge_b: edge(b),
        align_a: if a.vec > 1 { "params.aligned_a && " } else { "" },
        align_b: if b.vec > 1 { "params.aligned_b && " } else { "" },
        thr_c: thr_c(decision),
        perm_m: layout_text(&format!("({thr_m},{vec_m}):({vec_m},1)")),
        perm_n: layout_text(&format!("({thr_n},{vec_n}):({vec_n},1)")),
        vec_m,
        vec_n,
        vector_d: format!("uint{}_t", 32 * vec_n),
        stores,
        op: !split,
        target: if split { "W" } else { "D" },
        value: if split { accumulator.to_owned() } else { format!("op({accumulator}{arguments})") },
        stages: stages.unwrap_or(1),
        warp_sync: decision.recipe.warp_sync,
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
                let reduce_tensors =
                    core::iter::once(sums(self, batch, "(M,N,SPLIT)")).chain(c.epilogue.iter().map(of_batch)).collect();
                emit::text(&Pipelined { c, t, what, reduce_threads: REDUCE_THREADS, reduce_tensors })
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

    fn geometry(&self, plan: &Plan, views: &[ViewRef], scalars: &[f64]) -> Result<Geometry, Vec<Diagnostic>> {
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
    facts.push(fact("grid", format!("ceil_div(N,{bn}), ceil_div(M,{bm})"), "and batches and parts of K along z"));
    facts
}
